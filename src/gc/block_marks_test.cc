#include "gc/block_marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace quarry {
namespace {

TEST(BlockMarksTest, AgreesWithAPlainArray) {
  std::mt19937_64 random(1);
  for (const uint64_t blocks : {1, 63, 64, 65, 200, 1000}) {
    for (int round = 0; round < 50; ++round) {
      BlockMarks marks(blocks);
      std::vector<bool> plain(blocks);
      EXPECT_TRUE(marks.empty());
      for (uint64_t count = random() % 5; count > 0; --count) {
        const uint64_t begin = random() % blocks;
        const uint64_t end = begin + 1 + random() % (blocks - begin);
        marks.Mark(begin, end);
        std::fill(plain.begin() + static_cast<ptrdiff_t>(begin), plain.begin() + static_cast<ptrdiff_t>(end), true);
        EXPECT_FALSE(marks.empty());
      }
      EXPECT_EQ(marks.CountMarked(), static_cast<uint64_t>(std::count(plain.begin(), plain.end(), true)));
      uint64_t at = random() % (blocks + 1);
      while (true) {
        const BlockMarks::Range range = marks.NextUnmarked(at);
        while (at < blocks && plain[at]) ++at;
        ASSERT_EQ(range.begin, at);
        while (at < blocks && !plain[at]) ++at;
        ASSERT_EQ(range.end, at);
        if (range.begin == range.end) break;
      }
    }
  }
}

TEST(BlockMarksTest, AnEmptyRangeMarksNothing) {
  BlockMarks marks(10);
  marks.Mark(3, 3);
  EXPECT_TRUE(marks.empty());
  EXPECT_EQ(marks.NextUnmarked(0).end, 10U);
}

}  // namespace
}  // namespace quarry
