// Opens the golden files of every format version, forever: what they hold is decoded, compared with the samples, and,
// where the encoding leaves no choice (all but what a compressor makes), encoded again to the same bytes.
#include <gtest/gtest.h>
#include <algorithm>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/golden_rewritten_samples.h"
#include "codec/golden_v1_samples.h"
#include "codec/golden_v2_samples.h"
#include "format/extent.h"
#include "format/part_cipher.h"
#include "format/segment_map.h"
#include "format/small_file.h"

namespace quarry {
namespace {

std::vector<uint8_t> ReadGolden(const std::string& name, const std::string& version = "v1") {
  std::ifstream file(std::string(QUARRY_SOURCE_DIR) + "/tests/golden/" + version + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name << " is missing";
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of an extent, every part verified; `cipher` only when it is encrypted.
std::vector<uint8_t> ReadValue(std::span<const uint8_t> extent, const ExtentIndex& index, Cipher* cipher = nullptr) {
  std::vector<uint8_t> value(index.header.value_size_bytes);
  for (uint32_t part = 0; part < index.header.part_count; ++part) {
    const PartEntry& entry = index.parts[part];
    auto stored = extent.subspan(entry.offset_in_extent_bytes, entry.stored_size_bytes);
    EXPECT_TRUE(VerifyPart(index, part, stored).ok());
    std::vector<uint8_t> plain(stored.size());
    if (cipher != nullptr) {
      EXPECT_TRUE(OpenPart(cipher, index, part, stored, plain).ok());
      stored = std::span<const uint8_t>(plain).first(plain.size() - kPartCheckSizeBytes);
    }
    const auto out = std::span<uint8_t>(value).subspan(static_cast<size_t>(part) * index.header.part_size_bytes,
                                                       PartSizeOf(index.header, part));
    if (entry.raw) {
      std::copy(stored.begin(), stored.end(), out.begin());
    } else {
      EXPECT_TRUE(DecompressPart(index.header.codec, stored, out));
    }
  }
  return value;
}

TEST(GoldenV1Test, Segment) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg");
  const Result<SegmentHeader> header = DecodeSegmentHeader(segment, golden_v1::kStore, golden_v1::kSegment);
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(*header, golden_v1::Segment());
  std::vector<uint8_t> again(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(*header, std::span<uint8_t, kSegmentHeaderSizeBytes>(again));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), segment.begin()));
}

TEST(GoldenV1Test, ExtentsFoundByAScan) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg");
  uint64_t offset = kSegmentHeaderSizeBytes;
  for (const golden_v1::ExtentSample& sample : golden_v1::Extents()) {
    // Padding reaches to the next block.
    if (sample.at_block_start)
      offset = (offset + kSegmentBlockSizeBytes - 1) / kSegmentBlockSizeBytes * kSegmentBlockSizeBytes;
    ASSERT_LT(offset, segment.size());
    const auto bytes = std::span<const uint8_t>(segment).subspan(offset);
    ASSERT_TRUE(StartsLikeExtent(bytes)) << sample.name;
    const Result<ExtentIndex> index = DecodeExtentIndex(bytes, golden_v1::kStore, golden_v1::kSegment, offset);
    ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
    EXPECT_EQ(index->header.codec, sample.codec);
    EXPECT_EQ(index->header.part_size_bytes, sample.part_size_bytes);
    EXPECT_EQ(index->header.reserved_size_bytes, sample.reserved_size_bytes);
    EXPECT_EQ(ReadValue(bytes, *index), golden_v1::ValueOf(sample)) << sample.name;

    std::vector<uint8_t> again(HeaderAndIndexSizeBytes(index->header));
    EXPECT_EQ(EncodeExtentIndex(index->header, index->parts, {}, again), index->index_checksum);
    EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin())) << sample.name;
    offset = std::max(NextExtentOffsetBytes(index->header), offset + sample.reserved_size_bytes);
  }
}

TEST(GoldenV1Test, HeadsLeadToTheirExtents) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg");
  for (const golden_v1::ExtentSample& sample : golden_v1::Extents()) {
    const std::vector<uint8_t> head = ReadGolden("head-" + std::string(sample.name) + ".bin");
    const Result<DecodedField> field = DecodeField(head);
    ASSERT_TRUE(field.ok()) << field.status().ToString();
    ASSERT_TRUE(field->is_head);
    EXPECT_EQ(std::string(field->prefix.begin(), field->prefix.end()), sample.prefix);
    const Locator& locator = field->locator;
    EXPECT_EQ(locator.value_size_bytes, sample.value_size_bytes);
    EXPECT_EQ(locator.value_sample, SampleValue(golden_v1::ValueOf(sample)));
    ASSERT_LE(locator.offset_bytes + locator.extent_size_bytes, segment.size());
    const auto extent = std::span<const uint8_t>(segment).subspan(locator.offset_bytes, locator.extent_size_bytes);
    const Result<ExtentIndex> index = DecodeExtentIndex(extent, locator);
    ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
    EXPECT_EQ(ReadValue(extent, *index), golden_v1::ValueOf(sample));

    std::vector<uint8_t> again(head.begin(), head.end() - kTrailerSizeBytes);
    again.resize(head.size());
    EncodeTrailer(locator, std::span<uint8_t>(again).last<kTrailerSizeBytes>());
    EXPECT_EQ(again, head);
  }
}

