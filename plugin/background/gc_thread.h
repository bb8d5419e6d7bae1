// GC's thread: decides which table is worth a mark pass (gc_policy.h), runs one pass after the other (gc_table_pass.h),
// and tells what came of them.
//
// The thread is named quarry_gc. It holds nothing that a user's statement could wait for, but for the shared metadata
// lock of the table that it scans, and that it gives up when somebody asks (gc_scan.h).
// Thread-safety: internally synchronised.
#pragma once

#include <optional>

#include "background/gc_status.h"
#include "quarry/types.h"

namespace quarry {

/// Before the server lets anybody in (server_look.h): returns when the thread is ready.
void StartGc();
/// Stops, whatever a pass is waiting for, and joins.
void StopGc();
/// Every table has a pass soon, whatever the counters and quarry_gc say.
void RequestGc();

[[nodiscard]] GcStatus GetGcStatus();
/// None since the server started: nullopt.
[[nodiscard]] std::optional<GcStoreStatus> GetGcStoreStatus(StoreId store);

}  // namespace quarry
