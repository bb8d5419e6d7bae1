#include "engine/backup.h"

#include <mdl.h>
#include <set_var.h>
#include <sql_acl.h>
#include <sql_i_s.h>
#include <sql_parse.h>
#include <sql_show.h>

#include "background/file_steps.h"
#include "engine/home_directory.h"
#include "engine/schema_table.h"
#include "quarry/backup.h"
#include "quarry/memory_guard.h"
#include "server/backup_lock.h"
#include "server/error_log.h"
#include "server/ha_error.h"
#include "server/running_engine.h"
#include "server/variables.h"
#include "transaction/transaction.h"

namespace quarry {

namespace {

/// Who has the lock, and what was kept for it.
struct Kept {
  std::mutex mutex;
  my_thread_id owner = 0;  // 0: nobody; this and what follows is guarded by mutex
  unsigned snapshots = 0;  // taken since; more than one: which of them is the owner's cannot be told
  Result<BackupSnapshot> snapshot = Status::NotFound("no backup has reached BACKUP STAGE END yet");
};
Kept kept;

/// Whether `thd` has blocked DDL and commits. A backup that was broken off may end before.
bool BlocksCommits(THD* thd) {
  return thd != nullptr && thd->mdl_context.is_lock_owner(MDL_key::BACKUP, "", "", MDL_BACKUP_WAIT_COMMIT);
}

bool IsSetGlobal(THD* thd, const char* name) {
  List_iterator_fast<set_var_base> variables(thd->lex->var_list);
  while (set_var_base* const base = variables++) {
    if (!base->is_system()) continue;
    const auto* const variable = static_cast<set_var*>(base);
    if (variable->var != nullptr && strcmp(variable->var->name.str, name) == 0 && variable->type == OPT_GLOBAL) {
      return true;
    }
  }
  return false;
}

constexpr char kVariable[] = "quarry_backup_lock";

}  // namespace

// ---- the lock ----

my_thread_id BackupLock::Owner() {
  const std::lock_guard<std::mutex> guard(kept.mutex);
  return kept.owner;
}

std::unique_ptr<BackupLock> BackupLock::Take(THD* thd) {
  std::unique_ptr<BackupLock> lock;
  {
    const std::lock_guard<std::mutex> guard(kept.mutex);
    if (kept.owner != 0) return nullptr;
    kept.snapshot = Status::NotFound("no backup has reached BACKUP STAGE END yet");
    lock.reset(new BackupLock);  // before it has an owner: without memory nobody would give it back
    kept.snapshots = 0;
    kept.owner = thd->thread_id;
  }
  PauseHousekeeping(Pause::kBackupLock);
  LogInformation("session %llu holds the backup lock: no space is given back until it ends",
                 static_cast<unsigned long long>(thd->thread_id));
  return lock;
}

BackupLock::~BackupLock() {
  {
    const std::lock_guard<std::mutex> guard(kept.mutex);
    // Before the next owner can pause.
    ResumeHousekeeping(Pause::kBackupLock);
    kept.owner = 0;
    // Without memory for the text the snapshot stays: nobody is shown it.
    (void)OrOutOfMemory([] { kept.snapshot = Status::NotFound("nobody holds the backup lock"); });
  }
  LogInformation("the backup lock was given back");
}

int CheckBackupLock(THD* thd, st_mysql_sys_var*, void* save, st_mysql_value* value) {
  longlong wanted = 0;
  const bool is_null = value->val_int(value, &wanted) != 0;
  if (is_null || (wanted != 0 && wanted != 1)) {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "%s can be 0 or 1", MYF(0), kVariable);
    return 1;
  }
  if (IsSetGlobal(thd, kVariable)) {
    my_printf_error(ER_LOCAL_VARIABLE, "%s belongs to a session, which it protects until it ends: use SET SESSION",
                    MYF(0), kVariable);
    return 1;
  }
  // As BACKUP STAGE.
  if (check_global_access(thd, RELOAD_ACL)) return 1;
  const my_thread_id owner = BackupLock::Owner();
  if (wanted == 1 && owner != 0 && owner != thd->thread_id) {
    my_printf_error(ER_LOCK_WAIT_TIMEOUT,
                    "another backup is under way: session %llu holds %s. Wait for it, or end it with KILL %llu", MYF(0),
                    static_cast<unsigned long long>(owner), kVariable, static_cast<unsigned long long>(owner));
    return 1;
  }
  *static_cast<my_bool*>(save) = wanted == 1;
  return 0;
}

void UpdateBackupLock(THD* thd, st_mysql_sys_var*, void* target, const void* save) {
  Transaction* const session = Transaction::Of(thd);
  const bool had = *static_cast<const my_bool*>(target);
  bool wanted = *static_cast<const my_bool*>(save);
  if (session == nullptr) {
    wanted = false;
  } else if (!wanted || !had) {
    // One that it had before its connection was reset goes, and so does that one's snapshot.
    session->GiveBackBackupLock();
    // Two sessions may have passed the check: the later one sees 0 in its variable, as one that finds no memory.
    if (wanted) wanted = Guarded(false, [&] { return session->TakeBackupLock(thd); });
  }
  *static_cast<my_bool*>(target) = wanted;
}

// ---- the stages ----

