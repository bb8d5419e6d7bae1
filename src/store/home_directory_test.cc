// What is a home and what is none: asked before anybody opens it.
#include "store/home_directory.h"

#include "store/store_test_util.h"

namespace quarry {
namespace {

TEST(HomeDirectoryTest, IsAHomeOnceItWasOpened) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  DirectoryOptions options;
  options.home_path = std::string("/data/") + kHomeName;
  options.zeroed_pool_bytes = 0;
  ASSERT_OK(memory.CreateDirectory("/data"));
  ASSERT_OK(memory.SyncDirectory("/"));
  EXPECT_FALSE(ValueOf(IsHome(&env, options.home_path)));
  ASSERT_OK(memory.CreateDirectory(options.home_path));
  ASSERT_OK(memory.SyncDirectory("/data"));
  EXPECT_FALSE(ValueOf(IsHome(&env, options.home_path))) << "an empty folder: its file system may not be mounted";
  (void)ValueOf(OpenDirectory(&env, options));
  EXPECT_TRUE(ValueOf(IsHome(&env, options.home_path)));
  memory.PowerCut(0);
  EXPECT_TRUE(ValueOf(IsHome(&env, options.home_path)));
}

TEST(HomeDirectoryTest, SaysWhenItCannotTell) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  env.FailCall(CallKind::kList, 1, EIO);
  EXPECT_EQ(IsHome(&env, "/home").status().code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace quarry
