// A data path that fails, fills, turns slow or is lost: who notices, and that everybody else does not.
#include <future>
#include <thread>

#include "context/path_health.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

// ---- PathHealth ----

constexpr uint64_t kSecond = 1'000'000;

TEST(PathHealthTest, AfterAFailureOneTriesAtATime) {
  PathHealth health;
  int first = 0;
  int second = 0;
  EXPECT_TRUE(health.Admits(&first, 0));
  health.NoteFailure(0);
  EXPECT_FALSE(health.Admits(&first, kSecond / 2));
  EXPECT_TRUE(health.Admits(&first, kSecond));
  EXPECT_FALSE(health.Admits(&second, kSecond));
  health.NoteSuccess(&second);  // was there before the failure
  EXPECT_TRUE(health.has_failed());
  health.NoteSuccess(&first);
  EXPECT_FALSE(health.has_failed());
  EXPECT_TRUE(health.Admits(&second, kSecond));
}

TEST(PathHealthTest, EachFailureDoublesThePause) {
  PathHealth health;
  uint64_t now = 0;
  uint64_t pause = PathHealth::kPauseMinMicros;
  health.NoteFailure(now);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(health.Admits(&health, now + pause - 1)) << i;
    EXPECT_TRUE(health.Admits(&health, now += pause)) << i;
    health.NoteFailure(now);
    health.NoteFailure(now);  // another statement of the same transaction
    pause = std::min(2 * pause, PathHealth::kPauseMaxMicros);
  }
}

TEST(PathHealthTest, WhoeverDoesNotComeBackIsFollowed) {
  PathHealth health;
  int second = 0;
  health.NoteFailure(0);
  EXPECT_TRUE(health.Admits(&health, kSecond));
  EXPECT_TRUE(health.Admits(&second, 2 * kSecond));
  health.NoteSuccess(&second);
  EXPECT_FALSE(health.has_failed());
}

TEST(PathHealthTest, ALongCallKeepsOthersAway) {
  PathHealth health;
  {
    const PathHealth::Call call(&health, 0);
    const PathHealth::Call later(&health, kSecond);
    EXPECT_TRUE(health.Admits(&health, PathHealth::kSlowMicros));
    EXPECT_FALSE(health.Admits(&health, PathHealth::kSlowMicros + 1));
  }
  EXPECT_TRUE(health.Admits(&health, 10 * kSecond));
}

// ---- a directory on four paths ----

class DataPathFailureTest : public testing::Test {
 protected:
  DataPathFailureTest() {
    options_.data_paths = {"/disk1", "/disk2", "/disk3", "/disk4"};
    for (const std::string& path : options_.data_paths) EXPECT_OK(memory_.CreateDirectory(path));
  }
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  void FailOn(const std::string& path, int system_errno, bool only_what_allocates) {
    env_.SetHook([=](const Call& call) {
      const bool allocates =
          call.kind == CallKind::kWrite || call.kind == CallKind::kCreate || call.kind == CallKind::kAllocate;
      const bool fails = call.path.starts_with(path) && (allocates || !only_what_allocates);
      return fails ? Status::FromErrno(system_errno, "use", call.path) : Status::Ok();
    });
  }
  [[nodiscard]] bool CommitOne(uint64_t table, uint64_t seed) {
    UnsyncedExtents unsynced;
    const auto store = ValueOf(directory_->OpenForAppend({table}, "db/t"));
    return store->Append(RandomValue(5000, seed), {}, &unsynced).ok() && directory_->Sync(unsynced).ok();
  }
  [[nodiscard]] int FailuresOf(int transactions) {
    int failed = 0;
    for (int i = 0; i < transactions; ++i) failed += CommitOne(1, static_cast<uint64_t>(i)) ? 0 : 1;
    return failed;
  }
  [[nodiscard]] size_t SegmentsOn(const std::string& path) {
    size_t count = 0;
    for (const std::string& store : ValueOf(memory_.ListDirectory(path + "/quarry"))) {
      if (ParseStoreDirectoryName(store)) count += ValueOf(memory_.ListDirectory(path + "/quarry/" + store)).size();
    }
    return count;
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

TEST_F(DataPathFailureTest, OneThatFailsCostsAtMostTheTransactionsThatAreThere) {
  Open();
  EXPECT_EQ(FailuresOf(8), 0);
  FailOn("/disk3", EIO, false);
  EXPECT_LE(FailuresOf(400), 1);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 1U);
  // Each that tries it finds that no segment can be made, and goes elsewhere.
  for (int i = 0; i < 10; ++i) {
    memory_.AdvanceMicros(70 * kSecond);
    EXPECT_EQ(FailuresOf(8), 0);
  }
  const std::vector<std::string> notices = directory_->TakeNotices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("/disk3"), std::string::npos) << notices[0];
  // And it takes its share again when it can.
  env_.SetHook(nullptr);
  memory_.AdvanceMicros(70 * kSecond);
  const size_t before = SegmentsOn("/disk3");
  EXPECT_EQ(FailuresOf(8), 0);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 0U);
  EXPECT_GT(SegmentsOn("/disk3"), before);
}

