// CounterSet: the directory's counters, cheap to bump from many threads.
// Invariant: a counter's value is the sum over its shards; a snapshot is not a single moment of all counters.
// Thread-safety: internally synchronised (relaxed atomics, one cache line group per shard).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "quarry/stats.h"

namespace quarry {

/// Field by field the same as Counters, without its gauges.
enum class Counter : uint8_t {
  kExtentsAppended,
  kExtentsRead,
  kExtentsReleased,
  kValueBytesAppended,
  kStoredBytesAppended,
  kStoredBytesReleased,
  kPaddingBytesWritten,
  kZeroBytesWritten,
  kFileBytesWritten,
  kWriteCalls,
  kValueBytesRead,
  kFileBytesRead,
  kReadSubmissions,
  kDirectReadSubmissions,
  kPageCacheCorruptions,
  kFlushes,
  kCommittersFlushed,
  kFlushesZeroed,
  kFlushErrors,
  kSegmentsPoisoned,
  kRecentCacheHits,
  kRecentCacheMisses,
  kCacheHits,
  kCacheMisses,
  kCacheAdmissions,
  kCacheEvictions,
  kCacheCarried,
  kCorruptions,
  kCatalogueFlushes,
  kPartsStoredRaw,
  kPartsCompressed,
  kPartsEncrypted,
  kPartsDecrypted,
  kSegmentMapLoads,
  kReadAheadValues,
  kReadAheadBytes,
  kReadAheadUnused,
};
inline constexpr size_t kCounterCount = static_cast<size_t>(Counter::kReadAheadUnused) + 1;

class CounterSet {
 public:
  void Add(Counter counter, uint64_t amount = 1) {
    shards_[ShardOfThread()].values[static_cast<size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t Get(Counter counter) const;
  /// Everything but the gauges, which the caller fills in.
  [[nodiscard]] Counters Snapshot() const;

 private:
  static constexpr size_t kShards = 8;
  static size_t ShardOfThread();

  struct alignas(64) Shard {
    std::array<std::atomic<uint64_t>, kCounterCount> values{};
  };
  std::array<Shard, kShards> shards_{};
};

}  // namespace quarry
