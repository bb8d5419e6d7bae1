// BufferPool: aligned buffers that are used again, within a budget.
//
// Invariants:
//  - Counted buffers together never exceed the budget, unless a single one does (it is then alone).
//  - Free buffers are kept only while they and all that are out fit in the budget, but for those that their users took
//    off it (Uncount): so a pool holds at most its budget, or what is out.
//  - Whoever waits in Acquire holds nothing of this pool. Nobody who comes later goes before one that needs more than
//    half of it. So a wait always ends (see docs/internals/concurrency.md).
// Thread-safety: internally synchronised. A PooledBuffer is a value, and must not outlive its pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "quarry/canceller.h"

namespace quarry {

class BufferPool;

/// Gives its buffer back to the pool when it dies.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  PooledBuffer(PooledBuffer&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)), counts_as_(other.counts_as_) {}
  PooledBuffer& operator=(PooledBuffer&& other) noexcept {
    if (this != &other) {
      Release();
      pool_ = std::exchange(other.pool_, nullptr);
      buffer_ = std::move(other.buffer_);
      counts_as_ = other.counts_as_;
    }
    return *this;
  }
  ~PooledBuffer() { Release(); }

  [[nodiscard]] uint8_t* data() { return buffer_.data(); }
  [[nodiscard]] const uint8_t* data() const { return buffer_.data(); }
  [[nodiscard]] size_t size() const { return buffer_.size(); }
  [[nodiscard]] bool empty() const { return buffer_.empty(); }
  /// Takes it off the budget while it lives on (somebody else bounds it now).
  void Uncount();
  void Release();

 private:
  friend class BufferPool;
  /// How a buffer that is out counts: on the budget, as taken for a read, or not at all (any more).
  enum class Counts : uint8_t { kOnBudget, kTaken, kNot };

  PooledBuffer(BufferPool* pool, AlignedBuffer buffer, Counts counts_as)
      : pool_(pool), buffer_(std::move(buffer)), counts_as_(counts_as) {}

  BufferPool* pool_ = nullptr;
  AlignedBuffer buffer_;
  Counts counts_as_ = Counts::kNot;
};

class BufferPool {
 public:
  explicit BufferPool(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// At least `size_bytes`; waits for room in the budget. Empty: `canceller`, if there is one, gave up.
  [[nodiscard]] PooledBuffer Acquire(size_t size_bytes, const Canceller* canceller = nullptr);
  /// So that those who wait in Acquire ask their cancellers.
  void WakeWaiters();
  /// Nothing when there is no room now.
  [[nodiscard]] std::optional<PooledBuffer> TryAcquire(size_t size_bytes);
  /// Never waits for the budget: for reads, whose number their threads bound.
  [[nodiscard]] PooledBuffer Take(size_t size_bytes);
  /// Returns after room was made, or a little later: callers loop.
  void WaitForRoomBriefly();

  [[nodiscard]] uint64_t counted_bytes() const;
  /// All memory that it stands for: buffers that are out (but for those that were taken off its budget), and free ones.
  [[nodiscard]] uint64_t held_bytes() const;

 private:
  friend class PooledBuffer;
  void GiveBack(AlignedBuffer buffer, PooledBuffer::Counts counts_as);
  void KeepFree(AlignedBuffer buffer) QUARRY_REQUIRES(mutex_);
  void Uncount(size_t size_bytes);
  bool HasRoom(size_t size_bytes) const QUARRY_REQUIRES(mutex_) {
    return counted_bytes_ == 0 || counted_bytes_ + size_bytes <= budget_bytes_;
  }
  /// False: `canceller` gave up.
  [[nodiscard]] bool WaitForRoom(size_t size_bytes, const Canceller* canceller) QUARRY_REQUIRES(mutex_);
  /// What is out, plus the free ones.
  uint64_t HeldBytes() const QUARRY_REQUIRES(mutex_) { return counted_bytes_ + taken_bytes_ + free_bytes_; }
  AlignedBuffer TakeFree(size_t size_bytes) QUARRY_REQUIRES(mutex_);
  /// A new one, which is on the budget already.
  AlignedBuffer MakeCounted(size_t size_bytes) QUARRY_EXCLUDES(mutex_);
  /// Until all that is held fits the budget, or none is left.
  void DropFree(std::vector<AlignedBuffer>* dropped) QUARRY_REQUIRES(mutex_);

  const uint64_t budget_bytes_;
  mutable Mutex mutex_;
  CondVar room_;
  uint64_t last_turn_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> large_waiting_ QUARRY_GUARDED_BY(mutex_);  ///< turns of those who need more than half of it
  uint64_t counted_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t taken_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< by Take
  uint64_t free_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::map<size_t, std::vector<AlignedBuffer>> free_ QUARRY_GUARDED_BY(mutex_);  ///< by size
};

}  // namespace quarry
