// The stores that a session may see, under the names that InnoDB knows their tables by now: what QUARRY_TABLES and
// QUARRY_MEMORY list. Without PROCESS they are those of tables on which the user has any privilege.
// Thread-safety: for the session's own thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "quarry/store.h"
#include "server/child_name.h"
#include "server/mariadb_compat.h"

namespace quarry {

using InnodbNameMap = std::unordered_map<uint64_t, std::string>;
/// What InnoDB knows, by table id. Nothing when InnoDB could not be asked.
std::optional<InnodbNameMap> InnodbNames();

struct VisibleStore {
  StoreStats bound;   ///< without what files say
  TableName name;     ///< of a dropped store the name that it had
  const char* state;  ///< BOUND, REBINDING, DROPPED or UNBOUND
};

/// Until `visit` returns true. True: it did.
bool ForEachVisibleStore(THD* thd, const std::function<bool(const VisibleStore&)>& visit);

}  // namespace quarry
