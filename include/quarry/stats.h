// Counters and sizes that the core reports. All sizes in bytes; all counters since the directory was opened.
// Thread-safety: plain snapshots, taken by StoreDirectory::GetCounters and Store::GetStats.
#pragma once

#include <cstdint>
#include <string>

#include "quarry/types.h"

namespace quarry {

/// Whole-directory counters (SHOW GLOBAL STATUS LIKE 'quarry%').
struct Counters {
  uint64_t extents_appended = 0;
  uint64_t extents_read = 0;
  uint64_t extents_released = 0;
  uint64_t value_bytes_appended = 0;     ///< uncompressed
  uint64_t stored_bytes_appended = 0;    ///< header + index + stored parts
  uint64_t stored_bytes_released = 0;    ///< the same, of extents that were released
  uint64_t padding_bytes_written = 0;    ///< to reach a block boundary at a flush
  uint64_t zero_bytes_written = 0;       ///< by the pool of zeroed space
  uint64_t file_bytes_written = 0;       ///< everything given to write calls on segments
  uint64_t write_calls = 0;              ///< write submissions on segments
  uint64_t value_bytes_read = 0;         ///< uncompressed, given to callers
  uint64_t file_bytes_read = 0;          ///< asked of segments
  uint64_t read_submissions = 0;         ///< one per batch of parts
  uint64_t direct_read_submissions = 0;  ///< of these: went around the page cache
  uint64_t page_cache_corruptions = 0;   ///< values that it gave damaged, and the device whole
  uint64_t flushes = 0;                  ///< fdatasync calls on segments
  uint64_t committers_flushed = 0;       ///< committers served by them; committers_flushed / flushes is the group size
  uint64_t flushes_zeroed = 0;           ///< flushes that hit only zeroed space (no journal commit)
  uint64_t flush_errors = 0;
  uint64_t segments_poisoned = 0;
  uint64_t recent_cache_hits = 0;  ///< extent reads served whole by just-written bytes
  uint64_t recent_cache_misses = 0;
  uint64_t recent_cache_bytes = 0;  ///< gauge
  uint64_t cache_hits = 0;          ///< reads served by the value cache
  uint64_t cache_misses = 0;        ///< reads of whole values that it had not; none are counted while it is off
  uint64_t cache_admissions = 0;    ///< values that it took in
  uint64_t cache_evictions = 0;     ///< values that it let go to make room
  uint64_t cache_carried = 0;       ///< of the admissions: values written in the place of one that it held
  uint64_t cache_bytes = 0;         ///< gauge: its memory, with what left it and is still being read
  uint64_t staging_bytes = 0;       ///< gauge: write buffers in use
  uint64_t buffer_bytes = 0;        ///< gauge: memory of all buffers of reads and writes, in use or kept for the next
  uint64_t open_files = 0;          ///< gauge: descriptors of segments
  uint64_t open_files_limit = 0;    ///< gauge: so many may be open at once
  uint64_t open_files_closed = 0;   ///< files that were closed so that others could be opened
  uint64_t data_paths_avoided = 0;  ///< gauge: paths that failed, and take no new transactions until one succeeds
  uint64_t corruptions = 0;         ///< reads refused by a checksum
  uint64_t catalogue_flushes = 0;   ///< fdatasync calls on the catalogue
  uint64_t parts_stored_raw = 0;    ///< parts for which compressing did not pay
  uint64_t parts_compressed = 0;
  uint64_t parts_encrypted = 0;
  uint64_t parts_decrypted = 0;
  uint64_t read_ahead_values = 0;  ///< that a scan had read by another thread
  uint64_t read_ahead_bytes = 0;   ///< of them
  uint64_t read_ahead_unused = 0;  ///< of the values: the scan ended before them, or passed them by
  uint64_t segment_map_loads = 0;  ///< maps of rewritten segments that were read
  uint64_t segment_map_bytes = 0;  ///< gauge: memory of those that are kept
};

/// How a value is stored now: GC may have encoded it again since its locator was written.
struct StoredShape {
  uint32_t parts = 0;
  uint64_t space_bytes = 0;  ///< of its segment: header, index and parts, rounded up to 8
};

/// One store (INFORMATION_SCHEMA.QUARRY_TABLES).
struct StoreStats {
  StoreId store;
  TableId table;           ///< while it is rebinding: the table before the rebuild
  TableId rebound_to;      ///< while it is rebinding: the table after it; 0: not recorded
  std::string table_name;  ///< at the last binding; for people only
  uint32_t segments = 0;
  uint64_t extents = 0;          ///< appended and not released, by the counters (a hint, as all dead figures)
  uint64_t live_bytes = 0;       ///< stored bytes appended and not released (a hint)
  uint64_t dead_bytes = 0;       ///< stored bytes released (a hint)
  uint64_t real_bytes = 0;       ///< blocks allocated on disk, as du sees them
  uint64_t uncounted_bytes = 0;  ///< of the live, those that a start took for live, for nobody had counted
  uint64_t cached_bytes = 0;     ///< memory of its values in the value cache
  /// Stored bytes by how they were appended, dead ones too while their segment is there. Of a segment that was being
  /// written when the process died nobody knows: all of it counts as plain.
  uint64_t plain_bytes = 0;
  uint64_t encrypted_bytes = 0;
  uint32_t oldest_key_version = 0;  ///< that a value needs; 0: none is encrypted, or nobody knows (see plain_bytes)
  bool rebinding = false;           ///< a rebuild is under way, or was cut off and is not decided yet
  bool discarded = false;           ///< in the trash: still readable, unlinked by EmptyTrash
};

}  // namespace quarry
