// The operations of World on values, transactions and stores.
#include <algorithm>
#include <set>

#include "context/layout.h"
#include "io/path.h"
#include "simulation/world.h"

namespace quarry::simulation {

// ---- values ----

Value* World::PickValue(Value::State state) {
  std::vector<size_t> candidates;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].state == state) candidates.push_back(i);
  }
  return candidates.empty() ? nullptr : &values_[candidates[dice_.Below(candidates.size())]];
}

void World::Append() {
  const uint64_t count = has_small_values_ ? 1 + dice_.Below(10) : 1;
  for (uint64_t i = 0; i < count && !disk_.power_is_off(); ++i) AppendOne();
}

void World::AppendOne() {
  const Slot& slot = slots_[dice_.Below(slots_.size())];
  const bool to_rebuilt = slot.rebuilt.value != 0 && dice_.Percent(50);
  Result<std::shared_ptr<Store>> store = OpenStore(to_rebuilt ? slot.rebuilt : slot.table);
  if (!store.ok()) return;
  Value value;
  const uint64_t seed = dice_.Word();
  const auto content =
      dice_.OneOf({Content::kRandom, Content::kRandom, Content::kText, Content::kZeros, Content::kSparse});
  const size_t size_bytes =
      dice_.Below(has_small_values_ ? dice_.OneOf<uint64_t>({60, 300, 300, 700, 700, 2000, 6000, 20000})
                                    : dice_.OneOf<uint64_t>({200, 4000, 4000, 20000, 20000, 70000, 300000}));
  value.bytes = MakeContent(content, size_bytes, seed);
  value.appended_at = clock_;
  AppendOptions options;
  options.part_size_bytes = dice_.OneOf<uint32_t>({512, 4096, 10000, 65536});
  options.codec = dice_.OneOf({Codec::kNone, Codec::kNone, Codec::kLz4, Codec::kZstd});
  options.write_batch_bytes = dice_.OneOf<uint32_t>({4096, 16384, 65536, 524288});
  if (dice_.Percent(encrypted_percent_)) options.encryption_key_id = kKey;
  options.prefix_size_bytes = DrawPrefixSize(&dice_, value.bytes.size());
  if (dice_.Percent(5)) keys_->Rotate(kKey, dice_.Word());
  Transaction& transaction = transactions_[dice_.Below(transactions_.size())];
  const uint64_t failures_before = disk_.failures();
  const Result<Locator> appended = (*store)->Append(value.bytes, options, &transaction.unsynced);
  if (!appended.ok()) return ExpectCause(appended.status(), failures_before, "append");
  value.locator = *appended;
  if (transaction.values.empty()) transaction.began_at = clock_;
  transaction.values.push_back(values_.size());
  values_.push_back(std::move(value));
  ++totals_->appends;
  if (options.encryption_key_id != 0) ++totals_->appends_encrypted;
  if (dice_.Percent(50)) CompareValue(values_.back());
}

void World::Read() {
  if (values_.empty()) return;
  const Value& value = values_[dice_.Below(values_.size())];
  // The cache takes in what is read twice.
  for (uint64_t reads = dice_.OneOf<uint64_t>({1, 6}); reads > 0; --reads) CompareValue(value);
}

void World::ReadRange() {
  if (!values_.empty()) CompareRange(values_[dice_.Below(values_.size())]);
}

void World::DeleteRows() {
  for (uint64_t count = 1 + dice_.Below(has_small_values_ ? 24 : 4); count > 0; --count) {
    Value* const value = PickValue(Value::State::kLive);
    if (value == nullptr) return;
    value->state = Value::State::kDeleted;
    directory_->Release(value->locator);
  }
}

