// StoreDirectory and Store: the payload side of Quarry. This is all that the plugin and the tools see of it.
//
// Promises (each has a test that breaks when it does):
//  - After Sync(unsynced) returned ok, every extent in `unsynced` survives power loss.
//  - A block that was synced is never written again.
//  - A read returns exactly the bytes appended, or an error; never other bytes.
//  - A failed flush poisons its segment: waiting committers fail, nothing is retried on that file, later appends go to
//  a new one.
//  - Nothing is given back on anybody's word: Release only counts.
//
// Thread-safety: both classes are internally synchronised; UnsyncedExtents belongs to one transaction and is
// externally synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quarry/ahead_read.h"
#include "quarry/backup.h"
#include "quarry/canceller.h"
#include "quarry/commit_record.h"
#include "quarry/locator.h"
#include "quarry/options.h"
#include "quarry/stats.h"
#include "quarry/status.h"
#include "quarry/types.h"
#include "quarry/value_buffer.h"

namespace quarry {

class StoreDirectoryImpl;
class StoreImpl;

/// What a prefix limit can be: as much as PREFIX_SIZE.
inline constexpr uint32_t kPrefixLimitMaxBytes = 65535;
inline constexpr uint32_t kNoPrefixLimit = 0xffffffff;

/// A record of the catalogue that was lost, and may have concerned `store` ({0}: any).
struct KnownLoss {
  StoreId store;
  TableId table;           ///< of the store, as far as that is known
  std::string table_name;  ///< likewise
  uint64_t noted_micros = 0;
  std::string what;
};

/// Whose a store is, as one table asks.
enum class Ownership : uint8_t {
  kBound,    ///< the store's binding names the table; one whose rebuild is not decided names the old and the new one
  kForeign,  ///< it names other tables only; or there is no such store, which is then nobody's
  kUnbound,  ///< nobody knows: its binding is lost, or may be (see OwnershipOf)
};

/// The two tables that a store is bound to while its rebuild is not decided.
struct RebindPair {
  TableId old_table;
  TableId new_table;  ///< 0: not recorded: the rebuild began under an older version
  bool operator==(const RebindPair&) const = default;
};
/// A store that is rebinding though no rebuild of its table is under way in this process.
struct UndecidedRebind {
  StoreId store;
  RebindPair pair;
};

/// The extents one transaction appended and has not yet seen made durable, per store and segment.
/// Cheap when empty (no allocation). Copyable: a savepoint may keep none of it, for syncing too much is harmless.
class UnsyncedExtents {
 public:
  UnsyncedExtents() = default;
  /// `canceller` outlives it, and is asked by the appends and syncs of the transaction. Without one they wait.
  explicit UnsyncedExtents(const Canceller* canceller) : canceller_(canceller) {}

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void Clear() { entries_.clear(); }
  [[nodiscard]] const Canceller* canceller() const { return canceller_; }

  struct Entry {
    StoreId store;
    SegmentNumber segment;
    uint64_t end_offset_bytes = 0;  ///< where the transaction's last extent in this segment ends
    uint64_t flush_ticket = 0;  ///< the flush of the segment's lane that covers them; 0: all that is appended so far
    bool is_counted = false;    ///< StartSync counted its caller among the committers of that flush
  };
  /// Keeps one entry per segment, the furthest.
  void Add(const Entry& entry);
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  [[nodiscard]] std::span<Entry> entries() { return entries_; }

 private:
  const Canceller* canceller_ = nullptr;
  std::vector<Entry> entries_;
};

/// All segments of one table or partition.
class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual StoreId id() const = 0;

  /// Appends one value, but for the first options.prefix_size_bytes, which are its head's to hold, as one extent, and
  /// notes it in `unsynced`. The bytes are not durable until Sync.
  /// `value` is read during the call only. Errors: kInvalidArgument, kNoSpace, kIoError, kCancelled; then no locator is
  /// valid and the space, if any was taken, is dead.
  [[nodiscard]] virtual Result<Locator> Append(std::span<const uint8_t> value, const AppendOptions& options,
                                               UnsyncedExtents* unsynced) = 0;

