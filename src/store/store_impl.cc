#include "store/store_impl.h"

#include <algorithm>

#include "append/extent_writer.h"
#include "context/layout.h"
#include "format/extent.h"
#include "io/path.h"
#include "quarry/memory_guard.h"

namespace quarry {
namespace {

Status CheckOptions(std::span<const uint8_t> value, const AppendOptions& options) {
  if (options.part_size_bytes < kPartSizeMinBytes || options.part_size_bytes > kPartSizeMaxBytes) {
    return Status::InvalidArgument("part size " + std::to_string(options.part_size_bytes) + " is not within " +
                                   std::to_string(kPartSizeMinBytes) + ".." + std::to_string(kPartSizeMaxBytes));
  }
  if (options.codec > Codec::kZstd) {
    return Status::InvalidArgument("codec " + std::to_string(static_cast<int>(options.codec)) +
                                   " is none of none, lz4, zstd");
  }
  if (options.write_batch_bytes < kBatchMinBytes || options.write_batch_bytes > kBatchMaxBytes) {
    return Status::InvalidArgument("write batch " + std::to_string(options.write_batch_bytes) + " is not within " +
                                   std::to_string(kBatchMinBytes) + ".." + std::to_string(kBatchMaxBytes));
  }
  if (options.prefix_size_bytes > std::min<size_t>(value.size(), kPrefixMaxBytes)) {
    return Status::InvalidArgument("a prefix of " + std::to_string(options.prefix_size_bytes) +
                                   " bytes is longer than the value (" + std::to_string(value.size()) + ") or than " +
                                   std::to_string(kPrefixMaxBytes));
  }
  if (value.size() > kValueSizeMaxBytes) {
    return Status::InvalidArgument("a value of " + std::to_string(value.size()) + " bytes is longer than " +
                                   std::to_string(kValueSizeMaxBytes));
  }
  return Status::Ok();
}

}  // namespace

StoreImpl::StoreImpl(std::shared_ptr<StoreContext> context, const CatalogueStore& record, bool in_trash,
                     bool is_recorded)
    : context_(std::move(context)),
      id_(record.store),
      created_micros_(record.created_micros),
      next_segment_(record.next_segment.value),
      is_recorded_(is_recorded),
      is_in_doubt_(!is_recorded),
      binding_{record.tables,    record.table_name,       record.rebinding,
               record.discarded, record.discarded_at_lsn, record.prefix_limit_bytes},
      discarded_(record.discarded),
      in_trash_(in_trash) {}

std::shared_ptr<StoreImpl> StoreImpl::Make(std::shared_ptr<StoreContext> context, const CatalogueStore& record,
                                           bool in_trash, bool is_recorded) {
  std::shared_ptr<StoreImpl> store(new StoreImpl(std::move(context), record, in_trash, is_recorded));
  store->lanes_.reserve(store->context_->append_paths.size());
  for (const uint32_t path_number : store->context_->append_paths) {
    store->lanes_.push_back(std::make_shared<Lane>(store->context_, store, path_number));
  }
  return store;
}

// ---- appending and flushing ----

Result<Locator> StoreImpl::Append(std::span<const uint8_t> value, const AppendOptions& options,
                                  UnsyncedExtents* unsynced) {
  if (unsynced == nullptr) return Status::InvalidArgument("an append needs the transaction's unsynced extents");
  QUARRY_TRY(CheckOptions(value, options));
  QUARRY_TRY(context_->CheckListed(id_));  // the folder may hold segments of the numbers that would be given out
  if (lanes_.empty()) return WhyThereIsNoLane();
  Lane* lane = ChooseLane(*unsynced);
  Result<AppendedExtent> appended = AppendTo(lane, value, options, unsynced->canceller());
  // On a path that just failed, and where nothing of the transaction lies: it goes to another one.
  for (size_t tries = 1; !appended.ok() && tries < lanes_.size(); ++tries) {
    if (!lane->has_failed()) break;
    Lane* const other = ChooseLane(*unsynced);
    if (other == std::exchange(lane, other)) break;
    appended = AppendTo(lane, value, options, unsynced->canceller());
  }
  QUARRY_TRY_ASSIGN(const AppendedExtent extent, std::move(appended));
  const Locator& locator = extent.locator;
  unsynced->Add({id_, locator.segment, locator.offset_bytes + locator.extent_size_bytes, extent.flush_ticket});
  context_->counters.Add(Counter::kExtentsAppended);
  context_->counters.Add(Counter::kValueBytesAppended, value.size());
  context_->counters.Add(Counter::kStoredBytesAppended, locator.extent_size_bytes);
  return locator;
}

Result<AppendedExtent> StoreImpl::AppendTo(Lane* lane, std::span<const uint8_t> value, const AppendOptions& options,
                                           const Canceller* canceller) {
  try {
    ExtentWriter writer(context_.get(), lane, id_, options, canceller);
    return writer.Append(value);
  } catch (const std::bad_alloc&) {
    return OutOfMemoryFor(value.size());
  }
}

Status StoreImpl::WhyThereIsNoLane() const {
  for (uint32_t number = 0; number < context_->paths.size(); ++number) QUARRY_TRY(context_->CheckWritable(number));
  for (uint32_t number = 0; number < context_->paths.size(); ++number) {
    if (!context_->paths[number].directory.empty()) QUARRY_TRY(context_->CheckUsable(number));
  }
  return Status::Unavailable("there is no data path to append to");
}

Lane* StoreImpl::LaneOfPath(uint32_t path_number) const {
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (lane->path_number() == path_number) return lane.get();
  }
  return nullptr;
}

