#include "housekeeping.h"

#include <chrono>
#include <condition_variable>
#include <thread>

#include "hton.h"
#include "mariadb_compat.h"
#include "trash_sweep.h"

#include <log.h>

namespace quarry {

namespace {

constexpr std::chrono::seconds kCheckpointInterval{60};
constexpr std::chrono::seconds kSweepInterval{5};

struct Thread {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;  // guarded by mutex, as the next three
  int working = 0;    // threads that are in a step
  bool ready = false;
  bool maintenance_paused = false;      // the store's own thread
  std::atomic<unsigned> paused_for{0};  // a set of Pause; changed under the mutex, read without
  std::thread thread;
};
Thread housekeeping;

void Checkpoint() {
  if (const Status status = Directory()->Checkpoint(); !status.ok()) {
    sql_print_warning("QUARRY: a checkpoint failed, recovery would scan more: %s", status.ToString().c_str());
  }
}

void Run() {
  const bool usable = my_thread_init() == 0;
  TrashSweep sweep;
  if (usable) sweep.Open();
  auto last_checkpoint = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(housekeeping.mutex);
  housekeeping.ready = true;
  housekeeping.changed.notify_all();
  if (!usable) return;
  while (!housekeeping.changed.wait_for(lock, kSweepInterval, [] { return housekeeping.stop; })) {
    lock.unlock();
    if (TryBeginFileStep()) {
      sweep.Step();
      if (std::chrono::steady_clock::now() - last_checkpoint >= kCheckpointInterval) {
        last_checkpoint = std::chrono::steady_clock::now();
        Checkpoint();
      }
      EndFileStep();
    }
    lock.lock();
  }
  lock.unlock();
  my_thread_end();
}

}  // namespace

void StartHousekeeping() {
  std::unique_lock<std::mutex> lock(housekeeping.mutex);
  if (housekeeping.thread.joinable()) return;
  housekeeping.stop = false;
  housekeeping.ready = false;
  housekeeping.thread = std::thread(Run);
  housekeeping.changed.wait(lock, [] { return housekeeping.ready; });
}

void PauseHousekeeping(Pause reason) {
  std::unique_lock<std::mutex> lock(housekeeping.mutex);
  housekeeping.paused_for |= static_cast<unsigned>(reason);
  housekeeping.changed.wait(lock, [] { return housekeeping.working == 0; });
  // The reason may have been taken back meanwhile, or another may have paused already.
  if (housekeeping.maintenance_paused || housekeeping.paused_for == 0) return;
  // So that whoever starts on the copy has little to scan.
  Checkpoint();
  Directory()->PauseMaintenance();
  housekeeping.maintenance_paused = true;
}

void ResumeHousekeeping(Pause reason) {
  const std::lock_guard<std::mutex> guard(housekeeping.mutex);
  housekeeping.paused_for &= ~static_cast<unsigned>(reason);
  if (housekeeping.paused_for != 0 || !housekeeping.maintenance_paused) return;
  housekeeping.maintenance_paused = false;
  Directory()->ResumeMaintenance();
}

bool HousekeepingIsPaused() { return housekeeping.paused_for.load(std::memory_order_acquire) != 0; }

bool TryBeginFileStep() {
  const std::lock_guard<std::mutex> guard(housekeeping.mutex);
  if (housekeeping.paused_for != 0) return false;
  ++housekeeping.working;
  return true;
}

void EndFileStep() {
  {
    const std::lock_guard<std::mutex> guard(housekeeping.mutex);
    --housekeeping.working;
  }
  housekeeping.changed.notify_all();
}

void StopHousekeeping() {
  std::thread joined;
  {
    const std::lock_guard<std::mutex> guard(housekeeping.mutex);
    housekeeping.stop = true;
    joined.swap(housekeeping.thread);
  }
  housekeeping.changed.notify_all();
  if (joined.joinable()) joined.join();
}

}  // namespace quarry
