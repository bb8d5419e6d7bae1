// The extent: geometry, round trips, and that no damage or impossible number gets through.
#include "format/extent.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {
namespace {

struct Sample {
  ExtentHeader header;
  CipherParameters cipher;
  std::vector<PartEntry> parts;
  std::vector<uint8_t> bytes;
  Locator locator;
};

// An extent of `value_size` bytes whose odd parts are compressed to half.
Sample MakeSample(uint64_t value_size, uint32_t part_size, Codec codec = Codec::kLz4, uint64_t reserved = 0,
                  bool encrypted = false) {
  Sample sample;
  ExtentHeader& header = sample.header;
  header.store = StoreId{7};
  header.segment = SegmentNumber{3};
  header.offset_bytes = 8192;
  header.value_size_bytes = value_size;
  header.part_size_bytes = part_size;
  header.part_count = PartCount(value_size, part_size);
  header.reserved_size_bytes = reserved;
  header.codec = codec;
  header.encrypted = encrypted;
  if (encrypted) sample.cipher = {kCipherSchemeMariadb1, 5, 2, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6}};
  uint64_t offset = HeaderAndIndexSizeBytes(header);
  for (uint32_t part = 0; part < header.part_count; ++part) {
    PartEntry entry;
    entry.raw = codec == Codec::kNone || part % 2 == 0 || PartSizeOf(header, part) == 1;
    entry.stored_size_bytes = entry.raw ? PartSizeOf(header, part) : (PartSizeOf(header, part) + 1) / 2;
    entry.stored_size_bytes += PartOverheadBytes(encrypted);
    entry.checksum = 0x9999000000000000 + part;
    entry.offset_in_extent_bytes = offset;
    offset += entry.stored_size_bytes;
    header.stored_total_bytes += entry.stored_size_bytes;
    sample.parts.push_back(entry);
  }
  sample.bytes.resize(HeaderAndIndexSizeBytes(header));
  sample.locator = LocatorOf(header, EncodeExtentIndex(header, sample.parts, sample.cipher, sample.bytes));
  return sample;
}

// Changes bytes and makes both checksums right again, as a writer gone mad would.
std::vector<uint8_t> Resealed(const Sample& sample, const std::function<void(std::span<uint8_t>)>& change) {
  std::vector<uint8_t> bytes = sample.bytes;
  const std::span<uint8_t> all(bytes);
  change(all);
  StoreLittleEndian(all, 64, Checksum64(all.first(64)));
  StoreLittleEndian(all, all.size() - 8, Checksum64(all.first(all.size() - 8)));
  return bytes;
}

StatusCode ScanCode(std::span<const uint8_t> bytes) {
  return DecodeExtentIndex(bytes, StoreId{7}, SegmentNumber{3}, 8192).status().code();
}

TEST(ExtentTest, Geometry) {
  EXPECT_EQ(PartCount(0, 512), 0U);
  EXPECT_EQ(PartCount(1, 512), 1U);
  EXPECT_EQ(PartCount(512, 512), 1U);
  EXPECT_EQ(PartCount(513, 512), 2U);
  EXPECT_EQ(PartCount(kValueSizeMaxBytes, kPartSizeMinBytes), 1U << 23);
  EXPECT_EQ(HeaderAndIndexSizeBytes(0, false), 80U);
  EXPECT_EQ(HeaderAndIndexSizeBytes(1, false), 92U);
  EXPECT_EQ(HeaderAndIndexSizeBytes(1, true), 124U);
  EXPECT_EQ(ExtentSizeMaxBytes(100000, 65536, false), 80U + 24 + 100000);
  EXPECT_EQ(ExtentSizeMaxBytes(100000, 65536, true), 112U + 24 + 16 + 100000);

  const Sample sample = MakeSample(100000, 65536);
  EXPECT_EQ(PartSizeOf(sample.header, 0), 65536U);
  EXPECT_EQ(PartSizeOf(sample.header, 1), 34464U);
  EXPECT_EQ(NextExtentOffsetBytes(sample.header) % kExtentAlignmentBytes, 0U);
  EXPECT_GE(NextExtentOffsetBytes(sample.header), 8192 + ExtentSizeBytes(sample.header));
  const Sample reserved = MakeSample(100000, 65536, Codec::kZstd, 25 * 4096);
  EXPECT_EQ(NextExtentOffsetBytes(reserved.header),
            NextExtentOffsetBytes(MakeSample(100000, 65536, Codec::kZstd).header));
}

