#include "cache/recent_cache.h"

#include <vector>

namespace quarry {

void RecentCache::Keep(const std::shared_ptr<ChunkIndex>& index, std::shared_ptr<Chunk> chunk) {
  const uint64_t size_bytes = chunk->buffer.size();
  if (size_bytes > limit_bytes_) {
    index->Erase(chunk->file_offset_bytes);
    return;
  }
  chunk->buffer.Uncount();
  std::vector<Entry> evicted;
  {
    MutexLock lock(mutex_);
    while (kept_bytes_ + size_bytes > limit_bytes_) {
      kept_bytes_ -= entries_.front().size_bytes;
      evicted.push_back(std::move(entries_.front()));
      entries_.pop_front();
    }
    kept_bytes_ += size_bytes;
    entries_.push_back({index, chunk->file_offset_bytes, size_bytes});
  }
  for (const Entry& entry : evicted) {
    if (const auto of_segment = entry.index.lock()) of_segment->Erase(entry.file_offset_bytes);
  }
}

uint64_t RecentCache::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace quarry
