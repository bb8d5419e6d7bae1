// The bindings of stores to InnoDB's tables: rebuilds, prefix limits, the trash.
#include <algorithm>

#include "format/small_file.h"
#include "quarry/memory_guard.h"
#include "store/store_directory_impl.h"

namespace quarry {

Ownership StoreDirectoryImpl::OwnershipOf(StoreId store, TableId table) const {
  std::shared_ptr<StoreImpl> found;
  {
    SharedLock lock(stores_mutex_);
    if (const auto ids = by_table_.find(table); ids != by_table_.end()) {
      if (std::find(ids->second.begin(), ids->second.end(), store) != ids->second.end()) return Ownership::kBound;
    }
    if (const auto known = stores_.find(store); known != stores_.end()) found = known->second;
  }
  if (found == nullptr) return Ownership::kForeign;
  const StoreImpl::Binding binding = found->GetBinding();
  return binding.tables.empty() || !context_->MayGiveBack(store) ? Ownership::kUnbound : Ownership::kForeign;
}

Status StoreDirectoryImpl::ChangeBinding(StoreImpl* store, const StoreImpl::Binding& binding) {
  const std::vector<TableId> before = store->GetBinding().tables;
  QUARRY_TRY(store->SetBinding(binding));
  NoteBinding(store->id(), before, binding.tables);
  return Status::Ok();
}

void StoreDirectoryImpl::NoteBinding(StoreId store, const std::vector<TableId>& before,
                                     const std::vector<TableId>& now) noexcept {
  ExclusiveLock lock(stores_mutex_);
  for (const TableId table : before) {
    const auto found = by_table_.find(table);
    if (found == by_table_.end()) continue;
    std::erase(found->second, store);
    if (found->second.empty()) by_table_.erase(found);
  }
  for (const TableId table : now) {
    std::vector<StoreId>& ids = by_table_[table];
    ids.insert(std::lower_bound(ids.begin(), ids.end(), store), store);
  }
  if (!now.empty()) unbound_.erase(store);
  binding_generation_.fetch_add(1, std::memory_order_release);
}

Status StoreDirectoryImpl::BindUnbound(StoreId store, TableId table, const std::string& table_name) {
  if (table.value == 0) return Status::InvalidArgument("table id 0 is no table");
  MutexLock lock(admin_mutex_);
  QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> found, RequireStore(store));
  StoreImpl::Binding binding = found->GetBinding();
  if (!binding.tables.empty()) return Status::Ok();
  binding.tables = {table};
  binding.table_name = table_name.substr(0, kNameMaxBytes);
  binding.prefix_limit_bytes = 0;  // one that was stated may be lost with the binding
  return ChangeBinding(found.get(), binding);
}

// ---- rebuilds ----

Status StoreDirectoryImpl::BeginRebind(TableId old_table, TableId new_table) {
  if (old_table.value == 0 || new_table.value == 0) return Status::InvalidArgument("table id 0 is no table");
  MutexLock lock(admin_mutex_);
  std::vector<std::pair<std::shared_ptr<StoreImpl>, StoreImpl::Binding>> changed;
  Status status;
  for (const std::shared_ptr<StoreImpl>& store : StoresOf(old_table)) {
    StoreImpl::Binding binding = store->GetBinding();
    if (binding.discarded) continue;
    changed.emplace_back(store, binding);
    binding.rebinding = true;
    binding.tables = {old_table, new_table};
    store->set_rebuilding(true);
    status = OrOutOfMemory([&] {  // undone, as after any error
      admin_mutex_.AssertHeld();
      return ChangeBinding(store.get(), binding);
    });
    if (!status.ok()) break;
  }
  if (status.ok()) return status;
  for (const auto& [store, before] : changed) {
    (void)ChangeBinding(store.get(), before);  // otherwise it is rebinding, and will be settled
    store->set_rebuilding(false);
  }
  return status;
}

Status StoreDirectoryImpl::Rebind(TableId old_table, TableId new_table) {
  if (new_table.value == 0) return Status::InvalidArgument("table id 0 is no table");
  return EndRebind(old_table, new_table);
}

Status StoreDirectoryImpl::AbandonRebind(TableId old_table) { return EndRebind(old_table, old_table); }

