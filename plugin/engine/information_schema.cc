// See information_schema.h.
//
// QUARRY_COLUMNS goes through the server's own get_all_tables(), as COLUMNS does: it visits only what the user may see
// and what the WHERE clause can match, and opens each table's definition (not the table) under a metadata lock.
// QUARRY_TABLES lists the stores, under the names that InnoDB knows their tables by now. A row is shown to who holds
// PROCESS or any privilege on the table.
#include "engine/information_schema.h"

#include <sql_acl.h>
#include <sql_i_s.h>
#include <sql_parse.h>
#include <sql_show.h>
#include <tztime.h>

#include "background/gc_thread.h"
#include "columns/column_options.h"
#include "columns/encryption.h"
#include "engine/schema_table.h"
#include "engine/visible_columns.h"
#include "engine/visible_stores.h"
#include "quarry/store.h"
#include "server/child_name.h"
#include "server/running_engine.h"

namespace quarry {
namespace {

constexpr uint kReasonLength = 64;
constexpr uint kSourceLength = 16;
constexpr uint kCodecLength = 8;

namespace columns {

enum Index : uint {
  kSchema,
  kTable,
  kColumn,
  kManaged,
  kReason,
  kInlineSize,
  kPrefixSize,
  kPrefixInEveryRow,
  kPartSize,
  kCodec,
  kInlineSizeSource,
  kPrefixSizeSource,
  kPartSizeSource,
  kCodecSource,
  kIsJson,
  kInlineMayOverflow,
  kEncrypted,
  kEncryptionKeyId,
};

ST_FIELD_INFO fields[] = {Show::Column("TABLE_SCHEMA", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("TABLE_NAME", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("COLUMN_NAME", Show::Name(), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("MANAGED", Show::Varchar(kYesNoLength), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("REASON", Show::Varchar(kReasonLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("INLINE_SIZE", Show::ULonglong(), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("PREFIX_SIZE", Show::ULonglong(), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("PREFIX_IN_EVERY_ROW", Show::ULonglong(), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("PART_SIZE", Show::ULonglong(), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("CODEC", Show::Varchar(kCodecLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("INLINE_SIZE_FROM", Show::Varchar(kSourceLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("PREFIX_SIZE_FROM", Show::Varchar(kSourceLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("PART_SIZE_FROM", Show::Varchar(kSourceLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("CODEC_FROM", Show::Varchar(kSourceLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("IS_JSON", Show::Varchar(kYesNoLength), NOT_NULL, OPEN_FRM_ONLY),
                          Show::Column("INLINE_MAY_OVERFLOW", Show::Varchar(kYesNoLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("ENCRYPTED", Show::Varchar(kYesNoLength), NULLABLE, OPEN_FRM_ONLY),
                          Show::Column("ENCRYPTION_KEY_ID", Show::ULonglong(), NULLABLE, OPEN_FRM_ONLY),
                          Show::CEnd()};

}  // namespace columns

namespace tables {

enum Index : uint {
  kSchema,
  kTable,
  kPartition,
  kTableId,
  kStoreId,
  kSegments,
  kStoredValues,
  kLiveBytes,
  kDeadBytes,
  kRealBytes,
  kCachedBytes,
  kState,
  kPath,
  kSpaceAmplification,
  kLastGc,
  kLastGcLiveBytes,
  kGcNeedsSeconds,
  kEncryption,
  kPlainBytes,
  kEncryptedBytes,
  kOldestKeyVersion,
};

constexpr uint kEncryptionLength = 16;
constexpr uint kStateLength = 16;
/// Ten digits, two of them behind the point.
constexpr uint kAmplificationDigits = 1002;
constexpr uint kPathLength = 512;

ST_FIELD_INFO fields[] = {Show::Column("TABLE_SCHEMA", Show::Name(), NOT_NULL),
                          Show::Column("TABLE_NAME", Show::Name(), NOT_NULL),
                          Show::Column("PARTITION_NAME", Show::Varchar(2 * NAME_CHAR_LEN), NULLABLE),
                          Show::Column("TABLE_ID", Show::ULonglong(), NOT_NULL),
                          Show::Column("STORE_ID", Show::ULonglong(), NOT_NULL),
                          Show::Column("SEGMENTS", Show::ULonglong(), NOT_NULL),
                          Show::Column("STORED_VALUES", Show::ULonglong(), NOT_NULL),
                          Show::Column("LIVE_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("DEAD_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("REAL_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("CACHED_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("STATE", Show::Varchar(kStateLength), NOT_NULL),
                          Show::Column("STORE_PATH", Show::Varchar(kPathLength), NOT_NULL),
                          Show::Column("SPACE_AMPLIFICATION", Show::Decimal(kAmplificationDigits), NULLABLE),
                          Show::Column("LAST_GC", Show::Datetime(0), NULLABLE),
                          Show::Column("LAST_GC_LIVE_BYTES", Show::ULonglong(), NULLABLE),
                          Show::Column("GC_NEEDS_SECONDS", Show::ULonglong(), NULLABLE),
                          Show::Column("ENCRYPTION", Show::Varchar(kEncryptionLength), NULLABLE),
                          Show::Column("PLAIN_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("ENCRYPTED_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("OLDEST_KEY_VERSION", Show::ULonglong(), NULLABLE),
                          Show::CEnd()};

}  // namespace tables

/// The same answer for every table that one statement visits.
const std::optional<InnodbNameMap>& InnodbNamesOfStatement(const THD* thd) {
  static thread_local query_id_t query_id = 0;
  static thread_local my_thread_id thread_id = 0;
  static thread_local std::optional<InnodbNameMap> names;
  if (query_id != thd->query_id || thread_id != thd->thread_id) {
    names = InnodbNames();
    query_id = thd->query_id;
    thread_id = thd->thread_id;
  }
  return names;
}

/// The least that holds for the table, or any partition of it. 0 when InnoDB cannot be asked for their ids.
uint32_t PrefixLimitOf(const THD* thd, const TABLE_SHARE* share) {
  const auto& innodb_names = InnodbNamesOfStatement(thd);
  if (!innodb_names) return 0;
  std::string_view name(share->normalized_path.str, share->normalized_path.length);
  if (name.substr(0, 2) == "./") name.remove_prefix(2);
  const std::string partitions = std::string(name) + "#P#";
  uint32_t limit = kNoPrefixLimit;
  for (const auto& [id, innodb_name] : *innodb_names) {
    if (innodb_name != name && innodb_name.compare(0, partitions.size(), partitions) != 0) continue;
    limit = std::min(limit, Directory()->PrefixLimitBytes(TableId{id}));
  }
  return limit;
}

/// The layout that an open handler of the table would use.
ColumnLayout LayoutInForce(const THD* thd, TABLE* table) {
  ColumnLayout layout = ResolveColumns(table, false);
  const bool limit_matters = std::any_of(layout.columns.begin(), layout.columns.end(), [](const ColumnPlan& plan) {
    return plan.managed() && plan.guaranteed_prefix_bytes > plan.index_prefix_bytes;
  });
  if (limit_matters) layout.ApplyPrefixLimit(PrefixLimitOf(thd, table->s));
  return layout;
}

void StoreSettings(const ColumnPlan& plan, Field** fields) {
  StoreNumber(fields[columns::kInlineSize], plan.inline_size_bytes);
  StoreNumber(fields[columns::kPrefixSize], plan.prefix_size_bytes);
  StoreNumber(fields[columns::kPrefixInEveryRow], plan.guaranteed_prefix_bytes);
  StoreNumber(fields[columns::kPartSize], plan.part_size_bytes);
  StoreText(fields[columns::kCodec], CodecName(plan.codec));
  StoreText(fields[columns::kInlineSizeSource], OptionSourceName(plan.inline_size_source));
  StoreText(fields[columns::kPrefixSizeSource], OptionSourceName(plan.prefix_size_source));
  StoreText(fields[columns::kPartSizeSource], OptionSourceName(plan.part_size_source));
  StoreText(fields[columns::kCodecSource], OptionSourceName(plan.codec_source));
  StoreYesNo(fields[columns::kInlineMayOverflow], plan.head_may_leave_page);
}

/// Called by get_all_tables() for each table; `open_failed` when its definition could not be opened.
int ProcessTable(THD* thd, TABLE_LIST* visited, TABLE* target, bool open_failed, const LEX_CSTRING* database,
                 const LEX_CSTRING* name) {
  if (!IsVisitedQuarryTable(thd, visited, open_failed, *database)) return 0;
  TABLE* const table = visited->table;
  const ColumnLayout layout = LayoutInForce(thd, table);
  const uint32_t key_id = EncryptionKeyOf(table->s);
  for (const ColumnPlan& plan : layout.columns) {
    const Field* const column = table->field[plan.field_index];
    if (!MaySeeColumn(thd, visited, *database, *name, column)) continue;
    restore_record(target, s->default_values);
    Field** const fields = target->field;
    StoreText(fields[columns::kSchema], {database->str, database->length});
    StoreText(fields[columns::kTable], {name->str, name->length});
    StoreText(fields[columns::kColumn], {column->field_name.str, column->field_name.length});
    StoreYesNo(fields[columns::kManaged], plan.managed());
    StoreYesNo(fields[columns::kIsJson], plan.json);
    if (plan.managed()) {
      StoreSettings(plan, fields);
      StoreYesNo(fields[columns::kEncrypted], key_id != 0);
      if (key_id != 0) StoreNumber(fields[columns::kEncryptionKeyId], key_id);
    } else {
      StoreText(fields[columns::kReason], UnmanagedReasonText(plan.reason));
    }
    if (schema_table_store_record(thd, target)) return 1;
  }
  return 0;
}

void StoreGc(THD* thd, Field** fields, const StoreStats& stats) {
  if (stats.live_bytes > 0) {
    Field* const field = fields[tables::kSpaceAmplification];
    field->set_notnull();
    field->store(static_cast<double>(stats.real_bytes) / static_cast<double>(stats.live_bytes));
  }
  const std::optional<GcStoreStatus> gc = GetGcStoreStatus(stats.store);
  if (!gc) return;
  if (gc->needed_s > 0) StoreNumber(fields[tables::kGcNeedsSeconds], gc->needed_s);
  if (gc->ended_at == 0) return;
  StoreTime(fields[tables::kLastGc], thd, gc->ended_at);
  StoreNumber(fields[tables::kLastGcLiveBytes], gc->live_bytes);
}

/// What the files hold, whatever the table's definition says now. NULL while they hold nothing.
void StoreEncryption(Field** fields, const StoreStats& stats) {
  const char* state = stats.encrypted_bytes == 0 ? "PLAIN" : stats.plain_bytes == 0 ? "ENCRYPTED" : "PARTLY";
  if (stats.plain_bytes + stats.encrypted_bytes > 0) StoreText(fields[tables::kEncryption], state);
  StoreNumber(fields[tables::kPlainBytes], stats.plain_bytes);
  StoreNumber(fields[tables::kEncryptedBytes], stats.encrypted_bytes);
  if (stats.oldest_key_version > 0) StoreNumber(fields[tables::kOldestKeyVersion], stats.oldest_key_version);
}

bool StoreTableRow(THD* thd, TABLE* target, const StoreStats& stats, const TableName& name, const char* state) {
  restore_record(target, s->default_values);
  Field** const fields = target->field;
  char path[64];
  snprintf(path, sizeof(path), "stores/%016llx", static_cast<unsigned long long>(stats.store.value));
  StoreText(fields[tables::kSchema], name.database);
  StoreText(fields[tables::kTable], name.table);
  if (!name.partition.empty()) StoreText(fields[tables::kPartition], name.partition);
  StoreNumber(fields[tables::kTableId], stats.table.value);
  StoreNumber(fields[tables::kStoreId], stats.store.value);
  StoreNumber(fields[tables::kSegments], stats.segments);
  StoreNumber(fields[tables::kStoredValues], stats.extents);
  StoreNumber(fields[tables::kLiveBytes], stats.live_bytes);
  StoreNumber(fields[tables::kDeadBytes], stats.dead_bytes);
  StoreNumber(fields[tables::kRealBytes], stats.real_bytes);
  StoreNumber(fields[tables::kCachedBytes], stats.cached_bytes);
  StoreText(fields[tables::kState], state);
  StoreText(fields[tables::kPath], path);
  StoreGc(thd, fields, stats);
  StoreEncryption(fields, stats);
  return schema_table_store_record(thd, target);
}

int FillTables(THD* thd, TABLE_LIST* list, COND*) {
  const bool failed = ForEachVisibleStore(thd, [&](const VisibleStore& store) {
    // Only now are its files looked at. It may have been unlinked meanwhile.
    const Result<StoreStats> stats = Directory()->GetStoreStats(store.bound.store);
    return stats.ok() && StoreTableRow(thd, list->table, *stats, store.name, store.state);
  });
  return failed ? 1 : 0;
}

}  // namespace

st_mysql_information_schema information_schema_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int InitQuarryColumns(void* raw_schema_table) {
  static_assert(columns::kSchema == 0 && columns::kTable == 1);
  return InitVisitingTable<ProcessTable>(raw_schema_table, columns::fields);
}

int InitQuarryTables(void* raw_schema_table) { return InitSchemaTable<FillTables>(raw_schema_table, tables::fields); }

}  // namespace quarry
