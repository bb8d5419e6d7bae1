// The plugin's one background thread: checkpoints at intervals, and the sweep of stores whose table is gone.
//
// The sweep never trusts one look. A store goes to the trash when InnoDB lists no table of its id (in a result that
// does hold a canary: a table of InnoDB's own that must be there); it is unlinked only when InnoDB has flushed its log
// beyond that moment, every transaction that was open then has ended, and the table is still missing. Any doubt keeps.
// Thread-safety: internally synchronised.
#pragma once

namespace quarry {

/// After signal_ddl_recovery_done: before it, tables may still be renamed and dropped by the server's own recovery.
void StartHousekeeping();
/// Stops and joins. In pre_shutdown, while the server can still run the queries of the thread, and in deinit.
void StopHousekeeping();

}  // namespace quarry
