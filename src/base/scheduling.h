// Scheduling: the seam through which a simulation decides which thread goes on (tests/simulation/threads).
//
// Only the simulation's own build of the core has it (QUARRY_SIMULATED_THREADS): there Mutex, CondVar, SharedMutex,
// EventCount, Thread and PublishedAtomic ask the Scheduler, and one thread runs at a time. In every other build they
// are the system's, and nothing of this file is compiled. Thread-safety: everything happens on one thread of the
// system.
#pragma once

#ifdef QUARRY_SIMULATED_THREADS

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>

namespace quarry {

using CodePlace = std::source_location;

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// The one that decides; null: nothing is simulated, and there is but one thread.
  static inline Scheduler* current = nullptr;

  /// Another thread may go on here.
  virtual void Pass(const char* what, const CodePlace& place) = 0;
  /// Returns when another thread has called Wake for `key`, or for nothing: callers loop.
  virtual void Wait(const void* key, const char* what, const CodePlace& place) = 0;
  /// False when `micros` of the simulated time passed first.
  virtual bool WaitFor(const void* key, uint64_t micros, const char* what, const CodePlace& place) = 0;
  /// One thread that waits for `key`, drawn by the seed, or all of them.
  virtual void Wake(const void* key, bool all) = 0;
  virtual size_t Start(const char* name, std::function<void()> body) = 0;
  virtual void Join(size_t thread) = 0;
  /// What the running thread keeps under `key`; empty at first.
  virtual std::shared_ptr<void>& Scratch(const void* key) = 0;
};

inline void SchedulingPoint(const char* what, const CodePlace& place) {
  if (Scheduler::current != nullptr) Scheduler::current->Pass(what, place);
}

class SimulatedMutex {
 public:
  void lock(const CodePlace& place = CodePlace::current()) {
    SchedulingPoint("lock", place);
    while (is_held_) Scheduler::current->Wait(this, "lock", place);
    is_held_ = true;
  }
  bool try_lock() {
    SchedulingPoint("try lock", CodePlace::current());
    return !std::exchange(is_held_, true);
  }
  void unlock() {
    assert(is_held_);
    is_held_ = false;
    if (Scheduler::current != nullptr) Scheduler::current->Wake(this, true);
  }

 private:
  bool is_held_ = false;
};

class SimulatedCondition {
 public:
  void wait(SimulatedMutex* mutex, const CodePlace& place) {
    mutex->unlock();
    Scheduler::current->Wait(this, "wait", place);
    mutex->lock(place);
  }
  bool wait_for(SimulatedMutex* mutex, uint64_t micros, const CodePlace& place) {
    mutex->unlock();
    const bool was_woken = Scheduler::current->WaitFor(this, micros, "wait a while", place);
    mutex->lock(place);
    return was_woken;
  }
  void notify_one() { Notify(false); }
  void notify_all() { Notify(true); }

 private:
  void Notify(bool all) {
    if (Scheduler::current != nullptr) Scheduler::current->Wake(this, all);
  }
};

/// Readers go before writers that wait, as glibc's do.
class SimulatedSharedMutex {
 public:
  void lock(const CodePlace& place) {
    SchedulingPoint("lock alone", place);
    while (is_held_ || readers_ > 0) Scheduler::current->Wait(this, "lock alone", place);
    is_held_ = true;
  }
  void unlock() {
    is_held_ = false;
    Wake();
  }
  void lock_shared(const CodePlace& place) {
    SchedulingPoint("lock shared", place);
    while (is_held_) Scheduler::current->Wait(this, "lock shared", place);
    ++readers_;
  }
  void unlock_shared() {
    if (--readers_ == 0) Wake();
  }

 private:
  void Wake() {
    if (Scheduler::current != nullptr) Scheduler::current->Wake(this, true);
  }
  bool is_held_ = false;
  uint32_t readers_ = 0;
};

}  // namespace quarry

/// A last parameter that says where in the code a call stands, for the printed schedule.
#define QUARRY_PLACE const ::quarry::CodePlace& place = ::quarry::CodePlace::current()
#define QUARRY_AND_PLACE , QUARRY_PLACE
#define QUARRY_PLACE_ARGUMENT place
#define QUARRY_AND_PLACE_ARGUMENT , place

#else

#define QUARRY_PLACE
#define QUARRY_AND_PLACE
#define QUARRY_PLACE_ARGUMENT
#define QUARRY_AND_PLACE_ARGUMENT

#endif
