// The checks of column_options.h: what CREATE refuses, and what an ALTER may do in place.
#include "columns/column_options.h"

#include "columns/encryption.h"
#include "quarry/locator.h"

#include <partition_info.h>
#include <sql_alter.h>
#include <sql_error.h>

namespace quarry {
namespace {

/// Sends what is wrong, or warns of it where the server itself would only warn. True: the statement must fail.
bool Refuse(THD* thd, const std::string& where, const Status& status) {
  const std::string message = where + ": " + status.message();
  if (thd->slave_thread || (thd->variables.sql_mode & MODE_IGNORE_BAD_TABLE_OPTIONS) != 0) {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_BAD_OPTION_VALUE, "%s", message.c_str());
    return false;
  }
  my_printf_error(ER_BAD_OPTION_VALUE, "%s", MYF(0), message.c_str());
  return true;
}

std::string Name(const Field* field) {
  return "Column '" + std::string(field->field_name.str, field->field_name.length) + "'";
}

bool CheckColumn(THD* thd, const TABLE* form, const Field* field) {
  const ColumnSettingsInput input = SettingsInput(form->s, field);
  const Status status = CheckSettings(input);
  if (!status.ok() && Refuse(thd, Name(field), status)) return true;
  const bool has_option = input.column.inline_size != nullptr || input.column.prefix_size != nullptr ||
                          input.column.part_size != nullptr || input.column.codec != nullptr;
  if ((field->flags & BLOB_FLAG) == 0 && has_option) {
    return Refuse(thd, Name(field),
                  Status::InvalidArgument("INLINE_SIZE, PREFIX_SIZE, PART_SIZE and CODEC are allowed for BLOB, TEXT "
                                          "and JSON columns only"));
  }
  return false;
}

bool IsOwnTableOption(const LEX_CSTRING& name) {
  for (const char* own : {"INLINE_SIZE", "PREFIX_SIZE", "PART_SIZE", "CODEC", "DEFAULTS"}) {
    if (name.length == strlen(own) && strncasecmp(name.str, own, name.length) == 0) return true;
  }
  return false;
}

/// The server hands a partition's own options to CREATE, but not to what opens the partition later: they would be a
/// lie. So they are allowed for the whole table only.
bool CheckPartitionOptions(THD* thd, const TABLE* form) {
  if (form->part_info == nullptr) return false;
  List_iterator_fast<partition_element> partitions(form->part_info->partitions);
  while (const partition_element* partition = partitions++) {
    for (const engine_option_value* option = partition->option_list; option != nullptr; option = option->next) {
      if (option->value.str == nullptr || !IsOwnTableOption(option->name)) continue;
      return Refuse(thd, "Partition '" + std::string(partition->partition_name) + "'",
                    Status::InvalidArgument("option '" + std::string(option->name.str, option->name.length) +
                                            "' is allowed for a whole table, not for a single partition"));
    }
  }
  return false;
}

/// The first of Quarry's options in a list that is given a value, or nullptr.
const engine_option_value* FindOwnOption(const engine_option_value* option) {
  while (option != nullptr && (option->value.str == nullptr || !IsOwnTableOption(option->name))) option = option->next;
  return option;
}

/// CREATE of a partitioned table comes here once for each partition: the client wants to read a note once.
bool AlreadySaid(THD* thd, const std::string& message) {
  Diagnostics_area::Sql_condition_iterator conditions = thd->get_stmt_da()->sql_conditions();
  while (const Sql_condition* condition = conditions++) {
    if (message == condition->get_message_text()) return true;
  }
  return false;
}

void PushNote(THD* thd, const std::string& message) {
  if (AlreadySaid(thd, message)) return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_UNKNOWN_ERROR, "%s", message.c_str());
}

/// What the user should know of columns whose options are allowed but have no effect, or a price.
std::vector<std::string> Notes(TABLE* table, bool user_temporary) {
  std::vector<std::string> notes;
  for (const ColumnPlan& plan : ResolveColumns(table, user_temporary).columns) {
    const Field* const field = table->field[plan.field_index];
    if (!plan.managed()) {
      if (plan.inline_size_source >= OptionSource::kColumnComment) {
        notes.push_back(Name(field) + " is left whole in InnoDB (" + UnmanagedReasonText(plan.reason) +
                        "): its options have no effect");
      }
    } else if (plan.head_may_leave_page) {
      const size_t longest = std::max<size_t>(plan.inline_size_bytes, plan.prefix_size_bytes + kTrailerSizeBytes);
      notes.push_back(Name(field) + ": up to " + std::to_string(longest) +
                      " bytes of it stay in the row; a row over half an InnoDB page takes InnoDB's own BLOB path");
    }
  }
  return notes;
}

bool IsUserTemporary(const HA_CREATE_INFO* create_info) {
  return (create_info->options & HA_LEX_CREATE_TMP_TABLE) != 0;
}

