// Opening the home directory and the data paths: DIRECTORY, the PATH markers, and what to do when one is missing.
//
// Invariants: a path that is missing, foreign, or recorded but without its marker (an empty mount point) is never
// written to; a path's number never changes; on error everything that was made is removed again. Paths that may be
// written to are locked, and bear a record of this home (path_ownership.h).
// Thread-safety: called by Open alone.
#pragma once

#include "format/directory_file.h"
#include "quarry/status.h"
#include "store/store_context.h"

namespace quarry {

/// Creates or opens what `context->options` name, and fills in the context's installation, paths and append_paths.
[[nodiscard]] Result<DirectoryFile> OpenDataPaths(StoreContext* context);

[[nodiscard]] Status WriteDirectoryFile(const StoreContext& context, const DirectoryFile& file);

}  // namespace quarry
