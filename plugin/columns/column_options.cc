// See column_options.h. This file reads the server's structures; the rules themselves stand in column_settings.cc.
#include "columns/column_options.h"

#include "quarry/locator.h"
#include "server/variables.h"

#include <set_var.h>
#include <sql_alter.h>
#include <sql_type_json.h>

namespace quarry {
namespace {

// The server keeps a pointer to these arrays in the handlerton for as long as the plugin is loaded.
constexpr size_t kFieldRules = 4;
constexpr size_t kOwnRules = kFieldRules + 1;
constexpr size_t kInnodbRulesMax = 16;
ha_create_table_option table_rules[kOwnRules + kInnodbRulesMax + 1];
ha_create_table_option field_rules[kFieldRules + 1];

/// An option kept as text: its value is checked here, for the server's own message would not say what is allowed.
/// With `variable`, CREATE TABLE writes a session value that is not the compile-time default into the table.
ha_create_table_option TextRule(const char* name, size_t offset, st_mysql_sys_var* variable) {
  return {HA_OPTION_TYPE_STRING, name, strlen(name), static_cast<ptrdiff_t>(offset), 0, 0, 0, 0, nullptr, variable};
}

const ha_create_table_option kEndOfRules = {HA_OPTION_TYPE_ULL, nullptr, 0, 0, 0, 0, 0, 0, nullptr, nullptr};

BlobKind KindOf(const Field* field) {
  if (Type_handler_json_common::has_json_valid_constraint(field)) return BlobKind::kJson;
  switch (static_cast<const Field_blob*>(field)->pack_length_no_ptr()) {
    case 1:
    case 2:
      return BlobKind::kBlob;
    case 3:
      return BlobKind::kMediumBlob;
    default:
      return BlobKind::kLongBlob;
  }
}

bool IsBlobLike(const Field* field) { return (field->flags & BLOB_FLAG) != 0; }

/// What the keys of a table mean for its columns.
class KeyNeeds {
 public:
  explicit KeyNeeds(TABLE* table) : table_(table), reasons_(table->s->fields), prefixes_(table->s->fields) {
    for (uint i = 0; i < table->s->keys; i++) ReadKey(table->key_info[i]);
  }

  [[nodiscard]] UnmanagedReason reason(uint field_index) const { return reasons_[field_index]; }
  [[nodiscard]] uint32_t index_prefix_bytes(uint field_index) const { return prefixes_[field_index]; }

 private:
  static UnmanagedReason ReasonOfKey(const KEY& key) {
    if ((key.flags & HA_FULLTEXT) != 0) return UnmanagedReason::kFulltextKey;
    if ((key.flags & HA_SPATIAL) != 0) return UnmanagedReason::kSpatialKey;
    if (key.algorithm == HA_KEY_ALG_LONG_HASH) return UnmanagedReason::kUniqueHashKey;
    return UnmanagedReason::kNone;
  }

  void ReadKey(const KEY& key) {
    const UnmanagedReason reason = ReasonOfKey(key);
    for (uint i = 0; i < key.user_defined_key_parts; i++) {
      const Field* field = key.key_part[i].field;
      if (field == nullptr) continue;
      // The server turns UNIQUE over a whole BLOB into a key on a hidden VIRTUAL column, so both ways lead to the base.
      if (field->vcol_info != nullptr && !field->stored_in_db()) {
        ReadVirtualColumn(field, reason == UnmanagedReason::kNone ? UnmanagedReason::kVirtualColumnBase : reason);
      } else if (reason != UnmanagedReason::kNone) {
        Note(field->field_index, reason);
      } else if (IsBlobLike(field)) {
        uint32_t& prefix = prefixes_[field->field_index];
        prefix = std::max<uint32_t>(prefix, key.key_part[i].length);
      }
    }
  }

  /// Every column that the expression reads, through other VIRTUAL columns too, as InnoDB finds them
  /// (prepare_vcol_for_base_setup in ha_innodb.cc).
  void ReadVirtualColumn(const Field* field, UnmanagedReason reason) {
    if (field->vcol_info->expr == nullptr) return;
    std::vector<my_bitmap_map> bits(bitmap_buffer_size(table_->s->fields) / sizeof(my_bitmap_map) + 1);
    MY_BITMAP bases;
    my_bitmap_init(&bases, bits.data(), table_->s->fields);
    MY_BITMAP* const saved_read_set = table_->read_set;
    table_->read_set = &bases;
    field->vcol_info->expr->walk(&Item::register_field_in_read_map, true, table_);
    table_->read_set = saved_read_set;
    for (uint i = 0; i < table_->s->fields; i++) {
      if (bitmap_is_set(&bases, i)) Note(i, reason);
    }
    my_bitmap_free(&bases);
  }

  void Note(uint field_index, UnmanagedReason reason) {
    if (reasons_[field_index] == UnmanagedReason::kNone) reasons_[field_index] = reason;
  }

