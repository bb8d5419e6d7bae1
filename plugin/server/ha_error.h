// One place where a Status of the core becomes a handler error and a message for the client, and where std::bad_alloc
// does: nothing may be thrown into the server, which knows no exceptions.
// Thread-safety: reports to the THD that is the caller's own.
#pragma once

#include <new>

#include "quarry/status.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// What was being done, for the message: "Quarry could not <action> table `db`.`t`: ...".
enum class Action : uint8_t { kRead, kAppend, kSync, kOpen, kCreate, kRename, kDrop, kRebuild, kAlter };

/// Reports `status` (not ok) as an SQL error that names the table (may be nullptr: "db/t" unknown) and what the core
/// said (corruption: with store, segment and offset), also to the error log when an operator must act, and returns
/// the handler error to hand back. The server then adds no second error of its own: handler::print_error of ha_quarry
/// must be silent for an error that was reported here (see IsReported).
int ReportStatus(const Status& status, Action action, const TABLE_SHARE* share);
/// The same where there is no open table: `table_name` is "db/t" or a path as the server hands it.
int ReportStatus(const Status& status, Action action, const char* table_name);

/// Reports that there was no memory, for which it needs none. Returns HA_ERR_OUT_OF_MEM.
int ReportOutOfMemory();

/// What the server calls is `entry`, guarded: its answer, or, when it finds no memory, `failed`, which is reported.
template <typename Answer, typename Entry>
Answer Guarded(Answer failed, const Entry& entry) {
  try {
    return entry();
  } catch (const std::bad_alloc&) {
    (void)ReportOutOfMemory();
    return failed;
  }
}
/// The same for what answers with a handler error.
template <typename Entry>
int Guarded(const Entry& entry) {
  return Guarded<int>(HA_ERR_OUT_OF_MEM, entry);
}

/// The same for the function of a status variable: `fill_in` gives `variable` its values, or it says that there was no
/// memory.
template <typename FillIn>
void FillInGuarded(st_mysql_show_var* variable, const FillIn& fill_in) {
  try {
    fill_in();
  } catch (const std::bad_alloc&) {
    variable->type = SHOW_CHAR;
    variable->value = const_cast<char*>("out of memory");
  }
}

/// An error of Quarry's own, sent otherwise than by ReportStatus, is what the statement fails with.
void MarkReported(THD* thd);
/// True when Quarry itself has sent the client an error in this statement. What InnoDB has sent does not count: the
/// server adds its own words to that, as it does for an InnoDB table (which foreign key, which duplicate).
bool IsReported(THD* thd, int handler_error);

}  // namespace quarry
