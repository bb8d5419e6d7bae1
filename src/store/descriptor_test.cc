// Figures about many segments cost no open files: a directory may have more segments than a process may have
// descriptors.
#include <dirent.h>
#include <stdlib.h>

#include <filesystem>

#include "quarry/gc.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

size_t OpenDescriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(DescriptorTest, ListStoresAndTheBeginOfGcKeepNoFileOpen) {
  std::string pattern = (std::filesystem::temp_directory_path() / "quarry_descriptors_XXXXXX").string();
  const std::string root = ::mkdtemp(pattern.data());
  DirectoryOptions options = TestOptions();
  options.home_path = root + "/home";
  options.segment_size_bytes = 64 << 10;
  {
    auto directory = ValueOf(OpenDirectory(Env::Posix(), options));
    auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
    UnsyncedExtents unsynced;
    for (uint64_t i = 0; i < 60; ++i) (void)ValueOf(store->Append(RandomValue(30000, i), {}, &unsynced));
    ASSERT_OK(directory->Sync(unsynced));
  }
  auto directory = ValueOf(OpenDirectory(Env::Posix(), options));
  const size_t before = OpenDescriptors();
  const std::vector<StoreStats> stats = directory->ListStores();
  ASSERT_EQ(stats.size(), 1U);
  EXPECT_GT(stats[0].segments, 20U);
  EXPECT_GT(stats[0].real_bytes, 60U * 30000);
  const std::vector<StoreId> stores = {stats[0].store};
  const auto pass = ValueOf(BeginGcPass(directory.get(), stores));
  EXPECT_EQ(pass->report().segments, stats[0].segments);
  EXPECT_EQ(OpenDescriptors(), before);
  directory.reset();
  std::filesystem::remove_all(root);
}

TEST(DescriptorTest, AFileThatCannotBeOpenedAgainIsFollowedByANewSegment) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  DirectoryOptions options = TestOptions();
  options.open_files_max = 16;
  const auto directory = ValueOf(OpenDirectory(&env, options));
  const auto append = [&](uint64_t table, uint64_t seed) -> Result<Locator> {
    QUARRY_TRY_ASSIGN(const auto store, directory->OpenForAppend({table}, "db/t" + std::to_string(table)));
    UnsyncedExtents unsynced;
    QUARRY_TRY_ASSIGN(const Locator locator, store->Append(RandomValue(9000, seed), {}, &unsynced));
    QUARRY_TRY(directory->Sync(unsynced));
    return locator;
  };
  const Locator first = ValueOf(append(1, 1));
  for (uint64_t table = 2; table <= 40; ++table) ASSERT_OK(append(table, table).status());  // its file is closed
  const std::string path = SegmentPathOf(first);
  env.SetHook([&path](const Call& call) {
    const bool fails = call.kind == CallKind::kOpen && call.path == path;
    return fails ? Status::FromErrno(EIO, "open", path) : Status::Ok();
  });
  for (uint64_t seed = 50; seed < 60; ++seed) {
    const Result<Locator> locator = append(1, seed);
    ASSERT_OK(locator.status());
    EXPECT_NE(locator->segment, first.segment);
  }
  env.SetHook(nullptr);
  EXPECT_EQ(ValueOf(ReadValue(directory.get(), first, {})), RandomValue(9000, 1));
}

}  // namespace
}  // namespace quarry
