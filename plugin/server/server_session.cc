// See server_session.h.
#include "server/server_session.h"

#include <mysql.h>
#include <mysql/service_sql.h>

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
  connection_ = mysql_init(nullptr);
  if (connection_ == nullptr || !ConnectInside(connection_)) {
    Close();
    return Status::Unavailable("no session of Quarry's own");
  }
  for (const char* const setting : kSettings) {
    if (Status status = Run(setting); !status.ok()) {
      Close();
      return status;
    }
  }
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
  MYSQL_RES* const result = mysql_store_result(connection_);
  if (result == nullptr) return Status::Unavailable("'" + query + "': no result: " + mysql_error(connection_));
  QueryRows rows = ReadRows(result);
  mysql_free_result(result);
  return rows;
}

unsigned ServerSession::error_number() const { return mysql_errno(connection_); }

}  // namespace quarry
