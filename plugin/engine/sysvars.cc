// See sysvars.h. Comments of variables must not end in a full stop or a blank: debug builds of later servers assert it.
#include "engine/sysvars.h"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "background/gc_policy.h"
#include "background/gc_thread.h"
#include "columns/column_settings.h"
#include "engine/backup.h"
#include "server/running_engine.h"
#include "server/variables.h"

namespace quarry {
namespace {

/// In the order of enum class Codec.
const char* codec_names[] = {"none", "lz4", "zstd", nullptr};
const char* defaults_names[] = {"quarry", "ndb", nullptr};
TYPELIB defaults_typelib = {array_elements(defaults_names) - 1, "", defaults_names, nullptr};
TYPELIB codec_typelib = {array_elements(codec_names) - 1, "", codec_names, nullptr};

constexpr uint kAutoincrementPrefetchMax = 65536;
constexpr unsigned long long kSegmentSizeMin = 1ULL << 20;
/// With a value of 4 GiB at its end a segment is still below 32 GiB, as far as GC can rewrite it.
constexpr unsigned long long kSegmentSizeMax = 16ULL << 30;
constexpr unsigned long long kPoolMax = 1ULL << 32;
constexpr uint kOpenFilesMax = 1U << 20;
/// The rest is the server's: tables, InnoDB, connections.
constexpr rlim_t kOpenFilesShare = 4;
constexpr unsigned long long kCacheMax = 1ULL << 40;
constexpr unsigned long long kGcRate = 256ULL << 20;
constexpr unsigned long long kGcRateMax = 1ULL << 40;
constexpr unsigned long long kScrubRateDefault = 1ULL << 20;
constexpr unsigned long long kScrubRateMax = 1ULL << 40;
constexpr uint kScrubIntervalDefault = 7 * 24 * 3600;
constexpr unsigned long long kBatchSizeDefault = 4ULL << 20;
constexpr unsigned long long kBatchSizeMax = 64ULL << 20;
constexpr uint kScrubIntervalMax = 366 * 24 * 3600;

uint replica_write_batch_bytes;
char* data_paths;
my_bool adopt_data_paths;
unsigned long long zeroed_pool_bytes;
unsigned long long recent_cache_bytes;
unsigned long long segment_size;
unsigned int open_files;
unsigned long long cache_size;
my_bool parallel_flush;
my_bool gc;
my_bool gc_now;
double space_amplification_max;
uint gc_interval;
uint gc_full_interval;
uint gc_timeout;
unsigned long long gc_rate;
unsigned long long scrub_rate;
unsigned int scrub_interval;

MYSQL_THDVAR_UINT(inline_size, PLUGIN_VAR_RQCMDARG,
                  "INLINE_SIZE of tables created without one: values up to this many bytes stay whole in the row",
                  nullptr, nullptr, kInlineSizeDefaultBytes, 0, kInlineSizeMaxBytes, 0);
MYSQL_THDVAR_UINT(prefix_size, PLUGIN_VAR_RQCMDARG,
                  "PREFIX_SIZE of tables created without one: bytes of a longer value that stay in the row", nullptr,
                  nullptr, kPrefixSizeDefaultBytes, 0, kPrefixSizeMaxBytes, 0);
MYSQL_THDVAR_UINT(part_size, PLUGIN_VAR_RQCMDARG,
                  "PART_SIZE of tables created without one: bytes of a value that are compressed and checksummed "
                  "together",
                  nullptr, nullptr, kPartSizeDefaultBytes, kPartSizeMinBytes, kPartSizeMaxBytes, 0);
MYSQL_THDVAR_ENUM(codec, PLUGIN_VAR_RQCMDARG, "CODEC of tables created without one: none, lz4 or zstd", nullptr,
                  nullptr, static_cast<unsigned long>(Codec::kNone), &codec_typelib);
MYSQL_THDVAR_ENUM(defaults, PLUGIN_VAR_RQCMDARG,
                  "DEFAULTS of tables created without one: quarry, or ndb, which gives plain columns the sizes that "
                  "MySQL Cluster's NDB gives them",
                  nullptr, nullptr, 0, &defaults_typelib);
MYSQL_THDVAR_UINT(read_batch_bytes, PLUGIN_VAR_RQCMDARG,
                  "Bytes of stored parts that are asked for in one submission when a value is read", nullptr, nullptr,
                  kReadBatchDefaultBytes, kBatchMinBytes, kBatchMaxBytes, 0);
MYSQL_THDVAR_UINT(write_batch_bytes, PLUGIN_VAR_RQCMDARG,
                  "Bytes of one write call, and of the buffer behind it, when a value is written", nullptr, nullptr,
                  kWriteBatchDefaultBytes, kBatchMinBytes, kBatchMaxBytes, 0);
MYSQL_THDVAR_ULONGLONG(batch_size, PLUGIN_VAR_RQCMDARG,
                       "Bytes of the values of the next rows that a scan that locks nothing has read ahead at once. 0: "
                       "each value when its row is read",
                       nullptr, nullptr, kBatchSizeDefault, 0, kBatchSizeMax, 0);
MYSQL_THDVAR_BOOL(range_pushdown, PLUGIN_VAR_OPCMDARG,
                  "A SELECT that looks at a column only by SUBSTRING, MID, LEFT, RIGHT and LENGTH reads the parts "
                  "that it needs. OFF: whole values",
                  nullptr, nullptr, true);
MYSQL_THDVAR_UINT(autoincrement_prefetch_sz, PLUGIN_VAR_RQCMDARG,
                  "AUTO_INCREMENT values that are reserved at once; what a connection does not use becomes a gap",
                  nullptr, nullptr, 1, 1, kAutoincrementPrefetchMax, 0);

MYSQL_THDVAR_BOOL(backup_lock, PLUGIN_VAR_NOCMDOPT,
                  "1: nothing is given back or moved until this session sets it to 0 or ends. For quarry-backup; one "
                  "session at a time",
                  CheckBackupLock, UpdateBackupLock, false);

MYSQL_SYSVAR_UINT(replica_write_batch_bytes, replica_write_batch_bytes, PLUGIN_VAR_RQCMDARG,
                  "quarry_write_batch_bytes of the replication applier", nullptr, nullptr, kWriteBatchDefaultBytes,
                  kBatchMinBytes, kBatchMaxBytes, 0);
MYSQL_SYSVAR_BOOL(adopt_data_paths, adopt_data_paths, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                  "Write to data paths that another data directory opened last, too. For one start, after this data "
                  "directory was moved or restored, and when no other server uses them",
                  nullptr, nullptr, 0);
MYSQL_SYSVAR_STR(data_paths, data_paths, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "Absolute paths of existing directories, separated by ';', over which segments are striped. Empty: "
                 "segments live in the data directory",
                 nullptr, nullptr, "");
MYSQL_SYSVAR_UINT(open_files, open_files, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "Descriptors of segment files that may be open at once, a quarter of open_files_limit at most. 0: as "
                  "many as that",
                  nullptr, nullptr, 0, 0, kOpenFilesMax, 0);
MYSQL_SYSVAR_ULONGLONG(zeroed_pool_bytes, zeroed_pool_bytes, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Zeroed segment space kept ahead of small flushes, per lane, on file systems with a journal. "
                       "0: none",
                       nullptr, nullptr, DirectoryOptions().zeroed_pool_bytes, 0, kPoolMax, 0);
MYSQL_SYSVAR_ULONGLONG(recent_cache_bytes, recent_cache_bytes, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Memory for just-written bytes, from which reads are served", nullptr, nullptr,
                       RecentCacheBytesFor(UsableMemoryBytes()), 0, kCacheMax, 0);
void SetCacheSize(THD* thd, st_mysql_sys_var*, void* target, const void* wanted) {
  const auto bytes = *static_cast<const unsigned long long*>(wanted);
  *static_cast<unsigned long long*>(target) = bytes;
  StoreDirectory* const directory = Directory();
  if (directory == nullptr) return;  // the engine did not start
  if (const Status status = directory->SetValueCacheBytes(bytes); !status.ok()) {
    *static_cast<unsigned long long*>(target) = 0;
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_OUTOFMEMORY, "QUARRY: %s", status.ToString().c_str());
  }
}
MYSQL_SYSVAR_ULONGLONG(cache_size, cache_size, PLUGIN_VAR_RQCMDARG,
                       "Memory for values that are read again and again, from which reads are served without a copy. "
                       "0: none",
                       nullptr, SetCacheSize, ValueCacheBytesFor(UsableMemoryBytes()), 0, kValueCacheMaxBytes, 0);
MYSQL_SYSVAR_ULONGLONG(segment_size, segment_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                       "Bytes after which a segment is sealed and the next one begun", nullptr, nullptr,
                       DirectoryOptions().segment_size_bytes, kSegmentSizeMin, kSegmentSizeMax, 0);

MYSQL_SYSVAR_BOOL(
    parallel_flush, parallel_flush, PLUGIN_VAR_OPCMDARG,
    "A commit flushes its values and InnoDB's redo log at the same time; a crash between the two is decided "
    "at the next start. OFF: first the values, then the redo log",
    nullptr, nullptr, true);
MYSQL_SYSVAR_BOOL(gc, gc, PLUGIN_VAR_RQCMDARG,
                  "Give back the space of dead values by itself. OFF: only when quarry_gc_now asks for it", nullptr,
                  nullptr, true);
MYSQL_SYSVAR_DOUBLE(space_amplification_max, space_amplification_max, PLUGIN_VAR_RQCMDARG,
                    "Bytes that a table's segments take on disk, per byte of live values, above which a mark pass is "
                    "made",
                    nullptr, nullptr, GcSettings().space_amplification_max, 1.05, 1000, 0);
MYSQL_SYSVAR_UINT(gc_interval, gc_interval, PLUGIN_VAR_RQCMDARG,
                  "Seconds between two looks at which tables are worth a mark pass", nullptr, nullptr, 60, 1, 86400, 0);
MYSQL_SYSVAR_UINT(gc_full_interval, gc_full_interval, PLUGIN_VAR_RQCMDARG,
                  "Seconds after which a table has a mark pass whatever its counters say, for they miss foreign key "
                  "cascades. 0: never",
                  nullptr, nullptr, static_cast<uint>(GcSettings().full_interval_s), 0, 31536000, 0);
MYSQL_SYSVAR_UINT(gc_timeout, gc_timeout, PLUGIN_VAR_RQCMDARG,
                  "Seconds for which a mark pass waits for transactions to end, and for which its scan may keep a "
                  "read view open",
                  nullptr, nullptr, 3600, 1, 604800, 0);
MYSQL_SYSVAR_ULONGLONG(gc_rate, gc_rate, PLUGIN_VAR_RQCMDARG,
                       "Bytes per second that a mark pass gives back at most. 0: no limit", nullptr, nullptr, kGcRate,
                       0, kGcRateMax, 0);

void UpdateGcNow(MYSQL_THD, st_mysql_sys_var*, void*, const void* value) {
  if (*static_cast<const my_bool*>(value) != 0) RequestGc();
}
MYSQL_SYSVAR_BOOL(gc_now, gc_now, PLUGIN_VAR_NOCMDOPT,
                  "SET GLOBAL quarry_gc_now=ON asks for a mark pass over every table; reads as OFF", nullptr,
                  UpdateGcNow, false);

MYSQL_SYSVAR_ULONGLONG(scrub_rate, scrub_rate, PLUGIN_VAR_RQCMDARG,
                       "Bytes a second that the scrub reads to verify every segment over time. 0: no scrub", nullptr,
                       nullptr, kScrubRateDefault, 0, kScrubRateMax, 0);
MYSQL_SYSVAR_UINT(scrub_interval, scrub_interval, PLUGIN_VAR_RQCMDARG,
                  "Seconds from the beginning of one round of the scrub to the next", nullptr, nullptr,
                  kScrubIntervalDefault, 1, kScrubIntervalMax, 0);

Status CheckDataPath(const std::string& path) {
  const std::string subject = "data path '" + path + "' of quarry_data_paths";
  const std::string allowed = " (allowed: absolute paths of existing, writable directories, separated by ';')";
  if (path[0] != '/') return Status::InvalidArgument(subject + " is relative" + allowed);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return Status::Ok();  // the store knows whether it ever was one of ours
  if (!S_ISDIR(info.st_mode)) return Status::Unavailable(subject + " is not a directory" + allowed);
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Status::Unavailable(subject + " is not writable: " + strerror(errno) + allowed);
  }
  return Status::Ok();
}

