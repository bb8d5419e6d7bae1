// What the golden files of format version 1 (tests/golden/v1) hold: shared by the test that opens them and by the
// generator that wrote them once. Never change a sample: a later version gets files and samples of its own.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/directory_file.h"
#include "format/manifest.h"
#include "format/segment_header.h"
#include "quarry/options.h"

namespace quarry::golden_v1 {

inline constexpr StoreId kStore{0x0123456789abcdef};
inline constexpr SegmentNumber kSegment{3};
inline constexpr InstallationId kInstallation = {0x51, 0x75, 0x61, 0x72, 0x72, 0x79, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/// One extent of the segment, in the order of the file.
struct ExtentSample {
  const char* name;
  Codec codec;
  uint32_t value_size_bytes;
  uint32_t noise_bytes;  ///< so many bytes at the front do not compress
  uint32_t part_size_bytes;
  uint64_t reserved_size_bytes;
  bool at_block_start;  ///< padded to the next block before it
  const char* prefix;   ///< raw prefix of its head
};

inline std::vector<ExtentSample> Extents() {
  return {{"none", Codec::kNone, 1500, 0, 512, 0, true, "raw prefix"},
          {"lz4", Codec::kLz4, 5000, 0, 2048, 0, false, ""},
          {"zstd", Codec::kZstd, 6000, 2048, 2048, 0, false, "p"},
          {"reserved", Codec::kZstd, 7000, 0, 4096, 8192, true, ""},
          {"empty", Codec::kNone, 0, 0, 65536, 0, false, ""}};
}

/// Noise, then text: a generator written out here, so that no library can change it.
inline std::vector<uint8_t> ValueOf(const ExtentSample& sample) {
  static constexpr char kText[] = "Rows stay in the engine, payloads go to the quarry. ";
  std::vector<uint8_t> value(sample.value_size_bytes);
  uint32_t state = 12345;
  for (uint32_t i = 0; i < sample.value_size_bytes; ++i) {
    state = state * 1664525U + 1013904223U;
    value[i] = i < sample.noise_bytes ? static_cast<uint8_t>(state >> 24U)
                                      : static_cast<uint8_t>(kText[i % (sizeof(kText) - 1)]);
  }
  return value;
}

inline SegmentHeader Segment() { return {kStore, kSegment, 2, kInstallation, TableId{1234}, 1700000000000000}; }

inline Manifest StoreManifest() {
  Manifest manifest;
  manifest.store = kStore;
  manifest.sequence = 42;
  manifest.created_micros = 1700000000000000;
  manifest.next_segment = SegmentNumber{9};
  manifest.rebinding = true;
  manifest.discarded = true;
  manifest.discarded_at_lsn = 987654321;
  manifest.table_name = "shop/documents#P#p0";
  manifest.tables = {TableId{1234}, TableId{5678}};
  manifest.segments = {{SegmentNumber{2}, 0, SegmentState::kSealed, 268435456, 4000, 250000000, 1000000, 268435456},
                       {SegmentNumber{3}, 2, SegmentState::kPoisoned, 16384, 5, 9000, 0, 16384},
                       {SegmentNumber{8}, 1, SegmentState::kActive, 1048576, 7, 500000, 0, 524288}};
  return manifest;
}

inline DirectoryFile Directory() {
  return {kInstallation, 1700000000000000, StoreId{77}, 4, {{1, "/data/one"}, {3, "/data/three"}}};
}

inline PathMarker Path() { return {kInstallation, 3, 1700000000000001}; }

}  // namespace quarry::golden_v1
