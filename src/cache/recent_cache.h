// RecentCache: keeps the chunks written last, over all stores, for reads; first in, first out.
// Invariant: the kept buffers together never exceed the limit; what leaves is erased from its segment's ChunkIndex.
// Thread-safety: internally synchronised. Never touched by a read: reads go to the segment's own index.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "cache/chunk.h"

namespace quarry {

class RecentCache {
 public:
  explicit RecentCache(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// `chunk` is written and stands in `index`; it is taken off its pool's budget and kept until others push it out.
  void Keep(const std::shared_ptr<ChunkIndex>& index, std::shared_ptr<Chunk> chunk);
  /// Whether an extent of this size should be kept at all: one large value must not push out everything else.
  [[nodiscard]] bool Worthwhile(uint64_t extent_size_bytes) const { return extent_size_bytes <= limit_bytes_ / 4; }
  [[nodiscard]] uint64_t kept_bytes() const;

 private:
  struct Entry {
    /// Not kept alive: it has the chunk that is being filled as well, which is on its pool's budget. Of a segment that
    /// is gone the entry stays until others push it out.
    std::weak_ptr<ChunkIndex> index;
    uint64_t file_offset_bytes = 0;
    uint64_t size_bytes = 0;
  };

  const uint64_t limit_bytes_;
  mutable Mutex mutex_;
  uint64_t kept_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::deque<Entry> entries_ QUARRY_GUARDED_BY(mutex_);
};

}  // namespace quarry