/// Symbolic links and '..' resolved, so that one directory given twice is found.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> resolved(realpath(path.c_str(), nullptr), &free);
  return resolved ? std::string(resolved.get()) : path;
}

Result<std::vector<std::string>> SplitDataPaths(const std::string& list) {
  std::vector<std::string> paths;
  std::vector<std::string> real_paths;
  size_t start = 0;
  while (start <= list.size() && !list.empty()) {
    const size_t end = std::min(list.find(';', start), list.size());
    const std::string path = list.substr(start, end - start);
    start = end + 1;
    if (path.empty()) {
      return Status::InvalidArgument("quarry_data_paths='" + list +
                                     "' holds an empty path (allowed: absolute paths of existing, writable "
                                     "directories, separated by ';')");
    }
    QUARRY_TRY(CheckDataPath(path));
    std::string real_path = RealPath(path);
    if (std::find(real_paths.begin(), real_paths.end(), real_path) != real_paths.end()) {
      return Status::InvalidArgument("data path '" + path +
                                     "' stands twice in quarry_data_paths (allowed: each "
                                     "directory once)");
    }
    real_paths.push_back(std::move(real_path));
    paths.push_back(path);
  }
  return paths;
}

/// The server has set its limit before plugins begin.
uint32_t OpenFilesMax() {
  rlimit limit{};
  const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const rlim_t most = is_known ? std::min<rlim_t>(limit.rlim_cur / kOpenFilesShare, kOpenFilesMax) : kOpenFilesMax;
  return static_cast<uint32_t>(open_files == 0 ? most : std::min<rlim_t>(open_files, most));
}

}  // namespace