// One store that cannot be changed does not keep the others from it.
Status StoreDirectoryImpl::EndRebind(TableId old_table, TableId kept) {
  MutexLock lock(admin_mutex_);
  Status first;
  for (const std::shared_ptr<StoreImpl>& store : StoresOf(old_table)) {
    StoreImpl::Binding binding = store->GetBinding();
    store->set_rebuilding(false);
    if (binding.discarded) continue;
    binding.rebinding = false;
    binding.tables = {kept};
    if (Status status = ChangeBinding(store.get(), binding); !status.ok() && first.ok()) first = status;
  }
  return first;
}

std::shared_ptr<StoreImpl> StoreDirectoryImpl::FindUndecided(StoreId store, const RebindPair& seen) const {
  std::shared_ptr<StoreImpl> found = FindStore(store);
  if (found == nullptr || found->rebuilding()) return nullptr;
  const StoreImpl::Binding binding = found->GetBinding();
  return binding.rebinding && binding.pair() == seen ? found : nullptr;
}

std::vector<UndecidedRebind> StoreDirectoryImpl::UndecidedRebinds() const {
  std::vector<UndecidedRebind> undecided;
  for (const std::shared_ptr<StoreImpl>& store : AllStores()) {
    const StoreImpl::Binding binding = store->GetBinding();
    if (binding.rebinding && !binding.discarded && !store->rebuilding())
      undecided.push_back({store->id(), binding.pair()});
  }
  return undecided;
}

Status StoreDirectoryImpl::SettleRebind(StoreId store, const RebindPair& seen, TableId kept) {
  if (kept.value == 0 || (kept != seen.old_table && kept != seen.new_table)) {
    return Status::InvalidArgument("table " + std::to_string(kept.value) + " is none that store " +
                                   std::to_string(store.value) + " is bound to");
  }
  MutexLock lock(admin_mutex_);
  const std::shared_ptr<StoreImpl> found = FindUndecided(store, seen);
  if (found == nullptr) return Status::Ok();
  StoreImpl::Binding binding = found->GetBinding();
  binding.rebinding = false;
  binding.tables = {kept};
  return ChangeBinding(found.get(), binding);
}

Status StoreDirectoryImpl::DiscardRebinding(StoreId store, const RebindPair& seen, uint64_t lsn) {
  MutexLock lock(admin_mutex_);
  const std::shared_ptr<StoreImpl> found = FindUndecided(store, seen);
  return found == nullptr ? Status::Ok() : DiscardStore(found.get(), lsn);
}

// ---- prefix limits ----

// What was lost may have been a limit, or have bound a store with one to this table.
bool StoreDirectoryImpl::MayLackPrefixLimits() const {
  if (!context_->catalogue->damage().empty()) return true;
  SharedLock lock(stores_mutex_);
  return !unbound_.empty();
}

uint32_t StoreDirectoryImpl::PrefixLimitBytes(TableId table) {
  if (MayLackPrefixLimits()) return 0;
  uint32_t limit = kNoPrefixLimit;
  for (const std::shared_ptr<StoreImpl>& store : StoresOf(table)) {
    const std::optional<uint16_t> stated = store->GetBinding().prefix_limit_bytes;
    if (stated) limit = std::min<uint32_t>(limit, *stated);
  }
  return limit;
}

// A store that was made for this alone has no segment. It stays all the same: heads of another store (a rebuild that a
// crash cut off from its stores) may be in the table's rows.
Status StoreDirectoryImpl::LowerPrefixLimit(TableId table, const std::string& table_name, uint32_t bytes) {
  if (bytes > kPrefixLimitMaxBytes) {
    return Status::InvalidArgument("a prefix limit of " + std::to_string(bytes) + " bytes (allowed: up to " +
                                   std::to_string(kPrefixLimitMaxBytes) + ")");
  }
  MutexLock lock(admin_mutex_);
  QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, LiveStore(table, table_name));
  StoreImpl::Binding binding = store->GetBinding();
  if (binding.prefix_limit_bytes && *binding.prefix_limit_bytes <= bytes) return Status::Ok();
  binding.prefix_limit_bytes = static_cast<uint16_t>(bytes);
  return store->SetBinding(binding);
}

