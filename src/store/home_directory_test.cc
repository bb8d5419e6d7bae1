// The home that something else renamed: brought back when that is safe, whole after a failure or a power cut.
#include "store/home_directory.h"

#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr const char* kHome = "/data/#quarry";
constexpr const char* kMoved = "/data/@0023quarry";

class HomeDirectoryTest : public testing::Test {
 protected:
  HomeDirectoryTest() {
    EXPECT_OK(memory_.CreateDirectory("/data"));
    EXPECT_OK(memory_.SyncDirectory("/"));
    options_.home_path = kHome;
    options_.zeroed_pool_bytes = 0;
    auto directory = ValueOf(OpenDirectory(&env_, options_));
    UnsyncedExtents unsynced;
    auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
    locator_ = ValueOf(store->Append(RandomValue(5000, 1), {}, &unsynced));
    EXPECT_OK(directory->Sync(unsynced));
  }
  void MoveAway() {
    EXPECT_OK(memory_.Rename(kHome, kMoved));
    EXPECT_OK(memory_.SyncDirectory("/data"));
  }
  void ExpectThere() {
    auto directory = ValueOf(OpenDirectory(&env_, options_));
    EXPECT_EQ(ValueOf(ReadValue(directory.get(), locator_)), RandomValue(5000, 1));
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_;
  Locator locator_;
};

TEST_F(HomeDirectoryTest, StaysWhereItIs) {
  EXPECT_FALSE(ValueOf(MoveHomeBack(&env_, kMoved, kHome)));
  EXPECT_OK(memory_.CreateDirectory(kMoved));  // a database of that name, with no store in it
  EXPECT_FALSE(ValueOf(MoveHomeBack(&env_, kMoved, kHome)));
  ExpectThere();
}

TEST_F(HomeDirectoryTest, ComesBackAndStaysBackAfterAPowerCut) {
  MoveAway();
  EXPECT_OK(memory_.ReplaceFile(std::string(kMoved) + "/db.opt", std::vector<uint8_t>{1}));
  EXPECT_OK(memory_.CreateDirectory(kHome));  // made by a start that found nothing
  EXPECT_TRUE(ValueOf(MoveHomeBack(&env_, kMoved, kHome)));
  EXPECT_FALSE(ValueOf(memory_.FileExists(std::string(kHome) + "/db.opt")));
  memory_.PowerCut(0);
  EXPECT_FALSE(ValueOf(MoveHomeBack(&env_, kMoved, kHome)));
  ExpectThere();
}

TEST_F(HomeDirectoryTest, StoresInBothPlacesAreLeftToThePerson) {
  MoveAway();
  (void)ValueOf(OpenDirectory(&env_, options_));
  const Status status = MoveHomeBack(&env_, kMoved, kHome).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(kMoved), std::string::npos) << status.message();
  EXPECT_TRUE(ValueOf(memory_.FileExists(std::string(kMoved) + "/DIRECTORY")));
}

TEST_F(HomeDirectoryTest, AnyFailureIsToldAndTheNextTryFinishes) {
  for (const CallKind kind : {CallKind::kList, CallKind::kRename, CallKind::kRemove, CallKind::kSyncDirectory}) {
    MoveAway();
    EXPECT_OK(memory_.ReplaceFile(std::string(kMoved) + "/db.opt", std::vector<uint8_t>{1}));
    env_.FailCall(kind, 1, EIO);
    EXPECT_EQ(MoveHomeBack(&env_, kMoved, kHome).status().code(), StatusCode::kIoError);
    env_.ClearFailures();
    EXPECT_OK(MoveHomeBack(&env_, kMoved, kHome).status());
    ExpectThere();
  }
}

}  // namespace
}  // namespace quarry
