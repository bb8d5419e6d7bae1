// The pass: candidates, marks, and what is done with each segment once the marks are complete.
//
// Invariants:
//  - Space is given back only in segments that were sealed when the pass began, and only in blocks that hold no byte of
//    a marked extent. The header block stays as long as the file.
//  - A segment leaves the catalogue before its file is unlinked. A file that a crash leaves is found again at the next
//    start as one that no record names, and unlinked by the next pass; its number is not used again.
//  - Holes are not flushed: one that power loss undoes brings back dead bytes, which the next pass punches again.
//  - A segment is rewritten (segment_rewrite.h) after its holes were punched, which makes the room, from exactly the
//    extents that were marked, and only when all of them are known.
// Thread-safety: externally synchronised; the stores are internally synchronised.
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/segment_header.h"
#include "gc/block_marks.h"
#include "gc/segment_rewrite.h"
#include "quarry/gc.h"
#include "segment/segment_layout.h"
#include "store/store_directory_impl.h"

namespace quarry {
namespace {

/// One call may not keep the file's other users waiting for long.
constexpr uint64_t kPunchCallMaxBytes = 16ULL << 20;

/// A rewriting must give back at least this share of what the segment holds.
constexpr uint64_t kSavedShareMin = 8;

struct Candidate {
  Candidate(std::shared_ptr<StoreImpl> store_in, std::shared_ptr<Segment> segment_in, uint64_t size_bytes_in,
            std::shared_ptr<const SegmentMap> map_in)
      : store(std::move(store_in)),
        segment(std::move(segment_in)),
        size_bytes(size_bytes_in),
        map(std::move(map_in)),
        marks(RoundUpToBlock(size_bytes_in) / kBlockSizeBytes) {
    if (map != nullptr) {
      front_blocks = DataBeginBytes(static_cast<uint32_t>(map->runs().size())) / kBlockSizeBytes;
      next_block = front_blocks;
    }
  }

  std::shared_ptr<StoreImpl> store;
  std::shared_ptr<Segment> segment;
  uint64_t size_bytes;
  std::shared_ptr<const SegmentMap> map;                              ///< null: every extent stands at its own offset
  uint64_t front_blocks = kSegmentHeaderSizeBytes / kBlockSizeBytes;  ///< header and map: never punched
  BlockMarks marks;                                                   ///< of the file
  std::vector<NeededExtent> extents;                                  ///< the marked ones, unless has_left_out
  bool has_left_out = false;    ///< there was no memory for some of `extents`, or no number for them
  bool waits_its_turn = false;  ///< there was none, but there will be in a later pass
  // When the view was opened.
  Segment::Released released;
  Segment::Released appended;
  uint64_t marked_extents = 0;
  uint64_t marked_bytes = 0;
  bool in_doubt = false;
  bool has_unknown_places = false;  ///< its header or map is damaged

  enum class Stage : uint8_t { kNew, kPunch, kRewrite };
  Stage stage = Stage::kNew;
  uint64_t allocated_before_bytes = 0;
  // While it is being punched.
  LeasedFile<WritableFile> file;
  uint64_t next_block = kSegmentHeaderSizeBytes / kBlockSizeBytes;
  // While it is being rewritten.
  std::unique_ptr<SegmentRewrite> rewrite;
};

uint64_t Beyond(uint64_t amount, uint64_t limit) { return amount - std::min(amount, limit); }

/// The locator's extent, when its numbers can be remembered.
std::optional<NeededExtent> NeededExtentOf(const Locator& locator) {
  const uint64_t offset = locator.offset_bytes / kExtentAlignmentBytes;
  const uint64_t size = locator.extent_size_bytes / kExtentAlignmentBytes;
  if (locator.offset_bytes % kExtentAlignmentBytes != 0 || size == 0 || offset + size > UINT32_MAX) return std::nullopt;
  return NeededExtent{static_cast<uint32_t>(offset), static_cast<uint32_t>(size),
                      static_cast<uint32_t>(locator.identity)};
}

class GcPassImpl final : public GcPass {
 public:
  explicit GcPassImpl(const GcOptions& options) : options_(options) {}

