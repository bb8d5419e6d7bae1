#include "store/store_directory_impl.h"

#include <algorithm>
#include <map>

#include "context/layout.h"
#include "format/small_file.h"
#include "io/path.h"
#include "quarry/memory_guard.h"
#include "store/data_paths.h"
#include "store/store_recovery.h"

namespace quarry {
namespace {

/// What lies in a directory of stores is noted in `found`.
Status FindStores(Env* env, const std::string& parent, const FoundStore& what, std::map<StoreId, FoundStore>* found) {
  QUARRY_TRY_ASSIGN(const std::vector<std::string> names, env->ListDirectory(parent));
  for (const std::string& name : names) {
    const auto id = ParseStoreDirectoryName(name);
    if (id && (what.has_home || !found->contains(*id))) (*found)[*id] = what;
  }
  return Status::Ok();
}

}  // namespace

void UnsyncedExtents::Add(const Entry& entry) {
  for (Entry& known : entries_) {
    if (known.store != entry.store || known.segment != entry.segment) continue;
    known.end_offset_bytes = std::max(known.end_offset_bytes, entry.end_offset_bytes);
    known.flush_ticket = std::max(known.flush_ticket, entry.flush_ticket);
    return;
  }
  entries_.push_back(entry);
}

Result<std::unique_ptr<StoreDirectory>> StoreDirectory::Open(const DirectoryOptions& options) {
  SetPosixModes(options.file_mode, options.directory_mode);
  QUARRY_TRY_ASSIGN(std::unique_ptr<StoreDirectoryImpl> directory,
                    StoreDirectoryImpl::Open(options, {Env::Posix(), true}));
  return std::unique_ptr<StoreDirectory>(std::move(directory));
}

Result<std::unique_ptr<StoreDirectoryImpl>> StoreDirectoryImpl::Open(const DirectoryOptions& options,
                                                                     const DirectorySeams& seams) {
  return OrOutOfMemory([&] { return OpenStores(options, seams); });
}

Result<std::unique_ptr<StoreDirectoryImpl>> StoreDirectoryImpl::OpenStores(const DirectoryOptions& options,
                                                                           const DirectorySeams& seams) {
  auto context = std::make_shared<StoreContext>(seams.env, options, seams.background_thread);
  QUARRY_TRY(OpenDataPaths(context.get()));
  std::unique_ptr<StoreDirectoryImpl> directory(new StoreDirectoryImpl(std::move(context)));
  QUARRY_TRY(directory->SetValueCacheBytes(options.value_cache_bytes));
  QUARRY_TRY(directory->RecoverStores());
  return directory;
}

StoreDirectoryImpl::~StoreDirectoryImpl() {
  context_->ahead_reads.Stop();
  DrainMaintenance();
  (void)OrOutOfMemory([this] {
    for (const std::shared_ptr<StoreImpl>& store : AllStores()) (void)OrOutOfMemory([&] { return store->Seal(); });
  });
  DrainMaintenance();
  (void)OrOutOfMemory([this] { return SaveCounters(); });
  context_->flush_threads.Stop();
  context_->ForEachTasks([](TaskThreads* tasks) { tasks->Stop(); });
}

Status StoreDirectoryImpl::SaveCounters() {
  std::vector<Catalogue::Ticket> tickets;
  for (const std::shared_ptr<StoreImpl>& store : AllStores()) tickets.push_back(store->RecordChanges());
  for (const Catalogue::Ticket& ticket : tickets) QUARRY_TRY(context_->catalogue->Sync(ticket));
  return Status::Ok();
}

Status StoreDirectoryImpl::RecoverStores() {
  const CatalogueState state = context_->catalogue->state();
  for (const CatalogueDamage& damage : state.damage) {
    context_->notices.AddOnce(
        "the catalogue was damaged (" + damage.what + "): nothing of " + WhatLossConcerns(damage.store) +
        " is given back until quarry-verify --rebuild-catalogue was run; reads and appends go on");
  }
  std::map<StoreId, FoundStore> found;
  for (const auto& [id, store] : state.stores) found[id] = {};
  for (const SegmentPath& path : context_->paths) {
    if (path.directory.empty() || !path.unavailable.empty()) continue;
    QUARRY_TRY(FindStores(context_->env, path.directory, {false, false}, &found));
  }
  for (const bool in_trash : {false, true}) {
    const std::string parent =
        JoinPath(context_->options.home_path, in_trash ? kTrashDirectoryName : kStoresDirectoryName);
    QUARRY_TRY(FindStores(context_->env, parent, {true, in_trash}, &found));
  }
  std::vector<CatalogueRecord> changes;
  for (const auto& [id, where] : found) {
    const auto known = state.stores.find(id);
    context_->catalogue->RaiseStoreId(id);
    QUARRY_TRY_ASSIGN(
        std::shared_ptr<StoreImpl> store,
        RecoverStore(context_, id, known == state.stores.end() ? nullptr : &known->second, where, &changes));
    if (store == nullptr) continue;
    const std::vector<TableId> tables = store->GetBinding().tables;
    ExclusiveLock lock(stores_mutex_);
    for (const TableId table : tables) by_table_[table].push_back(id);
    if (tables.empty()) unbound_.insert(id);
    stores_[id] = std::move(store);
  }
  // A full disk must not keep anybody from reading.
  const Status status = context_->catalogue->Begin(std::move(changes));
  return status.code() == StatusCode::kNoSpace ? Status::Ok() : status;
}

// ---- look-ups ----

std::shared_ptr<StoreImpl> StoreDirectoryImpl::FindStore(StoreId store) const {
  SharedLock lock(stores_mutex_);
  const auto found = stores_.find(store);
  return found == stores_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::AllStores() const {
  std::vector<std::shared_ptr<StoreImpl>> all;
  SharedLock lock(stores_mutex_);
  all.reserve(stores_.size());
  for (const auto& [id, store] : stores_) all.push_back(store);
  return all;
}

std::vector<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::StoresOf(TableId table) const {
  std::vector<std::shared_ptr<StoreImpl>> stores;
  SharedLock lock(stores_mutex_);
  const auto ids = by_table_.find(table);
  if (ids == by_table_.end()) return stores;
  for (const StoreId id : ids->second) {
    if (const auto found = stores_.find(id); found != stores_.end()) stores.push_back(found->second);
  }
  return stores;
}

std::shared_ptr<StoreImpl> StoreDirectoryImpl::FindLive(TableId table) const {
  SharedLock lock(stores_mutex_);
  const auto ids = by_table_.find(table);
  if (ids == by_table_.end()) return nullptr;
  for (auto id = ids->second.rbegin(); id != ids->second.rend(); ++id) {
    if (const auto found = stores_.find(*id); found != stores_.end() && !found->second->discarded()) {
      return found->second;
    }
  }
  return nullptr;
}

Result<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::Restore(TableId table) {
  std::shared_ptr<StoreImpl> newest;
  for (const std::shared_ptr<StoreImpl>& store : StoresOf(table)) {
    if (store->is_going()) continue;  // listed until that is durable
    StoreImpl::Binding binding = store->GetBinding();
    binding.discarded = false;
    binding.discarded_at_lsn = 0;
    QUARRY_TRY(ChangeBinding(store.get(), binding));
    QUARRY_TRY(store->MoveToWhereItBelongs());
    newest = store;
  }
  return newest;
}

Result<std::shared_ptr<Store>> StoreDirectoryImpl::Find(TableId table) {
  if (std::shared_ptr<StoreImpl> store = FindLive(table); store != nullptr) return std::shared_ptr<Store>(store);
  MutexLock lock(admin_mutex_);
  QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, Restore(table));
  if (store == nullptr) return Status::NotFound("no store is bound to table " + std::to_string(table.value));
  return std::shared_ptr<Store>(store);
}

Result<std::shared_ptr<Store>> StoreDirectoryImpl::OpenForAppend(TableId table, const std::string& table_name) {
  if (std::shared_ptr<StoreImpl> store = FindLive(table); store != nullptr) return std::shared_ptr<Store>(store);
  MutexLock lock(admin_mutex_);
  QUARRY_TRY_ASSIGN(std::shared_ptr<StoreImpl> store, LiveStore(table, table_name));
  return std::shared_ptr<Store>(store);
}

Result<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::LiveStore(TableId table, const std::string& table_name) {
  if (table.value == 0) return Status::InvalidArgument("table id 0 is no table");
  // Made while the caller waited. To move it nowhere would wait for whoever makes a segment, on however slow a path.
  if (std::shared_ptr<StoreImpl> live = FindLive(table); live != nullptr) return live;
  QUARRY_TRY_ASSIGN(std::shared_ptr<StoreImpl> store, Restore(table));
  if (store == nullptr) return CreateStore(table, table_name);
  return store;
}

// ---- creation ----

Result<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::CreateStore(TableId table, const std::string& table_name) {
  CatalogueStore record;
  record.store = context_->catalogue->TakeStoreId();
  record.created_micros = context_->env->NowMicros();
  record.table_name = table_name.substr(0, kNameMaxBytes);
  record.tables = {table};
  const std::string parent = JoinPath(context_->options.home_path, kStoresDirectoryName);
  const std::string path = JoinPath(parent, StoreDirectoryName(record.store));
  std::shared_ptr<StoreImpl> store = StoreImpl::Make(context_, record, false, false);
  QUARRY_TRY(context_->env->CreateDirectory(path));
  Status status = context_->env->SyncDirectory(parent);
  if (status.ok()) status = store->SetBinding(store->GetBinding());
  if (!status.ok()) {
    // What stays is removed by the next start: without a segment it holds nothing.
    (void)context_->env->RemoveDirectory(path);
    return status;
  }
  ExclusiveLock lock(stores_mutex_);
  stores_[record.store] = store;
  by_table_[table].push_back(record.store);
  binding_generation_.fetch_add(1, std::memory_order_release);
  return store;
}

// ---- reads, flushes, reports ----

Result<std::shared_ptr<StoreImpl>> StoreDirectoryImpl::RequireStore(StoreId id) const {
  std::shared_ptr<StoreImpl> store = FindStore(id);
  if (store == nullptr) return Status::NotFound("there is no store " + std::to_string(id.value));
  return store;
}

Result<PinnedSegment> StoreDirectoryImpl::Pin(const Locator& locator) const {
  QUARRY_TRY_ASSIGN(std::shared_ptr<StoreImpl> store, RequireStore(locator.store));
  QUARRY_TRY_ASSIGN(std::shared_ptr<Segment> segment, store->RequireSegment(locator.segment));
  return PinnedSegment{std::move(store), std::move(segment)};
}

Result<StoredShape> StoreDirectoryImpl::ReadShape(const Locator& locator, const ReadOptions& options) {
  const Head head{locator, {}};
  return ReaderOf(head, options).ReadShape();
}

Status StoreDirectoryImpl::SetValueCacheBytes(uint64_t bytes) {
  if (bytes > kValueCacheMaxBytes) {
    return Status::InvalidArgument("a value cache of " + std::to_string(bytes) + " bytes (allowed: up to " +
                                   std::to_string(kValueCacheMaxBytes) + ")");
  }
  if (context_->values.Resize(bytes)) return Status::Ok();
  return Status::NotSupported("no memory to manage a value cache of " + std::to_string(bytes) +
                              " bytes; it is off now");
}

Status StoreDirectoryImpl::Sync(const UnsyncedExtents& unsynced) {
  for (const UnsyncedExtents::Entry& entry : unsynced.entries()) {
    QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, RequireStore(entry.store));
    QUARRY_TRY(store->Sync(entry.segment, entry.flush_ticket, entry.is_counted, unsynced.canceller()));
  }
  return Status::Ok();
}

