#include "store/segment_scan.h"

#include <algorithm>
#include <optional>

#include "base/zeros.h"
#include "format/segment_header.h"
#include "store/segment_layout.h"

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
Result<std::optional<ExtentHeader>> ExtentAt(SegmentWindow* window, const SegmentOrigin& origin, uint64_t place_bytes,
                                             uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  if (!StartsLikeExtent(start)) return std::optional<ExtentHeader>();
  const auto index = ReadExtentIndex(window, origin, place_bytes, offset_bytes);
  if (index.ok()) return std::optional<ExtentHeader>(index->header);
  const StatusCode code = index.status().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kNotSupported) return index.status();
  return std::optional<ExtentHeader>();
}

/// Nothing: the segment's header is damaged, and with it the salt is lost that its extents are told by.
Result<std::optional<SegmentOrigin>> OriginOf(ReadableFile* file, StoreId store, SegmentNumber segment) {
  const Result<SegmentHeader> header = ReadSegmentHeader(file, store, segment);
  if (header.ok()) return std::optional<SegmentOrigin>(header->origin());
  const StatusCode code = header.status().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kNotSupported) return header.status();
  return std::optional<SegmentOrigin>();
}

}  // namespace

Result<ExtentIndex> ReadExtentIndex(SegmentWindow* window, const SegmentOrigin& origin, uint64_t place_bytes,
                                    uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(start, origin, offset_bytes));
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front, window->At(place_bytes, HeaderAndIndexSizeBytes(header)));
  return DecodeExtentIndex(front, origin, offset_bytes);
}

Result<SegmentScan> ScanSegment(ReadableFile* file, StoreId store, SegmentNumber segment, uint64_t from_bytes) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  QUARRY_TRY_ASSIGN(const std::optional<SegmentOrigin> origin, OriginOf(file, store, segment));
  SegmentScan scan;
  if (!origin) {
    scan.passed_over = true;
    return scan;
  }
  SegmentWindow window(file, file_size, kWindowBytes);
  uint64_t at = std::max<uint64_t>(from_bytes, kSegmentHeaderSizeBytes);
  while (at < file_size) {
    QUARRY_TRY_ASSIGN(const std::optional<ExtentHeader> extent, ExtentAt(&window, *origin, at, at));
    if (extent) {
      ++scan.extents;
      scan.bytes += ExtentSpaceBytes(*extent);
      at = NextExtentOffsetBytes(*extent);
      continue;
    }
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> in_block,
                      window.At(at, (at / kBlockSizeBytes + 1) * kBlockSizeBytes - at));
    const std::span<const uint8_t> rest = in_block.first(NextCandidate(in_block));
    if (rest.empty()) break;  // the file is shorter than it said
    if (!IsZero(rest)) scan.passed_over = true;
    at += rest.size();
  }
  return scan;
}

Result<SegmentScan> ScanRewrittenSegment(ReadableFile* file, StoreId store, SegmentNumber segment,
                                         const SegmentMap& map) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  QUARRY_TRY_ASSIGN(const std::optional<SegmentOrigin> origin, OriginOf(file, store, segment));
  SegmentWindow window(file, file_size, kWindowBytes);
  SegmentScan scan;
  scan.passed_over = !origin;
  for (const SegmentRun& run : map.runs()) {
    uint64_t done = 0;
    while (origin && done < run.size_bytes) {
      QUARRY_TRY_ASSIGN(const std::optional<ExtentHeader> extent,
                        ExtentAt(&window, *origin, run.place_bytes + done, run.original_bytes + done));
      if (!extent) {
        scan.passed_over = true;
        break;
      }
      ++scan.extents;
      scan.bytes += ExtentSpaceBytes(*extent);
      done += ExtentSpaceBytes(*extent);
    }
  }
  return scan;
}

}  // namespace quarry
