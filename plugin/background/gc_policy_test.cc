// When a pass is worth it.
#include "background/gc_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace quarry {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;
constexpr GcSettings kSettings = {1.5, 1000};

GcFigures Figures(uint64_t real, uint64_t live, uint64_t dead) { return {real * kMiB, live * kMiB, dead * kMiB}; }

TEST(GcPolicy, AmplifiedBeyondTheBound) {
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 5, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(150, 100, 50), {}, kSettings, 5, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(151, 100, 51), {}, kSettings, 5, 0), GcVerdict::kAmplified);
  EXPECT_EQ(JudgeGc(Figures(151, 100, 51), {}, {2.0, 1000}, 5, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(100, 0, 100), {}, kSettings, 5, 0), GcVerdict::kAmplified);
}

TEST(GcPolicy, RewritesNotAboveTheBound) {
  EXPECT_EQ(RewriteAbove({1.5, 1000}), 1.25);
  EXPECT_EQ(RewriteAbove({1.1, 1000}), 1.1);
}

TEST(GcPolicy, LittleIsLeftAlone) {
  EXPECT_EQ(JudgeGc(Figures(4, 1, 3), {}, kSettings, 5, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(0, 0, 0), {}, kSettings, 5000, 0), GcVerdict::kNotYet);
}

TEST(GcPolicy, APassThatGaveNothingBackIsNotRepeated) {
  const GcMemory last = {Figures(200, 100, 0), 10, false};
  EXPECT_EQ(JudgeGc(Figures(200, 100, 0), GcMemory{Figures(200, 100, 0), 10, true}, kSettings, 20, 0),
            GcVerdict::kAmplified);
  EXPECT_EQ(JudgeGc(Figures(200, 100, 0), last, kSettings, 20, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(209, 100, 9), last, kSettings, 20, 0), GcVerdict::kNotYet);
  // Appended over, or deleted.
  EXPECT_EQ(JudgeGc(Figures(210, 100, 10), last, kSettings, 20, 0), GcVerdict::kAmplified);
  EXPECT_EQ(JudgeGc(Figures(200, 90, 10), last, kSettings, 20, 0), GcVerdict::kAmplified);
}

TEST(GcPolicy, ASmallTableIsKeptWithinItsBoundToo) {
  // A pass ended in the middle of an overwriting that then went on: all that is beyond the bound is from after it.
  const GcMemory last = {Figures(11, 10, 0), 10, false};
  EXPECT_EQ(JudgeGc(Figures(15, 10, 5), last, kSettings, 20, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc({15 * kMiB + 1, 10 * kMiB, 4 * kMiB}, last, kSettings, 20, 0), GcVerdict::kAmplified);
  EXPECT_EQ(JudgeGc(Figures(5, 0, 5), GcMemory{{}, 10, false}, kSettings, 20, 0), GcVerdict::kAmplified) << "was empty";
}

TEST(GcPolicy, WhatComesWhileAPassRunsIsForTheNext) {
  // Seen with 10 MB overwritten again and again: segments that are appended to have been given more room than they use.
  const GcFigures before = {24797184, 17518200, 7507800};
  const GcFigures after = {15982592, 10010400, 2502600};
  EXPECT_EQ(JudgeGc(after, AfterPass(before, after, 17686528, 10), kSettings, 11, 0), GcVerdict::kAmplified);
  // A table that nobody writes to: again when it gave something back, and never more than that.
  const GcFigures quiet = Figures(200, 100, 0);
  EXPECT_EQ(JudgeGc(quiet, AfterPass(Figures(300, 100, 100), quiet, 100 * kMiB, 10), kSettings, 11, 0),
            GcVerdict::kAmplified);
  EXPECT_EQ(JudgeGc(quiet, AfterPass(quiet, quiet, 0, 10), kSettings, 11, 0), GcVerdict::kNotYet);
  // It gave nothing back, for all of it died, or was appended, after it had begun.
  EXPECT_EQ(
      JudgeGc(Figures(200, 100, 100), AfterPass(Figures(200, 200, 0), Figures(200, 100, 100), 0, 10), kSettings, 11, 0),
      GcVerdict::kAmplified);
  EXPECT_EQ(
      JudgeGc(Figures(200, 100, 0), AfterPass(Figures(100, 100, 0), Figures(200, 100, 0), 0, 10), kSettings, 11, 0),
      GcVerdict::kAmplified);
}

TEST(GcPolicy, ALittleThatComesBackIsNoReasonForAnotherPassAtOnce) {
  // The rest lies on a data path that is only read, while the table is written to on the others.
  const GcFigures before = Figures(300, 100, 200);
  const GcFigures after = Figures(299, 100, 199);
  EXPECT_EQ(JudgeGc(after, AfterPass(before, after, kMiB, 10), kSettings, 11, 0), GcVerdict::kNotYet);
}

TEST(GcPolicy, EveryTableHasItsTurn) {
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 999, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 1000, 0), GcVerdict::kDue);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 1000, 1), GcVerdict::kNotYet);
  const GcMemory last = {Figures(100, 100, 0), 500, false};
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, kSettings, 1400, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, kSettings, 1500, 0), GcVerdict::kDue);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, {1.5, 0}, 1500, 0), GcVerdict::kNotYet);
}

