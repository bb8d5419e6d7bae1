// The columns of QUARRY tables that a session may see, one table after the other: what QUARRY_COLUMNS and QUARRY_VALUES
// list. The server's own get_all_tables() visits the tables, as for INFORMATION_SCHEMA.COLUMNS: only what the user may
// see and what the WHERE clause can match. It opens each table's definition (not the table) under a metadata lock.
// Thread-safety: for the session's own thread.
#pragma once

#include "server/ha_error.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// get_all_tables() calls it for each table; `open_failed`: its definition could not be opened.
using ProcessVisited = int (*)(THD* thd, TABLE_LIST* visited, TABLE* target, bool open_failed,
                               const LEX_CSTRING* database, const LEX_CSTRING* name);

/// For the init of a table whose first two fields are the schema and the name of the visited table. `process` throws
/// nothing.
int InitVisitingTable(void* raw_schema_table, ST_FIELD_INFO* fields, ProcessVisited process);
/// The same with a guard around `kProcess`.
template <ProcessVisited kProcess>
int InitVisitingTable(void* raw_schema_table, ST_FIELD_INFO* fields) {
  return InitVisitingTable(raw_schema_table, fields,
                           [](THD* thd, TABLE_LIST* visited, TABLE* target, bool open_failed,
                              const LEX_CSTRING* database, const LEX_CSTRING* name) {
                             return Guarded(
                                 1, [&] { return kProcess(thd, visited, target, open_failed, database, name); });
                           });
}

/// For the beginning of a ProcessVisited. True: it is a QUARRY table, and its grants are in `visited`. An error of
/// opening it becomes a warning.
[[nodiscard]] bool IsVisitedQuarryTable(THD* thd, TABLE_LIST* visited, bool open_failed, const LEX_CSTRING& database);

/// As INFORMATION_SCHEMA.COLUMNS decides it: by the grants on the table and on each column.
[[nodiscard]] bool MaySeeColumn(THD* thd, TABLE_LIST* visited, const LEX_CSTRING& database, const LEX_CSTRING& name,
                                const Field* column);

}  // namespace quarry
