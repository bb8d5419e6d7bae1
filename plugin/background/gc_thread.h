// GC's thread: decides which table is worth a mark pass (gc_policy.h), runs one pass after the other (gc_table_pass.h),
// and tells what came of them.
//
// The thread is named quarry_gc. It holds nothing that a user's statement could wait for, but for the shared metadata
// lock of the table that it scans, and that it gives up when somebody asks (gc_scan.h).
// Thread-safety: internally synchronised.
#pragma once

#include <optional>
#include <string>

#include "quarry/types.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// Before the server lets anybody in (server_look.h): returns when the thread is ready.
void StartGc();
/// Stops, whatever a pass is waiting for, and joins.
void StopGc();
/// Every table has a pass soon, whatever the counters and quarry_gc say.
void RequestGc();

struct GcCounts {
  uint64_t passes = 0;          ///< that ended as they should
  uint64_t passes_dropped = 0;  ///< that gave up
  uint64_t passes_skipped = 0;  ///< that were not begun, because they would take too long
  uint64_t reclaimed_bytes = 0;
  uint64_t segments_unlinked = 0;
  uint64_t segments_rewritten = 0;
  uint64_t rewritten_bytes = 0;   ///< of extents, copied
  uint64_t rewrites_refused = 0;  ///< for want of room; counted by every pass that meets the segment
  uint64_t segments_damaged = 0;  ///< left as they are; likewise
  uint64_t memory_bytes = 0;      ///< the most that a pass took over one table
  uint64_t rows_scanned = 0;
  uint64_t looks = 0;  ///< at whether those that a pass waits for have ended
  uint64_t requests = 0;
  uint64_t requests_done = 0;  ///< as many of them have seen every table's pass end, one way or the other
};

struct GcStatus : GcCounts {
  std::string state;        ///< what it does just now
  std::string last_error;   ///< why the last pass that was dropped was; empty: none was
  std::string last_damage;  ///< the first damage that the last pass met which met any; empty: none did
};
[[nodiscard]] GcStatus GetGcStatus();

/// What the last pass over a store's table found. ended_at 0: none ended yet.
struct GcStoreStatus {
  uint64_t ended_at = 0;  ///< seconds since 1970, UTC
  uint64_t live_bytes = 0;
  uint64_t needed_s = 0;  ///< by a scan, which is not begun because quarry_gc_timeout is less; 0: it may be
};
/// None since the server started: nullopt.
[[nodiscard]] std::optional<GcStoreStatus> GetGcStoreStatus(StoreId store);

}  // namespace quarry
