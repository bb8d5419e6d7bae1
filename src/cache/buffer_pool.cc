#include "cache/buffer_pool.h"

#include <bit>
#include <cstdint>
#include <new>

namespace quarry {
namespace {

constexpr size_t kLargeBytes = 1U << 20;

/// Few sizes, so that free buffers fit the next request: powers of two up to 1 MiB, then whole MiB.
size_t SizeClass(size_t size_bytes) {
  if (size_bytes <= AlignedBuffer::kAlignmentBytes) return AlignedBuffer::kAlignmentBytes;
  if (size_bytes <= kLargeBytes) return std::bit_ceil(size_bytes);
  if (size_bytes > SIZE_MAX - kLargeBytes) return size_bytes;  // nobody has so much, and it cannot be rounded up
  return (size_bytes + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
}

}  // namespace

void PooledBuffer::Uncount() {
  if (pool_ == nullptr || counts_as_ != Counts::kOnBudget) return;
  pool_->Uncount(buffer_.size());
  counts_as_ = Counts::kNot;
}

void PooledBuffer::Release() {
  if (BufferPool* pool = std::exchange(pool_, nullptr); pool != nullptr) pool->GiveBack(std::move(buffer_), counts_as_);
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

// Throws where there is no memory: then the budget has its bytes back.
AlignedBuffer BufferPool::MakeCounted(size_t size_bytes) {
  try {
    return AlignedBuffer(size_bytes);
  } catch (const std::bad_alloc&) {
    Uncount(size_bytes);
    throw;
  }
}

void BufferPool::DropFree(std::vector<AlignedBuffer>* dropped) {
  try {
    for (auto& [size_bytes, buffers] : free_) {
      while (HeldBytes() > budget_bytes_ && !buffers.empty()) {
        dropped->push_back(std::move(buffers.back()));
        buffers.pop_back();
        free_bytes_ -= size_bytes;
      }
    }
  } catch (const std::bad_alloc&) {
    // They stay until the next call: who asks for a buffer is counted already.
  }
}

PooledBuffer BufferPool::Acquire(size_t size_bytes, const Canceller* canceller) {
  const size_t size = SizeClass(size_bytes);
  std::vector<AlignedBuffer> dropped;  // freed after the lock
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    if (!WaitForRoom(size, canceller)) return {};
    counted_bytes_ += size;
    buffer = TakeFree(size);
    DropFree(&dropped);
  }
  if (buffer.empty()) buffer = MakeCounted(size);
  return {this, std::move(buffer), PooledBuffer::Counts::kOnBudget};
}

bool BufferPool::WaitForRoom(size_t size_bytes, const Canceller* canceller) {
  const uint64_t turn = ++last_turn_;
  const bool is_large = size_bytes > budget_bytes_ / 2;
  if (is_large) large_waiting_.insert(turn);
  bool has_room = false;
  while (true) {
    has_room = HasRoom(size_bytes) && (large_waiting_.empty() || *large_waiting_.begin() >= turn);
    if (has_room || (canceller != nullptr && canceller->IsCancelled())) break;
    room_.Wait(mutex_);
  }
  if (is_large) {
    large_waiting_.erase(turn);
    room_.NotifyAll();
  }
  return has_room;
}

std::optional<PooledBuffer> BufferPool::TryAcquire(size_t size_bytes) {
  const size_t size = SizeClass(size_bytes);
  std::vector<AlignedBuffer> dropped;
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    if (!HasRoom(size)) return std::nullopt;
    counted_bytes_ += size;
    buffer = TakeFree(size);
    DropFree(&dropped);
  }
  if (buffer.empty()) buffer = MakeCounted(size);
  return PooledBuffer(this, std::move(buffer), PooledBuffer::Counts::kOnBudget);
}

PooledBuffer BufferPool::Take(size_t size_bytes) {
  const size_t size = SizeClass(size_bytes);
  std::vector<AlignedBuffer> dropped;
  AlignedBuffer buffer;
  {
    MutexLock lock(mutex_);
    buffer = TakeFree(size);
    if (!buffer.empty()) taken_bytes_ += size;
  }
  if (!buffer.empty()) return {this, std::move(buffer), PooledBuffer::Counts::kTaken};
  buffer = AlignedBuffer(size);  // throws where there is no memory: counted when it is there
  {
    MutexLock lock(mutex_);
    taken_bytes_ += size;
    DropFree(&dropped);
  }
  return {this, std::move(buffer), PooledBuffer::Counts::kTaken};
}

void BufferPool::WakeWaiters() {
  // Whoever looked at its canceller under the mutex, and found nothing, waits by now.
  { const MutexLock lock(mutex_); }
  room_.NotifyAll();
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

uint64_t BufferPool::held_bytes() const {
  MutexLock lock(mutex_);
  return HeldBytes();
}

// By destructors, of which some run because there is no memory: then it is freed instead.
void BufferPool::KeepFree(AlignedBuffer buffer) {
  const size_t size = buffer.size();
  try {
    free_[size].push_back(std::move(buffer));
    free_bytes_ += size;
  } catch (const std::bad_alloc&) {
    // The list of the free ones could not grow.
  }
}

void BufferPool::GiveBack(AlignedBuffer buffer, PooledBuffer::Counts counts_as) {
  const size_t size = buffer.size();
  const bool on_budget = counts_as == PooledBuffer::Counts::kOnBudget;
  {
    MutexLock lock(mutex_);
    if (on_budget) counted_bytes_ -= size;
    if (counts_as == PooledBuffer::Counts::kTaken) taken_bytes_ -= size;
    if (size != 0 && HeldBytes() + size <= budget_bytes_) KeepFree(std::move(buffer));
  }
  if (on_budget) room_.NotifyAll();
}

}  // namespace quarry