void OnBackupStart() {
  // At shutdown and start there are no stages; still, whoever calls cannot be told of an error.
  if (Directory() == nullptr) return;
  PauseHousekeeping(Pause::kBackupStage);
  if (BackupLock::Owner() != 0) return;
  const Result<bool> has_stores = OrOutOfMemory([]() -> Result<bool> { return !Directory()->ListBindings().empty(); });
  if (!has_stores.ok() || !*has_stores) return;
  LogWarning(
      "a backup starts without quarry-backup. mariadb-backup alone leaves out the values that QUARRY tables "
      "keep in %s: what it makes cannot be used as a backup of them. Use quarry-backup; for the state transfer of a "
      "Galera cluster, wsrep_sst_method=rsync",
      kHomeName);
}

void OnBackupEnd() {
  if (Directory() == nullptr) return;
  if (BackupLock::Owner() != 0 && BlocksCommits(current_thd)) {
    Result<BackupSnapshot> snapshot = OrOutOfMemory([] { return Directory()->TakeBackupSnapshot(); });
    const std::lock_guard<std::mutex> guard(kept.mutex);
    if (kept.owner != 0) {
      ++kept.snapshots;
      kept.snapshot = std::move(snapshot);
    }
  }
  ResumeHousekeeping(Pause::kBackupStage);
}

// ---- INFORMATION_SCHEMA.QUARRY_BACKUP ----

namespace {

namespace columns {

enum Index : uint { kKind, kName, kPath, kPathNumber, kContents };

constexpr uint kKindLength = 16;
constexpr uint kPathLength = 4096;
constexpr uint kContentsLength = 1U << 28;

ST_FIELD_INFO fields[] = {Show::Column("KIND", Show::Varchar(kKindLength), NOT_NULL),
                          Show::Column("NAME", Show::Varchar(kPathLength), NOT_NULL),
                          Show::Column("PATH", Show::Varchar(kPathLength), NULLABLE),
                          Show::Column("PATH_NUMBER", Show::ULonglong(), NULLABLE),
                          Show::Column("CONTENTS", Show::Longtext(kContentsLength), NULLABLE),
                          Show::CEnd()};

}  // namespace columns

struct Row {
  const char* kind;
  std::string name;
  std::string path;
  std::optional<uint32_t> path_number;
  std::string contents;
};

void StoreColumn(Field* field, const std::string& text) {
  if (text.empty() && field->maybe_null()) {
    field->set_null();
    return;
  }
  StoreText(field, text);
}

bool StoreRow(THD* thd, TABLE* target, const Row& row) {
  restore_record(target, s->default_values);
  Field** const fields = target->field;
  StoreColumn(fields[columns::kKind], row.kind);
  StoreColumn(fields[columns::kName], row.name);
  StoreColumn(fields[columns::kPath], row.path);
  if (row.path_number) StoreNumber(fields[columns::kPathNumber], *row.path_number);
  StoreColumn(fields[columns::kContents], row.contents);
  return schema_table_store_record(thd, target);
}

std::string Hex(const std::vector<uint8_t>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string MadeAbsolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> resolved(realpath(path.c_str(), nullptr), &free);
  return resolved ? std::string(resolved.get()) : path;
}

/// Segments of the home are named by the home's path as the server knows it, which may be relative to its directory.
std::vector<Row> Rows(const BackupSnapshot& snapshot, const std::string& home, const std::string& home_now) {
  std::vector<Row> rows;
  for (const BackupSnapshot::SmallFile& file : snapshot.small_files) {
    rows.push_back({"file", file.name, "", {}, Hex(file.contents)});
  }
  for (const BackupSnapshot::DataPath& path : snapshot.data_paths) {
    rows.push_back({"data path", path.path, path.marker, path.path_number, ""});
  }
  for (const BackupSnapshot::SegmentFile& segment : snapshot.segments) {
    const bool in_home = segment.path.compare(0, home.size(), home) == 0;
    rows.push_back({"segment", segment.name, in_home ? home_now + segment.path.substr(home.size()) : segment.path,
                    segment.path_number, ""});
  }
  return rows;
}

/// Shown to the session that has the lock, and to nobody else: the files are not anybody's to read. A connection that
/// was reset may be another account's by now.
int FillBackup(THD* thd, TABLE_LIST* list, COND*) {
  if (!BackupLockIsSet(thd)) return 0;
  std::vector<Row> rows;
  {
    const std::lock_guard<std::mutex> guard(kept.mutex);
    if (kept.owner == 0 || kept.owner != thd->thread_id) return 0;
    rows.push_back({"snapshots", std::to_string(kept.snapshots), "", {}, ""});
    if (!kept.snapshot.ok()) {
      rows.push_back({"error", kept.snapshot.status().ToString(), "", {}, ""});
    } else {
      const std::string home = std::string(mysql_real_data_home) + kHomeName;
      const std::string home_now = MadeAbsolute(home);
      rows.push_back({"home", home_now, home_now, {}, ""});
      for (Row& row : Rows(*kept.snapshot, home, home_now)) rows.push_back(std::move(row));
    }
  }
  for (const Row& row : rows) {
    if (StoreRow(thd, list->table, row)) return 1;
  }
  return 0;
}

}  // namespace

int InitQuarryBackup(void* raw_schema_table) { return InitSchemaTable<FillBackup>(raw_schema_table, columns::fields); }

}  // namespace quarry
