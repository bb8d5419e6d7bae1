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

constexpr SegmentOrigin kOrigin{StoreId{7}, SegmentNumber{3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

// An extent with a content of `content_size` bytes whose odd parts are compressed to half.
Sample MakeSample(uint64_t content_size, uint32_t part_size, Codec codec = Codec::kLz4, bool encrypted = false) {
  Sample sample;
  ExtentHeader& header = sample.header;
  header.store = kOrigin.store;
  header.segment = kOrigin.segment;
  header.offset_bytes = 8192;
  header.identity = 0x1122334455667788;
  header.content_size_bytes = content_size;
  header.prefix_size_bytes = 77;
  header.part_size_bytes = part_size;
  header.part_count = PartCount(content_size, part_size);
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
  EncodeExtentIndex(header, sample.parts, sample.cipher, kOrigin.salt, sample.bytes);
  header.index_checksum = LoadLittleEndian<uint64_t>(sample.bytes, 64);
  sample.locator = LocatorOf(header);
  return sample;
}

// Makes checksum and tag right again, as a writer gone mad would.
void Reseal(std::span<uint8_t> all, const SegmentSalt& salt) {
  StoreLittleEndian(all, 64, Checksum64(all.subspan(kExtentHeaderSizeBytes)));
  std::vector<uint8_t> salted(salt.begin(), salt.end());
  salted.insert(salted.end(), all.begin(), all.begin() + 72);
  StoreLittleEndian(all, 72, Checksum64(salted));
}

std::vector<uint8_t> Resealed(const Sample& sample, const std::function<void(std::span<uint8_t>)>& change) {
  std::vector<uint8_t> bytes = sample.bytes;
  change(bytes);
  Reseal(bytes, kOrigin.salt);
  return bytes;
}

StatusCode ScanCode(std::span<const uint8_t> bytes) { return DecodeExtentIndex(bytes, kOrigin, 8192).status().code(); }

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
  EXPECT_EQ(ExtentSpaceBytes(sample.header), NextExtentOffsetBytes(sample.header) - 8192);
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
        const Sample sample = MakeSample(size, part_size, codec, encrypted);
        std::vector<uint8_t> longer = sample.bytes;
        longer.resize(longer.size() + 100, 0xee);  // the parts, which decoding the index ignores
        const ExtentIndex index = DecodeExtentIndex(longer, sample.locator, kOrigin.salt).value();
        EXPECT_EQ(index.header, sample.header);
        EXPECT_EQ(index.parts, sample.parts);
        EXPECT_EQ(index.cipher, sample.cipher);
        EXPECT_EQ(DecodeExtentHeader(longer, sample.locator, kOrigin.salt).value(), sample.header);
        EXPECT_EQ(DecodeExtentIndex(longer, kOrigin, 8192)->parts, sample.parts);
        EXPECT_TRUE(StartsLikeExtent(longer));
        EXPECT_EQ(sample.locator.value_size_bytes, size + 77);
        EXPECT_EQ(sample.locator.content_size_bytes(), size);
        EXPECT_EQ(sample.locator.identity, sample.header.identity);
        EXPECT_EQ(sample.locator.extent_size_bytes, ExtentSpaceBytes(sample.header));
      }
    }
  }
}

void ExpectEveryFlippedBitIsNoticed(const Sample& sample) {
  for (size_t bit = 0; bit < sample.bytes.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = sample.bytes;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_EQ(DecodeExtentIndex(damaged, sample.locator, kOrigin.salt).status().code(), StatusCode::kCorruption) << bit;
    EXPECT_EQ(ScanCode(damaged), StatusCode::kCorruption) << bit;
    const bool in_header = bit / 8 < kExtentHeaderSizeBytes;
    EXPECT_EQ(DecodeExtentHeader(damaged, sample.locator, kOrigin.salt).ok(), !in_header) << bit;
  }
}

