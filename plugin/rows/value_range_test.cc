#include "rows/value_range.h"

#include <gtest/gtest.h>

namespace quarry {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kToTheEnd = RangeRequest::kToTheEnd;

ByteRange Single(int64_t position, int64_t length, uint64_t size) { return RangeOf({position, length}, size, 1); }

TEST(ValueRangeTest, PositionsCountFromOneOrFromTheEnd) {
  EXPECT_EQ(Single(1, 10, 100), (ByteRange{0, 10}));
  EXPECT_EQ(Single(100, 10, 100), (ByteRange{99, 100}));
  EXPECT_EQ(Single(-10, 4, 100), (ByteRange{90, 94}));
  EXPECT_EQ(Single(-100, kToTheEnd, 100), (ByteRange{0, 100}));
  EXPECT_EQ(Single(51, kToTheEnd, 100), (ByteRange{50, 100}));
  EXPECT_EQ(Single(-101, 101, 100), (ByteRange{0, 100}));  // RIGHT(value, 101)
  EXPECT_EQ(Single(kMin, kToTheEnd, 100), (ByteRange{0, 100}));
}

TEST(ValueRangeTest, WhatGivesAnEmptyStringNeedsNothing) {
  for (const int64_t position : {int64_t{0}, int64_t{101}, kToTheEnd}) {
    EXPECT_TRUE(Single(position, 10, 100).empty()) << position;
  }
  for (const int64_t length : {kMin, int64_t{-1}, int64_t{0}}) EXPECT_TRUE(Single(1, length, 100).empty()) << length;
  EXPECT_TRUE(Single(1, 10, 0).empty());
  EXPECT_TRUE(RangeOf({0, 10}, 100, 4).empty());
  EXPECT_TRUE(RangeOf({5, 0}, 100, 4).empty());
}

// The server's own arithmetic (Item_func_substr::val_str), done here byte by byte.
TEST(ValueRangeTest, HoldsWhatSubstringTakes) {
  for (int64_t size = 0; size <= 8; size++) {
    for (int64_t position = -10; position <= 10; position++) {
      for (int64_t length = -1; length <= 10; length++) {
        const ByteRange range = Single(position, length, static_cast<uint64_t>(size));
        EXPECT_TRUE(range.empty() || range.end <= static_cast<uint64_t>(size));
        const int64_t start = position < 0 ? size + position : position - 1;
        for (int64_t i = 0; i < size; i++) {
          const bool taken = start >= 0 && i >= start && i < start + length;
          const bool held =
              !range.empty() && static_cast<uint64_t>(i) >= range.begin && static_cast<uint64_t>(i) < range.end;
          const bool before_the_first = start < 0 && position < 0;
          EXPECT_TRUE(taken == held || before_the_first) << size << " " << position << " " << length << " " << i;
        }
      }
    }
  }
}

TEST(ValueRangeTest, CharactersOfSeveralBytesAreCountedFromTheStart) {
  // Nine characters of at most four bytes, and one more whose bytes tell where the ninth ends.
  EXPECT_EQ(RangeOf({5, 5}, 1000, 4), (ByteRange{0, 40}));
  EXPECT_EQ(RangeOf({300, 5}, 1000, 4), (ByteRange{0, 1000}));
  EXPECT_EQ(RangeOf({-1, 1}, 1000, 4), (ByteRange{0, 1000}));
  EXPECT_EQ(RangeOf({kToTheEnd, kToTheEnd}, 1000, 4), (ByteRange{0, 1000}));
}

ValueShape Shape(uint64_t size, uint64_t prefix, uint32_t part) { return {size, prefix, 1, part}; }

TEST(ValueRangeTest, ChoosesRangesOnlyWhereTheySpareReading) {
  std::vector<ByteRange> ranges;
  EXPECT_FALSE(ChooseRanges({{1, 1}}, Shape(kRangeValueMinBytes - 1, 0, 4096), &ranges));
  EXPECT_TRUE(ChooseRanges({{1, 1}}, Shape(kRangeValueMinBytes, 0, 4096), &ranges));
  // A byte costs its part.
  EXPECT_FALSE(ChooseRanges({{1, 1}}, Shape(100000, 0, 65536), &ranges));
  EXPECT_TRUE(ChooseRanges({{1, 1}}, Shape(131072, 0, 65536), &ranges));
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{0, 1}}));
  EXPECT_TRUE(ChooseRanges({{1, 50000}}, Shape(100000, 0, 10000), &ranges));
  EXPECT_FALSE(ChooseRanges({{1, 50001}}, Shape(100000, 0, 10000), &ranges));
}

TEST(ValueRangeTest, ThePrefixIsNotRead) {
  std::vector<ByteRange> ranges;
  EXPECT_TRUE(ChooseRanges({{1, 500}, {3, 200}}, Shape(100000, 500, 65536), &ranges));
  EXPECT_TRUE(ranges.empty());
  EXPECT_TRUE(ChooseRanges({{1, 501}}, Shape(200000, 500, 65536), &ranges));
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{500, 501}}));
  // Of a value that is short, too.
  EXPECT_TRUE(ChooseRanges({{1, 500}}, Shape(2000, 500, 512), &ranges));
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ChooseRanges({{1, 501}}, Shape(2000, 500, 512), &ranges));
}

TEST(ValueRangeTest, RangesComeInOrderAndNoPartTwice) {
  std::vector<ByteRange> ranges;
  const ValueShape shape = Shape(1000000, 0, 1000);
  EXPECT_TRUE(ChooseRanges({{-100, 10}, {50001, 100}, {1, 10}, {50051, 2000}, {901, 10}}, shape, &ranges));
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{0, 910}, {50000, 52050}, {999900, 999910}}));
}

}  // namespace
}  // namespace quarry