  /// Makes everything appended to this store so far durable, whoever appended it (DDL's own sync points).
  [[nodiscard]] virtual Status SyncAll() = 0;

  /// Says that `locator` is probably dead. A hint for the counters, nothing else: the mark pass is the only authority.
  virtual void Release(const Locator& locator) = 0;

  [[nodiscard]] virtual StoreStats GetStats() const = 0;
};

/// Every store of one server, over one or several data paths.
class StoreDirectory {
 public:
  virtual ~StoreDirectory() = default;

  /// Opens (creating what is missing) and recovers: reads the catalogue, and no payload. What of it is damaged costs
  /// what TakeNotices says, and keeps nothing from opening. Errors: kUnavailable names a data path that is missing or
  /// not the one recorded; kCorruption: there are stores and no catalogue; kNotSupported: a newer version, or a build
  /// from before the first release, wrote it; kIoError an unwritable path. On error nothing is left half created.
  [[nodiscard]] static Result<std::unique_ptr<StoreDirectory>> Open(const DirectoryOptions& options);

  /// Whether `path` is a home that Open made, some time. An empty folder, as that of a drive that is not mounted, is
  /// none. Error: kIoError.
  [[nodiscard]] static Result<bool> IsHome(const std::string& path);

  /// The store that appends for InnoDB table `table` go to; created and bound, durably, when there is none.
  /// `table_name` ("db/t") is for people only.
  [[nodiscard]] virtual Result<std::shared_ptr<Store>> OpenForAppend(TableId table, const std::string& table_name) = 0;

  /// The store bound to `table`, or kNotFound. Never creates.
  [[nodiscard]] virtual Result<std::shared_ptr<Store>> Find(TableId table) = 0;

  /// Whether heads of `table` may point into `store`. A store in the trash is still bound. kUnbound also for one bound
  /// to others, while damage of the catalogue may concern it: the record that bound it to `table` may be lost.
  /// Cheap: a shared lock and two look-ups.
  [[nodiscard]] virtual Ownership OwnershipOf(StoreId store, TableId table) const = 0;
  /// Rises with every change of a binding, discard or unlink: an answer of OwnershipOf that was asked for after this
  /// was read holds until this has another value.
  [[nodiscard]] virtual uint64_t BindingGeneration() const = 0;

  /// A rebuild of `old_table` into `new_table` is about to commit: from now on the stores of `old_table` are bound to
  /// both, and kept whatever becomes of either, until Rebind or AbandonRebind (or, after a crash or when these fail,
  /// SettleRebind or DiscardRebinding). A table that an earlier, undecided rebuild left in the binding is dropped from
  /// it: `old_table` is what InnoDB has. Durable when it returns; on error nothing changed, as far as that could be
  /// undone.
  [[nodiscard]] virtual Status BeginRebind(TableId old_table, TableId new_table) = 0;
  /// The rebuild committed: the stores of `old_table` now belong to `new_table`. Durable when it returns. After an
  /// error the rebuild is no longer under way, and undecided.
  [[nodiscard]] virtual Status Rebind(TableId old_table, TableId new_table) = 0;
  /// The rebuild rolled back. Otherwise like Rebind.
  [[nodiscard]] virtual Status AbandonRebind(TableId old_table) = 0;
  /// What a crash, or a Rebind or AbandonRebind that failed, left undecided; what is in the trash is not. Cheap.
  [[nodiscard]] virtual std::vector<UndecidedRebind> UndecidedRebinds() const = 0;
  /// InnoDB has `kept`, one of `seen`, and not the other one: the caller looked after UndecidedRebinds gave it `seen`.
  /// Nothing is done when the store is no longer undecided between these two. Durable when it returns.
  [[nodiscard]] virtual Status SettleRebind(StoreId store, const RebindPair& seen, TableId kept) = 0;
  /// The same when InnoDB has neither, as of `lsn`: Discard, for this store, which stays bound to both.
  [[nodiscard]] virtual Status DiscardRebinding(StoreId store, const RebindPair& seen, uint64_t lsn) = 0;

