// The engine as the server sees it: plugin descriptor, handlerton, and what lives as long as the plugin.
//
// The story of the plugin: at init it opens the stores (or refuses to load, saying why in the server's log) and fills
// in a handlerton; when the server has finished its DDL recovery the threads start; at pre_shutdown they are joined,
// and at deinit the stores are closed.
//
// Our init may run before InnoDB's, so whatever needs InnoDB's handlerton is finished when the first handler is made.
#include "background/file_steps.h"
#include "background/gc_thread.h"
#include "background/housekeeping.h"
#include "background/rebind_settling.h"
#include "background/scrub.h"
#include "columns/encryption.h"
#include "engine/backup.h"
#include "engine/damage_table.h"
#include "engine/engine_status.h"
#include "engine/home_directory.h"
#include "engine/information_schema.h"
#include "engine/memory_table.h"
#include "engine/status_vars.h"
#include "engine/sysvars.h"
#include "engine/value_table.h"
#include "handler/absent_innodb.h"
#include "handler/ha_quarry.h"
#include "quarry/memory_guard.h"
#include "server/child_handler.h"
#include "server/error_log.h"
#include "server/ha_error.h"
#include "server/running_engine.h"
#include "transaction/prepared_commit.h"
#include "transaction/transaction.h"

#include <mysqld.h>
#include <sql_show.h>
#include <wsrep_mysqld.h>
#include <wsrep_sst.h>

// Exported by the server, declared nowhere (MyRocks does the same).
void ignore_db_dirs_append(const char* dirname_arg);

