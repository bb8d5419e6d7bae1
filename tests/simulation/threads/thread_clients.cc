// What the threads of ThreadWorld do.
#include <algorithm>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "io/path.h"
#include "simulation/threads/thread_world.h"

namespace quarry::simulation {
namespace {

constexpr uint64_t kBackupMicros = 600'000'000;

}  // namespace

// ---- values ----

std::string ThreadWorld::CataloguePath() {
  const Result<std::vector<std::string>> names = disk_.memory()->ListDirectory(options_.home_path);
  if (!names.ok()) return options_.home_path;
  for (const std::string& name : *names) {
    if (ParseCatalogueFileName(name)) return JoinPath(options_.home_path, name);
  }
  return options_.home_path;
}

HostileFacts ThreadWorld::FactsOf(Dice* dice, StoreId store, const AppendOptions& options) {
  const FiberScheduler::Alone alone(&scheduler_);
  HostileFacts facts;
  facts.store = store;
  facts.segment = {1};
  facts.part_size_bytes = options.part_size_bytes;
  facts.is_compressed = options.codec != Codec::kNone;
  for (const ValuePointer& value : values_) {
    if (dice->Percent(20) || facts.other.store.value == 0) facts.other = value->locator;
    if (value->locator.store != store || value->locator.segment < facts.segment) continue;
    const uint64_t end = value->locator.offset_bytes + value->locator.extent_size_bytes;
    facts.end_bytes = value->locator.segment == facts.segment ? std::max(facts.end_bytes, end) : end;
    facts.segment = value->locator.segment;
  }
  if (facts.other.store.value == 0) facts.other.store = store;
  const std::string home = JoinPath(JoinPath(options_.home_path, kStoresDirectoryName), StoreDirectoryName(store));
  const std::string path = dice->OneOf<std::string>({JoinPath(home, SegmentFileName(facts.segment)), CataloguePath()});
  if (auto bytes = disk_.memory()->ReadSmallFile(path, 1 << 20); bytes.ok()) facts.file = std::move(bytes).value();
  return facts;
}

std::vector<uint8_t> ThreadWorld::DrawBytes(Dice* dice, StoreId store, const AppendOptions& options) {
  const size_t size_bytes = dice->Below(dice->OneOf<uint64_t>({300, 4000, 9000, 20000, 20000, 60000}));
  if (!dice->Percent(hostile_percent_)) {
    return MakeContent(
        dice->OneOf({Content::kRandom, Content::kRandom, Content::kText, Content::kText, Content::kZeros}), size_bytes,
        dice->Word());
  }
  ++totals_->hostile_values;
  const auto kind = dice->Percent(50) ? Hostile::kHeaders : static_cast<Hostile>(dice->Below(kHostileKinds));
  return MakeHostile(kind, size_bytes, FactsOf(dice, store, options), dice);
}

Result<std::shared_ptr<Store>> ThreadWorld::OpenStore(TableId table) {
  const uint64_t began = scheduler_.now_micros();
  Result<std::shared_ptr<Store>> opened = directory_->OpenForAppend(table, "db/t" + std::to_string(table.value));
  CheckWait("open for append", began, {});
  if (!opened.ok()) ExpectCause(opened.status(), "open for append");
  return opened;
}

void ThreadWorld::AppendOne(Dice* dice, TableId table, const DealPointer& deal) {
  const Result<std::shared_ptr<Store>> store = OpenStore(table);
  if (!store.ok()) return;
  AppendOptions options;
  options.part_size_bytes = dice->OneOf<uint32_t>({512, 4096, 65536});
  options.codec = dice->OneOf({Codec::kNone, Codec::kNone, Codec::kLz4, Codec::kZstd});
  options.write_batch_bytes = dice->OneOf<uint32_t>({4096, 4096, 16384, 65536});
  auto value = std::make_shared<Value>();
  value->bytes = DrawBytes(dice, (*store)->id(), options);
  options.prefix_size_bytes = DrawPrefixSize(dice, value->bytes.size());
  const uint64_t began = scheduler_.now_micros();
  value->appended_at = ++clock_;  // before: a pass that begins meanwhile may have it
  scheduler_.Say("appends " + std::to_string(value->bytes.size()) + " bytes");
  const Result<Locator> appended = (*store)->Append(value->bytes, options, &deal->unsynced);
  if (!appended.ok()) {
    has_unknown_.insert((*store)->id().value);
    return ExpectCause(appended.status(), "append");
  }
  value->locator = *appended;
  ++totals_->appends;
  values_.push_back(value);
  deal->values.push_back(value);
  CheckWait("append", began, {&value, 1});
  if (dice->Percent(30)) CompareValue(dice, *value);
}

// ---- transactions ----

ThreadWorld::DealPointer ThreadWorld::BeginDeal() {
  deals_.push_back(std::make_shared<Deal>());
  return deals_.back();
}

void ThreadWorld::EndDeal(const DealPointer& deal, Value::State state) {
  for (const ValuePointer& value : deal->values) value->state = state;
  deal->is_open = false;
  std::erase(deals_, deal);
  scheduler_.Wake(&deals_, true);
}

void ThreadWorld::Commit(Dice* dice, const DealPointer& deal) {
  if (deal->values.empty()) return EndDeal(deal, Value::State::kLost);
  const std::optional<CommitRecord> record = DescribeCommit(deal->values);
  const uint64_t began = scheduler_.now_micros();
  if (dice->Percent(50)) {
    directory_->StartSync(&deal->unsynced);
    if (dice->Percent(50)) scheduler_.Pass("prepare", CodePlace::current());
  }
  const Status status = directory_->Sync(deal->unsynced);
  if (!status.ok()) {
    if (is_over()) NotePrepared(deal->values, record, false);
    ExpectCause(status, "commit");
    ++totals_->failed_commits;
    return EndDeal(deal, Value::State::kLost);
  }
  for (const ValuePointer& value : deal->values) {
    Check(disk_.IsFlushed(value->locator), kFlushedBeforeCommit,
          "segment " + std::to_string(value->locator.segment.value) + " offset " +
              std::to_string(value->locator.offset_bytes) + " was committed before it was flushed");
    rows_[dice->Word()] = value;
  }
  ++totals_->commits;
  scheduler_.Say("committed");
  CheckWait("commit", began, deal->values);
  NotePrepared(deal->values, record, true);
  EndDeal(deal, Value::State::kLive);
}

ThreadWorld::ValuePointer ThreadWorld::PickRow(Dice* dice) {
  if (rows_.empty()) return nullptr;
  auto row = rows_.lower_bound(dice->Word());
  return row == rows_.end() ? rows_.begin()->second : row->second;
}

void ThreadWorld::DeleteRow(Dice* dice) {
  const ValuePointer value = PickRow(dice);
  if (value == nullptr) return;
  std::erase_if(rows_, [&](const auto& row) { return row.second == value; });
  value->state = Value::State::kDeleted;
  directory_->Release(value->locator);
}

/// An UPDATE of the primary key: the row gets another place in the table, its value stays.
void ThreadWorld::MoveRow(Dice* dice) {
  const ValuePointer value = PickRow(dice);
  if (value == nullptr) return;
  std::erase_if(rows_, [&](const auto& row) { return row.second == value; });
  rows_[dice->Word()] = value;
}

// ---- threads ----

void ThreadWorld::Writer(Dice* dice) {
  for (uint64_t steps = 1 + dice->Below(writer_steps_max_); steps > 0 && !is_over(); --steps) {
    const DealPointer deal = BeginDeal();
    for (uint64_t count = dice->OneOf<uint64_t>({1, 1, 1, 2, 3}); count > 0 && !is_over(); --count) {
      AppendOne(dice, {1 + dice->Below(tables_)}, deal);
    }
    if (!deal->is_open) return;
    if (dice->Percent(85)) {
      Commit(dice, deal);
    } else if (!is_over()) {
      for (const ValuePointer& value : deal->values) directory_->Release(value->locator);
      EndDeal(deal, Value::State::kLost);
    }
    if (dice->Percent(30)) MoveRow(dice);
    if (dice->Percent(20)) DeleteRow(dice);
  }
}

void ThreadWorld::Reader(Dice* dice) {
  for (uint64_t reads = 2 + dice->Below(8); reads > 0 && !is_over(); --reads) {
    if (const ValuePointer value = PickRow(dice); value != nullptr) CompareValue(dice, *value);
    scheduler_.Pass("reader", CodePlace::current());
  }
}

void ThreadWorld::Renewer(Dice* dice) {
  for (uint64_t count = 1 + dice->Below(5); count > 0 && !is_over(); --count) {
    const Status status = dice->Percent(50) ? directory_->SaveCounters() : directory_->catalogue()->Renew();
    if (!status.ok()) ExpectCause(status, "renew");
    ++totals_->renewals;
  }
}

void ThreadWorld::Syncer(Dice* dice) {
  const Result<std::shared_ptr<Store>> store = OpenStore({1 + dice->Below(tables_)});
  if (!store.ok()) return;
  for (uint64_t count = 1 + dice->Below(3); count > 0 && !is_over(); --count) {
    const std::vector<ValuePointer> before = values_;
    if (const Status status = (*store)->SyncAll(); !status.ok()) return ExpectCause(status, "sync all");
    for (const ValuePointer& value : before) {
      const Locator& locator = value->locator;
      if (locator.store != (*store)->id() || value->may_be_gone || value->state != Value::State::kOpen) continue;
      Check(disk_.HasFailed(locator.store, locator.segment) || disk_.IsFlushed(locator), kFlushedBeforeCommit,
            "sync all left bytes unflushed");
    }
  }
}

void ThreadWorld::Backup(Dice* dice) {
  for (uint64_t count = 1 + dice->Below(2); count > 0 && !is_over(); --count) {
    directory_->PauseMaintenance();
    ++pauses_;
    scheduler_.Say("== maintenance is paused ==");
    std::set<std::pair<uint64_t, uint32_t>> needed;
    for (const auto& [key, value] : rows_) needed.insert({value->locator.store.value, value->locator.segment.value});
    const Result<BackupSnapshot> snapshot = directory_->TakeBackupSnapshot();
    if (!snapshot.ok()) ExpectCause(snapshot.status(), "backup");
    if (snapshot.ok()) {
      for (const auto& [store, segment] : needed) {
        const std::string end = JoinPath(StoreDirectoryName({store}), SegmentFileName({segment}));
        const bool is_there = std::any_of(snapshot->segments.begin(), snapshot->segments.end(),
                                          [&](const auto& file) { return file.name.ends_with(end); });
        bool may_be_gone = false;
        for (const ValuePointer& value : values_) {
          may_be_gone = may_be_gone || (value->locator.store.value == store && value->may_be_gone);
        }
        Check(is_there || may_be_gone, kBackupHoldsAll, end + " is not in the snapshot");
      }
    }
    if (has_long_backups_ && !is_over()) scheduler_.Sleep(kBackupMicros, "the files are copied");
    scheduler_.Say("== maintenance goes on ==");
    --pauses_;
    directory_->ResumeMaintenance();
    ++totals_->backups;
  }
}

/// One view of the tables; what is not in it, and was appended before the pass began, may go.
void ThreadWorld::MarkView(GcPass* pass, const std::set<uint64_t>& stores, uint64_t began_at) {
  pass->NoteView();
  prepared_.clear();  // the pass waits for InnoDB's log, before it gives anything back
  std::map<uint64_t, ValuePointer> view = rows_;
  for (const ValuePointer& value : values_) {
    const bool is_dead = value->state == Value::State::kDeleted || value->state == Value::State::kLost;
    if (is_dead && stores.contains(value->locator.store.value) && value->appended_at <= began_at) {
      value->may_be_gone = true;
    }
  }
  for (auto row = view.begin(); row != view.end();) {
    pass->Mark(row->second->locator);
    const uint64_t key = row->first;
    scheduler_.Pass("mark", CodePlace::current());
    row = view.upper_bound(key);
  }
}

void ThreadWorld::Collector(Dice* dice) {
  std::vector<StoreId> stores;
  std::set<uint64_t> ids;
  for (const StoreId store : SharedStores()) {
    stores.push_back(store);
    ids.insert(store.value);
  }
  GcOptions options;
  options.rewrite_above = dice->OneOf({0.0, 1.25, 1.25});
  Result<std::unique_ptr<GcPass>> pass = BeginGcPass(directory_.get(), stores, options);
  if (!pass.ok()) return ExpectCause(pass.status(), "begin of a GC pass");
  const uint64_t began_at = clock_;
  const std::vector<DealPointer> open = deals_;
  for (const DealPointer& deal : open) {
    while (deal->is_open && !is_over()) {
      (void)scheduler_.WaitFor(&deals_, 1'000'000, "transactions", CodePlace::current());
    }
  }
  if (is_over()) return;
  MarkView(pass->get(), ids, began_at);
  for (bool is_done = false; !is_done && !is_over();) {
    disk_.set_in_gc(true);
    const Result<GcStep> step = (*pass)->ReclaimSome(dice->OneOf<uint64_t>({4096, 65536, UINT64_MAX}));
    if (!step.ok()) {
      disk_.set_in_gc(false);
      return ExpectCause(step.status(), "reclaim");
    }
    is_done = step->done;
  }
  disk_.set_in_gc(false);
  ++totals_->gc_passes;
}

void ThreadWorld::Dropper(Dice* dice) {
  for (uint64_t count = 1 + dice->Below(2); count > 0 && !is_over(); --count) {
    const TableId table = {next_table_++};
    const DealPointer deal = BeginDeal();
    for (uint64_t values = 1 + dice->Below(3); values > 0 && !is_over(); --values) AppendOne(dice, table, deal);
    Commit(dice, deal);
    for (const ValuePointer& value : deal->values) {
      value->may_be_gone = true;
      std::erase_if(rows_, [&](const auto& row) { return row.second == value; });
      if (value->state == Value::State::kLive) value->state = Value::State::kDeleted;
    }
    prepared_.clear();
    if (is_over()) return;
    if (const Status status = directory_->Discard(table, ++lsn_); !status.ok()) ExpectCause(status, "discard");
    if (const Result<uint64_t> emptied = directory_->EmptyTrash(lsn_); !emptied.ok()) {
      ExpectCause(emptied.status(), "empty trash");
    }
    ++totals_->tables_dropped;
  }
}

void ThreadWorld::Creator(Dice* dice) {
  for (uint64_t count = 1 + dice->Below(3); count > 0 && !is_over(); --count) {
    (void)OpenStore({next_table_++});
    scheduler_.Pass("creator", CodePlace::current());
  }
}

}  // namespace quarry::simulation
