// What the front of a segment's file says of where its extents stand: at their own offsets, or where a map tells.
//
// Invariant: nothing is allocated on the word of a header that did not verify, nor beyond what the file has.
// Thread-safety: pure functions of the file.
#pragma once

#include <memory>

#include "cache/counter_set.h"
#include "format/segment_header.h"
#include "format/segment_map.h"
#include "io/env.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

/// The header of `segment`, without which no extent of it can be read: it has the salt. What the page cache holds
/// damaged is read once more from the device, and counted by `counters` (null: by nobody). Errors: kIoError,
/// kCorruption, kNotSupported (a newer version).
[[nodiscard]] Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment,
                                                      CounterSet* counters = nullptr);

/// The map behind the header of a rewritten segment, in the same way. Errors: kIoError, kCorruption.
[[nodiscard]] Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header,
                                                                       CounterSet* counters = nullptr);

}  // namespace quarry