  TABLE* table_;
  std::vector<UnmanagedReason> reasons_;
  std::vector<uint32_t> prefixes_;
};

/// Reasons that lie in the column itself.
UnmanagedReason ReasonOfColumn(const Field* field) {
  if (!field->stored_in_db()) return UnmanagedReason::kVirtualColumn;
  if (field->type() == MYSQL_TYPE_GEOMETRY) return UnmanagedReason::kGeometry;
  if (field->compression_method() != nullptr) return UnmanagedReason::kCompressedColumn;
  if (static_cast<const Field_blob*>(field)->pack_length_no_ptr() == 1) return UnmanagedReason::kTinyBlob;
  return UnmanagedReason::kNone;
}

/// A global system variable as text; empty when there is none of that name (InnoDB is not loaded).
std::string GlobalVariable(THD* thd, const char* name) {
  sys_var* const variable = find_sys_var(thd, name, strlen(name), false);
  if (variable == nullptr) return std::string();
  StringBuffer<64> buffer(system_charset_info);
  const String* const text = variable->val_str(&buffer, thd, OPT_GLOBAL, &null_clex_str);
  return text == nullptr ? std::string() : std::string(text->ptr(), text->length());
}

/// The longest record that InnoDB keeps in a page of `page_size_bytes`: half of what an empty page holds
/// (page_get_free_space_of_empty() / 2, ROW_FORMAT=DYNAMIC; 64 KiB pages are capped by REC_MAX_DATA_SIZE).
size_t RecordMaxBytes(size_t page_size_bytes) {
  constexpr size_t kPageOverheadBytes = 132;
  constexpr size_t kRecordCapBytes = 16383;
  return std::min((page_size_bytes - kPageOverheadBytes) / 2, kRecordCapBytes);
}

size_t PageSizeBytes(THD* thd) {
  constexpr size_t kDefaultBytes = 16384;
  const std::string text = thd == nullptr ? std::string() : GlobalVariable(thd, "innodb_page_size");
  const size_t size = text.empty() ? 0 : strtoul(text.c_str(), nullptr, 10);
  return size >= 4096 ? size : kDefaultBytes;
}

uint32_t LongestFieldBytes(const ColumnPlan& plan) {
  const auto longest_head = static_cast<uint32_t>(plan.prefix_size_bytes + kTrailerSizeBytes);
  return std::max(plan.inline_size_bytes, longest_head);
}

/// InnoDB moves a record's longest fields off the page until the rest fits. So, with every managed field at its
/// longest, a column may leave the page when it would be moved.
void MarkColumnsThatMayLeavePage(const TABLE* table, std::vector<ColumnPlan>* columns) {
  size_t record_bytes = 0;
  for (Field** field = table->field; *field != nullptr; field++) {
    const bool variable = IsBlobLike(*field) || (*field)->type() == MYSQL_TYPE_VARCHAR;
    if ((*field)->stored_in_db() && !variable) record_bytes += (*field)->pack_length();
  }
  std::vector<ColumnPlan*> managed;
  for (ColumnPlan& plan : *columns) {
    if (!plan.managed()) continue;
    managed.push_back(&plan);
    record_bytes += LongestFieldBytes(plan);
  }
  std::stable_sort(managed.begin(), managed.end(), [](const ColumnPlan* a, const ColumnPlan* b) {
    return LongestFieldBytes(*a) > LongestFieldBytes(*b);
  });
  const size_t record_max_bytes = RecordMaxBytes(PageSizeBytes(current_thd));
  for (ColumnPlan* plan : managed) {
    if (record_bytes <= record_max_bytes) break;
    plan->head_may_leave_page = true;
    record_bytes -= LongestFieldBytes(*plan);
  }
}

}  // namespace

OptionTexts TableTexts(const TABLE_SHARE* share) {
  const auto* const options = reinterpret_cast<const TableOptions*>(share->option_struct);
  if (options == nullptr) return OptionTexts();
  return {options->inline_size, options->prefix_size, options->part_size, options->codec, options->defaults};
}

ColumnSettingsInput SettingsInput(const TABLE_SHARE* share, const Field* field) {
  ColumnSettingsInput input;
  if (const auto* const options = reinterpret_cast<const FieldOptions*>(field->option_struct)) {
    input.column = {options->inline_size, options->prefix_size, options->part_size, options->codec};
  }
  input.comment = std::string_view(field->comment.str != nullptr ? field->comment.str : "", field->comment.length);
  input.table = TableTexts(share);
  if ((field->flags & BLOB_FLAG) != 0) input.kind = KindOf(field);
  return input;
}

ha_create_table_option* TableOptionRules() {
  const OptionVariables variables = GetOptionVariables();
  table_rules[0] = TextRule("INLINE_SIZE", offsetof(TableOptions, inline_size), variables.inline_size);
  table_rules[1] = TextRule("PREFIX_SIZE", offsetof(TableOptions, prefix_size), variables.prefix_size);
  table_rules[2] = TextRule("PART_SIZE", offsetof(TableOptions, part_size), variables.part_size);
  table_rules[3] = TextRule("CODEC", offsetof(TableOptions, codec), variables.codec);
  table_rules[4] = TextRule("DEFAULTS", offsetof(TableOptions, defaults), variables.defaults);
  table_rules[kOwnRules] = kEndOfRules;
  return table_rules;
}

ha_create_table_option* FieldOptionRules() {
  field_rules[0] = TextRule("INLINE_SIZE", offsetof(FieldOptions, inline_size), nullptr);
  field_rules[1] = TextRule("PREFIX_SIZE", offsetof(FieldOptions, prefix_size), nullptr);
  field_rules[2] = TextRule("PART_SIZE", offsetof(FieldOptions, part_size), nullptr);
  field_rules[3] = TextRule("CODEC", offsetof(FieldOptions, codec), nullptr);
  field_rules[kFieldRules] = kEndOfRules;
  return field_rules;
}

void AdoptInnodbTableOptions(handlerton* quarry_hton, const handlerton* innodb_hton) {
  ha_create_table_option* rule = table_rules + kOwnRules;
  const ha_create_table_option* theirs = innodb_hton->table_options;
  for (size_t i = 0; i < kInnodbRulesMax && theirs != nullptr && theirs->name != nullptr; i++, theirs++) {
    *rule = *theirs;
    // The server would look for the variable among Quarry's, and free the list of values when Quarry is unloaded.
    rule->var = nullptr;
    rule++;
  }
  *rule = kEndOfRules;
  quarry_hton->table_options = table_rules;
}

const char* UnmanagedReasonText(UnmanagedReason reason) {
  switch (reason) {
    case UnmanagedReason::kNone:
      return "";
    case UnmanagedReason::kTinyBlob:
      return "TINYBLOB or TINYTEXT";
    case UnmanagedReason::kGeometry:
      return "GEOMETRY";
    case UnmanagedReason::kCompressedColumn:
      return "COMPRESSED column";
    case UnmanagedReason::kVirtualColumnBase:
      return "base of an indexed VIRTUAL column";
    case UnmanagedReason::kFulltextKey:
      return "part of a FULLTEXT key";
    case UnmanagedReason::kSpatialKey:
      return "part of a SPATIAL key";
    case UnmanagedReason::kUniqueHashKey:
      return "part of a UNIQUE key over whole values";
    case UnmanagedReason::kVirtualColumn:
      return "VIRTUAL column";
    case UnmanagedReason::kTemporaryTable:
      return "TEMPORARY table";
  }
  return "unknown";
}

bool ColumnLayout::any_managed() const {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnPlan& plan) { return plan.managed(); });
}

