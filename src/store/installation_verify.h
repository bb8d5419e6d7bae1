// What VerifyInstallation and ScrubStores share, and the seam of their tests.
// Thread-safety: pure functions of the files.
#pragma once

#include "io/env.h"
#include "quarry/verify.h"
#include "segment/segment_verify.h"

namespace quarry {

/// VerifyInstallation over a chosen Env.
[[nodiscard]] Result<VerifyTotals> VerifyInstallationFiles(Env* env, const VerifyOptions& options,
                                                           VerifyObserver* observer);

/// Counts what a pass over one segment found, and tells the observer; `place` has the file, store, table and segment.
void AddSegmentFindings(const Finding& place, const VerifiedSegment& verified, VerifyTotals* totals,
                        VerifyObserver* observer);

}  // namespace quarry
