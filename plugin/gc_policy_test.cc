// When a pass is worth it.
#include "gc_policy.h"

#include <gtest/gtest.h>

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

TEST(GcPolicy, EveryTableHasItsTurn) {
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 999, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 1000, 0), GcVerdict::kDue);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), {}, kSettings, 1000, 1), GcVerdict::kNotYet);
  const GcMemory last = {Figures(100, 100, 0), 500, false};
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, kSettings, 1400, 0), GcVerdict::kNotYet);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, kSettings, 1500, 0), GcVerdict::kDue);
  EXPECT_EQ(JudgeGc(Figures(100, 100, 0), last, {1.5, 0}, 1500, 0), GcVerdict::kNotYet);
}

}  // namespace
}  // namespace quarry