void World::FlipBit() {
  Value* const value = PickValue(Value::State::kLive);
  if (value == nullptr || value->is_damaged) return;  // once: of two flips the second may hide the extent's place
  const auto files = SegmentFiles(value->locator.store);
  const auto file = files.find(value->locator.segment.value);
  if (file == files.end()) return;
  const Locator& locator = value->locator;
  const std::optional<SegmentMap> map = MapOf(file->second);
  const std::optional<SegmentMap::Found> place =
      map ? map->Find(locator.offset_bytes, locator.extent_size_bytes) : SegmentMap::Found{locator.offset_bytes};
  Check(place.has_value(), kDurableReadsBack, file->second + " was rewritten without a value that is needed");
  const uint64_t offset = place->place_bytes + dice_.Below(locator.extent_size_bytes - 7);  // not what fills its end
  if (!disk_.memory()->FlipBit(file->second, offset, static_cast<int>(dice_.Below(8)))) return;
  ++totals_->bits_flipped;
  value->is_damaged = true;
  CompareValue(*value);
}

// ---- transactions ----

void World::EndTransaction(Transaction* transaction, Value::State state) {
  for (const size_t index : transaction->values) values_[index].state = state;
  *transaction = {};
}

void World::CommitTransaction(Transaction* transaction) {
  if (transaction->values.empty()) return;
  bool has_failed_segment = false;
  for (const size_t index : transaction->values) {
    const Locator& locator = values_[index].locator;
    has_failed_segment = has_failed_segment || disk_.HasFailed(locator.store, locator.segment);
  }
  const uint64_t failures_before = disk_.failures();
  if (dice_.Percent(50)) directory_->StartSync(&transaction->unsynced);
  const Status status = directory_->Sync(transaction->unsynced);
  if (!status.ok()) {
    // Power went before anybody had an answer. (A commit that fails otherwise is rolled back, durably.)
    if (disk_.power_is_off()) NotePrepared(transaction->values, false);
    if (!has_failed_segment) ExpectCause(status, failures_before, "commit");
    ++totals_->failed_commits;
    return EndTransaction(transaction, Value::State::kLost);
  }
  ++totals_->commits;
  for (const size_t index : transaction->values) {
    Check(disk_.IsFlushed(values_[index].locator), kFlushedBeforeCommit,
          "value " + std::to_string(index) + " was committed before it was flushed");
    CheckRecorded(values_[index].locator);
  }
  NotePrepared(transaction->values, true);
  EndTransaction(transaction, Value::State::kLive);
}

void World::CommitSome() { CommitTransaction(&transactions_[dice_.Below(transactions_.size())]); }

void World::RollBack() {
  Transaction& transaction = transactions_[dice_.Below(transactions_.size())];
  for (const size_t index : transaction.values) {
    if (dice_.Percent(70)) directory_->Release(values_[index].locator);
  }
  EndTransaction(&transaction, Value::State::kLost);
}

void World::EndTransactions(bool of_before_gc_only) {
  for (Transaction& transaction : transactions_) {
    if (transaction.values.empty() || (of_before_gc_only && transaction.began_at > gc_->began_at)) continue;
    if (dice_.Percent(70)) {
      CommitTransaction(&transaction);
    } else {
      EndTransaction(&transaction, Value::State::kLost);
    }
  }
}

void World::Renew() {
  const uint64_t failures_before = disk_.failures();
  const Status status = dice_.Percent(50) ? directory_->SaveCounters() : directory_->catalogue()->Renew();
  if (!status.ok()) ExpectCause(status, failures_before, "renew");
}

void World::SyncAll() {
  Result<std::shared_ptr<Store>> store = OpenStore(slots_[dice_.Below(slots_.size())].table);
  if (!store.ok()) return;
  // What was lost is reported once, whenever it was in this life.
  const Status status = (*store)->SyncAll();
  if (!status.ok()) ExpectCause(status, 0, "sync all");
  for (Value& value : values_) {
    if (value.state != Value::State::kOpen || value.locator.store != (*store)->id()) continue;
    if (!status.ok()) value.loss_reported = true;
    Check(value.loss_reported || disk_.IsFlushed(value.locator), kFlushedBeforeCommit, "sync all left bytes unflushed");
  }
}

// ---- stores ----