bool CheckOptions(THD* thd, const TABLE* form) {
  if (const Status status = CheckTableSettings(TableTexts(form->s)); !status.ok()) {
    if (Refuse(thd, "Table '" + std::string(form->s->table_name.str, form->s->table_name.length) + "'", status)) {
      return true;
    }
  }
  if (CheckPartitionOptions(thd, form)) return true;
  for (Field** field = form->field; *field != nullptr; field++) {
    if (CheckColumn(thd, form, *field)) return true;
  }
  return false;
}

/// Why a column that both tables have needs a copy, or nullptr. Lowers `prefix_limit` to what must be stated for it.
const char* CompareColumn(const ColumnPlan* old_plan, const ColumnPlan* new_plan, uint32_t* prefix_limit) {
  const bool was_managed = old_plan != nullptr && old_plan->managed();
  const bool is_managed = new_plan != nullptr && new_plan->managed();
  if (was_managed != is_managed) return "a column's values move into or out of Quarry's segments";
  if (!is_managed) return nullptr;
  const std::optional<uint32_t> limit =
      PrefixLimitForChange(old_plan->prefix_sizes(), old_plan->guaranteed_prefix_bytes, new_plan->prefix_sizes());
  if (!limit) return "an index asks for a longer prefix than every existing head is guaranteed to hold";
  *prefix_limit = std::min(*prefix_limit, *limit);
  return nullptr;
}

/// Why InnoDB cannot put the DEFAULT of a column into the rows that there are (of a new column; of one that no longer
/// may be NULL), or nullptr. It never comes through the handler, so it must be one that stays raw in any case. InnoDB
/// evaluates it again: only of a literal is it sure that what it gets is what was looked at here (RAND(1) has the flag
/// of a session's constant, and is another value each time).
const char* CheckDefault(TABLE* altered_table, const ColumnPlan* plan) {
  if (plan == nullptr || !plan->managed()) return nullptr;
  Field* const field = altered_table->field[plan->field_index];
  if (field->default_value == nullptr) return nullptr;
  const bool literal = field->default_value->expr->basic_const_item();
  if (!literal || field->set_default() != 0) return "a BLOB, TEXT or JSON column gets a DEFAULT that is no literal";
  if (field->is_null()) return nullptr;
  const auto* const blob = static_cast<const Field_blob*>(field);
  const std::span<const uint8_t> value(blob->get_ptr(), blob->get_length());
  if (EndsLikeHead(value)) return "a BLOB, TEXT or JSON column gets a DEFAULT that ends like a head";
  // As long as a copy would leave it raw, too; and no longer: InnoDB's own check of a table dies of a default that
  // does not fit into its page.
  const uint32_t raw_max_bytes = std::min(plan->inline_size_bytes, kInlineSizeDefaultBytes);
  if (value.size() < kTrailerSizeBytes || value.size() <= raw_max_bytes) return nullptr;
  return "a BLOB, TEXT or JSON column gets a DEFAULT longer than INLINE_SIZE, or than 4096 bytes";
}

}  // namespace

bool CheckCreateOptions(THD* thd, TABLE* form, const HA_CREATE_INFO* create_info) {
  if (CheckOptions(thd, form)) return true;
  for (const std::string& note : Notes(form, IsUserTemporary(create_info))) PushNote(thd, note);
  return false;
}

bool CheckAlterOptions(THD* thd, TABLE* old_table, TABLE* altered_table, bool user_temporary) {
  if (CheckOptions(thd, altered_table)) return true;
  const std::vector<std::string> known = Notes(old_table, user_temporary);
  for (const std::string& note : Notes(altered_table, user_temporary)) {
    if (std::find(known.begin(), known.end(), note) == known.end()) PushNote(thd, note);
  }
  return false;
}

bool RefuseColumnOptionsUnderPartitions(THD* thd) {
  const LEX* const lex = thd->lex;
  if (lex->sql_command != SQLCOM_CREATE_TABLE && lex->sql_command != SQLCOM_ALTER_TABLE) return false;
  if (thd->work_part_info == nullptr || (lex->alter_info.partition_flags & ALTER_PARTITION_REMOVE) != 0) return false;
  if (thd->slave_thread || (thd->variables.sql_mode & MODE_IGNORE_BAD_TABLE_OPTIONS) != 0) return false;
  List_iterator_fast<Create_field> columns(const_cast<List<Create_field>&>(lex->alter_info.create_list));
  while (const Create_field* column = columns++) {
    const engine_option_value* const option = FindOwnOption(column->option_list);
    if (option == nullptr) continue;
    my_printf_error(ER_UNKNOWN_OPTION,
                    "Column '%s': the server allows no %s behind a column under PARTITION BY (it asks the partitioning "
                    "engine); set it for the whole table, behind the closing bracket, or in the column's COMMENT "
                    "'NDB_COLUMN=BLOB_INLINE_SIZE=n,MAX_BLOB_PART_SIZE'",
                    MYF(0), column->field_name.str, option->name.str);
    return true;
  }
  return false;
}

