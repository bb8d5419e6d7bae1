// Segment header, MANIFEST, DIRECTORY and PATH: round trips, damage, impossible content, newer versions.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/directory_file.h"
#include "format/magic.h"
#include "format/manifest.h"
#include "format/segment_header.h"
#include "format/small_file.h"

namespace quarry {
namespace {

constexpr InstallationId kInstallation = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

SegmentHeader SomeSegmentHeader() {
  return {StoreId{7}, SegmentNumber{3}, 2, kInstallation, TableId{1234}, 1700000000000000, {16, 15, 14, 13}};
}

Manifest SomeManifest() {
  Manifest manifest;
  manifest.store = StoreId{7};
  manifest.sequence = 42;
  manifest.created_micros = 1700000000000000;
  manifest.next_segment = SegmentNumber{9};
  manifest.rebinding = true;
  manifest.discarded = true;
  manifest.discarded_at_lsn = 987654321;
  manifest.table_name = "db/table";
  manifest.tables = {TableId{100}, TableId{200}};
  manifest.segments = {{SegmentNumber{2}, 0, SegmentState::kSealed, 1 << 20, 10, 1000, 200, 1 << 20},
                       {SegmentNumber{5}, 1, SegmentState::kPoisoned, 4096, 0, 0, 0, 4096},
                       {SegmentNumber{8}, 2, SegmentState::kActive, 1 << 20, 3, 300, 0, 65536}};
  return manifest;
}

DirectoryFile SomeDirectory() {
  return {kInstallation, 1700000000000000, StoreId{77}, 4, {{1, "/data/one"}, {3, "/data/three"}}};
}

std::vector<uint8_t> Encode(const SegmentHeader& header) {
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(block));
  return block;
}

using Decoder = std::function<StatusCode(std::span<const uint8_t>)>;

// Each kind of file with its decoder, for what holds of all of them.
struct Kind {
  const char* name;
  std::vector<uint8_t> bytes;
  Decoder decode;
};

std::vector<Kind> AllKinds() {
  return {{"segment header", Encode(SomeSegmentHeader()),
           [](auto bytes) { return DecodeSegmentHeader(bytes, StoreId{7}, SegmentNumber{3}).status().code(); }},
          {"manifest", EncodeManifest(SomeManifest()),
           [](auto bytes) { return DecodeManifest(bytes, StoreId{7}).status().code(); }},
          {"directory", EncodeDirectoryFile(SomeDirectory()),
           [](auto bytes) { return DecodeDirectoryFile(bytes).status().code(); }},
          {"path", EncodePathMarker({kInstallation, 3, 5}),
           [](auto bytes) { return DecodePathMarker(bytes).status().code(); }}};
}

TEST(FilesTest, RoundTrip) {
  EXPECT_EQ(DecodeSegmentHeader(Encode(SomeSegmentHeader())).value(), SomeSegmentHeader());
  EXPECT_EQ(DecodeManifest(EncodeManifest(SomeManifest()), StoreId{7}).value(), SomeManifest());
  EXPECT_EQ(DecodeManifest(EncodeManifest(SomeManifest()), StoreId{0}).value(), SomeManifest());
  EXPECT_EQ(DecodeDirectoryFile(EncodeDirectoryFile(SomeDirectory())).value(), SomeDirectory());
  const PathMarker marker{kInstallation, 3, 1700000000000000};
  EXPECT_EQ(DecodePathMarker(EncodePathMarker(marker)).value(), marker);
  for (const uint16_t limit : {uint16_t{0}, uint16_t{700}, uint16_t{65535}}) {
    Manifest limited = SomeManifest();
    limited.prefix_limit_bytes = limit;
    EXPECT_EQ(DecodeManifest(EncodeManifest(limited), StoreId{7}).value(), limited);
    EXPECT_EQ(EncodeManifest(limited).size(), EncodeManifest(SomeManifest()).size());
  }
  Manifest empty;
  empty.store = StoreId{1};
  EXPECT_EQ(DecodeManifest(EncodeManifest(empty), StoreId{1}).value(), empty);
}

TEST(FilesTest, EveryFlippedBitIsNoticed) {
  for (const Kind& kind : AllKinds()) {
    ASSERT_EQ(kind.decode(kind.bytes), StatusCode::kOk) << kind.name;
    std::vector<uint8_t> damaged = kind.bytes;
    for (size_t bit = 0; bit < damaged.size() * 8; ++bit) {
      const auto mask = static_cast<uint8_t>(1U << (bit % 8));
      damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ mask);
      ASSERT_EQ(kind.decode(damaged), StatusCode::kCorruption) << kind.name << " bit " << bit;
      damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ mask);
    }
  }
}

TEST(FilesTest, EveryCutOffLengthIsNoticed) {
  for (const Kind& kind : AllKinds()) {
    for (size_t size = 0; size < kind.bytes.size(); ++size) {
      ASSERT_EQ(kind.decode(std::span<const uint8_t>(kind.bytes).first(size)), StatusCode::kCorruption) << kind.name;
    }
  }
}