TEST(ExtentTest, PartsOfRangeTouchesNoOtherPart) {
  const ExtentHeader header = MakeSample(10 * 512 + 1, 512).header;
  const auto range = [&](uint64_t offset, uint64_t size) {
    const PartRange parts = PartsOfRange(header, offset, size);
    return std::pair(parts.first, parts.count);
  };
  EXPECT_EQ(range(0, 0).second, 0U);
  EXPECT_EQ(range(5121, 0).second, 0U);
  EXPECT_EQ(range(0, 1), std::pair(0U, 1U));
  EXPECT_EQ(range(511, 1), std::pair(0U, 1U));
  EXPECT_EQ(range(511, 2), std::pair(0U, 2U));
  EXPECT_EQ(range(512, 512), std::pair(1U, 1U));
  EXPECT_EQ(range(5120, 1), std::pair(10U, 1U));
  EXPECT_EQ(range(0, 5121), std::pair(0U, 11U));
}

TEST(ExtentTest, RoundTrips) {
  for (const uint64_t size : {0ULL, 1ULL, 511ULL, 512ULL, 513ULL, 65536ULL, 1000000ULL}) {
    for (const uint32_t part_size : {512U, 13948U, 65536U, 16U << 20}) {
      for (const auto& [codec, encrypted] : {std::pair(Codec::kNone, false),
                                             {Codec::kLz4, false},
                                             {Codec::kZstd, false},
                                             {Codec::kNone, true},
                                             {Codec::kZstd, true}}) {
        const Sample sample = MakeSample(size, part_size, codec, 1004 * 4096, encrypted);
        std::vector<uint8_t> longer = sample.bytes;
        longer.resize(longer.size() + 100, 0xee);  // the parts, which decoding the index ignores
        const ExtentIndex index = DecodeExtentIndex(longer, sample.locator).value();
        EXPECT_EQ(index.header, sample.header);
        EXPECT_EQ(index.parts, sample.parts);
        EXPECT_EQ(index.cipher, sample.cipher);
        EXPECT_EQ(sample.locator.encrypted, encrypted);
        EXPECT_EQ(index.index_checksum, sample.locator.index_checksum);
        EXPECT_EQ(DecodeExtentHeader(longer, sample.locator).value(), sample.header);
        EXPECT_EQ(DecodeExtentIndex(longer, StoreId{7}, SegmentNumber{3}, 8192)->parts, sample.parts);
        EXPECT_TRUE(StartsLikeExtent(longer));
        EXPECT_EQ(sample.locator.extent_size_bytes, ExtentSizeBytes(sample.header));
      }
    }
  }
}

void ExpectEveryFlippedBitIsNoticed(const Sample& sample) {
  for (size_t bit = 0; bit < sample.bytes.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = sample.bytes;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_EQ(DecodeExtentIndex(damaged, sample.locator).status().code(), StatusCode::kCorruption) << bit;
    EXPECT_EQ(ScanCode(damaged), StatusCode::kCorruption) << bit;
    const bool in_header = bit / 8 < kExtentHeaderSizeBytes;
    EXPECT_EQ(DecodeExtentHeader(damaged, sample.locator).ok(), !in_header) << bit;
  }
}

TEST(ExtentTest, EveryFlippedBitIsNoticed) {
  ExpectEveryFlippedBitIsNoticed(MakeSample(2000, 512));
  ExpectEveryFlippedBitIsNoticed(MakeSample(2000, 512, Codec::kLz4, 0, true));
}

