// What the plugin's INFORMATION_SCHEMA tables store their columns with. Thread-safety: as the table's.
#pragma once

#include <string_view>

#include "server/ha_error.h"
#include "server/mariadb_compat.h"
#include "server/session_time.h"

namespace quarry {

/// For the init of a table that `kFill` fills whole.
template <int (*kFill)(THD*, TABLE_LIST*, COND*)>
int InitSchemaTable(void* raw_schema_table, ST_FIELD_INFO* fields) {
  auto* const schema_table = static_cast<ST_SCHEMA_TABLE*>(raw_schema_table);
  schema_table->fields_info = fields;
  schema_table->fill_table = [](THD* thd, TABLE_LIST* list, COND* condition) {
    return Guarded(1, [&] { return kFill(thd, list, condition); });
  };
  return 0;
}

inline void StoreText(Field* field, std::string_view text) {
  field->set_notnull();
  field->store(text.data(), text.size(), system_charset_info);
}

inline void StoreNumber(Field* field, uint64_t number) {
  field->set_notnull();
  field->store(static_cast<longlong>(number), true);
}

constexpr uint kYesNoLength = 3;
inline void StoreYesNo(Field* field, bool yes) { StoreText(field, yes ? "YES" : "NO"); }

/// A DATETIME column.
inline void StoreTime(Field* field, THD* thd, uint64_t utc_seconds) {
  MYSQL_TIME time = SessionTime(thd, utc_seconds);
  field->set_notnull();
  field->store_time(&time);
}

}  // namespace quarry
