// The running engine: its stores and its handlerton, for whatever is below plugin/engine/hton.cc, which makes and ends
// them. Thread-safety: the getters may be called from any thread while the plugin is initialised.
#pragma once

#include "quarry/store.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// Every store of this server. Never nullptr between the plugin's init and deinit.
StoreDirectory* Directory();

handlerton* QuarryHandlerton();

}  // namespace quarry
