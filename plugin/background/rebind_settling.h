// Ends rebuilds that nobody ended (rebind_judge.h): at the start, before the server lets anybody in, and by each trash
// sweep, for those that failed to be ended in this life.
// Thread-safety: internally synchronised.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quarry/status.h"
#include "quarry/store.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// Those of `undecided` for which InnoDB's `tables`, read later, give no table to keep.
struct Unsettled {
  std::vector<UndecidedRebind> dropped;  ///< InnoDB has neither table
  std::vector<UndecidedRebind> doubtful;
};

/// Leaves each store the table that InnoDB has.
Result<Unsettled> SettleRebinds(const std::vector<UndecidedRebind>& undecided,
                                const std::map<uint64_t, std::string>& tables);

/// In signal_ddl_recovery_done. What fails is left to the sweep.
void SettleRebindsAtStart();

}  // namespace quarry
