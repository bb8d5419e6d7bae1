// EventCount: how often something has happened, and sleep until it happens again, with no mutex on the way out.
// Whoever waits looks at its condition and takes the count in an order that cannot miss an event: the count is taken
// before the condition is looked at, or under the mutex under which the condition changes.
// Thread-safety: internally synchronised. What was written before Notify is seen by those whom it wakes.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/scheduling.h"

namespace quarry {

class EventCount {
 public:
  EventCount() = default;
  EventCount(const EventCount&) = delete;
  EventCount& operator=(const EventCount&) = delete;

#ifdef QUARRY_SIMULATED_THREADS
  [[nodiscard]] uint32_t Current(QUARRY_PLACE) const {
    SchedulingPoint("count", place);
    return count_;
  }
  void AwaitChange(uint32_t seen, QUARRY_PLACE) const {
    SchedulingPoint("count", place);
    while (count_ == seen) Scheduler::current->Wait(this, "await the event", place);
  }
  void NotifyOne(QUARRY_PLACE) { Notify(false, place); }
  void NotifyAll(QUARRY_PLACE) { Notify(true, place); }

 private:
  void Notify(bool all, const CodePlace& place) {
    SchedulingPoint("notify", place);
    ++count_;
    if (Scheduler::current != nullptr) Scheduler::current->Wake(this, all);
  }
  uint32_t count_ = 0;
#else
  [[nodiscard]] uint32_t Current() const { return count_.load(std::memory_order_acquire); }

  /// Returns when the count is no longer `seen`; at once, if it is another by now.
  void AwaitChange(uint32_t seen) const { count_.wait(seen, std::memory_order_acquire); }

  void NotifyOne() {
    count_.fetch_add(1, std::memory_order_release);
    count_.notify_one();
  }
  void NotifyAll() {
    count_.fetch_add(1, std::memory_order_release);
    count_.notify_all();
  }

 private:
  std::atomic<uint32_t> count_{0};
#endif
};

}  // namespace quarry
