// Segment header and PATH: round trips, damage, impossible content, newer versions.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/magic.h"
#include "format/path_marker.h"
#include "format/segment_header.h"
#include "format/small_file.h"

namespace quarry {
namespace {

constexpr InstallationId kInstallation = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

SegmentHeader SomeSegmentHeader() {
  return {StoreId{7}, SegmentNumber{3}, 2, kInstallation, TableId{1234}, 1700000000000000, {16, 15, 14, 13}};
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
          {"path", EncodePathMarker({kInstallation, 3, 5}),
           [](auto bytes) { return DecodePathMarker(bytes).status().code(); }}};
}

TEST(FilesTest, RoundTrip) {
  EXPECT_EQ(DecodeSegmentHeader(Encode(SomeSegmentHeader())).value(), SomeSegmentHeader());
  const PathMarker marker{kInstallation, 3, 1700000000000000};
  EXPECT_EQ(DecodePathMarker(EncodePathMarker(marker)).value(), marker);
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
      const bool is_known = false;
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
}

}  // namespace
}  // namespace quarry