TEST(ExtentTest, EveryFlippedBitIsNoticed) {
  ExpectEveryFlippedBitIsNoticed(MakeSample(2000, 512));
  ExpectEveryFlippedBitIsNoticed(MakeSample(2000, 512, Codec::kLz4, true));
}

TEST(ExtentTest, EveryCutOffLengthIsNoticed) {
  const Sample sample = MakeSample(2000, 512);
  for (size_t size = 0; size < sample.bytes.size(); ++size) {
    const auto cut = std::span<const uint8_t>(sample.bytes).first(size);
    EXPECT_EQ(DecodeExtentIndex(cut, sample.locator, kOrigin.salt).status().code(), StatusCode::kCorruption) << size;
    EXPECT_EQ(ScanCode(cut), StatusCode::kCorruption) << size;
  }
}

TEST(ExtentTest, AnotherExtentIsNotTheOneAskedFor) {
  const Sample sample = MakeSample(2000, 512);
  Locator wanted = sample.locator;
  const auto code = [&] { return DecodeExtentIndex(sample.bytes, wanted, kOrigin.salt).status().code(); };
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
  ++wanted.prefix_size_bytes;
  EXPECT_EQ(code(), StatusCode::kCorruption) << "as much content, but behind another prefix";
  wanted = sample.locator;
  wanted.identity ^= 1;
  EXPECT_EQ(code(), StatusCode::kCorruption);
  wanted = sample.locator;
  wanted.extent_size_bytes += 8;
  EXPECT_EQ(code(), StatusCode::kOk) << "it may have been encoded anew";
}

// Whoever has no salt makes no extent, whatever else is known of the place.
TEST(ExtentTest, OfAnotherSaltThereIsNoExtent) {
  std::vector<uint8_t> bytes = MakeSample(2000, 512).bytes;
  SegmentOrigin other = kOrigin;
  other.salt[15] ^= 1;
  EXPECT_EQ(DecodeExtentHeader(bytes, other, 8192).status().code(), StatusCode::kCorruption);
  Reseal(bytes, other.salt);
  EXPECT_TRUE(DecodeExtentIndex(bytes, other, 8192).ok());
  EXPECT_EQ(ScanCode(bytes), StatusCode::kCorruption);
  Reseal(bytes, {});
  EXPECT_EQ(ScanCode(bytes), StatusCode::kCorruption);
}

TEST(ExtentTest, ACommitTagIsMadeOfSaltAndIdentity) {
  std::vector<uint8_t> salted(kOrigin.salt.begin(), kOrigin.salt.end());
  salted.resize(24);
  StoreLittleEndian(std::span<uint8_t>(salted), 16, uint64_t{0x1122334455667788});
  EXPECT_EQ(CommitTagOf(kOrigin.salt, 0x1122334455667788), static_cast<uint32_t>(Checksum64(salted)));
}

