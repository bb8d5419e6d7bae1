#include "store/segment_scan.h"

#include <algorithm>

#include "format/extent.h"
#include "format/segment_header.h"
#include "store/segment_window.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 256ULL << 10;

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
  SegmentWindow window(file, file_size, kWindowBytes);
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
