#include "transaction/transaction.h"

#include "server/child_handler.h"
#include "server/error_log.h"
#include "server/ha_error.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"
#include "transaction/prepared_commit.h"

namespace quarry {

namespace {

bool InMultiStatementTransaction(THD* thd) { return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN) != 0; }

// The hook before the commit decision: ULONGLONG_MAX rolls the transaction back. An in-place ALTER calls it too and
// takes every non-zero value for a transaction id; but ALTER commits what came before it, so nothing is unsynced then.
ulonglong PrepareCommit(THD* thd, ulonglong*) {
  Transaction* transaction = Transaction::Find(thd);
  if (transaction == nullptr || transaction->unsynced()->empty()) return 0;
  Status status;
  if (CommitsPrepared(thd, transaction->appended())) {
    // InnoDB's own hook comes after ours. What it has to write (rows of a bulk insert) is written before it prepares.
    ulonglong start_id = 0;
    const ulonglong id = InnodbHandlerton()->prepare_commit_versioned(thd, &start_id);
    if (id == ULONGLONG_MAX) return id;
    status = id == 0 ? transaction->SyncAndPrepare(thd) : transaction->Sync();
  } else {
    status = transaction->Sync();
  }
  if (status.ok()) {
    plugin_counters.commit_syncs.fetch_add(1, std::memory_order_relaxed);
    transaction->unsynced()->Clear();
    return 0;
  }
  ReportStatus(status, Action::kSync, static_cast<const TABLE_SHARE*>(nullptr));
  return ULONGLONG_MAX;
}

int PrepareXa(handlerton*, THD* thd, bool) {
  Transaction* transaction = Transaction::Find(thd);
  if (transaction == nullptr || transaction->unsynced()->empty()) return 0;
  const Status status = transaction->Sync();
  if (!status.ok()) return ReportStatus(status, Action::kSync, static_cast<const TABLE_SHARE*>(nullptr));
  // The prepared transaction may be committed by another session.
  plugin_counters.ddl_syncs.fetch_add(1, std::memory_order_relaxed);
  transaction->unsynced()->Clear();
  return 0;
}

int Commit(handlerton*, THD* thd, bool all) {
  if (Transaction* transaction = Transaction::Find(thd); transaction != nullptr) transaction->OnCommit(thd, all);
  return 0;
}

int Rollback(handlerton*, THD* thd, bool all) {
#ifdef QUARRY_PLANTED_BUG_MISSED_ROLLBACK  // a bug on purpose, never in a normal build: tests/twin/planted.py
  InnodbHandlerton()->commit(InnodbHandlerton(), thd, all);
#endif
  if (Transaction* transaction = Transaction::Find(thd); transaction != nullptr) transaction->OnRollback(thd, all);
  return 0;
}

int SavepointSet(handlerton*, THD* thd, void* savepoint) {
  Transaction* transaction = Transaction::Find(thd);
  const Transaction::Mark mark = transaction == nullptr ? Transaction::Mark() : transaction->SetMark();
  memcpy(savepoint, &mark, sizeof mark);
  return 0;
}

int SavepointRollback(handlerton*, THD* thd, void* savepoint) {
  Transaction::Mark mark;
  memcpy(&mark, savepoint, sizeof mark);
  if (Transaction* transaction = Transaction::Find(thd); transaction != nullptr) transaction->RollbackTo(mark);
  return 0;
}

int SavepointRelease(handlerton*, THD*, void*) { return 0; }

bool SavepointCanReleaseMdl(handlerton*, THD*) { return true; }

int CloseConnection(handlerton*, THD* thd) {
  // Nothing is released: the transaction may live on as a prepared one.
  Transaction::Destroy(thd);
  return 0;
}

// Called by the session that kills, with the killed one's locks.
void WakeKilled(handlerton*, THD*, enum thd_kill_levels) {
  StoreDirectory* const directory = Directory();
  if (directory == nullptr) return;
  // Without memory it sees when its own wait ends.
  (void)OrOutOfMemory([directory] { directory->WakeWaiters(); });
}

}  // namespace

// Not thd_kill_level: that may do work for other sessions, and here locks of the store may be held.
bool KillCheck::IsCancelled() const { return thd_->killed != NOT_KILLED && thd_->killed != ABORT_QUERY; }

Transaction* Transaction::Find(THD* thd) { return static_cast<Transaction*>(thd_get_ha_data(thd, QuarryHandlerton())); }

