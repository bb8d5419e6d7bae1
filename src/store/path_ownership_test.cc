// Copies of a home, and the data paths that they share with their source: the source loses nothing by them.
#include "store/path_ownership.h"

#include <filesystem>
#include <map>

#include "io/path.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr TableId kTable{1};
constexpr TableId kDropped{2};

/// With birth times, and without.
class PathOwnershipTest : public testing::TestWithParam<bool> {
 protected:
  PathOwnershipTest() {
    memory_.SetKeepsBirthTimes(GetParam());
    EXPECT_OK(memory_.CreateDirectory("/disk1"));
    EXPECT_OK(memory_.CreateDirectory("/disk2"));
    EXPECT_OK(memory_.SyncDirectory("/"));
    options_.data_paths = {"/disk1"};
    options_.zeroed_pool_bytes = 4ULL << 20;  // a tail for recovery to cut off
  }

  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }

  void ExpectThatAdoptingHelps() {
    directory_.reset();
    options_.adopt_data_paths = true;
    Open();
    EXPECT_TRUE(directory_->PathTroubles().empty());
  }

  void Fill() {
    Open();
    for (const TableId table : {kTable, kDropped}) locators_[table] = Append(directory_.get(), table);
  }

  static Locator Append(StoreDirectory* directory, TableId table) {
    UnsyncedExtents unsynced;
    const auto store = ValueOf(directory->OpenForAppend(table, "db/t"));
    const Locator locator = ValueOf(store->Append(RandomValue(50000, table.value), {}, &unsynced));
    EXPECT_OK(directory->Sync(unsynced));
    return locator;
  }

  void ExpectReadable(StoreDirectory* directory) {
    for (const auto& [table, locator] : locators_) {
      EXPECT_EQ(ValueOf(ReadValue(directory, locator)), RandomValue(50000, table.value));
    }
  }

  // A file's bytes, or those of all files below a directory, by path.
  std::map<std::string, std::vector<uint8_t>> Contents(const std::string& path) {
    const auto names = memory_.ListDirectory(path);
    if (!names.ok()) return {{path, ValueOf(memory_.ReadSmallFile(path, 1ULL << 30))}};
    std::map<std::string, std::vector<uint8_t>> found;
    for (const std::string& name : *names) found.merge(Contents(JoinPath(path, name)));
    return found;
  }

  void CopyDirectory(const std::string& from, const std::string& to) {
    EXPECT_OK(memory_.CreateDirectory(to));
    EXPECT_OK(memory_.SyncDirectory(ParentPath(to)));
    for (const std::string& name : ValueOf(memory_.ListDirectory(from))) {
      const std::string source = JoinPath(from, name);
      const std::string target = JoinPath(to, name);
      if (memory_.ListDirectory(source).ok()) {
        CopyDirectory(source, target);
      } else {
        EXPECT_OK(memory_.ReplaceFile(target, ValueOf(memory_.ReadSmallFile(source, 1ULL << 20))));
      }
    }
  }

  /// The home, while nobody has it open, is copied to /copy. Without birth times the source is opened once more: only
  /// then can a copy be told.
  void CopyHome() {
    CopyDirectory("/home", "/copy");
    if (!GetParam()) {
      Open();
      directory_.reset();
    }
  }

  Result<std::unique_ptr<StoreDirectoryImpl>> OpenCopy(bool adopts = false) {
    DirectoryOptions options = options_;
    options.home_path = "/copy";
    options.adopt_data_paths = adopts;
    return OpenDirectory(&env_, options);
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::map<TableId, Locator> locators_;
};

