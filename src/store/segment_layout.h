// What the front of a segment's file says of where its extents stand: at their own offsets, or where a map tells.
//
// Invariant: nothing is allocated on the word of a header that did not verify, nor beyond what the file has.
// Thread-safety: pure functions of the file.
#pragma once

#include <memory>

#include "format/segment_header.h"
#include "format/segment_map.h"
#include "io/env.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

/// The header of `segment`. Errors: kIoError, kCorruption, kNotSupported (a newer version).
[[nodiscard]] Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment);

/// The same for a reader of extents: a header that does not verify is taken for that of a segment that was never
/// rewritten: extents that do not stand where they say fail by their own checksums, those that do need no header to be
/// read. Errors: kIoError; kNotSupported (a newer version, whose layout nobody here knows).
[[nodiscard]] Result<SegmentHeader> ReadSegmentLayout(ReadableFile* file, StoreId store, SegmentNumber segment);

/// The map behind the header of a rewritten segment. Errors: kIoError, kCorruption.
[[nodiscard]] Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header);

}  // namespace quarry
