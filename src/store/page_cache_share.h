// PageCacheShare: which of the reads that no cache serves go through the page cache, so that the next finds them there.
//
// Such a read takes longer than one around the page cache, and puts out what was there. It is worth that where the
// extent is found again, and again; with more data than memory it is gone before. So one extent in kWatchedOf is
// watched. One that went through and is found is a gain; one that went through and has to be read from the device again
// is a loss. While there are kGainsForLoss gains or more for each loss, the share that was asked for is given; where
// there are fewer it falls, to kShareMin of that at the least, and with gains it rises again.
//
// Invariants: memory is fixed; an answer is advice, never a matter of what is read; a loss is counted once for each
// time that the extent went through. Of extents that stand in one slot the last is watched. Thread-safety: internally
// synchronised (relaxed atomics: an event that two threads note at once may be lost).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace quarry {

class PageCacheShare {
 public:
  static constexpr uint64_t kWatchedOf = 4;
  /// 128 KiB. So many extents of which one in kWatchedOf is watched are 8 GiB of values of 64 KB.
  static constexpr size_t kSlots = 32768;
  static constexpr uint32_t kGainsForLoss = 16;
  static constexpr double kShareMin = 1.0 / 32;

  /// The extent with this hash (HashOf) was found in the page cache.
  void NoteFound(uint64_t hash);
  /// It was read through the page cache, and should be there.
  void NotePut(uint64_t hash);
  /// It is not there. True: a loss was counted.
  bool NoteMissed(uint64_t hash);
  /// Whether this read is to go through the page cache, of which `pct` per cent are asked for. Spread over the reads
  /// without a pattern that theirs could fall in with.
  [[nodiscard]] bool Draw(uint32_t pct);
  /// What is given of the share that is asked for: kShareMin - 1.
  [[nodiscard]] double factor() const;

 private:
  /// A gain is one step up, a loss kGainsForLoss steps down; so many steps halve the share.
  static constexpr uint32_t kStepsPerHalf = 64;
  static constexpr uint32_t kStepsMax = 5 * kStepsPerHalf;  ///< kShareMin

  /// 0: free.
  using Slot = std::atomic<uint32_t>;

  [[nodiscard]] static bool IsWatched(uint64_t hash) { return hash % kWatchedOf == 0; }
  [[nodiscard]] Slot& SlotOf(uint64_t hash) { return (*slots_)[(hash / kWatchedOf) % kSlots]; }

  std::unique_ptr<std::array<Slot, kSlots>> slots_ = std::make_unique<std::array<Slot, kSlots>>();
  std::atomic<uint32_t> steps_{0};  ///< below the whole share
  std::atomic<uint64_t> draws_{0};
};

}  // namespace quarry
