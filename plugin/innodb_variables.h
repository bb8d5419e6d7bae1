// InnoDB's own global variables, read without a lock and without asking the server for them by name.
// Thread-safety: internally synchronised; what is returned lives as long as InnoDB's plugin, which is locked for good
// (inner_table.h).
#pragma once

#include "mariadb_compat.h"

namespace quarry {

/// Where InnoDB keeps a global ENUM or LONG variable; `name` as in its source, without `innodb_`. nullptr: this InnoDB
/// has no such variable.
const unsigned long* FindInnodbVariable(const handlerton* innodb_hton, std::string_view name);

/// The value of one: others set it at any time.
inline unsigned long ReadInnodbVariable(const unsigned long* variable) {
  return *static_cast<const volatile unsigned long*>(variable);
}

}  // namespace quarry