Transaction* Transaction::Of(THD* thd) {
  Transaction* transaction = Find(thd);
  if (transaction != nullptr) return transaction;
  try {
    transaction = new Transaction(thd);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  thd_set_ha_data(thd, QuarryHandlerton(), transaction);
  return transaction;
}

void Transaction::Destroy(THD* thd) {
  delete Find(thd);
  thd_set_ha_data(thd, QuarryHandlerton(), nullptr);
}

void Transaction::Join(THD* thd) {
  handlerton* hton = QuarryHandlerton();
  if (!StatementRegistered(thd, hton)) {
    statement_ = SetMark();
    trans_register_ha(thd, false, hton, 0);
    if (InMultiStatementTransaction(thd) && !TransactionRegistered(thd, hton)) {
      trans_register_ha(thd, true, hton, 0);
      const Mark nothing;
      if (WSREP(thd)) JoinSavepoints(thd, hton, &nothing, sizeof nothing);
    }
  }
  ClearReadWrite(thd, hton);
}

void Transaction::JoinWhereSavepointsAre(THD* thd) {
  if (!WSREP(thd) || thd->transaction->savepoints == nullptr) return;
  if (Transaction* transaction = Of(thd); transaction != nullptr) transaction->Join(thd);
}

Status Transaction::Sync() {
  if (unsynced_.empty()) return Status::Ok();
  return OrOutOfMemory([this] { return Directory()->Sync(unsynced_); });
}

Status Transaction::SyncAndPrepare(THD* thd) {
  Directory()->StartSync(&unsynced_);
  const bool prepared = PrepareInInnodb(thd, appended_);
  Status status = Sync();
  if (status.ok()) {
    if (prepared) plugin_counters.commits_prepared.fetch_add(1, std::memory_order_relaxed);
    is_prepared_ = prepared;  // if InnoDB refused: its commit comes after the flush, as ever
  } else if (prepared) {
    RollbackInInnodb(thd);
  }
  return status;
}

void Transaction::OnCommit(THD* thd, bool all) {
  if (!all && InMultiStatementTransaction(thd)) return;
  if (std::exchange(is_prepared_, false)) CommitInInnodb(thd);
  SyncLate();
  for (const Locator& locator : replaced_) Directory()->Release(locator);
  Clear();
}

// The hook before the commit decision has flushed everything; should a server commit without asking it, the values are
// made durable now.
void Transaction::SyncLate() {
  if (unsynced_.empty()) return;
  const Status status = Sync();
  LogError(
      "a transaction was committed before its values were flushed, which the server should have "
      "asked for; %s%s",
      status.ok() ? "they are flushed now" : "flushing them failed: ", status.ok() ? "" : status.ToString().c_str());
}

void Transaction::OnRollback(THD* thd, bool all) {
  if (!all && InMultiStatementTransaction(thd)) {
    RollbackTo(statement_);
    return;
  }
  // The server gave up a commit behind our hook: nobody may find it committed after a crash.
  if (std::exchange(is_prepared_, false)) RollbackInInnodb(thd);
  for (const Locator& locator : appended_) Directory()->Release(locator);
  Clear();
}

void Transaction::RollbackTo(const Mark& mark) {
  for (size_t i = mark.appended; i < appended_.size(); ++i) Directory()->Release(appended_[i]);
  appended_.resize(std::min(mark.appended, appended_.size()));
  replaced_.resize(std::min(mark.replaced, replaced_.size()));
}

void Transaction::Clear() {
  unsynced_.Clear();
  appended_.clear();
  replaced_.clear();
  if (appended_.capacity() > 4096) appended_.shrink_to_fit();
  if (replaced_.capacity() > 4096) replaced_.shrink_to_fit();
  statement_ = Mark();
}

void SetTransactionHooks(handlerton* hton) {
  hton->savepoint_offset = sizeof(Transaction::Mark);
  hton->savepoint_set = SavepointSet;
  hton->savepoint_rollback = SavepointRollback;
  hton->savepoint_rollback_can_release_mdl = SavepointCanReleaseMdl;
  hton->savepoint_release = SavepointRelease;
  hton->commit = Commit;
  hton->rollback = Rollback;
  hton->close_connection = CloseConnection;
  hton->kill_query = WakeKilled;
  hton->prepare_commit_versioned = PrepareCommit;
}

void SetPrepareHook(handlerton* hton) { hton->prepare = PrepareXa; }

}  // namespace quarry
