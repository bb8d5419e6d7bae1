#include <algorithm>
#include <cerrno>
#include <utility>

#include "gc/gc_pass.h"
#include "quarry/memory_guard.h"

namespace quarry {
namespace {

/// One call may not keep the file's other users waiting for long.
constexpr uint64_t kPunchCallMaxBytes = 16ULL << 20;

/// A rewriting must give back at least this share of what the segment holds.
constexpr uint64_t kSavedShareMin = 8;

}  // namespace

Result<GcStep> GcPassImpl::ReclaimSome(uint64_t bytes_max) {
  if (!std::exchange(has_counted_, true)) CountMarked();
  GcStep step;
  while (next_ < candidates_.size() && step.bytes < std::max(bytes_max, kBlockSizeBytes)) {
    GcCandidate& candidate = candidates_[next_];
    // A store that went to the trash meanwhile is EmptyTrash's, or comes back whole.
    bool goes_on = !candidate.store->discarded();
    if (goes_on && candidate.store->IsOnSlowPath(*candidate.segment)) {
      ++report_.segments_skipped;  // one of the next passes
      goes_on = false;
    }
    if (goes_on) {
      const Result<bool> advanced =
          OrOutOfMemory([&] { return Advance(&candidate, std::max(bytes_max, kBlockSizeBytes), &step); });
      if (!advanced.ok()) {
        // The next call goes on behind it, unless all of them want what is not to be had now.
        if (advanced.status().code() != StatusCode::kUnavailable) Done(&candidate);
        return advanced.status();
      }
      goes_on = *advanced;
    }
    if (!goes_on) Done(&candidate);
  }
  step.done = next_ == candidates_.size();
  if (step.done) SaveCounters();
  return step;
}

// In all segments, before the first of them changes: a crash in the middle would bring back the counters of before the
// marks, which say that bytes are missing that were given back.
void GcPassImpl::CountMarked() {
  for (GcCandidate& candidate : candidates_) {
    if (options_.rewrite_above > 0 && !candidate.has_left_out) CountOnce(&candidate);
    const bool is_current = !candidate.store->discarded() && candidate.store->IsCurrent(candidate.segment);
    if (candidate.in_doubt || !is_current) continue;
    CountMarkedIn(candidate);
    NoteCounted(candidate);
  }
  SaveCounters();
}

// Row versions of a table with system versioning share extents. Counted for each of them, bytes would seem to be lost.
void GcPassImpl::CountOnce(GcCandidate* candidate) {
  candidate->DropDoubles();
  candidate->marked_extents = candidate->extents.size();
  candidate->marked_bytes = 0;
  for (const NeededExtent& extent : candidate->extents) {
    candidate->marked_bytes += extent.size_units * kExtentAlignmentBytes;
  }
}

void GcPassImpl::NoteCounted(const GcCandidate& candidate) {
  (void)OrOutOfMemory([&] {  // as SaveCounters
    if (counted_.empty() || counted_.back().first != candidate.store) counted_.push_back({candidate.store, {}});
    counted_.back().second.push_back(candidate.segment->number());
  });
}

void GcPassImpl::SaveCounters() {
  // A failure costs a doubt of the verification after a crash, no more; a clean shutdown tries again.
  (void)OrOutOfMemory([&] {
    std::vector<std::pair<StoreImpl*, Catalogue::Ticket>> tickets;
    for (const auto& [store, segments] : counted_) tickets.emplace_back(store.get(), store->RecordSegments(segments));
    for (const auto& [store, ticket] : tickets) (void)store->SyncRecords(ticket);
  });
  counted_.clear();
}

Result<bool> GcPassImpl::Advance(GcCandidate* candidate, uint64_t bytes_max, GcStep* step) {
  switch (candidate->stage) {
    case GcCandidate::Stage::kNew:
      return Start(candidate, step);
    case GcCandidate::Stage::kPunch:
      return Punch(candidate, bytes_max, step);
    case GcCandidate::Stage::kRewrite:
      break;
  }
  return Rewrite(candidate, bytes_max, step);
}

Result<bool> GcPassImpl::Start(GcCandidate* candidate, GcStep* step) {
  if (candidate->in_doubt) {
    ++report_.segments_in_doubt;
    return false;
  }
  StoreImpl* const store = candidate->store.get();
  // Another pass unlinked or rewrote it: the marks are not about the file that is there now.
  if (!store->IsCurrent(candidate->segment)) return false;
  QUARRY_TRY_ASSIGN(const FileSpace space, store->SpaceOf(*candidate->segment));
  candidate->allocated_before_bytes = space.allocated_bytes;
  const uint64_t needed_blocks = candidate->front_blocks + candidate->copy_blocks + candidate->marks.CountMarked();
  const bool has_holes = !candidate->is_by_copy && space.allocated_bytes > needed_blocks * kBlockSizeBytes;
  if (!candidate->marks.empty() && !has_holes && !Pays(candidate, space.allocated_bytes)) return false;
  if (candidate->marks.empty()) {
    QUARRY_TRY_ASSIGN(const bool is_unlinked, Unlink(candidate, step));
    if (is_unlinked) return false;
  }
  if (has_holes) {
    QUARRY_TRY_ASSIGN(candidate->file, store->OpenForHoles(candidate->segment));
    candidate->stage = GcCandidate::Stage::kPunch;
  } else if (candidate->marks.empty()) {
    ++report_.segments_skipped;  // nothing but a header, and no room to note that it is unlinked
    return false;
  } else {
    candidate->stage = GcCandidate::Stage::kRewrite;
  }
  return true;
}

Result<bool> GcPassImpl::Unlink(GcCandidate* candidate, GcStep* step) {
  const Status status = candidate->store->UnlinkSegment(candidate->segment);
  if (status.code() == StatusCode::kNoSpace) return false;
  QUARRY_TRY(status);
  ++report_.segments_unlinked;
  report_.reclaimed_bytes += candidate->allocated_before_bytes;
  step->bytes += candidate->allocated_before_bytes;
  return true;
}

Result<bool> GcPassImpl::Punch(GcCandidate* candidate, uint64_t bytes_max, GcStep* step) {
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

Result<bool> GcPassImpl::FinishPunching(GcCandidate* candidate, bool has_holes) {
  // Whatever is to be done in this segment yet begins with a look at it.
  candidate->stage = GcCandidate::Stage::kNew;
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
    candidate->stage = GcCandidate::Stage::kRewrite;
    return true;
  }
  if (!has_holes) ++report_.segments_skipped;
  return false;
}

GcEncryption GcPassImpl::EncryptionOf(const GcCandidate& candidate) const {
  const auto found = encryption_.find(candidate.store->id());
  return found == encryption_.end() ? GcEncryption() : found->second;
}

bool GcPassImpl::IsToEncrypt(const GcCandidate& candidate) const {
  const GcEncryption wanted = EncryptionOf(candidate);
  const Segment::Content content = candidate.segment->content();
  return wanted.key_id != 0 &&
         (content.is_unknown() || content.plain_bytes > 0 || content.oldest_key_version < wanted.oldest_key_version);
}

bool GcPassImpl::Pays(GcCandidate* candidate, uint64_t allocated_bytes) {
  if (options_.rewrite_above <= 0 || candidate->marks.empty()) return false;
  // Its lane may still be at work on what failed, by the name of the file.
  if (candidate->segment->state() == SegmentState::kPoisoned && candidate->segment->is_of_this_life()) return false;
  const bool is_due = candidate->is_to_mend || IsToEncrypt(*candidate);
  const auto is_too_much = [&](uint64_t needed_bytes) {
    return is_due || static_cast<double>(allocated_bytes) > options_.rewrite_above * static_cast<double>(needed_bytes);
  };
  if (candidate->has_left_out) {
    if (is_too_much(candidate->marked_bytes)) {
      ++(candidate->waits_its_turn ? report_.rewrites_postponed : report_.rewrites_refused);
    }
    return false;
  }
  const std::vector<NeededExtent>& extents = candidate->extents;
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
  if (is_due) return true;
  if (!is_too_much(bytes)) return false;  // as a rule, without a look at the map for each extent
  const uint64_t size_bytes = SegmentRewrite::SizeBytes(extents, candidate->map.get());
  return size_bytes + allocated_bytes / kSavedShareMin <= allocated_bytes;
}

Result<bool> GcPassImpl::Rewrite(GcCandidate* candidate, uint64_t bytes_max, GcStep* step) {
  if (candidate->rewrite == nullptr) {
    candidate->rewrite =
        std::make_unique<SegmentRewrite>(candidate->store, candidate->segment, std::move(candidate->extents),
                                         IsToEncrypt(*candidate) ? EncryptionOf(*candidate) : GcEncryption());
  }
  const Result<SegmentRewrite::Step> copied =
      OrOutOfMemory([&] { return candidate->rewrite->Copy(bytes_max - step->bytes); });
  if (!copied.ok()) {
    // Should it be tried again, that begins with a look at the segment.
    candidate->stage = GcCandidate::Stage::kNew;
    candidate->extents = candidate->rewrite->TakeExtents();
    candidate->rewrite.reset();
    const StatusCode code = copied.status().code();
    if (code == StatusCode::kNoSpace || code == StatusCode::kKeyUnavailable || code == StatusCode::kOutOfMemory) {
      ++report_.rewrites_refused;
      return false;
    }
    if (code != StatusCode::kNotFound) return copied.status();
    ++report_.segments_skipped;  // another pass, or a dropped table
    return false;
  }
  report_.memory_bytes = std::max(report_.memory_bytes, memory_bytes_ + candidate->rewrite->memory_bytes());
  step->bytes += copied->bytes;
  report_.rewritten_bytes += copied->bytes;
  if (!copied->damage.empty()) {
    CountDamage(copied->damage);
    return false;
  }
  if (!copied->is_done) return true;
  ++report_.segments_rewritten;
  NoteCounted(*candidate);  // it has another size now, and another content
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
void GcPassImpl::CountMarkedIn(const GcCandidate& candidate) {
  const uint64_t extents = candidate.marked_extents;
  // Where doubles are among them these are too many, but never more than their blocks hold.
  const uint64_t bytes = std::min(candidate.marked_bytes, candidate.marks.CountMarked() * kBlockSizeBytes);
  Segment::Released before = candidate.released;
  before.extents += Beyond(candidate.appended.extents, before.extents + extents);
  before.bytes += Beyond(candidate.appended.bytes, before.bytes + bytes);
  candidate.segment->CountMarked(extents, bytes, before);
}

void GcPassImpl::CountDamage(const std::string& damage) {
  if (report_.segments_damaged++ == 0) report_.damage = damage;
}

void GcPassImpl::Done(GcCandidate* candidate) {
  // Lets go of the file: the space of an unlinked one is free when nobody has it open.
  candidate->file.Release();
  candidate->rewrite.reset();
  candidate->map.reset();
  std::vector<NeededExtent>().swap(candidate->extents);
  candidate->segment.reset();
  ++report_.segments_done;
  ++next_;
}

}  // namespace quarry
