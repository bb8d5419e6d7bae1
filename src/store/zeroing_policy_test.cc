#include "store/zeroing_policy.h"

#include <gtest/gtest.h>

namespace quarry {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;

class ZeroingPolicyTest : public testing::Test {
 protected:
  void NoteFlushes(bool zeroed, uint64_t micros, uint32_t times = ZeroingPolicy::kSamplesMin) {
    for (uint32_t i = 0; i < times; ++i) policy_.NoteFlush(zeroed, micros);
  }
  [[nodiscard]] bool Pays(uint64_t flush_bytes) const {
    return policy_.Advise(flush_bytes) != ZeroingPolicy::Advice::kGrow;
  }
  ZeroingPolicy policy_;
};

TEST_F(ZeroingPolicyTest, UntilBothSidesAreKnownZerosAreTried) {
  EXPECT_TRUE(Pays(4096));
  NoteFlushes(false, 100);
  policy_.NoteZeroing(kMiB, 1000);
  EXPECT_TRUE(Pays(4096));
  NoteFlushes(true, 100, ZeroingPolicy::kSamplesMin - 1);
  EXPECT_TRUE(Pays(4096));
  policy_.NoteFlush(true, 100);
  EXPECT_FALSE(Pays(4096));
}

TEST_F(ZeroingPolicyTest, ZerosHaveToSaveThriceWhatTheyTake) {
  NoteFlushes(false, 200);
  NoteFlushes(true, 104);
  policy_.NoteZeroing(kMiB, 512);  // half a microsecond for each KiB: 64 KiB take 32, and 96 are saved
  EXPECT_TRUE(Pays(64 << 10));
  EXPECT_FALSE(Pays((64 << 10) + 64));
}

TEST_F(ZeroingPolicyTest, AJournalLetsThemPayForAllButLargeFlushes) {
  NoteFlushes(false, 10'000);
  NoteFlushes(true, 100);
  policy_.NoteZeroing(kMiB, 1000);
  EXPECT_TRUE(Pays(ZeroingPolicy::kFlushMaxBytes));
  EXPECT_FALSE(Pays(ZeroingPolicy::kFlushMaxBytes + 1));
}

TEST_F(ZeroingPolicyTest, OnlyWhereAFlushTakesSeveralTimesAsLongWithoutThemIsThereNoBudget) {
  EXPECT_EQ(policy_.Advise(4096), ZeroingPolicy::Advice::kZeros);  // to be known
  NoteFlushes(true, 100, 100);
  policy_.NoteZeroing(kMiB, 1000);
  NoteFlushes(false, 275, 200);
  EXPECT_EQ(policy_.Advise(4096), ZeroingPolicy::Advice::kZeros);
  EXPECT_EQ(policy_.Advise(100'000), ZeroingPolicy::Advice::kGrow);  // take 95, and 175 are saved
  NoteFlushes(false, 270, 200);
  EXPECT_EQ(policy_.Advise(4096), ZeroingPolicy::Advice::kZerosWithinBudget);
}

TEST_F(ZeroingPolicyTest, OneStallDoesNotDecide) {
  NoteFlushes(false, 110, 100);
  NoteFlushes(true, 100, 100);
  policy_.NoteZeroing(kMiB, 1000);
  policy_.NoteFlush(false, 1'000'000);
  EXPECT_FALSE(Pays(16 << 10));
}

TEST_F(ZeroingPolicyTest, ADeviceThatChangesIsFollowed) {
  NoteFlushes(false, 110, 100);
  NoteFlushes(true, 100, 100);
  policy_.NoteZeroing(kMiB, 1000);
  EXPECT_FALSE(Pays(16 << 10));
  NoteFlushes(false, 400, 100);
  EXPECT_TRUE(Pays(16 << 10));
}

TEST_F(ZeroingPolicyTest, WhereZerosDidNotPayTheyAreTriedAgainSomeDay) {
  NoteFlushes(false, 100);
  NoteFlushes(true, 100);
  policy_.NoteZeroing(kMiB, 1000);
  NoteFlushes(false, 100, ZeroingPolicy::kForgottenAfter - 1);
  EXPECT_FALSE(Pays(4096));
  policy_.NoteFlush(false, 100);
  EXPECT_TRUE(Pays(4096));
  NoteFlushes(true, 100);
  EXPECT_FALSE(Pays(4096));
}

TEST_F(ZeroingPolicyTest, AClockThatStandsStillDecidesNothing) {
  NoteFlushes(false, 0, 100);
  NoteFlushes(true, 0, 100);
  policy_.NoteZeroing(kMiB, 0);
  policy_.NoteZeroing(0, 1000);
  EXPECT_TRUE(Pays(ZeroingPolicy::kFlushMaxBytes));
}

TEST_F(ZeroingPolicyTest, AClockThatWasSetIsNotCounted) {
  NoteFlushes(false, 100);
  NoteFlushes(true, 100);
  for (const uint64_t micros : {uint64_t{600'000'000}, UINT64_MAX}) {
    NoteFlushes(false, micros);
    NoteFlushes(true, micros);
    policy_.NoteZeroing(kMiB, micros);
  }
  EXPECT_TRUE(Pays(4096));  // what zeros take is not known
  policy_.NoteZeroing(kMiB, 1000);
  EXPECT_FALSE(Pays(4096));
}

}  // namespace
}  // namespace quarry
