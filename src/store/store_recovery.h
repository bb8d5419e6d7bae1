// RecoverStore: brings one store back from its directory after a shutdown or a crash.
//
// Invariants: no committed byte is changed or removed: only space behind everything that is an extent or not zero is
// cut off, and only files too short to hold an extent are removed. Recovered segments are never appended to again.
// Thread-safety: called by Open alone, before anybody else knows the store.
#pragma once

#include <memory>

#include "quarry/status.h"
#include "store/store_impl.h"

namespace quarry {

/// Null when the directory is that of a store whose creation was cut off: there was nothing in it, and it was removed.
[[nodiscard]] Result<std::shared_ptr<StoreImpl>> RecoverStore(const std::shared_ptr<StoreContext>& context,
                                                              StoreId store, bool in_trash);

}  // namespace quarry
