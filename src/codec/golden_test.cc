// Opens the golden files of every format version, forever: what they hold is decoded, compared with the samples, and,
// where the encoding leaves no choice (all but what a compressor makes), encoded again to the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "codec/codec.h"
#include "codec/golden_files.h"
#include "codec/golden_v1_samples.h"
#include "format/extent.h"
#include "format/part_cipher.h"
#include "format/segment_map.h"
#include "format/small_file.h"

namespace quarry {
namespace {

using golden_v1::ExtentSample;
using golden_v1::kSalt;

std::vector<uint8_t> ReadHead(const ExtentSample& sample, bool encrypted) {
  return ReadGolden((encrypted ? "encrypted-head-" : "head-") + std::string(sample.name) + ".bin");
}

// The content of an extent, every part verified; `cipher` only when it is encrypted.
std::vector<uint8_t> ReadContent(std::span<const uint8_t> extent, const ExtentIndex& index, Cipher* cipher) {
  std::vector<uint8_t> content(index.header.content_size_bytes);
  for (uint32_t part = 0; part < index.header.part_count; ++part) {
    const PartEntry& entry = index.parts[part];
    auto stored = extent.subspan(entry.offset_in_extent_bytes, entry.stored_size_bytes);
    EXPECT_TRUE(VerifyPart(index, part, stored).ok());
    std::vector<uint8_t> plain(stored.size());
    if (index.header.encrypted) {
      EXPECT_TRUE(OpenPart(cipher, index, part, stored, plain).ok());
      stored = std::span<const uint8_t>(plain).first(plain.size() - kPartCheckSizeBytes);
    }
    const auto out = std::span<uint8_t>(content).subspan(static_cast<size_t>(part) * index.header.part_size_bytes,
                                                         PartSizeOf(index.header, part));
    if (entry.raw) {
      std::copy(stored.begin(), stored.end(), out.begin());
    } else {
      EXPECT_TRUE(DecompressPart(index.header.codec, stored, out));
    }
  }
  return content;
}

// Prefix and content, decoded, are the sample's value; header and index encode again to what they are.
void ExpectExtent(std::span<const uint8_t> bytes, const ExtentSample& sample, size_t number, const Head& head,
                  const ExtentIndex& index) {
  SCOPED_TRACE(sample.name);
  EXPECT_EQ(index.header.codec, sample.codec);
  EXPECT_EQ(index.header.part_size_bytes, sample.part_size_bytes);
  EXPECT_EQ(index.header.identity, golden_v1::IdentityOf(number));
  EXPECT_EQ(index.header.prefix_size_bytes, sample.prefix_size_bytes);
  EXPECT_EQ(index.cipher, index.header.encrypted ? golden_v1::ParametersOf(number) : CipherParameters());
  const std::unique_ptr<Cipher> cipher = golden_v1::Provider()->Open(golden_v1::ParametersOf(number)).value();
  std::vector<uint8_t> value(head.prefix.begin(), head.prefix.end());
  const std::vector<uint8_t> content = ReadContent(bytes, index, cipher.get());
  value.insert(value.end(), content.begin(), content.end());
  EXPECT_EQ(value, golden_v1::ValueOf(sample));
  std::vector<uint8_t> again(HeaderAndIndexSizeBytes(index.header));
  EncodeExtentIndex(index.header, index.parts, index.cipher, kSalt, again);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin()));
}

DecodedField DecodeGoldenHead(const std::vector<uint8_t>& head, const ExtentSample& sample) {
  const Result<DecodedField> field = DecodeField(head);
  EXPECT_TRUE(field.ok() && field->is_head) << sample.name << ": " << field.status().ToString();
  EXPECT_TRUE(CheckPrefix(field->head()).ok());
  const std::vector<uint8_t> value = golden_v1::ValueOf(sample);
  EXPECT_EQ(field->locator.value_size_bytes, value.size());
  EXPECT_EQ(field->locator.value_checksum, ValueChecksumOf(value, sample.prefix_size_bytes, sample.part_size_bytes));
  std::vector<uint8_t> again(head.begin(), head.end() - kTrailerSizeBytes);
  again.resize(head.size());
  EncodeTrailer(field->locator, std::span<uint8_t>(again).last<kTrailerSizeBytes>());
  EXPECT_EQ(again, head);
  return *field;
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
  for (const ExtentSample& sample : golden_v1::Extents()) {
    // Padding reaches to the next block.
    if (sample.at_block_start)
      offset = (offset + kSegmentBlockSizeBytes - 1) / kSegmentBlockSizeBytes * kSegmentBlockSizeBytes;
    ASSERT_LT(offset, segment.size());
    const auto bytes = std::span<const uint8_t>(segment).subspan(offset);
    ASSERT_TRUE(StartsLikeExtent(bytes)) << sample.name;
    const Result<ExtentIndex> index = DecodeExtentIndex(bytes, golden_v1::Segment().origin(), offset);
    ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
    offset = NextExtentOffsetBytes(index->header);
  }
}

