#include "trash_sweep.h"

#include <log.h>
#include <mysql.h>
#include <mysql/service_sql.h>

#include "hton.h"

namespace quarry {

namespace {

/// Set at start, so that what a crash left behind is looked for.
std::atomic<bool> look_wanted{true};

/// One session of Quarry's own: several queries that see the same transaction.
class Session {
 public:
  using Rows = std::vector<std::vector<std::string>>;

  Session() : connection_(mysql_init(nullptr)) {}
  ~Session() {
    if (connection_ != nullptr) mysql_close(connection_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status Connect() {
    if (connection_ == nullptr || mysql_real_connect_local(connection_) == nullptr) {
      return Status::Unavailable("no session of Quarry's own");
    }
    return Status::Ok();
  }

  Status Run(const std::string& statement) {
    if (mysql_real_query(connection_, statement.c_str(), statement.size()) == 0) return Status::Ok();
    return Status::Unavailable("'" + statement + "': " + mysql_error(connection_));
  }

  Result<Rows> Query(const std::string& query) {
    QUARRY_TRY(Run(query));
    MYSQL_RES* result = mysql_store_result(connection_);
    if (result == nullptr) return Status::Unavailable("'" + query + "': no result");
    Rows rows;
    const unsigned fields = mysql_num_fields(result);
    while (MYSQL_ROW row = mysql_fetch_row(result)) {
      std::vector<std::string>& texts = rows.emplace_back();
      for (unsigned i = 0; i < fields; ++i) texts.emplace_back(row[i] == nullptr ? "" : row[i]);
    }
    mysql_free_result(result);
    return rows;
  }

 private:
  MYSQL* connection_;
};

/// Rows of INNODB_TRX beyond this and the result may have been cut off (InnoDB stops at 16 MiB).
constexpr size_t kTransactionsMax = 5000;

// LIMIT: a global sql_select_limit would cut the list short.
constexpr char kTablesQuery[] =
    "SELECT TABLE_ID, NAME FROM INFORMATION_SCHEMA.INNODB_SYS_TABLES LIMIT 18446744073709551615";
constexpr char kTransactionsQuery[] =
    "SELECT TRX_ID, TRX_STARTED, TRX_MYSQL_THREAD_ID = CONNECTION_ID() FROM INFORMATION_SCHEMA.INNODB_TRX "
    "LIMIT 18446744073709551615";
constexpr char kLsnQuery[] =
    "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS "
    "WHERE VARIABLE_NAME IN ('INNODB_LSN_CURRENT', 'INNODB_LSN_FLUSHED')";

Result<std::set<uint64_t>> ListTables(Session* session) {
  QUARRY_TRY_ASSIGN(const Session::Rows rows, session->Query(kTablesQuery));
  // InnoDB leaves out, with a warning, a table whose dictionary record it cannot read: such a list proves nothing gone.
  QUARRY_TRY_ASSIGN(const Session::Rows warnings, session->Query("SELECT @@warning_count"));
  if (warnings.size() != 1 || warnings[0][0] != "0") {
    return Status::Unavailable("InnoDB's list of tables came with warnings");
  }
  std::set<uint64_t> tables;
  int canaries = 0;
  for (const std::vector<std::string>& row : rows) {
    tables.insert(std::strtoull(row[0].c_str(), nullptr, 10));
    if (row[1] == "SYS_FOREIGN" || row[1] == "SYS_FOREIGN_COLS") ++canaries;
  }
  if (canaries != 2) return Status::Unavailable("InnoDB's list of tables lacks SYS_FOREIGN or SYS_FOREIGN_COLS");
  return tables;
}

Result<std::set<std::string>> ListTransactions(Session* session) {
  QUARRY_TRY_ASSIGN(const Session::Rows rows, session->Query(kTransactionsQuery));
  std::set<std::string> transactions;
  bool canary = false;
  for (const std::vector<std::string>& row : rows) {
    if (row[2] == "1") {
      canary = true;
    } else {
      transactions.insert(row[0] + " " + row[1]);
    }
  }
  if (!canary) return Status::Unavailable("INNODB_TRX does not show the looking session's own transaction");
  if (rows.size() > kTransactionsMax) return Status::Unavailable("too many transactions in INNODB_TRX to trust it");
  return transactions;
}

}  // namespace

void TrashSweep::Wake() { look_wanted.store(true, std::memory_order_release); }

Result<TrashSweep::Look> TrashSweep::TakeLook() {
  Session session;
  QUARRY_TRY(session.Connect());
  // A server started to rescue data shows what it can read, not what there is.
  QUARRY_TRY_ASSIGN(const Session::Rows rescue, session.Query("SELECT @@innodb_force_recovery"));
  if (rescue.size() != 1 || rescue[0][0] != "0") return Status::Unavailable("innodb_force_recovery is set");
  QUARRY_TRY(session.Run("START TRANSACTION WITH CONSISTENT SNAPSHOT"));
  Look look;
  QUARRY_TRY_ASSIGN(look.tables, ListTables(&session));
  QUARRY_TRY_ASSIGN(look.transactions, ListTransactions(&session));
  QUARRY_TRY_ASSIGN(const Session::Rows lsn, session.Query(kLsnQuery));
  for (const std::vector<std::string>& row : lsn) {
    const uint64_t value = std::strtoull(row[1].c_str(), nullptr, 10);
    (row[0] == "INNODB_LSN_CURRENT" ? look.lsn_current : look.lsn_flushed) = value;
  }
  if (look.lsn_current == 0 || look.lsn_flushed == 0) return Status::Unavailable("InnoDB does not tell its LSN");
  return look;
}

// A DROP was rolled back, by InnoDB or by a crash: the table uses its store again, even if it only reads.
Status TrashSweep::Restore(const Look& look) {
  for (const StoreStats& store : Directory()->ListStores()) {
    if (store.discarded && look.tables.count(store.table.value) != 0) {
      QUARRY_TRY(Directory()->OpenForAppend(store.table, store.table_name).status());
    }
  }
  return Status::Ok();
}

// `stores` was listed before the look: a store is made after its table, so its table would be in the look.
Status TrashSweep::Discard(const std::vector<StoreStats>& stores, const Look& look) {
  unsigned discarded = 0;
  for (const StoreStats& store : stores) {
    if (store.rebinding || look.tables.count(store.table.value) != 0) continue;
    if (!store.discarded) {
      ++discarded;
      QUARRY_TRY(Directory()->Discard(store.table, look.lsn_current));
    }
    waiting_ = true;
  }
  if (discarded > 0) sql_print_information("QUARRY: %u stores of dropped tables go to the trash", discarded);
  if (!waiting_) return Status::Ok();
  discarded_lsn_ = look.lsn_current;
  open_then_ = look.transactions;
  return Status::Ok();
}

bool TrashSweep::MayEmpty(const Look& look) const {
  if (look.lsn_flushed < discarded_lsn_) return false;
  for (const std::string& transaction : open_then_) {
    if (look.transactions.count(transaction) != 0) return false;
  }
  return true;
}

Status TrashSweep::LookOnce() {
  const std::vector<StoreStats> stores = Directory()->ListStores();
  if (stores.empty()) return Status::Ok();
  QUARRY_TRY_ASSIGN(const Look look, TakeLook());
  QUARRY_TRY(Restore(look));
  if (!waiting_) return Discard(stores, look);
  if (!MayEmpty(look)) return Status::Ok();
  waiting_ = false;
  QUARRY_TRY_ASSIGN(const uint64_t bytes, Directory()->EmptyTrash(discarded_lsn_));
  if (bytes > 0) {
    sql_print_information("QUARRY: the trash was emptied, %llu bytes given back",
                          static_cast<unsigned long long>(bytes));
  }
  // Tables dropped since the first look.
  Wake();
  return Status::Ok();
}

bool TrashSweep::Step() {
  if (!look_wanted.exchange(false, std::memory_order_acq_rel) && !waiting_) return false;
  const Status status = LookOnce();
  if (!status.ok() && !failed_before_) {
    sql_print_warning("QUARRY: stores of dropped tables are kept for now: %s", status.ToString().c_str());
  }
  failed_before_ = !status.ok();
  if (!status.ok()) Wake();
  return waiting_ || look_wanted.load(std::memory_order_acquire);
}

}  // namespace quarry