// ---- trash ----

Status StoreDirectoryImpl::DiscardStore(StoreImpl* store, uint64_t lsn) {
  StoreImpl::Binding binding = store->GetBinding();
  if (!binding.discarded) binding.discarded_at_lsn = lsn;
  binding.discarded = true;
  QUARRY_TRY(ChangeBinding(store, binding));
  return store->MoveToWhereItBelongs();
}

Status StoreDirectoryImpl::Discard(TableId table, uint64_t lsn) {
  MutexLock lock(admin_mutex_);
  for (const std::shared_ptr<StoreImpl>& store : StoresOf(table)) {
    if (!store->GetBinding().rebinding && !store->is_going()) QUARRY_TRY(DiscardStore(store.get(), lsn));
  }
  return Status::Ok();
}

Status StoreDirectoryImpl::RestoreStores(TableId table) {
  MutexLock lock(admin_mutex_);
  return Restore(table).status();
}

Result<uint64_t> StoreDirectoryImpl::EmptyTrash(uint64_t flushed_lsn) {
  std::vector<std::shared_ptr<StoreImpl>> going;
  const Result<uint64_t> given_back = OrOutOfMemory([&] { return UnlinkDiscarded(flushed_lsn, &going); });
  if (given_back.ok()) return given_back;
  // Of those that went nobody knows any more; the others are tried again.
  for (const std::shared_ptr<StoreImpl>& store : going) {
    if (store != nullptr) store->FailUnlink();
  }
  return given_back;
}

Result<uint64_t> StoreDirectoryImpl::UnlinkDiscarded(uint64_t flushed_lsn,
                                                     std::vector<std::shared_ptr<StoreImpl>>* marked) {
  std::vector<std::shared_ptr<StoreImpl>>& going = *marked;
  std::vector<std::shared_ptr<StoreImpl>> waiting;  // for a data path
  {
    MutexLock lock(admin_mutex_);
    const std::vector<std::shared_ptr<StoreImpl>> stores = AllStores();
    going.reserve(stores.size());
    for (const std::shared_ptr<StoreImpl>& store : stores) {
      const StoreImpl::Binding binding = store->GetBinding();
      if (!binding.discarded || binding.discarded_at_lsn > flushed_lsn) continue;
      if (!store->MayGiveBack()) continue;
      if (!store->CheckUnlinkable().ok()) {
        waiting.push_back(store);
      } else if (store->BeginUnlink()) {
        going.push_back(store);
      }
    }
  }
  // Those last whose paths fail or are slow, so that they keep nobody else's space.
  const auto is_well = [now = context_->env->MonotonicMicros()](const std::shared_ptr<StoreImpl>& store) {
    return store->HasWellPaths(now);
  };
  std::stable_partition(going.begin(), going.end(), is_well);
  // Unlinking takes as long as the files are many and the device is slow: without the mutex, which a table's first
  // value, a rebuild or a drop wants.
  uint64_t given_back = 0;
  for (const std::shared_ptr<StoreImpl>& store : waiting) given_back += store->UnlinkWhatIsThere();
  Status first;
  std::vector<CatalogueRecord> gone;
  std::erase_if(going, [&](const std::shared_ptr<StoreImpl>& store) {
    const uint64_t real_bytes = store->GetStats().real_bytes;
    Status status = store->Unlink();
    if (status.ok()) {
      given_back += real_bytes;
      gone.emplace_back(CatalogueStoreGone{store->id()});
      return false;
    }
    if (first.ok()) first = std::move(status);
    return true;
  });
  // Behind the files: a store without a record, but with files, would be taken for one whose record is lost.
  QUARRY_TRY(context_->catalogue->Commit(std::move(gone)));
  for (const std::shared_ptr<StoreImpl>& store : going) {
    NoteBinding(store->id(), store->GetBinding().tables, {});
    {
      ExclusiveLock stores_lock(stores_mutex_);
      stores_.erase(store->id());
    }
    context_->values.ForgetStore(store->id());
  }
  QUARRY_TRY(first);
  return given_back;
}

}  // namespace quarry
