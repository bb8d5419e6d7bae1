#include "store/buffer_pool.h"

#include <bit>

namespace quarry {
namespace {

constexpr size_t kLargeBytes = 1U << 20;

/// Few sizes, so that free buffers fit the next request: powers of two up to 1 MiB, then whole MiB.
size_t SizeClass(size_t size_bytes) {
  if (size_bytes <= AlignedBuffer::kAlignmentBytes) return AlignedBuffer::kAlignmentBytes;
  if (size_bytes <= kLargeBytes) return std::bit_ceil(size_bytes);
  return (size_bytes + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
}

}  // namespace

void PooledBuffer::Uncount() {
  if (pool_ == nullptr || !counted_) return;
  pool_->Uncount(buffer_.size());
  counted_ = false;
}

void PooledBuffer::Release() {
  if (BufferPool* pool = std::exchange(pool_, nullptr); pool != nullptr) pool->GiveBack(std::move(buffer_), counted_);
  buffer_ = AlignedBuffer();
}

AlignedBuffer BufferPool::TakeFree(size_t size_bytes) {
  const auto found = free_.find(size_bytes);
  if (found == free_.end() || found->second.empty()) return {};
  AlignedBuffer buffer = std::move(found->second.back());
  found->second.pop_back();
  free_bytes_ -= size_bytes;
  return buffer;
}

void BufferPool::DropFree(uint64_t down_to_bytes, std::vector<AlignedBuffer>* dropped) {
  for (auto& [size_bytes, buffers] : free_) {
    while (free_bytes_ > down_to_bytes && !buffers.empty()) {
      dropped->push_back(std::move(buffers.back()));
      buffers.pop_back();
      free_bytes_ -= size_bytes;
    }
  }
}

PooledBuffer BufferPool::Acquire(size_t size_bytes) {
  const size_t size = SizeClass(size_bytes);
  std::vector<AlignedBuffer> dropped;  // freed after the lock
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    while (!HasRoom(size)) room_.Wait(mutex_);
    counted_bytes_ += size;
    buffer = TakeFree(size);
    if (counted_bytes_ + free_bytes_ > budget_bytes_) {
      DropFree(budget_bytes_ > counted_bytes_ ? budget_bytes_ - counted_bytes_ : 0, &dropped);
    }
  }
  if (buffer.empty()) buffer = AlignedBuffer(size);
  return {this, std::move(buffer), true};
}

std::optional<PooledBuffer> BufferPool::TryAcquire(size_t size_bytes) {
  const size_t size = SizeClass(size_bytes);
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    if (!HasRoom(size)) return std::nullopt;
    counted_bytes_ += size;
    buffer = TakeFree(size);
  }
  if (buffer.empty()) buffer = AlignedBuffer(size);
  return PooledBuffer(this, std::move(buffer), true);
}

PooledBuffer BufferPool::Take(size_t size_bytes) {
  const size_t size = SizeClass(size_bytes);
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    buffer = TakeFree(size);
  }
  if (buffer.empty()) buffer = AlignedBuffer(size);
  return {this, std::move(buffer), false};
}

void BufferPool::WaitForRoomBriefly() {
  MutexLock lock(mutex_);
  // Room can also be made by asking a lane for its chunk, which nobody announces: look again soon.
  room_.WaitFor(mutex_, std::chrono::milliseconds(1));
}

uint64_t BufferPool::counted_bytes() const {
  MutexLock lock(mutex_);
  return counted_bytes_;
}

void BufferPool::Uncount(size_t size_bytes) {
  {
    MutexLock lock(mutex_);
    counted_bytes_ -= size_bytes;
  }
  room_.NotifyAll();
}

void BufferPool::GiveBack(AlignedBuffer buffer, bool counted) {
  const size_t size = buffer.size();
  {
    MutexLock lock(mutex_);
    if (counted) counted_bytes_ -= size;
    if (size != 0 && counted_bytes_ + free_bytes_ + size <= budget_bytes_) {
      free_[size].push_back(std::move(buffer));
      free_bytes_ += size;
    }
  }
  if (counted) room_.NotifyAll();
}

}  // namespace quarry
