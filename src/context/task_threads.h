// TaskThreads: a bounded number of threads that run tasks, and a bounded queue of tasks before them.
//
// Invariants:
//  - A task is taken when a thread is free for it, or can be started, or the queue has room. One that was taken is run,
//    in the order of Submit, unless a pause is on when the threads are stopped. Threads are started at need, and stay.
//  - While paused nothing runs and nothing is taken; after Stop neither. So no task may be the only thing that somebody
//    waits for, or that knows of something to do: who is refused does it itself, or asks again.
//  - A task that finds no memory ends there, and the next one runs. What must be undone then it guards itself.
//  - Without threads (deterministic tests) a task runs inside Submit.
// Thread-safety: internally synchronised. No lock may be held over Submit or Stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "quarry/memory_guard.h"
#include "quarry/options.h"

namespace quarry {

class TaskThreads {
 public:
  /// `name`: of each thread, at most 15 characters, constant. `threads_max` 0: tasks run inside Submit.
  TaskThreads(const char* name, size_t threads_max, size_t queue_max, ThreadHooks hooks = {})
      : name_(name), threads_max_(threads_max), queue_max_(queue_max), hooks_(std::move(hooks)) {}
  ~TaskThreads() { Stop(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// False: paused, stopped, or there is neither a thread nor room, or no memory. Then `task` was not called and will
  /// not be. Throws nothing.
  template <typename Task>
  bool Submit(Task task) QUARRY_EXCLUDES(mutex_) {
    const Result<bool> taken =
        OrOutOfMemory([&]() -> Result<bool> { return Take(std::function<void()>(std::move(task))); });
    return taken.ok() && *taken;
  }
  /// Waits until nothing is queued or running; while paused, until nothing is running.
  void Drain() QUARRY_EXCLUDES(mutex_);
  /// Waits for the running tasks; none starts, and none is taken, until as many calls of Resume.
  void Pause() QUARRY_EXCLUDES(mutex_);
  void Resume() QUARRY_EXCLUDES(mutex_);
  /// Waits for what was taken, and ends the threads.
  void Stop() QUARRY_EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool Take(std::function<void()> task) QUARRY_EXCLUDES(mutex_);
  static void RunTask(const std::function<void()>& task);
  void Run() QUARRY_EXCLUDES(mutex_);
  void RunTasks() QUARRY_EXCLUDES(mutex_);
  /// Whether there is a thread, or room, for one more task; starts a thread when none is free.
  [[nodiscard]] bool HasRoom() QUARRY_REQUIRES(mutex_);

  const char* const name_;
  const size_t threads_max_;
  const size_t queue_max_;
  const ThreadHooks hooks_;
  Mutex mutex_;
  CondVar work_;   ///< for the threads
  CondVar ended_;  ///< for those who wait for tasks
  std::deque<std::function<void()>> tasks_ QUARRY_GUARDED_BY(mutex_);
  size_t running_ QUARRY_GUARDED_BY(mutex_) = 0;
  bool stopped_ QUARRY_GUARDED_BY(mutex_) = false;
  uint32_t pauses_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< calls of Pause without their Resume
  std::vector<Thread> threads_ QUARRY_GUARDED_BY(mutex_);
};

}  // namespace quarry
