// See server_session.h.
#include "server/server_session.h"

#include <mysql.h>
#include <mysql/service_sql.h>

#include "quarry/memory_guard.h"

namespace quarry {

namespace {
constexpr const char* kSettings[] = {
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = '', sql_select_limit = DEFAULT, sql_big_selects = 1, sql_safe_updates = 0, "
    "max_statement_time = 0, lock_wait_timeout = 1, autocommit = 1, "
    "tx_isolation = 'REPEATABLE-READ', system_versioning_asof = DEFAULT",
    "SET SESSION sql_select_limit = 18446744073709551615",
};
}  // namespace

Status ServerSession::Open() {
  Status status = OrOutOfMemory([this] { return Connect(); });
  if (!status.ok()) Close();
  return status;
}

Status ServerSession::Connect() {
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr || !ConnectInside(connection_)) return Status::Unavailable("no session of Quarry's own");
  for (const char* const setting : kSettings) QUARRY_TRY(Run(setting));
  return Status::Ok();
}

void ServerSession::Close() {
  if (connection_ != nullptr) mysql_close(connection_);
  connection_ = nullptr;
}

Status ServerSession::Run(const std::string& statement) {
  if (mysql_real_query(connection_, statement.c_str(), statement.size()) == 0) return Status::Ok();
  return Status::Unavailable("'" + statement + "': " + mysql_error(connection_));
}

Result<QueryRows> ServerSession::Query(const std::string& query) {
  QUARRY_TRY(Run(query));
  std::optional<QueryRows> rows = ReadRows(connection_);
  if (rows) return *std::move(rows);
  return Status::Unavailable("'" + query + "': no result: " + mysql_error(connection_));
}

unsigned ServerSession::error_number() const { return mysql_errno(connection_); }

}  // namespace quarry
