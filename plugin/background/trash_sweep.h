// TrashSweep: finds stores whose InnoDB table is gone, moves them to the trash, and much later empties it.
//
// It never trusts one look, for InnoDB's tables are read dirty: a DROP that may still roll back already looks done.
//   first look   a store's table is missing: its store is discarded (still readable) as of the LSN read after the
//                look, and the transactions open then are remembered
//   second look  InnoDB has flushed that LSN, every remembered transaction has ended, and each discarded store's table
//                is still missing: only now the trash is emptied, up to that LSN
// Every look must show two canaries: tables that InnoDB always has, and a transaction of the looking session itself.
// Whatever fails, or is in doubt, keeps the stores. A discarded store whose table is back is taken out of the trash.
// Each look also ends rebuilds that nobody ended (rebind_settling.h): a store between two tables gets the one that
// InnoDB has, and is discarded, bound to both, when InnoDB has neither. Thread-safety: externally synchronised: the
// housekeeping thread's own.
#pragma once

#include "quarry/store.h"
#include "server/mariadb_compat.h"
#include "server/server_look.h"

namespace quarry {

class TrashSweep {
 public:
  /// Something was dropped, truncated or rebuilt: a look is worth it. Any thread; cheap.
  static void Wake();

  /// Before the server lets anybody in (server_look.h). What fails is tried again by the first look.
  void Open() { (void)server_.Open(); }

  /// One step: at most one look. Runs no query when there is nothing to look for.
  bool Step();

 private:
  struct Look {
    std::map<uint64_t, std::string> tables;
    std::vector<OpenTransaction> transactions;
    ServerLook::Lsn lsn;  ///< read after the tables
  };
  Result<Look> TakeLook();
  Result<Look> LookInView();

  Status LookOnce();
  Status Discard(const std::vector<StoreStats>& stores, const std::vector<UndecidedRebind>& dropped, const Look& look);
  bool MayEmpty(const Look& look);
  static Status Restore(const Look& look);

  ServerLook server_;
  bool waiting_ = false;  ///< stores were discarded at discarded_lsn_; the second look is due
  uint64_t discarded_lsn_ = 0;
  OpenTransactions open_then_;
  bool failed_before_ = false;
};

}  // namespace quarry
