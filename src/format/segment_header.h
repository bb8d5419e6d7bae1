// The first block of every segment. Normative layout: docs/internals/format.md.
//
//   +0    magic             u64
//   +8    version           u16, then u16 0
//   +12   segment number    u32
//   +16   store id          u64
//   +24   path number       u32, then u32 0
//   +32   installation id   16 bytes
//   +48   table id          u64   InnoDB's, at creation; for people only
//   +56   created           u64   microseconds since 1970, UTC
//   +64   salt              16 bytes   drawn at random; a rewritten segment keeps it
//   +80   generation        u32   how often it was rewritten; the four that follow are 0 until then
//   +84   run count         u32   entries of the map behind this block (segment_map.h)
//   +88   data end          u64   where the last extent ends in this file, a multiple of 8
//   +96   map checksum      u64   XXH3-64 of the map's entries
//   +104  rewritten         u64   microseconds since 1970, UTC
//   +112  zeros
//   +4088 checksum          u64   XXH3-64 of bytes 0..4087
//
// Thread-safety: pure functions and values.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

inline constexpr size_t kSegmentHeaderSizeBytes = 4096;

/// Drawn once at random for one home directory; tells its segments and paths from anybody else's.
using InstallationId = std::array<uint8_t, 16>;
/// Drawn at random for one segment: its extents' headers are told by it from bytes inside of a value.
using SegmentSalt = std::array<uint8_t, 16>;

/// Whose extents a segment holds, and what proves it.
struct SegmentOrigin {
  StoreId store;
  SegmentNumber segment;
  SegmentSalt salt{};
};

struct SegmentHeader {
  StoreId store;
  SegmentNumber segment;
  uint32_t path_number = 0;
  InstallationId installation{};
  TableId table;
  uint64_t created_micros = 0;
  SegmentSalt salt{};
  // Of a segment that was rewritten; all 0 otherwise.
  uint32_t generation = 0;
  uint32_t run_count = 0;
  uint64_t data_end_bytes = 0;
  uint64_t map_checksum = 0;
  uint64_t rewritten_micros = 0;
  /// Its extents do not stand at their own offsets: a map tells where.
  [[nodiscard]] bool is_rewritten() const { return generation != 0; }
  [[nodiscard]] SegmentOrigin origin() const { return {store, segment, salt}; }
  bool operator==(const SegmentHeader&) const = default;
};

void EncodeSegmentHeader(const SegmentHeader& header, std::span<uint8_t, kSegmentHeaderSizeBytes> out);

/// Verifies and decodes the block, whoever it belongs to. Errors: kCorruption; kNotSupported: a newer version, or what
/// a build from before the first release wrote.
[[nodiscard]] Result<SegmentHeader> DecodeSegmentHeader(std::span<const uint8_t> block);

/// Also wants it to be segment `segment` of `store`, whose numbers the errors name.
[[nodiscard]] Result<SegmentHeader> DecodeSegmentHeader(std::span<const uint8_t> block, StoreId store,
                                                        SegmentNumber segment);

}  // namespace quarry
