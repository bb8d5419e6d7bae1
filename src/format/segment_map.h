// SegmentMap: where the extents of a rewritten segment stand in its file. Normative layout: docs/format.md.
//
//   block 0: segment header, version 2 | map: run count entries of 16 bytes, zeros to the next block | extents
//   entry    +0  original offset  u64   of the run's first extent: what its header and every locator say
//            +8  place            u64   where the run begins in this file
//
// A run is what stood back to back in the segment and still does: extents, each behind the other at the next multiple
// of 8. It reaches to the place of the next run, the last one to the header's data end.
//
// Invariants (each verified before the map is believed): original offsets and places are multiples of 8 and rise; runs
// do not overlap at their original offsets; the first stands in the first block behind the map; nothing lies between.
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/segment_header.h"
#include "quarry/status.h"

namespace quarry {

struct SegmentRun {
  uint64_t original_bytes = 0;
  uint64_t place_bytes = 0;
  bool operator==(const SegmentRun&) const = default;
};

/// Of the map alone, without what fills its last block.
[[nodiscard]] uint64_t MapSizeBytes(uint32_t run_count);
/// Where the first run stands: behind header and map, at a block.
[[nodiscard]] uint64_t DataBeginBytes(uint32_t run_count);

class SegmentMap {
 public:
  /// `runs` keep the invariants, but for their places, which are filled in: `size_bytes` of each, multiples of 8.
  struct Piece {
    uint64_t original_bytes = 0;
    uint64_t size_bytes = 0;
  };
  [[nodiscard]] static SegmentMap Place(std::span<const Piece> pieces);

  /// `map` is what stands behind the header's block, MapSizeBytes(header.run_count) of it. Error: kCorruption.
  [[nodiscard]] static Result<SegmentMap> Decode(std::span<const uint8_t> map, const SegmentHeader& header);
  [[nodiscard]] std::vector<uint8_t> Encode() const;

  /// Where [offset, offset + size) of the segment as it was stands now; nothing when it is not all in one run.
  [[nodiscard]] std::optional<uint64_t> Find(uint64_t original_bytes, uint64_t size_bytes) const;
  /// The inverse, for a scan: the original offset of what stands at `place_bytes`; nothing outside of all runs.
  [[nodiscard]] std::optional<uint64_t> OriginalOf(uint64_t place_bytes) const;

  [[nodiscard]] std::span<const SegmentRun> runs() const { return runs_; }
  [[nodiscard]] uint64_t data_end_bytes() const { return data_end_bytes_; }
  [[nodiscard]] uint64_t memory_bytes() const { return runs_.capacity() * sizeof(SegmentRun); }

 private:
  SegmentMap(std::vector<SegmentRun> runs, uint64_t data_end_bytes)
      : runs_(std::move(runs)), data_end_bytes_(data_end_bytes) {}
  [[nodiscard]] uint64_t EndOf(size_t run) const {
    return run + 1 < runs_.size() ? runs_[run + 1].place_bytes : data_end_bytes_;
  }

  std::vector<SegmentRun> runs_;
  uint64_t data_end_bytes_ = 0;
};

}  // namespace quarry