void StoreDirectoryImpl::WakeWaiters() {
  for (const SegmentPath& path : context_->paths) path.staging->write_buffers.WakeWaiters();
  for (const std::shared_ptr<StoreImpl>& store : AllStores()) store->WakeWaiters();
}

void StoreDirectoryImpl::StartSync(UnsyncedExtents* unsynced) {
  for (UnsyncedExtents::Entry& entry : unsynced->entries()) {
    const std::shared_ptr<StoreImpl> store = FindStore(entry.store);
    entry.is_counted =
        store != nullptr && store->StartSync(entry.segment, entry.flush_ticket);  // Sync says what is wrong
  }
}

Result<CommitRecord> StoreDirectoryImpl::DescribeCommit(std::span<const Locator> locators) {
  CommitRecord record;
  record.store = locators.front().store;
  QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, RequireStore(record.store));
  for (const Locator& locator : locators) QUARRY_TRY(store->Describe(locator, &record));
  return record;
}

Result<bool> StoreDirectoryImpl::HoldsDurably(const CommitRecord& record) {
  const std::shared_ptr<StoreImpl> store = FindStore(record.store);
  if (store != nullptr) return store->HoldsDurably(record.extents);
  // Every store with something in it is known by its records or by its files. Those may be lost, and these be away.
  QUARRY_TRY(context_->CheckAllPathsAreHere());
  return false;
}

