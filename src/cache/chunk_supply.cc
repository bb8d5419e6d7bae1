#include "cache/chunk_supply.h"

#include <optional>

namespace quarry {

PooledBuffer ChunkSupply::Acquire(size_t size_bytes, const Canceller* canceller) {
  while (true) {
    if (std::optional<PooledBuffer> buffer = pool_->TryAcquire(size_bytes); buffer.has_value()) {
      return *std::move(buffer);
    }
    if (canceller != nullptr && canceller->IsCancelled()) return {};
    std::shared_ptr<ChunkHolder> victim;
    {
      MutexLock lock(mutex_);
      while (victim == nullptr && !holders_.empty()) {
        victim = holders_.front().lock();
        holders_.pop_front();
      }
    }
    if (victim != nullptr) {
      victim->GiveUpChunk();
    } else {
      // Every chunk is on its way to the disk, or with an appender that is about to give it to its lane.
      pool_->WaitForRoomBriefly();
    }
  }
}

void ChunkSupply::Opened(std::weak_ptr<ChunkHolder> holder) {
  MutexLock lock(mutex_);
  holders_.push_back(std::move(holder));
}

}  // namespace quarry
