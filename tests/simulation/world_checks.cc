// The comparing half of World.
#include <algorithm>

#include "context/layout.h"
#include "io/path.h"
#include "simulation/world.h"

namespace quarry::simulation {
namespace {

std::string NameOf(const Locator& locator) {
  return "store " + std::to_string(locator.store.value) + " segment " + std::to_string(locator.segment.value) +
         " offset " + std::to_string(locator.offset_bytes);
}

}  // namespace

void World::Check(bool holds, const char* invariant, const std::string& detail) const {
  if (!holds) throw Violation(invariant, "operation " + std::to_string(clock_) + ": " + detail);
}

void World::CheckDisk() const {
  if (disk_.violation()) throw Violation(*disk_.violation());
}

void World::ExpectCause(const Status& status, uint64_t failures_before, const char* what) {
  ++totals_->failed_operations;
  Check(disk_.power_is_off() || disk_.failures() > failures_before, kNoErrorWithoutCause,
        std::string(what) + " says " + status.ToString());
}

// ---- values ----

void World::CompareBytes(const Value& value, const Status& status, uint64_t failures_before, bool is_right) {
  ++totals_->values_compared;
  CheckDisk();
  if (status.ok()) {
    Check(is_right, kNeverOtherBytes, NameOf(value.locator) + " gave other bytes");
    return;
  }
  if (disk_.power_is_off() || disk_.failures() > failures_before || value.is_damaged || value.may_be_gone) return;
  const std::string detail = NameOf(value.locator) + ": " + status.ToString();
  if (value.state == Value::State::kOpen) {
    Check(disk_.HasFailed(value.locator.store, value.locator.segment), kUnsyncedReads, detail);
  } else {
    Check(value.state == Value::State::kLost, kDurableReadsBack, detail);
  }
}

void World::CompareValue(const Value& value) {
  const uint64_t failures_before = disk_.failures();
  // What the cache gives says nothing of the disk, so half of the reads go past it.
  const ReadOptions options{dice_.OneOf<uint32_t>({4096, 32 << 10, 1 << 20}), dice_.Percent(50),
                            dice_.OneOf({PageCacheUse::kNone, PageCacheUse::kByRule, PageCacheUse::kAll})};
  const Result<ValueBuffer> read = directory_->ReadValue(value.head(), options);
  CompareBytes(value, read.status(), failures_before, read.ok() && std::ranges::equal(read->bytes(), value.bytes));
}

void World::VerifyValue(const Value& value) {
  const uint64_t failures_before = disk_.failures();
  const ReadOptions options{dice_.OneOf<uint32_t>({4096, 1 << 20}), true, PageCacheUse::kNone};
  CompareBytes(value, directory_->VerifyValue(value.head(), options, nullptr), failures_before, true);
}

void World::CompareRange(const Value& value) {
  const uint64_t failures_before = disk_.failures();
  const uint64_t from = dice_.Below(value.bytes.size() + 1);
  const uint64_t size = dice_.Below(std::min<uint64_t>(value.bytes.size() - from, 20000) + 1);
  std::vector<uint8_t> out(size);
  const ReadOptions options{dice_.OneOf<uint32_t>({4096, 1 << 20}), dice_.Percent(50),
                            dice_.OneOf({PageCacheUse::kNone, PageCacheUse::kByRule, PageCacheUse::kAll})};
  const Status status = directory_->ReadRange(value.head(), from, options, out);
  CompareBytes(value, status, failures_before,
               status.ok() && std::equal(out.begin(), out.end(), value.bytes.begin() + static_cast<ptrdiff_t>(from)));
}

void World::CompareAll() {
  for (const Value& value : values_) {
    CompareValue(value);
    if (dice_.Percent(10)) CompareRange(value);
    if (dice_.Percent(10)) VerifyValue(value);
  }
}

// ---- stores ----

void World::Observe() {
  std::map<uint64_t, StoreStats> listed;
  for (StoreStats& stats : directory_->ListStores()) listed[stats.store.value] = std::move(stats);
  for (auto at = stores_.begin(); at != stores_.end();) {
    StoreModel& store = at->second;
    const auto found = listed.find(at->first);
    if (found == listed.end()) {
      Check(store.may_vanish, kTrashRule, "store " + std::to_string(at->first) + " is gone");
      unlinked_.insert(at->first);
      ++totals_->stores_unlinked;
    }
    if (store.may_vanish) {
      for (Value& value : values_) value.may_be_gone = value.may_be_gone || value.locator.store == store.id;
    }
    if (found == listed.end()) {
      at = stores_.erase(at);
      continue;
    }
    if (!store.now.LooksLike(found->second)) {
      const auto other = std::find_if(store.others.begin(), store.others.end(),
                                      [&](const Shape& shape) { return shape.LooksLike(found->second); });
      Check(other != store.others.end(), kBindingsKept,
            "store " + std::to_string(at->first) + " has table " + std::to_string(found->second.table.value) +
                (found->second.rebinding ? " rebinding" : "") + (found->second.discarded ? " discarded" : "") +
                ", expected table " + std::to_string(store.now.table.value) +
                (store.now.is_rebinding ? " rebinding" : "") + (store.now.is_discarded ? " discarded" : ""));
      std::swap(store.now, *other);
    }
    for (const TableId table : {store.now.table, store.now.rebound_to}) {
      const bool is_bound = directory_->OwnershipOf(store.id, table) == Ownership::kBound;
      Check(is_bound == (table.value != 0), kBindingsKept,
            "store " + std::to_string(at->first) + " and table " + std::to_string(table.value) + " do not agree");
    }
    ++at;
  }
  for (const auto& [id, stats] : listed) {
    if (stores_.contains(id)) continue;
    Check(!unlinked_.contains(id), kTrashRule, "store " + std::to_string(id) + " is back from the dead");
    // The rest of an OpenForAppend that failed.
    stores_[id] = {stats.store, {stats.table, stats.rebinding, stats.discarded, 0, stats.rebound_to}, {}, false};
  }
}

std::map<uint32_t, std::string> World::SegmentFiles(StoreId store) {
  std::vector<std::string> parents = {JoinPath(options_.home_path, kStoresDirectoryName),
                                      JoinPath(options_.home_path, kTrashDirectoryName)};
  for (const std::string& path : options_.data_paths) parents.push_back(JoinPath(path, kDataPathDirectoryName));
  std::map<uint32_t, std::string> files;
  for (const std::string& parent : parents) {
    const std::string directory = JoinPath(parent, StoreDirectoryName(store));
    const Result<std::vector<std::string>> names = disk_.memory()->ListDirectory(directory);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (const auto segment = ParseSegmentFileName(name)) files[segment->value] = JoinPath(directory, name);
    }
  }
  return files;
}

