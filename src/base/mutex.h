// Mutex, MutexLock and CondVar: std's, with annotations that clang checks (-Wthread-safety).
// In the simulation of threads they are simulated (scheduling.h).
// Thread-safety: Mutex and CondVar are internally synchronised; a MutexLock belongs to one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/scheduling.h"
#include "base/thread_annotations.h"

namespace quarry {

#ifdef QUARRY_SIMULATED_THREADS
using SystemMutex = SimulatedMutex;
using SystemCondition = SimulatedCondition;
#else
using SystemMutex = std::mutex;
using SystemCondition = std::condition_variable;
#endif

class QUARRY_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock(QUARRY_PLACE) QUARRY_ACQUIRE() { mutex_.lock(QUARRY_PLACE_ARGUMENT); }
  void Unlock() QUARRY_RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool TryLock() QUARRY_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

  /// Does nothing. Tells clang, inside a lambda, what it cannot see there: whoever calls it holds the mutex.
  void AssertHeld() const QUARRY_ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  SystemMutex mutex_;
};

/// Holds a Mutex for its scope. May be released early and taken again.
class QUARRY_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex QUARRY_AND_PLACE) QUARRY_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock(QUARRY_PLACE_ARGUMENT);
  }
  ~MutexLock() QUARRY_RELEASE() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() QUARRY_RELEASE() {
    mutex_.Unlock();
    held_ = false;
  }
  void Lock(QUARRY_PLACE) QUARRY_ACQUIRE() {
    mutex_.Lock(QUARRY_PLACE_ARGUMENT);
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// A condition variable. Waits may wake for nothing: callers loop over their condition.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

#ifdef QUARRY_SIMULATED_THREADS
  void Wait(Mutex& mutex, QUARRY_PLACE) QUARRY_REQUIRES(mutex) { condition_.wait(&mutex.mutex_, place); }
  bool WaitFor(Mutex& mutex, std::chrono::microseconds timeout, QUARRY_PLACE) QUARRY_REQUIRES(mutex) {
    return condition_.wait_for(&mutex.mutex_, static_cast<uint64_t>(timeout.count()), place);
  }
#else
  void Wait(Mutex& mutex) QUARRY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  /// False when `timeout` passed without a notification.
  bool WaitFor(Mutex& mutex, std::chrono::microseconds timeout) QUARRY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(lock, timeout);  // by the monotonic clock: nobody sets that back
    lock.release();
    return status == std::cv_status::no_timeout;
  }
#endif

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  SystemCondition condition_;
};

}  // namespace quarry
