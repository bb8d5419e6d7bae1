// What a backup of a running server needs from the engine: the files kept still, and a description of one moment.
//
// quarry-backup (tools/quarry-backup) runs mariadb-backup, which knows nothing of segments, and copies them itself:
//  1. Its own session takes the backup lock (SET SESSION quarry_backup_lock = 1): nothing is given back any more.
//  2. mariadb-backup runs. At its BACKUP STAGE END, while DDL and commits are still blocked and InnoDB's last LSN to be
//     copied has passed, the engine keeps a snapshot of its small files (quarry/backup.h) for the session of 1.
//  3. The tool reads the snapshot from INFORMATION_SCHEMA.QUARRY_BACKUP, and copies the segments it names.
//  4. The session gives the lock back, or ends: a tool that dies pauses nothing for longer than its connection lives.
// docs/internals/backup.md says why that is enough.
//
// A reset of the connection (COM_RESET_CONNECTION, COM_CHANGE_USER) sets the variable to 0, and the server tells no
// engine of it. Then the lock stays until the session sets the variable or ends; the session sees nothing of the
// snapshot.
//
// Thread-safety: internally synchronised.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// For the session variable quarry_backup_lock: the check refuses who may not (RELOAD, as for BACKUP STAGE) and SET
/// GLOBAL, and names the session that has it; the update takes it or gives it back.
int CheckBackupLock(THD* thd, struct st_mysql_sys_var* variable, void* save, struct st_mysql_value* value);
void UpdateBackupLock(THD* thd, struct st_mysql_sys_var* variable, void* target, const void* save);

/// handlerton::prepare_for_backup and end_backup: BACKUP STAGE START and END.
void OnBackupStart();
void OnBackupEnd();

/// INFORMATION_SCHEMA.QUARRY_BACKUP, for its plugin descriptor.
int InitQuarryBackup(void* schema_table);

}  // namespace quarry
