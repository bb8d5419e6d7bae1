// Several data paths: what lies where, and what a path that is away takes away.
#include <cerrno>

#include "store/store_binding_test_util.h"

namespace quarry {
namespace {

class DataPathTest : public StoreBindingTest {
 protected:
  void SetUp() override {
    for (const char* path : {"/disk1", "/disk2", "/disk3"}) ASSERT_OK(memory_.CreateDirectory(path));
    options_.data_paths = {"/disk1", "/disk2"};
    Open();
  }
};

TEST_F(DataPathTest, SegmentsLieOnEveryPathAndReadBackFromAll) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 10; ++i) locators.push_back(AppendTo(kTable, i));
  for (const char* path : {"/disk1", "/disk2"}) {
    const std::string directory = std::string(path) + "/quarry/0000000000000001";
    EXPECT_EQ(ValueOf(memory_.ListDirectory(directory)).size(), 1U);
  }
  CrashAndOpen();
  for (uint64_t i = 0; i < 10; ++i) ExpectReadable(locators[i], i);
  ASSERT_OK(directory_->Discard(kTable, 1));
  for (uint64_t i = 0; i < 10; ++i) ExpectReadable(locators[i], i);
  EXPECT_GT(ValueOf(directory_->EmptyTrash(1)), 0U);
  const std::vector<std::string> no_store = {"OPENED", "PATH"};
  EXPECT_EQ(ValueOf(memory_.ListDirectory("/disk1/quarry")), no_store);
  EXPECT_EQ(ValueOf(memory_.ListDirectory("/disk2/quarry")), no_store);
}

// A start made these folders and was killed before it flushed their names. The next start must not rely on it.
TEST(NewFoldersTest, WhatAKilledStartMadeIsFlushedByTheNext) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  ASSERT_OK(memory.CreateDirectory("/disk1"));
  ASSERT_OK(memory.SyncDirectory("/"));
  for (const char* const made : {"/home", "/home/stores", "/home/trash", "/disk1/quarry"}) {
    ASSERT_OK(memory.CreateDirectory(made));
  }
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1"};
  auto directory = ValueOf(OpenDirectory(&env, options));
  UnsyncedExtents unsynced;
  const Locator locator =
      ValueOf(ValueOf(directory->OpenForAppend(kTable, "db/t"))->Append(RandomValue(3000, 1), {}, &unsynced));
  ASSERT_OK(directory->Sync(unsynced));
  CutPower(&memory, &env, 0, &directory);
  directory = ValueOf(OpenDirectory(&env, options));
  const Result<std::vector<uint8_t>> read = ReadValue(directory.get(), locator);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, RandomValue(3000, 1));
}

TEST_F(DataPathTest, APathThatTheCatalogueMayNameKeepsItsMarker) {
  directory_.reset();
  options_.data_paths.emplace_back("/disk3");
  // The new generation is written, and then the flush of its name fails.
  env_.SetHook([&](const Call& call) {
    const bool is_last = call.kind == CallKind::kSyncDirectory && call.path == "/home";
    return is_last ? Status::FromErrno(EIO, "fsync directory", call.path) : Status::Ok();
  });
  EXPECT_EQ(OpenDirectory(&env_, options_).status().code(), StatusCode::kIoError);
  env_.SetHook(nullptr);
  EXPECT_OK(OpenDirectory(&env_, options_).status());
}

TEST_F(DataPathTest, ATransactionStaysOnOnePath) {
  UnsyncedExtents unsynced;
  const auto store = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
  for (uint64_t i = 0; i < 10; ++i) (void)ValueOf(store->Append(RandomValue(100, i), {}, &unsynced));
  EXPECT_EQ(unsynced.entries().size(), 1U);
  const uint64_t before = env_.CountOf(CallKind::kSync);
  ASSERT_OK(directory_->Sync(unsynced));
  EXPECT_EQ(env_.CountOf(CallKind::kSync) - before, 1U);
}

