#include "store/page_cache_share.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace quarry {
namespace {

uint64_t HashOfValue(uint64_t number) { return SplitMixWord((number + 1) * kSplitMixStep); }

class PageCacheShareTest : public testing::Test {
 protected:
  /// As SegmentReader does: true when the read went through the page cache.
  bool Read(uint64_t hash, bool is_cached, uint32_t pct = 100) {
    if (is_cached) {
      share_.NoteFound(hash);
      return false;
    }
    if (share_.NoteMissed(hash)) ++losses_;
    if (!share_.Draw(pct)) return false;
    share_.NotePut(hash);
    return true;
  }
  /// Such reads of one watched extent: each is lost.
  void Lose(int times) {
    for (int i = 0; i < times; ++i) {
      share_.NotePut(kWatched);
      EXPECT_TRUE(share_.NoteMissed(kWatched));
    }
  }

  struct Steady {
    double through = 0;  ///< the page cache, of all reads
    double found = 0;    ///< in it
  };
  /// Random reads of `values` values where the page cache holds the last `kept` that went through it; of their last
  /// quarter.
  Steady ReadAtRandom(uint64_t values, size_t kept, uint64_t reads) {
    std::vector<uint64_t> held(kept, UINT64_MAX);  // a ring
    std::vector<bool> is_held(values);
    size_t next = 0;
    Steady steady;
    const double one = 4.0 / static_cast<double>(reads);
    for (uint64_t i = 0; i < reads; ++i) {
      const double counted = i >= reads / 4 * 3 ? one : 0;
      const uint64_t value = SplitMixWord((i + 1) * kSplitMixStep) % values;
      if (is_held[value]) steady.found += counted;
      if (!Read(HashOfValue(value), is_held[value], 10)) continue;
      steady.through += counted;
      if (held[next] != UINT64_MAX) is_held[held[next]] = false;
      held[next] = value;
      is_held[value] = true;
      next = (next + 1) % kept;
    }
    return steady;
  }

  static constexpr uint64_t kWatched = 40U * PageCacheShare::kWatchedOf + (7ULL << 32U);
  PageCacheShare share_;
  int losses_ = 0;
};

TEST_F(PageCacheShareTest, TheShareThatIsAskedForIsGiven) {
  for (const uint32_t pct : {0U, 1U, 10U, 50U, 100U}) {
    int drawn = 0;
    for (int i = 0; i < 100000; ++i) drawn += share_.Draw(pct) ? 1 : 0;
    EXPECT_NEAR(drawn, pct * 1000, 600) << pct;
  }
}

TEST_F(PageCacheShareTest, WhatIsReadOnceTeachesNothing) {
  for (uint64_t i = 0; i < 200000; ++i) Read(HashOfValue(i), false);
  EXPECT_EQ(losses_, 0);
  EXPECT_EQ(share_.factor(), 1.0);
}

TEST_F(PageCacheShareTest, LossesLowerItToItsLeastAndNoFurther) {
  Lose(4);
  EXPECT_DOUBLE_EQ(share_.factor(), 0.5);
  Lose(1000);
  EXPECT_DOUBLE_EQ(share_.factor(), PageCacheShare::kShareMin);
  int drawn = 0;
  for (int i = 0; i < 100000; ++i) drawn += share_.Draw(10) ? 1 : 0;
  EXPECT_NEAR(drawn, 312, 100);
}

TEST_F(PageCacheShareTest, SixteenGainsOutweighALoss) {
  Lose(1);
  share_.NotePut(kWatched);
  for (uint32_t i = 0; i < PageCacheShare::kGainsForLoss; ++i) {
    EXPECT_LT(share_.factor(), 1.0);
    share_.NoteFound(kWatched);
  }
  EXPECT_EQ(share_.factor(), 1.0);
  share_.NoteFound(kWatched);
  EXPECT_EQ(share_.factor(), 1.0);
}

TEST_F(PageCacheShareTest, ALossIsCountedOnceForEachTimeThatTheExtentWentThrough) {
  share_.NotePut(kWatched);
  EXPECT_TRUE(share_.NoteMissed(kWatched));
  EXPECT_FALSE(share_.NoteMissed(kWatched));
  share_.NotePut(kWatched);
  EXPECT_TRUE(share_.NoteMissed(kWatched));
}

TEST_F(PageCacheShareTest, WhatOthersPutInThePageCacheIsNoGain) {
  Lose(4);
  for (int i = 0; i < 1000; ++i) share_.NoteFound(kWatched);
  EXPECT_DOUBLE_EQ(share_.factor(), 0.5);
}

TEST_F(PageCacheShareTest, OneInFourIsWatched) {
  int watched = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    PageCacheShare share;
    share.NotePut(HashOfValue(i));
    watched += share.NoteMissed(HashOfValue(i)) ? 1 : 0;
  }
  EXPECT_NEAR(watched, 4000 / PageCacheShare::kWatchedOf, 150);
}

TEST_F(PageCacheShareTest, WithMoreDataThanMemoryFewReadsGoThroughAndAsManyAreFound) {
  // A sixth is held: a tenth of the rest would put 0.083 of the reads in.
  const Steady some = ReadAtRandom(6000, 1000, 400000);
  EXPECT_LT(some.through, 0.02);
  EXPECT_NEAR(some.found, 1.0 / 6, 0.01);
}

TEST_F(PageCacheShareTest, WhereHardlyAnythingIsHeldHardlyAnyReadGoesThrough) {
  const Steady hardly_any = ReadAtRandom(200000, 1000, 2000000);
  EXPECT_LT(hardly_any.through, 0.006);
  EXPECT_NEAR(hardly_any.found, 1.0 / 200, 0.001);
}

TEST_F(PageCacheShareTest, WhatFitsIsTakenIn) {
  Lose(1000);  // a working set before, which did not fit
  std::vector<bool> is_held(6000);
  const auto found_of = [&](uint64_t begin, uint64_t reads) {
    uint64_t found = 0;
    for (uint64_t i = begin; i < begin + reads; ++i) {
      const uint64_t value = SplitMixWord((i + 1) * kSplitMixStep) % is_held.size();
      if (is_held[value]) ++found;
      if (Read(HashOfValue(value), is_held[value], 10)) is_held[value] = true;
    }
    return found;
  };
  (void)found_of(0, 60000);  // ten reads of each
  EXPECT_EQ(share_.factor(), 1.0);
  EXPECT_GT(found_of(60000, 60000), 30000U);
  EXPECT_EQ(losses_, 0);
}

}  // namespace
}  // namespace quarry