TEST(ExtentTest, EveryCutOffLengthIsNoticed) {
  const Sample sample = MakeSample(2000, 512);
  for (size_t size = 0; size < sample.bytes.size(); ++size) {
    const auto cut = std::span<const uint8_t>(sample.bytes).first(size);
    EXPECT_EQ(DecodeExtentIndex(cut, sample.locator).status().code(), StatusCode::kCorruption) << size;
    EXPECT_EQ(ScanCode(cut), StatusCode::kCorruption) << size;
  }
}

TEST(ExtentTest, AnotherExtentIsNotTheOneAskedFor) {
  const Sample sample = MakeSample(2000, 512);
  Locator wanted = sample.locator;
  const auto code = [&] { return DecodeExtentIndex(sample.bytes, wanted).status().code(); };
  ASSERT_EQ(code(), StatusCode::kOk);
  wanted.store = StoreId{8};
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  wanted.segment = SegmentNumber{4};
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  wanted.offset_bytes += 8;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  ++wanted.value_size_bytes;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  ++wanted.extent_size_bytes;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  wanted.encrypted = true;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  wanted.index_checksum ^= 1;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  EXPECT_TRUE(DecodeExtentHeader(sample.bytes, wanted).ok()) << "the header alone does not know the index";
}

TEST(ExtentTest, ImpossibleNumbersAreRefusedThoughTheChecksumsHold) {
  const Sample sample = MakeSample(2000, 512);
  const auto code_with = [&](size_t offset, auto value) {
    return ScanCode(Resealed(sample, [&](std::span<uint8_t> bytes) { StoreLittleEndian(bytes, offset, value); }));
  };
  EXPECT_EQ(code_with(32, uint64_t{2000}), StatusCode::kOk) << "resealing alone breaks nothing";
  EXPECT_EQ(code_with(11, uint8_t{1}), StatusCode::kCorruption) << "unknown flag";
  EXPECT_EQ(code_with(32, uint64_t{1} << 32), StatusCode::kCorruption) << "value size";
  EXPECT_EQ(code_with(32, ~uint64_t{0}), StatusCode::kCorruption) << "value size";
  EXPECT_EQ(code_with(40, uint64_t{2001}), StatusCode::kCorruption) << "stored total above the value";
  EXPECT_EQ(code_with(40, uint64_t{3}), StatusCode::kCorruption) << "stored total below the part count";
  EXPECT_EQ(code_with(48, uint64_t{4097}), StatusCode::kCorruption) << "reserved size not in blocks";
  EXPECT_EQ(code_with(48, uint64_t{1} << 63), StatusCode::kCorruption) << "reserved size beyond reason";
  EXPECT_EQ(code_with(56, uint32_t{0}), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(56, uint32_t{511}), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(56, (uint32_t{16} << 20) + 1), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(60, uint32_t{0xffffffff}), StatusCode::kCorruption) << "part count";
  EXPECT_EQ(code_with(60, uint32_t{3}), StatusCode::kCorruption) << "part count";
  EXPECT_EQ(code_with(10, uint8_t{0}), StatusCode::kCorruption) << "a compressed part under codec none";
  EXPECT_EQ(code_with(72, uint32_t{512}), StatusCode::kCorruption) << "a compressed part that did not shrink";
  EXPECT_EQ(code_with(72, uint32_t{0}), StatusCode::kCorruption) << "an empty part";
  EXPECT_EQ(code_with(72, uint32_t{511} | 1U << 31), StatusCode::kCorruption) << "a raw part of the wrong size";
  EXPECT_EQ(code_with(84, uint32_t{255}), StatusCode::kCorruption) << "sizes that don't add up";
  EXPECT_EQ(code_with(8, uint16_t{3}), StatusCode::kNotSupported) << "newer version";
  EXPECT_EQ(code_with(8, uint16_t{2}), StatusCode::kCorruption) << "version 2 is that of encrypted extents";
  EXPECT_EQ(code_with(10, uint8_t{3}), StatusCode::kNotSupported) << "unknown codec";
  EXPECT_EQ(code_with(8, uint16_t{0}), StatusCode::kCorruption) << "version 0 never was";
}