TEST_F(DataPathTest, AMissingPathIsNamedAndNothingIsMade) {
  AppendTo(kTable, 1);
  directory_.reset();
  options_.data_paths = {"/disk1", "/disk2", "/nowhere"};
  const Status missing = OpenDirectory(&env_, options_).status();
  EXPECT_EQ(missing.code(), StatusCode::kUnavailable);
  EXPECT_NE(missing.message().find("/nowhere"), std::string::npos);
  EXPECT_FALSE(ValueOf(memory_.FileExists("/nowhere")));
}

TEST_F(DataPathTest, AnEmptyMountPointIsNotTakenForThePath) {
  AppendTo(kTable, 1);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk2/quarry", "/disk3/quarry"));  // as if not mounted
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  EXPECT_NE(directory_->PathTroubles()[0].find("'/disk2' is missing: it has lost its marker"), std::string::npos);
  AppendTo(kTable, 3);
  EXPECT_TRUE(ValueOf(memory_.ListDirectory("/disk2")).empty());
  directory_.reset();
  // Mounted elsewhere and configured so: the marker says which it is.
  options_.data_paths = {"/disk1", "/disk3"};
  Open();
  AppendTo(kTable, 2);
}

// Else a flipped bit would take the values of a path away for good.
TEST_F(DataPathTest, ADamagedMarkerIsNamedAndMadeAnewForWhoAdoptsThePath) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 4; ++i) locators.push_back(AppendTo(kTable, i));
  directory_.reset();
  ASSERT_TRUE(memory_.FlipBit("/disk2/quarry/PATH", 20, 1));
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  const std::string trouble = directory_->PathTroubles()[0];
  EXPECT_NE(trouble.find("'/disk2' is not used, because of its marker 'quarry/PATH'"), std::string::npos) << trouble;
  EXPECT_NE(trouble.find("PATH checksum mismatch"), std::string::npos) << trouble;
  options_.adopt_data_paths = true;
  Reopen();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  options_.adopt_data_paths = false;
  Reopen();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  for (uint64_t i = 0; i < 4; ++i) ExpectReadable(locators[i], i);
}

TEST_F(DataPathTest, APathThatIsAwayTakesOnlyItsValuesAway) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 4; ++i) locators.push_back(AppendTo(kTable, i));
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk2", "/gone"));
  Open();
  EXPECT_EQ(directory_->PathTroubles(), std::vector<std::string>{"data path '/disk2' is missing"});
  int unavailable = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    const Result<std::vector<uint8_t>> read = ReadValue(directory_.get(), locators[i]);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), StatusCode::kUnavailable);
      ++unavailable;
    }
  }
  EXPECT_EQ(unavailable, 2);
  for (uint64_t i = 4; i < 8; ++i) locators.push_back(AppendTo(kTable, i));
  EXPECT_FALSE(ValueOf(memory_.FileExists("/disk2")));
  directory_.reset();
  ASSERT_OK(memory_.Rename("/gone", "/disk2"));
  Open();
  for (uint64_t i = 0; i < 8; ++i) ExpectReadable(locators[i], i);
}

TEST_F(DataPathTest, APathWhoseFolderCannotBeListedTakesOnlyItsValuesAway) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 4; ++i) locators.push_back(AppendTo(kTable, i));
  directory_.reset();
  env_.RefuseLists("/disk2/quarry", EIO);
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  const std::string trouble = directory_->PathTroubles()[0];
  EXPECT_NE(trouble.find("'/disk2' is not used, because its folder 'quarry' cannot be listed"), std::string::npos)
      << trouble;
  uint64_t unavailable = 0;
  for (const Locator& locator : locators) {
    unavailable += ReadValue(directory_.get(), locator).status().code() == StatusCode::kUnavailable ? 1 : 0;
  }
  EXPECT_EQ(unavailable, 2U);
  for (uint64_t i = 4; i < 8; ++i) locators.push_back(AppendTo(kTable, i));
  env_.SetHook(nullptr);
  Reopen();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  for (uint64_t i = 0; i < 8; ++i) ExpectReadable(locators[i], i);
}

