// The pass: candidates, marks, and what is done with each segment once the marks are complete.
//
// Invariants:
//  - Space is given back only in segments that were sealed when the pass began, and only in blocks that hold no byte of
//    a marked extent. The header block stays as long as the file.
//  - Before the first hole in a segment its manifest says, durably, that it is sealed: recovery does not scan it then,
//    so it cannot take what stands behind a hole for the unused tail.
//  - A segment leaves the manifest before its file is unlinked. A file that a crash leaves is found again at the next
//    start as one that the manifest does not know yet, and unlinked by the next pass; its number is not used again.
//  - Holes are not flushed: one that power loss undoes brings back dead bytes, which the next pass punches again.
// Thread-safety: externally synchronised; the stores are internally synchronised.
#include <cassert>
#include <cerrno>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/segment_header.h"
#include "gc/block_marks.h"
#include "quarry/gc.h"
#include "store/store_directory_impl.h"

namespace quarry {
namespace {

/// One call may not keep the file's other users waiting for long.
constexpr uint64_t kPunchCallMaxBytes = 16ULL << 20;

struct Candidate {
  Candidate(std::shared_ptr<StoreImpl> store_in, std::shared_ptr<Segment> segment_in, uint64_t size_bytes_in)
      : store(std::move(store_in)),
        segment(std::move(segment_in)),
        size_bytes(size_bytes_in),
        marks(RoundUpToBlock(size_bytes_in) / kBlockSizeBytes),
        counters(segment->released()) {}

  std::shared_ptr<StoreImpl> store;
  std::shared_ptr<Segment> segment;
  uint64_t size_bytes;
  BlockMarks marks;
  Segment::Released counters;  ///< when the pass began: what was released since stays counted
  uint64_t marked_extents = 0;
  uint64_t marked_bytes = 0;
  bool in_doubt = false;

  // While it is being punched.
  std::unique_ptr<WritableFile> file;
  uint64_t next_block = kSegmentHeaderSizeBytes / kBlockSizeBytes;
  uint64_t allocated_before_bytes = 0;
};

class GcPassImpl final : public GcPass {
 public:
  /// Seals what `store` appends to and takes its segments as candidates.
  void Add(const std::shared_ptr<StoreImpl>& store);

  void Mark(const Locator& locator) override;
  [[nodiscard]] Result<GcStep> ReclaimSome(uint64_t bytes_max) override;
  [[nodiscard]] GcReport report() const override { return report_; }

 private:
  /// Null: it is in none.
  [[nodiscard]] Candidate* Find(const Locator& locator);
  /// Looks at the next candidate. False: nothing is to be punched in it.
  [[nodiscard]] Result<bool> Start(Candidate* candidate, GcStep* step);
  /// Unlinks it. False: there is no room for a new manifest.
  [[nodiscard]] Result<bool> Unlink(Candidate* candidate, GcStep* step);
  [[nodiscard]] Result<bool> Punch(Candidate* candidate, uint64_t bytes_max, GcStep* step);
  [[nodiscard]] Status Finish(Candidate* candidate);
  void Done(Candidate* candidate);

