// PathHealth: whether transactions may begin on a data path.
//
// A path that failed, or is full, takes no new ones until one that tries it succeeded: one at a time, after a pause
// that doubles. One on which a flush has been under way for long takes none until it returned. Whoever has only such
// paths uses them all the same: the error is the truth. Thread-safety: internally synchronised.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>

#include "base/mutex.h"

namespace quarry {

class PathHealth {
 public:
  static constexpr uint64_t kPauseMinMicros = 1'000'000;
  static constexpr uint64_t kPauseMaxMicros = 64'000'000;
  /// A flush that takes so long is waited for by nobody who can go elsewhere.
  static constexpr uint64_t kSlowMicros = 1'000'000;

  /// True: a transaction may begin here. After a failure `who` is the one that tries, until it succeeds or another
  /// pause has passed.
  [[nodiscard]] bool Admits(const void* who, uint64_t now_micros) QUARRY_EXCLUDES(mutex_);
  /// What `who` wrote is durable.
  void NoteSuccess(const void* who) QUARRY_EXCLUDES(mutex_) {
    if (has_failed_.load(std::memory_order_relaxed)) EndFailure(who);
  }
  void NoteFailure(uint64_t now_micros) QUARRY_EXCLUDES(mutex_);
  /// It did not fail, and nothing waits for it for long.
  [[nodiscard]] bool IsWell(uint64_t now_micros) const { return !has_failed() && !IsSlow(now_micros); }
  /// A flush has been under way for long.
  [[nodiscard]] bool IsSlow(uint64_t now_micros) const {
    const uint64_t oldest = oldest_call_micros_.load(std::memory_order_relaxed);
    return oldest != UINT64_MAX && now_micros > oldest && now_micros - oldest > kSlowMicros;
  }
  [[nodiscard]] bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }

  /// From its construction on something waits for the device, until it goes.
  class Call {
   public:
    Call(PathHealth* health, uint64_t now_micros);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    PathHealth* const health_;
    std::list<uint64_t>::iterator begun_;
  };

 private:
  void EndFailure(const void* who) QUARRY_EXCLUDES(mutex_);

  Mutex mutex_;
  std::atomic<bool> has_failed_{false};  ///< changes under mutex_
  uint64_t pause_micros_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t tried_from_micros_ QUARRY_GUARDED_BY(mutex_) = 0;
  const void* who_tries_ QUARRY_GUARDED_BY(mutex_) = nullptr;
  std::list<uint64_t> calls_ QUARRY_GUARDED_BY(mutex_);  ///< when each began, the oldest first
  std::atomic<uint64_t> oldest_call_micros_{UINT64_MAX};
};

}  // namespace quarry
