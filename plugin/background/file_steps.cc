// See file_steps.h.
#include "background/file_steps.h"

#include <chrono>
#include <condition_variable>

#include "server/backup_lock.h"
#include "server/error_log.h"
#include "server/mariadb_compat.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

/// A pause that lasts longer is told of, once.
constexpr std::chrono::seconds kLongPause{300};

struct FileSteps {
  std::mutex mutex;
  std::condition_variable ended;
  int working = 0;                                     // threads that are in a step; guarded by mutex, as the next
  bool maintenance_paused = false;                     // the store's own thread
  std::chrono::steady_clock::time_point paused_since;  // while that is so
  bool has_warned = false;
  std::atomic<unsigned> paused_for{0};  // a set of Pause; changed under the mutex, read without
};
FileSteps steps;

std::chrono::seconds LongPause() {
  const char* const tests = getenv("QUARRY_TEST_LONG_PAUSE_S");
  return tests == nullptr ? kLongPause : std::chrono::seconds(atoi(tests));
}

/// `holder`: the session that has quarry_backup_lock.
std::string ReasonsToPause(my_thread_id holder) {
  const unsigned reasons = steps.paused_for.load(std::memory_order_acquire);
  std::string text;
  const auto add = [&](Pause reason, const std::string& name) {
    if ((reasons & static_cast<unsigned>(reason)) != 0) text += (text.empty() ? "" : ", ") + name;
  };
  add(Pause::kStateTransfer, "a state transfer");
  add(Pause::kBackupStage, "BACKUP STAGE");
  add(Pause::kBackupLock, "quarry_backup_lock of session " + std::to_string(holder));
  return text;
}

}  // namespace

void PauseHousekeeping(Pause reason) {
  std::unique_lock<std::mutex> lock(steps.mutex);
  steps.paused_for |= static_cast<unsigned>(reason);
  steps.ended.wait(lock, [] { return steps.working == 0; });
  // The reason may have been taken back meanwhile, or another may have paused already.
  if (steps.maintenance_paused || steps.paused_for == 0) return;
  Directory()->PauseMaintenance();
  steps.maintenance_paused = true;
  steps.paused_since = std::chrono::steady_clock::now();
  steps.has_warned = false;
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

void WarnOfLongPause() {
  // Before our mutex: a session that gives the lock back has that of the lock, and then takes ours.
  const my_thread_id holder = BackupLock::Owner();
  const std::lock_guard<std::mutex> guard(steps.mutex);
  const auto lasted = std::chrono::steady_clock::now() - steps.paused_since;
  if (!steps.maintenance_paused || steps.has_warned || lasted < LongPause()) return;
  steps.has_warned = true;
  LogWarning(
      "for %lld s no space has been given back (%s). Commits go on; dead space grows and dropped tables "
      "keep their files until that ends",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(lasted).count()),
      ReasonsToPause(holder).c_str());
}

}  // namespace quarry
