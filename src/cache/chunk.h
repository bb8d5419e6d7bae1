// Chunk: bytes of one segment in memory, before and after they are written. ChunkIndex: the chunks of one segment.
//
// Invariants:
//  - A chunk stands for file_offset .. file_offset + used of its segment; a byte below `used` that a locator points at
//    is final (its appender returned before anybody could know the locator).
//  - The chunk that a lane still fills is in the index too: an extent is readable before it is written.
// Thread-safety: ChunkIndex is internally synchronised. A Chunk's bytes are written by the appenders that reserved
// them, each its own; `used_bytes` is atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "base/published_atomic.h"
#include "cache/buffer_pool.h"

namespace quarry {

struct Chunk {
  Chunk(PooledBuffer pooled, uint64_t offset_bytes) : buffer(std::move(pooled)), file_offset_bytes(offset_bytes) {}

  PooledBuffer buffer;
  const uint64_t file_offset_bytes;
  PublishedAtomic<uint64_t> used_bytes{0};

  // Guarded by the mutex of the lane that fills it.
  uint32_t unwritten_runs = 0;
  bool detached = false;  ///< no longer the lane's open chunk: goes to the recent cache once all is written
};

class ChunkIndex {
 public:
  void Insert(std::shared_ptr<const Chunk> chunk);
  void Erase(uint64_t file_offset_bytes);
  /// Whether Copy would find these bytes now.
  [[nodiscard]] bool Holds(uint64_t offset_bytes, uint64_t size_bytes) const;
  /// Copies the bytes at `offset_bytes` to `out` when chunks hold all of them.
  [[nodiscard]] bool Copy(uint64_t offset_bytes, std::span<uint8_t> out) const;

 private:
  static constexpr size_t kPinnedMax = 8;  ///< a range over more chunks is read from the file
  struct Pinned {
    std::array<std::shared_ptr<const Chunk>, kPinnedMax> chunks;
    size_t count = 0;
  };
  bool Pin(uint64_t offset_bytes, uint64_t size_bytes, Pinned* pinned) const;

  PublishedAtomic<size_t> count_{0};  ///< lets readers of a cold segment pass without the lock
  mutable Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<const Chunk>> chunks_ QUARRY_GUARDED_BY(mutex_);  ///< by file offset; disjoint
};

}  // namespace quarry