// As when it is unmounted under a running server: nothing is made in its place.
TEST_F(DataPathFailureTest, OneThatVanishesCostsNothing) {
  Open();
  ASSERT_OK(memory_.Rename("/disk3", "/away"));
  EXPECT_EQ(FailuresOf(400), 0);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 1U);
  EXPECT_FALSE(ValueOf(memory_.FileExists("/disk3")));
  const std::vector<std::string> notices = directory_->TakeNotices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("/disk3"), std::string::npos) << notices[0];
  // And it takes its share again when it is back.
  ASSERT_OK(memory_.Rename("/away", "/disk3"));
  memory_.AdvanceMicros(70 * kSecond);
  EXPECT_EQ(FailuresOf(8), 0);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 0U);
  EXPECT_GT(SegmentsOn("/disk3"), 0U);
}

TEST_F(DataPathFailureTest, OneThatIsFullFromTheBeginningCostsNothing) {
  Open();
  FailOn("/disk2", ENOSPC, true);
  EXPECT_EQ(FailuresOf(400), 0);
}

TEST_F(DataPathFailureTest, WithoutDescriptorsNoPathIsAtFault) {
  Open();
  FailOn("/disk", EMFILE, true);
  EXPECT_EQ(FailuresOf(4), 4);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 0U);
  EXPECT_TRUE(directory_->TakeNotices().empty());
}

TEST_F(DataPathFailureTest, WhenAllFailTheErrorIsTold) {
  Open();
  FailOn("/disk", ENOSPC, true);
  UnsyncedExtents unsynced;
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  EXPECT_EQ(store->Append(RandomValue(5000, 1), {}, &unsynced).status().code(), StatusCode::kNoSpace);
  env_.SetHook(nullptr);
  EXPECT_EQ(FailuresOf(40), 0);
}

TEST_F(DataPathFailureTest, AFailureOfTheCatalogueIsNoPathsFailure) {
  Open();
  UnsyncedExtents unsynced;
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  // Where the segment is recorded.
  FailOn(options_.home_path, ENOSPC, true);
  EXPECT_EQ(store->Append(RandomValue(5000, 1), {}, &unsynced).status().code(), StatusCode::kNoSpace);
  EXPECT_EQ(directory_->GetCounters().data_paths_avoided, 0U);
  env_.SetHook(nullptr);
  EXPECT_EQ(FailuresOf(8), 0);
}

// Each try would leave one: the record may have reached the disk, so its file has to stay.
TEST_F(DataPathFailureTest, AFullHomeDoesNotFillThePathsWithSegmentsThatHaveNoRecord) {
  options_.data_paths = {"/disk1"};
  Open();
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  FailOn(options_.home_path, ENOSPC, true);
  UnsyncedExtents unsynced;
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(store->Append(RandomValue(5000, i), {}, &unsynced).status().code(), StatusCode::kNoSpace);
  }
  EXPECT_EQ(SegmentsOn("/disk1"), 1U);
  env_.SetHook(nullptr);
  EXPECT_EQ(FailuresOf(4), 0);
}

TEST_F(DataPathFailureTest, ALostPathKeepsNothingElseInTheTrash) {
  Open();
  EXPECT_EQ(FailuresOf(8), 0);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk2", "/dead"));
  options_.data_paths = {"/disk1", "/disk3"};
  Open();
  for (uint64_t table = 10; table < 30; ++table) ASSERT_TRUE(CommitOne(table, table));
  for (uint64_t table = 10; table < 30; ++table) ASSERT_OK(directory_->Discard({table}, 5));
  ASSERT_OK(directory_->Discard({1}, 5));
  EXPECT_GT(ValueOf(directory_->EmptyTrash(100)), 0U);
  // What is left is what lies on the lost path.
  const std::vector<StoreStats> left = directory_->ListStores();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].table, TableId{1});
  EXPECT_EQ(left[0].real_bytes, 0U);
  EXPECT_GT(left[0].segments, 0U);
  // When it comes back, the rest goes.
  directory_.reset();
  ASSERT_OK(memory_.Rename("/dead", "/disk2"));
  options_.data_paths = {"/disk1", "/disk2", "/disk3"};
  Open();
  (void)ValueOf(directory_->EmptyTrash(100));
  EXPECT_TRUE(directory_->ListStores().empty());
}

// What would stay on it belongs to no store any more, and nobody gives it back.
TEST_F(DataPathFailureTest, ADroppedStoreWaitsForAPathThatVanished) {
  Open();
  EXPECT_EQ(FailuresOf(8), 0);
  ASSERT_TRUE(CommitOne(2, 1));
  ASSERT_EQ(SegmentsOn("/disk3"), 1U);
  const StoreId waiting = ValueOf(directory_->Find({1}))->id();
  ASSERT_OK(memory_.Rename("/disk3", "/away"));
  ASSERT_OK(directory_->Discard({1}, 5));
  ASSERT_OK(directory_->Discard({2}, 5));
  const Status status = directory_->EmptyTrash(100).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("'/disk3'"), std::string::npos) << status.ToString();
  ASSERT_EQ(directory_->ListStores().size(), 1U) << "the other one has nothing there";
  EXPECT_EQ(directory_->ListStores()[0].store, waiting);
  ASSERT_OK(memory_.Rename("/away", "/disk3"));
  ASSERT_OK(directory_->EmptyTrash(100).status());
  EXPECT_TRUE(directory_->ListStores().empty());
  EXPECT_EQ(SegmentsOn("/disk3"), 0U);
}

}  // namespace
}  // namespace quarry
