// ExtentStream: a sliding window over a private extent, from which it is written a batch at a time.
//
// Invariants: every write is of whole blocks inside the range, and of one batch but for the last; memory is one buffer
// of a batch and a part, whatever the size of the extent. The front (header and index) is written once, last, with the
// block that it shares with the first part. Buffers of raw extents live on in the recent cache when asked to.
// Thread-safety: externally synchronised; belongs to one append. While it waits for its buffer it may hold a private
// range, for which nobody ever waits.
#pragma once

#include <cstdint>
#include <span>

#include "append/lane.h"
#include "base/aligned_buffer.h"
#include "context/store_context.h"

namespace quarry {

class ExtentStream {
 public:
  /// The first part goes behind `front_bytes`, which are left for WriteFront; the window starts at `window_bytes` (a
  /// multiple of a block, not behind the front). Parts of up to `part_room_bytes` can be made in place.
  ExtentStream(StoreContext* context, uint64_t batch_bytes, uint64_t part_room_bytes, uint64_t window_bytes,
               uint64_t front_bytes, bool keep_recent);
  /// To be called first: waits for a buffer of `pool`. Errors: kCancelled, of later calls too.
  [[nodiscard]] Status Open(BufferPool* pool, const Canceller* canceller);

  /// Where the next part goes, `size_bytes` long (at most the part room).
  [[nodiscard]] std::span<uint8_t> Room(uint64_t size_bytes);
  void Advance(uint64_t size_bytes) { filled_bytes_ += size_bytes; }
  /// Bytes of the extent so far.
  [[nodiscard]] uint64_t position_bytes() const { return window_bytes_ + filled_bytes_; }
  [[nodiscard]] bool full() const { return filled_bytes_ >= batch_bytes_; }
  /// Of a stream that was never written: the bytes of the window.
  [[nodiscard]] std::span<uint8_t> gathered() { return {buffer_.data(), static_cast<size_t>(filled_bytes_)}; }

  /// The front is in the buffer already (nothing was written yet): it goes out with the first batch.
  void IncludeFront() { front_bytes_ = 0; }

  /// Writes every full batch to `range`.
  [[nodiscard]] Status WriteFull(const PrivateRange& range);
  /// Copies `bytes` behind what is there, writing each batch that fills.
  [[nodiscard]] Status Append(const PrivateRange& range, std::span<const uint8_t> bytes);
  /// Writes what is left, padded to a block.
  [[nodiscard]] Status Finish(const PrivateRange& range);
  /// Writes header and index (`front_bytes` of them) after Finish.
  [[nodiscard]] Status WriteFront(const PrivateRange& range, std::span<const uint8_t> front);

 private:
  [[nodiscard]] Status WriteOut(const PrivateRange& range, uint64_t size_bytes);
  [[nodiscard]] Status AcquireBuffer();

  StoreContext* const context_;
  const uint64_t batch_bytes_;
  const uint64_t part_room_bytes_;
  uint64_t front_bytes_;
  const bool keep_recent_;
  BufferPool* pool_ = nullptr;
  const Canceller* canceller_ = nullptr;
  PooledBuffer buffer_;
  uint64_t window_bytes_;      ///< where the buffer starts in the extent; a multiple of a block
  uint64_t filled_bytes_ = 0;  ///< of the buffer
  AlignedBuffer head_;         ///< the blocks of the front
};

}  // namespace quarry
