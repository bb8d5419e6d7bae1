#include "housekeeping.h"

#include <chrono>
#include <condition_variable>

#include "background_thread.h"
#include "hton.h"
#include "mariadb_compat.h"
#include "trash_sweep.h"

#include <log.h>

namespace quarry {

namespace {

constexpr std::chrono::seconds kCheckpointInterval{60};
constexpr std::chrono::seconds kSweepInterval{5};

struct FileSteps {
  std::mutex mutex;
  std::condition_variable ended;
  int working = 0;                      // threads that are in a step; guarded by mutex, as the next
  bool maintenance_paused = false;      // the store's own thread
  std::atomic<unsigned> paused_for{0};  // a set of Pause; changed under the mutex, read without
};
FileSteps steps;

BackgroundThread thread("quarry_keeper");
std::optional<TrashSweep> sweep;  // while the thread runs, and its alone

void Checkpoint() {
  if (const Status status = Directory()->Checkpoint(); !status.ok()) {
    sql_print_warning("QUARRY: a checkpoint failed, recovery would scan more: %s", status.ToString().c_str());
  }
}

void Run() {
  auto last_checkpoint = std::chrono::steady_clock::now();
  while (thread.Wait(kSweepInterval)) {
    if (!TryBeginFileStep()) continue;
    sweep->Step();
    if (std::chrono::steady_clock::now() - last_checkpoint >= kCheckpointInterval) {
      last_checkpoint = std::chrono::steady_clock::now();
      Checkpoint();
    }
    EndFileStep();
  }
  sweep.reset();
}

}  // namespace

void StartHousekeeping() {
  thread.Start([] { sweep.emplace().Open(); }, Run);
}

void PauseHousekeeping(Pause reason) {
  std::unique_lock<std::mutex> lock(steps.mutex);
  steps.paused_for |= static_cast<unsigned>(reason);
  steps.ended.wait(lock, [] { return steps.working == 0; });
  // The reason may have been taken back meanwhile, or another may have paused already.
  if (steps.maintenance_paused || steps.paused_for == 0) return;
  // So that whoever starts on the copy has little to scan.
  Checkpoint();
  Directory()->PauseMaintenance();
  steps.maintenance_paused = true;
}

void ResumeHousekeeping(Pause reason) {
  const std::lock_guard<std::mutex> guard(steps.mutex);
  steps.paused_for &= ~static_cast<unsigned>(reason);
  if (steps.paused_for != 0 || !steps.maintenance_paused) return;
  steps.maintenance_paused = false;
  Directory()->ResumeMaintenance();
}

bool HousekeepingIsPaused() { return steps.paused_for.load(std::memory_order_acquire) != 0; }

bool TryBeginFileStep() {
  const std::lock_guard<std::mutex> guard(steps.mutex);
  if (steps.paused_for != 0) return false;
  ++steps.working;
  return true;
}

void EndFileStep() {
  {
    const std::lock_guard<std::mutex> guard(steps.mutex);
    --steps.working;
  }
  steps.ended.notify_all();
}

void StopHousekeeping() { thread.Stop(); }

}  // namespace quarry