void StoreDirectoryImpl::CarryInCache(const Locator& replaced, const Locator& by, std::span<const uint8_t> value) {
  if (const std::shared_ptr<StoreImpl> store = FindStore(by.store); store != nullptr) {
    context_->values.Carry(replaced, by, value, store->cached_bytes());
  }
}

void StoreDirectoryImpl::Release(const Locator& locator) {
  if (const std::shared_ptr<StoreImpl> store = FindStore(locator.store); store != nullptr) store->Release(locator);
}

Counters StoreDirectoryImpl::GetCounters() const {
  Counters counters = context_->counters.Snapshot();
  counters.recent_cache_bytes = context_->recent.kept_bytes();
  counters.cache_bytes = context_->values.used_bytes();
  counters.open_files = context_->open_files.open();
  counters.open_files_limit = context_->open_files.limit();
  counters.open_files_closed = context_->open_files.closed_for_room();
  counters.segment_map_bytes = context_->maps.kept_bytes();
  counters.buffer_bytes = context_->read_buffers.held_bytes() + context_->direct_buffers.held_bytes();
  for (const SegmentPath& path : context_->paths) {
    if (path.health->has_failed()) ++counters.data_paths_avoided;
    for (const BufferPool* const pool : {&path.staging->chunk_buffers, &path.staging->write_buffers}) {
      counters.staging_bytes += pool->counted_bytes();
      counters.buffer_bytes += pool->held_bytes();
    }
  }
  return counters;
}