  /// Seals what `store` appends to; its segments can be candidates.
  void Add(const std::shared_ptr<StoreImpl>& store);
  /// When all are there: shares out the memory.
  void ChooseCandidates();

  void NoteView() override;
  void Mark(const Locator& locator) override;
  void SetEncryption(StoreId store, const GcEncryption& encryption) override { encryption_[store] = encryption; }
  [[nodiscard]] Result<GcStep> ReclaimSome(uint64_t bytes_max) override;
  [[nodiscard]] GcReport report() const override { return report_; }

 private:
  struct Sealed {
    std::shared_ptr<StoreImpl> store;
    std::shared_ptr<Segment> segment;
    FileSpace space;
    uint64_t gain_bytes = 0;
    uint32_t passes = 0;
  };
  /// For the extents that will be marked, as many as the counters say.
  void MakeRoomForExtents(Candidate* candidate);
  /// Null: it is in none.
  [[nodiscard]] Candidate* Find(const Locator& locator);
  [[nodiscard]] Result<std::shared_ptr<const SegmentMap>> MapOf(StoreImpl* store, Segment* segment);
  void Remember(const Locator& locator, Candidate* candidate);
  /// One more piece of the candidate's work. False: it is done with.
  [[nodiscard]] Result<bool> Advance(Candidate* candidate, uint64_t bytes_max, GcStep* step);
  /// Looks at the next candidate. False: nothing is to be done in it.
  [[nodiscard]] Result<bool> Start(Candidate* candidate, GcStep* step);
  /// Unlinks it. False: there is no room to note that.
  [[nodiscard]] Result<bool> Unlink(Candidate* candidate, GcStep* step);
  [[nodiscard]] Result<bool> Punch(Candidate* candidate, uint64_t bytes_max, GcStep* step);
  [[nodiscard]] Result<bool> FinishPunching(Candidate* candidate, bool has_holes);
  [[nodiscard]] GcEncryption EncryptionOf(const Candidate& candidate) const;
  /// Something in it is plain, or encrypted with too old a key, as far as its counters tell.
  [[nodiscard]] bool IsToEncrypt(const Candidate& candidate) const;
  /// Sorts what is to be copied. False: rewriting does not pay, or can't be done.
  [[nodiscard]] bool Pays(Candidate* candidate, uint64_t allocated_bytes);
  [[nodiscard]] Result<bool> Rewrite(Candidate* candidate, uint64_t bytes_max, GcStep* step);
  void CountDamage(const std::string& damage);
  void Done(Candidate* candidate);
  void CountMarked(Candidate* candidate);
  void SaveCounters();

  const GcOptions options_;
  uint64_t memory_bytes_ = 0;   ///< of marks, maps and extents
  std::vector<Sealed> sealed_;  ///< until the candidates are chosen
  std::vector<Candidate> candidates_;
  std::unordered_map<StoreId, std::unordered_map<uint32_t, size_t>> places_;  ///< in candidates_, by segment
  std::unordered_map<StoreId, GcEncryption> encryption_;
  bool has_view_ = false;
  size_t next_ = 0;                                                                         ///< of candidates_
  std::vector<std::pair<std::shared_ptr<StoreImpl>, std::vector<SegmentNumber>>> counted_;  ///< since SaveCounters
  GcReport report_;
};

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
    const Result<std::shared_ptr<const SegmentMap>> map = MapOf(sealed.store.get(), sealed.segment.get());
    const bool is_damaged = map.status().code() == StatusCode::kCorruption;
    const uint64_t map_bytes = map.ok() && *map != nullptr ? (*map)->memory_bytes() : 0;
    const uint64_t mark_bytes = sealed.space.size_bytes / kBlockSizeBytes / 8;
    if ((!map.ok() && !is_damaged) || memory_bytes_ + map_bytes + mark_bytes > options_.memory_max_bytes) {
      ++report_.segments_skipped;  // the file is away, or there is no memory for it
      continue;
    }
    memory_bytes_ += map_bytes + mark_bytes;
    places_[sealed.store->id()][sealed.segment->number().value] = candidates_.size();
    Candidate& candidate = candidates_.emplace_back(std::move(sealed.store), std::move(sealed.segment),
                                                    sealed.space.size_bytes, map.ok() ? *map : nullptr);
    // Nobody knows where its extents stand: it goes when none is needed, or stays whole.
    candidate.has_unknown_places = is_damaged;
    if (is_damaged) CountDamage(map.status().ToString());
    MakeRoomForExtents(&candidate);
  }
  sealed_.clear();
  report_.segments = candidates_.size();
  report_.memory_bytes = memory_bytes_;
}

