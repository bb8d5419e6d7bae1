// SharedMutex with its two scoped locks: std::shared_mutex, with annotations that clang checks.
// Thread-safety: SharedMutex is internally synchronised; a lock belongs to one thread.
#pragma once

#include <shared_mutex>

#include "base/scheduling.h"
#include "base/thread_annotations.h"

namespace quarry {

#ifdef QUARRY_SIMULATED_THREADS
using SystemSharedMutex = SimulatedSharedMutex;
#else
using SystemSharedMutex = std::shared_mutex;
#endif

class QUARRY_CAPABILITY("shared_mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock(QUARRY_PLACE) QUARRY_ACQUIRE() { mutex_.lock(QUARRY_PLACE_ARGUMENT); }
  void Unlock() QUARRY_RELEASE() { mutex_.unlock(); }
  void LockShared(QUARRY_PLACE) QUARRY_THREAD_ANNOTATION(acquire_shared_capability()) {
    mutex_.lock_shared(QUARRY_PLACE_ARGUMENT);
  }
  void UnlockShared() QUARRY_THREAD_ANNOTATION(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  SystemSharedMutex mutex_;
};

/// Holds a SharedMutex alone for its scope.
class QUARRY_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex QUARRY_AND_PLACE) QUARRY_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock(QUARRY_PLACE_ARGUMENT);
  }
  ~ExclusiveLock() QUARRY_RELEASE() { mutex_.Unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// Holds a SharedMutex together with other readers for its scope.
class QUARRY_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex QUARRY_AND_PLACE) QUARRY_THREAD_ANNOTATION(acquire_shared_capability(mutex))
      : mutex_(mutex) {
    mutex_.LockShared(QUARRY_PLACE_ARGUMENT);
  }
  ~SharedLock() QUARRY_RELEASE() { mutex_.UnlockShared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace quarry
