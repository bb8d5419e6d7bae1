#include "store/segment_scan.h"

#include <algorithm>
#include <vector>

#include "format/extent.h"
#include "format/segment_header.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 256ULL << 10;

/// A moving window over the file, so that a scan of small extents or of zeros needs few reads.
class Window {
 public:
  Window(ReadableFile* file, uint64_t file_size_bytes) : file_(file), file_size_bytes_(file_size_bytes) {}

  /// `size_bytes` at `offset_bytes`, or what the file has of them. Valid until the next call.
  Result<std::span<const uint8_t>> At(uint64_t offset_bytes, uint64_t size_bytes) {
    const uint64_t size = std::min(size_bytes, file_size_bytes_ - std::min(offset_bytes, file_size_bytes_));
    if (offset_bytes < begin_ || offset_bytes + size > begin_ + bytes_.size()) {
      const uint64_t want = std::min(std::max(size, kWindowBytes), file_size_bytes_ - offset_bytes);
      bytes_.resize(static_cast<size_t>(want));
      QUARRY_TRY_ASSIGN(const size_t read, file_->ReadAt(offset_bytes, bytes_));
      bytes_.resize(read);
      begin_ = offset_bytes;
    }
    const uint64_t there = std::min<uint64_t>(size, begin_ + bytes_.size() - offset_bytes);
    return std::span<const uint8_t>(bytes_).subspan(static_cast<size_t>(offset_bytes - begin_),
                                                    static_cast<size_t>(there));
  }

 private:
  ReadableFile* const file_;
  const uint64_t file_size_bytes_;
  uint64_t begin_ = 0;
  std::vector<uint8_t> bytes_;
};

/// Where in a block, behind its start, something starts like an extent: damage to one must not hide its neighbours, for
/// one that ends in zeros would be taken for unused space and cut off.
size_t NextCandidate(std::span<const uint8_t> in_block) {
  size_t at = kExtentAlignmentBytes;
  while (at < in_block.size() && !StartsLikeExtent(in_block.subspan(at))) at += kExtentAlignmentBytes;
  return std::min(at, in_block.size());
}

}  // namespace

Result<SegmentScan> ScanSegment(ReadableFile* file, StoreId store, SegmentNumber segment, uint64_t from_bytes) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  Window window(file, file_size);
  SegmentScan scan;
  uint64_t at = std::max<uint64_t>(from_bytes, kSegmentHeaderSizeBytes);
  scan.end_bytes = std::min(at, file_size);
  while (at < file_size) {
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> header_bytes, window.At(at, kExtentHeaderSizeBytes));
    if (header_bytes.size() == kExtentHeaderSizeBytes && StartsLikeExtent(header_bytes)) {
      if (const auto header = DecodeExtentHeader(header_bytes, store, segment, at); header.ok()) {
        QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front, window.At(at, HeaderAndIndexSizeBytes(*header)));
        if (const auto index = DecodeExtentIndex(front, store, segment, at); index.ok()) {
          ++scan.extents;
          scan.bytes += ExtentSizeBytes(index->header);
          scan.end_bytes = std::min(file_size, std::max(scan.end_bytes, at + ExtentSizeBytes(index->header)));
          at = NextExtentOffsetBytes(index->header);
          continue;
        }
      }
    }
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> in_block,
                      window.At(at, (at / kBlockSizeBytes + 1) * kBlockSizeBytes - at));
    const std::span<const uint8_t> rest = in_block.first(NextCandidate(in_block));
    if (rest.empty()) break;  // the file is shorter than it said
    const uint64_t next = at + rest.size();
    if (std::any_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte != 0; })) {
      scan.end_bytes = std::max(scan.end_bytes, std::min(next, file_size));
    }
    at = next;
  }
  return scan;
}

}  // namespace quarry
