#include "cache/page_cache_rule.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace quarry {
namespace {

constexpr uint64_t kValueBytes = 64ULL << 10;

class PageCacheRuleTest : public testing::Test {
 protected:
  [[nodiscard]] bool GoesAround(uint64_t value, uint64_t size_bytes = kValueBytes) {
    return rule_.GoesAround(SplitMixWord(value * kSplitMixStep), size_bytes, now_micros_);
  }

  SystemMemory memory_{256ULL << 20, 0};
  uint64_t looks_ = 0;
  uint64_t now_micros_ = 0;
  PageCacheRule rule_{[this] {
    ++looks_;
    return memory_;
  }};
};

TEST_F(PageCacheRuleTest, SmallReadsGoThroughIt) {
  EXPECT_FALSE(GoesAround(1, PageCacheRule::kAroundMinBytes - 1));
  EXPECT_TRUE(GoesAround(1, PageCacheRule::kAroundMinBytes));
}

TEST_F(PageCacheRuleTest, WhatIsReadAgainGoesThroughIt) {
  EXPECT_TRUE(GoesAround(1));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(GoesAround(1));
  EXPECT_TRUE(GoesAround(2));
}

TEST_F(PageCacheRuleTest, AfterHalfOfTheMemoryItIsForgotten) {
  EXPECT_TRUE(GoesAround(0));
  EXPECT_TRUE(GoesAround(1));
  const uint64_t of_half = memory_.usable_bytes / 2 / kValueBytes;
  for (uint64_t value = 2; value < of_half; ++value) {
    (void)GoesAround(value);
    (void)GoesAround(0);  // what goes on being read is not
  }
  EXPECT_FALSE(GoesAround(0));
  for (uint64_t value = of_half; value < of_half + 3; ++value) (void)GoesAround(value);
  EXPECT_TRUE(GoesAround(1));
}

TEST_F(PageCacheRuleTest, WhatFitsIntoHalfOfTheMemoryIsReadAroundItOnce) {
  const uint64_t values = memory_.usable_bytes / 4 / kValueBytes;
  uint64_t around = 0;
  for (int round = 0; round < 5; ++round) {
    for (uint64_t value = 0; value < values; ++value) around += GoesAround(value) ? 1 : 0;
  }
  EXPECT_EQ(around, values);
}

TEST_F(PageCacheRuleTest, WhileMemoryIsFreeAllGoesThroughIt) {
  memory_.free_bytes = memory_.usable_bytes / PageCacheRule::kSpareShare + 1;
  EXPECT_FALSE(GoesAround(1));
  memory_.free_bytes = memory_.usable_bytes / PageCacheRule::kSpareShare;
  EXPECT_FALSE(GoesAround(2)) << "nobody looked again yet";
  now_micros_ += PageCacheRule::kLookMicros;
  EXPECT_TRUE(GoesAround(3));
}

TEST_F(PageCacheRuleTest, TheMemoryIsLookedAtTenTimesASecond) {
  const uint64_t before = looks_;
  for (uint64_t value = 0; value < 10'000; ++value) {
    now_micros_ += 100;
    (void)GoesAround(value);
  }
  EXPECT_LE(looks_ - before, 11U);
  EXPECT_GE(looks_ - before, 9U);
}

TEST_F(PageCacheRuleTest, WhereNothingIsKnownOfTheMemoryLargeReadsGoAroundIt) {
  PageCacheRule rule([] { return SystemMemory(); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rule.GoesAround(1, kValueBytes, 0));
}

}  // namespace
}  // namespace quarry
