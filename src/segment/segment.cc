#include "segment/segment.h"

#include <algorithm>

#include "context/store_context.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

uint64_t Minus(uint64_t from, uint64_t amount) { return from > amount ? from - amount : 0; }

}  // namespace

// Two descriptors: reads around the page cache have one of their own (PosixReadableFile).
Segment::Segment(std::shared_ptr<StoreContext> context, StoreId store, SegmentNumber number, uint32_t path_number)
    : context_(std::move(context)),
      store_(store),
      number_(number),
      path_number_(path_number),
      file_(&context_->open_files, 2) {}

Segment::~Segment() {
  if (layout_.load(std::memory_order_relaxed) == Layout::kMapped) context_->maps.Erase(this);
}

// A failure is not remembered: the data path may come back.
Result<ReadPin> Segment::FileForRead(SegmentLocator* locator) {
  return file_.PinOrOpen([&] { return locator->OpenSegmentForRead(number_, path_number_); });
}

void Segment::KeepOpen(ReadPin file) {
  const MutexLock lock(open_mutex_);
  kept_open_ = std::move(file);
}

Result<SegmentMap::Found> Segment::PlaceOf(SegmentLocator* locator, uint64_t offset_bytes, uint64_t size_bytes) {
  QUARRY_TRY_ASSIGN(const std::shared_ptr<const SegmentMap> map, Map(locator));
  if (map == nullptr) return SegmentMap::Found{offset_bytes, size_bytes, false};
  if (const std::optional<SegmentMap::Found> place = map->Find(offset_bytes, size_bytes)) return *place;
  return Status::Corruption(store_.value, number_.value, offset_bytes,
                            "the extent is not in its segment, which was rewritten without it: no row needed it then");
}

Result<SegmentSalt> Segment::Salt(SegmentLocator* locator) {
  const bool is_known = salt_ != SegmentSalt{};
  if (is_known && KnowsLayout()) return salt_;
  QUARRY_TRY_ASSIGN(const ReadPin file, FileForRead(locator));
  MutexLock lock(open_mutex_);
  QUARRY_TRY(LearnLayout(file.get()));
  return is_known ? salt_ : header_.salt;
}

Result<std::shared_ptr<const SegmentMap>> Segment::Map(SegmentLocator* locator) {
  if (layout_.load(std::memory_order_acquire) == Layout::kOwnOffsets) return std::shared_ptr<const SegmentMap>();
  if (std::shared_ptr<const SegmentMap> map = context_->maps.Find(this); map != nullptr) return map;
  QUARRY_TRY_ASSIGN(const ReadPin file, FileForRead(locator));
  MutexLock lock(open_mutex_);
  QUARRY_TRY(LearnLayout(file.get()));
  if (layout_.load(std::memory_order_relaxed) == Layout::kOwnOffsets) return std::shared_ptr<const SegmentMap>();
  // Somebody else may have read it while this thread waited.
  if (std::shared_ptr<const SegmentMap> map = context_->maps.Find(this); map != nullptr) return map;
  Status damage;
  QUARRY_TRY_ASSIGN(std::shared_ptr<const SegmentMap> map,
                    ReadSegmentMap(file.get(), header_, &damage, &context_->counters));
  NoteCopyRead(damage);
  context_->maps.Insert(this, map);
  context_->counters.Add(Counter::kSegmentMapLoads);
  return map;
}

Status Segment::LearnLayout(ReadableFile* file) {
  if (layout_.load(std::memory_order_relaxed) != Layout::kUnknown) return Status::Ok();
  Status damage;
  Result<SegmentHeader> header = ReadHeaderOrCopy(file, store_, number_, salt_, &damage, &context_->counters);
  NoteCopyRead(damage);
  if (!header.ok() && header.status().code() == StatusCode::kCorruption && salt_ != SegmentSalt{}) {
    // The catalogue has the salt, and nearly all segments were never rewritten. The extents of one that was, and whose
    // copy is lost too, are not found, for each says where it belongs.
    layout_.store(Layout::kOwnOffsets, std::memory_order_release);
    return Status::Ok();
  }
  if (!header.ok()) return header.status();
  // Where the catalogue has none, a start could not read the header: that does not make it another's.
  if (salt_ != SegmentSalt{} && header->salt != salt_) {
    return Status::Corruption(store_.value, number_.value, 0, "the file is not the segment that the catalogue means");
  }
  header_ = *header;
  layout_.store(header_.is_rewritten() ? Layout::kMapped : Layout::kOwnOffsets, std::memory_order_release);
  return Status::Ok();
}

