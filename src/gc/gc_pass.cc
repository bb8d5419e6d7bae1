#include "gc/gc_pass.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>
#include <tuple>

#include "quarry/memory_guard.h"
#include "store/store_directory_impl.h"

namespace quarry {
namespace {

/// The locator's extent, when its numbers can be remembered.
std::optional<NeededExtent> NeededExtentOf(const Locator& locator) {
  const uint64_t offset = locator.offset_bytes / kExtentAlignmentBytes;
  const uint64_t size = locator.extent_size_bytes / kExtentAlignmentBytes;
  if (locator.offset_bytes % kExtentAlignmentBytes != 0 || size == 0 || offset + size > UINT32_MAX) return std::nullopt;
  return NeededExtent{static_cast<uint32_t>(offset), static_cast<uint32_t>(size),
                      static_cast<uint32_t>(locator.identity)};
}

}  // namespace

void GcPassImpl::Add(const std::shared_ptr<StoreImpl>& store) {
  if (store->discarded() || !store->MayBeCollected()) return;
  store->SealForGc();
  for (std::shared_ptr<Segment>& segment : store->SealedSegments()) {
    if (store->IsOnSlowPath(*segment)) {
      ++report_.segments_skipped;  // to ask the file would take as long
      continue;
    }
    const Result<FileSpace> space = store->SpaceOf(*segment);
    if (!space.ok() || !store->MayWriteTo(*segment)) {
      ++report_.segments_skipped;  // its data path is away, or only read, or the file is away
      continue;
    }
    // As they are now: they change while others are looked at.
    const uint64_t gain = Beyond(space->allocated_bytes, segment->live_bytes());
    const uint32_t passes = segment->passes();
    sealed_.push_back({store, std::move(segment), *space, gain, passes});
  }
}

// First those of which most can be given back, by their counters, and of the others those that were looked at least
// often: what the marks correct counts in the next pass. So a table of any size is packed within the memory, some of
// its segments at a time.
void GcPassImpl::ChooseCandidates() {
  std::stable_sort(sealed_.begin(), sealed_.end(), [](const Sealed& a, const Sealed& b) {
    return std::tie(b.gain_bytes, a.passes) < std::tie(a.gain_bytes, b.passes);
  });
  for (Sealed& sealed : sealed_) {
    Status damage;
    const Result<std::shared_ptr<const SegmentMap>> map = MapOf(sealed.store.get(), sealed.segment.get(), &damage);
    const bool is_lost = map.status().code() == StatusCode::kCorruption || map.status().system_errno() == EIO;
    const uint64_t map_bytes = map.ok() && *map != nullptr ? (*map)->memory_bytes() : 0;
    const uint64_t mark_bytes = sealed.space.size_bytes / kBlockSizeBytes / 8;
    if ((!map.ok() && !is_lost) || memory_bytes_ + map_bytes + mark_bytes > options_.memory_max_bytes) {
      ++report_.segments_skipped;  // the file is away, or there is no memory for it
      continue;
    }
    memory_bytes_ += map_bytes + mark_bytes;
    places_[sealed.store->id()][sealed.segment->number().value] = candidates_.size();
    GcCandidate& candidate = candidates_.emplace_back(std::move(sealed.store), std::move(sealed.segment),
                                                      sealed.space.size_bytes, map.ok() ? *map : nullptr);
    // Nobody knows where its extents stand: it goes when none is needed, or stays whole.
    candidate.has_unknown_places = is_lost;
    candidate.is_by_copy = !damage.ok();
    candidate.is_to_mend = candidate.is_by_copy || candidate.segment->is_to_mend();
    if (is_lost) CountDamage(map.status().ToString());
    MakeRoomForExtents(&candidate);
  }
  sealed_.clear();
  report_.segments = candidates_.size();
  report_.memory_bytes = memory_bytes_;
}

void GcPassImpl::MakeRoomForExtents(GcCandidate* candidate) {
  if (options_.rewrite_above <= 0) return;
  const uint64_t extents = candidate->segment->extents();
  const uint64_t bytes = extents * sizeof(NeededExtent);
  candidate->has_left_out = memory_bytes_ + bytes > options_.memory_max_bytes;
  candidate->waits_its_turn = candidate->has_left_out && bytes <= options_.memory_max_bytes;
  if (candidate->has_left_out) return;
  const Status reserved = OrOutOfMemory([&] { candidate->extents.reserve(static_cast<size_t>(extents)); });
  if (!reserved.ok()) candidate->has_left_out = candidate->waits_its_turn = true;
  memory_bytes_ += candidate->extents.capacity() * sizeof(NeededExtent);
}

// Past the cache, which is for reads, and without leaving the file open.
Result<std::shared_ptr<const SegmentMap>> GcPassImpl::MapOf(StoreImpl* store, Segment* segment, Status* damage) {
  if (segment->is_of_this_life()) return std::shared_ptr<const SegmentMap>();
  QUARRY_TRY_ASSIGN(const StoreImpl::Look look, store->OpenForLook(*segment));
  QUARRY_TRY_ASSIGN(const SegmentHeader header,
                    ReadHeaderOrCopy(look.file(), segment->store(), segment->number(), segment->salt(), damage));
  if (!header.is_rewritten()) return std::shared_ptr<const SegmentMap>();
  auto map = ReadSegmentMap(look.file(), header, damage);
  if (map.ok()) segment->NoteCopyRead(*damage);
  return map;
}

GcCandidate* GcPassImpl::Find(const Locator& locator) {
  const auto store = places_.find(locator.store);
  if (store == places_.end()) return nullptr;
  const auto place = store->second.find(locator.segment.value);
  return place == store->second.end() ? nullptr : &candidates_[place->second];
}

void GcPassImpl::NoteView() {
  has_view_ = true;
  for (GcCandidate& candidate : candidates_) {
    const Segment& segment = *candidate.segment;
    candidate.released = segment.released();
    candidate.appended = {segment.extents() + candidate.released.extents,
                          segment.live_bytes() + candidate.released.bytes};
  }
}

void GcPassImpl::Mark(const Locator& locator) {
  assert(next_ == 0);
  if (!has_view_) NoteView();
  GcCandidate* const found = Find(locator);
  ++(found == nullptr ? report_.marks_elsewhere : report_.marks);
  if (found == nullptr) return;
  GcCandidate& candidate = *found;
  const std::optional<SegmentMap::Found> found_place =
      candidate.map == nullptr ? SegmentMap::Found{locator.offset_bytes, locator.extent_size_bytes, false}
                               : candidate.map->Find(locator.offset_bytes, locator.extent_size_bytes);
  const SegmentMap::Found place = found_place.value_or(SegmentMap::Found());
  if (candidate.has_unknown_places || place.place_bytes < kSegmentHeaderSizeBytes ||
      place.place_bytes > candidate.size_bytes || place.size_bytes > candidate.size_bytes - place.place_bytes) {
    candidate.in_doubt = true;
    return;
  }
  const Status marked = OrOutOfMemory([&] {
    candidate.marks.Mark(place.place_bytes / kBlockSizeBytes,
                         RoundUpToBlock(place.place_bytes + place.size_bytes) / kBlockSizeBytes);
  });
  if (!marked.ok()) {
    candidate.in_doubt = true;
    return;
  }
  ++candidate.marked_extents;
  candidate.marked_bytes += locator.extent_size_bytes;
  Remember(locator, &candidate);
}

void GcPassImpl::Remember(const Locator& locator, GcCandidate* candidate) {
  if (options_.rewrite_above <= 0 || candidate->has_left_out) return;
  const std::optional<NeededExtent> extent = NeededExtentOf(locator);
  if (extent && MakeRoom(candidate)) {
    candidate->extents.push_back(*extent);
    return;
  }
  candidate->has_left_out = true;
  memory_bytes_ -= candidate->extents.capacity() * sizeof(NeededExtent);
  std::vector<NeededExtent>().swap(candidate->extents);
}

bool GcPassImpl::MakeRoom(GcCandidate* candidate) {
  std::vector<NeededExtent>& extents = candidate->extents;
  if (extents.size() < extents.capacity()) return true;
  candidate->DropDoubles();
  const size_t more = std::max<size_t>(extents.capacity(), 1);
  // Less room would be full soon, and all of it sorted again.
  if (extents.size() <= extents.capacity() / 2 && !extents.empty()) return true;
  if (memory_bytes_ + more * sizeof(NeededExtent) > options_.memory_max_bytes) return false;
  const Status reserved = OrOutOfMemory([&] { extents.reserve(extents.capacity() + more); });
  if (!reserved.ok()) {
    candidate->waits_its_turn = true;
    return false;
  }
  memory_bytes_ += more * sizeof(NeededExtent);
  report_.memory_bytes = std::max(report_.memory_bytes, memory_bytes_);
  return true;
}

Result<std::unique_ptr<GcPass>> BeginGcPass(StoreDirectory* directory, std::span<const StoreId> stores,
                                            const GcOptions& options) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  if (implementation == nullptr) return Status::InvalidArgument("GC needs a directory of stores on files");
  return OrOutOfMemory([&]() -> Result<std::unique_ptr<GcPass>> {
    auto pass = std::make_unique<GcPassImpl>(options);
    for (const StoreId id : stores) {
      QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, implementation->RequireStore(id));
      pass->Add(store);
    }
    pass->ChooseCandidates();
    return std::unique_ptr<GcPass>(std::move(pass));
  });
}

}  // namespace quarry
