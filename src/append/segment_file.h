// SegmentFile: a segment as its lane writes it. Reservations: the ranges that appenders fill.
//
// Invariants:
//  - position only moves back over what was never written; ranges handed out never overlap.
//  - position, chunk ranges and private ranges are multiples of a block, so no block is ever written by two.
//  - The file is pinned while something is reserved, written or not flushed in it; the lane's flush alone unpins it.
//    Unpinned it may be closed, everything in it being durable, and is opened again by its name for the next append:
//    nobody rewrites a segment that is active.
// Thread-safety: `segment` and `slot` are internally synchronised; every other member is guarded by the
// mutex of the lane that owns it (the compiler cannot check that across objects).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/published_atomic.h"
#include "cache/chunk.h"
#include "io/env.h"
#include "segment/segment.h"

namespace quarry {

using WritePin = FileSlot<WritableFile>::Pin;

struct SegmentFile {
  SegmentFile(OpenFiles* open_files, std::shared_ptr<Segment> segment_in, uint64_t position_in)
      : segment(std::move(segment_in)), slot(open_files, 1), position_bytes(position_in) {}

  const std::shared_ptr<Segment> segment;
  FileSlot<WritableFile> slot;
  WritePin pin;
  /// For those for whom it is pinned: they reserved a range.
  [[nodiscard]] WritableFile* file() const { return slot.file_if_pinned(); }

  uint64_t position_bytes;           ///< where the next range starts
  uint64_t allocated_end_bytes = 0;  ///< blocks were allocated ahead up to here
  uint64_t zeroed_begin_bytes = 0;   ///< zeros are durable from here ...
  uint64_t zeroed_end_bytes = 0;     ///< ... to here: writing there needs no journal commit
  uint64_t zeroing_begin_bytes = 0;  ///< while `zeroing`: the background thread writes zeros here, nobody else may
  uint64_t zeroing_end_bytes = 0;
  uint32_t private_in_flight = 0;
  bool zeroing = false;
  bool zeroing_failed = false;
  bool dirty = false;   ///< stands in the lane's list for the next flush
  bool grew = false;    ///< something since the last flush lies outside the zeroed space
  bool sealed = false;  ///< nothing is reserved in it any more
  bool failed = false;  ///< poisoned: what is not written yet never will be
};

/// Consecutive bytes of one chunk that are written in one call. It is written by whoever drops the last reference: the
/// lane holds one while it is open, every filler one while it copies.
struct Run {
  std::shared_ptr<SegmentFile> file;
  std::shared_ptr<Chunk> chunk;
  uint64_t begin_bytes = 0;  ///< in the chunk; a multiple of a block
  uint64_t end_bytes = 0;    ///< guarded by the lane's mutex until closed; then final
  uint64_t ticket = 0;       ///< the flush that covers it
  PublishedAtomic<uint32_t> references{1};
};

/// A range for a staged extent, filled in memory.
struct StagedRange {
  std::shared_ptr<Run> run;
  uint8_t* memory = nullptr;
  uint64_t offset_bytes = 0;
  uint64_t ticket = 0;
};

/// A range for a private extent, written by its appender.
struct PrivateRange {
  std::shared_ptr<SegmentFile> file;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  ///< a multiple of a block
};

/// Makes new segment files for a lane.
class SegmentFactory {
 public:
  virtual ~SegmentFactory() = default;
  /// A new segment on data path `path_number`: its header is written and it and its name are durable. Its file is
  /// pinned; `holder` can let go of it.
  [[nodiscard]] virtual Result<std::shared_ptr<SegmentFile>> CreateSegment(uint32_t path_number,
                                                                           std::weak_ptr<FileHolder> holder,
                                                                           const Canceller* canceller) = 0;
  /// Another handle on a segment made before, for which the caller has a lease.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> OpenSegmentForWrite(SegmentNumber segment,
                                                                                  uint32_t path_number) = 0;
};

}  // namespace quarry