void ColumnLayout::ApplyPrefixLimit(uint32_t limit_bytes) {
  prefix_limit_bytes = std::min(prefix_limit_bytes, limit_bytes);
  for (ColumnPlan& plan : columns) {
    plan.guaranteed_prefix_bytes = GuaranteedPrefixBytes(plan.prefix_sizes(), prefix_limit_bytes);
  }
}

bool ColumnLayout::has_older_heads() const {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnPlan& plan) {
    return plan.managed() && plan.guaranteed_prefix_bytes < plan.prefix_size_bytes;
  });
}

const ColumnPlan* ColumnLayout::Find(uint field_index) const {
  for (const ColumnPlan& plan : columns) {
    if (plan.field_index == field_index) return &plan;
  }
  return nullptr;
}

ColumnLayout ResolveColumns(TABLE* table, bool user_temporary) {
  const KeyNeeds keys(table);
  ColumnLayout layout;
  layout.has_ndb_defaults = HasNdbDefaults(TableTexts(table->s).defaults);
  for (uint i = 0; i < table->s->fields; i++) {
    const Field* const field = table->field[i];
    if (!IsBlobLike(field)) continue;
    ColumnPlan plan;
    plan.field_index = i;
    plan.reason = ReasonOfColumn(field);
    if (plan.reason == UnmanagedReason::kNone) plan.reason = keys.reason(i);
    if (plan.reason == UnmanagedReason::kNone && user_temporary) plan.reason = UnmanagedReason::kTemporaryTable;
    plan.index_prefix_bytes = keys.index_prefix_bytes(i);
    ColumnSettingsInput input = SettingsInput(table->s, field);
    input.index_prefix_bytes = plan.index_prefix_bytes;
    plan.json = input.kind == BlobKind::kJson;
    const ColumnSettings settings = ResolveSettings(input);
    plan.asked_inline_size_bytes = settings.asked_inline_size_bytes;
    plan.asked_prefix_size_bytes = settings.asked_prefix_size_bytes;
    plan.inline_size_bytes = settings.inline_size_bytes;
    plan.prefix_size_bytes = settings.prefix_size_bytes;
    plan.guaranteed_prefix_bytes = settings.prefix_size_bytes;
    plan.part_size_bytes = settings.part_size_bytes;
    plan.codec = settings.codec;
    plan.inline_size_source = settings.inline_size_source;
    plan.prefix_size_source = settings.prefix_size_source;
    plan.part_size_source = settings.part_size_source;
    plan.codec_source = settings.codec_source;
    layout.columns.push_back(plan);
  }
  MarkColumnsThatMayLeavePage(table, &layout.columns);
  return layout;
}

}  // namespace quarry