TEST(GcPolicy, PassesThatRewriteNothingDoNotFollowEachOtherWithoutEnd) {
  bool was_fruitless = false;
  EXPECT_FALSE(GoesOnWithPostponed(0, 3, &was_fruitless)) << "nothing is left";
  EXPECT_TRUE(GoesOnWithPostponed(9, 0, &was_fruitless)) << "the marks told the next one what to begin with";
  EXPECT_TRUE(GoesOnWithPostponed(8, 1, &was_fruitless));
  EXPECT_TRUE(GoesOnWithPostponed(8, 0, &was_fruitless));
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_FALSE(GoesOnWithPostponed(8, 0, &was_fruitless)) << "the disk is full";
  }
  EXPECT_TRUE(GoesOnWithPostponed(7, 1, &was_fruitless)) << "it has room again";
}

TEST(GcPolicy, ATableWhosePassesAreDroppedIsTriedLaterAndLater) {
  EXPECT_EQ(RetrySeconds(0, 60), 0U);
  EXPECT_EQ(RetrySeconds(1, 60), 0U) << "the next look";
  EXPECT_EQ(RetrySeconds(2, 60), 120U);
  EXPECT_EQ(RetrySeconds(3, 60), 240U);
  EXPECT_EQ(RetrySeconds(UINT32_MAX, 60), 3600U);
  EXPECT_EQ(RetrySeconds(9, 86400), 86400U);
}

TEST(GcPolicy, WhatAPassCouldNotCountHasNoFurtherTurn) {
  GcFigures figures = Figures(100, 100, 0);
  EXPECT_FALSE(IsToCount(figures, {}));
  figures.uncounted_bytes = kMiB;
  EXPECT_TRUE(IsToCount(figures, {}));
  EXPECT_FALSE(IsToCount(figures, AfterPass(figures, figures, 0, 10)));
}

TEST(GcPolicy, TheTurnsToCountAreSpreadOverTheInterval) {
  CountingTurns turns(100);
  EXPECT_FALSE(turns.IsDue(0, kSettings, 100000));
  EXPECT_FALSE(turns.IsDue(3, kSettings, 100 + 249));
  EXPECT_TRUE(turns.IsDue(3, kSettings, 100 + 250));
  EXPECT_FALSE(turns.IsDue(2, kSettings, 100 + 251)) << "the first is counted";
  EXPECT_TRUE(turns.IsDue(2, kSettings, 100 + 500));
  EXPECT_TRUE(turns.IsDue(1, kSettings, 100 + 750));
  EXPECT_FALSE(turns.IsDue(1, {1.5, 0}, 100000)) << "never without a reason";
}

TEST(GcPolicy, SoMuchMustDieBeforeAPassPays) {
  EXPECT_EQ(DeadUntilAmplified(Figures(100, 100, 0), {}, {2.0, 0}), 50 * kMiB);
  EXPECT_EQ(DeadUntilAmplified(Figures(151, 100, 51), {}, kSettings), 0U);
  EXPECT_EQ(DeadUntilAmplified(Figures(4, 4, 0), {}, kSettings), kGcWorthMinBytes) << "little is left alone";
  const GcMemory last = {Figures(200, 100, 0), 10, false};
  EXPECT_EQ(DeadUntilAmplified(Figures(203, 100, 3), last, kSettings), 7 * kMiB)
      << "nothing to give back, said the last pass";
}

TEST(GcPolicy, WhatMustDieIsNeverTooMuch) {
  std::mt19937_64 random(1);
  const auto any = [&random](uint64_t max_mib) { return random() % (max_mib * kMiB); };
  for (int i = 0; i < 20000; ++i) {
    const GcFigures now = {any(1000), any(1000), any(200)};
    std::optional<GcMemory> last;
    if (random() % 2 == 0) last = GcMemory{{any(1000), any(1000), any(200)}, 0, random() % 2 == 0};
    const GcSettings settings = {1.05 + static_cast<double>(random() % 100) / 50, 0};
    const uint64_t missing = DeadUntilAmplified(now, last, settings);
    const auto judge = [&](uint64_t dies) {
      const GcFigures then = {now.real_bytes, now.live_bytes - std::min(dies, now.live_bytes), now.dead_bytes + dies};
      return JudgeGc(then, last, settings, 5, 0);
    };
    if (missing > 2) {
      EXPECT_EQ(judge(random() % (missing - 1)), GcVerdict::kNotYet);
    }
    if (missing < now.live_bytes && (!last || last->left_some)) {
      EXPECT_EQ(judge(missing + 2), GcVerdict::kAmplified) << "all that it takes";
    }
  }
}

