// File steps: every change of files by the plugin's own threads is one, and pauses hold them off.
// Thread-safety: internally synchronised.
#pragma once

namespace quarry {

/// Why Quarry keeps its own hands off its files for a while.
enum class Pause : unsigned {
  kStateTransfer = 1,  ///< the server copies the data directory for a joining Galera node, while nobody can write
  kBackupStage = 2,    ///< BACKUP STAGE START to END: mariadb-backup is at work
  kBackupLock = 4,     ///< a session holds quarry_backup_lock: quarry-backup is at work (backup.h)
};

/// From the return until ResumeHousekeeping, for every reason given, nothing of Quarry's own accord changes a file, and
/// nothing is given back: whatever does either is a step of the housekeeping thread, or of GC's. Waits for the steps
/// under way. Both may be called twice for one reason.
void PauseHousekeeping(Pause reason);
void ResumeHousekeeping(Pause reason);
/// Whether some reason to pause stands. A long step looks at it now and then, and ends early: a backup waits for it.
bool HousekeepingIsPaused();
/// Another thread of Quarry's (GC) is about to change files. False: not now, there is a reason to pause. After true a
/// pause waits for EndFileStep, so a step is short.
[[nodiscard]] bool TryBeginFileStep();
void EndFileStep();
/// Warns, once for each pause, of one that has lasted for minutes.
void WarnOfLongPause();

}  // namespace quarry