std::vector<StoreModel*> World::StoresOf(TableId table) {
  std::vector<StoreModel*> found;
  for (auto& [id, store] : stores_) {
    if (store.now.table == table || store.now.rebound_to == table) found.push_back(&store);
  }
  return found;
}

void World::Attempt(StoreModel* store, const Shape& shape) { store->others.push_back(shape); }

void World::Succeeded(StoreModel* store, const Shape& shape) {
  store->now = shape;
  store->others.clear();
}

// EmptyTrash has unlinked all of it, but could not flush that: listed, and no table can have it any more.
bool World::IsUnlinkedByName(const StoreModel& store) {
  if (!store.may_vanish) return false;
  const auto is_in = [&](const char* parent) {
    const std::string directory = JoinPath(JoinPath(options_.home_path, parent), StoreDirectoryName(store.id));
    return disk_.memory()->ListDirectory(directory).ok();
  };
  return !is_in(kTrashDirectoryName) && !is_in(kStoresDirectoryName);
}

Result<std::shared_ptr<Store>> World::OpenStore(TableId table) {
  const std::vector<StoreModel*> stores = StoresOf(table);
  const bool has_live =
      std::any_of(stores.begin(), stores.end(), [](const StoreModel* store) { return !store->now.is_discarded; });
  const Shape live{table, false, false, 0, {}};
  std::set<const StoreModel*> gone;
  for (StoreModel* const store : stores) {
    if (!has_live) Attempt(store, live);
    if (IsUnlinkedByName(*store)) gone.insert(store);
  }
  const uint64_t failures_before = disk_.failures();
  Result<std::shared_ptr<Store>> opened = directory_->OpenForAppend(table, "db/t" + std::to_string(table.value));
  if (!opened.ok()) {
    ExpectCause(opened.status(), failures_before, "open for append");
    Observe();
    return opened;
  }
  const StoreId id = (*opened)->id();
  uint64_t expected = 0;
  for (StoreModel* const store : stores) {
    if (!has_live && !gone.contains(store)) Succeeded(store, live);
    if (!store->now.is_discarded) expected = std::max(expected, store->id.value);
  }
  if (expected != 0) {
    Check(id.value == expected, kBindingsKept,
          "table " + std::to_string(table.value) + " got store " + std::to_string(id.value) + ", expected " +
              std::to_string(expected));
  } else {
    Check(id.value > store_id_max_, kStoreIdsRise,
          "store " + std::to_string(id.value) + " was made after " + std::to_string(store_id_max_));
    store_id_max_ = id.value;
    stores_[id.value] = {id, live, {}, false};
  }
  return opened;
}

void World::DropTable() {
  Slot& slot = slots_[dice_.Below(slots_.size())];
  EndTransactions(false);
  lsn_ += 1 + dice_.Below(5);
  const std::vector<StoreModel*> stores = StoresOf(slot.table);
  const Shape dropped{slot.table, false, true, lsn_, {}};
  for (StoreModel* const store : stores) {
    if (!store->now.is_rebinding && !store->now.is_discarded) Attempt(store, dropped);
    if (gc_) gc_->dropped.insert(store->id.value);
  }
  const uint64_t failures_before = disk_.failures();
  prepared_.clear();  // a DROP that is durable comes behind them in InnoDB's log
  const Status status = directory_->Discard(slot.table, lsn_);
  if (!status.ok()) {
    ExpectCause(status, failures_before, "discard");
    return Observe();
  }
  for (StoreModel* const store : stores) {
    if (!store->now.is_rebinding && !store->now.is_discarded) Succeeded(store, dropped);
  }
  Observe();
  ++totals_->stores_dropped;
  if (slot.rebuilt.value != 0) return;  // the table lives on, whatever Discard was asked
  dropped_.push_back(slot.table);
  slot.table = {next_table_++};
}