// The rules of create_options.h want the addresses of these, and the server wants them in one list.
st_mysql_sys_var* system_variables[] = {MYSQL_SYSVAR(inline_size),
                                        MYSQL_SYSVAR(prefix_size),
                                        MYSQL_SYSVAR(part_size),
                                        MYSQL_SYSVAR(codec),
                                        MYSQL_SYSVAR(defaults),
                                        MYSQL_SYSVAR(read_batch_bytes),
                                        MYSQL_SYSVAR(batch_size),
                                        MYSQL_SYSVAR(range_pushdown),
                                        MYSQL_SYSVAR(write_batch_bytes),
                                        MYSQL_SYSVAR(backup_lock),
                                        MYSQL_SYSVAR(replica_write_batch_bytes),
                                        MYSQL_SYSVAR(autoincrement_prefetch_sz),
                                        MYSQL_SYSVAR(data_paths),
                                        MYSQL_SYSVAR(adopt_data_paths),
                                        MYSQL_SYSVAR(open_files),
                                        MYSQL_SYSVAR(zeroed_pool_bytes),
                                        MYSQL_SYSVAR(recent_cache_bytes),
                                        MYSQL_SYSVAR(cache_size),
                                        MYSQL_SYSVAR(segment_size),
                                        MYSQL_SYSVAR(parallel_flush),
                                        MYSQL_SYSVAR(gc),
                                        MYSQL_SYSVAR(gc_now),
                                        MYSQL_SYSVAR(gc_interval),
                                        MYSQL_SYSVAR(gc_full_interval),
                                        MYSQL_SYSVAR(gc_timeout),
                                        MYSQL_SYSVAR(gc_rate),
                                        MYSQL_SYSVAR(space_amplification_max),
                                        MYSQL_SYSVAR(scrub_rate),
                                        MYSQL_SYSVAR(scrub_interval),
                                        nullptr};

