// quarry-verify --rebuild-catalogue: says what a new catalogue would have, then writes it.
// Thread-safety: externally synchronised.
#pragma once

#include <ostream>

#include "quarry/rebuild.h"

namespace quarry::verify {

/// The exit status of the program: 0 when it is done, or nothing was to be done; 2 when it could not. Root becomes the
/// account that the home belongs to, for the rest of the process.
[[nodiscard]] int Rebuild(const RebuildOptions& options, std::ostream* out, std::ostream* error);

}  // namespace quarry::verify