TEST_F(DataPathTest, ASegmentWhoseRecordIsLostKeepsItsNumberWhileItsPathIsAway) {
  AppendTo(kTable, 0);
  const Locator lost = AppendTo(kTable, 1);
  ASSERT_TRUE(ValueOf(memory_.FileExists("/disk2/quarry/0000000000000001/" + SegmentFileName(lost.segment))));
  CatalogueState state = directory_->catalogue()->state();
  directory_.reset();
  state.stores[lost.store].segments.erase(lost.segment.value);
  state.stores[lost.store].record->next_segment = SegmentNumber{1};
  state.Apply(CatalogueDamage{lost.store, 1, "a record was lost"});
  std::vector<CatalogueRecord> records = state.Records();
  records.emplace_back(CatalogueEnd{state.installation});
  WriteCatalogue(records);
  ASSERT_OK(memory_.Rename("/disk2", "/gone"));
  Open();
  const Locator more = AppendTo(kTable, 2);
  EXPECT_EQ(more.store, lost.store);
  EXPECT_NE(more.segment, lost.segment);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/gone", "/disk2"));
  Open();
  ExpectReadable(lost, 1);
  ExpectReadable(more, 2);
}

TEST_F(DataPathTest, WhenAllAreAwayNothingGoesToTheDataDirectory) {
  AppendTo(kTable, 1);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk1", "/gone1"));
  ASSERT_OK(memory_.Rename("/disk2", "/gone2"));
  Open();
  UnsyncedExtents unsynced;
  const auto store = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
  const Status status = store->Append(RandomValue(100, 1), {}, &unsynced).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/disk1"), std::string::npos) << status.ToString();
}

TEST_F(DataPathTest, FilesOfAPathThatMovedToAnotherOneAreNotAway) {
  AppendTo(kTable, 1);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk2/quarry", "/disk3/quarry"));
  options_.data_paths = {"/disk1", "/disk2", "/disk3"};
  const Status status = OpenDirectory(&env_, options_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("'/disk2' is missing"), std::string::npos) << status.ToString();
}

TEST_F(DataPathTest, AForeignPathIsRefused) {
  DirectoryOptions other = options_;
  other.home_path = "/other";
  const Status foreign = OpenDirectory(&env_, other).status();
  EXPECT_EQ(foreign.code(), StatusCode::kUnavailable);
  EXPECT_NE(foreign.message().find("another installation"), std::string::npos);
  EXPECT_FALSE(ValueOf(memory_.FileExists("/other")));
}

TEST_F(DataPathTest, APathNoLongerConfiguredIsReadWhileItIsThere) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 4; ++i) locators.push_back(AppendTo(kTable, i));
  options_.data_paths = {"/disk2", "/disk3"};
  Reopen();
  for (uint64_t i = 0; i < 4; ++i) ExpectReadable(locators[i], i);
  for (uint64_t i = 4; i < 8; ++i) locators.push_back(AppendTo(kTable, i));
  EXPECT_EQ(ValueOf(memory_.ListDirectory("/disk1/quarry/0000000000000001")).size(), 1U);
  EXPECT_EQ(ValueOf(memory_.ListDirectory("/disk3/quarry/0000000000000001")).size(), 1U);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/disk1/quarry", "/gone"));
  Open();
  int unavailable = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    const Result<std::vector<uint8_t>> read = ReadValue(directory_.get(), locators[i]);
    if (read.ok()) {
      EXPECT_EQ(*read, RandomValue(3000, i));
    } else {
      EXPECT_EQ(read.status().code(), StatusCode::kUnavailable);
      ++unavailable;
    }
  }
  EXPECT_EQ(unavailable, 2);
}

}  // namespace
}  // namespace quarry
