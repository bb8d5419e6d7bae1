// What the front of a segment's file says of where its extents stand: at their own offsets, or where a map tells. A
// rewritten segment says it once more at the end of its file.
//
// Invariants: nothing is allocated on the word of a header that did not verify, nor beyond what the file has. A copy
// counts only where the one in front is damaged or cannot be read. Reads are aligned as OpenForVerify wants them.
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

/// The header in front of `segment`. What the page cache holds damaged is read once more from the device, and counted
/// by `counters` (null: by nobody). Errors: kIoError, kCorruption, kNotSupported (a newer version).
[[nodiscard]] Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment,
                                                      CounterSet* counters = nullptr);

/// The same, or else its copy, if that has `salt`, which is the segment's by the catalogue (zeros: it has none, and no
/// copy counts). With a copy `damage` becomes what is wrong with the header in front. Errors: those of that header;
/// kIoError also where the header in front is lost, and what may be its copy cannot be read.
[[nodiscard]] Result<SegmentHeader> ReadHeaderOrCopy(ReadableFile* file, StoreId store, SegmentNumber segment,
                                                     const SegmentSalt& salt, Status* damage,
                                                     CounterSet* counters = nullptr);

/// The map of a rewritten segment, or its copy, in the same way. Errors: kIoError, kCorruption.
[[nodiscard]] Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header,
                                                                       Status* damage, CounterSet* counters = nullptr);

/// Whether what stands behind the extents is a copy of this header and its map. A file that ends with its extents is
/// older than copies, and all right. Errors: kIoError, kCorruption, kNotSupported.
[[nodiscard]] Status CheckCopy(ReadableFile* file, const SegmentHeader& header);

}  // namespace quarry