void Segment::NoteCopyRead(const Status& damage) {
  if (damage.ok()) return;
  context_->notices.AddOnce("segment " + std::to_string(number_.value) + " of store " + std::to_string(store_.value) +
                            " is read by the copy at its end, because its header or its map is lost (" +
                            damage.message() + "): the next mark pass writes it again; check the drive");
}

void Segment::set_of_this_life() {
  is_of_this_life_ = true;
  layout_.store(Layout::kOwnOffsets, std::memory_order_release);
}

void Segment::TakeOver(const Segment& old, uint64_t size_bytes) {
  set_state(old.state());
  set_salt(old.salt());
  passes_.store(old.passes(), std::memory_order_relaxed);
  const uint64_t dead_bytes = std::min(old.dead_bytes(), old.counted_bytes());
  RestoreCounters(old.extents(), old.counted_bytes() - dead_bytes, dead_bytes, size_bytes, old.counted());
}

void Segment::CountAppended(uint64_t stored_bytes) {
  appended_extents_.fetch_add(1, std::memory_order_relaxed);
  appended_bytes_.fetch_add(stored_bytes, std::memory_order_relaxed);
}

void Segment::NoteContent(uint64_t stored_bytes, uint32_t key_version) {
  (key_version == 0 ? plain_bytes_ : encrypted_bytes_).fetch_add(stored_bytes, std::memory_order_relaxed);
  uint32_t oldest = oldest_key_version_.load(std::memory_order_relaxed);
  while (OlderKeyVersion(oldest, key_version) != oldest &&
         !oldest_key_version_.compare_exchange_weak(oldest, key_version, std::memory_order_relaxed)) {
  }
}

Segment::Content Segment::content() const {
  return {plain_bytes_.load(std::memory_order_relaxed), encrypted_bytes_.load(std::memory_order_relaxed),
          oldest_key_version_.load(std::memory_order_relaxed)};
}

void Segment::RestoreContent(const Content& content) {
  plain_bytes_.store(content.plain_bytes, std::memory_order_relaxed);
  encrypted_bytes_.store(content.encrypted_bytes, std::memory_order_relaxed);
  oldest_key_version_.store(content.oldest_key_version, std::memory_order_relaxed);
}

void Segment::CountReleased(uint64_t stored_bytes) {
  released_extents_.fetch_add(1, std::memory_order_relaxed);
  dead_bytes_.fetch_add(stored_bytes, std::memory_order_relaxed);
}

void Segment::CountMarked(uint64_t extents, uint64_t bytes, const Released& before) {
  // Nothing is appended to a segment that a pass looks at, so only releases can come between; they are hints anyway.
  const uint64_t released_since = Minus(released_extents(), before.extents);
  const uint64_t dead_since = Minus(dead_bytes(), before.bytes);
  passes_.fetch_add(1, std::memory_order_relaxed);
  if (counted() == CountedExtents::kEstimated || bytes != appended_bytes_.load(std::memory_order_relaxed)) {
    counted_.store(CountedExtents::kNeeded, std::memory_order_relaxed);
  }
  appended_extents_.store(extents, std::memory_order_relaxed);
  appended_bytes_.store(bytes, std::memory_order_release);  // who sees it sees what is counted
  released_extents_.store(released_since, std::memory_order_relaxed);
  dead_bytes_.store(dead_since, std::memory_order_relaxed);
}

void Segment::RestoreCounters(uint64_t extents, uint64_t live_bytes, uint64_t dead_bytes, uint64_t size_bytes,
                              CountedExtents counted) {
  counted_.store(counted, std::memory_order_relaxed);
  appended_extents_.store(extents, std::memory_order_relaxed);
  appended_bytes_.store(live_bytes + dead_bytes, std::memory_order_relaxed);
  released_extents_.store(0, std::memory_order_relaxed);
  dead_bytes_.store(dead_bytes, std::memory_order_relaxed);
  size_bytes_.store(size_bytes, std::memory_order_relaxed);
}

void Segment::AssumeAllLive(uint64_t size_bytes) {
  RestoreCounters(0, Minus(size_bytes, kSegmentHeaderSizeBytes), 0, size_bytes, CountedExtents::kEstimated);
}

uint64_t Segment::extents() const {
  return Minus(appended_extents_.load(std::memory_order_relaxed), released_extents_.load(std::memory_order_relaxed));
}

uint64_t Segment::live_bytes() const { return Minus(appended_bytes_.load(std::memory_order_acquire), dead_bytes()); }

}  // namespace quarry
