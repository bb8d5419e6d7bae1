// See status_vars.h. The server hands a buffer to the function of SHOW_FUNC; the whole snapshot, names and values,
// is built inside it, so that two sessions never see each other's half.
#include "engine/status_vars.h"

#include "engine/gc_status_vars.h"
#include "engine/scrub_status_vars.h"
#include "quarry/memory_guard.h"
#include "server/child_table_id.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"
#include "transaction/prepared_commit.h"

namespace quarry {

namespace {

struct Snapshot {
  Counters core;
  uint64_t autoincrement_reservations;
  uint64_t autoincrement_reserved_ids;
  uint64_t values_inline;
  uint64_t values_out_of_line;
  uint64_t heads_kept;
  uint64_t range_reads;
  uint64_t commit_syncs;
  uint64_t commits_prepared;
  uint64_t prepared_committed;
  uint64_t prepared_rolled_back;
  uint64_t prepared_undecided;
  uint64_t ddl_syncs;
  double committers_per_flush;
  char table_id_check[8];
};

enum class Kind : uint8_t { kCount, kRatio, kText };

struct Entry {
  const char* name;
  size_t offset;
  Kind kind = Kind::kCount;
};

#define QUARRY_CORE(name) \
  { #name, offsetof(Snapshot, core) + offsetof(Counters, name) }
#define QUARRY_OWN(name) \
  { #name, offsetof(Snapshot, name) }

/// In alphabetical order, as SHOW STATUS prints them.
constexpr Entry kEntries[] = {
    QUARRY_OWN(autoincrement_reservations),
    QUARRY_OWN(autoincrement_reserved_ids),
    QUARRY_CORE(buffer_bytes),
    QUARRY_CORE(cache_admissions),
    QUARRY_CORE(cache_bytes),
    QUARRY_CORE(cache_carried),
    QUARRY_CORE(cache_evictions),
    QUARRY_CORE(cache_hits),
    QUARRY_CORE(cache_misses),
    QUARRY_CORE(catalogue_flushes),
    QUARRY_OWN(commit_syncs),
    QUARRY_OWN(commits_prepared),
    QUARRY_CORE(committers_flushed),
    {"committers_per_flush", offsetof(Snapshot, committers_per_flush), Kind::kRatio},
    QUARRY_CORE(corruptions),
    QUARRY_CORE(data_paths_avoided),
    QUARRY_OWN(ddl_syncs),
    QUARRY_CORE(direct_read_submissions),
    QUARRY_CORE(extents_appended),
    QUARRY_CORE(extents_read),
    QUARRY_CORE(extents_released),
    QUARRY_CORE(file_bytes_read),
    QUARRY_CORE(file_bytes_written),
    QUARRY_CORE(flush_errors),
    QUARRY_CORE(flushes),
    QUARRY_CORE(flushes_zeroed),
    QUARRY_OWN(heads_kept),
    QUARRY_CORE(open_files),
    QUARRY_CORE(open_files_closed),
    QUARRY_CORE(open_files_limit),
    QUARRY_CORE(padding_bytes_written),
    QUARRY_CORE(page_cache_corruptions),
    QUARRY_CORE(parts_compressed),
    QUARRY_CORE(parts_encrypted),
    QUARRY_CORE(parts_decrypted),
    QUARRY_CORE(parts_stored_raw),
    QUARRY_OWN(prepared_committed),
    QUARRY_OWN(prepared_rolled_back),
    QUARRY_OWN(prepared_undecided),
    QUARRY_OWN(range_reads),
    QUARRY_CORE(read_ahead_bytes),
    QUARRY_CORE(read_ahead_unused),
    QUARRY_CORE(read_ahead_values),
    QUARRY_CORE(read_submissions),
    QUARRY_CORE(recent_cache_bytes),
    QUARRY_CORE(recent_cache_hits),
    QUARRY_CORE(recent_cache_misses),
    QUARRY_CORE(segment_map_bytes),
    QUARRY_CORE(segment_map_loads),
    QUARRY_CORE(segments_poisoned),
    QUARRY_CORE(staging_bytes),
    QUARRY_CORE(stored_bytes_appended),
    QUARRY_CORE(stored_bytes_released),
    {"table_id_check", offsetof(Snapshot, table_id_check), Kind::kText},
    QUARRY_CORE(value_bytes_appended),
    QUARRY_CORE(value_bytes_read),
    QUARRY_OWN(values_inline),
    QUARRY_OWN(values_out_of_line),
    QUARRY_CORE(write_calls),
    QUARRY_CORE(zero_bytes_written),
};
constexpr size_t kEntryCount = std::size(kEntries);

// A counter added to the core and forgotten here would be invisible.
constexpr size_t kOwnEntryCount = 14;
static_assert(sizeof(Counters) == (kEntryCount - kOwnEntryCount) * sizeof(uint64_t));

struct Buffer {
  Snapshot snapshot;
  st_mysql_show_var variables[kEntryCount + 1];
};
static_assert(sizeof(Buffer) <= SHOW_VAR_FUNC_BUFF_SIZE);
static_assert(std::is_trivially_destructible_v<Buffer>);

uint64_t Get(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

const char* StateName(SelfCheckState state) {
  switch (state) {
    case SelfCheckState::kPending:
      return "pending";
    case SelfCheckState::kPassed:
      return "passed";
    case SelfCheckState::kFailed:
      return "failed";
  }
  return "unknown";
}

enum_mysql_show_type ShowType(Kind kind) {
  switch (kind) {
    case Kind::kRatio:
      return SHOW_DOUBLE;
    case Kind::kText:
      return SHOW_CHAR;
    case Kind::kCount:
      return SHOW_LONGLONG;
  }
  return SHOW_LONGLONG;
}

Snapshot TakeSnapshot() {
  Snapshot snapshot{};
  if (StoreDirectory* const directory = Directory()) snapshot.core = directory->GetCounters();
  snapshot.autoincrement_reservations = Get(plugin_counters.autoincrement_reservations);
  snapshot.autoincrement_reserved_ids = Get(plugin_counters.autoincrement_reserved_ids);
  snapshot.values_inline = Get(plugin_counters.values_inline);
  snapshot.values_out_of_line = Get(plugin_counters.values_out_of_line);
  snapshot.heads_kept = Get(plugin_counters.heads_kept);
  snapshot.range_reads = Get(plugin_counters.range_reads);
  snapshot.commit_syncs = Get(plugin_counters.commit_syncs);
  snapshot.commits_prepared = Get(plugin_counters.commits_prepared);
  snapshot.prepared_committed = Get(plugin_counters.prepared_committed);
  snapshot.prepared_rolled_back = Get(plugin_counters.prepared_rolled_back);
  snapshot.prepared_undecided = Get(plugin_counters.prepared_undecided);
  snapshot.ddl_syncs = Get(plugin_counters.ddl_syncs);
  snprintf(snapshot.table_id_check, sizeof(snapshot.table_id_check), "%s", StateName(GetSelfCheckState()));
  const Counters& core = snapshot.core;
  if (core.flushes > 0) {
    snapshot.committers_per_flush = static_cast<double>(core.committers_flushed) / static_cast<double>(core.flushes);
  }
  return snapshot;
}

int ShowQuarry(THD*, st_mysql_show_var* variable, void* raw_buffer, system_status_var*, enum_var_type) {
  auto* const buffer = new (raw_buffer) Buffer{};
  buffer->snapshot = TakeSnapshot();
  auto* const base = reinterpret_cast<char*>(&buffer->snapshot);
  for (size_t i = 0; i < kEntryCount; i++) {
    buffer->variables[i].name = kEntries[i].name;
    buffer->variables[i].value = base + kEntries[i].offset;
    buffer->variables[i].type = ShowType(kEntries[i].kind);
  }
  buffer->variables[kEntryCount] = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = buffer->variables;
  return 0;
}

/// Shown where they are: the buffer of ShowQuarry has no room for more. The server reads eight aligned bytes.
st_mysql_show_var variables_in_place[] = {
    {"foreign_heads_refused", &plugin_counters.foreign_heads_refused, SHOW_LONGLONG},
    {"heads_caught", &plugin_counters.heads_caught, SHOW_LONGLONG},
    {"out_of_memory", &times_out_of_memory, SHOW_LONGLONG},
    {nullptr, nullptr, SHOW_UNDEF}};
static_assert(sizeof(plugin_counters.heads_caught) == sizeof(longlong) && std::atomic<uint64_t>::is_always_lock_free);

int ShowParallelFlush(THD*, st_mysql_show_var* variable, void*, system_status_var*, enum_var_type) {
  variable->type = SHOW_CHAR;
  variable->value = const_cast<char*>(ParallelFlushActs() ? "ON" : "OFF");
  return 0;
}

}  // namespace

st_mysql_show_var status_variables[] = {
    SHOW_FUNC_ENTRY("Quarry", ShowQuarry),      SHOW_FUNC_ENTRY("Quarry_gc", ShowGc),
    SHOW_FUNC_ENTRY("Quarry_scrub", ShowScrub), SHOW_FUNC_ENTRY("Quarry_parallel_flush_active", ShowParallelFlush),
    {"Quarry", variables_in_place, SHOW_ARRAY}, {nullptr, nullptr, SHOW_UNDEF}};

}  // namespace quarry
