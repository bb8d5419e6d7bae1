// Housekeeping: a thread that sweeps stores whose table is gone (trash_sweep.h).
// Thread-safety: internally synchronised.
#pragma once

namespace quarry {

/// After signal_ddl_recovery_done: before it, tables may still be renamed and dropped by the server's own recovery.
void StartHousekeeping();
/// Stops and joins. In pre_shutdown, while the server can still run the queries of the thread, and in deinit.
void StopHousekeeping();

/// What the store has to say goes to the error log.
void LogNotices();

}  // namespace quarry