  std::vector<Candidate> candidates_;
  std::unordered_map<StoreId, std::unordered_map<uint32_t, size_t>> places_;  ///< in candidates_, by segment
  size_t next_ = 0;                                                           ///< of candidates_
  GcReport report_;
};

void GcPassImpl::Add(const std::shared_ptr<StoreImpl>& store) {
  if (store->discarded() || !store->has_manifest()) return;
  store->SealForGc();
  for (std::shared_ptr<Segment>& segment : store->SealedSegments()) {
    const auto file = segment->FileForRead(store.get());
    const Result<uint64_t> size = file.ok() ? (*file)->SizeBytes() : file.status();
    if (!size.ok()) {
      ++report_.segments_skipped;  // its data path is away, or the file is: nothing to give back now
      continue;
    }
    places_[store->id()][segment->number().value] = candidates_.size();
    candidates_.emplace_back(store, std::move(segment), *size);
  }
  report_.segments = candidates_.size();
}

Candidate* GcPassImpl::Find(const Locator& locator) {
  const auto store = places_.find(locator.store);
  if (store == places_.end()) return nullptr;
  const auto place = store->second.find(locator.segment.value);
  return place == store->second.end() ? nullptr : &candidates_[place->second];
}

void GcPassImpl::Mark(const Locator& locator) {
  assert(next_ == 0);
  Candidate* const found = Find(locator);
  ++(found == nullptr ? report_.marks_elsewhere : report_.marks);
  if (found == nullptr) return;
  Candidate& candidate = *found;
  if (locator.offset_bytes < kSegmentHeaderSizeBytes || locator.offset_bytes > candidate.size_bytes ||
      locator.extent_size_bytes > candidate.size_bytes - locator.offset_bytes) {
    candidate.in_doubt = true;
    return;
  }
  candidate.marks.Mark(locator.offset_bytes / kBlockSizeBytes,
                       RoundUpToBlock(locator.offset_bytes + locator.extent_size_bytes) / kBlockSizeBytes);
  ++candidate.marked_extents;
  candidate.marked_bytes += locator.extent_size_bytes;
}

Result<GcStep> GcPassImpl::ReclaimSome(uint64_t bytes_max) {
  GcStep step;
  while (next_ < candidates_.size() && step.bytes < std::max(bytes_max, kBlockSizeBytes)) {
    Candidate& candidate = candidates_[next_];
    // A store that went to the trash meanwhile is EmptyTrash's, or comes back whole.
    bool goes_on = !candidate.store->discarded();
    if (goes_on && candidate.file == nullptr) {
      QUARRY_TRY_ASSIGN(goes_on, Start(&candidate, &step));
    }
    if (goes_on) {
      QUARRY_TRY_ASSIGN(goes_on, Punch(&candidate, std::max(bytes_max, kBlockSizeBytes), &step));
    }
    if (!goes_on) Done(&candidate);
  }
  step.done = next_ == candidates_.size();
  return step;
}

Result<bool> GcPassImpl::Start(Candidate* candidate, GcStep* step) {
  if (candidate->in_doubt) {
    ++report_.segments_in_doubt;
    return false;
  }
  StoreImpl* const store = candidate->store.get();
  QUARRY_TRY_ASSIGN(ReadableFile* const file, candidate->segment->FileForRead(store));
  QUARRY_TRY_ASSIGN(candidate->allocated_before_bytes, file->AllocatedBytes());
  const uint64_t header_blocks = kSegmentHeaderSizeBytes / kBlockSizeBytes;
  const uint64_t needed_bytes = (header_blocks + candidate->marks.CountMarked()) * kBlockSizeBytes;
  if (!candidate->marks.empty() && candidate->allocated_before_bytes <= needed_bytes) {
    candidate->segment->CountMarked(candidate->marked_extents, candidate->marked_bytes, candidate->counters);
    return false;
  }
  if (candidate->marks.empty()) {
    QUARRY_TRY_ASSIGN(const bool is_unlinked, Unlink(candidate, step));
    if (is_unlinked) return false;
  }
  if (!candidate->segment->is_sealed_on_disk()) {
    if (const Status status = store->Checkpoint(); !status.ok() && status.code() != StatusCode::kNoSpace) return status;
  }
  if (!candidate->segment->is_sealed_on_disk()) {
    ++report_.segments_skipped;  // a full disk: holes in the others may make the room for the next pass
    return false;
  }
  QUARRY_TRY_ASSIGN(candidate->file,
                    store->OpenSegmentForWrite(candidate->segment->number(), candidate->segment->path_number()));
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
    if (range.begin == range.end) {
      QUARRY_TRY(Finish(candidate));
      return false;
    }
    const uint64_t room = std::min(RoundUpToBlock(std::min(bytes_max - step->bytes, kPunchCallMaxBytes)),
                                   (range.end - range.begin) * kBlockSizeBytes);
    const Status status = candidate->file->PunchHole(range.begin * kBlockSizeBytes, room);
    if (status.system_errno() == EOPNOTSUPP) {
      ++report_.segments_skipped;
      return false;
    }
    QUARRY_TRY(status);
    candidate->next_block = range.begin + room / kBlockSizeBytes;
    ++report_.holes;
    report_.punched_bytes += room;
    step->bytes += room;
  }
  return true;
}

Status GcPassImpl::Finish(Candidate* candidate) {
  // Whatever fails, the call that is repeated starts with this segment afresh, and finds nothing left to punch.
  const std::unique_ptr<WritableFile> file = std::move(candidate->file);
  QUARRY_TRY(file->Close());
  QUARRY_TRY_ASSIGN(ReadableFile* const readable, candidate->segment->FileForRead(candidate->store.get()));
  QUARRY_TRY_ASSIGN(const uint64_t allocated, readable->AllocatedBytes());
  if (allocated < candidate->allocated_before_bytes) {
    report_.reclaimed_bytes += candidate->allocated_before_bytes - allocated;
  }
  candidate->segment->CountMarked(candidate->marked_extents, candidate->marked_bytes, candidate->counters);
  return Status::Ok();
}

void GcPassImpl::Done(Candidate* candidate) {
  // Lets go of the file: the space of an unlinked one is free when nobody has it open.
  candidate->file.reset();
  candidate->segment.reset();
  ++report_.segments_done;
  ++next_;
}

}  // namespace

Result<std::unique_ptr<GcPass>> BeginGcPass(StoreDirectory* directory, std::span<const StoreId> stores) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  if (implementation == nullptr) return Status::InvalidArgument("GC needs a directory of stores on files");
  auto pass = std::make_unique<GcPassImpl>();
  for (const StoreId id : stores) {
    const std::shared_ptr<StoreImpl> store = implementation->FindStore(id);
    if (store == nullptr) return Status::NotFound("there is no store " + std::to_string(id.value));
    pass->Add(store);
  }
  return std::unique_ptr<GcPass>(std::move(pass));
}

}  // namespace quarry