Lane* StoreImpl::ChooseLane(const UnsyncedExtents& unsynced) {
  if (lanes_.size() == 1) return lanes_[0].get();
  // A transaction stays where it began, so that its commit waits for one flush.
  for (const UnsyncedExtents::Entry& entry : unsynced.entries()) {
    if (entry.store != id_) continue;
    if (const std::shared_ptr<Segment> segment = FindSegment(entry.segment); segment != nullptr) {
      if (Lane* const lane = LaneOfPath(segment->path_number()); lane != nullptr) return lane;
    }
  }
  const uint64_t turn = next_lane_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane* const lane = lanes_[(turn + i) % lanes_.size()].get();
    if (lane->AdmitsTransaction()) return lane;
  }
  return lanes_[turn % lanes_.size()].get();
}

bool StoreImpl::StartSync(SegmentNumber segment, uint64_t flush_ticket) {
  const std::shared_ptr<Segment> found = FindSegment(segment);
  Lane* const lane = found == nullptr ? nullptr : LaneOfPath(found->path_number());
  return lane != nullptr && lane->StartFlush(flush_ticket);  // Sync says what is wrong
}

Status StoreImpl::Sync(SegmentNumber segment, uint64_t flush_ticket, bool counted, const Canceller* canceller) {
  QUARRY_TRY_ASSIGN(const std::shared_ptr<Segment> found, RequireSegment(segment));
  Lane* const lane = LaneOfPath(found->path_number());
  // Segments of other paths are of an earlier run, sealed and durable.
  return lane == nullptr ? Status::Ok() : lane->Sync(segment, flush_ticket, counted, canceller);
}

void StoreImpl::WakeWaiters() {
  for (const std::shared_ptr<Lane>& lane : lanes_) lane->WakeWaiters();
}

Status StoreImpl::SyncAll() {
  Status first;
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (Status status = lane->SyncAll(); !status.ok() && first.ok()) first = status;
  }
  return first;
}

// ---- segments ----

std::shared_ptr<Segment> StoreImpl::FindSegment(SegmentNumber segment) const {
  SharedLock lock(segments_mutex_);
  const auto found = segments_.find(segment.value);
  return found == segments_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Segment>> StoreImpl::AllSegments() const {
  std::vector<std::shared_ptr<Segment>> segments;
  {
    SharedLock lock(segments_mutex_);
    segments.reserve(segments_.size());
    for (const auto& [number, segment] : segments_) segments.push_back(segment);
  }
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a->number() < b->number(); });
  return segments;
}

void StoreImpl::RegisterSegment(const std::shared_ptr<Segment>& segment) {
  ExclusiveLock lock(segments_mutex_);
  segments_[segment->number().value] = segment;
}

Result<std::shared_ptr<Segment>> StoreImpl::RequireSegment(SegmentNumber segment) const {
  std::shared_ptr<Segment> found = FindSegment(segment);
  if (found != nullptr) return found;
  QUARRY_TRY(context_->CheckListed(id_));
  return NotFound(segment);
}

Status StoreImpl::NotFound(SegmentNumber segment) const {
  return Status::NotFound("store " + std::to_string(id_.value) + " has no segment " + std::to_string(segment.value));
}

void StoreImpl::Release(const Locator& locator) {
  context_->counters.Add(Counter::kExtentsReleased);
  context_->counters.Add(Counter::kStoredBytesReleased, locator.extent_size_bytes);
  context_->values.Forget(locator);
  if (const auto segment = FindSegment(locator.segment); segment != nullptr) {
    segment->CountReleased(locator.extent_size_bytes);
  }
}

RebindPair StoreImpl::Binding::pair() const {
  if (tables.empty()) return {};
  if (tables.size() == 1) return {tables.back(), {}};
  return {tables[tables.size() - 2], tables.back()};
}

StoreStats StoreImpl::GetStats() const {
  StoreStats stats = GetStatsWithoutFiles();
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    // A file that cannot be asked now (its data path is away) counts as nothing.
    const Result<FileSpace> space = const_cast<StoreImpl*>(this)->SpaceOf(*segment);
    if (space.ok()) stats.real_bytes += space->allocated_bytes;
  }
  return stats;
}

StoreStats StoreImpl::GetStatsWithoutFiles() const {
  StoreStats stats;
  const Binding binding = GetBinding();
  stats.store = id_;
  if (binding.rebinding) {
    stats.table = binding.pair().old_table;
    stats.rebound_to = binding.pair().new_table;
  } else if (!binding.tables.empty()) {
    stats.table = binding.tables.back();
  }
  stats.table_name = binding.table_name;
  stats.rebinding = binding.rebinding;
  stats.discarded = binding.discarded;
  stats.cached_bytes = cached_bytes_->load(std::memory_order_relaxed);
  bool knows_keys = true;
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    ++stats.segments;
    stats.extents += segment->extents();
    stats.live_bytes += segment->live_bytes();
    stats.dead_bytes += segment->dead_bytes();
    if (segment->counted() == CountedExtents::kEstimated) stats.uncounted_bytes += segment->live_bytes();
    const Segment::Content content = segment->content();
    stats.plain_bytes += content.is_unknown() ? segment->counted_bytes() : content.plain_bytes;
    stats.encrypted_bytes += content.encrypted_bytes;
    stats.oldest_key_version = OlderKeyVersion(stats.oldest_key_version, content.oldest_key_version);
    knows_keys &= !content.is_unknown() || segment->counted_bytes() == 0;
  }
  if (!knows_keys) stats.oldest_key_version = 0;
  return stats;
}

}  // namespace quarry