AlterVerdict CompareForAlter(TABLE* old_table, const ColumnLayout& old_layout, TABLE* altered_table,
                             const Alter_inplace_info* alter_info, bool user_temporary) {
  ColumnLayout new_layout = ResolveColumns(altered_table, user_temporary);
  const auto copy = [](const char* reason) {
    AlterVerdict verdict;
    verdict.in_place = false;
    verdict.reason = reason;
    return verdict;
  };
  if (new_layout.any_managed() && !SameEncryption(old_table->s, altered_table->s)) {
    return copy("every value is encrypted anew, or no more");
  }
  AlterVerdict verdict;
  List_iterator_fast<Create_field> definitions(alter_info->alter_info->create_list);
  uint new_index = 0;
  while (const Create_field* definition = definitions++) {
    const Field* const old_field = definition->field;
    const Field* const new_field = altered_table->field[new_index];
    const ColumnPlan* const new_plan = new_layout.Find(new_index++);
    if (old_field == nullptr || (old_field->real_maybe_null() && !new_field->real_maybe_null())) {
      if (const char* reason = CheckDefault(altered_table, new_plan)) return copy(reason);
    }
    if (old_field == nullptr) continue;
    const ColumnPlan* const old_plan = old_layout.Find(old_field->field_index);
    if (const char* reason = CompareColumn(old_plan, new_plan, &verdict.prefix_limit_bytes)) return copy(reason);
  }
  new_layout.ApplyPrefixLimit(std::min(old_layout.prefix_limit_bytes, verdict.prefix_limit_bytes));
  verdict.must_not_rebuild = new_layout.has_older_heads();
  return verdict;
}

enum_alter_inplace_result AskForCopy(THD* thd, Alter_inplace_info* alter_info, const char* reason) {
  alter_info->unsupported_reason = reason;
  if (thd->slave_thread || thd->wsrep_applier) {
    Alter_info* request = alter_info->alter_info;
    request->set_requested_algorithm(Alter_info::ALTER_TABLE_ALGORITHM_DEFAULT);
    if (request->requested_lock == Alter_info::ALTER_TABLE_LOCK_NONE) {
      request->requested_lock = Alter_info::ALTER_TABLE_LOCK_DEFAULT;
    }
  }
  return HA_ALTER_INPLACE_NOT_SUPPORTED;
}

bool AsksForRewrite(THD* thd, const Alter_inplace_info* alter_info) {
  // InnoDB sets this flag too, among the handler's flags, when it finds that it must rebuild.
  return (alter_info->alter_info->flags & ALTER_RECREATE) != 0 && !AsksForInPlace(thd, alter_info);
}

bool AsksForInPlace(THD* thd, const Alter_inplace_info* alter_info) {
  return alter_info->alter_info->algorithm(thd) == Alter_info::ALTER_TABLE_ALGORITHM_INPLACE;
}

void HideColumnOptions(Alter_inplace_info* alter_info) {
  alter_table_operations* const flags = &alter_info->handler_flags;
  if ((*flags & ALTER_COLUMN_OPTION) == 0) return;
  // Unless one of these is set as well, nothing but the option can have made the server say so.
  constexpr alter_table_operations kOtherCauses = ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE |
                                                  ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_COLUMN_NOT_NULLABLE |
                                                  ALTER_STORED_GCOL_EXPR | ALTER_VIRTUAL_GCOL_EXPR;
  if ((*flags & kOtherCauses) == 0) *flags &= ~ALTER_COLUMN_VCOL;
}

bool RefuseExchange(THD* thd, TABLE* table) {
  const TABLE_LIST* const first = thd->lex->first_select_lex()->table_list.first;
  TABLE* const partitioned = first == nullptr ? nullptr : first->table;
  if (partitioned == nullptr || partitioned == table || partitioned->part_info == nullptr) return false;
  const ColumnLayout layout = ResolveColumns(table, false);
  const ColumnLayout other_layout = ResolveColumns(partitioned, false);
  if (layout.any_managed() && !SameEncryption(table->s, partitioned->s)) {
    my_printf_error(ER_TABLES_DIFFERENT_METADATA,
                    "tables can change places only when ENCRYPTED and ENCRYPTION_KEY_ID of both are the same", MYF(0));
    return true;
  }
  for (const ColumnPlan& plan : layout.columns) {
    const ColumnPlan* const other = other_layout.Find(plan.field_index);
    const bool same = other != nullptr && plan.managed() == other->managed() &&
                      (!plan.managed() || plan.prefix_size_bytes == other->prefix_size_bytes);
    if (same) continue;
    my_printf_error(ER_TABLES_DIFFERENT_METADATA,
                    "%s: tables can change places only when INFORMATION_SCHEMA.QUARRY_COLUMNS shows the same MANAGED "
                    "and PREFIX_SIZE for both (here %u and %u)",
                    MYF(0), Name(table->field[plan.field_index]).c_str(), plan.prefix_size_bytes,
                    other == nullptr ? 0U : other->prefix_size_bytes);
    return true;
  }
  return false;
}

}  // namespace quarry
