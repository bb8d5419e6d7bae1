// The counters that the plugin adds to those of the core; status_vars.h shows both.
// Thread-safety: internally synchronised.
#pragma once

#include <atomic>
#include <cstdint>

namespace quarry {

/// Counters that belong to the plugin, not to the core. Relaxed increments.
struct PluginCounters {
  std::atomic<uint64_t> autoincrement_reservations{0};  ///< ranges of ids taken from InnoDB
  std::atomic<uint64_t> autoincrement_reserved_ids{0};  ///< ids in them
  std::atomic<uint64_t> values_inline{0};               ///< values of managed columns written whole into the row
  std::atomic<uint64_t> values_out_of_line{0};          ///< values of managed columns sent to a segment
  std::atomic<uint64_t> heads_kept{0};                  ///< updated rows' values whose old head was kept, unread
  std::atomic<uint64_t> heads_caught{0};                ///< heads that RowLookers had not foreseen: decoded in time
  std::atomic<uint64_t> foreign_heads_refused{0};       ///< heads that name a store of another table
  std::atomic<uint64_t> range_reads{0};                 ///< values of which only what the statement looks at was read
  std::atomic<uint64_t> commit_syncs{0};                ///< transactions whose appends were made durable by the hook
  std::atomic<uint64_t> commits_prepared{0};            ///< of these, those flushed beside InnoDB's redo log
  std::atomic<uint64_t> prepared_committed{0};          ///< left by a crash, committed at the start
  std::atomic<uint64_t> prepared_rolled_back{0};        ///< left by a crash, rolled back at the start
  std::atomic<uint64_t> prepared_undecided{0};          ///< left by a crash, still prepared
  std::atomic<uint64_t> ddl_syncs{0};                   ///< syncs outside of the hook (ALTER, XA, commit by id)
};
inline PluginCounters plugin_counters;

}  // namespace quarry
