// What a start does after a crash: it reads no payload, counts nothing, and costs what the catalogue's records cost.
#include <array>

#include "context/layout.h"
#include "format/extent.h"
#include "io/path.h"
#include "quarry/gc.h"
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

TEST_F(StoreRecoveryTest, AnActiveSegmentThatWasAwayIsSealedWhenItIsBack) {
  const Locator kept = Append(5000, 2);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash();
  const std::string path = SegmentPathOf(kept);
  ASSERT_OK(memory_.Rename(path, "/away"));
  for (int start = 0; start < 2; ++start) {
    Open();
    EXPECT_EQ(Stats().segments, 1U);
    EXPECT_EQ(Stats().live_bytes, 0U);
    directory_.reset();
  }
  ASSERT_OK(memory_.Rename("/away", path));
  Open();
  EXPECT_GE(Stats().live_bytes, kept.extent_size_bytes);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(5000, 2));
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
}

TEST_F(StoreRecoveryTest, NothingIsCountedBeforeAPassHasMarked) {
  const Locator dead = Append(9000, 1);
  const Locator kept = Append(5000, 2);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash();
  Open();
  EXPECT_EQ(Stats().extents, 0U);
  EXPECT_GE(Stats().live_bytes, dead.extent_size_bytes + kept.extent_size_bytes) << "all of it is taken for live";
  const StoreId store = kept.store;
  const auto pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}));
  pass->Mark(kept);
  ASSERT_TRUE(ValueOf(pass->ReclaimSome(UINT64_MAX)).done);
  Crash();
  Open();
  EXPECT_EQ(Stats().extents, 1U);
  EXPECT_EQ(Stats().live_bytes, kept.extent_size_bytes);
}

// What is not known of a segment must not be taken for known later.
TEST_F(StoreRecoveryTest, AnExtentWhoseHeaderIsLostBeforeTheStartStaysDoubtful) {
  const Locator lost = Append(3000, 1);
  const Locator kept = Append(5000, 2);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash();
  auto bytes = ValueOf(memory_.ReadSmallFile(SegmentPathOf(lost), 1 << 20));
  const auto header = std::span(bytes).subspan(lost.offset_bytes, kExtentHeaderSizeBytes);
  std::fill(header.begin(), header.end(), uint8_t{0xff});
  ASSERT_OK(memory_.ReplaceFile(SegmentPathOf(lost), bytes));
  Open();
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(5000, 2));
  directory_.reset();
  const Verified verified = VerifyAll(&memory_);
  ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kDoubtful) << verified.seen.Text();
}

TEST_F(StoreRecoveryTest, ASegmentThatCannotBeReadKeepsNothingFromStarting) {
  const Locator locator = Append(3000, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  Crash();
  env_.SetHook([&](const Call& call) {
    return call.path == SegmentPathOf(locator) ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
  });
  Open();
  EXPECT_EQ(ReadValue(directory_.get(), locator).status().code(), StatusCode::kIoError);
  env_.SetHook(nullptr);
  directory_.reset();
  Open();  // tries again
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), RandomValue(3000, 1));
}

/// A start whose drive cannot list a folder of the store of table 1.
class UnlistedFolderTest : public StoreRecoveryTest {
 protected:
  void SetUp() override {
    StoreRecoveryTest::SetUp();
    kept_ = Append(5000, 1);
    commit_ = ValueOf(directory_->DescribeCommit({&kept_, 1}));
    ASSERT_OK(directory_->Sync(unsynced_));
    folder_ = ParentPath(SegmentPathOf(kept_));
    Crash();
  }
  Status OpenWithoutFolder(int system_errno) {
    env_.RefuseLists(folder_, system_errno);
    Result<std::unique_ptr<StoreDirectoryImpl>> opened = OpenDirectory(&env_, options_);
    if (!opened.ok()) return opened.status();
    directory_ = std::move(opened).value();
    return Status::Ok();
  }
  /// The next start, which can list it.
  void OpenWithFolder() {
    env_.SetHook(nullptr);
    directory_.reset();
    Open();
  }
  Result<Locator> AppendTo(TableId table) {
    return ValueOf(directory_->OpenForAppend(table, "db/t"))->Append(RandomValue(3000, 2), {}, &unsynced_);
  }
  void ExpectKept() { EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept_)), RandomValue(5000, 1)); }

  Locator kept_;
  CommitRecord commit_;
  std::string folder_;
};

TEST_F(UnlistedFolderTest, MakesItsStoreReadOnlyAndNoOther) {
  ASSERT_OK(OpenWithoutFolder(EIO));
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  const std::string trouble = directory_->PathTroubles()[0];
  EXPECT_NE(trouble.find("store 1 is only read, because a folder of it cannot be listed: list " + folder_),
            std::string::npos)
      << trouble;
  ExpectKept();
  EXPECT_EQ(directory_->OwnershipOf(kept_.store, {1}), Ownership::kBound);
  EXPECT_EQ(directory_->OwnershipOf(kept_.store, {2}), Ownership::kForeign) << "whose it is, the catalogue knows";
  EXPECT_EQ(AppendTo({1}).status().code(), StatusCode::kUnavailable);
  EXPECT_OK(AppendTo({2}).status());
  OpenWithFolder();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  ExpectKept();
  EXPECT_OK(AppendTo({1}).status());
  directory_.reset();
  EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
}

