// Trailer and field: what is written comes back, raw values never pass for heads, and damage is an error.
#include "quarry/locator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"

namespace quarry {
namespace {

Locator SomeLocator() {
  Locator locator;
  locator.store = StoreId{0x1122334455667788};
  locator.segment = SegmentNumber{9};
  locator.offset_bytes = 4096;
  locator.identity = 0xdeadbeefcafef00d;
  locator.extent_size_bytes = 50000;
  locator.value_size_bytes = 100000;
  locator.value_checksum = 0xcafef00d;
  return locator;
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// `locator` of a value that begins with `prefix`.
Locator Behind(const std::string& prefix, Locator locator = SomeLocator()) {
  locator.prefix_size_bytes = static_cast<uint16_t>(prefix.size());
  locator.prefix_tag = Checksum32(BytesOf(prefix));
  return locator;
}

std::vector<uint8_t> HeadOf(const std::string& prefix, const Locator& locator) {
  std::vector<uint8_t> head(prefix.begin(), prefix.end());
  std::array<uint8_t, kTrailerSizeBytes> trailer{};
  EncodeTrailer(locator, trailer);
  head.insert(head.end(), trailer.begin(), trailer.end());
  return head;
}

// A trailer with its 48 checked bytes changed and the checksum made right again.
std::vector<uint8_t> Resealed(std::vector<uint8_t> head, size_t offset, uint8_t byte) {
  const std::span<uint8_t> trailer = std::span<uint8_t>(head).last(kTrailerSizeBytes);
  trailer[offset] = byte;
  StoreLittleEndian(trailer, 48, Checksum64(trailer.first(48)));
  return head;
}

TEST(LocatorTest, TheBytesAreThoseOfTheFormat) {
  Locator locator = SomeLocator();
  locator.offset_bytes = 0x21222324252627a8;
  locator.identity = 0x3132333435363738;
  locator.value_size_bytes = 0x41424344;
  locator.extent_size_bytes = 8ULL * 0x0a424344;
  locator.prefix_tag = 0x61626364;
  locator.prefix_size_bytes = 0x7172;
  const std::vector<uint8_t> head = HeadOf("", locator);
  const std::vector<uint8_t> expected = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xa8, 0x27, 0x26, 0x25,
                                         0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
                                         0x44, 0x43, 0x42, 0x41, 9,    0,    0,    0,    0x44, 0x43, 0x42, 0x0a,
                                         0x64, 0x63, 0x62, 0x61, 1,    0,    0x72, 0x71, 0x0d, 0xf0, 0xfe, 0xca};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), head.begin()));
  EXPECT_EQ(LoadLittleEndian<uint64_t>(head, 48), Checksum64(std::span<const uint8_t>(head).first(48)));
}

TEST(LocatorTest, RoundTripsWithAndWithoutPrefix) {
  for (const std::string prefix : {"", "raw prefix"}) {
    const std::vector<uint8_t> head = HeadOf(prefix, Behind(prefix));
    EXPECT_TRUE(EndsLikeHead(head));
    const DecodedField field = DecodeField(head).value();
    EXPECT_TRUE(field.is_head);
    EXPECT_EQ(field.locator, Behind(prefix));
    EXPECT_EQ(field.locator.content_size_bytes(), 100000 - prefix.size());
    EXPECT_EQ(std::string(field.prefix.begin(), field.prefix.end()), prefix);
    EXPECT_EQ(CheckPrefix(field.head()).value(), Checksum64(BytesOf(prefix)));
  }
}

TEST(LocatorTest, RawValuesStayRaw) {
  const std::vector<std::string> values = {"", "a", "short text", std::string(1000, 'x'), std::string(64, '\0')};
  for (const std::string& value : values) {
    const std::vector<uint8_t> raw(value.begin(), value.end());
    EXPECT_FALSE(EndsLikeHead(raw));
    const DecodedField field = DecodeField(raw).value();
    EXPECT_FALSE(field.is_head);
    EXPECT_EQ(std::vector<uint8_t>(field.prefix.begin(), field.prefix.end()), raw);
  }
}

// The trailer's tag covers the trailer, which is enough for all that does not use the prefix.
TEST(LocatorTest, EveryFlippedBitIsNoticedByWhoUsesIt) {
  const std::vector<uint8_t> head = HeadOf("prefix", Behind("prefix"));
  for (size_t bit = 0; bit < head.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = head;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    const Result<DecodedField> field = DecodeField(damaged);
    if (bit / 8 < 6) {
      ASSERT_TRUE(field.ok() && field->is_head) << bit;
      EXPECT_EQ(field->locator, Behind("prefix"));
      EXPECT_EQ(CheckPrefix(field->head()).status().code(), StatusCode::kCorruption) << bit;
    } else if (bit / 8 >= 6 + 56) {
      // A flip in the magic makes it a raw value, which the caller's schema can't tell.
      EXPECT_TRUE(field.ok() && !field->is_head) << bit;
    } else {
      EXPECT_EQ(field.status().code(), StatusCode::kCorruption) << bit;
    }
  }
}

