// SegmentWindow: a moving window over a segment, so that a pass over small extents or zeros needs few reads.
//
// Invariants: reads are aligned as OpenForVerify wants them, and never larger than the window or what is asked for.
// Thread-safety: externally synchronised.
#pragma once

#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "io/env.h"
#include "quarry/status.h"

namespace quarry {

class SegmentWindow {
 public:
  SegmentWindow(ReadableFile* file, uint64_t file_size_bytes, uint64_t window_bytes)
      : file_(file), file_size_bytes_(file_size_bytes), window_bytes_(window_bytes) {}

  /// `size_bytes` at `offset_bytes`, or what the file has of them. Valid until the next call.
  [[nodiscard]] Result<std::span<const uint8_t>> At(uint64_t offset_bytes, uint64_t size_bytes);

  /// Bytes read so far.
  [[nodiscard]] uint64_t read_bytes() const { return read_bytes_; }
  [[nodiscard]] uint64_t file_size_bytes() const { return file_size_bytes_; }

 private:
  [[nodiscard]] Status Load(uint64_t offset_bytes, uint64_t size_bytes);

  ReadableFile* const file_;
  const uint64_t file_size_bytes_;
  const uint64_t window_bytes_;
  AlignedBuffer buffer_;
  uint64_t begin_bytes_ = 0;
  uint64_t end_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t careful_until_bytes_ = 0;  ///< a read that ended here failed: up to here no more is read than asked for
};

}  // namespace quarry
