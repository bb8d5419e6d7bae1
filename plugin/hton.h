// The engine as the server sees it: plugin descriptor, handlerton, and what lives as long as the plugin.
// Thread-safety: the getters may be called from any thread while the plugin is initialised.
#pragma once

#include "mariadb_compat.h"
#include "quarry/store.h"

namespace quarry {

/// Every store of this server. Never nullptr between the plugin's init and deinit.
StoreDirectory* Directory();

handlerton* QuarryHandlerton();

}  // namespace quarry