void GcPassImpl::MakeRoomForExtents(Candidate* candidate) {
  if (options_.rewrite_above <= 0) return;
  const uint64_t extents = candidate->segment->extents();
  const uint64_t bytes = extents * sizeof(NeededExtent);
  candidate->has_left_out = memory_bytes_ + bytes > options_.memory_max_bytes;
  candidate->waits_its_turn = candidate->has_left_out && bytes <= options_.memory_max_bytes;
  if (candidate->has_left_out) return;
  try {
    candidate->extents.reserve(static_cast<size_t>(extents));
  } catch (const std::bad_alloc&) {
    candidate->has_left_out = candidate->waits_its_turn = true;
  }
  memory_bytes_ += candidate->extents.capacity() * sizeof(NeededExtent);
}

// Past the cache, which is for reads, and without leaving the file open.
Result<std::shared_ptr<const SegmentMap>> GcPassImpl::MapOf(StoreImpl* store, Segment* segment) {
  if (segment->is_of_this_life()) return std::shared_ptr<const SegmentMap>();
  QUARRY_TRY_ASSIGN(const StoreImpl::Look look, store->OpenForLook(*segment));
  QUARRY_TRY_ASSIGN(const SegmentHeader header, ReadSegmentHeader(look.file(), segment->store(), segment->number()));
  if (!header.is_rewritten()) return std::shared_ptr<const SegmentMap>();
  return ReadSegmentMap(look.file(), header);
}

Candidate* GcPassImpl::Find(const Locator& locator) {
  const auto store = places_.find(locator.store);
  if (store == places_.end()) return nullptr;
  const auto place = store->second.find(locator.segment.value);
  return place == store->second.end() ? nullptr : &candidates_[place->second];
}

void GcPassImpl::NoteView() {
  has_view_ = true;
  for (Candidate& candidate : candidates_) {
    const Segment& segment = *candidate.segment;
    candidate.released = segment.released();
    candidate.appended = {segment.extents() + candidate.released.extents,
                          segment.live_bytes() + candidate.released.bytes};
  }
}

void GcPassImpl::Mark(const Locator& locator) {
  assert(next_ == 0);
  if (!has_view_) NoteView();
  Candidate* const found = Find(locator);
  ++(found == nullptr ? report_.marks_elsewhere : report_.marks);
  if (found == nullptr) return;
  Candidate& candidate = *found;
  const std::optional<SegmentMap::Found> found_place =
      candidate.map == nullptr ? SegmentMap::Found{locator.offset_bytes, locator.extent_size_bytes, false}
                               : candidate.map->Find(locator.offset_bytes, locator.extent_size_bytes);
  const SegmentMap::Found place = found_place.value_or(SegmentMap::Found());
  if (candidate.has_unknown_places || place.place_bytes < kSegmentHeaderSizeBytes ||
      place.place_bytes > candidate.size_bytes || place.size_bytes > candidate.size_bytes - place.place_bytes) {
    candidate.in_doubt = true;
    return;
  }
  candidate.marks.Mark(place.place_bytes / kBlockSizeBytes,
                       RoundUpToBlock(place.place_bytes + place.size_bytes) / kBlockSizeBytes);
  ++candidate.marked_extents;
  candidate.marked_bytes += locator.extent_size_bytes;
  Remember(locator, &candidate);
}