uint64_t World::AllocatedBlocks(const std::string& path) {
  const auto file = disk_.memory()->OpenForRead(path);
  if (!file.ok()) return 0;
  const Result<uint64_t> bytes = (*file)->AllocatedBytes();
  return bytes.ok() ? *bytes / kBlockSizeBytes : 0;
}

uint64_t World::FileSizeBytes(const std::string& path) {
  const auto file = disk_.memory()->OpenForRead(path);
  if (!file.ok()) return 0;
  const Result<uint64_t> bytes = (*file)->SizeBytes();
  return bytes.ok() ? *bytes : 0;
}

void World::CompareStats() {
  const std::vector<StoreStats> list = directory_->ListStores();
  if (disk_.failures() > 0 || disk_.power_is_off())
    return;  // files that could not be removed or asked are not in the figures
  for (const StoreStats& stats : list) {
    if (stores_[stats.store.value].may_vanish) continue;
    const std::map<uint32_t, std::string> files = SegmentFiles(stats.store);
    uint64_t blocks = 0;
    for (const auto& [number, path] : files) blocks += AllocatedBlocks(path);
    Check(stats.segments == files.size() && stats.real_bytes == blocks * kBlockSizeBytes, kStatsMatchFiles,
          "store " + std::to_string(stats.store.value) + " says " + std::to_string(stats.segments) + " segments of " +
              std::to_string(stats.real_bytes) + " bytes, there are " + std::to_string(files.size()) + " of " +
              std::to_string(blocks * kBlockSizeBytes));
  }
}

void World::CheckRecorded(const Locator& locator) {
  const CatalogueState state = directory_->catalogue()->state();
  const auto store = state.stores.find(locator.store);
  Check(store != state.stores.end() && store->second.record && store->second.segments.contains(locator.segment.value),
        kRecordedBeforeUse, NameOf(locator) + " was committed before its segment was recorded");
}

void World::CheckNoLeftovers() {
  std::vector<std::string> parents = {JoinPath(options_.home_path, kStoresDirectoryName),
                                      JoinPath(options_.home_path, kTrashDirectoryName)};
  for (const std::string& path : options_.data_paths) parents.push_back(JoinPath(path, kDataPathDirectoryName));
  for (const auto& [id, store] : stores_) {
    for (const std::string& parent : parents) {
      const std::string directory = JoinPath(parent, StoreDirectoryName(store.id));
      const Result<std::vector<std::string>> names = disk_.memory()->ListDirectory(directory);
      if (!names.ok()) continue;
      for (const std::string& name : *names) Check(!IsLeftover(name), kNoLeftovers, JoinPath(directory, name));
    }
  }
}

}  // namespace quarry::simulation
