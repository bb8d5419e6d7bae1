// The plugin's one background thread: checkpoints at intervals, and the sweep of stores whose
// table is gone (trash_sweep.h).
// Thread-safety: internally synchronised.
#pragma once

namespace quarry {

/// After signal_ddl_recovery_done: before it, tables may still be renamed and dropped by the server's own recovery.
void StartHousekeeping();
/// The server copies the data directory (a state transfer to a joining node) while nobody can write: from the return
/// until ResumeHousekeeping nothing of Quarry's own accord changes a file. Both may be called twice.
void PauseHousekeeping();
void ResumeHousekeeping();
/// Stops and joins. In pre_shutdown, while the server can still run the queries of the thread, and in deinit.
void StopHousekeeping();

}  // namespace quarry
