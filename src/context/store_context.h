// StoreContext: what all stores of one directory share. DataPaths: where segments may lie.
// Thread-safety: constant after construction, or internally synchronised, member by member as marked.
#pragma once

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/buffer_pool.h"
#include "cache/chunk_supply.h"
#include "cache/counter_set.h"
#include "cache/direct_buffers.h"
#include "cache/map_cache.h"
#include "cache/page_cache_rule.h"
#include "cache/recent_cache.h"
#include "cache/value_cache.h"
#include "context/ahead_reads.h"
#include "context/catalogue.h"
#include "context/identity_source.h"
#include "context/notices.h"
#include "context/open_files.h"
#include "context/path_health.h"
#include "context/task_threads.h"
#include "format/segment_header.h"
#include "io/env.h"
#include "quarry/options.h"

namespace quarry {

#ifdef QUARRY_SIMULATED_THREADS
// Little, so that threads wait for it.
inline uint64_t kChunkBudgetBytes = 16ULL << 20;
inline uint64_t kWriteBufferBudgetBytes = 16ULL << 20;
inline constexpr uint64_t kChunkSizeBytes = 64ULL << 10;
#else
inline constexpr uint64_t kChunkBudgetBytes = 16ULL << 20;
inline constexpr uint64_t kWriteBufferBudgetBytes = 16ULL << 20;
/// An extent of at most this size, and of at most the write batch, is staged.
inline constexpr uint64_t kChunkSizeBytes = 1ULL << 20;
#endif

/// What appends to one data path stage their bytes in: chunks, and buffers of private writers. Apart, because a staged
/// appender may hold a buffer of the second kind while it waits for one of the first. Each path has its own, so that
/// nobody waits for memory that is held until a slower path was written to.
struct StagingMemory {
  BufferPool chunk_buffers{kChunkBudgetBytes};
  BufferPool write_buffers{kWriteBufferBudgetBytes};
  ChunkSupply chunk_supply{&chunk_buffers};
};

/// One place for segments. Number 0 is the home, whose store directories move between stores/ and trash/.
struct SegmentPath {
  uint32_t number = 0;
  std::string directory;     ///< holds one directory per store; empty for number 0
  std::string unavailable;   ///< why it cannot be used now; empty: it can
  std::string read_only{};   ///< why nothing is written, punched or unlinked there; empty: it may be
  bool has_journal = false;  ///< of its file system: zeros are written ahead of small flushes
  std::shared_ptr<StagingMemory> staging = std::make_shared<StagingMemory>();
  std::shared_ptr<PathHealth> health = std::make_shared<PathHealth>();
  std::shared_ptr<TaskThreads> tasks{};  ///< zeros, tails and holes: one that is slow keeps no other from them
};

inline constexpr uint64_t kReadBufferKeptBytes = 16ULL << 20;
/// Buffers of reads around the page cache, 32 MiB if all are in use.
inline constexpr size_t kDirectSlots = 64;
/// Maps of rewritten segments: 32 bytes for each run of extents, so some two million runs.
inline constexpr uint64_t kMapBudgetBytes = 64ULL << 20;
/// A larger quarry_write_batch_bytes has no further effect.
inline constexpr uint64_t kWriteCallMaxBytes = 8ULL << 20;

/// More lanes than this at once are flushed by their committers themselves.
inline constexpr size_t kFlushThreadsMax = 16;
/// Of one path. What is refused is given back by GC.
inline constexpr size_t kQueuedTasksMax = 1024;

struct StoreContext {
  StoreContext(Env* env_in, const DirectoryOptions& options_in, bool background_thread)
      : env(env_in),
        options(options_in),
        read_buffers(kReadBufferKeptBytes),
        direct_buffers(kDirectSlots),
        open_files(options_in.open_files_max),
        page_cache_rule([env_in] { return env_in->GetMemory(); }),
        recent(options_in.recent_cache_bytes),
        values(&counters),
        maps(kMapBudgetBytes),
        identities(env_in),
        has_threads(background_thread),
        catalogue_tasks("quarry_cat", has_threads ? 1 : 0, 1),
        flush_threads("quarry_flush", has_threads ? kFlushThreadsMax : 0, 0),
        ahead_reads(&counters, has_threads, options_in.read_thread_hooks) {}

  [[nodiscard]] std::shared_ptr<TaskThreads> MakePathTasks() const {
    return std::make_shared<TaskThreads>("quarry_store", has_threads ? 1 : 0, kQueuedTasksMax);
  }
  /// Each of those who work in the background for nobody that waits.
  template <typename Visit>
  void ForEachTasks(const Visit& visit) {
    visit(&catalogue_tasks);
    for (const SegmentPath& path : paths) visit(path.tasks.get());
  }

