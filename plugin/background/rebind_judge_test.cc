#include "background/rebind_judge.h"

#include <gtest/gtest.h>

namespace quarry {
namespace {

constexpr RebindPair kPair{TableId{10}, TableId{20}};
using Tables = std::map<uint64_t, std::string>;

TEST(RebindJudgeTest, TheTableWithANameOfItsOwnIsKept) {
  EXPECT_EQ(JudgeRebind({{10, "db/t"}}, kPair), RebindVerdict::kKeepOld);
  EXPECT_EQ(JudgeRebind({{20, "db/t"}}, kPair), RebindVerdict::kKeepNew);
  EXPECT_EQ(JudgeRebind({{20, "db/renamed_since"}, {30, "db/t"}}, kPair), RebindVerdict::kKeepNew);
  EXPECT_EQ(JudgeRebind({{20, "db/t#P#p0#SP#s1"}}, kPair), RebindVerdict::kKeepNew);
}

TEST(RebindJudgeTest, WhatInnodbHasNotClearedAwayYetDoesNotCount) {
  EXPECT_EQ(JudgeRebind({{10, "db/t"}, {20, "db/#sql-alter-1a-2"}}, kPair), RebindVerdict::kKeepOld);
  EXPECT_EQ(JudgeRebind({{10, "db/#sql-ib20"}, {20, "db/t"}}, kPair), RebindVerdict::kKeepNew);
}

TEST(RebindJudgeTest, ATableThatIsBeingReplacedIsADoubt) {
  EXPECT_EQ(JudgeRebind({{20, "db/#sql-backup-1a-2"}, {30, "db/t"}}, kPair), RebindVerdict::kDoubt);
  EXPECT_EQ(JudgeRebind({{10, "db/#sql-ib20"}}, kPair), RebindVerdict::kDoubt);
  EXPECT_EQ(JudgeRebind({{10, "db/t"}, {20, "db/u"}}, kPair), RebindVerdict::kDoubt);
}

TEST(RebindJudgeTest, ATableThatIsGoneUnderBothIdsWasDropped) {
  EXPECT_EQ(JudgeRebind({{30, "db/t"}}, kPair), RebindVerdict::kDropped);
  EXPECT_EQ(JudgeRebind(Tables(), kPair), RebindVerdict::kDropped);
}

TEST(RebindJudgeTest, WithoutTheNewIdOnlyTheOldTableProvesAnything) {
  const RebindPair recorded_by_old_version{TableId{10}, TableId{0}};
  EXPECT_EQ(JudgeRebind({{10, "db/t"}}, recorded_by_old_version), RebindVerdict::kKeepOld);
  EXPECT_EQ(JudgeRebind({{30, "db/t"}}, recorded_by_old_version), RebindVerdict::kDoubt);
  EXPECT_EQ(JudgeRebind({{10, "db/#sql-ib30"}, {30, "db/t"}}, recorded_by_old_version), RebindVerdict::kDoubt);
}

}  // namespace
}  // namespace quarry
