// Trailer and field: what is written comes back, raw values never pass for heads, and damage is an error.
#include "quarry/locator.h"

#include <gtest/gtest.h>

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
  locator.extent_size_bytes = 50000;
  locator.value_size_bytes = 100000;
  locator.index_checksum = 0xdeadbeef;
  locator.value_sample = 0xcafef00d;
  return locator;
}

std::vector<uint8_t> Head(const std::string& prefix, const Locator& locator) {
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

TEST(LocatorTest, OfAnEncryptedExtentVersion2IsWritten) {
  Locator locator = SomeLocator();
  EXPECT_EQ(Head("", locator)[40], 1);
  locator.encrypted = true;
  const std::vector<uint8_t> head = Head("", locator);
  EXPECT_EQ(head[40], 2);
  EXPECT_EQ(head[42], 1);
  EXPECT_EQ(DecodeField(head).value().locator, locator);
  for (const uint8_t flags : {uint8_t{0}, uint8_t{2}, uint8_t{3}}) {
    EXPECT_EQ(DecodeField(Resealed(head, 42, flags)).status().code(), StatusCode::kCorruption);
  }
  EXPECT_EQ(DecodeField(Resealed(head, 40, 1)).status().code(), StatusCode::kCorruption) << "version 1 has no flags";
}

TEST(LocatorTest, RoundTripsWithAndWithoutPrefix) {
  for (const std::string prefix : {"", "raw prefix"}) {
    const std::vector<uint8_t> head = Head(prefix, SomeLocator());
    EXPECT_TRUE(EndsLikeHead(head));
    const DecodedField field = DecodeField(head).value();
    EXPECT_TRUE(field.is_head);
    EXPECT_EQ(field.locator, SomeLocator());
    EXPECT_EQ(std::string(field.prefix.begin(), field.prefix.end()), prefix);
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

TEST(LocatorTest, EveryFlippedBitIsNoticed) {
  const std::vector<uint8_t> head = Head("p", SomeLocator());
  for (size_t bit = 8; bit < head.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = head;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    const Result<DecodedField> field = DecodeField(damaged);
    // A flip in the magic makes it a raw value, which the caller's schema can't tell: anything else is an error.
    if (bit / 8 >= 1 + 56) {
      EXPECT_TRUE(field.ok() && !field->is_head) << bit;
    } else {
      EXPECT_EQ(field.status().code(), StatusCode::kCorruption) << bit;
    }
  }
}

TEST(LocatorTest, WhatIsShorterThanATrailerIsRawWhateverItEndsIn) {
  const std::vector<uint8_t> head = Head("", SomeLocator());
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
  const Status status = DecodeField(Resealed(Head("", SomeLocator()), 40, 3)).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_NE(status.message().find("version 3"), std::string::npos) << status.message();
  EXPECT_EQ(DecodeField(Resealed(Head("", SomeLocator()), 40, 0)).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(DecodeField(Resealed(Head("", SomeLocator()), 43, 1)).status().code(), StatusCode::kCorruption);
}

TEST(LocatorTest, ImpossibleLocatorsAreRefusedThoughTheChecksumHolds) {
  const auto code = [](const Locator& locator) { return DecodeField(Head("", locator)).status().code(); };
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
  locator.value_size_bytes = kValueSizeMaxBytes + 1;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator = SomeLocator();
  locator.extent_size_bytes = ExtentSizeMaxBytes(locator.value_size_bytes, kPartSizeMinBytes, false);
  EXPECT_EQ(code(locator), StatusCode::kOk);
  ++locator.extent_size_bytes;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
  locator.encrypted = true;
  EXPECT_EQ(code(locator), StatusCode::kOk) << "key, salt and checks take more";
  locator.encrypted = false;
  locator.extent_size_bytes = HeaderAndIndexSizeBytes(0, false) - 1;
  EXPECT_EQ(code(locator), StatusCode::kCorruption);
}

TEST(LocatorTest, TheSampleIsWhatTheFormatSays) {
  // docs/format.md, computed the long way round.
  for (const size_t size : {0, 1, 4095, 4096, 4097, 8191, 8192, 100000}) {
    std::vector<uint8_t> value(size);
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<uint8_t>(i * 7 + i / 251);
    std::vector<uint8_t> sampled(8);
    StoreLittleEndian(std::span<uint8_t>(sampled), 0, static_cast<uint64_t>(size));
    for (size_t i = 0; i < size && i < 4096; ++i) sampled.push_back(value[i]);
    for (size_t i = size < 4096 ? 0 : size - 4096; i < size; ++i) sampled.push_back(value[i]);
    EXPECT_EQ(SampleValue(value), static_cast<uint32_t>(Checksum64(sampled))) << size;
  }
}

TEST(LocatorTest, TheSampleSeesSizeAndBothEndsButNotTheMiddle) {
  const std::vector<uint8_t> value(10000, 'x');
  const auto sample_with = [&value](size_t changed) {
    std::vector<uint8_t> other = value;
    other[changed] = 'y';
    return SampleValue(other);
  };
  for (const size_t seen : {0, 4095, 5904, 9999}) EXPECT_NE(sample_with(seen), SampleValue(value)) << seen;
  for (const size_t unseen : {4096, 5903}) EXPECT_EQ(sample_with(unseen), SampleValue(value)) << unseen;
  EXPECT_NE(SampleValue(std::vector<uint8_t>(10001, 'x')), SampleValue(value));
}

TEST(LocatorTest, AnySampleIsAccepted) {
  Locator locator = SomeLocator();
  for (const uint32_t sample : {0U, 1U, 0xffffffffU}) {
    locator.value_sample = sample;
    EXPECT_EQ(DecodeField(Head("", locator)).value().locator.value_sample, sample);
  }
}

TEST(LocatorTest, TextThatEndsInTheMagicIsRecognised) {
  const std::vector<uint8_t> head = Head("", SomeLocator());
  for (const size_t size : {kTrailerSizeBytes, size_t{1000}}) {
    std::vector<uint8_t> raw(size, 'x');
    std::copy(head.end() - 8, head.end(), raw.end() - 8);
    EXPECT_TRUE(EndsLikeHead(raw)) << "such a value must go out of line, since it would not decode";
    EXPECT_EQ(DecodeField(raw).status().code(), StatusCode::kCorruption);
  }
}

}  // namespace
}  // namespace quarry