  /// kUnavailable for a path that is only read. For all that changes a file of a data path.
  [[nodiscard]] Status CheckWritable(uint32_t path_number) const {
    if (path_number >= paths.size() || paths[path_number].read_only.empty()) return Status::Ok();
    return Status::Unavailable(paths[path_number].read_only);
  }

  /// The same for a path that is not there.
  [[nodiscard]] Status CheckUsable(uint32_t path_number) const {
    if (path_number >= paths.size()) {
      return Status::Unavailable("data path " + std::to_string(path_number) + " is not known");
    }
    if (!paths[path_number].unavailable.empty()) return Status::Unavailable(paths[path_number].unavailable);
    return CheckWritable(path_number);
  }

  /// kUnavailable while one is away: what is nowhere else may lie there.
  [[nodiscard]] Status CheckAllPathsAreHere() const {
    for (const SegmentPath& path : paths) {
      if (!path.unavailable.empty()) return Status::Unavailable(path.unavailable);
    }
    return Status::Ok();
  }

  /// kUnavailable for a store of which the start could not list a folder: what lies there is not known.
  [[nodiscard]] Status CheckListed(StoreId store) const {
    const auto found = unlisted.find(store);
    return found == unlisted.end() ? Status::Ok() : Status::Unavailable(found->second);
  }

  /// There is another path for what would be appended to one.
  [[nodiscard]] bool HasAlternativePaths() const { return append_paths.size() > 1; }
  /// A file of the path failed to be written, or to be made. When it was the device or the file system, or nothing of
  /// the path is there any more, transactions go elsewhere.
  void NotePathFailure(uint32_t path_number, const Status& status) {
    if (!HasAlternativePaths()) return;
    const bool is_gone = status.system_errno() == ENOENT;
    if (status.code() != StatusCode::kIoError && status.code() != StatusCode::kNoSpace && !is_gone) return;
    if (status.system_errno() == EMFILE || status.system_errno() == ENFILE) return;  // it could not even be asked
    const SegmentPath& path = paths[path_number];
    path.health->NoteFailure(env->MonotonicMicros());
    notices.AddOnce("data path '" + path.directory + "' takes no new transactions until one that tries it " +
                    "succeeds; the others go on (" + StatusCodeName(status.code()) + ")");
  }

  /// Whether files of `store` may be unlinked, punched or shortened: not while damage of the catalogue may concern it.
  [[nodiscard]] bool MayGiveBack(StoreId store) const {
#ifdef QUARRY_PLANTED_BUG_DAMAGE_IGNORED  // a bug on purpose, never in a normal build
    return store.value != 0;
#else
    return catalogue->MayGiveBack(store);
#endif
  }
  /// kUnavailable when it may not, which is noticed once for each store, or when a folder of it could not be listed.
  [[nodiscard]] Status CheckGiveBack(StoreId store) {
    QUARRY_TRY(CheckListed(store));  // the start has told of it
    if (MayGiveBack(store)) return Status::Ok();
    const std::string what = "nothing of store " + std::to_string(store.value) +
                             " is given back, because the catalogue lost something that may concern it: stop the "
                             "server and run quarry-verify --rebuild-catalogue";
    notices.AddOnce(what);
    return Status::Unavailable(what);
  }

  // Constant after Open.
  Env* const env;
  const DirectoryOptions options;
  InstallationId installation{};
  std::vector<SegmentPath> paths;            ///< by number; gaps are unavailable
  std::vector<uint32_t> append_paths;        ///< empty when all that are configured are only read
  std::map<StoreId, std::string> unlisted;   ///< stores of which a folder could not be listed, each with the message
  std::unique_ptr<DirectoryLock> home_lock;  ///< no other process opens or verifies the same stores meanwhile
  std::vector<std::unique_ptr<DirectoryLock>> path_locks;  ///< nor writes to the same data paths
  std::unique_ptr<Catalogue> catalogue;

  // Internally synchronised. The pools come first: buffers of the others go back to them.
  CounterSet counters;
  Notices notices;
  BufferPool read_buffers;
  DirectBuffers direct_buffers;
  OpenFiles open_files;
  PageCacheRule page_cache_rule;
  RecentCache recent;
  ValueCache values;
  MapCache maps;
  IdentitySource identities;
  const bool has_threads;
  TaskThreads catalogue_tasks;
  TaskThreads flush_threads;
  AheadReads ahead_reads;
};

[[nodiscard]] inline uint64_t RoundDownToBlock(uint64_t bytes) { return bytes / kBlockSizeBytes * kBlockSizeBytes; }

[[nodiscard]] inline uint64_t RoundUpToBlock(uint64_t bytes) {
  return (bytes + kBlockSizeBytes - 1) / kBlockSizeBytes * kBlockSizeBytes;
}

}  // namespace quarry