TEST(FilesTest, ANewerVersionIsNotCalledDamage) {
  for (const Kind& kind : AllKinds()) {
    for (const uint16_t version : {uint16_t{0}, uint16_t{2}, uint16_t{3}, uint16_t{0xffff}}) {
      std::vector<uint8_t> bytes = kind.bytes;
      const std::span<uint8_t> all(bytes);
      StoreLittleEndian(all, 8, version);
      StoreLittleEndian(all, all.size() - 8, Checksum64(all.first(all.size() - 8)));
      // Version 2 of this one is known: a manifest without a flag is not possible in it.
      const bool is_known = version == 2 && std::string(kind.name) == "manifest";
      EXPECT_EQ(kind.decode(bytes), version == 0 || is_known ? StatusCode::kCorruption : StatusCode::kNotSupported)
          << kind.name << " version " << version;
    }
  }
}

TEST(SegmentHeaderTest, WhatABuildFromBeforeTheFirstReleaseWroteIsRefusedByName) {
  std::vector<uint8_t> block = Encode(SomeSegmentHeader());
  StoreLittleEndian(std::span<uint8_t>(block), 0, kUnreleasedSegmentMagic);
  const Status status = DecodeSegmentHeader(block, StoreId{7}, SegmentNumber{3}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_NE(
      status.message().find("segment 3 of store 7 was written by a build of Quarry from before its first release"),
      std::string::npos)
      << status.message();
}

TEST(SegmentHeaderTest, OfASegmentThatWasNeverRewrittenNothingSaysHowItWas) {
  for (const size_t offset : {84, 88, 96, 104, 112, 4080}) {
    std::vector<uint8_t> block = Encode(SomeSegmentHeader());
    block[offset] = 1;
    StoreLittleEndian(std::span<uint8_t>(block), block.size() - 8,
                      Checksum64(std::span<const uint8_t>(block).first(block.size() - 8)));
    EXPECT_EQ(DecodeSegmentHeader(block).status().code(), StatusCode::kCorruption) << offset;
  }
}

TEST(FilesTest, AForeignFileIsNamed) {
  const Status segment = DecodeSegmentHeader(Encode(SomeSegmentHeader()), StoreId{8}, SegmentNumber{3}).status();
  EXPECT_EQ(segment.ToString(),
            "corruption: store 8 segment 3 offset 0: segment header belongs to segment 3 of store 7");
  EXPECT_EQ(DecodeManifest(EncodeManifest(SomeManifest()), StoreId{8}).status().ToString(),
            "corruption: store 8 segment 0 offset 0: MANIFEST belongs to store 7");
}

// Wraps `body` as a manifest is wrapped, with all checksums right.
Status DecodeBody(const std::function<void(Manifest*)>& change, const std::function<void(std::span<uint8_t>)>& patch) {
  Manifest manifest = SomeManifest();
  change(&manifest);
  std::vector<uint8_t> bytes = EncodeManifest(manifest);
  const std::span<uint8_t> all(bytes);
  patch(all);
  StoreLittleEndian(all, all.size() - 8, Checksum64(all.first(all.size() - 8)));
  return DecodeManifest(bytes, StoreId{7}).status();
}

TEST(ManifestTest, ImpossibleContentIsRefusedThoughTheChecksumHolds) {
  // Body starts at 16: next segment number at +32, flags +36, name size +40, name 8 bytes, table count +52,
  // two tables, segment count +72, segments of 52 bytes from +76.
  const auto patched = [](size_t offset, auto value) {
    return DecodeBody([](Manifest*) {}, [&](std::span<uint8_t> all) { StoreLittleEndian(all, 16 + offset, value); });
  };
  EXPECT_EQ(patched(0, uint64_t{7}).code(), StatusCode::kOk);
  EXPECT_EQ(patched(32, uint32_t{8}).code(), StatusCode::kCorruption) << "next segment number in use";
  EXPECT_EQ(patched(36, uint32_t{2 + 4 + (700U << 16)}).code(), StatusCode::kOk) << "a prefix limit of 700 bytes";
  EXPECT_EQ(patched(36, uint32_t{2 + 8}).code(), StatusCode::kCorruption) << "unknown flag";
  EXPECT_EQ(patched(36, uint32_t{2 + (700U << 16)}).code(), StatusCode::kCorruption) << "a limit without its flag";
  EXPECT_EQ(patched(36, uint32_t{0}).code(), StatusCode::kCorruption) << "an LSN without the discard";
  EXPECT_EQ(patched(40, uint32_t{0xffffffff}).code(), StatusCode::kCorruption) << "name size";
  EXPECT_EQ(patched(52, uint32_t{0x7fffffff}).code(), StatusCode::kCorruption) << "table count";
  EXPECT_EQ(patched(72, uint32_t{0x7fffffff}).code(), StatusCode::kCorruption) << "segment count";
  EXPECT_EQ(patched(72, uint32_t{2}).code(), StatusCode::kCorruption) << "bytes left over";
  EXPECT_EQ(patched(76, uint32_t{0}).code(), StatusCode::kCorruption) << "segment 0";
  EXPECT_EQ(patched(76, uint32_t{5}).code(), StatusCode::kCorruption) << "segments out of order";
  EXPECT_EQ(patched(84, uint32_t{3}).code(), StatusCode::kCorruption) << "unknown state";
  EXPECT_EQ(patched(120, uint64_t{(1 << 20) + 1}).code(), StatusCode::kCorruption) << "checkpoint beyond the file";
}

TEST(ManifestTest, AFlagOfASegmentMakesItVersion2) {
  Manifest manifest = SomeManifest();
  const size_t version_offset = 8;
  EXPECT_EQ(EncodeManifest(manifest)[version_offset], 1) << "as an older Quarry reads it";
  manifest.segments[0].has_uncounted = true;
  EXPECT_EQ(EncodeManifest(manifest)[version_offset], 2);
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), StoreId{7}).value(), manifest);
  EXPECT_TRUE(EncodeManifestVerified(manifest).ok());

  const auto with_version = [version_offset](uint16_t version, bool flag) {
    return DecodeBody([flag](Manifest* changed) { changed->segments[0].has_uncounted = flag; },
                      [=](std::span<uint8_t> all) { StoreLittleEndian(all, version_offset, version); });
  };
  EXPECT_EQ(with_version(2, true).code(), StatusCode::kOk);
  EXPECT_EQ(with_version(1, true).code(), StatusCode::kCorruption) << "version 1 has no such state";
  EXPECT_EQ(with_version(2, false).code(), StatusCode::kCorruption) << "nothing of version 2 in it";
  EXPECT_EQ(with_version(3, true).code(), StatusCode::kNotSupported);
}

