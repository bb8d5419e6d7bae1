// IsHome: StoreDirectory::IsHome over any Env.
// Thread-safety: a pure function of the files.
#pragma once

#include <string>

#include "io/env.h"
#include "quarry/status.h"

namespace quarry {

[[nodiscard]] Result<bool> IsHome(Env* env, const std::string& path);

}  // namespace quarry
