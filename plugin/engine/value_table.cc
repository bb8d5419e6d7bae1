// See value_table.h.
#include "engine/value_table.h"

#include "columns/column_options.h"
#include "engine/row_sampler.h"
#include "engine/schema_table.h"
#include "engine/visible_columns.h"

namespace quarry {
namespace {

enum Index : uint {
  kSchema,
  kTable,
  kColumn,
  kSampledRows,
  kAllRows,
  kInlineValues,
  kInlineBytes,
  kStoredValues,
  kPrefixBytes,
  kParts,
  kPartBytes,
  kStoredBytes,
};

ST_FIELD_INFO fields[] = {Show::Column("TABLE_SCHEMA", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("TABLE_NAME", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("COLUMN_NAME", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("SAMPLED_ROWS", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("ALL_ROWS", Show::Varchar(kYesNoLength), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("INLINE_VALUES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("INLINE_BYTES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("STORED_VALUES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("PREFIX_BYTES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("PARTS", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("PART_BYTES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("STORED_BYTES", Show::ULonglong(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::CEnd()};

void StoreSample(Field** fields, const ColumnSample& sample) {
  StoreNumber(fields[kInlineValues], sample.inline_values);
  StoreNumber(fields[kInlineBytes], sample.inline_bytes);
  StoreNumber(fields[kStoredValues], sample.stored_values);
  StoreNumber(fields[kPrefixBytes], sample.prefix_bytes);
  StoreNumber(fields[kParts], sample.parts);
  StoreNumber(fields[kPartBytes], sample.part_bytes);
  StoreNumber(fields[kStoredBytes], sample.stored_bytes);
}

/// The managed columns that the session may see.
std::vector<const Field*> VisibleColumns(THD* thd, TABLE_LIST* visited, const LEX_CSTRING& database,
                                         const LEX_CSTRING& name) {
  std::vector<const Field*> columns;
  for (const ColumnPlan& plan : ResolveColumns(visited->table, false).columns) {
    const Field* const column = visited->table->field[plan.field_index];
    if (plan.managed() && MaySeeColumn(thd, visited, database, name, column)) columns.push_back(column);
  }
  return columns;
}

int ProcessTable(THD* thd, TABLE_LIST* visited, TABLE* target, bool open_failed, const LEX_CSTRING* database,
                 const LEX_CSTRING* name) {
  if (!IsVisitedQuarryTable(thd, visited, open_failed, *database)) return 0;
  const std::vector<const Field*> columns = VisibleColumns(thd, visited, *database, *name);
  if (columns.empty()) return 0;
  RowSampler sampler(visited->table, {{database->str, database->length}, {name->str, name->length}, ""});
  sampler.Run(thd);
  if (const Status status = sampler.status(); !status.ok()) {
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_UNKNOWN_ERROR,
                 ("The sample of " + sampler.table() + " is incomplete: " + status.ToString()).c_str());
  }
  for (const Field* column : columns) {
    restore_record(target, s->default_values);
    Field** const out = target->field;
    StoreText(out[kSchema], {database->str, database->length});
    StoreText(out[kTable], {name->str, name->length});
    StoreText(out[kColumn], {column->field_name.str, column->field_name.length});
    StoreNumber(out[kSampledRows], sampler.sample().rows);
    StoreYesNo(out[kAllRows], sampler.has_all_rows());
    const auto found = sampler.sample().columns.find(column->field_index);
    StoreSample(out, found == sampler.sample().columns.end() ? ColumnSample() : found->second);
    if (schema_table_store_record(thd, target)) return 1;
  }
  return 0;
}

}  // namespace

int InitQuarryValues(void* raw_schema_table) {
  static_assert(kSchema == 0 && kTable == 1);
  return InitVisitingTable<ProcessTable>(raw_schema_table, fields);
}

}  // namespace quarry