OptionVariables GetOptionVariables() {
  return {MYSQL_SYSVAR(inline_size), MYSQL_SYSVAR(prefix_size), MYSQL_SYSVAR(part_size), MYSQL_SYSVAR(codec),
          MYSQL_SYSVAR(defaults)};
}

uint32_t WriteBatchBytes(THD* thd, bool has_ndb_defaults) {
  const bool applies = thd != nullptr && (thd->slave_thread || thd->wsrep_applier);
  const uint32_t bytes = applies ? replica_write_batch_bytes : THDVAR(thd, write_batch_bytes);
  return has_ndb_defaults && bytes == kWriteBatchDefaultBytes ? kNdbBatchBytes : bytes;
}

uint32_t ReadBatchBytes(THD* thd, bool has_ndb_defaults) {
  const uint32_t bytes = THDVAR(thd, read_batch_bytes);
  return has_ndb_defaults && bytes == kReadBatchDefaultBytes ? kNdbBatchBytes : bytes;
}

uint64_t BatchSize(THD* thd) { return THDVAR(thd, batch_size); }

bool RangePushdown(THD* thd) { return THDVAR(thd, range_pushdown) != 0; }

uint32_t AutoincrementPrefetch(THD* thd) { return THDVAR(thd, autoincrement_prefetch_sz); }

