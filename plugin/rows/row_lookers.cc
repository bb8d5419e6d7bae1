// See row_lookers.h.
#include "rows/row_lookers.h"

#include <partition_info.h>

namespace quarry {

namespace {

bool IsBlob(const Field* field) { return field->type() == MYSQL_TYPE_BLOB; }

// By field: `expression` is computed from it, through VIRTUAL columns too.
std::vector<bool> ComputedFrom(TABLE* table, Item* expression) {
  std::vector<bool> bases(table->s->fields, false);
  std::vector<my_bitmap_map> bits(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map) + 1);
  MY_BITMAP marked;
  my_bitmap_init(&marked, bits.data(), table->s->fields);
  MY_BITMAP* const saved_read_set = table->read_set;
  table->read_set = &marked;
  expression->walk(&Item::register_field_in_read_map, true, table);
  table->read_set = saved_read_set;
  for (uint i = 0; i < table->s->fields; i++) bases[i] = bitmap_is_set(&marked, i);
  my_bitmap_free(&marked);
  return bases;
}

void Add(const std::vector<bool>& bases, std::vector<bool>* all) {
  for (size_t i = 0; i < bases.size(); i++) {
    if (bases[i]) (*all)[i] = true;
  }
}

}  // namespace

void RowLookers::Attach(TABLE* table) {
  table_ = table;
  computed_from_.assign(table->s->fields, false);
  defaults_.clear();
  for (Field** field = table->vfield; field != nullptr && *field != nullptr; field++) {
    Item* const expression = (*field)->vcol_info->expr;
    if (expression != nullptr) Add(ComputedFrom(table, expression), &computed_from_);
  }
  for (Field** field = table->field; *field != nullptr; field++) {
    const Virtual_column_info* const computed = (*field)->default_value;
    if (computed == nullptr || computed->expr == nullptr) continue;
    std::vector<bool> bases = ComputedFrom(table, computed->expr);
    if (std::find(bases.begin(), bases.end(), true) == bases.end()) continue;
    defaults_.push_back({(*field)->field_index, std::move(bases)});
  }
}

void RowLookers::BeginStatement(THD* thd, bool locks_rows, bool whole_rows) {
  changes_rows_ = locks_rows && thd->lex->sql_command != SQLCOM_SELECT;
  whole_rows_ = whole_rows;
  // Replication's appliers, Galera's, and BINLOG '...' (a restore from binary logs).
  applies_events_ = locks_rows && thd->lex->is_stmt_row_injection();
  runs_triggers_ =
      applies_events_ && table_->triggers != nullptr && slave_run_triggers_for_rbr != SLAVE_RUN_TRIGGERS_FOR_RBR_NO;
  may_set_defaults_ = locks_rows && !applies_events_ && !defaults_.empty();
}

void RowLookers::BeginRow() { all_columns_ = runs_triggers_ || MovesBetweenPartitions(); }

// The partition's own handler remembers no head of another one's row. By system time a row moves when it becomes
// history, whatever the statement changes.
bool RowLookers::MovesBetweenPartitions() const {
  const partition_info* const partitions = table_->part_info;
  if (partitions == nullptr || !changes_rows_) return false;
  return partitions->part_type == VERSIONING_PARTITION ||
         bitmap_is_overlapping(&partitions->full_part_field_set, table_->write_set);
}

// Whether a statement sets a column to its DEFAULT, and not to another value, is not looked for: few tables have such
// expressions.
bool RowLookers::IsOfDefault(uint field_index) const {
  return std::any_of(defaults_.begin(), defaults_.end(), [&](const ComputedDefault& computed) {
    return computed.computed_from[field_index] && bitmap_is_set(table_->write_set, computed.field_index);
  });
}

// As THD::binlog_prepare_row_images takes columns out of the read set.
bool RowLookers::LogsBefore(uint field_index) const {
  if (!bitmap_is_set(table_->read_set, field_index)) return false;
  if (table_->s->primary_key >= MAX_KEY) return true;
  const Field* const field = table_->field[field_index];
  switch (table_->in_use->variables.binlog_row_image) {
    case BINLOG_ROW_IMAGE_MINIMAL:
      return (field->flags & PRI_KEY_FLAG) != 0;
    case BINLOG_ROW_IMAGE_NOBLOB:
      return (field->flags & PRI_KEY_FLAG) != 0 || !IsBlob(field);
    default:
      return true;
  }
}

bool RowLookers::LogsAfter(uint field_index) const {
  return table_->rpl_write_set == nullptr || bitmap_is_set(table_->rpl_write_set, field_index);
}

}  // namespace quarry
