#include "segment/extent_index.h"

namespace quarry {

Result<ExtentIndex> ReadExtentIndex(SegmentWindow* window, const SegmentOrigin& origin, uint64_t place_bytes,
                                    uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(start, origin, offset_bytes));
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front, window->At(place_bytes, HeaderAndIndexSizeBytes(header)));
  return DecodeExtentIndex(front, origin, offset_bytes);
}

}  // namespace quarry