bool BackupLockIsSet(THD* thd) { return THDVAR(thd, backup_lock) != 0; }

uint64_t CacheSizeBytes() { return cache_size; }
uint64_t RecentCacheBytes() { return recent_cache_bytes; }

bool ParallelFlush() { return parallel_flush != 0; }
bool GcIsOn() { return gc != 0; }
double SpaceAmplificationMax() { return space_amplification_max; }
uint32_t GcIntervalSeconds() { return gc_interval; }
uint32_t GcFullIntervalSeconds() { return gc_full_interval; }
uint32_t GcTimeoutSeconds() { return gc_timeout; }
uint64_t GcRateBytesPerSecond() { return gc_rate; }
uint64_t ScrubRate() { return scrub_rate; }

uint64_t ScrubInterval() { return scrub_interval; }

Result<DirectoryOptions> DirectoryOptionsFromVariables(const std::string& home_path) {
  DirectoryOptions options;
  options.home_path = home_path;
  QUARRY_TRY_ASSIGN(options.data_paths, SplitDataPaths(data_paths == nullptr ? "" : data_paths));
  options.adopt_data_paths = adopt_data_paths != 0;
  options.segment_size_bytes = segment_size;
  options.open_files_max = OpenFilesMax();
  options.zeroed_pool_bytes = zeroed_pool_bytes;
  options.recent_cache_bytes = recent_cache_bytes;
  options.value_cache_bytes = cache_size;
  // Key management plugins may rely on it.
  options.read_thread_hooks = {[] { my_thread_init(); }, [] { my_thread_end(); }};
  // What the server makes of UMASK and UMASK_DIR.
  options.file_mode = static_cast<uint32_t>(my_umask);
  options.directory_mode = static_cast<uint32_t>(my_umask_dir);
  return options;
}

}  // namespace quarry
