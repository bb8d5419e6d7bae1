// What the golden file of segment header version 2 (tests/golden/v2-rewritten) holds: the segment of version 1,
// rewritten. Shared by the test that opens it and by the generator that wrote it once. Never change a sample.
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "codec/golden_v1_samples.h"

namespace quarry::golden_rewritten {

inline constexpr uint64_t kDataEndBytes = 10896;
inline constexpr uint64_t kMapChecksum = 0xbc926fed6c62bda6;

/// The extents that the rewriting kept, by their names in golden_v1.
inline bool Keeps(std::string_view name) { return name == "lz4" || name == "zstd" || name == "empty"; }

inline SegmentHeader Segment() {
  SegmentHeader header = golden_v1::Segment();
  header.generation = 1;
  header.run_count = 2;
  header.data_end_bytes = kDataEndBytes;
  header.map_checksum = kMapChecksum;
  header.rewritten_micros = 1800000000000000;
  return header;
}

}  // namespace quarry::golden_rewritten
