#include "cache/counter_set.h"

namespace quarry {

size_t CounterSet::ShardOfThread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shard;
}

uint64_t CounterSet::Get(Counter counter) const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.values[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

Counters CounterSet::Snapshot() const {
  Counters counters;
  counters.extents_appended = Get(Counter::kExtentsAppended);
  counters.extents_read = Get(Counter::kExtentsRead);
  counters.extents_released = Get(Counter::kExtentsReleased);
  counters.value_bytes_appended = Get(Counter::kValueBytesAppended);
  counters.stored_bytes_appended = Get(Counter::kStoredBytesAppended);
  counters.stored_bytes_released = Get(Counter::kStoredBytesReleased);
  counters.padding_bytes_written = Get(Counter::kPaddingBytesWritten);
  counters.zero_bytes_written = Get(Counter::kZeroBytesWritten);
  counters.file_bytes_written = Get(Counter::kFileBytesWritten);
  counters.write_calls = Get(Counter::kWriteCalls);
  counters.value_bytes_read = Get(Counter::kValueBytesRead);
  counters.file_bytes_read = Get(Counter::kFileBytesRead);
  counters.read_submissions = Get(Counter::kReadSubmissions);
  counters.direct_read_submissions = Get(Counter::kDirectReadSubmissions);
  counters.page_cache_corruptions = Get(Counter::kPageCacheCorruptions);
  counters.flushes = Get(Counter::kFlushes);
  counters.committers_flushed = Get(Counter::kCommittersFlushed);
  counters.flushes_zeroed = Get(Counter::kFlushesZeroed);
  counters.flush_errors = Get(Counter::kFlushErrors);
  counters.segments_poisoned = Get(Counter::kSegmentsPoisoned);
  counters.recent_cache_hits = Get(Counter::kRecentCacheHits);
  counters.recent_cache_misses = Get(Counter::kRecentCacheMisses);
  counters.cache_hits = Get(Counter::kCacheHits);
  counters.cache_misses = Get(Counter::kCacheMisses);
  counters.cache_admissions = Get(Counter::kCacheAdmissions);
  counters.cache_evictions = Get(Counter::kCacheEvictions);
  counters.cache_carried = Get(Counter::kCacheCarried);
  counters.corruptions = Get(Counter::kCorruptions);
  counters.catalogue_flushes = Get(Counter::kCatalogueFlushes);
  counters.parts_stored_raw = Get(Counter::kPartsStoredRaw);
  counters.parts_compressed = Get(Counter::kPartsCompressed);
  counters.parts_encrypted = Get(Counter::kPartsEncrypted);
  counters.parts_decrypted = Get(Counter::kPartsDecrypted);
  counters.segment_map_loads = Get(Counter::kSegmentMapLoads);
  counters.read_ahead_values = Get(Counter::kReadAheadValues);
  counters.read_ahead_bytes = Get(Counter::kReadAheadBytes);
  counters.read_ahead_unused = Get(Counter::kReadAheadUnused);
  return counters;
}

}  // namespace quarry