  /// How many raw bytes the heads in `table`'s rows may be taken to hold at most, whatever its definition says:
  /// kNoPrefixLimit when nothing was stated for it. It is bound to the table as its stores are: a rename keeps it, a
  /// rebuild that keeps the heads takes it along, a table written anew (another id) has none. 0 while it may be lost:
  /// the catalogue is damaged, or a store is unbound. 0, too, for a table whose store was unbound.
  [[nodiscard]] virtual uint32_t PrefixLimitBytes(TableId table) = 0;
  /// States it, to be called before a definition is in force under which heads of another length are written. It only
  /// ever falls. Durable when it returns. Errors: kInvalidArgument above kPrefixLimitMaxBytes; those of OpenForAppend.
  [[nodiscard]] virtual Status LowerPrefixLimit(TableId table, const std::string& table_name, uint32_t bytes) = 0;

  /// InnoDB has no table `table` any more, as of `lsn` (the caller looked): its stores go to the trash folder, still
  /// readable, and come back by themselves when `table` is asked for again (a DROP that a crash undid). Durable when
  /// it returns. A store that is rebinding is left alone.
  [[nodiscard]] virtual Status Discard(TableId table, uint64_t lsn) = 0;
  /// InnoDB has `table`: every store of it that is in the trash comes back, next to one that is there already. Durable
  /// when it returns; on error some may not have come back.
  [[nodiscard]] virtual Status RestoreStores(TableId table) = 0;
  /// Unlinks the stores discarded at an LSN that InnoDB has flushed. Returns the bytes given back.
  [[nodiscard]] virtual Result<uint64_t> EmptyTrash(uint64_t flushed_lsn) = 0;

  /// Reads the whole value into `out`, whose size must be locator.value_size_bytes. Every checksum is verified, that of
  /// the value too, unless the value cache has it.
  /// Errors: kCorruption (with store, segment, offset), kIoError, kNotFound (segment gone), kUnavailable, kOutOfMemory,
  /// kNotSupported (a newer Quarry wrote it).
  [[nodiscard]] virtual Status Read(const Head& head, const ReadOptions& options, std::span<uint8_t> out) = 0;

  /// Read, into memory that other reads used before: nothing is allocated for each value, and what was used last is
  /// still in the processor's cache. Errors: those of Read.
  /// A value that is read again and again is kept in the value cache: a buffer that comes from there is shared with
  /// other readers, and nobody may write to it.
  [[nodiscard]] virtual Result<ValueBuffer> ReadValue(const Head& head, const ReadOptions& options) = 0;

  /// For a reader of ranges who can do with the whole: the value when the value cache has it, or takes it in now
  /// because it was asked for again, as ReadValue would. Otherwise an empty buffer; then nothing was read. Errors:
  /// those of Read.
  [[nodiscard]] virtual Result<ValueBuffer> ReadIfCached(const Head& head, const ReadOptions& options) = 0;

  /// Has another thread begin to read a value that the caller will soon want, as ReadValue would: for a scan, which
  /// knows its next rows. Never waits and never fails. Null: it is in memory already, or no thread will do it.
  [[nodiscard]] virtual std::unique_ptr<AheadRead> ReadAhead(const Head& head, const ReadOptions& options) = 0;

  /// `value`, just appended as `by`, is written in the place of `replaced`. When readers found that one in the value
  /// cache they will find this one there. To be undone by Release(by) when it comes to nothing.
  virtual void CarryInCache(const Locator& replaced, const Locator& by, std::span<const uint8_t> value) = 0;

  /// Reads out.size() bytes of the value from `offset_bytes`, touching only the index and the parts that hold them;
  /// nothing of the segment when all of them are in the head's prefix. Errors: those of Read.
  [[nodiscard]] virtual Status ReadRange(const Head& head, uint64_t offset_bytes, const ReadOptions& options,
                                         std::span<uint8_t> out) = 0;

  /// Reads the whole value from its segment's file and compares every checksum, in the memory of a batch or a part, and
  /// gives out nothing. Flushes what is not in the file yet. Errors: those of Read and of Sync; kCancelled:
  /// `canceller`, which may be null, said so.
  [[nodiscard]] virtual Status VerifyValue(const Head& head, const ReadOptions& options,
                                           const Canceller* canceller) = 0;

  /// From the header of the value's extent: no part is read. Errors: those of Read.
  [[nodiscard]] virtual Result<StoredShape> ReadShape(const Locator& locator, const ReadOptions& options) = 0;

