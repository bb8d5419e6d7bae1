// FlushThreads: run a lane's flushes for committers who have something else to do meanwhile.
//
// Invariants: a task that is taken is started at once, or as soon as a thread that ends its last one comes round: none
// is taken when all threads are at work. Threads are started at need, at most `max` of them, and stay. After Stop none
// runs and none is taken. Without threads (deterministic tests) a task runs inside TryRun.
// Thread-safety: internally synchronised. No lock may be held over TryRun or Stop.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace quarry {

class FlushThreads {
 public:
  FlushThreads(bool with_threads, size_t max) : max_(with_threads ? max : 0) {}
  ~FlushThreads() { Stop(); }
  FlushThreads(const FlushThreads&) = delete;
  FlushThreads& operator=(const FlushThreads&) = delete;

  /// False: every thread is at work, none can be started, or it was stopped. Then `task` was not called and will not.
  [[nodiscard]] bool TryRun(std::function<void()> task) QUARRY_EXCLUDES(mutex_);
  /// Waits for the tasks that run, and ends the threads.
  void Stop() QUARRY_EXCLUDES(mutex_);

 private:
  void Run() QUARRY_EXCLUDES(mutex_);

  const size_t max_;  ///< 0: tasks run inside TryRun
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> tasks_ QUARRY_GUARDED_BY(mutex_);  ///< taken, each for one of the idle
  size_t idle_ QUARRY_GUARDED_BY(mutex_) = 0;                           ///< threads that wait, or are on the way to
  bool stopped_ QUARRY_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_ QUARRY_GUARDED_BY(mutex_);
};

}  // namespace quarry
