// Prepared commits: a transaction's values are flushed beside InnoDB's redo log instead of before it.
//
//   hook before the commit decision      our commit            InnoDB's commit
//   flush of the segments ----------+
//   InnoDB prepares (redo flushed) -+--> commit_ordered -----> nothing left to flush
//
// Invariants:
//  - InnoDB decides to commit after both flushes, so a committed row never points at bytes that are not on disk.
//  - From the moment both are done the transaction is committed, whatever becomes of the server: its XID names its
//    extents (quarry/commit_record.h), and the next start commits it when all of them are whole.
//  - Whoever is told that it failed can rely on that: before the answer InnoDB's rollback is durable.
//  - Everything with a coordinator of its own keeps the order (values first): the binary log, XA, Galera, replication
//    appliers, other engines in the transaction, transaction-precise versioning; so do DDL's commits and
//    innodb_flush_log_at_trx_commit other than 1.
// Thread-safety: each function works on the caller's own session, but for DecidePreparedCommits.
#pragma once

#include "quarry/locator.h"
#include "quarry/status.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// Remembers where InnoDB keeps what CommitsPrepared asks for.
void AdoptInnodbFlushing(const handlerton* innodb_hton);

/// At the start (or INSTALL), when the server knows the plugin: whether it was loaded with FORCE, so that this server
/// does not run without it. Else commits go in order: what is prepared would be anybody's in a server without Quarry.
void NoteLoadOption();
[[nodiscard]] bool IsForced();

/// Whether quarry_parallel_flush acts: set, loaded with FORCE, and InnoDB flushes its log at each commit.
[[nodiscard]] bool ParallelFlushActs();

/// Whether the transaction that `thd` is about to commit, which appended `extents`, can be prepared.
[[nodiscard]] bool CommitsPrepared(THD* thd, std::span<const Locator> extents);

/// Prepares it in InnoDB, durably. False: InnoDB refused, or an extent is gone; and it is what it was.
[[nodiscard]] bool PrepareInInnodb(THD* thd, std::span<const Locator> extents);
/// Commits what was prepared: visible to others when it returns. It needs no flush any more.
void CommitInInnodb(THD* thd);
/// Rolls back what was prepared, durably.
void RollbackInInnodb(THD* thd);

/// After the start, before anybody can connect (or at INSTALL): what a crash left prepared under a commit record is
/// committed or rolled back. False: something cannot be decided and stays prepared, its rows locked; the server's log
/// says why.
[[nodiscard]] bool DecidePreparedCommits();

}  // namespace quarry