TEST(ExtentTest, ImpossibleNumbersOfEncryptedExtentsAreRefused) {
  const Sample sample = MakeSample(2000, 512, Codec::kLz4, 0, true);
  const auto code_with = [&](size_t offset, auto value) {
    return ScanCode(Resealed(sample, [&](std::span<uint8_t> bytes) { StoreLittleEndian(bytes, offset, value); }));
  };
  EXPECT_EQ(code_with(32, uint64_t{2000}), StatusCode::kOk) << "resealing alone breaks nothing";
  EXPECT_EQ(code_with(88, uint64_t{0}), StatusCode::kOk) << "any salt will do";
  EXPECT_EQ(code_with(72, uint32_t{2}), StatusCode::kOk) << "whether a scheme is known is the provider's to say";
  EXPECT_EQ(code_with(11, uint8_t{0}), StatusCode::kCorruption) << "no flag";
  EXPECT_EQ(code_with(11, uint8_t{3}), StatusCode::kCorruption) << "unknown flag";
  EXPECT_EQ(code_with(8, uint16_t{1}), StatusCode::kCorruption) << "version 1 has no flags";
  EXPECT_EQ(code_with(72, uint32_t{0}), StatusCode::kCorruption) << "no scheme";
  EXPECT_EQ(code_with(76, uint32_t{0}), StatusCode::kCorruption) << "no key";
  EXPECT_EQ(code_with(80, uint32_t{0}), StatusCode::kCorruption) << "no key version";
  EXPECT_EQ(code_with(84, uint32_t{1}), StatusCode::kCorruption) << "reserved";
  EXPECT_EQ(code_with(104, uint32_t{512} | 1U << 31), StatusCode::kCorruption) << "a raw part without its check";
  EXPECT_EQ(code_with(116, uint32_t{8}), StatusCode::kCorruption) << "a compressed part of nothing but the check";
  EXPECT_EQ(code_with(40, uint64_t{2033}), StatusCode::kCorruption) << "stored total above the value and its checks";
}

TEST(ExtentTest, AReservedRangeHoldsItsExtent) {
  const Sample sample = MakeSample(65536, 65536, Codec::kNone, 4096);
  EXPECT_EQ(ScanCode(sample.bytes), StatusCode::kCorruption);
  const Sample enough = MakeSample(65536, 65536, Codec::kNone, 17 * 4096);
  EXPECT_EQ(ScanCode(enough.bytes), StatusCode::kOk);
}

TEST(ExtentTest, TheFirstReadIsEnoughAndNeverBeyondTheExtent) {
  const Locator small = MakeSample(3000, 65536).locator;
  EXPECT_EQ(FirstReadSizeBytes(small, 1 << 20), small.extent_size_bytes);
  EXPECT_EQ(FirstReadSizeBytes(small, 0), small.extent_size_bytes) << "below a block";
  const Locator large = MakeSample(10 << 20, 65536).locator;
  EXPECT_EQ(FirstReadSizeBytes(large, 1 << 20), 1U << 20);
  EXPECT_EQ(FirstReadSizeBytes(large, 0), 4096U);
  const Locator huge = MakeSample(100 << 20, 65536).locator;
  EXPECT_EQ(FirstReadSizeBytes(huge, 0), HeaderAndIndexSizeBytes(1600, false)) << "the whole index of default parts";
}

TEST(ExtentTest, PartsAreVerifiedAgainstTheIndex) {
  Sample sample = MakeSample(1024, 512, Codec::kNone);
  std::vector<uint8_t> part(512);
  std::iota(part.begin(), part.end(), uint8_t{0});
  sample.parts[1].checksum = Checksum64(part);
  sample.locator = LocatorOf(sample.header, EncodeExtentIndex(sample.header, sample.parts, {}, sample.bytes));
  const ExtentIndex index = DecodeExtentIndex(sample.bytes, sample.locator).value();
  EXPECT_TRUE(VerifyPart(index, 1, part).ok());
  part[100] ^= 1;
  // Header and index take 104 bytes, part 0 another 512.
  EXPECT_EQ(VerifyPart(index, 1, part).ToString(),
            "corruption: store 7 segment 3 offset 8808: part 1 checksum mismatch");
  part.pop_back();
  EXPECT_EQ(VerifyPart(index, 1, part).code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace quarry