namespace quarry {

namespace {

std::unique_ptr<StoreDirectory> store_directory;
handlerton* quarry_handlerton = nullptr;
std::atomic<bool> innodb_adopted{false};
std::mutex innodb_adopted_mutex;

// InnoDB's table options become ours before the first table is opened or created.
bool AdoptInnodb() {
  if (innodb_adopted.load(std::memory_order_acquire)) return true;
  handlerton* innodb = InnodbHandlerton();
  if (innodb == nullptr) return false;
  const std::lock_guard<std::mutex> guard(innodb_adopted_mutex);
  if (!innodb_adopted.load(std::memory_order_relaxed)) {
    if (!AdoptInnodbEncryption(innodb)) return false;
    AdoptInnodbTableOptions(quarry_handlerton, innodb);
    AdoptInnodbFlushing(innodb);
    SetPrepareHook(quarry_handlerton);
    innodb_adopted.store(true, std::memory_order_release);
  }
  return true;
}

handler* NewHandler(handlerton* hton, TABLE_SHARE* share, MEM_ROOT* mem_root) {
  if (!AdoptInnodb()) return new (mem_root) AbsentInnodbHandler(hton, share);
  // Without a share it is made for a definition that is not there yet: a partition's, or a plain table's.
  THD* const thd = current_thd;
  if (share == nullptr && thd != nullptr && RefuseColumnOptionsUnderPartitions(thd)) return nullptr;
  QuarryHandler* const file = QuarryHandler::Make(share, mem_root);
  if (file == nullptr) return nullptr;
  if (file->Initialise(mem_root)) return file;
  delete file;
  return nullptr;
}

handler* CreateHandler(handlerton* hton, TABLE_SHARE* share, MEM_ROOT* mem_root) {
  return Guarded<handler*>(nullptr, [&] { return NewHandler(hton, share, mem_root); });
}

int CheckVersion(handlerton*, const char* path, const LEX_CUSTRING* version, ulonglong create_id) {
  handlerton* innodb = InnodbHandlerton();
  return innodb == nullptr || innodb->check_version == nullptr
             ? 0
             : innodb->check_version(innodb, path, version, create_id);
}

int NotifyDefinitionChanged(handlerton*, LEX_CSTRING* db, LEX_CSTRING* table_name, LEX_CUSTRING* frm,
                            LEX_CUSTRING* version, handler* file) {
  handlerton* innodb = InnodbHandlerton();
  if (innodb == nullptr || innodb->notify_tabledef_changed == nullptr) return 0;
  // InnoDB takes the handler for its own class.
  handler* child = file == nullptr ? nullptr : static_cast<QuarryHandler*>(file)->child();
  return innodb->notify_tabledef_changed(innodb, db, table_name, frm, version, child);
}

// XA RECOVER, XA COMMIT and XA ROLLBACK need no privilege: nobody is let in while a commit of Quarry's is undecided.
void RefuseToStartUndecided() {
  if (!IsForced() || mysqld_server_started != 0) return;
  LogError(
      "the server does not start (quarry=FORCE) while a commit is undecided, for every account could roll it back. To "
      "decide it by hand start with quarry=ON and skip_networking=ON, and let nobody else in");
  unireg_abort(1);
}

int DdlRecoveryDone(handlerton*) {
  NoteLoadOption();
  if (AdoptInnodb()) {
    if (!DecidePreparedCommits()) RefuseToStartUndecided();
    SettleRebindsAtStart();
  }
  // A server that only runs the statements of mariadb-install-db, or of a package's script, ends without PreShutdown: a
  // session of a thread of ours would be in InnoDB's way then.
  if (opt_bootstrap != 0) return 0;
  StartHousekeeping();
  StartGc();
  StartScrub();
  StartSelfCheck();
  return 0;
}

void PreShutdown() {
  StopGc();
  StopScrub();
  StopHousekeeping();
  StopSelfCheck();
}

// Galera calls it under FLUSH TABLES WITH READ LOCK, around the copying of the data directory for a joining node
// (rsync).
void DisableInternalWrites(bool disable) {
  if (disable) {
    PauseHousekeeping(Pause::kStateTransfer);
  } else {
    ResumeHousekeeping(Pause::kStateTransfer);
  }
}

// A Galera node may be made of another one's files. Those methods know the data directory alone, or only some files
// in it: what lies elsewhere would be missing on the new node, and its rows would point at nothing.
Status CheckStateTransfer(const DirectoryOptions& options) {
  if (!WSREP_ON || !wsrep_before_SE()) return Status::Ok();
  const std::string method = wsrep_sst_method;
  if (!options.data_paths.empty()) {
    return Status::InvalidArgument("quarry_data_paths='" + options.data_paths.front() +
                                   (options.data_paths.size() > 1 ? ";...'" : "'") +
                                   " with wsrep_sst_method=" + method +
                                   ", which copies the data directory alone (allowed: no data paths, or "
                                   "wsrep_sst_method=mysqldump)");
  }
  if (method.compare(0, 5, "rsync") != 0) {
    LogWarning(
        "wsrep_sst_method=%s leaves %s out: the values of QUARRY tables would be missing on a node that "
        "it makes; use rsync",
        method.c_str(), kHomeName);
  }
  return Status::Ok();
}

void FillHandlerton(handlerton* hton) {
  hton->db_type = static_cast<legacy_db_type>(kEngineNumber);
  hton->create = CreateHandler;
  hton->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_SUPPORTS_FOREIGN_KEYS | HTON_WSREP_REPLICATION |
                HTON_REQUIRES_CLOSE_AFTER_TRUNCATE | HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE |
                HTON_REQUIRES_NOTIFY_TABLEDEF_CHANGED_AFTER_COMMIT;
  hton->table_options = TableOptionRules();
  hton->field_options = FieldOptionRules();
  hton->check_version = CheckVersion;
  hton->notify_tabledef_changed = NotifyDefinitionChanged;
  hton->signal_ddl_recovery_done = DdlRecoveryDone;
  hton->pre_shutdown = PreShutdown;
  hton->disable_internal_writes = DisableInternalWrites;
  hton->show_status = ShowEngineStatus;
  hton->prepare_for_backup = OnBackupStart;
  hton->end_backup = OnBackupEnd;
  SetTransactionHooks(hton);
}

// Else the folder shows up as a database which no statement may name, and mariadb-dump --all-databases fails of it.
// From 10.11.19 on the list is read-only once the server runs: a change would kill it.
void HideHome() {
  if (mysqld_server_started == 0) {
    ignore_db_dirs_append(kHomeName);
  } else if (std::string(opt_ignore_db_dirs).find(kHomeName) == std::string::npos) {
    LogWarning(
        "until the next start %s shows among the databases, and mariadb-dump --all-databases, mariadb-check "
        "and mariadb-upgrade fail of it with error 1102: put ignore_db_dirs=\"%s\" into the configuration and restart",
        kHomeName, kHomeName);
  }
}

void SayWhosePathsAre(bool adopts) {
  for (const std::string& reason : store_directory->PathTroubles()) {
    LogWarning("%s", reason.c_str());
  }
  if (adopts) {
    LogWarning(
        "quarry_adopt_data_paths=ON: the data paths are this data directory's now, whoever opened them last. "
        "Take it out of the configuration: while it is there, a copy of this data directory could harm its source");
  }
}

Status OpenStores() {
  const std::string home = std::string(mysql_real_data_home) + kHomeName;
  HideHome();
  QUARRY_TRY_ASSIGN(DirectoryOptions options, DirectoryOptionsFromVariables(home));
  options.cipher_provider = MakeCipherProvider();
  QUARRY_TRY(CheckStateTransfer(options));
  QUARRY_TRY(RefuseWithoutHome(mysql_real_data_home, home));
  QUARRY_TRY_ASSIGN(store_directory, StoreDirectory::Open(options));
  ForgetWishToGoOnWithoutValues(home);
  SayWhosePathsAre(options.adopt_data_paths);
  LogNotices();
  return Status::Ok();
}

int Init(void* argument) {
  if (const Status status = OrOutOfMemory([] { return OpenStores(); }); !status.ok()) {
    store_directory.reset();
    LogError("the stores under %s%s cannot be opened: %s: %s", mysql_real_data_home, kHomeName,
             StatusCodeName(status.code()), status.message().c_str());
    return 1;
  }
  quarry_handlerton = static_cast<handlerton*>(argument);
  innodb_adopted = false;  // UNINSTALL and INSTALL may come without the library being unloaded
  FillHandlerton(quarry_handlerton);
  return 0;
}

int Deinit(void*) {
  PreShutdown();
  if (store_directory != nullptr) {
    store_directory.reset();
  }
  quarry_handlerton = nullptr;
  return 0;
}

struct st_mysql_storage_engine engine_descriptor = {MYSQL_HANDLERTON_INTERFACE_VERSION};

constexpr const char* kAuthor = "The Quarry project";
constexpr unsigned int kPluginVersion = 0x0001;
constexpr const char* kPluginVersionText = "0.1";

constexpr st_maria_plugin InformationSchemaTable(const char* name, const char* description, int (*init)(void*)) {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &information_schema_descriptor,
          name,
          kAuthor,
          description,
          PLUGIN_LICENSE_GPL,
          init,
          nullptr,
          kPluginVersion,
          nullptr,
          nullptr,
          kPluginVersionText,
          MariaDB_PLUGIN_MATURITY_EXPERIMENTAL};
}

}  // namespace

