// See server_query.h.
#include "server/server_query.h"

#include <system_error>
#include <thread>

#include <mysql.h>
#include <mysql/service_sql.h>

namespace quarry {

namespace {

/// The service keeps its session's THD in the protocol object that it hangs on the connection (Protocol_local in
/// sql_prepare.cc, whose first base is Protocol).
struct SessionProtocol : Protocol {
  static THD* SessionOf(MYSQL* connection) { return static_cast<Protocol*>(connection->thd)->*(&SessionProtocol::thd); }
};

}  // namespace

bool ConnectInside(MYSQL* connection) {
  if (mysql_real_connect_local(connection) == nullptr) return false;
  SessionProtocol::SessionOf(connection)->variables.option_bits |= OPTION_LOG_OFF;
  return true;
}

QueryRows ReadRows(MYSQL_RES* result) {
  QueryRows rows;
  const unsigned field_count = mysql_num_fields(result);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* const lengths = mysql_fetch_lengths(result);
    std::vector<std::optional<std::string>>& texts = rows.emplace_back(field_count);
    for (unsigned i = 0; i < field_count; i++) {
      if (row[i] != nullptr) texts[i].emplace(row[i], lengths[i]);
    }
  }
  return rows;
}

namespace {

Result<QueryRows> QueryOn(MYSQL* connection, const std::string& query) {
  if (!ConnectInside(connection) || mysql_real_query(connection, query.c_str(), query.size()) != 0) {
    return Status::Unavailable("the server did not answer '" + query + "': " + mysql_error(connection));
  }
  MYSQL_RES* const result = mysql_store_result(connection);
  if (result == nullptr) {
    return Status::Unavailable("the server sent no result for '" + query + "': " + mysql_error(connection));
  }
  QueryRows rows = ReadRows(result);
  mysql_free_result(result);
  return rows;
}

}  // namespace

Result<QueryRows> QueryHere(const std::string& query) {
  MYSQL* const connection = mysql_init(nullptr);
  if (connection == nullptr) return Status::Unavailable("no memory for a session of Quarry's own");
  Result<QueryRows> rows = QueryOn(connection, query);
  mysql_close(connection);
  return rows;
}

Result<QueryRows> QueryAside(const std::string& query) {
  Result<QueryRows> rows = Status::Unavailable("no thread for a session of Quarry's own");
  (void)RunAside([&rows, &query] { rows = QueryHere(query); });  // else rows says so already
  return rows;
}

bool RunAside(const std::function<void()>& work) {
  bool ran = false;
  try {
    std::thread([&] {
      if (my_thread_init() != 0) return;
      work();
      ran = true;
      my_thread_end();
    }).join();
  } catch (const std::system_error&) {
    return false;  // the system has no thread to give
  }
  return ran;
}

}  // namespace quarry
