// ScrubStores: the segments of a running directory, one after the other.
//
// Invariants: no lock is held while a segment is read; a segment's place is passed only when all of it was read; what
// another thread unlinks, moves or seals meanwhile is no finding. Only the store and the segment that are being read
// are held: a round takes days, and whoever holds what is dropped or rewritten meanwhile keeps its space from the disk.
#include <algorithm>
#include <vector>

#include "quarry/memory_guard.h"
#include "quarry/store.h"
#include "store/installation_verify.h"
#include "store/store_directory_impl.h"

namespace quarry {
namespace {

class Scrub {
 public:
  Scrub(StoreDirectoryImpl* directory, ScrubPlace* place, VerifyObserver* observer)
      : directory_(directory), place_(place), observer_(observer) {}

  VerifyTotals Run() {
    const Status status = OrOutOfMemory([this] { VerifyStores(); });
    if (!status.ok()) totals_.stopped = totals_.is_out_of_memory = true;
    return totals_;
  }

 private:
  void VerifyStores() {
    std::vector<StoreId> ids;
    for (const std::shared_ptr<StoreImpl>& store : directory_->AllStores()) ids.push_back(store->id());
    std::sort(ids.begin(), ids.end());
    for (const StoreId id : ids) {
      if (id < place_->store) continue;
      const std::shared_ptr<StoreImpl> store = directory_->FindStore(id);
      if (store == nullptr) continue;
      if (id != place_->store) *place_ = {id, SegmentNumber{0}};
      if (!store->discarded()) VerifyStore(store.get());
      if (totals_.stopped) return;
    }
  }

  void VerifyStore(StoreImpl* store) {
    ++totals_.stores;
    std::vector<SegmentNumber> numbers;
    for (const std::shared_ptr<Segment>& segment : store->AllSegments()) numbers.push_back(segment->number());
    for (const SegmentNumber number : numbers) {
      if (number < place_->segment) continue;
      place_->segment = number;
      const std::shared_ptr<Segment> segment = store->FindSegment(number);
      if (segment != nullptr) VerifyOne(store, segment.get());
      if (totals_.stopped || store->discarded()) return;
      ++place_->segment.value;
    }
  }

  [[nodiscard]] static bool IsGone(const StoreImpl& store, const Segment& segment) {
    return store.discarded() || store.FindSegment(segment.number()) == nullptr;
  }

  void VerifyOne(StoreImpl* store, Segment* segment) {
    Finding place;
    place.store = store->id();
    place.segment = segment->number();
    const StoreImpl::Binding binding = store->GetBinding();
    place.table_name = binding.table_name;
    if (!binding.tables.empty()) place.table = binding.tables.back();
    const uint32_t passes = segment->passes();
    const auto expected = store->ExpectOnDisk(*segment);
    if (!expected.has_value()) return;
    const auto file = store->OpenSegmentForVerify(*segment, &place.path);
    auto verified = file.ok() ? VerifySegment(file->get(), *expected,
                                              [this, store](uint64_t bytes) {
                                                progress_.bytes_done += bytes;
                                                return observer_->Progress(progress_) && !store->discarded();
                                              })
                              : file.status();
    if (IsGone(*store, *segment)) return;
    ++totals_.segments;
    if (verified.ok()) {
      if (verified->is_to_mend) segment->NoteToMend();
      // A pass has counted anew, and punched what had been counted.
      if (verified->is_short && segment->passes() != passes) verified->pieces.pop_back();
      AddSegmentFindings(place, *verified, &totals_, observer_);
      return;
    }
    place.kind = verified.status().code() == StatusCode::kNotFound ? FindingKind::kMissing : FindingKind::kUnreadable;
    place.what = verified.status().message();
    ++totals_.findings[static_cast<size_t>(place.kind)];
    observer_->Found(place);
  }

  StoreDirectoryImpl* const directory_;
  ScrubPlace* const place_;
  VerifyObserver* const observer_;
  VerifyProgress progress_;
  VerifyTotals totals_;
};

}  // namespace

VerifyTotals ScrubStores(StoreDirectory* directory, ScrubPlace* place, VerifyObserver* observer) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  return implementation == nullptr ? VerifyTotals() : Scrub(implementation, place, observer).Run();
}

ScrubPlace LastScrubPlace(StoreDirectory* directory) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  if (implementation == nullptr) return {};
  const CatalogueScrubPlace noted = implementation->catalogue()->scrub();
  return {noted.next_store, noted.next_segment};
}

Status NoteScrubPlace(StoreDirectory* directory, const ScrubPlace& place) {
  auto* const implementation = dynamic_cast<StoreDirectoryImpl*>(directory);
  if (implementation == nullptr) return Status::InvalidArgument("the scrub needs a directory of stores on files");
  return implementation->catalogue()->Commit(
      {CatalogueScrubPlace{place.store, place.segment, implementation->NowMicros()}});
}

}  // namespace quarry
