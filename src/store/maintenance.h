// Maintenance: the directory's one background thread. Zeroes ahead, trims sealed segments, renews the catalogue.
//
// Invariants: tasks run one at a time, in order; while paused none runs and none is accepted, after Stop neither. So no
// task may be the only thing that somebody waits for, or that knows of something to do: what was refused is asked for
// again by whoever sees that it is still wanted, or GC gives the space back.
// Without a thread (deterministic tests) a task runs inside Submit, which is why no lock may be held there.
// Thread-safety: internally synchronised.
#pragma once

#include <deque>
#include <functional>

#include "base/mutex.h"
#include "base/thread.h"

namespace quarry {

class Maintenance {
 public:
  explicit Maintenance(bool with_thread) : with_thread_(with_thread) {}
  ~Maintenance() { Stop(); }

  /// False while paused and after Stop: the task is not run.
  bool Submit(std::function<void()> task) QUARRY_EXCLUDES(mutex_);
  /// Waits until nothing is queued or running; while paused, until nothing is running.
  void Drain() QUARRY_EXCLUDES(mutex_);
  /// Waits for the running task; none starts, and none is accepted, until as many calls of Resume.
  void Pause() QUARRY_EXCLUDES(mutex_);
  void Resume() QUARRY_EXCLUDES(mutex_);
  /// Drops what is queued, waits for the running task and ends the thread.
  void Stop() QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] bool with_thread() const { return with_thread_; }

 private:
  void Run();

  const bool with_thread_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ QUARRY_GUARDED_BY(mutex_);
  bool running_ QUARRY_GUARDED_BY(mutex_) = false;  ///< a task is being run
  bool stopped_ QUARRY_GUARDED_BY(mutex_) = false;
  uint32_t pauses_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< calls of Pause without their Resume
  Thread thread_ QUARRY_GUARDED_BY(mutex_);        ///< started by the first task
};

}  // namespace quarry
