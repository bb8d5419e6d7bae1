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

/// The third was encoded anew, and is longer than the distance to the next.
const std::vector<SegmentRun> kRuns = {
    {4096, 0, 800, false}, {8192, 0, 88, false}, {8288, 0, 4000, true}, {8320, 0, 8, false}, {1 << 20, 0, 4096, false}};

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
  const SegmentMap map = SegmentMap::Place(kRuns);
  const std::vector<uint64_t> expected = {8192, 8992, 9080, 13080, 13088};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(map.runs()[i].place_bytes, expected[i]) << i;
  EXPECT_EQ(map.data_end_bytes(), 13088U + 4096);
  EXPECT_EQ(DataBeginBytes(1), 8192U);
  EXPECT_EQ(DataBeginBytes(170), 8192U);
  EXPECT_EQ(DataBeginBytes(171), 12288U);
  const SegmentMap again = SegmentMap::Decode(map.Encode(), HeaderFor(map)).value();
  EXPECT_TRUE(std::equal(again.runs().begin(), again.runs().end(), map.runs().begin(), map.runs().end()));
  EXPECT_EQ(again.data_end_bytes(), map.data_end_bytes());
}

/// 0: nowhere.
uint64_t PlaceOf(const SegmentMap& map, uint64_t original_bytes, uint64_t size_bytes) {
  const auto found = map.Find(original_bytes, size_bytes);
  if (!found) return 0;
  EXPECT_FALSE(found->is_reencoded);
  EXPECT_EQ(found->size_bytes, size_bytes);
  return found->place_bytes;
}

TEST(SegmentMapTest, FindsWhatIsWhollyInOneRun) {
  const SegmentMap map = SegmentMap::Place(kRuns);
  EXPECT_EQ(PlaceOf(map, 4096, 800), 8192U);
  EXPECT_EQ(PlaceOf(map, 4096 + 400, 400), 8592U);
  EXPECT_EQ(PlaceOf(map, 8192, 80), 8992U);
  EXPECT_EQ(PlaceOf(map, 8320, 8), 13080U);
  EXPECT_EQ(PlaceOf(map, (1 << 20) + 4088, 8), 13088U + 4088);
  EXPECT_EQ(PlaceOf(map, 0, 8), 0U);
  EXPECT_EQ(PlaceOf(map, 4096, 801), 0U) << "longer than its run";
  EXPECT_EQ(PlaceOf(map, 4096 + 800, 8), 0U) << "between two runs";
  EXPECT_EQ(PlaceOf(map, 8192, 96), 0U) << "the next run is not next to it";
  EXPECT_EQ(PlaceOf(map, (1 << 20) + 4096, 0), 0U) << "behind the last";
  EXPECT_EQ(PlaceOf(map, UINT64_MAX - 7, UINT64_MAX), 0U);
}

TEST(SegmentMapTest, FindsAnExtentThatWasEncodedAnewByItsBeginAlone) {
  const SegmentMap map = SegmentMap::Place(kRuns);
  for (const uint64_t size : {8U, 80U, 5000U}) {
    const auto found = map.Find(8288, size);
    ASSERT_TRUE(found) << size;
    EXPECT_TRUE(found->is_reencoded);
    EXPECT_EQ(found->place_bytes, 9080U);
    EXPECT_EQ(found->size_bytes, 4000U);
  }
  EXPECT_FALSE(map.Find(8296, 8));
}

