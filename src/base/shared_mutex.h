// SharedMutex with its two scoped locks: std::shared_mutex, with annotations that clang checks.
// Thread-safety: SharedMutex is internally synchronised; a lock belongs to one thread.
#pragma once

#include <shared_mutex>

#include "base/thread_annotations.h"

namespace quarry {

class QUARRY_CAPABILITY("shared_mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() QUARRY_ACQUIRE() { mutex_.lock(); }
  void Unlock() QUARRY_RELEASE() { mutex_.unlock(); }
  void LockShared() QUARRY_THREAD_ANNOTATION(acquire_shared_capability()) { mutex_.lock_shared(); }
  void UnlockShared() QUARRY_THREAD_ANNOTATION(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

/// Holds a SharedMutex alone for its scope.
class QUARRY_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) QUARRY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~ExclusiveLock() QUARRY_RELEASE() { mutex_.Unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// Holds a SharedMutex together with other readers for its scope.
class QUARRY_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) QUARRY_THREAD_ANNOTATION(acquire_shared_capability(mutex)) : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~SharedLock() QUARRY_RELEASE() { mutex_.UnlockShared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace quarry