TEST(GoldenV1Test, SamplesCoverRawAndCompressedParts) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg");
  const DecodedField field = DecodeField(ReadGolden("head-zstd.bin")).value();
  const auto bytes = std::span<const uint8_t>(segment).subspan(field.locator.offset_bytes);
  const ExtentIndex index = DecodeExtentIndex(bytes, field.locator).value();
  ASSERT_EQ(index.parts.size(), 3U);
  EXPECT_TRUE(index.parts[0].raw) << "noise";
  EXPECT_FALSE(index.parts[1].raw);
}

TEST(GoldenV1Test, SmallFiles) {
  const std::vector<uint8_t> manifest = ReadGolden("MANIFEST");
  EXPECT_EQ(DecodeManifest(manifest, golden_v1::kStore).value(), golden_v1::StoreManifest());
  EXPECT_EQ(EncodeManifest(golden_v1::StoreManifest()), manifest);
  const std::vector<uint8_t> directory = ReadGolden("DIRECTORY");
  EXPECT_EQ(DecodeDirectoryFile(directory).value(), golden_v1::Directory());
  EXPECT_EQ(EncodeDirectoryFile(golden_v1::Directory()), directory);
  const std::vector<uint8_t> path = ReadGolden("PATH");
  EXPECT_EQ(DecodePathMarker(path).value(), golden_v1::Path());
  EXPECT_EQ(EncodePathMarker(golden_v1::Path()), path);
}

TEST(GoldenV2Test, Manifest) {
  const std::vector<uint8_t> manifest = ReadGolden("MANIFEST", "v2");
  EXPECT_EQ(DecodeManifest(manifest, golden_v1::kStore).value(), golden_v2::StoreManifest());
  EXPECT_EQ(EncodeManifest(golden_v2::StoreManifest()), manifest);
}

TEST(GoldenV2Test, EncryptedExtentsAndTheirHeads) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg", "v2");
  size_t number = 0;
  for (const golden_v1::ExtentSample& sample : golden_v2::Extents()) {
    const std::vector<uint8_t> head = ReadGolden("head-" + std::string(sample.name) + ".bin", "v2");
    const DecodedField field = DecodeField(head).value();
    const Locator& locator = field.locator;
    EXPECT_TRUE(locator.encrypted);
    ASSERT_LE(locator.offset_bytes + locator.extent_size_bytes, segment.size());
    const auto extent = std::span<const uint8_t>(segment).subspan(locator.offset_bytes, locator.extent_size_bytes);
    const Result<ExtentIndex> index = DecodeExtentIndex(extent, locator);
    ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
    EXPECT_EQ(index->cipher, golden_v2::ParametersOf(number++));
    const std::unique_ptr<Cipher> cipher = golden_v2::Provider()->Open(index->cipher).value();
    EXPECT_EQ(ReadValue(extent, *index, cipher.get()), golden_v1::ValueOf(sample)) << sample.name;

    std::vector<uint8_t> again(HeaderAndIndexSizeBytes(index->header));
    EXPECT_EQ(EncodeExtentIndex(index->header, index->parts, index->cipher, again), locator.index_checksum);
    EXPECT_TRUE(std::equal(again.begin(), again.end(), extent.begin())) << sample.name;
    std::vector<uint8_t> head_again(head.begin(), head.end() - kTrailerSizeBytes);
    head_again.resize(head.size());
    EncodeTrailer(locator, std::span<uint8_t>(head_again).last<kTrailerSizeBytes>());
    EXPECT_EQ(head_again, head);
  }
}

// The segment of format version 1, rewritten without its first and its fourth extent.
TEST(GoldenRewrittenTest, Segment) {
  const std::vector<uint8_t> file = ReadGolden("segment.qseg", "v2-rewritten");
  const SegmentHeader header = DecodeSegmentHeader(file, golden_v1::kStore, golden_v1::kSegment).value();
  EXPECT_EQ(header, golden_rewritten::Segment());
  std::vector<uint8_t> again(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(again));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), file.begin()));
  const SegmentMap map = SegmentMap::Decode(std::span(file).subspan(kSegmentHeaderSizeBytes), header).value();
  EXPECT_EQ(map.Encode().size(), MapSizeBytes(header.run_count));

  const std::vector<uint8_t> old_file = ReadGolden("segment.qseg");
  for (const char* const name : {"none", "lz4", "zstd", "reserved", "empty"}) {
    const std::vector<uint8_t> head = ReadGolden("head-" + std::string(name) + ".bin");
    const Locator locator = DecodeField(head).value().locator;
    const std::optional<uint64_t> place = map.Find(locator.offset_bytes, locator.extent_size_bytes);
    ASSERT_EQ(place.has_value(), golden_rewritten::Keeps(name)) << name;
    if (!place) continue;
    const auto extent = std::span(file).subspan(*place, locator.extent_size_bytes);
    EXPECT_TRUE(DecodeExtentIndex(extent, locator).ok()) << name;
    EXPECT_TRUE(
        std::equal(extent.begin(), extent.end(), old_file.begin() + static_cast<std::ptrdiff_t>(locator.offset_bytes)))
        << name;
  }
}

}  // namespace
}  // namespace quarry
