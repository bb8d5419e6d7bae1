// See server_query.h.
#include "server/server_query.h"

#include <system_error>
#include <thread>

#include <mysql.h>
#include <mysql/service_sql.h>

#include "quarry/memory_guard.h"

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

namespace {

// What the service gave goes back also when memory runs out.
struct FreeResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};
struct CloseConnection {
  void operator()(MYSQL* connection) const { mysql_close(connection); }
};

}  // namespace

std::optional<QueryRows> ReadRows(MYSQL* connection) {
  const std::unique_ptr<MYSQL_RES, FreeResult> result(mysql_store_result(connection));
  if (result == nullptr) return std::nullopt;
  QueryRows rows;
  const unsigned field_count = mysql_num_fields(result.get());
  while (MYSQL_ROW row = mysql_fetch_row(result.get())) {
    const unsigned long* const lengths = mysql_fetch_lengths(result.get());
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
  std::optional<QueryRows> rows = ReadRows(connection);
  if (rows) return *std::move(rows);
  return Status::Unavailable("the server sent no result for '" + query + "': " + mysql_error(connection));
}

}  // namespace

Result<QueryRows> QueryHere(const std::string& query) {
  const std::unique_ptr<MYSQL, CloseConnection> connection(mysql_init(nullptr));
  if (connection == nullptr) return Status::Unavailable("no memory for a session of Quarry's own");
  return QueryOn(connection.get(), query);
}

Result<QueryRows> QueryAside(const std::string& query) {
  Result<QueryRows> rows = Status::Unavailable("no thread, or no memory, for a session of Quarry's own");
  (void)RunAside([&rows, &query] { rows = QueryHere(query); });  // else rows says so already
  return rows;
}

bool RunAside(const std::function<void()>& work) {
  bool ran = false;
  try {
    std::thread([&] {
      if (my_thread_init() != 0) return;
      const Status status = OrOutOfMemory([&work] { work(); });
      ran = status.ok();
      my_thread_end();
    }).join();
  } catch (const std::system_error&) {
    return false;  // the system has no thread to give
  } catch (const std::bad_alloc&) {
    return false;
  }
  return ran;
}

}  // namespace quarry
