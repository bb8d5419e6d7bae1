// One place where a Status of the core becomes a handler error and a message for the client.
// Thread-safety: reports to the THD that is the caller's own.
#pragma once

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

/// An error of Quarry's own, sent otherwise than by ReportStatus, is what the statement fails with.
void MarkReported(THD* thd);
/// True when Quarry itself has sent the client an error in this statement. What InnoDB has sent does not count: the
/// server adds its own words to that, as it does for an InnoDB table (which foreign key, which duplicate).
bool IsReported(THD* thd, int handler_error);

}  // namespace quarry
