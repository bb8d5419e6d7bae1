// HoldsDurably: what a crash left prepared is taken for committed exactly when all of its extents are whole, and then
// no second power cut takes them away.
#include <array>

#include "store/store_test_util.h"

namespace quarry {
namespace {

class CommitCheckTest : public OneTableTest {
 protected:
  void SetUp() override { Open(); }
  /// seed 0: nothing is left that was not flushed; UINT64_MAX: all of it, as when only the process dies.
  void Crash(uint64_t seed) {
    CutPower(&memory_, &env_, seed, &directory_);
    Open();
  }
  /// Before a crash, as whoever commits does.
  CommitRecord Describe(const std::vector<Locator>& locators) { return ValueOf(directory_->DescribeCommit(locators)); }
  Result<bool> Holds(const CommitRecord& record) {
    std::array<uint8_t, kCommitRecordSizeBytes> bytes{};
    EncodeCommitRecord(record, bytes);
    return directory_->HoldsDurably(ValueOf(DecodeCommitRecord(bytes)));
  }
};

TEST_F(CommitCheckTest, WhatWasFlushedHolds) {
  const std::vector<Locator> locators = {Append(3000, 1), Append(400000, 2), Append(1, 3)};
  const CommitRecord record = Describe(locators);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash(0);
  EXPECT_TRUE(ValueOf(Holds(record)));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[1])), RandomValue(400000, 2));
}

TEST_F(CommitCheckTest, WhatWasLostDoesNot) {
  const Locator kept = Append(3000, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  const Locator lost = Append(5000, 2);
  const std::array records = {Describe({kept}), Describe({lost}), Describe({kept, lost})};
  Crash(0);
  EXPECT_TRUE(ValueOf(Holds(records[0])));
  EXPECT_FALSE(ValueOf(Holds(records[1])));
  EXPECT_FALSE(ValueOf(Holds(records[2])));
}

TEST_F(CommitCheckTest, AStoreThatNeverWasHoldsNothing) {
  const Locator lost = Append(3000, 1);
  CommitRecord record = Describe({lost});
  record.store = StoreId{99};
  EXPECT_FALSE(ValueOf(Holds(record)));
  record.store = lost.store;
  record.extents[0].segment = SegmentNumber{99};
  EXPECT_FALSE(ValueOf(Holds(record)));
}

// Its records may be lost, and its files lie where nobody can look now.
TEST_F(CommitCheckTest, AStoreThatIsNowhereIsNotDecidedWhileAPathIsAway) {
  CommitRecord record = Describe({Append(3000, 1)});
  record.store = StoreId{99};
  directory_.reset();
  ASSERT_OK(memory_.CreateDirectory("/disk1"));
  options_.data_paths = {"/disk1"};
  Open();
  EXPECT_FALSE(ValueOf(Holds(record)));
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk1", "/away"));
  Open();
  const Status status = Holds(record).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/disk1"), std::string::npos) << status.ToString();
}

// XA RECOVER shows it to everybody.
TEST_F(CommitCheckTest, ARecordTellsNeitherIdentityNorContent) {
  const Locator first = Append(3000, 1);
  const Locator second = Append(3000, 1);
  const CommitRecord record = Describe({first, second});
  EXPECT_NE(record.extents[0].tag, record.extents[1].tag);
  for (const Locator& locator : {first, second}) {
    EXPECT_NE(record.extents[0].tag, static_cast<uint32_t>(locator.identity));
    EXPECT_NE(record.extents[0].tag, static_cast<uint32_t>(locator.identity >> 32U));
  }
}

// The process died between the write and the flush: the bytes are all there, in the operating system's memory alone.
TEST_F(CommitCheckTest, WhatHoldsSurvivesASecondCrash) {
  const Locator locator = Append(70000, 1);
  const CommitRecord record = Describe({locator});
  env_.FailCall(CallKind::kSync, 1, EIO);
  EXPECT_FALSE(directory_->Sync(unsynced_).ok());
  // What the process wrote stays, and nothing of it is durable: another directory on the same files.
  for (size_t kind = 0; kind < kCallKinds; ++kind) env_.FailCall(static_cast<CallKind>(kind), 1, EIO, true);
  directory_.reset();
  env_.ClearFailures();
  Open();
  ASSERT_TRUE(ValueOf(Holds(record)));
  Crash(0);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), RandomValue(70000, 1));
}

TEST_F(CommitCheckTest, AnyTornSubsetIsToldFromTheWhole) {
  int torn = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    unsynced_.Clear();
    const std::vector<Locator> locators = {Append(900, seed), Append(9000, 1000 + seed)};
    const CommitRecord record = Describe(locators);
    // Written, and power goes inside the flush.
    env_.FailCall(CallKind::kSync, 1, EIO);
    EXPECT_FALSE(directory_->Sync(unsynced_).ok());
    Crash(seed);
    const bool holds = ValueOf(Holds(record));
    if (holds) Crash(0);
    const bool first = ReadValue(directory_.get(), locators[0]).ok();
    const bool second = ReadValue(directory_.get(), locators[1]).ok();
    EXPECT_EQ(holds, first && second) << "seed " << seed;
    torn += holds ? 0 : 1;
  }
  EXPECT_GT(torn, 10);
}

TEST_F(CommitCheckTest, AnotherExtentAtTheSamePlaceIsNotTheOne) {
  const Locator locator = Append(3000, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  Locator other = locator;
  other.identity ^= 1U;
  EXPECT_TRUE(ValueOf(Holds(Describe({locator}))));
  EXPECT_FALSE(ValueOf(Holds(Describe({other}))));
  other = locator;
  other.offset_bytes += 8;
  EXPECT_FALSE(ValueOf(Holds(Describe({other}))));
}

TEST_F(CommitCheckTest, DamageInAnyPartIsSeen) {
  const Locator locator = Append(200000, 1);
  const CommitRecord record = Describe({locator});
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash(0);
  for (const uint64_t at : {uint64_t{0}, uint64_t{70}, uint64_t{90}, uint64_t{1000}, locator.extent_size_bytes - 1}) {
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + at, 3));
    EXPECT_FALSE(ValueOf(Holds(record))) << at;
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + at, 3));
    EXPECT_TRUE(ValueOf(Holds(record))) << at;
  }
}

TEST_F(CommitCheckTest, WhatCannotBeAskedIsNotDecided) {
  const Locator locator = Append(3000, 1);
  const CommitRecord record = Describe({locator});
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash(0);
  env_.FailCall(CallKind::kSync, 1, EIO);
  EXPECT_EQ(Holds(record).status().code(), StatusCode::kIoError);
  env_.FailCall(CallKind::kRead, 1, EIO, true);
  EXPECT_EQ(Holds(record).status().code(), StatusCode::kIoError);
  env_.ClearFailures();
  EXPECT_TRUE(ValueOf(Holds(record)));
  // The file is gone though the catalogue knows it: somebody moved it.
  Crash(0);
  ASSERT_OK(memory_.Rename(SegmentPathOf(locator), "/away"));
  Crash(UINT64_MAX);
  EXPECT_EQ(Holds(record).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace quarry
