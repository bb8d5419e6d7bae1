#include "housekeeping.h"

#include <condition_variable>
#include <thread>

#include "hton.h"
#include "mariadb_compat.h"

namespace quarry {

namespace {

constexpr std::chrono::seconds kCheckpointInterval{60};

struct Thread {
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;  // guarded by mutex
  std::thread thread;
};
Thread housekeeping;

void Run() {
  my_thread_init();
  std::unique_lock<std::mutex> lock(housekeeping.mutex);
  while (!housekeeping.wake.wait_for(lock, kCheckpointInterval, [] { return housekeeping.stop; })) {
    lock.unlock();
    if (const Status status = Directory()->Checkpoint(); !status.ok()) {
      sql_print_warning("QUARRY: checkpoint failed: %s", status.ToString().c_str());
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
