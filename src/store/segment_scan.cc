#include "store/segment_scan.h"

#include <algorithm>
#include <optional>

#include "base/zeros.h"
#include "format/segment_header.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 256ULL << 10;

/// Where in a block, behind its start, something starts like an extent: damage to one must not hide its neighbours.
size_t NextCandidate(std::span<const uint8_t> in_block) {
  size_t at = kExtentAlignmentBytes;
  while (at < in_block.size() && !StartsLikeExtent(in_block.subspan(at))) at += kExtentAlignmentBytes;
  return std::min(at, in_block.size());
}

/// The sound extent at `place_bytes` of the file, whose own offset is `offset_bytes`; nothing when there is none.
Result<std::optional<ExtentHeader>> ExtentAt(SegmentWindow* window, StoreId store, SegmentNumber segment,
                                             uint64_t place_bytes, uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  if (!StartsLikeExtent(start)) return std::optional<ExtentHeader>();
  const auto index = ReadExtentIndex(window, store, segment, place_bytes, offset_bytes);
  if (index.ok()) return std::optional<ExtentHeader>(index->header);
  const StatusCode code = index.status().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kNotSupported) return index.status();
  return std::optional<ExtentHeader>();
}

}  // namespace

Result<ExtentIndex> ReadExtentIndex(SegmentWindow* window, StoreId store, SegmentNumber segment, uint64_t place_bytes,
                                    uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(start, store, segment, offset_bytes));
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front, window->At(place_bytes, HeaderAndIndexSizeBytes(header)));
  return DecodeExtentIndex(front, store, segment, offset_bytes);
}

Result<SegmentScan> ScanSegment(ReadableFile* file, StoreId store, SegmentNumber segment, uint64_t from_bytes) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  SegmentWindow window(file, file_size, kWindowBytes);
  SegmentScan scan;
  uint64_t at = std::max<uint64_t>(from_bytes, kSegmentHeaderSizeBytes);
  while (at < file_size) {
    QUARRY_TRY_ASSIGN(const std::optional<ExtentHeader> extent, ExtentAt(&window, store, segment, at, at));
    if (extent) {
      ++scan.extents;
      scan.bytes += ExtentSizeBytes(*extent);
      at = NextExtentOffsetBytes(*extent);
#ifdef QUARRY_PLANTED_BUG_RECOVERY_CUTS
      scan.end_bytes = std::min(file_size, at);
      at = std::max(at, extent->offset_bytes + extent->reserved_size_bytes);
#endif
      continue;
    }
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> in_block,
                      window.At(at, (at / kBlockSizeBytes + 1) * kBlockSizeBytes - at));
    const std::span<const uint8_t> rest = in_block.first(NextCandidate(in_block));
    if (rest.empty()) break;  // the file is shorter than it said
    const uint64_t next = at + rest.size();
    if (!IsZero(rest)) {
      scan.passed_over = true;
#ifdef QUARRY_PLANTED_BUG_RECOVERY_CUTS
      scan.end_bytes = std::min(next, file_size);
#endif
    }
    at = next;
  }
  return scan;
}

Result<SegmentScan> ScanRewrittenSegment(ReadableFile* file, StoreId store, SegmentNumber segment,
                                         const SegmentMap& map) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  SegmentWindow window(file, file_size, kWindowBytes);
  SegmentScan scan;
  for (size_t run = 0; run < map.runs().size(); ++run) {
    const SegmentRun& begin = map.runs()[run];
    const uint64_t end = run + 1 < map.runs().size() ? map.runs()[run + 1].place_bytes : map.data_end_bytes();
    for (uint64_t at = begin.place_bytes; at < end;) {
      const uint64_t offset = begin.original_bytes + (at - begin.place_bytes);
      QUARRY_TRY_ASSIGN(const std::optional<ExtentHeader> extent, ExtentAt(&window, store, segment, at, offset));
      if (!extent) {
        scan.passed_over = true;
        break;
      }
      ++scan.extents;
      scan.bytes += ExtentSizeBytes(*extent);
      at += (ExtentSizeBytes(*extent) + kExtentAlignmentBytes - 1) / kExtentAlignmentBytes * kExtentAlignmentBytes;
    }
  }
  return scan;
}

}  // namespace quarry
