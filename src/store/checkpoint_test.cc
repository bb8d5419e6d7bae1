// What a checkpoint says that it counted is what stands below its position, whatever was under way when it was taken.
#include "format/manifest.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

class CheckpointTest : public OneTableTest {
 protected:
  void SetUp() override {
    options_.recent_cache_bytes = 0;
    Open();
    Append(RandomValue(100, 1));  // makes the segment
  }
  /// Takes a checkpoint inside the first write of the append.
  void AppendBesideACheckpoint(const std::vector<uint8_t>& value, Codec codec) {
    bool is_due = true;
    env_.SetHook([&](const Call& call) {
      if (call.kind == CallKind::kWrite && call.path.ends_with(".qseg") && std::exchange(is_due, false)) {
        EXPECT_OK(directory_->Checkpoint());
      }
      return Status::Ok();
    });
    AppendOptions options;
    options.codec = codec;
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    locators_.push_back(ValueOf(store->Append(value, options, &unsynced_)));
    ASSERT_OK(directory_->Sync(unsynced_));
    env_.SetHook({});
    EXPECT_FALSE(is_due);
  }
  void Append(const std::vector<uint8_t>& value) {
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    locators_.push_back(ValueOf(store->Append(value, {}, &unsynced_)));
    ASSERT_OK(directory_->Sync(unsynced_));
  }
  /// Of the manifest as it is: what it counts is what stands below its position.
  void ExpectCountedIsThere(bool all) {
    const auto bytes = ValueOf(memory_.ReadSmallFile("/home/stores/0000000000000001/MANIFEST", 1 << 20));
    const ManifestSegment listed = ValueOf(DecodeManifest(bytes, {1})).segments.back();
    uint64_t extents = 0;
    uint64_t stored_bytes = 0;
    for (const Locator& locator : locators_) {
      if (locator.offset_bytes >= listed.checkpoint_position_bytes) continue;
      EXPECT_LE(locator.offset_bytes + locator.extent_size_bytes, listed.checkpoint_position_bytes);
      ++extents;
      stored_bytes += locator.extent_size_bytes;
    }
    EXPECT_EQ(listed.extents, extents);
    EXPECT_EQ(listed.live_bytes + listed.dead_bytes, stored_bytes);
    if (all) {
      EXPECT_EQ(extents, locators_.size()) << "the position stands still";
    }
  }

  std::vector<Locator> locators_;
};

TEST_F(CheckpointTest, CountsWhatStandsBelowIt) {
  for (uint64_t round = 0; round < 3; ++round) {
    // A range for the worst case, of which most is given back behind the checkpoint.
    AppendBesideACheckpoint(TextValue(16 << 20, round), Codec::kLz4);
    ExpectCountedIsThere(false);
    AppendBesideACheckpoint(RandomValue(1500000, round), Codec::kNone);
    ExpectCountedIsThere(false);
    ASSERT_OK(directory_->Checkpoint());
    ExpectCountedIsThere(true);
  }
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
}

TEST_F(CheckpointTest, CountsDownOnlyWhatItCountedUp) {
  AppendBesideACheckpoint(TextValue(16 << 20, 1), Codec::kLz4);
  for (uint64_t i = 0; i < 8; ++i) Append(RandomValue(3 << 20, i));
  ASSERT_OK(directory_->Checkpoint());
  ExpectCountedIsThere(true);
}

// Had the checkpoint counted fewer, the bytes of the one that is lost would look like those of one that never was.
TEST_F(CheckpointTest, ALostValueIsNeverCalledALeftover) {
  for (uint64_t i = 0; i < 5; ++i) Append(RandomValue(1500000, i));
  ASSERT_OK(directory_->Checkpoint());
  AppendBesideACheckpoint(TextValue(16 << 20, 2), Codec::kLz4);
  AppendBesideACheckpoint(RandomValue(1500000, 77), Codec::kNone);
  CutPower(&memory_, &env_, 3, &directory_);
  Open();
  directory_.reset();
  auto bytes = ValueOf(memory_.ReadSmallFile(SegmentPathOf(locators_[3]), 1 << 28));
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(locators_[3].offset_bytes), 512, uint8_t{0});
  ASSERT_OK(memory_.ReplaceFile(SegmentPathOf(locators_[3]), bytes));
  const Verified verified = VerifyAll(&memory_);
  ASSERT_FALSE(verified.seen.findings.empty());
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kLeftover), 0U) << verified.seen.Text();
}

}  // namespace
}  // namespace quarry
