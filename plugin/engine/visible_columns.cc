// See visible_columns.h.
#include "engine/visible_columns.h"

#include <sql_acl.h>
#include <sql_i_s.h>
#include <sql_parse.h>
#include <sql_show.h>

#include "server/running_engine.h"

namespace quarry {
namespace {

/// The engine that holds the rows: of a partitioned table, that of its partitions.
const handlerton* EngineOf(const TABLE_SHARE* share) {
  if (share->default_part_plugin != nullptr) return plugin_hton(share->default_part_plugin);
  return share->db_type();
}

}  // namespace

int InitVisitingTable(void* raw_schema_table, ST_FIELD_INFO* fields, ProcessVisited process) {
  auto* const schema_table = static_cast<ST_SCHEMA_TABLE*>(raw_schema_table);
  schema_table->fields_info = fields;
  schema_table->fill_table = get_all_tables;
  schema_table->process_table = process;
  schema_table->idx_field1 = 0;
  schema_table->idx_field2 = 1;
  schema_table->i_s_requested_object = OPTIMIZE_I_S_TABLE | OPEN_TABLE_ONLY;
  return 0;
}

bool IsVisitedQuarryTable(THD* thd, TABLE_LIST* visited, bool open_failed, const LEX_CSTRING& database) {
  const TABLE* const table = visited->table;
  const bool visible = !open_failed && table != nullptr && visited->view == nullptr;
  if (!visible || QuarryHandlerton() == nullptr || EngineOf(table->s) != QuarryHandlerton()) {
    if (open_failed && thd->is_error()) {
      push_warning(thd, Sql_condition::WARN_LEVEL_WARN, thd->get_stmt_da()->sql_errno(), thd->get_stmt_da()->message());
      thd->clear_error();
    }
    return false;
  }
  check_access(thd, SELECT_ACL, database.str, &visited->grant.privilege, nullptr, false, true);
  if (table->s->tmp_table != NO_TMP_TABLE) visited->grant.privilege |= TMP_TABLE_ACLS;
  return true;
}

bool MaySeeColumn(THD* thd, TABLE_LIST* visited, const LEX_CSTRING& database, const LEX_CSTRING& name,
                  const Field* column) {
  if (column->invisible > INVISIBLE_USER) return false;
  return (get_column_grant(thd, &visited->grant, database.str, name.str, column->field_name.str) & COL_ACLS) != NO_ACL;
}

}  // namespace quarry
