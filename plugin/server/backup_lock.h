// BackupLock: nothing is given back while a session has it; plugin/engine/backup.h says what for,
// plugin/engine/backup.cc defines it. Thread-safety: internally synchronised.
#pragma once

#include <memory>

#include "server/mariadb_compat.h"

namespace quarry {

/// The lock, for as long as it lives. At most one session has it.
class BackupLock {
 public:
  /// Null when another session has it.
  static std::unique_ptr<BackupLock> Take(THD* thd);
  /// The session that has it; 0: none has.
  static my_thread_id Owner();
  ~BackupLock();
  BackupLock(const BackupLock&) = delete;
  BackupLock& operator=(const BackupLock&) = delete;

 private:
  BackupLock() = default;
};

}  // namespace quarry
