// What recovery counts: each extent once, whatever state a crash or a missing file left its segment in.
#include <array>

#include "format/extent.h"
#include "io/path.h"
#include "quarry/gc.h"
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

/// A value that holds a header every 2 KiB, each for another place at which the value's extent may begin, right in all
/// but the salt, which nobody knows: whoever may INSERT can make it.
std::vector<uint8_t> ValueOfHeaders(const Locator& neighbour, size_t size_bytes, uint64_t front_bytes) {
  std::vector<uint8_t> value = RandomValue(size_bytes, 99);
  for (uint64_t guess = 1; (guess + 1) * 2048 < size_bytes; ++guess) {
    ExtentHeader header;
    header.store = neighbour.store;
    header.segment = neighbour.segment;
    header.offset_bytes = guess * kBlockSizeBytes + front_bytes + guess * 2048;
    header.identity = neighbour.identity;
    header.content_size_bytes = 1;
    header.part_size_bytes = 512;
    header.part_count = 1;
    PartEntry part;
    part.stored_size_bytes = 1;
    part.checksum = 1;
    EncodeExtentIndex(header, {&part, 1}, {}, {},
                      std::span(value).subspan(guess * 2048, HeaderAndIndexSizeBytes(1, false)));
  }
  return value;
}

/// The process dies in the middle of the append of such a value, whose own header is written last, and behind which
/// others have committed.
class HostileValueTest : public StoreRecoveryTest {
 protected:
  void SetUp() override {
    options_.segment_size_bytes = 64 << 20;
    Open();
    for (uint64_t i = 0; i < 5; ++i) committed_.push_back(Append(SizeOf(i), i));
    ASSERT_OK(directory_->Sync(unsynced_));
    AppendHalf();
    Crash();
    size_before_ = FileSize();
    Open();
  }
  /// What comes behind finds no room in the chunk that is open before the hostile one's range.
  static size_t SizeOf(uint64_t i) { return i < 5 ? 20000 + i : 400000 + i; }
  void AppendHalf() {
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    AppendOptions compressed;
    compressed.codec = Codec::kLz4;
    constexpr size_t kSize = 8 << 20;
    const std::vector<uint8_t> value = ValueOfHeaders(
        committed_[0], kSize, HeaderAndIndexSizeBytes(PartCount(kSize, compressed.part_size_bytes), false));
    bool is_outer = true;
    int writes = 0;
    env_.SetHook([&](const Call& call) {
      if (call.kind != CallKind::kWrite || !is_outer || ++writes < 6) return Status::Ok();
      is_outer = false;
      for (uint64_t i = 5; i < 10; ++i) committed_.push_back(Append(SizeOf(i), i));
      EXPECT_OK(directory_->Sync(unsynced_));
      return Status::FromErrno(ENOSPC, "write", call.path);  // nothing more of it is written
    });
    UnsyncedExtents unsynced;
    EXPECT_FALSE(store->Append(value, compressed, &unsynced).ok());
    env_.SetHook(nullptr);
  }
  [[nodiscard]] uint64_t FileSize() {
    return ValueOf(ValueOf(memory_.OpenForRead(SegmentPathOf(committed_[0])))->SizeBytes());
  }
  void ExpectAllThere() {
    for (uint64_t i = 0; i < committed_.size(); ++i) {
      EXPECT_EQ(ValueOf(ReadValue(directory_.get(), committed_[i])), RandomValue(SizeOf(i), i)) << i;
    }
  }

  std::vector<Locator> committed_;
  uint64_t size_before_ = 0;
};

TEST_F(HostileValueTest, CostsNobodyACommittedValue) {
  EXPECT_EQ(FileSize(), size_before_);
  ExpectAllThere();
}

TEST_F(HostileValueTest, DecidesNoPreparedCommit) {
  const CommitRecord record = ValueOf(directory_->DescribeCommit(std::span(committed_).last(3)));
  EXPECT_TRUE(ValueOf(directory_->HoldsDurably(record)));
}

TEST_F(HostileValueTest, TheSegmentIsMarkedUncountedAndNeverCalledDamaged) {
  EXPECT_EQ(Stats().extents, committed_.size()) << "no header within the value is taken for one";
  directory_.reset();
  const Verified verified = VerifyAll(&memory_);
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kDamaged), 0U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kMissing), 0U) << verified.seen.Text();
}

TEST_F(HostileValueTest, GcGivesBackWhatIsLeftOfItAndNothingElse) {
  const StoreId store = committed_[0].store;
  const auto pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}));
  for (const Locator& locator : committed_) pass->Mark(locator);
  ASSERT_TRUE(ValueOf(pass->ReclaimSome(UINT64_MAX)).done);
  EXPECT_GT(pass->report().reclaimed_bytes, 2U << 20);
  ExpectAllThere();
  Crash();
  Open();
  ExpectAllThere();
  EXPECT_EQ(Stats().extents, committed_.size());
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.CountOf(FindingKind::kDoubtful), 0U) << VerifyAll(&memory_).seen.Text();
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
