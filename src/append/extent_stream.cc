#include "append/extent_stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace quarry {

ExtentStream::ExtentStream(StoreContext* context, uint64_t batch_bytes, uint64_t part_room_bytes, uint64_t window_bytes,
                           uint64_t front_bytes, bool keep_recent)
    : context_(context),
      batch_bytes_(batch_bytes),
      part_room_bytes_(part_room_bytes),
      front_bytes_(front_bytes),
      keep_recent_(keep_recent),
      window_bytes_(window_bytes),
      filled_bytes_(front_bytes - window_bytes) {}

Status ExtentStream::Open(BufferPool* pool, const Canceller* canceller) {
  pool_ = pool;
  canceller_ = canceller;
  QUARRY_TRY(AcquireBuffer());
  std::memset(buffer_.data(), 0, static_cast<size_t>(filled_bytes_));
  return Status::Ok();
}

Status ExtentStream::AcquireBuffer() {
  buffer_ = pool_->Acquire(static_cast<size_t>(batch_bytes_ + part_room_bytes_), canceller_);
  return buffer_.empty() ? Status::Cancelled("memory to write with") : Status::Ok();
}

std::span<uint8_t> ExtentStream::Room(uint64_t size_bytes) {
  assert(filled_bytes_ + size_bytes <= buffer_.size());
  return {buffer_.data() + filled_bytes_, static_cast<size_t>(size_bytes)};
}

Status ExtentStream::WriteFull(const PrivateRange& range) {
  while (full()) QUARRY_TRY(WriteOut(range, batch_bytes_));
  return Status::Ok();
}

Status ExtentStream::Append(const PrivateRange& range, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (buffer_.empty()) QUARRY_TRY(AcquireBuffer());
    const size_t size = static_cast<size_t>(std::min<uint64_t>(bytes.size(), batch_bytes_ - filled_bytes_));
    std::memcpy(buffer_.data() + filled_bytes_, bytes.data(), size);
    filled_bytes_ += size;
    bytes = bytes.subspan(size);
    QUARRY_TRY(WriteFull(range));
  }
  return Status::Ok();
}

Status ExtentStream::Finish(const PrivateRange& range) {
  if (filled_bytes_ == 0) return Status::Ok();
  const uint64_t size = RoundUpToBlock(filled_bytes_);
  assert(size <= buffer_.size());
  std::memset(buffer_.data() + filled_bytes_, 0, static_cast<size_t>(size - filled_bytes_));
  context_->counters.Add(Counter::kPaddingBytesWritten, size - filled_bytes_);
  return WriteOut(range, size);
}

Status ExtentStream::WriteOut(const PrivateRange& range, uint64_t size_bytes) {
  uint64_t skip = 0;
  if (const uint64_t head_end = RoundUpToBlock(front_bytes_); window_bytes_ < head_end) {
    // A block is written once: these go out with the front.
    if (head_.empty()) {
      head_ = AlignedBuffer(static_cast<size_t>(head_end));
      head_.FillZero();
    }
    skip = std::min(size_bytes, head_end - window_bytes_);
    std::memcpy(head_.data() + window_bytes_, buffer_.data(), static_cast<size_t>(skip));
  }
  const uint64_t offset = range.offset_bytes + window_bytes_;
  assert(window_bytes_ + size_bytes <= range.size_bytes);
  if (size_bytes > skip) {
    QUARRY_TRY(
        range.file->file()->WriteAt(offset + skip, {buffer_.data() + skip, static_cast<size_t>(size_bytes - skip)}));
    context_->counters.Add(Counter::kWriteCalls);
    context_->counters.Add(Counter::kFileBytesWritten, size_bytes - skip);
  }
  const uint64_t consumed = std::min(size_bytes, filled_bytes_);
  filled_bytes_ -= consumed;
  window_bytes_ += size_bytes;
  if (keep_recent_ && filled_bytes_ == 0 && skip == 0) {
    auto chunk = std::make_shared<Chunk>(std::move(buffer_), offset);
    chunk->used_bytes.store(consumed, std::memory_order_release);
    range.file->segment->chunks()->Insert(chunk);
    context_->recent.Keep(range.file->segment->chunks(), std::move(chunk));
  } else {
    std::memmove(buffer_.data(), buffer_.data() + consumed, static_cast<size_t>(filled_bytes_));
  }
  return Status::Ok();
}

Status ExtentStream::WriteFront(const PrivateRange& range, std::span<const uint8_t> front) {
  assert(front.size() == front_bytes_);
  if (head_.empty()) head_ = AlignedBuffer(front.size());  // the front ends with its last block
  std::memcpy(head_.data(), front.data(), front.size());
  QUARRY_TRY(range.file->file()->WriteAt(range.offset_bytes, head_.span()));
  context_->counters.Add(Counter::kWriteCalls);
  context_->counters.Add(Counter::kFileBytesWritten, head_.size());
  return Status::Ok();
}

}  // namespace quarry