void GcPassImpl::Remember(const Locator& locator, Candidate* candidate) {
  if (options_.rewrite_above <= 0 || candidate->has_left_out) return;
  const std::optional<NeededExtent> extent = NeededExtentOf(locator);
  const size_t capacity_before = candidate->extents.capacity();
  if (extent && (candidate->extents.size() < capacity_before ||
                 memory_bytes_ + capacity_before * sizeof(NeededExtent) < options_.memory_max_bytes)) {
    candidate->extents.push_back(*extent);
    memory_bytes_ += (candidate->extents.capacity() - capacity_before) * sizeof(NeededExtent);
    report_.memory_bytes = std::max(report_.memory_bytes, memory_bytes_);
    return;
  }
  candidate->has_left_out = true;
  std::vector<NeededExtent>().swap(candidate->extents);
  memory_bytes_ -= capacity_before * sizeof(NeededExtent);
}

Result<GcStep> GcPassImpl::ReclaimSome(uint64_t bytes_max) {
  GcStep step;
  while (next_ < candidates_.size() && step.bytes < std::max(bytes_max, kBlockSizeBytes)) {
    Candidate& candidate = candidates_[next_];
    // A store that went to the trash meanwhile is EmptyTrash's, or comes back whole.
    bool goes_on = !candidate.store->discarded();
    if (goes_on && candidate.store->IsOnSlowPath(*candidate.segment)) {
      ++report_.segments_skipped;  // one of the next passes
      goes_on = false;
    }
    if (goes_on) {
      QUARRY_TRY_ASSIGN(goes_on, Advance(&candidate, std::max(bytes_max, kBlockSizeBytes), &step));
    }
    if (!goes_on) Done(&candidate);
  }
  step.done = next_ == candidates_.size();
  if (step.done) SaveCounters();
  return step;
}

// What a crash brings back of the counters before the marks would say that bytes are missing which were given back.
void GcPassImpl::SaveCounters() {
  // A failure costs no more than that; a clean shutdown tries again.
  std::vector<std::pair<StoreImpl*, Catalogue::Ticket>> tickets;
  for (const auto& [store, segments] : counted_) tickets.emplace_back(store.get(), store->RecordSegments(segments));
  for (const auto& [store, ticket] : tickets) (void)store->SyncRecords(ticket);
  counted_.clear();
}

Result<bool> GcPassImpl::Advance(Candidate* candidate, uint64_t bytes_max, GcStep* step) {
  switch (candidate->stage) {
    case Candidate::Stage::kNew:
      return Start(candidate, step);
    case Candidate::Stage::kPunch:
      return Punch(candidate, bytes_max, step);
    case Candidate::Stage::kRewrite:
      break;
  }
  return Rewrite(candidate, bytes_max, step);
}

Result<bool> GcPassImpl::Start(Candidate* candidate, GcStep* step) {
  if (candidate->in_doubt) {
    ++report_.segments_in_doubt;
    return false;
  }
  StoreImpl* const store = candidate->store.get();
  // Another pass unlinked or rewrote it: the marks are not about the file that is there now.
  if (!store->IsCurrent(candidate->segment)) return false;
  QUARRY_TRY_ASSIGN(const FileSpace space, store->SpaceOf(*candidate->segment));
  candidate->allocated_before_bytes = space.allocated_bytes;
  const uint64_t needed_bytes = (candidate->front_blocks + candidate->marks.CountMarked()) * kBlockSizeBytes;
  const bool has_holes = space.allocated_bytes > needed_bytes;
  if (!candidate->marks.empty() && !has_holes && !Pays(candidate, space.allocated_bytes)) {
    CountMarked(candidate);
    return false;
  }
  if (candidate->marks.empty()) {
    QUARRY_TRY_ASSIGN(const bool is_unlinked, Unlink(candidate, step));
    if (is_unlinked) return false;
  }
  if (has_holes) {
    QUARRY_TRY_ASSIGN(candidate->file, store->OpenForHoles(candidate->segment));
    candidate->stage = Candidate::Stage::kPunch;
  } else if (candidate->marks.empty()) {
    ++report_.segments_skipped;  // nothing but a header, and no room to note that it is unlinked
    return false;
  } else {
    candidate->stage = Candidate::Stage::kRewrite;
  }
  return true;
}

