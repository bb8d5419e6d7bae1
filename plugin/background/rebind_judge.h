// What becomes of a store whose rebuild nobody ended: a crash, or an error after InnoDB's commit, left it bound to the
// table before the rebuild and to the one after it. InnoDB has decided; this reads what.
//
//   InnoDB's commit, one step:   db/#sql-alter-..  (new) --> db/t         db/t (old) --> db/#sql-ib..
//
// Before it the old table is the one with a name of its own, after it the new one; a table whose name begins with #sql
// is half made, or half gone. Both ids have never a name of their own at the same time, and never change places back.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "quarry/store.h"

namespace quarry {

enum class RebindVerdict : uint8_t {
  kKeepOld,  ///< the rebuild was rolled back
  kKeepNew,  ///< it is committed
  kDropped,  ///< InnoDB has neither table: the store is a dropped table's
  kDoubt,    ///< neither has a name of its own now, or the new table's id is not known: the store stays bound to both
};

/// `tables`: all of InnoDB's, its names by id, read when no rebuild of these two was under way.
[[nodiscard]] RebindVerdict JudgeRebind(const std::map<uint64_t, std::string>& tables, const RebindPair& pair);

}  // namespace quarry
