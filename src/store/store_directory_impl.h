// StoreDirectoryImpl: every store of one server.
//
// Invariants:
//  - A store's record is durable before its id is handed out, and the catalogue remembers the highest: none is ever
//    used twice.
//  - Every store is in stores_, discarded ones too: a locator is readable until EmptyTrash.
// Thread-safety: internally synchronised. Reads take stores_mutex_ shared, for one look-up.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "base/shared_mutex.h"
#include "context/store_context.h"
#include "quarry/store.h"
#include "store/store_impl.h"
#include "store/value_reader.h"

namespace quarry {

/// What tests choose beside the options.
struct DirectorySeams {
  Env* env = nullptr;
  /// Off: what the background thread would do happens inside the call that asks for it, deterministically.
  bool background_thread = true;
};

class StoreDirectoryImpl final : public StoreDirectory, public SegmentPins {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StoreDirectoryImpl>> Open(const DirectoryOptions& options,
                                                                        const DirectorySeams& seams);
  /// Closes every store cleanly; errors only cost the next start the counters.
  ~StoreDirectoryImpl() override;

  [[nodiscard]] Result<std::shared_ptr<Store>> OpenForAppend(TableId table, const std::string& table_name) override;
  [[nodiscard]] Result<std::shared_ptr<Store>> Find(TableId table) override;
  [[nodiscard]] Ownership OwnershipOf(StoreId store, TableId table) const override;
  [[nodiscard]] uint64_t BindingGeneration() const override {
    return binding_generation_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Status BeginRebind(TableId old_table, TableId new_table) override;
  [[nodiscard]] Status Rebind(TableId old_table, TableId new_table) override;
  [[nodiscard]] Status AbandonRebind(TableId old_table) override;
  [[nodiscard]] std::vector<UndecidedRebind> UndecidedRebinds() const override;
  [[nodiscard]] Status SettleRebind(StoreId store, const RebindPair& seen, TableId kept) override;
  [[nodiscard]] Status DiscardRebinding(StoreId store, const RebindPair& seen, uint64_t lsn) override;
  [[nodiscard]] uint32_t PrefixLimitBytes(TableId table) override;
  [[nodiscard]] Status LowerPrefixLimit(TableId table, const std::string& table_name, uint32_t bytes) override;
  [[nodiscard]] Status Discard(TableId table, uint64_t lsn) override;
  [[nodiscard]] Status RestoreStores(TableId table) override;
  [[nodiscard]] Result<uint64_t> EmptyTrash(uint64_t flushed_lsn) override;
  [[nodiscard]] Status Read(const Head& head, const ReadOptions& options, std::span<uint8_t> out) override {
    return ReaderOf(head, options).Read(out);
  }
  [[nodiscard]] Result<ValueBuffer> ReadValue(const Head& head, const ReadOptions& options) override {
    return ReaderOf(head, options).ReadValue();
  }
  [[nodiscard]] Result<ValueBuffer> ReadIfCached(const Head& head, const ReadOptions& options) override {
    return ReaderOf(head, options).ReadIfCached();
  }
  [[nodiscard]] std::unique_ptr<AheadRead> ReadAhead(const Head& head, const ReadOptions& options) override {
    return ReaderOf(head, options).ReadAhead();
  }
  [[nodiscard]] Status ReadRange(const Head& head, uint64_t offset_bytes, const ReadOptions& options,
                                 std::span<uint8_t> out) override {
    return ReaderOf(head, options).ReadRange(offset_bytes, out);
  }
  [[nodiscard]] Status VerifyValue(const Head& head, const ReadOptions& options, const Canceller* canceller) override {
    return ReaderOf(head, options).Verify(canceller);
  }
  [[nodiscard]] Result<StoredShape> ReadShape(const Locator& locator, const ReadOptions& options) override;
  [[nodiscard]] Result<CommitRecord> DescribeCommit(std::span<const Locator> locators) override;
  [[nodiscard]] Status SetValueCacheBytes(uint64_t bytes) override;
  [[nodiscard]] Status Sync(const UnsyncedExtents& unsynced) override;
  void WakeWaiters() override;
  void StartSync(UnsyncedExtents* unsynced) override;
  [[nodiscard]] Result<bool> HoldsDurably(const CommitRecord& record) override;
  void CarryInCache(const Locator& replaced, const Locator& by, std::span<const uint8_t> value) override;
  void Release(const Locator& locator) override;
  [[nodiscard]] Status BindUnbound(StoreId store, TableId table, const std::string& table_name) override;
  [[nodiscard]] std::vector<KnownLoss> KnownLosses() const override;
  [[nodiscard]] std::vector<std::string> TakeNotices() override { return context_->notices.Take(); }
  void PauseMaintenance() override {
    context_->ForEachTasks([](TaskThreads* tasks) { tasks->Pause(); });
  }
  void ResumeMaintenance() override {
    context_->ForEachTasks([](TaskThreads* tasks) { tasks->Resume(); });
  }
  [[nodiscard]] Result<BackupSnapshot> TakeBackupSnapshot() override;
  [[nodiscard]] Counters GetCounters() const override;
  [[nodiscard]] std::vector<StoreStats> ListStores() const override;
  [[nodiscard]] std::vector<StoreStats> ListBindings() const override;
  [[nodiscard]] std::vector<std::string> PathTroubles() const override;
  [[nodiscard]] Result<StoreStats> GetStoreStats(StoreId store) const override;

  // SegmentPins
  [[nodiscard]] Result<PinnedSegment> Pin(const Locator& locator) const override QUARRY_EXCLUDES(stores_mutex_);

  /// Null when there is no such store.
  [[nodiscard]] std::shared_ptr<StoreImpl> FindStore(StoreId store) const QUARRY_EXCLUDES(stores_mutex_);
  /// The same, or kNotFound.
  [[nodiscard]] Result<std::shared_ptr<StoreImpl>> RequireStore(StoreId store) const QUARRY_EXCLUDES(stores_mutex_);

  [[nodiscard]] std::vector<std::shared_ptr<StoreImpl>> AllStores() const QUARRY_EXCLUDES(stores_mutex_);

  [[nodiscard]] Catalogue* catalogue() const { return context_->catalogue.get(); }
  [[nodiscard]] uint64_t NowMicros() const { return context_->env->NowMicros(); }
  /// All that the catalogue does not know yet, counters above all: a clean shutdown.
  [[nodiscard]] Status SaveCounters();

  /// Waits for the background threads to have nothing left to do.
  void DrainMaintenance() {
    context_->ForEachTasks([](TaskThreads* tasks) { tasks->Drain(); });
  }
  /// The same of the threads that read ahead.
  void DrainReadsAhead() { context_->ahead_reads.Drain(); }
  /// For tests: the tables that some store is bound to, as far as memory is taken for them.
  [[nodiscard]] size_t CountTables() const QUARRY_EXCLUDES(stores_mutex_) {
    SharedLock lock(stores_mutex_);
    return by_table_.size();
  }
  /// For tests: a task of the home's background thread that takes as long as it likes.
  void RunMaintenance(std::function<void()> task) { context_->paths[0].tasks->Submit(std::move(task)); }

 private:
  explicit StoreDirectoryImpl(std::shared_ptr<StoreContext> context) : context_(std::move(context)) {}
  [[nodiscard]] static Result<std::unique_ptr<StoreDirectoryImpl>> OpenStores(const DirectoryOptions& options,
                                                                              const DirectorySeams& seams);

  [[nodiscard]] std::vector<StoreStats> ListWith(StoreStats (StoreImpl::*get_stats)() const) const;
  [[nodiscard]] Status RecoverStores() QUARRY_EXCLUDES(stores_mutex_);
  /// Stores bound to `table`, the oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<StoreImpl>> StoresOf(TableId table) const QUARRY_EXCLUDES(stores_mutex_);
  /// The newest that is not in the trash, or null.
  [[nodiscard]] std::shared_ptr<StoreImpl> FindLive(TableId table) const QUARRY_EXCLUDES(stores_mutex_);
  /// Brings the table's stores back from the trash. The newest, or null when there is none.
  [[nodiscard]] Result<std::shared_ptr<StoreImpl>> Restore(TableId table) QUARRY_REQUIRES(admin_mutex_);
  /// OpenForAppend, under the lock.
  [[nodiscard]] Result<std::shared_ptr<StoreImpl>> LiveStore(TableId table, const std::string& table_name)
      QUARRY_REQUIRES(admin_mutex_);
  [[nodiscard]] Result<std::shared_ptr<StoreImpl>> CreateStore(TableId table, const std::string& table_name)
      QUARRY_REQUIRES(admin_mutex_);
  /// Durable, then in memory: by_table_ and the generation follow. Every change of a binding goes this way.
  [[nodiscard]] Status ChangeBinding(StoreImpl* store, const StoreImpl::Binding& binding) QUARRY_REQUIRES(admin_mutex_)
      QUARRY_EXCLUDES(stores_mutex_);
  /// The catalogue lost something, or a store's table is not known.
  [[nodiscard]] bool MayLackPrefixLimits() const QUARRY_EXCLUDES(stores_mutex_);
  /// The rebuild of `old_table` ended: its stores are bound to `kept` alone.
  [[nodiscard]] Status EndRebind(TableId old_table, TableId kept) QUARRY_EXCLUDES(admin_mutex_);
  /// The rest of ChangeBinding. A map that contradicts what is durable would serve wrong tables: without memory the
  /// process ends.
  void NoteBinding(StoreId store, const std::vector<TableId>& before, const std::vector<TableId>& now) noexcept
      QUARRY_EXCLUDES(stores_mutex_);
  [[nodiscard]] Status DiscardStore(StoreImpl* store, uint64_t lsn) QUARRY_REQUIRES(admin_mutex_);
  /// EmptyTrash. On an error `marked` holds what was marked as going and may not have gone.
  [[nodiscard]] Result<uint64_t> UnlinkDiscarded(uint64_t flushed_lsn, std::vector<std::shared_ptr<StoreImpl>>* marked)
      QUARRY_EXCLUDES(admin_mutex_, stores_mutex_);
  /// The store, if a rebuild left it undecided and its binding is as seen; otherwise null.
  [[nodiscard]] std::shared_ptr<StoreImpl> FindUndecided(StoreId store, const RebindPair& seen) const
      QUARRY_REQUIRES(admin_mutex_);
  [[nodiscard]] ValueReader ReaderOf(const Head& head, const ReadOptions& options) const {
    return {context_.get(), this, head, options};
  }

  const std::shared_ptr<StoreContext> context_;

  Mutex admin_mutex_;  ///< one change of stores or bindings at a time, its I/O included

  mutable SharedMutex stores_mutex_ QUARRY_ACQUIRED_AFTER(admin_mutex_);
  std::unordered_map<StoreId, std::shared_ptr<StoreImpl>> stores_ QUARRY_GUARDED_BY(stores_mutex_);
  std::unordered_map<TableId, std::vector<StoreId>> by_table_ QUARRY_GUARDED_BY(stores_mutex_);  ///< ids rise
  std::unordered_set<StoreId> unbound_ QUARRY_GUARDED_BY(stores_mutex_);  ///< nobody knows their tables
  std::atomic<uint64_t> binding_generation_{1};
};

}  // namespace quarry
