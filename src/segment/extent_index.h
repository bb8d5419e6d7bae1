// ReadExtentIndex: what is told of one extent by the file that holds it.
// Thread-safety: a pure function of the file.
#pragma once

#include <cstdint>

#include "format/extent.h"
#include "quarry/status.h"
#include "segment/segment_window.h"

namespace quarry {

/// Header and index, verified, of the extent that stands at `place_bytes` of the file and whose own offset is
/// `offset_bytes`. Errors: kCorruption: no sound one; kNotSupported; those of reading.
[[nodiscard]] Result<ExtentIndex> ReadExtentIndex(SegmentWindow* window, const SegmentOrigin& origin,
                                                  uint64_t place_bytes, uint64_t offset_bytes);

}  // namespace quarry
