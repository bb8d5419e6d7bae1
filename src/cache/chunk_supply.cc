#include "cache/chunk_supply.h"

#include <algorithm>
#include <optional>

namespace quarry {
namespace {

/// Fewer holders than this are not looked through for those that are gone.
constexpr size_t kSweepMin = 64;

}  // namespace

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
  // Lanes of dropped stores, which nobody would ask for a chunk while there are enough: each keeps its memory.
  if (holders_.size() >= std::max(kSweepMin, 2 * holders_swept_)) {
    std::erase_if(holders_, [](const std::weak_ptr<ChunkHolder>& known) { return known.expired(); });
    holders_swept_ = holders_.size();
  }
  holders_.push_back(std::move(holder));
}

}  // namespace quarry
