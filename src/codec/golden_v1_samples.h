// What the golden files of format version 1 (tests/golden/v1) hold: shared by the test that opens them and by the
// generator that wrote them once. Once a version is released, no sample changes: a later one has files of its own.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/catalogue_log.h"
#include "format/path_marker.h"
#include "format/segment_header.h"
#include "format/test_cipher.h"
#include "quarry/options.h"

namespace quarry::golden_v1 {

inline constexpr StoreId kStore{0x0123456789abcdef};
inline constexpr SegmentNumber kSegment{3};
inline constexpr InstallationId kInstallation = {0x51, 0x75, 0x61, 0x72, 0x72, 0x79, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
inline constexpr SegmentSalt kSalt = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 8, 9, 10, 11, 12, 13, 14, 15};

/// One extent of the segment, in the order of the file.
struct ExtentSample {
  const char* name;
  Codec codec;
  uint32_t value_size_bytes;
  uint32_t noise_bytes;  ///< so many bytes at the front do not compress
  uint32_t part_size_bytes;
  bool at_block_start;  ///< padded to the next block before it
  uint32_t prefix_size_bytes;
};

inline std::vector<ExtentSample> Extents() {
  return {{"none", Codec::kNone, 1500, 0, 512, true, 10},     {"lz4", Codec::kLz4, 5000, 0, 2048, false, 0},
          {"zstd", Codec::kZstd, 6000, 2048, 2048, false, 1}, {"block", Codec::kZstd, 7000, 0, 4096, true, 0},
          {"empty", Codec::kNone, 0, 0, 65536, false, 0},     {"prefix", Codec::kNone, 100, 0, 65536, false, 100}};
}

/// Of extent number `number`.
inline uint64_t IdentityOf(size_t number) { return 0x1d1d000000000000 + 0x0101010101 * (number + 1); }

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

inline SegmentHeader Segment() { return {kStore, kSegment, 2, kInstallation, TableId{1234}, 1700000000000000, kSalt}; }

// ---- encrypted extents: the same ones, in a segment of their own ----

inline constexpr uint32_t kKey = 4711;
inline constexpr uint64_t kCipherSeed = 20261121;

/// The cipher of the golden files is the tests' own: what it does must not change either.
inline std::shared_ptr<TestCipherProvider> Provider() {
  auto provider = std::make_shared<TestCipherProvider>(kCipherSeed);
  provider->Rotate(kKey, 0x0123456789abcdef);
  provider->Rotate(kKey, 0xfedcba9876543210);
  return provider;
}

/// What extent number `number` is encrypted with.
inline CipherParameters ParametersOf(size_t number) {
  CipherParameters parameters{kCipherSchemeMariadb1, kKey, number == 1 ? 1U : 2U, {}};
  for (size_t i = 0; i < parameters.salt.size(); ++i) parameters.salt[i] = static_cast<uint8_t>(number * 16 + i + 1);
  return parameters;
}

// ---- the segment, rewritten ----

/// The extents that were copied; and the one that was encrypted meanwhile, and so encoded anew.
inline bool IsCopied(std::string_view name) { return name == "lz4" || name == "zstd" || name == "empty"; }
inline bool IsReencoded(std::string_view name) { return name == "block"; }

inline constexpr uint64_t kRewrittenMicros = 1800000000000000;

// ---- small files ----

inline constexpr uint64_t kCatalogueGeneration = 0x1234567890;

/// One record of each type but the optional ones that nobody knows yet.
inline std::vector<CatalogueRecord> Catalogue() {
  const CatalogueInstallation installation{kInstallation, 1700000000000000, StoreId{77}, 4};
  CatalogueStore store;
  store.store = kStore;
  store.created_micros = 1700000000000000;
  store.next_segment = SegmentNumber{9};
  store.rebinding = store.discarded = true;
  store.discarded_at_lsn = 987654321;
  store.prefix_limit_bytes = 700;
  store.table_name = "shop/documents#P#p0";
  store.tables = {TableId{1234}, TableId{5678}};
  CatalogueSegment segment{kStore,
                           SegmentNumber{3},
                           2,
                           SegmentState::kPoisoned,
                           CountedExtents::kNeeded,
                           {1, 2, 3},
                           16384,
                           5,
                           9000,
                           70,
                           8000,
                           1000,
                           4};
  return {installation,
          DataPath{3, "/data/three"},
          store,
          segment,
          CatalogueSegmentGone{kStore, SegmentNumber{2}},
          CatalogueStoreGone{StoreId{6}},
          CatalogueDamage{StoreId{5}, 1700000000000002, "a record does not verify"},
          CatalogueScrubPlace{kStore, SegmentNumber{3}, 1700000000000003},
          CatalogueUnknown{99, kStore, {7, 8, 9}},
          CatalogueEnd{installation}};
}

inline PathMarker Path() { return {kInstallation, 3, 1700000000000001}; }

}  // namespace quarry::golden_v1
