// What Quarry's system variables say; plugin/engine/sysvars.cc has the variables.
// Thread-safety: the getters read the server's variables; global ones may be set at any time (aligned words).
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// quarry_write_batch_bytes of the session, or quarry_replica_write_batch_bytes in a replication applier thread. Of a
/// table with DEFAULTS=NDB both mean NDB's 64 KiB for as long as they have their defaults.
uint32_t WriteBatchBytes(THD* thd, bool has_ndb_defaults);
/// quarry_read_batch_bytes of the session, in the same way.
uint32_t ReadBatchBytes(THD* thd, bool has_ndb_defaults);
/// quarry_batch_size of the session; 0: nothing is read ahead.
uint64_t BatchSize(THD* thd);
/// quarry_range_pushdown of the session.
bool RangePushdown(THD* thd);
/// quarry_autoincrement_prefetch_sz of the session, 1-65536.
uint32_t AutoincrementPrefetch(THD* thd);

/// quarry_backup_lock of the session: 0 also after a reset of its connection, which gives nothing back (backup.h).
bool BackupLockIsSet(THD* thd);

/// quarry_cache_size, as it is now.
uint64_t CacheSizeBytes();
/// quarry_recent_cache_bytes.
uint64_t RecentCacheBytes();

/// quarry_parallel_flush.
bool ParallelFlush();
/// quarry_gc, quarry_space_amplification_max, quarry_gc_interval, quarry_gc_full_interval (0: never),
/// quarry_gc_timeout, quarry_gc_rate (0: no limit).
bool GcIsOn();
double SpaceAmplificationMax();
uint32_t GcIntervalSeconds();
uint32_t GcFullIntervalSeconds();
uint32_t GcTimeoutSeconds();
uint64_t GcRateBytesPerSecond();

/// quarry_scrub_rate, bytes a second; 0: off.
uint64_t ScrubRate();
/// quarry_scrub_interval, seconds.
uint64_t ScrubInterval();

/// The rules of the table options take their defaults from these variables (create_options.h, HA_*OPTION_SYSVAR).
struct OptionVariables {
  struct st_mysql_sys_var* inline_size;
  struct st_mysql_sys_var* prefix_size;
  struct st_mysql_sys_var* part_size;
  struct st_mysql_sys_var* codec;
  struct st_mysql_sys_var* defaults;
};
OptionVariables GetOptionVariables();

}  // namespace quarry