TEST(GoldenV1Test, HeadsLeadToTheirExtents) {
  for (const bool encrypted : {false, true}) {
    const std::vector<uint8_t> segment = ReadGolden(encrypted ? "encrypted.qseg" : "segment.qseg");
    size_t number = 0;
    for (const ExtentSample& sample : golden_v1::Extents()) {
      const std::vector<uint8_t> head = ReadHead(sample, encrypted);
      const DecodedField field = DecodeGoldenHead(head, sample);
      const Locator& locator = field.locator;
      ASSERT_LE(locator.offset_bytes + locator.extent_size_bytes, segment.size());
      const auto extent = std::span<const uint8_t>(segment).subspan(locator.offset_bytes, locator.extent_size_bytes);
      const Result<ExtentIndex> index = DecodeExtentIndex(extent, locator, kSalt);
      ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
      EXPECT_EQ(index->header.encrypted, encrypted);
      EXPECT_EQ(ExtentSpaceBytes(index->header), locator.extent_size_bytes);
      ExpectExtent(extent, sample, number++, field.head(), *index);
    }
  }
}

TEST(GoldenV1Test, SamplesCoverRawAndCompressedParts) {
  const std::vector<uint8_t> segment = ReadGolden("segment.qseg");
  const std::vector<uint8_t> head = ReadGolden("head-zstd.bin");
  const DecodedField field = DecodeField(head).value();
  const auto bytes = std::span<const uint8_t>(segment).subspan(field.locator.offset_bytes);
  const ExtentIndex index = DecodeExtentIndex(bytes, field.locator, kSalt).value();
  ASSERT_EQ(index.parts.size(), 3U);
  EXPECT_TRUE(index.parts[0].raw) << "noise";
  EXPECT_FALSE(index.parts[1].raw);
}

// Without some of its extents, and with one encoded anew: the heads are those of before.
TEST(GoldenV1Test, RewrittenSegment) {
  const std::vector<uint8_t> file = ReadGolden("rewritten.qseg");
  const SegmentHeader header = DecodeSegmentHeader(file, golden_v1::kStore, golden_v1::kSegment).value();
  EXPECT_EQ(header.salt, kSalt);
  EXPECT_EQ(header.generation, 1U);
  EXPECT_EQ(header.rewritten_micros, golden_v1::kRewrittenMicros);
  std::vector<uint8_t> again(kSegmentHeaderSizeBytes, 0xff);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(again));
  EXPECT_TRUE(std::equal(again.begin(), again.end(), file.begin()));
  const SegmentMap map = SegmentMap::Decode(std::span(file).subspan(kSegmentHeaderSizeBytes), header).value();
  EXPECT_EQ(Checksum64(map.Encode()), header.map_checksum);
  size_t number = 0;
  for (const ExtentSample& sample : golden_v1::Extents()) {
    const std::vector<uint8_t> head = ReadHead(sample, false);
    const DecodedField field = DecodeGoldenHead(head, sample);
    const auto place = map.Find(field.locator.offset_bytes, field.locator.extent_size_bytes);
    const bool is_reencoded = golden_v1::IsReencoded(sample.name);
    ASSERT_EQ(place.has_value(), golden_v1::IsCopied(sample.name) || is_reencoded) << sample.name;
    if (place) {
      EXPECT_EQ(place->is_reencoded, is_reencoded);
      EXPECT_EQ(place->size_bytes == field.locator.extent_size_bytes, !is_reencoded);
      const auto extent = std::span<const uint8_t>(file).subspan(place->place_bytes, place->size_bytes);
      const Result<ExtentIndex> index = DecodeExtentIndex(extent, field.locator, kSalt);
      ASSERT_TRUE(index.ok()) << sample.name << ": " << index.status().ToString();
      EXPECT_EQ(index->header.encrypted, is_reencoded);
      ExpectExtent(extent, sample, number, field.head(), *index);
    }
    ++number;
  }
}

// The same file, with header and map once more at its end.
TEST(GoldenV1Test, RewrittenSegmentWithItsCopy) {
  const std::vector<uint8_t> early = ReadGolden("rewritten.qseg");
  const std::vector<uint8_t> file = ReadGolden("rewritten-copy.qseg");
  ASSERT_GT(file.size(), early.size());
  EXPECT_TRUE(std::equal(early.begin(), early.end(), file.begin()));
  const std::span<const uint8_t> last = std::span(file).last(kSegmentHeaderSizeBytes);
  const SegmentHeader copy = DecodeHeaderCopy(last, golden_v1::kStore, golden_v1::kSegment, kSalt, file.size()).value();
  EXPECT_EQ(copy, DecodeSegmentHeader(early).value());
  EXPECT_FALSE(HasCopy(copy, early.size()));
  const SegmentMap map = SegmentMap::Decode(std::span(file).subspan(CopyBeginBytes(copy)), copy).value();
  EXPECT_EQ(map.data_end_bytes(), copy.data_end_bytes);
}

TEST(GoldenV1Test, SmallFiles) {
  const std::vector<uint8_t> catalogue = ReadGolden("CATALOGUE");
  const CatalogueLog log = ReadCatalogueLog(catalogue, golden_v1::kCatalogueGeneration).value();
  EXPECT_EQ(log.records, golden_v1::Catalogue());
  EXPECT_TRUE(log.losses.empty());
  EXPECT_EQ(EncodeCatalogue(golden_v1::Catalogue(), golden_v1::kCatalogueGeneration), catalogue);
  const std::vector<uint8_t> path = ReadGolden("PATH");
  EXPECT_EQ(DecodePathMarker(path).value(), golden_v1::Path());
  EXPECT_EQ(EncodePathMarker(golden_v1::Path()), path);
}

}  // namespace
}  // namespace quarry