void World::UndoDrop() {
  Slot& slot = slots_[dice_.Below(slots_.size())];
  if (dropped_.empty() || slot.rebuilt.value != 0) return;
  const size_t index = dice_.Below(dropped_.size());
  const TableId table = dropped_[index];
  const std::vector<StoreModel*> stores = StoresOf(table);
  const bool is_half_gone =
      std::any_of(stores.begin(), stores.end(), [](const StoreModel* store) { return store->may_vanish; });
  const bool has_live =
      std::any_of(stores.begin(), stores.end(), [](const StoreModel* store) { return !store->now.is_discarded; });
  if (is_half_gone || has_live) return;
  const Shape live{table, false, false, 0, {}};
  for (StoreModel* const store : stores) Attempt(store, live);
  const uint64_t failures_before = disk_.failures();
  const Result<std::shared_ptr<Store>> found = directory_->Find(table);
  if (stores.empty()) {
    return Check(found.status().code() == StatusCode::kNotFound, kTrashRule, "an unlinked store was found again");
  }
  if (!found.ok()) {
    ExpectCause(found.status(), failures_before, "find");
    return Observe();
  }
  for (StoreModel* const store : stores) Succeeded(store, live);
  Check((*found)->id() == stores.back()->id, kBindingsKept, "a drop undone gives another store");
  slot.table = table;
  dropped_.erase(dropped_.begin() + static_cast<ptrdiff_t>(index));
}

void World::EmptyTrash() {
  const uint64_t flushed_lsn = lsn_ - dice_.Below(8);
  const auto may_go = [flushed_lsn](const Shape& shape) {
    return shape.is_discarded && shape.discarded_at_lsn <= flushed_lsn;
  };
  std::vector<uint64_t> must_go;
  for (auto& [id, store] : stores_) {
    const bool now = may_go(store.now);
    if (now || std::any_of(store.others.begin(), store.others.end(), may_go)) store.may_vanish = true;
    if (now && store.others.empty()) must_go.push_back(id);
  }
  const uint64_t failures_before = disk_.failures();
  const Result<uint64_t> emptied = directory_->EmptyTrash(flushed_lsn);
  if (!emptied.ok()) ExpectCause(emptied.status(), failures_before, "empty trash");
  Observe();
  if (!emptied.ok()) return;
  for (const uint64_t id : must_go) {
    Check(!stores_.contains(id), kTrashRule, "store " + std::to_string(id) + " is still in the trash");
  }
}

void World::RebuildTable() {
  Slot& slot = slots_[dice_.Below(slots_.size())];
  EndTransactions(false);
  const std::vector<StoreModel*> stores = StoresOf(slot.table);
  const bool is_rebinding =
      std::any_of(stores.begin(), stores.end(), [](const StoreModel* store) { return store->now.is_rebinding; });
  const bool begins = slot.rebuilt.value == 0 && !is_rebinding;
  const bool commits = !begins && slot.rebuilt.value != 0 && dice_.Percent(60);
  const TableId rebuilt = begins ? TableId{next_table_++} : slot.rebuilt;  // never another table's, if this fails
  const auto changed = [&](Shape shape) {
    shape.is_rebinding = begins;
    shape.rebound_to = begins ? rebuilt : TableId{};
    if (commits) shape.table = rebuilt;
    return shape;
  };
  for (StoreModel* const store : stores) {
    if (!store->now.is_discarded) Attempt(store, changed(store->now));
  }
  const uint64_t failures_before = disk_.failures();
  const Status status = begins    ? directory_->BeginRebind(slot.table, rebuilt)
                        : commits ? directory_->Rebind(slot.table, rebuilt)
                                  : directory_->AbandonRebind(slot.table);
  if (!status.ok()) {
    ExpectCause(status, failures_before, "rebind");
    return Observe();
  }
  for (StoreModel* const store : stores) {
    if (!store->now.is_discarded) Succeeded(store, changed(store->now));
  }
  Observe();
  ++totals_->rebinds;
  if (begins) {
    slot.rebuilt = rebuilt;
  } else {
    if (commits) slot.table = rebuilt;
    slot.rebuilt = {};
  }
}

}  // namespace quarry::simulation
