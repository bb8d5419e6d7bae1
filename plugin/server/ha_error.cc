// See ha_error.h.
#include "server/ha_error.h"

#include "quarry/memory_guard.h"
#include "server/error_log.h"

#include <sql_show.h>

namespace quarry {
namespace {

struct Mapping {
  int handler_error;  ///< for the server's own decisions
  int sql_error;      ///< for the client
  bool log;           ///< an operator must act, or would want to know later
};

Mapping Map(StatusCode code, Action action) {
  const bool reading = action == Action::kRead || action == Action::kOpen;
  switch (code) {
    case StatusCode::kOk:
      return {0, 0, false};
    case StatusCode::kNoSpace:
      // What InnoDB returns for DB_OUT_OF_FILE_SPACE. The statement is rolled back; the log says which disk.
      return {HA_ERR_RECORD_FILE_FULL, ER_RECORD_FILE_FULL, true};
    case StatusCode::kCorruption:
    case StatusCode::kNotFound:
    case StatusCode::kForeign:
      // One value is unreadable. Nothing marks the table crashed: every other row is as good as before.
      return {HA_ERR_CRASHED, ER_GET_ERRMSG, true};
    case StatusCode::kIoError:
      return {HA_ERR_INTERNAL_ERROR, reading ? ER_ERROR_ON_READ : ER_ERROR_ON_WRITE, true};
    case StatusCode::kPoisoned:
      // An earlier flush failed, so this transaction's bytes may be lost: it rolls back, the next one uses a new file.
      return {HA_ERR_INTERNAL_ERROR, ER_ERROR_ON_WRITE, true};
    case StatusCode::kUnavailable:
      // A data path is not mounted. Comes back with it; nothing is lost.
      return {HA_ERR_TABLESPACE_MISSING, ER_GET_ERRMSG, true};
    case StatusCode::kKeyUnavailable:
      // As InnoDB says of a tablespace that it cannot decrypt. Comes back with the key; nothing is lost.
      return {HA_ERR_DECRYPTION_FAILED, ER_GET_ERRMSG, true};
    case StatusCode::kNotSupported:
      // Written by a newer Quarry, or a server whose memory layout is not the one that was built for.
      return {HA_ERR_UNSUPPORTED, ER_GET_ERRMSG, true};
    case StatusCode::kOutOfMemory:
      // Of this value, or for a moment. InnoDB and the server say the same.
      return {HA_ERR_OUT_OF_MEM, ER_OUT_OF_RESOURCES, true};
    case StatusCode::kAlreadyExists:
      return {HA_ERR_TABLE_EXIST, ER_GET_ERRMSG, false};
    case StatusCode::kCancelled:
      return {HA_ERR_ABORTED_BY_USER, ER_QUERY_INTERRUPTED, false};
    case StatusCode::kInvalidArgument:
      // The statement asked for something that is not allowed: the user's to change, not the operator's.
      return {HA_ERR_GENERIC, ER_GET_ERRMSG, false};
  }
  return {HA_ERR_INTERNAL_ERROR, ER_GET_ERRMSG, true};
}

const char* ActionText(Action action) {
  switch (action) {
    case Action::kRead:
      return "read from";
    case Action::kAppend:
      return "write to";
    case Action::kSync:
      return "make durable what was written to";
    case Action::kOpen:
      return "open";
    case Action::kCreate:
      return "create";
    case Action::kRename:
      return "rename";
    case Action::kDrop:
      return "drop";
    case Action::kRebuild:
      return "rebuild";
    case Action::kAlter:
      return "alter";
  }
  return "use";
}

/// The statement in which this thread last sent an error of Quarry's own. A statement stays on one thread.
thread_local query_id_t reported_query = 0;

/// A value that cannot be read may be asked for again and again: the log gets one line for a run of equal messages.
void LogOnce(const std::string& message) {
  static std::mutex mutex;
  static std::string last_message;
  const std::lock_guard lock(mutex);
  if (message == last_message) return;
  last_message = message;
  LogError("%s", message.c_str());
}

int Report(const Status& status, Action action, const std::string& subject) {
  const Mapping mapping = Map(status.code(), action);
  const std::string message =
      std::string("Quarry could not ") + ActionText(action) + " " + subject + ": " + status.ToString();
  my_printf_error(static_cast<uint>(mapping.sql_error), "%s", MYF(0), message.c_str());
  MarkReported(current_thd);
  if (mapping.log) LogOnce(message);
  return mapping.handler_error;
}

/// "./db/t#P#p0" as "table `db`.`t#P#p0`", each name in the character set of people.
std::string SubjectOfPath(const char* path) {
  std::string_view rest(path);
  const size_t slash = rest.rfind('/');
  if (slash == std::string_view::npos) return "table '" + std::string(rest) + "'";
  const std::string table(rest.substr(slash + 1));
  std::string_view directory = rest.substr(0, slash);
  const size_t parent = directory.rfind('/');
  const std::string database(parent == std::string_view::npos ? directory : directory.substr(parent + 1));
  char table_name[NAME_LEN + 1];
  char database_name[NAME_LEN + 1];
  filename_to_tablename(table.c_str(), table_name, sizeof(table_name), true);
  filename_to_tablename(database.c_str(), database_name, sizeof(database_name), true);
  return "table `" + std::string(database_name) + "`.`" + table_name + "`";
}

}  // namespace

int ReportStatus(const Status& status, Action action, const TABLE_SHARE* share) {
  return Guarded([&] {
    if (share == nullptr) return Report(status, action, "a table");
    const std::string database(share->db.str, share->db.length);
    const std::string table(share->table_name.str, share->table_name.length);
    return Report(status, action, "table `" + database + "`.`" + table + "`");
  });
}

int ReportStatus(const Status& status, Action action, const char* table_name) {
  return Guarded([&] { return Report(status, action, SubjectOfPath(table_name)); });
}

int ReportOutOfMemory() {
  times_out_of_memory.fetch_add(1, std::memory_order_relaxed);
  my_error(ER_OUT_OF_RESOURCES, MYF(0));
  MarkReported(current_thd);
  return HA_ERR_OUT_OF_MEM;
}

void MarkReported(THD* thd) {
  if (thd != nullptr) reported_query = thd->query_id;
}

bool IsReported(THD* thd, int handler_error) {
  return handler_error != 0 && thd != nullptr && thd->is_error() && reported_query == thd->query_id;
}

}  // namespace quarry
