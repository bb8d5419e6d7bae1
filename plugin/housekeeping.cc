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
  std::condition_variable wake;
  bool stop = false;  // guarded by mutex
  std::thread thread;
};
Thread housekeeping;

void Run() {
  if (my_thread_init() != 0) return;
  TrashSweep sweep;
  auto last_checkpoint = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(housekeeping.mutex);
  while (!housekeeping.wake.wait_for(lock, kSweepInterval, [] { return housekeeping.stop; })) {
    lock.unlock();
    sweep.Step();
    if (std::chrono::steady_clock::now() - last_checkpoint >= kCheckpointInterval) {
      last_checkpoint = std::chrono::steady_clock::now();
      if (const Status status = Directory()->Checkpoint(); !status.ok()) {
        sql_print_warning("QUARRY: a checkpoint failed, recovery would scan more: %s", status.ToString().c_str());
      }
    }
    lock.lock();
  }
  lock.unlock();
  my_thread_end();
}

}  // namespace

void StartHousekeeping() {
  const std::lock_guard<std::mutex> guard(housekeeping.mutex);
  if (housekeeping.thread.joinable()) return;
  housekeeping.stop = false;
  housekeeping.thread = std::thread(Run);
}

void StopHousekeeping() {
  std::thread joined;
  {
    const std::lock_guard<std::mutex> guard(housekeeping.mutex);
    housekeeping.stop = true;
    joined.swap(housekeeping.thread);
  }
  housekeeping.wake.notify_all();
  if (joined.joinable()) joined.join();
}

}  // namespace quarry
