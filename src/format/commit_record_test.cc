// The commit record: bytes as docs/internals/format.md has them, and that nothing else is taken for one.
#include "quarry/commit_record.h"

#include <gtest/gtest.h>

#include <array>

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {
namespace {

using Bytes = std::array<uint8_t, kCommitRecordSizeBytes>;

Bytes Encode(const CommitRecord& named) {
  Bytes record{};
  EncodeCommitRecord(named, record);
  return record;
}

void Reseal(Bytes* record) {
  StoreLittleEndian<uint64_t>(*record, 120, Checksum64(std::span<const uint8_t>(*record).first(120)));
}

CommitRecord SomeRecord(size_t count) {
  CommitRecord record;
  record.store = StoreId{7};
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(i);
    record.extents.push_back({SegmentNumber{3 + number}, 0xabcd0000U + number, 4096 + 8 * i});
  }
  return record;
}

TEST(CommitRecordTest, WhatIsEncodedDecodesAgain) {
  for (size_t count = 1; count <= kCommitRecordExtentsMax; ++count) {
    const Result<CommitRecord> record = DecodeCommitRecord(Encode(SomeRecord(count)));
    ASSERT_TRUE(record.ok()) << record.status().ToString();
    EXPECT_EQ(*record, SomeRecord(count));
  }
}

TEST(CommitRecordTest, TheBytesAreThoseOfTheFormat) {
  const Bytes record =
      Encode({StoreId{0x0102030405060708}, {{SegmentNumber{0x11121314}, 0x31323334, 0x21222324252627a8}}});
  const std::array<uint8_t, 40> expected = {'Q',  'X',  'C',  'm',  't',  't',  '\r', '\n', 1,    0,
                                            1,    0,    0,    0,    0,    0,    0x08, 0x07, 0x06, 0x05,
                                            0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x34, 0x33,
                                            0x32, 0x31, 0xa8, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), record.begin()));
  for (size_t i = expected.size(); i < 120; ++i) EXPECT_EQ(record[i], 0) << i;
  EXPECT_EQ(LoadLittleEndian<uint64_t>(std::span<const uint8_t>(record), 120),
            Checksum64(std::span<const uint8_t>(record).first(120)));
}

TEST(CommitRecordTest, WhatDoesNotFitIsSaid) {
  std::vector<Locator> locators(kCommitRecordExtentsMax);
  EXPECT_TRUE(FitsCommitRecord(locators));
  EXPECT_FALSE(FitsCommitRecord({}));
  locators.emplace_back();
  EXPECT_FALSE(FitsCommitRecord(locators));
  std::vector<Locator> two_stores(2);
  two_stores[1].store = StoreId{8};
  EXPECT_FALSE(FitsCommitRecord(two_stores));
}

TEST(CommitRecordTest, EveryFlippedBitIsNoticed) {
  const Bytes sound = Encode(SomeRecord(4));
  for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    Bytes damaged = sound;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_EQ(DecodeCommitRecord(damaged).status().code(), StatusCode::kCorruption) << "bit " << bit;
  }
  EXPECT_EQ(DecodeCommitRecord(std::span<const uint8_t>(sound).first(127)).status().code(), StatusCode::kCorruption);
}

TEST(CommitRecordTest, ANewerVersionIsNotCalledDamage) {
  Bytes record = Encode(SomeRecord(1));
  StoreLittleEndian<uint16_t>(record, 8, 2);
  Reseal(&record);
  EXPECT_EQ(DecodeCommitRecord(record).status().code(), StatusCode::kNotSupported);
}

TEST(CommitRecordTest, TheImpossibleIsRefusedThoughItsChecksumHolds) {
  const auto expect_refused = [](const std::vector<std::pair<size_t, uint64_t>>& changes) {
    Bytes record = Encode(SomeRecord(2));
    for (const auto& [offset, value] : changes) record[offset] = static_cast<uint8_t>(value);
    Reseal(&record);
    EXPECT_EQ(DecodeCommitRecord(record).status().code(), StatusCode::kCorruption) << "at " << changes[0].first;
  };
  expect_refused({{8, 0}});            // version 0
  expect_refused({{10, 0}});           // no extent
  expect_refused({{10, 7}});           // more than there is room for
  expect_refused({{10, 1}});           // one that is not counted
  expect_refused({{12, 1}});           // reserved
  expect_refused({{16, 0}});           // store 0
  expect_refused({{24, 0}});           // segment 0
  expect_refused({{32, 1}});           // unaligned
  expect_refused({{33, 0}, {32, 8}});  // in the segment's header
  expect_refused({{39, 0x80}});        // beyond every file
  expect_refused({{24 + 2 * 16, 1}});  // behind the last
}

}  // namespace
}  // namespace quarry
