// What every BLOB, TEXT and JSON column of a Quarry table is: managed (long values live in segments) or left whole
// in InnoDB, and with which sizes and codec.
//
// The answer is a pure function of the table's definition (options, comments, keys, virtual columns), so it is the
// same whenever the table is opened, and nothing but the .frm has to persist it; all but the prefix limit, which is
// bound to the InnoDB table that the heads are in. Precedence of each setting:
//   column option > NDB column comment > table option > system variable, fixed as a table option at CREATE.
//
// Invariants:
//  - prefix_size <= inline_size, and prefix_size >= the longest index prefix on the column.
//  - guaranteed_prefix_bytes: every head in the table holds at least so many raw bytes. An ALTER is in place only
//    when no index asks for more, and lowers the prefix limit first when PREFIX_SIZE changes (CompareForAlter), so
//    definition and limit together always give a true figure. The proof stands in docs/internals/handler.md.
//  - A setting that CREATE refused, but that reached the table all the same (sql_mode IGNORE_BAD_TABLE_OPTIONS, the
//    replication applier), counts as the nearest allowed value. Opening a table never fails for an option.
//
// Thread-safety: ColumnLayout is immutable after ResolveColumns; the functions need the TABLE to be the caller's own.
#pragma once

#include "server/mariadb_compat.h"

#include "columns/column_settings.h"
#include "quarry/options.h"
#include "quarry/store.h"

namespace quarry {

/// InnoDB's table options and, behind them, Quarry's: InnoDB casts TABLE_SHARE::option_struct to its own type.
/// Quarry's are kept as text, so that an error can say what is allowed; nullptr: not given.
struct TableOptions {
  ha_table_option_struct innodb;
  char* inline_size;
  char* prefix_size;
  char* part_size;
  char* codec;
  char* defaults;
};

/// Options of one column; nullptr: not given.
struct FieldOptions {
  char* inline_size;
  char* prefix_size;
  char* part_size;
  char* codec;
};

/// For handlerton::table_options and field_options, at plugin init.
ha_create_table_option* TableOptionRules();
ha_create_table_option* FieldOptionRules();

/// What a table's definition says of all of its columns, and of one; of the latter all but its index prefix.
OptionTexts TableTexts(const TABLE_SHARE* share);
ColumnSettingsInput SettingsInput(const TABLE_SHARE* share, const Field* field);

/// Adds InnoDB's own table options (all but the variables behind them) to `quarry_hton`'s. Call once when InnoDB's
/// handlerton exists; harmless when called again. Externally synchronised: no table may be opened meanwhile.
void AdoptInnodbTableOptions(handlerton* quarry_hton, const handlerton* innodb_hton);

enum class UnmanagedReason : uint8_t {
  kNone = 0,           ///< managed
  kTinyBlob,           ///< TINYBLOB, TINYTEXT: at most 255 bytes
  kGeometry,           ///< a spatial type
  kCompressedColumn,   ///< column attribute COMPRESSED
  kVirtualColumnBase,  ///< an indexed VIRTUAL column is computed from it: InnoDB computes it from its own row
  kFulltextKey,
  kSpatialKey,
  kUniqueHashKey,   ///< UNIQUE over the whole BLOB: the server hashes what InnoDB holds
  kVirtualColumn,   ///< the column itself is VIRTUAL: it has no bytes
  kTemporaryTable,  ///< CREATE TEMPORARY TABLE: InnoDB's ids of such tables are not unique over time
};
/// "managed", "TINYBLOB or TINYTEXT", ...
const char* UnmanagedReasonText(UnmanagedReason reason);

/// One BLOB/TEXT/JSON column.
struct ColumnPlan {
  uint field_index = 0;  ///< TABLE::field[field_index]
  UnmanagedReason reason = UnmanagedReason::kNone;
  uint32_t inline_size_bytes = 0;        ///< values up to this stay whole in the row
  uint32_t prefix_size_bytes = 0;        ///< raw bytes at the start of a head
  uint32_t guaranteed_prefix_bytes = 0;  ///< what every head written so far holds at least
  uint32_t asked_inline_size_bytes = 0;  ///< by the options, before an index prefix raised it
  uint32_t asked_prefix_size_bytes = 0;
  uint32_t index_prefix_bytes = 0;  ///< longest index prefix on the column, 0: none
  uint32_t part_size_bytes = 0;
  Codec codec = Codec::kNone;
  bool json = false;                 ///< LONGTEXT that a JSON_VALID check makes a JSON column
  bool head_may_leave_page = false;  ///< the longest head, or raw value, may land in InnoDB's overflow pages
  OptionSource inline_size_source = OptionSource::kDefault;
  OptionSource prefix_size_source = OptionSource::kDefault;
  OptionSource part_size_source = OptionSource::kDefault;
  OptionSource codec_source = OptionSource::kDefault;

