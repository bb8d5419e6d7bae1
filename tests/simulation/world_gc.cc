// The operations of World on GC: a pass is begun, other operations go on, the marks come, space is given back in steps.
#include <algorithm>

#include "simulation/world.h"

namespace quarry::simulation {

void World::BeginGc() {
  if (gc_) return;
  Pass pass;
  for (const auto& [id, store] : stores_) {
    if (!store.now.is_discarded && dice_.Percent(80)) pass.stores.push_back(store.id);
  }
  const uint64_t failures_before = disk_.failures();
  Result<std::unique_ptr<GcPass>> begun = BeginGcPass(directory_.get(), pass.stores);
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
    gc_.reset();
    return;
  }
}

void World::DropGc() { gc_.reset(); }

}  // namespace quarry::simulation
