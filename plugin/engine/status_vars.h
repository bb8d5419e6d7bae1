// SHOW GLOBAL STATUS LIKE 'quarry%': the core's counters and the plugin's own few (server/plugin_counters.h).
// Thread-safety: constant; what it points at is internally synchronised.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// For st_maria_plugin::status_vars.
extern struct st_mysql_show_var status_variables[];

}  // namespace quarry