std::vector<std::string> StoreDirectoryImpl::PathTroubles() const {
  std::vector<std::string> reasons;
  for (const SegmentPath& path : context_->paths) {
    if (!path.read_only.empty()) reasons.push_back(path.read_only);
    // Without a directory it is a number that was never given to a path.
    if (!path.unavailable.empty() && !path.directory.empty()) reasons.push_back(path.unavailable);
  }
  for (const auto& [store, reason] : context_->unlisted) reasons.push_back(reason);
  return reasons;
}

std::vector<KnownLoss> StoreDirectoryImpl::KnownLosses() const {
  std::vector<KnownLoss> losses;
  for (const CatalogueDamage& damage : context_->catalogue->damage()) {
    KnownLoss& loss = losses.emplace_back(KnownLoss{damage.store, {}, "", damage.noted_micros, damage.what});
    const std::shared_ptr<StoreImpl> store = FindStore(damage.store);
    if (store == nullptr) continue;
    const StoreImpl::Binding binding = store->GetBinding();
    loss.table_name = binding.table_name;
    if (!binding.tables.empty()) loss.table = binding.tables.back();
  }
  return losses;
}

std::vector<StoreStats> StoreDirectoryImpl::ListStores() const { return ListWith(&StoreImpl::GetStats); }

std::vector<StoreStats> StoreDirectoryImpl::ListBindings() const { return ListWith(&StoreImpl::GetStatsWithoutFiles); }

std::vector<StoreStats> StoreDirectoryImpl::ListWith(StoreStats (StoreImpl::*get_stats)() const) const {
  std::vector<StoreStats> list;
  for (const std::shared_ptr<StoreImpl>& store : AllStores()) list.push_back(((*store).*get_stats)());
  std::sort(list.begin(), list.end(), [](const StoreStats& a, const StoreStats& b) { return a.store < b.store; });
  return list;
}

Result<StoreStats> StoreDirectoryImpl::GetStoreStats(StoreId store) const {
  QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> found, RequireStore(store));
  return found->GetStats();
}

}  // namespace quarry
