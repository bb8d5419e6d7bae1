// See memory_table.h.
#include "engine/memory_table.h"

#include <optional>
#include <string_view>

#include "background/gc_thread.h"
#include "engine/schema_table.h"
#include "engine/visible_stores.h"
#include "server/mariadb_compat.h"
#include "server/running_engine.h"
#include "server/variables.h"

#include <sql_i_s.h>
#include <sql_show.h>

namespace quarry {
namespace {

enum Index : uint {
  kArea,
  kSchema,
  kTable,
  kPartition,
  kUsedBytes,
  kLimitBytes,
};

constexpr uint kAreaLength = 32;

ST_FIELD_INFO fields[] = {Show::Column("AREA", Show::Varchar(kAreaLength), NOT_NULL),
                          Show::Column("TABLE_SCHEMA", Show::Name(), NULLABLE),
                          Show::Column("TABLE_NAME", Show::Name(), NULLABLE),
                          Show::Column("PARTITION_NAME", Show::Varchar(2 * NAME_CHAR_LEN), NULLABLE),
                          Show::Column("USED_BYTES", Show::ULonglong(), NOT_NULL),
                          Show::Column("LIMIT_BYTES", Show::ULonglong(), NULLABLE),
                          Show::CEnd()};

constexpr const char* kValueCache = "value cache";

/// `name` null: of the server as a whole.
bool StoreRow(THD* thd, TABLE* table, const char* area, const TableName* name, uint64_t used_bytes,
              std::optional<uint64_t> limit_bytes) {
  restore_record(table, s->default_values);
  StoreText(table->field[kArea], area);
  if (name != nullptr) {
    StoreText(table->field[kSchema], name->database);
    StoreText(table->field[kTable], name->table);
    if (!name->partition.empty()) StoreText(table->field[kPartition], name->partition);
  }
  StoreNumber(table->field[kUsedBytes], used_bytes);
  if (limit_bytes) StoreNumber(table->field[kLimitBytes], *limit_bytes);
  return schema_table_store_record(thd, table) != 0;
}

int Fill(THD* thd, TABLE_LIST* list, COND*) {
  if (Directory() == nullptr) return 0;
  const Counters counters = Directory()->GetCounters();
  struct Whole {
    const char* area;
    uint64_t used_bytes;
    std::optional<uint64_t> limit_bytes;
  };
  for (const Whole& whole : {Whole{kValueCache, counters.cache_bytes, CacheSizeBytes()},
                             Whole{"recent writes", counters.recent_cache_bytes, RecentCacheBytes()},
                             Whole{"buffers", counters.buffer_bytes, std::nullopt},
                             Whole{"segment maps", counters.segment_map_bytes, std::nullopt},
                             Whole{"GC pass (peak)", GetGcStatus().memory_bytes, std::nullopt}}) {
    if (StoreRow(thd, list->table, whole.area, nullptr, whole.used_bytes, whole.limit_bytes)) return 1;
  }
  const bool failed = ForEachVisibleStore(thd, [&](const VisibleStore& store) {
    const uint64_t used_bytes = store.bound.cached_bytes;
    return used_bytes > 0 && StoreRow(thd, list->table, kValueCache, &store.name, used_bytes, std::nullopt);
  });
  return failed ? 1 : 0;
}

}  // namespace

int InitQuarryMemory(void* raw_schema_table) { return InitSchemaTable<Fill>(raw_schema_table, fields); }

}  // namespace quarry
