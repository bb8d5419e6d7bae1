// See visible_stores.h.
#include "engine/visible_stores.h"

#include <sql_acl.h>
#include <sql_parse.h>
#include <sql_show.h>

#include "server/privileges.h"
#include "server/running_engine.h"
#include "server/server_query.h"

namespace quarry {
namespace {

constexpr const char* kUnbound = "UNBOUND";
/// A dropped store waits for its space to be given back; its old name may be another table's by now.
constexpr const char* kDropped = "DROPPED";

bool MaySee(THD* thd, const TableName& name) {
  TABLE_LIST table;
  const LEX_CSTRING database = {name.database.c_str(), name.database.size()};
  const LEX_CSTRING table_name = {name.table.c_str(), name.table.size()};
  table.init_one_table(&database, &table_name, nullptr, TL_READ);
  // Any right on the schema will do, as for INFORMATION_SCHEMA.TABLES; else any on the table or a column of it.
  check_access(thd, SELECT_ACL, database.str, &table.grant.privilege, nullptr, false, true);
  return (table.grant.privilege & TABLE_ACLS) != NO_ACL || !check_grant(thd, TABLE_ACLS, &table, true, 1, true);
}

/// What the names that InnoDB knows make of it.
VisibleStore Named(const StoreStats& bound, const std::optional<InnodbNameMap>& innodb_names) {
  std::string path = bound.table_name;
  const char* state = bound.rebinding ? "REBINDING" : "BOUND";
  if (innodb_names) {
    auto known = innodb_names->find(bound.table.value);
    if (known == innodb_names->end()) known = innodb_names->find(bound.rebound_to.value);
    if (known != innodb_names->end()) {
      path = known->second;
    } else if (bound.table == TableId{} && !bound.discarded) {
      state = kUnbound;
    } else if (!bound.rebinding) {
      state = kDropped;
    }
  }
  return {bound, SplitChildName(path), state};
}

}  // namespace

std::optional<InnodbNameMap> InnodbNames() {
  const Result<QueryRows> rows = QueryAside("SELECT TABLE_ID, NAME FROM INFORMATION_SCHEMA.INNODB_SYS_TABLES");
  if (!rows.ok()) return std::nullopt;
  InnodbNameMap names;
  for (const auto& row : *rows) {
    if (row[0] && row[1]) names.emplace(strtoull(row[0]->c_str(), nullptr, 10), *row[1]);
  }
  return names;
}

bool ForEachVisibleStore(THD* thd, const std::function<bool(const VisibleStore&)>& visit) {
  // The engine may have refused to start while this table is there all the same.
  if (Directory() == nullptr) return false;
  const std::vector<StoreStats> stores = Directory()->ListBindings();
  if (stores.empty()) return false;
  const std::optional<InnodbNameMap> innodb_names = InnodbNames();
  const bool sees_all = MayProcess(thd);
  for (const StoreStats& bound : stores) {
    const VisibleStore store = Named(bound, innodb_names);
    const bool is_a_tables = store.state != kDropped && store.state != kUnbound;
    if (!sees_all && (!is_a_tables || !MaySee(thd, store.name))) continue;
    if (visit(store)) return true;
  }
  return false;
}

}  // namespace quarry