TEST_F(UnlistedFolderTest, NothingOfItsStoreIsGivenBack) {
  ASSERT_OK(OpenWithoutFolder(EIO));
  const StoreId store = kept_.store;
  {
    const auto pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}));  // no row needs anything
    ASSERT_TRUE(ValueOf(pass->ReclaimSome(UINT64_MAX)).done);
  }
  ASSERT_OK(directory_->Discard({1}, 1));
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(1)), 0U);
  OpenWithFolder();
  ExpectKept();
  EXPECT_GT(ValueOf(directory_->EmptyTrash(1)), 0U) << "now it is";
}

TEST_F(UnlistedFolderTest, WhatMayLieInItIsNotTakenForLost) {
  commit_.extents[0].segment = SegmentNumber{99};
  Locator unknown = kept_;
  unknown.segment = SegmentNumber{99};
  ASSERT_OK(OpenWithoutFolder(EIO));
  EXPECT_EQ(directory_->HoldsDurably(commit_).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReadValue(directory_.get(), unknown).status().code(), StatusCode::kUnavailable);
  OpenWithFolder();
  EXPECT_FALSE(ValueOf(directory_->HoldsDurably(commit_)));
  EXPECT_EQ(ReadValue(directory_.get(), unknown).status().code(), StatusCode::kNotFound);
}

TEST_F(UnlistedFolderTest, AStoreWithoutARecordStaysUntilItIsKnownToBeEmpty) {
  folder_ = "/home/stores/" + StoreDirectoryName(StoreId{7});
  ASSERT_OK(memory_.CreateDirectory(folder_));
  ASSERT_OK(OpenWithoutFolder(EIO));
  EXPECT_TRUE(ValueOf(memory_.FileExists(folder_)));
  OpenWithFolder();
  EXPECT_FALSE(ValueOf(memory_.FileExists(folder_)));
}

// Where the catalogue lost something, a segment that it does not name may have values.
TEST_F(UnlistedFolderTest, ABackupThatMayLackASegmentOfItIsRefused) {
  ASSERT_OK(OpenWithoutFolder(EIO));
  EXPECT_EQ(ValueOf(directory_->TakeBackupSnapshot()).segments.size(), 1U);
  OpenWithFolder();
  ASSERT_OK(directory_->catalogue()->Commit({CatalogueDamage{kept_.store, 1, "a record was lost"}}));
  EXPECT_OK(directory_->TakeBackupSnapshot().status());
  directory_.reset();
  ASSERT_OK(OpenWithoutFolder(EIO));
  EXPECT_EQ(directory_->TakeBackupSnapshot().status().code(), StatusCode::kUnavailable);
}

TEST_F(UnlistedFolderTest, AnErrorThatMayHoldForAllFoldersStopsTheStart) {
  for (const int system_errno : {EMFILE, ENOMEM, EACCES}) {
    EXPECT_EQ(OpenWithoutFolder(system_errno).system_errno(), system_errno);
  }
  OpenWithFolder();
  ExpectKept();
}

/// Calls and bytes of a start after a crash.
struct Cost {
  uint64_t calls = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
};

class StartCostTest : public StoreRecoveryTest {
 protected:
  void SetUp() override { Open(); }
  Cost CostOfAStart() {
    Crash();
    const auto calls = [this] {
      uint64_t sum = 0;
      for (size_t kind = 0; kind < kCallKinds; ++kind) sum += env_.CountOf(static_cast<CallKind>(kind));
      return sum;
    };
    const uint64_t calls_before = calls();
    const uint64_t read_before = env_.BytesOf(CallKind::kRead);
    const uint64_t written_before = env_.BytesOf(CallKind::kWrite);
    Open();
    return {calls() - calls_before, env_.BytesOf(CallKind::kRead) - read_before,
            env_.BytesOf(CallKind::kWrite) - written_before};
  }
};

TEST_F(StartCostTest, IsTheSameForLittleAndForMuchUnflushedWork) {
  Append(100, 1);
  const Cost little = CostOfAStart();
  Append(100, 2);
  for (uint64_t i = 0; i < 40; ++i) Append(1 << 20, i);  // one transaction, one segment
  const Cost much = CostOfAStart();
  EXPECT_LE(much.calls, little.calls + 3);  // one more segment
  EXPECT_LE(much.bytes_read, little.bytes_read + kBlockSizeBytes);
  EXPECT_LE(much.bytes_written, little.bytes_written + kBlockSizeBytes);
  EXPECT_LE(much.bytes_read, 16 * kBlockSizeBytes);
}

TEST_F(StartCostTest, GrowsWithStoresByAFewCalls) {
  constexpr uint64_t kStores = 8192;
  for (uint64_t table = 1; table <= kStores; ++table) {
    (void)ValueOf(directory_->OpenForAppend({table}, "db/t#P#p" + std::to_string(table)));
  }
  const Cost cost = CostOfAStart();
  EXPECT_LE(cost.calls, 2 * kStores + 100);
  EXPECT_LE(cost.bytes_read, 400 * kStores + (8 << 20)) << "the log as it has grown, at most";
  EXPECT_LE(cost.bytes_written, 200 * kStores);
  EXPECT_EQ(directory_->ListStores().size(), kStores);
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

}  // namespace
}  // namespace quarry
