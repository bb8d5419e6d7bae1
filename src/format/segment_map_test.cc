// The map of a rewritten segment and the header that speaks of it: look-ups, damage, impossible content.
#include "format/segment_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"

namespace quarry {
namespace {

const std::vector<SegmentMap::Piece> kPieces = {{4096, 800}, {8192, 88}, {8288, 8}, {1 << 20, 4096}};

SegmentHeader HeaderFor(const SegmentMap& map) {
  SegmentHeader header;
  header.store = StoreId{7};
  header.segment = SegmentNumber{3};
  header.salt.fill(0x5a);
  header.generation = 2;
  header.run_count = static_cast<uint32_t>(map.runs().size());
  header.data_end_bytes = map.data_end_bytes();
  header.map_checksum = Checksum64(map.Encode());
  header.rewritten_micros = 1700000000000000;
  return header;
}

TEST(SegmentMapTest, PlacesRunsBehindTheMapWithoutGaps) {
  const SegmentMap map = SegmentMap::Place(kPieces);
  const std::vector<SegmentRun> expected = {{4096, 8192}, {8192, 8992}, {8288, 9080}, {1 << 20, 9088}};
  EXPECT_TRUE(std::equal(map.runs().begin(), map.runs().end(), expected.begin(), expected.end()));
  EXPECT_EQ(map.data_end_bytes(), 9088U + 4096);
  EXPECT_EQ(DataBeginBytes(1), 8192U);
  EXPECT_EQ(DataBeginBytes(256), 8192U);
  EXPECT_EQ(DataBeginBytes(257), 12288U);
  const SegmentMap again = SegmentMap::Decode(map.Encode(), HeaderFor(map)).value();
  EXPECT_TRUE(std::equal(again.runs().begin(), again.runs().end(), map.runs().begin(), map.runs().end()));
  EXPECT_EQ(again.data_end_bytes(), map.data_end_bytes());
}

TEST(SegmentMapTest, FindsWhatIsWhollyInOneRun) {
  const SegmentMap map = SegmentMap::Place(kPieces);
  EXPECT_EQ(map.Find(4096, 800), 8192U);
  EXPECT_EQ(map.Find(4096 + 400, 400), 8592U);
  EXPECT_EQ(map.Find(8192, 80), 8992U);
  EXPECT_EQ(map.Find(8288, 8), 9080U);
  EXPECT_EQ(map.Find((1 << 20) + 4088, 8), 9088U + 4088);
  EXPECT_EQ(map.Find(0, 8), std::nullopt);
  EXPECT_EQ(map.Find(4096, 801), std::nullopt) << "longer than its run";
  EXPECT_EQ(map.Find(4096 + 800, 8), std::nullopt) << "between two runs";
  EXPECT_EQ(map.Find(8192, 96), std::nullopt) << "the next run is not next to it";
  EXPECT_EQ(map.Find((1 << 20) + 4096, 0), std::nullopt) << "behind the last";
  EXPECT_EQ(map.Find(UINT64_MAX - 7, UINT64_MAX), std::nullopt);
  for (const SegmentMap::Piece& piece : kPieces) {
    EXPECT_EQ(map.OriginalOf(*map.Find(piece.original_bytes, 8)), piece.original_bytes);
  }
  EXPECT_EQ(map.OriginalOf(8184), std::nullopt);
  EXPECT_EQ(map.OriginalOf(map.data_end_bytes()), std::nullopt);
}

TEST(SegmentMapTest, EveryFlippedBitAndCutIsNoticed) {
  const SegmentMap map = SegmentMap::Place(kPieces);
  const SegmentHeader header = HeaderFor(map);
  std::vector<uint8_t> bytes = map.Encode();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    ASSERT_EQ(SegmentMap::Decode(bytes, header).status().code(), StatusCode::kCorruption) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = std::span<const uint8_t>(bytes).first(size);
    ASSERT_EQ(SegmentMap::Decode(cut, header).status().code(), StatusCode::kCorruption) << size;
  }
}

TEST(SegmentMapTest, ImpossibleContentIsRefusedThoughTheChecksumHolds) {
  const auto patched = [](size_t offset, uint64_t value) {
    const SegmentMap map = SegmentMap::Place(kPieces);
    SegmentHeader header = HeaderFor(map);
    std::vector<uint8_t> bytes = map.Encode();
    StoreLittleEndian(std::span<uint8_t>(bytes), offset, value);
    header.map_checksum = Checksum64(bytes);
    return SegmentMap::Decode(bytes, header).status().code();
  };
  EXPECT_EQ(patched(0, 4096), StatusCode::kOk);
  EXPECT_EQ(patched(0, 0), StatusCode::kCorruption) << "within the header";
  EXPECT_EQ(patched(0, 4100), StatusCode::kCorruption) << "not aligned";
  EXPECT_EQ(patched(0, 7400), StatusCode::kCorruption) << "overlaps the next";
  EXPECT_EQ(patched(8, 8200), StatusCode::kCorruption) << "not behind the map";
  EXPECT_EQ(patched(16, 8), StatusCode::kCorruption) << "not rising";
  EXPECT_EQ(patched(24, 8192), StatusCode::kCorruption) << "an empty run";
  EXPECT_EQ(patched(24, 8996), StatusCode::kCorruption) << "a place that is not aligned";
  EXPECT_EQ(patched(56, 1 << 20), StatusCode::kCorruption) << "behind the data's end";
  EXPECT_EQ(patched(48, UINT64_MAX - 7), StatusCode::kCorruption) << "beyond all files";
  SegmentHeader header = HeaderFor(SegmentMap::Place(kPieces));
  header.run_count = 0;
  header.map_checksum = Checksum64({});
  EXPECT_EQ(SegmentMap::Decode({}, header).status().code(), StatusCode::kCorruption);
}

TEST(SegmentMapTest, TheHeaderOfARewrittenSegment) {
  const SegmentHeader header = HeaderFor(SegmentMap::Place(kPieces));
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(block));
  EXPECT_EQ(block[8], 2) << "the version";
  EXPECT_EQ(DecodeSegmentHeader(block).value(), header);
  for (size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    ASSERT_EQ(DecodeSegmentHeader(block).status().code(), StatusCode::kCorruption) << bit;
    block[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
  }
  const std::span<uint8_t> all(block);
  StoreLittleEndian(all, 80, uint32_t{0});
  StoreLittleEndian(all, all.size() - 8, Checksum64(all.first(all.size() - 8)));
  EXPECT_EQ(DecodeSegmentHeader(block).status().code(), StatusCode::kCorruption) << "generation 0";
}

}  // namespace
}  // namespace quarry
