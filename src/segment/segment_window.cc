#include "segment/segment_window.h"

#include <algorithm>

namespace quarry {

Result<std::span<const uint8_t>> SegmentWindow::At(uint64_t offset_bytes, uint64_t size_bytes) {
  const uint64_t size = std::min(size_bytes, file_size_bytes_ - std::min(offset_bytes, file_size_bytes_));
  if (size == 0) return std::span<const uint8_t>();
  if (offset_bytes < begin_bytes_ || offset_bytes + size > end_bytes_) {
    const uint64_t wanted = offset_bytes < careful_until_bytes_ ? size : std::max(size, window_bytes_);
    Status status = Load(offset_bytes, wanted);
    // A bad sector must not cost what lies around it, nor be asked for once more for each piece of that.
    if (status.code() == StatusCode::kIoError && size < wanted) {
      careful_until_bytes_ = offset_bytes + wanted;
      status = Load(offset_bytes, size);
    }
    QUARRY_TRY(status);
  }
  const uint64_t there = std::min(size, end_bytes_ - std::min(offset_bytes, end_bytes_));
  return std::span<const uint8_t>(buffer_.data() + (offset_bytes - begin_bytes_), static_cast<size_t>(there));
}

Status SegmentWindow::Load(uint64_t offset_bytes, uint64_t size_bytes) {
  const uint64_t begin = offset_bytes / kBlockSizeBytes * kBlockSizeBytes;
  const uint64_t wanted_end = std::min(offset_bytes + size_bytes, file_size_bytes_);
  const uint64_t end = (wanted_end + kBlockSizeBytes - 1) / kBlockSizeBytes * kBlockSizeBytes;
  end_bytes_ = begin_bytes_ = begin;
  if (buffer_.size() < end - begin) buffer_ = AlignedBuffer(static_cast<size_t>(end - begin));
  QUARRY_TRY_ASSIGN(const size_t read, file_->ReadAt(begin, buffer_.span().first(static_cast<size_t>(end - begin))));
  end_bytes_ = std::min(begin + read, file_size_bytes_);
  read_bytes_ += read;
  return Status::Ok();
}

}  // namespace quarry
