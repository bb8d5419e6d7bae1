// What one session has appended and not yet committed: the bridge between the server's transactions and the store.
//
// Invariants:
//  - Every extent that a committed row may point at was made durable before InnoDB decided to commit: the hook
//    handlerton::prepare_commit_versioned runs before the choice of one or two phases.
//  - Quarry is registered with the server lazily, at the first value appended or replaced, so that it stands before
//  InnoDB in the
//    server's list (newest first) and its hook is called first. Whether it is registered is never cached: a rollback
//    to a savepoint or an XA detach may drop the registration silently.
//  - Extents still noted after a rollback cost one needless sync, nothing else. Release hints are only hints.
// Thread-safety: a Transaction belongs to its THD and is externally synchronised by it.
#pragma once

#include "quarry/memory_guard.h"
#include "quarry/store.h"
#include "server/backup_lock.h"
#include "server/mariadb_compat.h"
#include "transaction/append_gate.h"

namespace quarry {

/// Gives up what a session that was killed waits for.
class KillCheck : public Canceller {
 public:
  explicit KillCheck(THD* thd) : thd_(thd) {}
  [[nodiscard]] bool IsCancelled() const override;

 private:
  THD* const thd_;
};

class Transaction {
 public:
  explicit Transaction(THD* thd) : kill_check_(thd) {}

  /// The calling session's, created at need; nullptr when memory is short.
  static Transaction* Of(THD* thd);
  /// The session's if it has one.
  static Transaction* Find(THD* thd);
  static void Destroy(THD* thd);

  /// Before anything is appended or noted: joins the server's transaction and takes back its read-write mark.
  void Join(THD* thd);
  /// At the start of a statement that may write, in a Galera node: joins now if there are savepoints, for a trigger's
  /// statements do not see those of the statement around them (JoinSavepoints in child_handler.h says why it matters).
  static void JoinWhereSavepointsAre(THD* thd);

  /// To be inside of from before an append until InnoDB took the row.
  [[nodiscard]] AppendGate::Member* gate() { return &gate_; }

  [[nodiscard]] UnsyncedExtents* unsynced() { return &unsynced_; }
  void NoteAppended(const Locator& locator) { Note(&appended_, locator); }
  /// A hint, for which there need be no memory.
  void NoteReplaced(const Locator& locator) {
    (void)OrOutOfMemory([&] { Note(&replaced_, locator); });
  }

  /// What its rows may point at, but for what was replaced by a later append of its own.
  [[nodiscard]] std::span<const Locator> appended() const { return appended_; }

  /// Makes what was appended durable. Does nothing when nothing was. Throws nothing.
  Status Sync();
  /// The same while InnoDB prepares (prepared_commit.h). On error nothing is left of the transaction in InnoDB, or it
  /// was not prepared.
  Status SyncAndPrepare(THD* thd);

  void OnCommit(THD* thd, bool all);
  void OnRollback(THD* thd, bool all);

  /// False when another session has it. It ends with the session.
  [[nodiscard]] bool TakeBackupLock(THD* thd) { return (backup_lock_ = BackupLock::Take(thd)) != nullptr; }
  void GiveBackBackupLock() { backup_lock_.reset(); }

  /// What a savepoint must remember.
  struct Mark {
    size_t appended = 0;
    size_t replaced = 0;
  };
  [[nodiscard]] Mark SetMark() const { return {appended_.size(), replaced_.size()}; }
  void RollbackTo(const Mark& mark);

 private:
  /// More hints than this are dropped: they serve statistics, and a huge transaction must not eat memory for them.
  static constexpr size_t kHintsMax = 1U << 18;
  static void Note(std::vector<Locator>* hints, const Locator& locator) {
    if (hints->size() < kHintsMax) hints->push_back(locator);
  }
  void Clear();
  void SyncLate();

  AppendGate::Member gate_{&TheAppendGate()};
  const KillCheck kill_check_;
  UnsyncedExtents unsynced_{&kill_check_};
  std::vector<Locator> appended_;  ///< dead if the transaction rolls back
  std::vector<Locator> replaced_;  ///< dead if it commits
  Mark statement_;                 ///< where the running statement began
  bool is_prepared_ = false;       ///< in InnoDB, with its values durable: only the commit is left
  std::unique_ptr<BackupLock> backup_lock_;
};

/// Fills in the transactional part of the handlerton. `prepare` stays unset: see SetPrepareHook.
void SetTransactionHooks(handlerton* hton);

/// Sets handlerton::prepare, once plugin initialisation is over: set earlier it would count as one more two-phase
/// engine and change the server's choice of coordinator; unset it would switch two-phase commit off for everyone.
void SetPrepareHook(handlerton* hton);

}  // namespace quarry