TEST_P(PathOwnershipTest, ACopyReadsAndChangesNothing) {
  Fill();
  CutPower(&memory_, &env_, UINT64_MAX, &directory_);
  CopyHome();
  const auto before = Contents("/disk1");
  {
    auto copy = ValueOf(OpenCopy());
    ASSERT_EQ(copy->PathTroubles().size(), 1U);
    EXPECT_NE(copy->PathTroubles()[0].find("data path '/disk1' was last opened by another data directory"),
              std::string::npos);
    ExpectReadable(copy.get());
    UnsyncedExtents unsynced;
    const auto store = ValueOf(copy->OpenForAppend(kTable, "db/t"));
    EXPECT_EQ(store->Append(RandomValue(50000, 9), {}, &unsynced).status().code(), StatusCode::kUnavailable);
    ASSERT_OK(copy->Discard(kDropped, 1));
    EXPECT_EQ(ValueOf(copy->EmptyTrash(1)), 0U);
    ExpectReadable(copy.get());
  }
  (void)ValueOf(OpenCopy());  // recovers what it left
  EXPECT_EQ(Contents("/disk1"), before);
  Open();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  ExpectReadable(directory_.get());
  (void)Append(directory_.get(), kTable);
}

TEST_P(PathOwnershipTest, ACopyAppendsToAPathOfItsOwn) {
  Fill();
  directory_.reset();
  CopyHome();
  const auto before = Contents("/disk1");
  options_.data_paths = {"/disk1", "/disk2"};
  auto copy = ValueOf(OpenCopy());
  EXPECT_EQ(copy->PathTroubles().size(), 1U);
  for (int i = 0; i < 4; ++i) (void)Append(copy.get(), kTable);
  EXPECT_EQ(Contents("/disk1"), before);
}

TEST_P(PathOwnershipTest, APathOfBeforeIsOnlyReadByACopyToo) {
  Fill();
  directory_.reset();
  CopyHome();
  const auto before = Contents("/disk1");
  options_.data_paths = {"/disk2"};
  for (const bool adopts : {false, true}) {  // what is adopted is named
    auto copy = ValueOf(OpenCopy(adopts));
    EXPECT_EQ(copy->PathTroubles().size(), 1U);
    ExpectReadable(copy.get());
    ASSERT_OK(copy->Discard(kDropped, 1));
    EXPECT_EQ(ValueOf(copy->EmptyTrash(1)), 0U);
  }
  EXPECT_EQ(Contents("/disk1"), before);
}

TEST_P(PathOwnershipTest, WhoAdoptsAPathHasIt) {
  Fill();
  directory_.reset();
  CopyHome();
  {
    auto copy = ValueOf(OpenCopy(true));
    EXPECT_TRUE(copy->PathTroubles().empty());
    (void)Append(copy.get(), kTable);
  }
  EXPECT_TRUE(ValueOf(OpenCopy())->PathTroubles().empty());
  Open();
  EXPECT_EQ(directory_->PathTroubles().size(), 1U);
  ExpectReadable(directory_.get());
  ExpectThatAdoptingHelps();
}

TEST_P(PathOwnershipTest, ADamagedRecordIsNobodys) {
  Fill();
  directory_.reset();
  ASSERT_TRUE(memory_.FlipBit("/disk1/quarry/OPENED", 20, 3));
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  ExpectReadable(directory_.get());
  ExpectThatAdoptingHelps();
}

TEST_P(PathOwnershipTest, ARecordThatCannotBeReadKeepsNothingFromStarting) {
  Fill();
  directory_.reset();
  env_.RefuseReads("/disk1/quarry/OPENED", UINT64_MAX);
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  const std::string trouble = directory_->PathTroubles()[0];
  EXPECT_NE(trouble.find("Input/output error"), std::string::npos) << trouble;
  ExpectReadable(directory_.get());
  env_.SetHook(nullptr);
  directory_.reset();
  Open();
  EXPECT_TRUE(directory_->PathTroubles().empty());
  ExpectReadable(directory_.get());
}

