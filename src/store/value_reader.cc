#include "store/value_reader.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "quarry/memory_guard.h"

namespace quarry {
namespace {

class PooledOwner final : public ValueBuffer::Owner {
 public:
  explicit PooledOwner(PooledBuffer buffer) : buffer_(std::move(buffer)) {}

 private:
  PooledBuffer buffer_;
};

}  // namespace

// Nothing may be thrown across the server's boundary.
template <typename Action>
auto ValueReader::Guarded(const Action& action) const -> decltype(action()) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryFor(locator_.value_size_bytes);
  }
}

// ---- what a caller asks for ----

Result<ValueBuffer> ValueReader::ReadValue() {
  return Guarded([&]() -> Result<ValueBuffer> {
    if (ValueBuffer cached = FindCached(); !cached.empty()) return cached;
    return ReadMissed();
  });
}

Result<ValueBuffer> ValueReader::ReadIfCached() {
  return Guarded([&]() -> Result<ValueBuffer> {
    if (ValueBuffer cached = FindCached(); !cached.empty()) return cached;
    QUARRY_TRY_ASSIGN(pinned_, stores_->Pin(locator_));
    return Admit(false);
  });
}

Result<StoredShape> ValueReader::ReadShape() {
  return Guarded([&]() -> Result<StoredShape> {
    QUARRY_TRY_ASSIGN(pinned_, stores_->Pin(locator_));
    return ReaderOf(options_.page_cache).ReadShape();
  });
}

Status ValueReader::Verify(const Canceller* canceller) {
  return Guarded([&] { return VerifyFile(canceller); });
}

// ---- from memory ----

ValueBuffer ValueReader::FindCached() {
  if (options_.skip_cache) return {};
  ValueBuffer cached = context_->values.Find(locator_);
  if (!cached.empty()) CountRead(locator_.value_size_bytes);
  return cached;
}

Status ValueReader::Read(std::span<uint8_t> out) {
  if (out.size() != locator_.value_size_bytes) {
    return Status::InvalidArgument("a buffer of " + std::to_string(out.size()) + " bytes for a value of " +
                                   std::to_string(locator_.value_size_bytes));
  }
  return ReadInto(out);
}

Status ValueReader::ReadRange(uint64_t offset_bytes, std::span<uint8_t> out) {
  const uint64_t value_size = locator_.value_size_bytes;
  if (offset_bytes > value_size || out.size() > value_size - offset_bytes) {
    return Status::InvalidArgument("range " + std::to_string(offset_bytes) + "+" + std::to_string(out.size()) +
                                   " is not within a value of " + std::to_string(value_size) + " bytes");
  }
  if (offset_bytes + out.size() <= locator_.prefix_size_bytes) {
    QUARRY_TRY(CheckPrefix(head_).status());
    std::copy_n(head_.prefix.begin() + static_cast<ptrdiff_t>(offset_bytes), out.size(), out.begin());
    return Status::Ok();
  }
  return ReadInto(out, offset_bytes);
}

Status ValueReader::ReadInto(std::span<uint8_t> out, std::optional<uint64_t> offset_bytes) {
  if (!options_.skip_cache && context_->values.Copy(locator_, offset_bytes.value_or(0), out)) {
    CountRead(out.size());
    return Status::Ok();
  }
  return Guarded([&]() -> Status {
    QUARRY_TRY_ASSIGN(pinned_, stores_->Pin(locator_));
    SegmentReader reader = ReaderOf(options_.page_cache);
    return ReadBy(&reader, out, offset_bytes);
  });
}

std::unique_ptr<AheadRead> ValueReader::ReadAhead() {
  if (!options_.skip_cache && context_->values.Holds(locator_)) return nullptr;
  const Result<PinnedSegment> pinned = stores_->Pin(locator_);
  if (!pinned.ok() || pinned->store->IsOnSlowPath(*pinned->segment)) return nullptr;
  if (pinned->segment->chunks()->Holds(locator_.offset_bytes, locator_.extent_size_bytes)) return nullptr;
  ReadOptions by_thread = options_;
  by_thread.report = nullptr;
  try {
    std::vector<uint8_t> prefix(head_.prefix.begin(), head_.prefix.end());
    return context_->ahead_reads.Start(
        locator_.value_size_bytes,
        [context = context_, stores = stores_, locator = locator_, prefix = std::move(prefix), by_thread] {
          return ValueReader(context, stores, {locator, prefix}, by_thread).ReadMissed();
        });
  } catch (const std::bad_alloc&) {
    return nullptr;  // the reader will see
  }
}

// ---- from a segment ----

