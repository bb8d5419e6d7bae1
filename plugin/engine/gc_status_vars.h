// SHOW GLOBAL STATUS LIKE 'quarry_gc%'.
// Thread-safety: internally synchronised.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// The function of a SHOW_FUNC variable called quarry_gc.
int ShowGc(THD* thd, st_mysql_show_var* variable, void* buffer, struct system_status_var* status, enum_var_type type);

}  // namespace quarry
