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

}  // namespace
}  // namespace quarry