TEST_P(PathOwnershipTest, AFullDiskKeepsNobodyFromReading) {
  const auto full = [](const Call& call) {
    return call.kind == CallKind::kReplace ? Status::FromErrno(ENOSPC, "write", call.path) : Status::Ok();
  };
  Fill();
  directory_.reset();
  env_.SetHook(full);
  Open();  // it bears a record, which need not be renewed
  EXPECT_TRUE(directory_->PathTroubles().empty());
  ExpectReadable(directory_.get());
  directory_.reset();
  ASSERT_OK(memory_.RemoveFile("/disk1/quarry/OPENED"));
  EXPECT_EQ(OpenDirectory(&env_, options_).status().code(), StatusCode::kNoSpace);
  options_.data_paths.clear();
  Open();
  ASSERT_EQ(directory_->PathTroubles().size(), 1U);
  EXPECT_NE(directory_->PathTroubles()[0].find("cannot be marked"), std::string::npos);
  ExpectReadable(directory_.get());
  directory_.reset();
  env_.SetHook(nullptr);
  Open();
  EXPECT_TRUE(directory_->PathTroubles().empty());
}

// Wherever power goes while it is opened, once or twice, the path stays this home's own.
TEST_P(PathOwnershipTest, NoCrashAtOpeningTakesThePathAway) {
  options_.data_paths = {"/disk1", "/disk2"};
  Fill();
  directory_.reset();
  int cuts = 0;
  for (int at = 1; at < 200; ++at) {
    int calls = 0;
    env_.SetHook(
        [&](const Call& call) { return ++calls < at ? Status::Ok() : Status::FromErrno(EIO, "power", call.path); });
    auto opened = OpenDirectory(&env_, options_);
    const bool whole = opened.ok() && calls < at;
    if (opened.ok()) opened->reset();
    env_.SetHook(nullptr);
    memory_.PowerCut(static_cast<uint64_t>(at) % 3);
    if (whole) break;
    ++cuts;
    if (at % 2 == 0) continue;  // the next crash comes on top
    Open();
    EXPECT_TRUE(directory_->PathTroubles().empty()) << "at call " << at;
    ExpectReadable(directory_.get());
    directory_.reset();
  }
  EXPECT_GT(cuts, 10);
}

INSTANTIATE_TEST_SUITE_P(BirthTimes, PathOwnershipTest, testing::Bool());

TEST(PathOwnership, AHomeThatGotAnotherNameIsTheSame) {
  MemoryEnv memory;
  DirectoryOptions options = TestOptions();
  ASSERT_OK(memory.CreateDirectory("/disk1"));
  options.data_paths = {"/disk1"};
  (void)ValueOf(OpenDirectory(&memory, options));
  ASSERT_OK(memory.Rename("/home", "/elsewhere"));
  options.home_path = "/elsewhere";
  EXPECT_TRUE(ValueOf(OpenDirectory(&memory, options))->PathTroubles().empty());
}

// On a real file system, which has locks.
class SharedPathTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/quarry-paths-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directory(root_ + "/disk1");
    options_.home_path = root_ + "/home";
    options_.data_paths = {root_ + "/disk1"};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void CopyHome() {
    std::filesystem::copy(root_ + "/home", root_ + "/copy", std::filesystem::copy_options::recursive);
    copy_ = options_;
    copy_.home_path = root_ + "/copy";
  }

  std::string root_;
  DirectoryOptions options_ = TestOptions();
  DirectoryOptions copy_;
};

TEST_F(SharedPathTest, TwoServersAtOnceDoNotOpenOnePath) {
  (void)ValueOf(OpenDirectory(Env::Posix(), options_));
  CopyHome();
  {
    const auto source = ValueOf(OpenDirectory(Env::Posix(), options_));
    const Status refused = OpenDirectory(Env::Posix(), copy_).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_NE(refused.message().find("is in use by another server"), std::string::npos) << refused.message();
    copy_.data_paths.clear();  // it is only recorded: the rest can be opened
    EXPECT_TRUE(OpenDirectory(Env::Posix(), copy_).ok());
    copy_.data_paths = options_.data_paths;
  }
  // The copy holds no lock on what it may only read.
  const auto copy = ValueOf(OpenDirectory(Env::Posix(), copy_));
  const auto source = ValueOf(OpenDirectory(Env::Posix(), options_));
  EXPECT_TRUE(source->PathTroubles().empty());
}

}  // namespace
}  // namespace quarry
