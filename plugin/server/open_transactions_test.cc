// When a transaction of an earlier look has ended, and when it only looks so.
#include "server/open_transactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quarry {
namespace {

using Look = std::vector<OpenTransaction>;
using ::testing::HasSubstr;

bool AllEnded(const Look& then, const std::vector<Look>& later) {
  OpenTransactions open(then);
  for (const Look& look : later) open.Update(look);
  return open.all_ended();
}

TEST(OpenTransactions, NothingOpenIsNothingToWaitFor) {
  EXPECT_TRUE(OpenTransactions().all_ended());
  EXPECT_TRUE(OpenTransactions(Look()).all_ended());
}

TEST(OpenTransactions, NothingEndsBeforeALook) { EXPECT_FALSE(AllEnded({{7, 1, "a"}}, {})); }

TEST(OpenTransactions, AWriterEndsWhenItsIdIsGone) {
  EXPECT_FALSE(AllEnded({{7, 1, "a"}}, {{{7, 1, "a"}}}));
  EXPECT_TRUE(AllEnded({{7, 1, "a"}}, {{}}));
  EXPECT_TRUE(AllEnded({{7, 1, "a"}}, {{{8, 1, "a"}}}));
}

TEST(OpenTransactions, APreparedOneIsFollowedAwayFromItsConnection) {
  EXPECT_FALSE(AllEnded({{7, 1, "a"}}, {{{7, 0, "a"}}}));
  EXPECT_TRUE(AllEnded({{7, 0, "a"}}, {{{0, 0, "a"}}}));
}

TEST(OpenTransactions, AReaderThatBeginsToWriteHasNotEnded) {
  EXPECT_FALSE(AllEnded({{0, 1, "a"}}, {{{9, 1, "a"}}}));
  EXPECT_FALSE(AllEnded({{0, 1, "a"}}, {{{9, 1, "a"}}, {{9, 1, "a"}}}));
}

TEST(OpenTransactions, AReaderEndsWhenItsConnectionHasNone) {
  EXPECT_FALSE(AllEnded({{0, 1, "a"}}, {{{0, 1, "a"}}}));
  EXPECT_TRUE(AllEnded({{0, 1, "a"}}, {{{0, 2, "a"}}}));
}

TEST(OpenTransactions, OneChangeOfTheStartMayBeAStaleOneMadeRight) {
  EXPECT_FALSE(AllEnded({{0, 1, "stale"}}, {{{0, 1, "a"}}}));
  EXPECT_FALSE(AllEnded({{0, 1, "stale"}}, {{{0, 1, "a"}}, {{0, 1, "a"}}, {{0, 1, "a"}}}));
  EXPECT_TRUE(AllEnded({{0, 1, "a"}}, {{{0, 1, "b"}}, {{0, 1, "c"}}}));
}

TEST(OpenTransactions, SeveralWithoutAConnectionAreNotMixedUp) {
  // The one of "a" was caught with a stale start; "b" is another's.
  EXPECT_FALSE(AllEnded({{0, 0, "stale"}}, {{{0, 0, "b"}, {0, 0, "a"}}, {{0, 0, "a"}}, {{0, 0, "a"}, {0, 0, "c"}}}));
  EXPECT_TRUE(AllEnded({{0, 0, "stale"}}, {{{0, 0, "b"}, {0, 0, "a"}}, {{0, 0, "a"}}, {{0, 0, "c"}}}));
}

TEST(OpenTransactions, EachIsWaitedFor) {
  const Look then = {{7, 1, "a"}, {0, 2, "a"}, {8, 0, "a"}};
  OpenTransactions open(then);
  open.Update({{8, 0, "a"}, {0, 2, "a"}, {20, 3, "b"}});
  EXPECT_EQ(open.size(), 2U);
  open.Update({{8, 0, "a"}, {20, 3, "b"}});
  EXPECT_EQ(open.size(), 1U);
  EXPECT_THAT(open.Describe(), HasSubstr("transaction 8 without a connection"));
  open.Update({{20, 3, "b"}});
  EXPECT_TRUE(open.all_ended());
  EXPECT_EQ(open.Describe(), "");
}

}  // namespace
}  // namespace quarry
