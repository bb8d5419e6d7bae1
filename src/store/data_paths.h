// Opening the home directory and the data paths: the catalogue, the PATH markers, and what to do when one is missing.
//
// Invariants: a path that is missing, foreign, or recorded but without its marker (an empty mount point) is never
// written to; a path's number never changes; on error everything that was made is removed again. Paths that may be
// written to are locked, and bear a record of this home (path_ownership.h).
// Thread-safety: called by Open alone.
#pragma once

#include "context/store_context.h"
#include "quarry/status.h"

namespace quarry {

/// Creates or opens what `context->options` name, and fills in the context's installation, paths, append_paths and
/// catalogue. That has begun when the home or one of its paths is new.
[[nodiscard]] Status OpenDataPaths(StoreContext* context);

}  // namespace quarry