Result<bool> GcPassImpl::Unlink(Candidate* candidate, GcStep* step) {
  const Status status = candidate->store->UnlinkSegment(candidate->segment);
  if (status.code() == StatusCode::kNoSpace) return false;
  QUARRY_TRY(status);
  ++report_.segments_unlinked;
  report_.reclaimed_bytes += candidate->allocated_before_bytes;
  step->bytes += candidate->allocated_before_bytes;
  return true;
}

Result<bool> GcPassImpl::Punch(Candidate* candidate, uint64_t bytes_max, GcStep* step) {
  while (step->bytes < bytes_max) {
    const BlockMarks::Range range = candidate->marks.NextUnmarked(candidate->next_block);
    if (range.begin == range.end) return FinishPunching(candidate, true);
    const uint64_t room = std::min(RoundUpToBlock(std::min(bytes_max - step->bytes, kPunchCallMaxBytes)),
                                   (range.end - range.begin) * kBlockSizeBytes);
    const Status status = candidate->file->PunchHole(range.begin * kBlockSizeBytes, room);
    if (status.system_errno() == EOPNOTSUPP) return FinishPunching(candidate, false);
    QUARRY_TRY(status);
    candidate->next_block = range.begin + room / kBlockSizeBytes;
    ++report_.holes;
    report_.punched_bytes += room;
    step->bytes += room;
  }
  return true;
}

Result<bool> GcPassImpl::FinishPunching(Candidate* candidate, bool has_holes) {
  // Whatever fails, the call that is repeated starts with this segment afresh, and finds nothing left to punch.
  candidate->stage = Candidate::Stage::kNew;
  {
    const LeasedFile<WritableFile> file = std::move(candidate->file);
    QUARRY_TRY(file->Close());
  }
  QUARRY_TRY_ASSIGN(const FileSpace space, candidate->store->SpaceOf(*candidate->segment));
  if (space.allocated_bytes < candidate->allocated_before_bytes) {
    report_.reclaimed_bytes += candidate->allocated_before_bytes - space.allocated_bytes;
  }
  candidate->allocated_before_bytes = space.allocated_bytes;
  if (Pays(candidate, space.allocated_bytes)) {
    candidate->stage = Candidate::Stage::kRewrite;
    return true;
  }
  if (has_holes) {
    CountMarked(candidate);
  } else {
    ++report_.segments_skipped;
  }
  return false;
}

GcEncryption GcPassImpl::EncryptionOf(const Candidate& candidate) const {
  const auto found = encryption_.find(candidate.store->id());
  return found == encryption_.end() ? GcEncryption() : found->second;
}

bool GcPassImpl::IsToEncrypt(const Candidate& candidate) const {
  const GcEncryption wanted = EncryptionOf(candidate);
  const Segment::Content content = candidate.segment->content();
  return wanted.key_id != 0 &&
         (content.is_unknown() || content.plain_bytes > 0 || content.oldest_key_version < wanted.oldest_key_version);
}

bool GcPassImpl::Pays(Candidate* candidate, uint64_t allocated_bytes) {
  if (options_.rewrite_above <= 0 || candidate->marks.empty()) return false;
  // Its lane may still be at work on what failed, by the name of the file.
  if (candidate->segment->state() == SegmentState::kPoisoned && candidate->segment->is_of_this_life()) return false;
  const bool is_to_encrypt = IsToEncrypt(*candidate);
  const auto is_too_much = [&](uint64_t needed_bytes) {
    return is_to_encrypt ||
           static_cast<double>(allocated_bytes) > options_.rewrite_above * static_cast<double>(needed_bytes);
  };
  if (candidate->has_left_out) {
    if (is_too_much(candidate->marked_bytes)) {
      ++(candidate->waits_its_turn ? report_.rewrites_postponed : report_.rewrites_refused);
    }
    return false;
  }
  std::vector<NeededExtent>& extents = candidate->extents;
  std::sort(extents.begin(), extents.end());
  extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
  uint64_t bytes = 0;
  uint64_t end_units = 0;
  for (const NeededExtent& extent : extents) {
    if (extent.offset_units < end_units) {
      CountDamage(Status::Corruption(candidate->segment->store().value, candidate->segment->number().value,
                                     extent.offset_units * kExtentAlignmentBytes, "two rows' extents overlap here")
                      .ToString());
      return false;
    }
    end_units = static_cast<uint64_t>(extent.offset_units) + extent.size_units;
    bytes += extent.size_units * kExtentAlignmentBytes;
  }
  const uint64_t size_bytes = SegmentRewrite::SizeBytes(extents);
  if (is_to_encrypt) return true;
  return is_too_much(bytes) && size_bytes + allocated_bytes / kSavedShareMin <= allocated_bytes;
}