  [[nodiscard]] PrefixSizes prefix_sizes() const {
    return {index_prefix_bytes, asked_prefix_size_bytes, prefix_size_bytes};
  }
  [[nodiscard]] bool managed() const { return reason == UnmanagedReason::kNone; }
};

/// Every BLOB-like column of a table, managed or not, in field order.
struct ColumnLayout {
  std::vector<ColumnPlan> columns;
  uint32_t prefix_limit_bytes = kNoPrefixLimit;  ///< the one applied
  bool has_ndb_defaults = false;                 ///< DEFAULTS=NDB: its batches are NDB's, too

  /// Lowers the guaranteed prefixes to what StoreDirectory::PrefixLimitBytes says of the table.
  void ApplyPrefixLimit(uint32_t limit_bytes);
  /// Heads of some column may hold fewer raw bytes than its PREFIX_SIZE says: they are older than it.
  [[nodiscard]] bool has_older_heads() const;

  [[nodiscard]] bool any_managed() const;
  /// The plan of TABLE::field[field_index], or nullptr when that is no BLOB-like column.
  [[nodiscard]] const ColumnPlan* Find(uint field_index) const;
};

/// The layout of an open TABLE, also of the one that handler::create gets and of the altered one of an in-place
/// ALTER. `user_temporary`: a user's CREATE TEMPORARY TABLE (see ChildTableIsTemporary; in create():
/// create_info->options & HA_LEX_CREATE_TMP_TABLE), which leaves every column unmanaged.
ColumnLayout ResolveColumns(TABLE* table, bool user_temporary);

/// At the making of the handlers of a table's partitions: the server is about to refuse options of single columns, as
/// 'Unknown option' and no more. True, with the reason and the way out sent as an error of the same number, when the
/// statement has one.
bool RefuseColumnOptionsUnderPartitions(THD* thd);

/// Checks every option and comment of a table being created. On a bad one reports the error (column, option, value,
/// what is allowed) and returns true. When all is well, pushes a note for each column whose head may leave the page.
bool CheckCreateOptions(THD* thd, TABLE* form, const HA_CREATE_INFO* create_info);

/// The same for an ALTER that may be done in place, and so never comes to handler::create. Only notes that the old
/// table did not deserve are pushed.
bool CheckAlterOptions(THD* thd, TABLE* old_table, TABLE* altered_table, bool user_temporary);

/// Whether an ALTER may be done in place: same managed set and encryption, no index that needs a longer prefix than
/// every head has. Quarry's options may change: they count for values written from then on. Otherwise `reason` (a
/// constant text for HA_ALTER unsupported_reason) says why a copy is needed.
struct AlterVerdict {
  bool in_place = true;
  const char* reason = nullptr;
  /// When it is no kNoPrefixLimit: to be stated (StoreDirectory::LowerPrefixLimit) before the ALTER does anything.
  uint32_t prefix_limit_bytes = kNoPrefixLimit;
  /// The prefix limit goes on to matter. It could not follow the heads into another InnoDB table without fail, so
  /// a rebuild must be a copy.
  bool must_not_rebuild = false;
};
/// `old_layout`: that of the open `old_table`, its prefix limit applied.
AlterVerdict CompareForAlter(TABLE* old_table, const ColumnLayout& old_layout, TABLE* altered_table,
                             const Alter_inplace_info* alter_info, bool user_temporary);

/// Answers that an ALTER needs a copy, and why. An applier then copies, whatever ALGORITHM and LOCK the statement asked
/// for: they told the primary how, and this server's table may be another (PREFIX_SIZE, older heads, engine).
enum_alter_inplace_result AskForCopy(THD* thd, Alter_inplace_info* alter_info, const char* reason);

/// FORCE, ENGINE=QUARRY on a QUARRY table and OPTIMIZE ask for a table written anew, so they are copies: a rebuild in
/// place would keep the heads and every extent as they are. Whoever wants just that says ALGORITHM=INPLACE.
bool AsksForRewrite(THD* thd, const Alter_inplace_info* alter_info);
/// The statement (or the session's alter_algorithm) says ALGORITHM=INPLACE.
bool AsksForInPlace(THD* thd, const Alter_inplace_info* alter_info);

/// The server takes a changed column option for one that may change what generated columns are computed from, and
/// InnoDB then copies. Quarry's options never do: takes that out of what InnoDB is asked to alter.
void HideColumnOptions(Alter_inplace_info* alter_info);

/// EXCHANGE PARTITION and CONVERT TABLE move a table's rows, heads as they are, under another definition; the server
/// compares the two, but not what column comments and options mean here. True, with the error reported, when `table`
/// (the one that is no partition) and the partitioned table of the statement differ in managed columns, in their
/// prefix sizes or in encryption. (A prefix limit goes where the heads go.) For handler::check_if_incompatible_data.
bool RefuseExchange(THD* thd, TABLE* table);

}  // namespace quarry
