// ChunkSupply: hands out the bounded number of chunk buffers, and takes one back from a lane that sits on its own.
//
// Invariants: a lane may be asked for its chunk at any time, so an idle lane never starves a busy one. Few of the lanes
// that are gone are remembered: no more than there are others, or 64.
// Thread-safety: internally synchronised. No lock may be held in Acquire: it waits, and locks lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "cache/buffer_pool.h"

namespace quarry {

/// Something that holds an open chunk and can be asked to give it up.
class ChunkHolder {
 public:
  virtual ~ChunkHolder() = default;
  /// Writes out and lets go of the open chunk, if there is one; what cannot be written now follows by itself. From now
  /// on the holder is unknown to the supply: it must say Opened again.
  virtual void GiveUpChunk() = 0;
};

class ChunkSupply {
 public:
  explicit ChunkSupply(BufferPool* pool) : pool_(pool) {}

  /// Waits until there is one, asking other holders for theirs. Empty: `canceller`, if there is one, gave up.
  [[nodiscard]] PooledBuffer Acquire(size_t size_bytes, const Canceller* canceller) QUARRY_EXCLUDES(mutex_);
  /// `holder` has an open chunk and was not known to have one: it can be asked for it when buffers run out.
  void Opened(std::weak_ptr<ChunkHolder> holder) QUARRY_EXCLUDES(mutex_);

 private:
  BufferPool* const pool_;
  Mutex mutex_;
  std::deque<std::weak_ptr<ChunkHolder>> holders_ QUARRY_GUARDED_BY(mutex_);  ///< the longest holder first
  size_t holders_swept_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< that were left when those that are gone were taken out
};

}  // namespace quarry