Result<bool> GcPassImpl::Rewrite(Candidate* candidate, uint64_t bytes_max, GcStep* step) {
  if (candidate->rewrite == nullptr) {
    candidate->rewrite =
        std::make_unique<SegmentRewrite>(candidate->store, candidate->segment, std::move(candidate->extents),
                                         IsToEncrypt(*candidate) ? EncryptionOf(*candidate) : GcEncryption());
    // Before the new file takes over the counters.
    CountMarked(candidate);
  }
  const Result<SegmentRewrite::Step> copied = candidate->rewrite->Copy(bytes_max - step->bytes);
  if (!copied.ok()) {
    // The call that is repeated looks at the segment afresh.
    candidate->stage = Candidate::Stage::kNew;
    candidate->extents = candidate->rewrite->TakeExtents();
    candidate->rewrite.reset();
    const StatusCode code = copied.status().code();
    if (code == StatusCode::kNoSpace || code == StatusCode::kKeyUnavailable) {
      ++report_.rewrites_refused;
      return false;
    }
    if (code != StatusCode::kNotFound) return copied.status();
    ++report_.segments_skipped;  // another pass, or a dropped table
    return false;
  }
  step->bytes += copied->bytes;
  report_.rewritten_bytes += copied->bytes;
  if (!copied->damage.empty()) {
    CountDamage(copied->damage);
    return false;
  }
  if (!copied->is_done) return true;
  ++report_.segments_rewritten;
  report_.encrypted_extents += candidate->rewrite->encrypted_extents();
  const uint64_t size_bytes = RoundUpToBlock(candidate->rewrite->size_bytes());
  if (size_bytes < candidate->allocated_before_bytes) {
    report_.reclaimed_bytes += candidate->allocated_before_bytes - size_bytes;
  }
  return false;
}

// What was released since the view was opened is marked, and dead now. But a commit comes before its releases: as much
// as was dead in the view, and not released by then, is taken to have been released since, and is not among the
// marked.
void GcPassImpl::CountMarked(Candidate* candidate) {
  const uint64_t extents = candidate->marked_extents;
  const uint64_t bytes = candidate->marked_bytes;
  Segment::Released before = candidate->released;
  before.extents += Beyond(candidate->appended.extents, before.extents + extents);
  before.bytes += Beyond(candidate->appended.bytes, before.bytes + bytes);
  candidate->segment->CountMarked(extents, bytes, before);
  if (counted_.empty() || counted_.back().first != candidate->store) counted_.push_back({candidate->store, {}});
  counted_.back().second.push_back(candidate->segment->number());
}

void GcPassImpl::CountDamage(const std::string& damage) {
  if (report_.segments_damaged++ == 0) report_.damage = damage;
}

void GcPassImpl::Done(Candidate* candidate) {
  // Lets go of the file: the space of an unlinked one is free when nobody has it open.
  candidate->file.Release();
  candidate->rewrite.reset();
  candidate->map.reset();
  std::vector<NeededExtent>().swap(candidate->extents);
  candidate->segment.reset();
  ++report_.segments_done;
  ++next_;
}

}  // namespace

Result<std::unique_ptr<GcPass>> BeginGcPass(StoreDirectory* directory, std::span<const StoreId> stores,
                                            const GcOptions& options) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  if (implementation == nullptr) return Status::InvalidArgument("GC needs a directory of stores on files");
  auto pass = std::make_unique<GcPassImpl>(options);
  for (const StoreId id : stores) {
    QUARRY_TRY_ASSIGN(const std::shared_ptr<StoreImpl> store, implementation->RequireStore(id));
    pass->Add(store);
  }
  pass->ChooseCandidates();
  return std::unique_ptr<GcPass>(std::move(pass));
}

}  // namespace quarry
