// The operations of World on GC: a pass is begun, other operations go on, the marks come, space is given back in steps.
#include <algorithm>
#include <map>
#include <set>

#include "simulation/world.h"

namespace quarry::simulation {

void World::BeginGc() {
  if (gc_) return;
  Pass pass;
  for (const auto& [id, store] : stores_) {
    if (!store.now.is_discarded && dice_.Percent(80)) pass.stores.push_back(store.id);
  }
  const uint64_t failures_before = disk_.failures();
  pass.options.rewrite_above = dice_.OneOf({0.0, 1.01, 1.25, 1.25, 2.0});
  Result<std::unique_ptr<GcPass>> begun = BeginGcPass(directory_.get(), pass.stores, pass.options);
  if (!begun.ok()) return ExpectCause(begun.status(), failures_before, "begin of a GC pass");
  pass.pass = std::move(begun).value();
  pass.began_at = clock_;
  for (const StoreId store : pass.stores) {
    for (const auto& [number, path] : SegmentFiles(store)) pass.segments[{store.value, number}] = path;
  }
  gc_ = std::move(pass);
  ++totals_->gc_passes_begun;
  if (dice_.Percent(50)) MarkGc();  // else other operations come between
}

void World::MarkGc() {
  if (!gc_ || gc_->is_marked) return;
  EndTransactions(true);
  if (disk_.power_is_off()) return;
  prepared_.clear();  // the pass waits for InnoDB's log, before it gives anything back
  for (size_t index = 0; index < values_.size(); ++index) {
    if (values_[index].state != Value::State::kLive) continue;
    gc_->pass->Mark(values_[index].locator);
    gc_->marked.push_back(index);
  }
  gc_->is_marked = true;
  for (Value& value : values_) {
    const bool is_dead = value.state == Value::State::kDeleted || value.state == Value::State::kLost;
    const bool is_in_pass = std::find(gc_->stores.begin(), gc_->stores.end(), value.locator.store) != gc_->stores.end();
    if (is_dead && is_in_pass && value.appended_at <= gc_->began_at) value.may_be_gone = true;
  }
  if (dice_.Percent(50)) ReclaimGc();
}

void World::ReclaimGc() {
  if (!gc_ || !gc_->is_marked) return;
  for (uint64_t steps = 1 + dice_.Below(20); steps > 0; --steps) {
    const uint64_t failures_before = disk_.failures();
    disk_.set_in_gc(true);
    const Result<GcStep> step = gc_->pass->ReclaimSome(dice_.OneOf<uint64_t>({4096, 65536, UINT64_MAX}));
    disk_.set_in_gc(false);
    CheckDisk();
    if (!step.ok()) {
      ExpectCause(step.status(), failures_before, "reclaim");
      if (dice_.Percent(50)) gc_.reset();
      return;
    }
    if (!step->done) continue;
    CheckGivenBack();
    CompareStats();
    const GcReport& report = gc_->pass->report();
    ++totals_->gc_passes_done;
    totals_->gc_holes += report.holes;
    totals_->gc_segments_unlinked += report.segments_unlinked;
    totals_->gc_bytes_reclaimed += report.reclaimed_bytes;
    totals_->gc_segments_rewritten += report.segments_rewritten;
    totals_->gc_bytes_rewritten += report.rewritten_bytes;
    totals_->gc_segments_damaged += report.segments_damaged;
    gc_.reset();
    return;
  }
}

void World::DropGc() { gc_.reset(); }

std::optional<SegmentMap> World::MapOf(const std::string& path) {
  const auto bytes = disk_.memory()->ReadSmallFile(path, UINT64_MAX);
  if (!bytes.ok()) return std::nullopt;
  const Result<SegmentHeader> header = DecodeSegmentHeader(*bytes);
  if (!header.ok() || !header->is_rewritten()) return std::nullopt;
  const Result<SegmentMap> map = SegmentMap::Decode(std::span(*bytes).subspan(kSegmentHeaderSizeBytes), *header);
  Check(map.ok(), kDurableReadsBack, path + " has a bad map: " + map.status().ToString());
  return *map;
}

void World::CheckGivenBack() {
  if (disk_.failures() > 0 || disk_.power_is_off()) return;  // what a failing call left is given back by a later pass
  std::map<std::pair<uint64_t, uint32_t>, std::vector<const Value*>> needed;
  for (const size_t index : gc_->marked) {
    const Locator& locator = values_[index].locator;
    needed[{locator.store.value, locator.segment.value}].push_back(&values_[index]);
  }
  for (const auto& [segment, path] : gc_->segments) {
    const auto store = stores_.find(segment.first);
    if (store == stores_.end() || gc_->dropped.contains(segment.first)) continue;
    CheckGivenBackIn(path, needed[segment]);
  }
}

void World::CheckGivenBackIn(const std::string& path, const std::vector<const Value*>& needed) {
  const std::optional<SegmentMap> map = MapOf(path);
  std::set<uint64_t> blocks;
  std::set<uint64_t> blocks_undamaged;
  std::map<uint64_t, uint64_t> sizes;  // of extents with what fills them to 8 bytes, by offset
  bool is_damaged = false;
  const uint64_t file_size_bytes = FileSizeBytes(path);
  for (const Value* const value : needed) {
    const Locator& locator = value->locator;
    // GC leaves a segment whole when a mark is beyond its end, where recovery cut off what a damaged header hid.
    if (value->is_damaged && !map && locator.offset_bytes + locator.extent_size_bytes > file_size_bytes) return;
    const std::optional<SegmentMap::Found> place =
        map ? map->Find(locator.offset_bytes, locator.extent_size_bytes) : SegmentMap::Found{locator.offset_bytes};
    Check(place.has_value(), kDurableReadsBack,
          path + " was rewritten without offset " + std::to_string(locator.offset_bytes));
    const uint64_t first = place->place_bytes;
    const uint64_t last = (first + locator.extent_size_bytes - 1) / kBlockSizeBytes;
    for (uint64_t block = first / kBlockSizeBytes; block <= last; ++block) {
      blocks.insert(block);
      if (!value->is_damaged) blocks_undamaged.insert(block);
    }
    sizes[locator.offset_bytes] = locator.extent_size_bytes;
    is_damaged = is_damaged || value->is_damaged;
  }
  // A rewritten file has header and map twice.
  const uint64_t front = map ? 2 * DataBeginBytes(static_cast<uint32_t>(map->runs().size())) / kBlockSizeBytes : 1;
  const uint64_t expected = needed.empty() ? 0 : front + blocks.size();
  // Recovery takes zeros behind a header that is damaged for what was never used, and cuts them off.
  const uint64_t least = needed.empty() ? 0 : front + blocks_undamaged.size();
  const uint64_t allocated = AllocatedBlocks(path);
  Check(least <= allocated && allocated <= expected, kGcGivesBack,
        path + " has " + std::to_string(allocated) + " blocks, " + std::to_string(expected) + " are in use");
  if (needed.empty() || gc_->options.rewrite_above == 0 || is_damaged) return;
  uint64_t bytes = 0;
  uint64_t runs = 0;
  uint64_t end = 0;
  for (const auto& [offset, size] : sizes) {
    runs += offset == end ? 0 : 1;
    end = offset + size;
    bytes += size;
  }
  const uint64_t packed = 2 * (1 + (24 * runs + 4095) / 4096) + (bytes + 4095) / 4096;
  const bool is_worth =
      static_cast<double>(allocated * kBlockSizeBytes) > gc_->options.rewrite_above * static_cast<double>(bytes) &&
      packed * 8 <= allocated * 7;
  Check(!is_worth, kGcPacks,
        path + " has " + std::to_string(allocated) + " blocks for " + std::to_string(bytes) + " bytes in " +
            std::to_string(runs) + " runs, and was not rewritten");
}

}  // namespace quarry::simulation
