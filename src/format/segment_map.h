// SegmentMap: where the extents of a rewritten segment stand in its file. Normative layout: docs/internals/format.md.
//
//   block 0: segment header | map: run count entries of 24 bytes, zeros to the next block | extents, zeros to the next
//   block | the map once more, zeros to the next block | the header once more, the file's last block
//
//   entry    +0  original offset  u64   of the run's first extent: what its header and every locator say
//            +8  place            u64   where the run begins in this file
//            +16 size             u32   of the run in this file, in units of 8 bytes
//            +20 flags            u32   1: one extent that was encoded anew; 0: copied byte for byte
//
// A run that was copied is what stood back to back in the segment and still does: extents, each behind the other at the
// next multiple of 8. An extent that was encoded anew is a run of its own, whose size may be another than it was.
//
// Invariants (each verified before the map is believed): original offsets and places are multiples of 8 and rise; no
// copied run reaches beyond the original offset of the next; the first stands in the first block behind the map, each
// other where the one before ends, and the last ends at the header's data end.
// The copies make up for a header or map in front that is lost. No stale or forged one counts: that of the header must
// have the salt that the catalogue knows and name the file's exact size, and a map must have the header's checksum.
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
  uint64_t size_bytes = 0;
  bool is_reencoded = false;  ///< one extent, in another form than that in which it was appended
  bool operator==(const SegmentRun&) const = default;
};

/// Of the map alone, without what fills its last block.
[[nodiscard]] uint64_t MapSizeBytes(uint32_t run_count);
/// Where the first run stands: behind header and map, at a block.
[[nodiscard]] uint64_t DataBeginBytes(uint32_t run_count);

/// Where the copy of the map begins, behind the extents: a block. It takes as much as header and map in front.
[[nodiscard]] uint64_t CopyBeginBytes(const SegmentHeader& header);
/// The file ends with copies of this header and its map, as far as its size tells. (Early files have none.)
[[nodiscard]] bool HasCopy(const SegmentHeader& header, uint64_t file_size_bytes);
/// The copy of a header: `block` is the last one of a file of that size, and `salt` is the segment's by the catalogue;
/// zeros, when that has none, fit no copy. Errors: kCorruption: there is none; kNotSupported.
[[nodiscard]] Result<SegmentHeader> DecodeHeaderCopy(std::span<const uint8_t> block, StoreId store,
                                                     SegmentNumber segment, const SegmentSalt& salt,
                                                     uint64_t file_size_bytes);

class SegmentMap {
 public:
  /// `runs`, of which there is at least one, keep the invariants, but for their places, which are filled in. Sizes are
  /// multiples of 8.
  [[nodiscard]] static SegmentMap Place(std::vector<SegmentRun> runs);

  /// `map` is what stands behind the header's block, MapSizeBytes(header.run_count) of it. Error: kCorruption.
  [[nodiscard]] static Result<SegmentMap> Decode(std::span<const uint8_t> map, const SegmentHeader& header);
  [[nodiscard]] std::vector<uint8_t> Encode() const;

  /// Where something stands now.
  struct Found {
    uint64_t place_bytes = 0;
    uint64_t size_bytes = 0;  ///< it may be another than it was for an extent that was encoded anew
    bool is_reencoded = false;
  };
  /// Of [offset, offset + size) of the segment as it was: a piece of one copied run, or the extent at `original_bytes`,
  /// encoded anew. Nothing when it is not there.
  [[nodiscard]] std::optional<Found> Find(uint64_t original_bytes, uint64_t size_bytes) const;

  [[nodiscard]] std::span<const SegmentRun> runs() const { return runs_; }
  /// There is at least one run.
  [[nodiscard]] uint64_t data_end_bytes() const { return EndOf(runs_.back()); }
  [[nodiscard]] uint64_t memory_bytes() const { return runs_.capacity() * sizeof(SegmentRun); }

 private:
  explicit SegmentMap(std::vector<SegmentRun> runs) : runs_(std::move(runs)) {}
  [[nodiscard]] static uint64_t EndOf(const SegmentRun& run) { return run.place_bytes + run.size_bytes; }

  std::vector<SegmentRun> runs_;
};

}  // namespace quarry