  /// quarry_cache_size: the memory of the value cache, up to kValueCacheMaxBytes. Returns when it is within the new
  /// size, but for values that are being read. Errors: kInvalidArgument; kNotSupported: no memory, the cache is off
  /// now.
  [[nodiscard]] virtual Status SetValueCacheBytes(uint64_t bytes) = 0;

  /// Group commit: returns when every extent noted in `unsynced` is durable, sharing flushes with whoever waits on
  /// the same segments. Does not clear `unsynced`. Errors: kPoisoned, kIoError, kNoSpace, kCancelled: the caller must
  /// roll back.
  [[nodiscard]] virtual Status Sync(const UnsyncedExtents& unsynced) = 0;

  /// Some Canceller says now that its caller gives up: it may be one that waits.
  virtual void WakeWaiters() = 0;

  /// Begins the flushes that Sync will wait for, in other threads, for a caller with something else to do until then.
  /// Where there is no thread for one, it has completed when this returns. Errors are Sync's to tell, which is to
  /// follow.
  virtual void StartSync(UnsyncedExtents* unsynced) = 0;

  /// What stands for `locators`, which fit one record and were appended in this life of the process. Error: kNotFound:
  /// a segment or the store is gone.
  [[nodiscard]] virtual Result<CommitRecord> DescribeCommit(std::span<const Locator> locators) = 0;

  /// After a crash: whether every extent of `record` is there, whole; then all of them are durable when it returns.
  /// False: at least one never got to the disk as a whole, or was lost since. Every byte is read from the device and
  /// compared with its checksum; no key is needed. Errors: kUnavailable, kIoError, kNotSupported: it cannot be told
  /// now, and nothing may be decided.
  [[nodiscard]] virtual Result<bool> HoldsDurably(const CommitRecord& record) = 0;

  /// Counts the extent behind `locator` as probably dead, whichever store it is in. The value cache forgets it.
  virtual void Release(const Locator& locator) = 0;

  /// A scan of all heads of `table` met some that name `store`: binds it, when it has no binding. Durable when it
  /// returns.
  [[nodiscard]] virtual Status BindUnbound(StoreId store, TableId table, const std::string& table_name) = 0;

  /// What the catalogue lost, as long as nothing is given back for it.
  [[nodiscard]] virtual std::vector<KnownLoss> KnownLosses() const = 0;

  /// What somebody should read in a log, said once: at first what Open found damaged or not known, later uses that were
  /// refused for that.
  [[nodiscard]] virtual std::vector<std::string> TakeNotices() = 0;

  /// Somebody copies the files: from the return of the first call until as many Resumes the background thread (zeros
  /// ahead, tails cut off, the catalogue's renewal) changes none. What callers ask for (Append, Sync, EmptyTrash
  /// ...) is still done; keeping them still is the caller's business.
  virtual void PauseMaintenance() = 0;
  virtual void ResumeMaintenance() = 0;

  /// What a copy of the files must hold to be a copy of this moment: every store, those in the trash too. For all of it
  /// to be of one moment no binding may change meanwhile (no DDL); stores that are made meanwhile may or may not be in
  /// it. In the catalogue handed out no data path has its place any more: a copy that is started must be told where its
  /// own are, lest it takes the source's for its own. Errors: kUnavailable: a data path with segments is not there.
  [[nodiscard]] virtual Result<BackupSnapshot> TakeBackupSnapshot() = 0;

  [[nodiscard]] virtual Counters GetCounters() const = 0;
  [[nodiscard]] virtual std::vector<StoreStats> ListStores() const = 0;
  /// The same without a look at any file: real_bytes is 0.
  [[nodiscard]] virtual std::vector<StoreStats> ListBindings() const = 0;

  /// Of each data path that is away, or only read, and of each store with a folder that could not be listed: why. Empty
  /// as a rule. Constant after Open.
  [[nodiscard]] virtual std::vector<std::string> PathTroubles() const = 0;
  /// One of them. Errors: kNotFound.
  [[nodiscard]] virtual Result<StoreStats> GetStoreStats(StoreId store) const = 0;
};

}  // namespace quarry