TEST(LocatorTest, APrefixOfAnotherSizeIsDamage) {
  const std::vector<uint8_t> head = HeadOf("prefix", Behind("prefix"));
  EXPECT_EQ(DecodeField(std::span<const uint8_t>(head).subspan(1)).status().code(), StatusCode::kCorruption);
  std::vector<uint8_t> longer = head;
  longer.insert(longer.begin(), 'x');
  EXPECT_EQ(DecodeField(longer).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(CheckPrefix({Behind("prefix"), BytesOf("prefi")}).status().code(), StatusCode::kCorruption);
}

TEST(LocatorTest, WhatIsShorterThanATrailerIsRawWhateverItEndsIn) {
  const std::vector<uint8_t> head = HeadOf("", SomeLocator());
  for (size_t size = 1; size < kTrailerSizeBytes; ++size) {
    const std::span<const uint8_t> tail = std::span<const uint8_t>(head).last(size);
    EXPECT_FALSE(EndsLikeHead(tail)) << size;
    const DecodedField field = DecodeField(tail).value();
    EXPECT_FALSE(field.is_head) << size;
    EXPECT_EQ(field.prefix.data(), tail.data());
    EXPECT_EQ(field.prefix.size(), size);
  }
  EXPECT_TRUE(EndsLikeHead(head));
}

TEST(LocatorTest, ANewerVersionIsNamed) {
  const Status status = DecodeField(Resealed(HeadOf("", SomeLocator()), 40, 3)).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_NE(status.message().find("version 3"), std::string::npos) << status.message();
  EXPECT_EQ(DecodeField(Resealed(HeadOf("", SomeLocator()), 40, 0)).status().code(), StatusCode::kCorruption);
}

TEST(LocatorTest, ImpossibleLocatorsAreRefusedThoughTheChecksumHolds) {
  const auto code = [](const Locator& locator) { return DecodeField(HeadOf("", locator)).status().code(); };
  Locator locator = SomeLocator();
  locator.store = StoreId{0};
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.segment = SegmentNumber{0};
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.offset_bytes = 4097;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.offset_bytes = ~uint64_t{7};
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.identity = 0;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.value_size_bytes = 99992;
  // Key, salt and checks included: GC may encode it anew.
  locator.extent_size_bytes = RoundUpToExtent(ExtentSizeMaxBytes(99992, kPartSizeMinBytes, true));
  EXPECT_EQ(code(locator), StatusCode::kOk);
  locator.extent_size_bytes += 8;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator.extent_size_bytes = HeaderAndIndexSizeBytes(0, false) - 8;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = Behind("longer than the value");
  locator.value_size_bytes = 20;
  EXPECT_EQ(DecodeField(HeadOf("longer than the value", locator)).status().code(), StatusCode::kCorruption);
}

TEST(LocatorTest, TheValueChecksumIsWhatTheFormatSays) {
  // docs/internals/format.md, computed the long way round.
  const auto fold = [](uint64_t before, uint64_t checksum) {
    std::vector<uint8_t> pair(16);
    StoreLittleEndian(std::span<uint8_t>(pair), 0, before);
    StoreLittleEndian(std::span<uint8_t>(pair), 8, checksum);
    return Checksum64(pair);
  };
  for (const size_t size : {0, 1, 511, 512, 513, 1024, 2000}) {
    std::vector<uint8_t> value(size);
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<uint8_t>(i * 7 + i / 251);
    for (const size_t prefix : {size_t{0}, size / 3, size}) {
      const std::span<const uint8_t> all(value);
      uint64_t running = fold(size, Checksum64(all.first(prefix)));
      for (size_t at = prefix; at < size; at += 512) {
        running = fold(running, Checksum64(all.subspan(at, std::min<size_t>(512, size - at))));
      }
      EXPECT_EQ(ValueChecksumOf(value, static_cast<uint32_t>(prefix), 512), static_cast<uint32_t>(running)) << size;
    }
  }
}

TEST(LocatorTest, TheValueChecksumSeesEveryByte) {
  const std::vector<uint8_t> value(3000, 'x');
  for (size_t changed = 0; changed < value.size(); changed += 7) {
    std::vector<uint8_t> other = value;
    other[changed] = 'y';
    EXPECT_NE(ValueChecksumOf(other, 100, 1024), ValueChecksumOf(value, 100, 1024)) << changed;
  }
  EXPECT_NE(ValueChecksumOf(std::vector<uint8_t>(3001, 'x'), 100, 1024), ValueChecksumOf(value, 100, 1024));
}

TEST(LocatorTest, TextThatEndsInTheMagicIsRecognised) {
  const std::vector<uint8_t> head = HeadOf("", SomeLocator());
  for (const size_t size : {kTrailerSizeBytes, size_t{1000}}) {
    std::vector<uint8_t> raw(size, 'x');
    std::copy(head.end() - 8, head.end(), raw.end() - 8);
    EXPECT_TRUE(EndsLikeHead(raw)) << "such a value must go out of line, since it would not decode";
    EXPECT_EQ(DecodeField(raw).status().code(), StatusCode::kCorruption);
  }
}

}  // namespace
}  // namespace quarry