SegmentReader ValueReader::ReaderOf(PageCacheUse page_cache) const {
  ReadOptions options = options_;
  options.page_cache = page_cache;
  return {context_, pinned_.store.get(), pinned_.segment.get(), head_, options};
}

Result<ValueBuffer> ValueReader::ReadMissed() {
  QUARRY_TRY_ASSIGN(pinned_, stores_->Pin(locator_));
  QUARRY_TRY_ASSIGN(ValueBuffer cached, Admit(true));
  if (!cached.empty()) return cached;
  SegmentReader reader = ReaderOf(options_.page_cache);
  const auto size = static_cast<size_t>(locator_.value_size_bytes);
  Result<ValueBuffer> in_place = reader.ReadWholeInPlace();
  if (!in_place.ok() || !in_place->empty()) {
    QUARRY_TRY(CountOutcome(reader, size, in_place.status()));
    return in_place;
  }
  PooledBuffer buffer = context_->read_buffers.Take(size);
  const std::span<uint8_t> bytes(buffer.data(), size);
  QUARRY_TRY(ReadBy(&reader, bytes));
  return ValueBuffer(std::make_unique<PooledOwner>(std::move(buffer)), bytes);
}

// Who asks for pieces (not `wants_whole`) would have a whole value read for it: so only one that is asked for again.
Result<ValueBuffer> ValueReader::Admit(bool wants_whole) {
  if (options_.skip_cache) return ValueBuffer();
  const bool asked_again = context_->values.NoteMiss(locator_);
  const bool fits = wants_whole && context_->values.HasRoomFor(locator_.value_size_bytes);
  if (!asked_again && !fits) return ValueBuffer();
  ValueCache::Filling filling = context_->values.Begin(locator_, pinned_.store->cached_bytes());
  if (filling.empty()) return ValueBuffer();
  // One copy in memory is enough. (What is asked for again may be in the page cache.)
  const bool alone = !asked_again && options_.page_cache == PageCacheUse::kByRule;
  SegmentReader reader = ReaderOf(alone ? PageCacheUse::kSmallReads : options_.page_cache);
  QUARRY_TRY(ReadBy(&reader, filling.bytes()));
  return context_->values.Publish(std::move(filling));
}

// Memory may hold it whole when the device does not. What is not written yet is in memory alone, until a flush.
Status ValueReader::VerifyFile(const Canceller* canceller) {
  QUARRY_TRY_ASSIGN(pinned_, stores_->Pin(locator_));
  bool may_be_unwritten = pinned_.segment->chunks()->Holds(locator_.offset_bytes, locator_.extent_size_bytes);
  while (true) {
    SegmentReader reader = ReaderOf(options_.page_cache);
    reader.AskFileAlone();
    Status status = reader.Verify(canceller);
    if (status.code() != StatusCode::kCorruption || !std::exchange(may_be_unwritten, false)) {
      return CountOutcome(reader, locator_.value_size_bytes, std::move(status));
    }
    QUARRY_TRY(pinned_.store->Sync(locator_.segment, 0, false, canceller));
  }
}

// What came damaged through the page cache may lie whole on the device.
Status ValueReader::ReadBy(SegmentReader* reader, std::span<uint8_t> out, std::optional<uint64_t> offset_bytes) {
  const auto read = [&](SegmentReader* by) {
    return offset_bytes ? by->ReadRange(*offset_bytes, out) : by->ReadWhole(out);
  };
  Status status = read(reader);
  if (status.code() != StatusCode::kCorruption || !reader->used_page_cache()) {
    return CountOutcome(*reader, out.size(), std::move(status));
  }
  SegmentReader again = ReaderOf(PageCacheUse::kNone);
  Status second = read(&again);
  if (second.ok()) {
    context_->counters.Add(Counter::kPageCacheCorruptions);
    context_->notices.AddOnce("the page cache held damaged bytes of store " + std::to_string(locator_.store.value) +
                              ", the device has them whole: memory or a driver of this machine is at fault");
  }
  return CountOutcome(again, out.size(), std::move(second));
}

// ---- counts ----

void ValueReader::CountRead(uint64_t bytes) {
  context_->counters.Add(Counter::kExtentsRead);
  context_->counters.Add(Counter::kValueBytesRead, bytes);
}

Status ValueReader::CountOutcome(const SegmentReader& reader, uint64_t bytes, Status status) {
  if (status.ok()) {
    CountRead(bytes);
    context_->counters.Add(reader.missed_recent() ? Counter::kRecentCacheMisses : Counter::kRecentCacheHits);
  } else if (status.code() == StatusCode::kCorruption) {
    context_->counters.Add(Counter::kCorruptions);
  }
  return status;
}

}  // namespace quarry
