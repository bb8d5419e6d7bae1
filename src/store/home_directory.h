// MoveHomeBack: StoreDirectory::MoveHomeBack over any Env.
// Thread-safety: a pure function of the files; called before anybody opens the home.
#pragma once

#include <string>

#include "io/env.h"
#include "quarry/status.h"
#include "quarry/store.h"

namespace quarry {

[[nodiscard]] Result<bool> MoveHomeBack(Env* env, const std::string& moved_path, const std::string& home_path);

}  // namespace quarry
