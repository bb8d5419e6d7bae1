#include "background/housekeeping.h"

#include <chrono>

#include "background/file_steps.h"
#include "background/trash_sweep.h"
#include "server/background_thread.h"
#include "server/error_log.h"
#include "server/mariadb_compat.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

constexpr std::chrono::seconds kSweepInterval{5};

BackgroundThread thread("quarry_keeper");
std::optional<TrashSweep> sweep;  // while the thread runs, and its alone

void Run() {
  while (thread.Wait(kSweepInterval)) {
    if (!TryBeginFileStep()) {
      (void)thread.TryPass([] { WarnOfLongPause(); });
      continue;
    }
    (void)thread.TryPass([] {
      sweep->Step();
      LogNotices();
    });
    EndFileStep();
  }
  sweep.reset();
}

}  // namespace

void StartHousekeeping() {
  thread.Start([] { sweep.emplace().Open(); }, Run);
}

void StopHousekeeping() { thread.Stop(); }

void LogNotices() {
  for (const std::string& notice : Directory()->TakeNotices()) LogWarning("%s", notice.c_str());
}

}  // namespace quarry