TEST(ExtentTest, ImpossibleNumbersAreRefusedThoughTheChecksumsHold) {
  const Sample sample = MakeSample(2000, 512);
  const auto code_with = [&](size_t offset, auto value) {
    return ScanCode(Resealed(sample, [&](std::span<uint8_t> bytes) { StoreLittleEndian(bytes, offset, value); }));
  };
  EXPECT_EQ(code_with(40, uint32_t{2000}), StatusCode::kOk) << "resealing alone breaks nothing";
  EXPECT_EQ(code_with(11, uint8_t{2}), StatusCode::kCorruption) << "unknown flag";
  EXPECT_EQ(code_with(32, uint64_t{0}), StatusCode::kCorruption) << "no identity";
  EXPECT_EQ(code_with(32, uint64_t{1}), StatusCode::kOk) << "any other identity";
  EXPECT_EQ(code_with(40, ~uint32_t{0}), StatusCode::kCorruption) << "content size";
  EXPECT_EQ(code_with(44, uint32_t{65535}), StatusCode::kOk) << "the longest prefix";
  EXPECT_EQ(code_with(44, uint32_t{65536}), StatusCode::kCorruption) << "prefix size";
  EXPECT_EQ(code_with(48, uint64_t{2001}), StatusCode::kCorruption) << "stored total above the content";
  EXPECT_EQ(code_with(48, uint64_t{3}), StatusCode::kCorruption) << "stored total below the part count";
  EXPECT_EQ(code_with(56, uint32_t{0}), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(56, uint32_t{511}), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(56, (uint32_t{16} << 20) + 1), StatusCode::kCorruption) << "part size";
  EXPECT_EQ(code_with(60, uint32_t{0xffffffff}), StatusCode::kCorruption) << "part count";
  EXPECT_EQ(code_with(60, uint32_t{3}), StatusCode::kCorruption) << "part count";
  EXPECT_EQ(code_with(10, uint8_t{0}), StatusCode::kCorruption) << "a compressed part under codec none";
  EXPECT_EQ(code_with(80, uint32_t{512}), StatusCode::kCorruption) << "a compressed part that did not shrink";
  EXPECT_EQ(code_with(80, uint32_t{0}), StatusCode::kCorruption) << "an empty part";
  EXPECT_EQ(code_with(80, uint32_t{511} | 1U << 31), StatusCode::kCorruption) << "a raw part of the wrong size";
  EXPECT_EQ(code_with(92, uint32_t{255}), StatusCode::kCorruption) << "sizes that don't add up";
  EXPECT_EQ(code_with(8, uint16_t{2}), StatusCode::kNotSupported) << "newer version";
  EXPECT_EQ(code_with(10, uint8_t{3}), StatusCode::kNotSupported) << "unknown codec";
  EXPECT_EQ(code_with(8, uint16_t{0}), StatusCode::kCorruption) << "version 0 never was";
}

TEST(ExtentTest, ImpossibleNumbersOfEncryptedExtentsAreRefused) {
  const Sample sample = MakeSample(2000, 512, Codec::kLz4, true);
  const auto code_with = [&](size_t offset, auto value) {
    return ScanCode(Resealed(sample, [&](std::span<uint8_t> bytes) { StoreLittleEndian(bytes, offset, value); }));
  };
  EXPECT_EQ(code_with(40, uint32_t{2000}), StatusCode::kOk) << "resealing alone breaks nothing";
  EXPECT_EQ(code_with(96, uint64_t{0}), StatusCode::kOk) << "any salt will do";
  EXPECT_EQ(code_with(80, uint32_t{2}), StatusCode::kOk) << "whether a scheme is known is the provider's to say";
  EXPECT_EQ(code_with(11, uint8_t{0}), StatusCode::kCorruption) << "no flag";
  EXPECT_EQ(code_with(11, uint8_t{3}), StatusCode::kCorruption) << "unknown flag";
  EXPECT_EQ(code_with(80, uint32_t{0}), StatusCode::kCorruption) << "no scheme";
  EXPECT_EQ(code_with(84, uint32_t{0}), StatusCode::kCorruption) << "no key";
  EXPECT_EQ(code_with(88, uint32_t{0}), StatusCode::kCorruption) << "no key version";
  EXPECT_EQ(code_with(92, uint32_t{1}), StatusCode::kCorruption) << "reserved";
  EXPECT_EQ(code_with(112, uint32_t{512} | 1U << 31), StatusCode::kCorruption) << "a raw part without its check";
  EXPECT_EQ(code_with(124, uint32_t{8}), StatusCode::kCorruption) << "a compressed part of nothing but the check";
  EXPECT_EQ(code_with(48, uint64_t{2033}), StatusCode::kCorruption) << "stored total above the content and its checks";
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
  EncodeExtentIndex(sample.header, sample.parts, {}, kOrigin.salt, sample.bytes);
  const ExtentIndex index = DecodeExtentIndex(sample.bytes, sample.locator, kOrigin.salt).value();
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
