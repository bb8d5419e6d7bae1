// What recovery counts: each extent once, whatever state a crash or a missing file left its segment in.
#include "format/extent.h"
#include "io/path.h"
#include "store/layout.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

class StoreRecoveryTest : public OneTableTest {
 protected:
  void SetUp() override {
    options_.segment_size_bytes = 64 << 10;
    Open();
  }
  /// Power goes; what was written stays.
  void Crash() { CutPower(&memory_, &env_, UINT64_MAX, &directory_); }
  [[nodiscard]] StoreStats Stats() const { return directory_->ListStores().at(0); }
};

TEST_F(StoreRecoveryTest, AnActiveSegmentThatWasAwayCountsOnceWhenItIsBack) {
  const Locator released = Append(3000, 1);
  const Locator kept = Append(5000, 2);
  ASSERT_OK(directory_->Sync(unsynced_));
  directory_->Release(released);
  ASSERT_OK(directory_->Checkpoint());
  Crash();
  const std::string path = SegmentPathOf(kept);
  ASSERT_OK(memory_.Rename(path, "/away"));
  Open();
  EXPECT_EQ(Stats().segments, 1U);
  EXPECT_EQ(Stats().extents, 0U);
  ASSERT_OK(directory_->Checkpoint());
  directory_.reset();
  Open();
  EXPECT_EQ(Stats().extents, 0U);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/away", path));
  Open();
  EXPECT_EQ(Stats().extents, 2U);
  EXPECT_EQ(Stats().live_bytes + Stats().dead_bytes, released.extent_size_bytes + kept.extent_size_bytes);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(5000, 2));
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
}

// The scan cannot count it; so the counters must not say later that all that was ever there is there.
TEST_F(StoreRecoveryTest, AnExtentWhoseHeaderIsLostBeforeTheScanStaysDoubtful) {
  const Locator lost = Append(3000, 1);
  const Locator kept = Append(5000, 2);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash();
  auto bytes = ValueOf(memory_.ReadSmallFile(SegmentPathOf(lost), 1 << 20));
  const auto header = std::span(bytes).subspan(lost.offset_bytes, kExtentHeaderSizeBytes);
  std::fill(header.begin(), header.end(), uint8_t{0xff});
  ASSERT_OK(memory_.ReplaceFile(SegmentPathOf(lost), bytes));
  Open();
  EXPECT_EQ(Stats().extents, 1U);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(5000, 2));
  directory_.reset();
  const Verified verified = VerifyAll(&memory_);
  ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kDoubtful) << verified.seen.Text();
}

TEST_F(StoreRecoveryTest, WhatWasReleasedBeforeItsSegmentWasFlushedCountsOnce) {
  const Locator released = Append(50000, 1);
  const Locator next = Append(50000, 2);
  ASSERT_NE(released.segment, next.segment);  // the first one is full, and was not flushed yet
  directory_->Release(released);
  ASSERT_OK(directory_->Checkpoint());
  Crash();
  Open();
  EXPECT_EQ(Stats().live_bytes + Stats().dead_bytes, released.extent_size_bytes + next.extent_size_bytes);
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
}

TEST_F(StoreRecoveryTest, AReadThatFailsForAnyReasonIsNotTakenForDamage) {
  const Locator locator = Append(3000, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  for (const int reason : {EIO, ENOSPC, EDQUOT, ENOENT}) {
    Crash();
    env_.SetHook([&](const Call& call) {
      return call.kind == CallKind::kRead && call.path == SegmentPathOf(locator)
                 ? Status::FromErrno(reason, "read", call.path)
                 : Status::Ok();
    });
    EXPECT_FALSE(OpenDirectory(&env_, options_).ok()) << reason;
    env_.SetHook(nullptr);
  }
  Open();
  EXPECT_EQ(Stats().extents, 1U);
  EXPECT_EQ(Stats().live_bytes, locator.extent_size_bytes);
}

}  // namespace
}  // namespace quarry
