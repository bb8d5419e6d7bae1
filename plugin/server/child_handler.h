// The child: the InnoDB handler that holds the rows of a Quarry table, and InnoDB's handlerton.
//
// ha_innobase is final and not exported, so Quarry composes: it asks the server for an InnoDB handler of the same
// TABLE_SHARE, as ha_partition does for its partitions. What the server's classes keep private, but a wrapper needs,
// is reached here and in forwarding_handler.cc, the two files built with -fno-access-control.
// Thread-safety: InnodbHandlerton is internally synchronised; the rest works on the caller's own objects.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// InnoDB's handlerton, or nullptr while InnoDB is not initialised (our plugin's init may run first). The first
/// success locks InnoDB's plugin for good: a Quarry table cannot outlive it.
handlerton* InnodbHandlerton();

/// A new InnoDB handler for `share` (may be nullptr: a DROP opens no table), or nullptr.
handler* NewChildHandler(TABLE_SHARE* share, MEM_ROOT* mem_root);

/// Marks the child's transaction read-write, as the server's outer ha_write_row does for an engine of its own.
void MarkReadWrite(handler* child);

/// Takes back the server's mark on `hton`: Quarry must never look like a second read-write engine, which would make
/// a transaction on two of its tables go through two-phase commit.
void ClearReadWrite(THD* thd, const handlerton* hton);

/// True when the statement, or the whole transaction, has already registered `hton`.
bool StatementRegistered(THD* thd, const handlerton* hton);
bool TransactionRegistered(THD* thd, const handlerton* hton);

/// `hton`, just registered in the transaction, is moved in front of InnoDB, and into the list of engines of every
/// savepoint that has InnoDB in it, with `mark` as what it remembers there. Rolling back to a savepoint that does not
/// know an engine of Galera's, the server aborts the whole write-set (ha_rollback_to_savepoint), and what came before
/// the savepoint would be committed on this node alone.
void JoinSavepoints(THD* thd, const handlerton* hton, const void* mark, size_t mark_size_bytes);

}  // namespace quarry
