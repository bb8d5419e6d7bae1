// ZeroingPolicy: whether zeros written ahead pay on a device, learned from what its flushes and its zeros take.
//
// A flush of bytes that lie in space written before need not make the file's new blocks and size durable. What that
// saves depends on the file system: with a journal a commit of it, several times the flush itself; without one a single
// request. What it costs is a second write of every byte, which others wait for and the device wears by.
//
// Three answers, then. Where zeros save too little, or the flush is large: none. Where they save enough: within a
// budget, for the operator's device is written for it. Where a flush takes several times as long without them, which is
// what a journal does to it: without one; commits would be slower than anything that is saved by writing once.
//
// Invariants: as long as one side of the comparison is not known, the answer is the last, for that is how it becomes
// known; where zeros did not pay, what is known of flushes into them is forgotten now and then, so a device that
// changes is asked again. No answer is more than advice: a file without zeros ahead of it grows.
//
// Thread-safety: internally synchronised.
#pragma once

#include <cstdint>

#include "base/mutex.h"

namespace quarry {

class ZeroingPolicy {
 public:
  /// The most that a flush may write for zeros ahead of it to be asked for at all.
  static constexpr uint64_t kFlushMaxBytes = 256ULL << 10;
  /// Zeros have to save so many times what they take.
  static constexpr double kWorthMin = 3;
  /// Flushes have to take so many times as long without them, for zeros to be worth any number of bytes. Seen: 1.5 to
  /// 2 without a journal, in some hours more than 2.25, and 3.2 (many committers) to 6 (a lone one) with one
  /// (docs/performance.md).
  static constexpr double kUnlimitedMin = 2.75;
  /// So many flushes of a kind are compared at least.
  static constexpr uint32_t kSamplesMin = 4;
  /// After so many flushes without zeros one looks again what zeros save.
  static constexpr uint32_t kForgottenAfter = 131072;

  enum class Advice : uint8_t { kGrow, kZerosWithinBudget, kZeros };

  // Durations are differences of a clock that may be set meanwhile: one that cannot be is not counted.

  /// A flush took `micros`, and all that it covered lay in zeroed space, or not.
  void NoteFlush(bool zeroed, uint64_t micros) QUARRY_EXCLUDES(mutex_);
  /// Writing and flushing `size_bytes` of zeros took `micros`.
  void NoteZeroing(uint64_t size_bytes, uint64_t micros) QUARRY_EXCLUDES(mutex_);
  /// What pays for flushes of `flush_bytes` each.
  [[nodiscard]] Advice Advise(uint64_t flush_bytes) const QUARRY_EXCLUDES(mutex_);

 private:
  /// A mean in which what is older weighs less; one sample that is far off (a device that stalled) does not decide.
  class Mean {
   public:
    void Add(double sample);
    void Forget() { *this = Mean(); }
    [[nodiscard]] double value() const { return value_; }
    [[nodiscard]] uint32_t samples() const { return samples_; }

   private:
    double value_ = 0;
    uint32_t samples_ = 0;
  };

  mutable Mutex mutex_;
  Mean grown_micros_ QUARRY_GUARDED_BY(mutex_);         ///< of a flush that changes the file's metadata
  Mean zeroed_micros_ QUARRY_GUARDED_BY(mutex_);        ///< of one that does not
  Mean micros_per_byte_ QUARRY_GUARDED_BY(mutex_);      ///< of zeros
  uint32_t grown_since_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< flushes without zeros since the last with them
};

}  // namespace quarry