TEST(GcPolicy, WhatIsOverwrittenIsThereTwice) {
  const GcFigures then = WhenOverwritten(Figures(120, 100, 20), 20 * kMiB, kSettings);
  EXPECT_EQ(then.real_bytes, 140 * kMiB);
  EXPECT_EQ(then.live_bytes, 100 * kMiB);
  EXPECT_EQ(then.dead_bytes, 40 * kMiB);
  EXPECT_EQ(WhenOverwritten(Figures(120, 100, 20), 300 * kMiB, kSettings).real_bytes, 145 * kMiB)
      << "half of what 1.5 allows is left for the time until a pass begins";
}

TEST(ReleaseRate, IsThatOfTheLastSecond) {
  ReleaseRate rate;
  EXPECT_EQ(rate.bytes_per_second(), 0);
  rate.Note(1000, 50);
  EXPECT_EQ(rate.bytes_per_second(), 0) << "of what came before nothing is known";
  for (int i = 1; i <= 8; ++i) rate.Note(1000 + static_cast<uint64_t>(i) * 250, 50 + i * 0.25);
  EXPECT_DOUBLE_EQ(rate.bytes_per_second(), 1000);
  for (int i = 9; i <= 12; ++i) rate.Note(3000, 50 + i * 0.25);
  EXPECT_DOUBLE_EQ(rate.bytes_per_second(), 0) << "nothing for a second";
}

TEST(GcPolicy, NobodyKnowsWhatTheFirstScanTakes) { EXPECT_EQ(ScanSecondsBeyond({}, 1'000'000'000, 0, 1), 0U); }

TEST(GcPolicy, AScanThatWouldTakeTooLongIsNamed) {
  ScanMemory scan;
  NoteScan(&scan, 1'000'000, 10, true, 60, 1'000'000);  // 100,000 a second
  EXPECT_EQ(ScanSecondsBeyond(scan, 1'000'000, 0, 60), 0U);
  EXPECT_EQ(ScanSecondsBeyond(scan, 7'000'000, 0, 60), 70U);
  EXPECT_EQ(ScanSecondsBeyond(scan, 7'000'000, 0, 70), 0U);
  // Rows without a value outside of them are known by the last scan.
  EXPECT_EQ(ScanSecondsBeyond(scan, 0, 0, 9), 10U);
  // Another table's scan was faster: it may have been a slow hour.
  EXPECT_EQ(ScanSecondsBeyond(scan, 7'000'000, 200'000, 60), 0U);
}

TEST(GcPolicy, AScanThatOverranWaitsForALongerTimeoutOrLessOfTheTable) {
  ScanMemory scan;
  NoteScan(&scan, 500'000, 5, false, 5, 1'000'000);
  EXPECT_EQ(ScanSecondsBeyond(scan, 1'000'000, 10'000'000, 5), 10U) << "however fast others are";
  EXPECT_EQ(ScanSecondsBeyond(scan, 1'000'000, 10'000'000, 6), 0U);
  EXPECT_EQ(ScanSecondsBeyond(scan, 800'000, 10'000'000, 5), 0U);
  // It saw more rows than the table has values: at least a second more than it had.
  ScanMemory inline_rows;
  NoteScan(&inline_rows, 500'000, 5, false, 5, 1000);
  EXPECT_EQ(ScanSecondsBeyond(inline_rows, 1000, 0, 5), 6U);
  NoteScan(&inline_rows, 600'000, 6, true, 60, 1000);
  EXPECT_EQ(ScanSecondsBeyond(inline_rows, 1000, 0, 10), 0U);
}

TEST(GcPolicy, AScanOfAFewRowsForbidsNoScanOfMany) {
  // 20 rows behind many that were deleted, or in many partitions: 40 a second.
  EXPECT_EQ(ScanSecondsBeyond({}, 1'000'000, 40, 3600), 0U) << "of another table";
  ScanMemory scan;
  NoteScan(&scan, 20, 0.5, true, 3600, 20);
  EXPECT_EQ(ScanSecondsBeyond(scan, 1'000'000, 0, 3600), 0U) << "of the table before it grew";
  EXPECT_EQ(ScanSecondsBeyond(scan, 200, 0, 4), 5U);
  ScanMemory quick;
  NoteScan(&quick, 20'000, 0.05, true, 3600, 20'000);
  EXPECT_EQ(ScanSecondsBeyond(quick, 20'000, 2, 3600), 0U) << "of another table, where this one's was over at once";
}

TEST(GcPolicy, AScanThatIsOverAtOnceSaysNothingOfTheRate) {
  ScanMemory scan;
  NoteScan(&scan, 10, 0.001, true, 60, 10);
  EXPECT_EQ(ScanSecondsBeyond(scan, 1'000'000'000, 0, 60), 0U);
}

}  // namespace
}  // namespace quarry