StoreDirectory* Directory() { return store_directory.get(); }

handlerton* QuarryHandlerton() { return quarry_handlerton; }

}  // namespace quarry

// The server finds these by name; all else of the plugin is hidden (CMakeLists.txt).
#pragma GCC visibility push(default)
maria_declare_plugin(quarry){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &quarry::engine_descriptor,
    "QUARRY",
    quarry::kAuthor,
    "InnoDB rows, with the payload of BLOB, TEXT and JSON columns in append-only segments beside them",
    PLUGIN_LICENSE_GPL,
    quarry::Init,
    quarry::Deinit,
    quarry::kPluginVersion,
    quarry::status_variables,
    quarry::system_variables,
    quarry::kPluginVersionText,
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL,
},
    quarry::InformationSchemaTable("QUARRY_COLUMNS", "How each BLOB, TEXT and JSON column of a QUARRY table is kept",
                                   quarry::InitQuarryColumns),
    quarry::InformationSchemaTable("QUARRY_TABLES", "Segments and bytes of each QUARRY table",
                                   quarry::InitQuarryTables),
    quarry::InformationSchemaTable("QUARRY_VALUES", "Where the values of each column are, by a sample of rows",
                                   quarry::InitQuarryValues),
    quarry::InformationSchemaTable("QUARRY_MEMORY", "Memory that Quarry uses, in all and for each table",
                                   quarry::InitQuarryMemory),
    quarry::InformationSchemaTable("QUARRY_DAMAGE", "What the scrub found in the segments", quarry::InitQuarryDamage),
    quarry::InformationSchemaTable("QUARRY_BACKUP",
                                   "Which files a backup must hold, for the session with quarry_backup_lock",
                                   quarry::InitQuarryBackup) maria_declare_plugin_end;
#pragma GCC visibility pop
