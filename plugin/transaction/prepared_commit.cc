// See prepared_commit.h.
#include "transaction/prepared_commit.h"

#include <array>

#include "quarry/memory_guard.h"
#include "server/child_handler.h"
#include "server/error_log.h"
#include "server/innodb_variables.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"
#include "server/server_session.h"
#include "server/variables.h"

#include <sql_parse.h>
#include <wsrep_mysqld.h>

namespace quarry {
namespace {

std::atomic<const unsigned long*> flush_log_at_trx_commit{nullptr};
/// Set before the first statement, or by INSTALL.
std::atomic<bool> is_forced{false};

constexpr size_t kXidPartBytes = kCommitRecordSizeBytes / 2;
static_assert(kCommitRecordSizeBytes == XIDDATASIZE);
static_assert(kXidPartBytes == MAXGTRIDSIZE);
static_assert(kXidPartBytes == MAXBQUALSIZE);

/// The engines of what is about to be committed: all of the transaction, or the statement when that is all there is.
const Ha_trx_info* EnginesOf(THD* thd) {
  const THD_TRANS& all = thd->transaction->all;
  return all.ha_list != nullptr ? all.ha_list : thd->transaction->stmt.ha_list;
}

bool OnlyInnodbBesides(THD* thd, const handlerton* innodb) {
  bool innodb_writes = false;
  for (const Ha_trx_info* engine = EnginesOf(thd); engine != nullptr; engine = engine->next()) {
    if (engine->ht() == innodb) {
      innodb_writes = engine->is_trx_read_write();
    } else if (engine->ht() != QuarryHandlerton()) {
      return false;
    }
  }
  return innodb_writes;
}

bool HasCoordinator(THD* thd) {
  return WSREP_ON || !thd->wsrep_xid.is_null() || thd->transaction->xid_state.is_explicit_XA() || thd->slave_thread ||
         thd->rgi_slave != nullptr || thd->wait_for_commit_ptr != nullptr;
}

bool IsDdl(const THD* thd) {
  return (sql_command_flags[thd->lex->sql_command] & (CF_AUTO_COMMIT_TRANS | CF_SCHEMA_CHANGE)) != 0;
}

/// A transaction that a crash left prepared under a commit record, as XA RECOVER shows it.
struct Prepared {
  std::string xid;  ///< as XA COMMIT wants it
  Result<CommitRecord> record = CommitRecord();
};

/// A literal of SQL: X'51...'.
std::string Hex(std::string_view bytes) {
  std::string digits(2 * bytes.size() + 1, '\0');
  digits.resize(static_cast<size_t>(octet2hex(digits.data(), bytes.data(), bytes.size()) - digits.data()));
  return "X'" + digits + "'";
}

Result<std::vector<Prepared>> FindPrepared(ServerSession* session) {
  QUARRY_TRY_ASSIGN(const QueryRows rows, session->Query("XA RECOVER FORMAT='RAW'"));
  std::vector<Prepared> found;
  const std::string size = std::to_string(kXidPartBytes);
  for (const auto& row : rows) {
    if (row.size() != 4 || row[0] != std::to_string(kCommitRecordFormatId)) continue;
    if (row[1] != size || row[2] != size || !row[3] || row[3]->size() != kCommitRecordSizeBytes) continue;
    const std::string_view data = *row[3];
    Prepared prepared;
    prepared.xid = Hex(data.substr(0, kXidPartBytes)) + "," + Hex(data.substr(kXidPartBytes)) + "," + *row[0];
    prepared.record = DecodeCommitRecord({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    found.push_back(std::move(prepared));
  }
  return found;
}

Status Decide(ServerSession* session, const Prepared& prepared) {
  QUARRY_TRY(prepared.record.status());
  QUARRY_TRY_ASSIGN(const bool is_committed, Directory()->HoldsDurably(*prepared.record));
  QUARRY_TRY(session->Run((is_committed ? "XA COMMIT " : "XA ROLLBACK ") + prepared.xid));
  auto& counter = is_committed ? plugin_counters.prepared_committed : plugin_counters.prepared_rolled_back;
  counter.fetch_add(1, std::memory_order_relaxed);
  return Status::Ok();
}

bool ReportUnasked(const Status& status) {
  LogError(
      "the server does not say which transactions a crash left undecided; rows of theirs, if there are any, "
      "stay locked until the next start: %s",
      status.ToString().c_str());
  return false;
}

bool DecideHere() {
  ServerSession session;
  Status status = session.Open();
  if (!status.ok()) return ReportUnasked(status);
  const Result<std::vector<Prepared>> found = FindPrepared(&session);
  if (!found.ok()) return ReportUnasked(found.status());
  if (found->empty()) return true;
  bool all_decided = true;
  for (const Prepared& prepared : *found) {
    if (status = Decide(&session, prepared); status.ok()) continue;
    all_decided = false;
    plugin_counters.prepared_undecided.fetch_add(1, std::memory_order_relaxed);
    LogError(
        "a transaction that was committing when the server died cannot be decided, its rows stay locked: "
        "%s. Mend that and restart; or decide by hand (XA COMMIT or XA ROLLBACK %s): committed, its values "
        "may be missing",
        status.ToString().c_str(), prepared.xid.c_str());
  }
  LogInformation(
      "of %zu transactions that were committing when the server died, %llu are committed and %llu "
      "rolled back",
      found->size(), static_cast<unsigned long long>(plugin_counters.prepared_committed.load()),
      static_cast<unsigned long long>(plugin_counters.prepared_rolled_back.load()));
  return all_decided;
}

}  // namespace

void AdoptInnodbFlushing(const handlerton* innodb_hton) {
  flush_log_at_trx_commit.store(FindInnodbVariable(innodb_hton, "flush_log_at_trx_commit"), std::memory_order_release);
}

void NoteLoadOption() {
  const st_plugin_int* const plugin = hton2plugin[QuarryHandlerton()->slot];
  is_forced =
      plugin != nullptr && (plugin->load_option == PLUGIN_FORCE || plugin->load_option == PLUGIN_FORCE_PLUS_PERMANENT);
  if (is_forced || !ParallelFlush()) return;
  LogInformation(
      "the engine was not loaded with quarry=FORCE, so commits flush their values first and the redo log then "
      "(quarry_parallel_flush does not act)");
}

bool IsForced() { return is_forced; }

bool ParallelFlushActs() {
  const unsigned long* const flushing = flush_log_at_trx_commit.load(std::memory_order_acquire);
  // With 0 or 2 the redo log is not flushed at a commit; with 3 it would be flushed again.
  return is_forced && ParallelFlush() && flushing != nullptr && ReadInnodbVariable(flushing) == 1 && !WSREP_ON;
}

bool CommitsPrepared(THD* thd, std::span<const Locator> extents) {
  if (!ParallelFlushActs() || !FitsCommitRecord(extents)) return false;
  const handlerton* const innodb = InnodbHandlerton();
  return !HasCoordinator(thd) && !IsDdl(thd) && OnlyInnodbBesides(thd, innodb) && innodb->prepare != nullptr &&
         innodb->prepare_commit_versioned != nullptr && innodb->commit_ordered != nullptr &&
         innodb->flush_logs != nullptr;
}

bool PrepareInInnodb(THD* thd, std::span<const Locator> extents) {
  const Result<CommitRecord> named = OrOutOfMemory([&] { return Directory()->DescribeCommit(extents); });
  if (!named.ok()) return false;  // the flush, which comes next, says what is wrong
  std::array<uint8_t, kCommitRecordSizeBytes> record{};
  EncodeCommitRecord(*named, record);
  // InnoDB asks the session for the XID. The server's own, by which it tells transactions in the binary log, comes back
  // before anybody else looks.
  XID& xid = thd->transaction->implicit_xid;
  const XID servers = xid;
  const auto* const bytes = reinterpret_cast<const char*>(record.data());
  xid.set(kCommitRecordFormatId, bytes, kXidPartBytes, bytes + kXidPartBytes, kXidPartBytes);
  handlerton* const innodb = InnodbHandlerton();
  const int error = innodb->prepare(innodb, thd, true);
  xid = servers;
  return error == 0;
}

void CommitInInnodb(THD* thd) {
  handlerton* const innodb = InnodbHandlerton();
  // What is committed already must not be told so once more: InnoDB would take it for the next transaction.
  if (!StatementRegistered(thd, innodb) && !TransactionRegistered(thd, innodb)) return;
  innodb->commit_ordered(innodb, thd, true);
}

void RollbackInInnodb(THD* thd) {
  handlerton* const innodb = InnodbHandlerton();
  innodb->rollback(innodb, thd, true);
  innodb->flush_logs(innodb);
}

bool DecidePreparedCommits() {
  bool all_decided = false;
  const Status status = OrOutOfMemory([&all_decided] {
    // The service would run its statements inside those of a session that this thread may have (INSTALL).
    if (!RunAside([&all_decided] { all_decided = DecideHere(); })) {
      (void)ReportUnasked(Status::Unavailable("no thread, or no memory, for a session of Quarry's own"));
    }
  });
  return status.ok() && all_decided;
}

}  // namespace quarry
