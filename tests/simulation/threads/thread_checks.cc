// The comparing half of ThreadWorld.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "format/extent.h"
#include "io/path.h"
#include "simulation/threads/thread_world.h"
#include "store/installation_verify.h"

namespace quarry::simulation {
namespace {

/// Of simulated time, in which the disk takes microseconds unless it is told to be slow.
constexpr uint64_t kOperationMaxMicros = 5'000'000;
/// InnoDB's log is flushed at the latest by the commits that follow.
constexpr size_t kPreparedMax = 8;

std::string NameOf(const Locator& locator) {
  return "store " + std::to_string(locator.store.value) + " segment " + std::to_string(locator.segment.value) +
         " offset " + std::to_string(locator.offset_bytes);
}

class Collected : public VerifyObserver {
 public:
  void Found(const Finding& finding) override { findings.push_back(finding); }
  [[nodiscard]] bool Progress(const VerifyProgress&) override { return true; }
  std::vector<Finding> findings;
};

}  // namespace

void ThreadWorld::Check(bool holds, const char* invariant, const std::string& detail) {
  if (!holds && !ignored_.contains(invariant)) scheduler_.Fail(Violation(invariant, scheduler_.name() + ": " + detail));
}

void ThreadWorld::CheckDisk() {
  if (disk_.violation()) Check(false, disk_.violation()->invariant(), disk_.violation()->what());
}

void ThreadWorld::ExpectCause(const Status& status, const char* what) {
  Check(is_over() || disk_.failures() > 0, kNoErrorWithoutCause, std::string(what) + " says " + status.ToString());
}

// ---- waiting ----

bool ThreadWorld::IsOnSlowPath(const Value& value) {
  const FiberScheduler::Alone alone(&scheduler_);
  const std::string stores = JoinPath(options_.data_paths[slow_path_ - 1], kDataPathDirectoryName);
  const std::string store = JoinPath(stores, StoreDirectoryName(value.locator.store));
  const Result<bool> exists = disk_.memory()->FileExists(JoinPath(store, SegmentFileName(value.locator.segment)));
  return exists.ok() && *exists;
}

void ThreadWorld::CheckWait(const char* what, uint64_t began_micros, std::span<const ValuePointer> values) {
  const uint64_t took = scheduler_.now_micros() - began_micros;
  if (took <= kOperationMaxMicros || is_over()) return;
  if (slow_path_ != 0) {
    // It may have failed there before it went elsewhere.
    if (disk_.HasFailedBelow(options_.data_paths[slow_path_ - 1])) return;
    for (const ValuePointer& value : values) {
      if (IsOnSlowPath(*value)) return;
    }
  }
  Check(false, kNobodyWaitsForOthers, std::string(what) + " took " + std::to_string(took / 1'000'000) + " seconds");
}

// ---- values ----

void ThreadWorld::CompareValue(Dice* dice, const Value& value) {
  ++totals_->values_compared;
  const ReadOptions options{dice->OneOf<uint32_t>({4096, 1 << 20}), dice->Percent(50),
                            dice->OneOf({PageCacheUse::kNone, PageCacheUse::kByRule, PageCacheUse::kAll})};
  const Result<ValueBuffer> read = directory_->ReadValue(value.head(), options);
  if (read.ok()) {
    return Check(std::ranges::equal(read->bytes(), value.bytes), kNeverOtherBytes,
                 NameOf(value.locator) + " gave other bytes");
  }
  if (is_over() || disk_.failures() > 0 || value.may_be_gone || value.state == Value::State::kLost) return;
  const bool is_open = value.state == Value::State::kOpen;
  if (is_open && disk_.HasFailed(value.locator.store, value.locator.segment)) return;
  Check(false, is_open ? kUnsyncedReads : kDurableReadsBack, NameOf(value.locator) + ": " + read.status().ToString());
}

void ThreadWorld::CompareAll() {
  for (const ValuePointer& value : values_) CompareValue(&dice_, *value);
}

// ---- counters ----

std::vector<StoreId> ThreadWorld::SharedStores() {
  std::vector<StoreId> stores;
  for (const std::shared_ptr<StoreImpl>& store : directory_->AllStores()) {
    const StoreImpl::Binding binding = store->GetBinding();
    if (!binding.tables.empty() && binding.tables.back().value <= tables_) stores.push_back(store->id());
  }
  std::sort(stores.begin(), stores.end());
  return stores;
}

/// What was counted in a segment is what is there, or the segment is marked.
void ThreadWorld::CompareCounters() {
  if (disk_.failures() > 0 || is_over()) return;
  for (const StoreId id : SharedStores()) {
    const std::shared_ptr<StoreImpl> store = directory_->FindStore(id);
    for (const std::shared_ptr<Segment>& segment : store->AllSegments()) {
      if (segment->counted() != CountedExtents::kAll) continue;
      uint64_t least = 0;
      uint64_t most = 0;
      for (const ValuePointer& value : values_) {
        if (value->locator.store != id || value->locator.segment != segment->number()) continue;
        const bool is_committed = value->state == Value::State::kLive || value->state == Value::State::kDeleted;
        most += value->locator.extent_size_bytes;
        if (is_committed && !value->may_be_gone) least += value->locator.extent_size_bytes;
      }
      const uint64_t counted = segment->counted_bytes();
      ++totals_->counters_compared;
      Check(least <= counted, kCountersAgree,
            "store " + std::to_string(id.value) + " segment " + std::to_string(segment->number().value) + " counts " +
                std::to_string(counted) + " bytes, " + std::to_string(least) + " are committed");
      Check(counted <= most || has_unknown_.contains(id.value), kCountersAgree,
            "store " + std::to_string(id.value) + " segment " + std::to_string(segment->number().value) + " counts " +
                std::to_string(counted) + " bytes, " + std::to_string(most) + " were appended");
    }
  }
}

/// When nobody appends any more, the records count everything.
void ThreadWorld::CompareQuiet() {
  // A segment that is full is sealed behind the next flush, and trimmed in the background.
  for (const StoreId store : SharedStores()) {
    if (const Status status = directory_->FindStore(store)->SyncAll(); !status.ok()) {
      return ExpectCause(status, "sync all");
    }
  }
  directory_->DrainMaintenance();
  if (const Status status = directory_->SaveCounters(); !status.ok()) return ExpectCause(status, "save counters");
  if (disk_.failures() > 0 || is_over()) return;
  for (const StoreId store : SharedStores()) {
    CompareRecords(store);
    CheckNoForgery(store);
  }
}

/// What a scan takes for an extent was appended as one: no bytes inside of a value pass, whatever they pretend.
void ThreadWorld::CheckNoForgery(StoreId store) {
  const FiberScheduler::Alone alone(&scheduler_);
  if (has_unknown_.contains(store.value)) return;
  const std::string home = JoinPath(JoinPath(options_.home_path, kStoresDirectoryName), StoreDirectoryName(store));
  std::set<std::pair<uint32_t, uint64_t>> appended;
  for (const ValuePointer& value : values_) {
    if (value->locator.store == store) appended.insert({value->locator.segment.value, value->locator.offset_bytes});
  }
  for (const std::shared_ptr<Segment>& segment : directory_->FindStore(store)->AllSegments()) {
    const auto file = disk_.memory()->ReadSmallFile(JoinPath(home, SegmentFileName(segment->number())), UINT64_MAX);
    if (!file.ok()) continue;  // on another data path
    const auto header = DecodeSegmentHeader(*file, store, segment->number());
    if (!header.ok() || header->is_rewritten()) continue;
    const std::span<const uint8_t> bytes(*file);
    for (uint64_t at = kSegmentHeaderSizeBytes; at < bytes.size(); at += kExtentAlignmentBytes) {
      if (!StartsLikeExtent(bytes.subspan(at))) continue;
      const bool is_extent = DecodeExtentHeader(bytes.subspan(at), header->origin(), at).ok();
      if (!is_extent) ++totals_->forgeries_refused;
      Check(!is_extent || appended.contains({segment->number().value, at}), kNoForgedExtent,
            "store " + std::to_string(store.value) + " segment " + std::to_string(segment->number().value) +
                " offset " + std::to_string(at) + " passes for an extent");
    }
  }
}

void ThreadWorld::CompareRecords(StoreId store) {
  const FiberScheduler::Alone alone(&scheduler_);
  const Result<CatalogueOnDisk> catalogue = ReadCatalogue(disk_.memory(), options_.home_path);
  Check(catalogue.ok() && catalogue->losses.empty(), kOpensAgain, "the catalogue does not verify");
  for (const auto& [number, segment] : catalogue->state.stores.at(store).segments) {
    if (segment.state != SegmentState::kSealed || segment.counted != CountedExtents::kAll) continue;
    const std::string name = "store " + std::to_string(store.value) + " segment " + std::to_string(number);
    uint64_t appended = 0;
    for (const ValuePointer& value : values_) {
      const bool is_here = value->locator.store == store && value->locator.segment == segment.segment;
      if (is_here) appended += value->locator.extent_size_bytes;
    }
    ++totals_->counters_compared;
    Check(segment.live_bytes + segment.dead_bytes == appended, kCountersAgree,
          name + " counts " + std::to_string(segment.live_bytes + segment.dead_bytes) + " bytes, " +
              std::to_string(appended) + " were appended");
  }
}

// ---- after a crash ----

void ThreadWorld::VerifyFiles() {
  if (disk_.failures() > 0 || is_over()) return;
  const FiberScheduler::Alone alone(&scheduler_);
  Collected collected;
  VerifyOptions options;
  options.home_path = options_.home_path;
  const Result<VerifyTotals> totals = VerifyInstallationFiles(disk_.memory(), options, &collected);
  Check(totals.ok(), kVerifyIsRight, totals.ok() ? "" : totals.status().ToString());
  for (const Finding& finding : collected.findings) {
    if (finding.kind == FindingKind::kDoubtful || finding.kind == FindingKind::kLeftover) continue;
    // Of a value whose append a crash cut off, bytes that pretend to be an extent look like a damaged one. No row needs
    // it, but verification cannot know. What was committed must never be called damaged.
    if (finding.kind == FindingKind::kDamaged && !IsCommitted(finding)) continue;
    Check(false, kVerifyIsRight,
          std::string("nothing was damaged, and verification says ") + FindingKindName(finding.kind) + " " +
              finding.path + " offset " + std::to_string(finding.offset_bytes) + ": " + finding.what);
  }
}

bool ThreadWorld::IsCommitted(const Finding& finding) const {
  return std::any_of(values_.begin(), values_.end(), [&finding](const ValuePointer& value) {
    const Locator& locator = value->locator;
    return value->state == Value::State::kLive && locator.store == finding.store &&
           locator.segment == finding.segment &&
           finding.offset_bytes < locator.offset_bytes + locator.extent_size_bytes &&
           locator.offset_bytes < finding.offset_bytes + finding.size_bytes;
  });
}

/// Before anything of the commit can be seen, as the plugin does: others may run meanwhile.
std::optional<CommitRecord> ThreadWorld::DescribeCommit(const std::vector<ValuePointer>& values) {
  std::vector<Locator> locators;
  for (const ValuePointer& value : values) locators.push_back(value->locator);
  if (!FitsCommitRecord(locators)) return std::nullopt;
  Result<CommitRecord> record = directory_->DescribeCommit(locators);
  if (!record.ok()) return std::nullopt;  // its store was dropped
  return std::move(record).value();
}

void ThreadWorld::NotePrepared(const std::vector<ValuePointer>& values, const std::optional<CommitRecord>& record,
                               bool is_acknowledged) {
  if (!record) return;
  prepared_.push_back({values, is_acknowledged, *record});
  if (prepared_.size() > kPreparedMax) prepared_.erase(prepared_.begin());
}

void ThreadWorld::DecidePrepared() {
  for (; !prepared_.empty() && !is_over(); prepared_.pop_back()) {
    const Prepared transaction = prepared_.back();
    std::array<uint8_t, kCommitRecordSizeBytes> bytes{};
    EncodeCommitRecord(transaction.record, bytes);
    const Result<CommitRecord> record = DecodeCommitRecord(bytes);
    Check(record.ok(), kPreparedDecidedRight, record.status().ToString());
    const Result<bool> held = directory_->HoldsDurably(*record);
    if (!held.ok()) return ExpectCause(held.status(), "holds durably");
    ++totals_->prepared_decided;
    if (!*held) {
      const bool may_be_gone = std::any_of(transaction.values.begin(), transaction.values.end(),
                                           [](const ValuePointer& value) { return value->may_be_gone; });
      Check(!transaction.is_acknowledged || may_be_gone || is_over(), kPreparedDecidedRight,
            NameOf(transaction.values.front()->locator) + " was committed, and is to be rolled back");
      continue;
    }
    for (const ValuePointer& value : transaction.values) {
      Check(disk_.IsFlushed(value->locator) || is_over(), kPreparedDecidedRight,
            NameOf(value->locator) + " was taken for durable and is not");
      if (!transaction.is_acknowledged) {
        value->state = Value::State::kLive;
        rows_[dice_.Word()] = value;
      }
      CompareValue(&dice_, *value);
    }
  }
}

}  // namespace quarry::simulation
