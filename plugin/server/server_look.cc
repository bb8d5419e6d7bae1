// See server_look.h.
#include "server/server_look.h"

#include <chrono>
#include <random>
#include <thread>

#include "server/child_name.h"
#include "server/mariadb_compat.h"

#include <mysqld.h>

namespace quarry {

namespace {

/// Below InnoDB's TABLE_CACHE_INITIAL_ROWSNUM: see server_look.h.
constexpr size_t kTransactionsMax = 1000;

/// InnoDB renews its snapshot when it was not read for 0.1 s.
constexpr std::chrono::milliseconds kSnapshotIdle{110};
constexpr int kStaleMax = 4;

// LIMIT: a global sql_select_limit would cut the list short.
constexpr char kNoLimit[] = " LIMIT 18446744073709551615";

uint64_t Number(const std::optional<std::string>& text) { return text ? std::strtoull(text->c_str(), nullptr, 10) : 0; }

/// Whatever a name is made of, it stays a name.
std::string Literal(const std::string& text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return "CONVERT(X'" + hex + "' USING utf8)";
}

}  // namespace

Status ServerLook::Open() {
  is_late_ = mysqld_server_started != 0;
  std::random_device random;
  own_text_ = "quarry look " + std::to_string(random()) + "-" + std::to_string(random()) + "-";
  QUARRY_TRY(session_.Open());
  // InnoDB puts the session into its list now. One that came into it later would look like this one, and may see less.
  const Status status = InView([] { return Status::Ok(); });
  if (!status.ok()) session_.Close();
  return status;
}

Status ServerLook::BeginView() { return session_.Run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); }

void ServerLook::EndView() {
  if (!session_.is_open()) return;
  // A session that cannot even roll back is closed, which does it.
  if (!session_.Run("ROLLBACK").ok()) session_.Close();
}

// One of ours at a time: two that try again at the same pace would keep each other's snapshot from being renewed.
Result<std::vector<OpenTransaction>> ServerLook::Transactions() {
  if (is_late_) {
    return Status::Unavailable(
        "the engine's own sessions are younger than the clients', whose transactions INNODB_TRX may leave out: no "
        "space is given back until the server was restarted");
  }
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  Result<std::vector<OpenTransaction>> transactions = LookAtTransactions();
  for (int again = 1; again <= kStaleMax && !transactions.ok(); ++again) {
    // Somebody read INNODB_TRX a moment ago: the snapshot was not renewed.
    std::this_thread::sleep_for(kSnapshotIdle * again);
    transactions = LookAtTransactions();
  }
  return transactions;
}

Result<std::vector<OpenTransaction>> ServerLook::LookAtTransactions() {
  const std::string text = own_text_ + std::to_string(++looks_) + " ";
  QUARRY_TRY_ASSIGN(const QueryRows rows,
                    session_.Query("SELECT TRX_ID, TRX_MYSQL_THREAD_ID, TRX_STARTED, COALESCE(TRX_QUERY LIKE '%" +
                                   text + "%', 0) FROM INFORMATION_SCHEMA.INNODB_TRX" + kNoLimit));
  std::vector<OpenTransaction> transactions;
  int own = 0;
  for (const auto& row : rows) {
    if (row[3] == "1") {
      ++own;
    } else {
      transactions.push_back({Number(row[0]), Number(row[1]), row[2].value_or("")});
    }
  }
  if (own != 1) {
    return Status::Unavailable("INNODB_TRX does not show the looking session (who reads INNODB_TRX all the time?)");
  }
  if (rows.size() > kTransactionsMax) {
    return Status::Unavailable("there are " + std::to_string(rows.size()) +
                               " open transactions, more than INNODB_TRX can be trusted with (" +
                               std::to_string(kTransactionsMax) + ")");
  }
  return transactions;
}

Result<ServerLook::Lsn> ServerLook::ReadLsn() {
  QUARRY_TRY_ASSIGN(const QueryRows rows,
                    session_.Query("SELECT VARIABLE_NAME, VARIABLE_VALUE FROM INFORMATION_SCHEMA.GLOBAL_STATUS "
                                   "WHERE VARIABLE_NAME IN ('INNODB_LSN_CURRENT', 'INNODB_LSN_FLUSHED')"));
  Lsn lsn;
  for (const auto& row : rows) (row[0] == "INNODB_LSN_CURRENT" ? lsn.current : lsn.flushed) = Number(row[1]);
  if (lsn.current == 0 || lsn.flushed == 0) return Status::Unavailable("InnoDB does not tell its LSN");
  return lsn;
}

Result<std::map<uint64_t, std::string>> ServerLook::Tables() { return TablesWhere("TRUE"); }

Result<std::set<uint64_t>> ServerLook::TablesOf(const std::string& child_name) {
  const std::string name = Literal(child_name);
  QUARRY_TRY_ASSIGN(const auto tables, TablesWhere("LOCATE(" + name + ", NAME) = 1"));
  std::set<uint64_t> ids;
  for (const auto& [id, found] : tables) {
    if (WithoutPartition(found) == child_name) ids.insert(id);
  }
  return ids;
}

Result<std::map<uint64_t, std::string>> ServerLook::TablesWhere(const std::string& condition) {
  const std::string query = "SELECT TABLE_ID, NAME FROM INFORMATION_SCHEMA.INNODB_SYS_TABLES WHERE " + condition +
                            " OR NAME IN ('SYS_FOREIGN', 'SYS_FOREIGN_COLS')";
  QUARRY_TRY_ASSIGN(const QueryRows rows, session_.Query(query + kNoLimit));
  // InnoDB leaves out, with a warning, a table whose dictionary record it cannot read: such a list proves nothing gone.
  QUARRY_TRY_ASSIGN(const QueryRows warnings, session_.Query("SELECT @@warning_count"));
  if (warnings.size() != 1 || warnings[0][0] != "0") {
    return Status::Unavailable("InnoDB's list of tables came with warnings");
  }
  std::map<uint64_t, std::string> tables;
  int canaries = 0;
  for (const auto& row : rows) {
    tables.emplace(Number(row[0]), row[1].value_or(""));
    if (row[1] == "SYS_FOREIGN" || row[1] == "SYS_FOREIGN_COLS") ++canaries;
  }
  if (canaries != 2) return Status::Unavailable("InnoDB's list of tables lacks SYS_FOREIGN or SYS_FOREIGN_COLS");
  return tables;
}

Result<std::set<std::string>> ServerLook::QuarryTables() {
  QUARRY_TRY_ASSIGN(
      const QueryRows rows,
      session_.Query(
          std::string("SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE ENGINE='QUARRY'") +
          kNoLimit));
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(Quoted({row[0].value_or(""), row[1].value_or(""), ""}));
  return names;
}

Status ServerLook::CheckServerIsWhole() {
  // A server started to rescue data shows what it can read, not what there is.
  QUARRY_TRY_ASSIGN(const QueryRows rows, session_.Query("SELECT @@innodb_force_recovery, @@innodb_read_only"));
  if (rows.size() != 1 || rows[0][0] != "0") return Status::Unavailable("innodb_force_recovery is set");
  if (rows[0][1] != "0") return Status::Unavailable("innodb_read_only is set");
  return Status::Ok();
}

}  // namespace quarry