TEST(FilesTest, WhatCouldNotBeReadAgainIsNotGivenOutForWriting) {
  EXPECT_EQ(EncodeManifestVerified(SomeManifest()).value(), EncodeManifest(SomeManifest()));
  Manifest manifest = SomeManifest();
  manifest.next_segment = SegmentNumber{1};
  const Status status = EncodeManifestVerified(manifest).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("the next would be 1"), std::string::npos) << status.message();
  manifest = SomeManifest();
  manifest.table_name = std::string(kNameMaxBytes, 'n');
  EXPECT_TRUE(EncodeManifestVerified(manifest).ok());
  manifest.table_name += 'n';
  EXPECT_EQ(EncodeManifestVerified(manifest).status().code(), StatusCode::kCorruption);
  manifest = SomeManifest();
  manifest.tables.assign(kSmallFileMaxBytes / sizeof(uint64_t), TableId{1});
  EXPECT_EQ(EncodeManifestVerified(manifest).status().code(), StatusCode::kCorruption) << "no reader would take it";

  DirectoryFile directory;
  directory.next_store = StoreId{1};
  directory.next_path_number = 2;
  directory.paths = {{1, "/data/one"}};
  EXPECT_EQ(EncodeDirectoryFileVerified(directory).value(), EncodeDirectoryFile(directory));
  directory.next_path_number = 1;
  EXPECT_EQ(EncodeDirectoryFileVerified(directory).status().code(), StatusCode::kCorruption);
}

TEST(ManifestTest, TheSizeOfAnActiveSegmentMayBeUnknown) {
  Manifest manifest = SomeManifest();
  manifest.segments.back().size_bytes = 0;
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), StoreId{7}).value(), manifest);
}

TEST(DirectoryFileTest, ImpossibleContentIsRefusedThoughTheChecksumHolds) {
  // Body starts at 16: next store id at +24, next path number +32, path count +36, then number, size, bytes.
  const auto patched = [](size_t offset, auto value) {
    std::vector<uint8_t> bytes = EncodeDirectoryFile(SomeDirectory());
    const std::span<uint8_t> all(bytes);
    StoreLittleEndian(all, 16 + offset, value);
    StoreLittleEndian(all, all.size() - 8, Checksum64(all.first(all.size() - 8)));
    return DecodeDirectoryFile(bytes).status().code();
  };
  EXPECT_EQ(patched(24, uint64_t{77}), StatusCode::kOk);
  EXPECT_EQ(patched(24, uint64_t{0}), StatusCode::kCorruption) << "next store id 0";
  EXPECT_EQ(patched(32, uint32_t{3}), StatusCode::kCorruption) << "next path number in use";
  EXPECT_EQ(patched(36, uint32_t{1 << 30}), StatusCode::kCorruption) << "path count";
  EXPECT_EQ(patched(40, uint32_t{0}), StatusCode::kCorruption) << "the home listed as a path";
  EXPECT_EQ(patched(40, uint32_t{3}), StatusCode::kCorruption) << "paths out of order";
  EXPECT_EQ(patched(44, uint32_t{1 << 30}), StatusCode::kCorruption) << "path size";
  EXPECT_EQ(patched(48, uint8_t{0}), StatusCode::kCorruption) << "a NUL in a path";
}

}  // namespace
}  // namespace quarry
