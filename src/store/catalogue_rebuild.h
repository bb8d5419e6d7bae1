// The seam of RebuildCatalogue's tests. Thread-safety: as include/quarry/rebuild.h says.
#pragma once

#include "io/env.h"
#include "quarry/rebuild.h"

namespace quarry {

/// RebuildCatalogue over a chosen Env.
[[nodiscard]] Result<RebuildReport> RebuildCatalogueFiles(Env* env, const RebuildOptions& options);

}  // namespace quarry
