// See damage_table.h. Shown to who holds PROCESS: the paths of files are in it.
#include "engine/damage_table.h"

#include <string>

#include "background/scrub.h"
#include "engine/schema_table.h"
#include "quarry/store.h"
#include "server/mariadb_compat.h"
#include "server/privileges.h"
#include "server/running_engine.h"

#include <sql_i_s.h>
#include <sql_show.h>

namespace quarry {

namespace {

enum Index : uint {
  kKind,
  kTable,
  kTableId,
  kStoreId,
  kSegment,
  kOffset,
  kLength,
  kMessage,
  kFile,
  kFoundAt,
};

constexpr uint kKindLength = 16;
constexpr uint kTextLength = 512;

ST_FIELD_INFO fields[] = {Show::Column("KIND", Show::Varchar(kKindLength), NOT_NULL),
                          Show::Column("TABLE_PATH", Show::Varchar(kTextLength), NOT_NULL),
                          Show::Column("TABLE_ID", Show::ULonglong(), NOT_NULL),
                          Show::Column("STORE_ID", Show::ULonglong(), NOT_NULL),
                          Show::Column("SEGMENT", Show::ULonglong(), NOT_NULL),
                          Show::Column("OFFSET_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("LENGTH_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("MESSAGE", Show::Varchar(kTextLength), NOT_NULL),
                          Show::Column("FILE", Show::Varchar(kTextLength), NOT_NULL),
                          Show::Column("FOUND_AT", Show::Datetime(0), NOT_NULL),
                          Show::CEnd()};

bool StoreRow(THD* thd, TABLE* table, const Finding& finding, uint64_t found_seconds) {
  restore_record(table, s->default_values);
  StoreText(table->field[kKind], FindingKindName(finding.kind));
  StoreText(table->field[kTable], finding.table_name);
  StoreNumber(table->field[kTableId], finding.table.value);
  StoreNumber(table->field[kStoreId], finding.store.value);
  StoreNumber(table->field[kSegment], finding.segment.value);
  StoreNumber(table->field[kOffset], finding.offset_bytes);
  StoreNumber(table->field[kLength], finding.size_bytes);
  StoreText(table->field[kMessage], finding.what);
  StoreText(table->field[kFile], finding.path);
  StoreTime(table->field[kFoundAt], thd, found_seconds);
  return schema_table_store_record(thd, table) != 0;
}

int Fill(THD* thd, TABLE_LIST* list, COND*) {
  // The engine may have refused to start while this table is there all the same.
  if (!MayProcess(thd) || Directory() == nullptr) return 0;
  for (const Damage& damage : GetDamages()) {
    if (StoreRow(thd, list->table, damage.finding, damage.found_seconds)) return 1;
  }
  for (const KnownLoss& loss : Directory()->KnownLosses()) {
    Finding finding;
    finding.store = loss.store;
    finding.table = loss.table;
    finding.table_name = loss.table_name;
    finding.what = loss.what;
    if (StoreRow(thd, list->table, finding, loss.noted_micros / 1'000'000)) return 1;
  }
  return 0;
}

}  // namespace

int InitQuarryDamage(void* raw_schema_table) { return InitSchemaTable<Fill>(raw_schema_table, fields); }

}  // namespace quarry