TEST(SegmentMapTest, EveryFlippedBitAndCutIsNoticed) {
  const SegmentMap map = SegmentMap::Place(kRuns);
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
  const auto patched = [](size_t offset, auto value) {
    const SegmentMap map = SegmentMap::Place(kRuns);
    SegmentHeader header = HeaderFor(map);
    std::vector<uint8_t> bytes = map.Encode();
    StoreLittleEndian(std::span<uint8_t>(bytes), offset, value);
    header.map_checksum = Checksum64(bytes);
    return SegmentMap::Decode(bytes, header).status().code();
  };
  EXPECT_EQ(patched(0, uint64_t{4096}), StatusCode::kOk);
  EXPECT_EQ(patched(0, uint64_t{0}), StatusCode::kCorruption) << "within the header";
  EXPECT_EQ(patched(0, uint64_t{4100}), StatusCode::kCorruption) << "not aligned";
  EXPECT_EQ(patched(0, uint64_t{7400}), StatusCode::kCorruption) << "overlaps the next";
  EXPECT_EQ(patched(8, uint64_t{8200}), StatusCode::kCorruption) << "not behind the map";
  EXPECT_EQ(patched(16, uint32_t{101}), StatusCode::kCorruption) << "the next does not follow";
  EXPECT_EQ(patched(16, uint32_t{0}), StatusCode::kCorruption) << "an empty run";
  EXPECT_EQ(patched(20, uint32_t{2}), StatusCode::kCorruption) << "an unknown flag";
  EXPECT_EQ(patched(20, uint32_t{1}), StatusCode::kOk);
  EXPECT_EQ(patched(24, uint64_t{8}), StatusCode::kCorruption) << "not rising";
  EXPECT_EQ(patched(68, uint32_t{0}), StatusCode::kCorruption) << "a copied run reaches into the next";
  EXPECT_EQ(patched(72, uint64_t{8288}), StatusCode::kCorruption) << "two runs at one place";
  EXPECT_EQ(patched(96 + 16, uint32_t{513}), StatusCode::kCorruption) << "behind the data's end";
  EXPECT_EQ(patched(96, UINT64_MAX - 7), StatusCode::kCorruption) << "beyond all files";
  SegmentHeader header = HeaderFor(SegmentMap::Place(kRuns));
  header.run_count = 0;
  header.map_checksum = Checksum64({});
  EXPECT_EQ(SegmentMap::Decode({}, header).status().code(), StatusCode::kCorruption);
}

TEST(SegmentMapTest, TheHeaderOfARewrittenSegment) {
  const SegmentHeader header = HeaderFor(SegmentMap::Place(kRuns));
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(block));
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

TEST(SegmentMapTest, ACopyOfTheHeaderNamesItsFile) {
  const SegmentHeader header = HeaderFor(SegmentMap::Place(kRuns));  // its data ends at 17184
  EXPECT_EQ(CopyBeginBytes(header), 20480U);
  const uint64_t size = 20480 + 8192;
  EXPECT_TRUE(HasCopy(header, size));
  for (const uint64_t other : {uint64_t{0}, header.data_end_bytes, uint64_t{20480}, size - 1, size + 1, size + 4096}) {
    EXPECT_FALSE(HasCopy(header, other)) << other;
  }
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes);
  const auto decode = [&](const SegmentHeader& copy, const SegmentSalt& salt, uint64_t file_size_bytes) {
    EncodeSegmentHeader(copy, std::span<uint8_t, kSegmentHeaderSizeBytes>(block));
    return DecodeHeaderCopy(block, header.store, header.segment, salt, file_size_bytes);
  };
  EXPECT_EQ(decode(header, header.salt, size).value(), header);
  EXPECT_EQ(decode(header, header.salt, size + 4096).status().code(), StatusCode::kCorruption);
  SegmentHeader other = header;
  other.salt[15] ^= uint8_t{1};
  EXPECT_EQ(decode(other, header.salt, size).status().code(), StatusCode::kCorruption);
  other.salt = {};
  EXPECT_EQ(decode(other, {}, size).status().code(), StatusCode::kCorruption) << "nobody knows the salt";
  other = header;
  other.data_end_bytes = UINT64_MAX;
  EXPECT_FALSE(HasCopy(other, size));
  other = header;
  other.generation = other.run_count = 0;
  other.data_end_bytes = other.map_checksum = other.rewritten_micros = 0;
  EXPECT_FALSE(HasCopy(other, kSegmentHeaderSizeBytes)) << "never rewritten";
  EXPECT_EQ(decode(other, header.salt, kSegmentHeaderSizeBytes).status().code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace quarry
