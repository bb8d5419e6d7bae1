// ScanSegment: counts the extents of a segment that a crash left active.
//
// Invariants: nothing is changed, and nothing is decided by what is found. What the rows' locators say is believed, not
// the scan. No bytes of a value are taken for an extent: they lack the segment's salt. A torn or damaged extent only
// hides itself: behind its start every multiple of 8 is looked at again.
// Thread-safety: a pure function of the file.
#pragma once

#include <cstdint>

#include "format/extent.h"
#include "format/segment_map.h"
#include "io/env.h"
#include "quarry/status.h"
#include "quarry/types.h"
#include "store/segment_window.h"

namespace quarry {

/// Header and index, verified, of the extent that stands at `place_bytes` of the file and whose own offset is
/// `offset_bytes`. Errors: kCorruption: no sound one; kNotSupported; those of reading.
[[nodiscard]] Result<ExtentIndex> ReadExtentIndex(SegmentWindow* window, const SegmentOrigin& origin,
                                                  uint64_t place_bytes, uint64_t offset_bytes);

struct SegmentScan {
  uint64_t extents = 0;
  uint64_t bytes = 0;        ///< that they take of the segment
  bool passed_over = false;  ///< bytes that are no extent, and not zeros; or all, for the segment's header is damaged
};

/// Scans from `from_bytes` (where an extent or a block starts) to the end of the file.
[[nodiscard]] Result<SegmentScan> ScanSegment(ReadableFile* file, StoreId store, SegmentNumber segment,
                                              uint64_t from_bytes);

/// The same for a rewritten segment, run by run of its map: an extent that does not verify hides the rest of its run.
[[nodiscard]] Result<SegmentScan> ScanRewrittenSegment(ReadableFile* file, StoreId store, SegmentNumber segment,
                                                       const SegmentMap& map);

}  // namespace quarry
