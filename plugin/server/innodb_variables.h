// InnoDB's own global variables, read without a lock and without asking the server for them by name.
// Thread-safety: internally synchronised; what is returned lives as long as InnoDB's plugin, which is locked for good
// (child_handler.h).
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// Where InnoDB keeps a global ENUM or LONG variable; `name` as in its source, without `innodb_`. nullptr: this InnoDB
/// has no such variable.
const unsigned long* FindInnodbVariable(const handlerton* innodb_hton, std::string_view name);

/// The same of an INT.
const unsigned int* FindInnodbInt(const handlerton* innodb_hton, std::string_view name);

/// The value of one: others set it at any time.
template <typename T>
T ReadInnodbVariable(const T* variable) {
  return *static_cast<const volatile T*>(variable);
}

}  // namespace quarry
