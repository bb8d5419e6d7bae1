// ValueReader: one read of one value, from the look into the caches to its count.
//
// Each read goes one way: value cache -> store -> segment -> SegmentReader. The value cache needs neither the store nor
// the segment: a value stands there under its whole locator, which names both, and no locator is given out twice.
//
// Invariants: a read that succeeds counts once, wherever its bytes came from; damage counts once. A miss pins the store
// and the segment until the reader goes. Thread-safety: one per read; externally synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "context/store_context.h"
#include "quarry/ahead_read.h"
#include "quarry/canceller.h"
#include "quarry/locator.h"
#include "quarry/options.h"
#include "quarry/value_buffer.h"
#include "segment/segment.h"
#include "segment/segment_reader.h"
#include "store/store_impl.h"

namespace quarry {

/// A segment, readable as long as this lives, and its store.
struct PinnedSegment {
  std::shared_ptr<StoreImpl> store;
  std::shared_ptr<Segment> segment;
};

/// The stores of a directory, to those who read values.
class SegmentPins {
 public:
  /// Error: kNotFound: there is no such store, or no such segment.
  [[nodiscard]] virtual Result<PinnedSegment> Pin(const Locator& locator) const = 0;

 protected:
  ~SegmentPins() = default;
};

class ValueReader {
 public:
  /// All of them outlive the reader; context and stores also what it starts to read ahead.
  ValueReader(StoreContext* context, const SegmentPins* stores, const Head& head, const ReadOptions& options)
      : context_(context), stores_(stores), head_(head), options_(options) {}

  // Those of StoreDirectory.
  [[nodiscard]] Result<ValueBuffer> ReadValue();
  [[nodiscard]] Result<ValueBuffer> ReadIfCached();
  [[nodiscard]] std::unique_ptr<AheadRead> ReadAhead();
  [[nodiscard]] Status Read(std::span<uint8_t> out);
  [[nodiscard]] Status ReadRange(uint64_t offset_bytes, std::span<uint8_t> out);
  [[nodiscard]] Status Verify(const Canceller* canceller);
  [[nodiscard]] Result<StoredShape> ReadShape();

 private:
  /// What `action` says; kOutOfMemory, with the value's size, when it finds no memory.
  template <typename Action>
  [[nodiscard]] auto Guarded(const Action& action) const -> decltype(action());
  [[nodiscard]] ValueBuffer FindCached();
  /// The bytes from `offset_bytes` on, or else the whole value.
  [[nodiscard]] Status ReadInto(std::span<uint8_t> out, std::optional<uint64_t> offset_bytes = std::nullopt);
  /// The same by `reader`; once more from the device when the page cache gave damage.
  [[nodiscard]] Status ReadBy(SegmentReader* reader, std::span<uint8_t> out,
                              std::optional<uint64_t> offset_bytes = std::nullopt);
  /// The value cache has not got it: into its memory when it takes it in, else into a read buffer.
  [[nodiscard]] Result<ValueBuffer> ReadMissed();
  /// Reads the value into the value cache. An empty buffer: it takes in nothing, and nothing was read.
  [[nodiscard]] Result<ValueBuffer> Admit(bool wants_whole);
  [[nodiscard]] Status VerifyFile(const Canceller* canceller);
  /// Once pinned.
  [[nodiscard]] SegmentReader ReaderOf(PageCacheUse page_cache) const;
  void CountRead(uint64_t bytes);
  /// Of a read of `bytes` by `reader`, or its damage. Returns `status`.
  [[nodiscard]] Status CountOutcome(const SegmentReader& reader, uint64_t bytes, Status status);

  StoreContext* const context_;
  const SegmentPins* const stores_;
  const Head& head_;
  const ReadOptions& options_;
  const Locator& locator_ = head_.locator;
  PinnedSegment pinned_;  ///< by a read that misses the cache
};

}  // namespace quarry
