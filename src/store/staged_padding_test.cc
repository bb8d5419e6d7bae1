// What stands between staged extents on disk: zeros, never what the chunk's memory held before.
#include <set>

#include "format/extent.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

TEST(StagedPaddingTest, NoOldMemoryBetweenExtents) {
  MemoryEnv env;
  DirectoryOptions options = TestOptions();
  options.recent_cache_bytes = 0;  // a chunk's buffer goes back to the pool at once
  std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
  std::vector<Locator> locators;
  UnsyncedExtents unsynced;
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  const auto append = [&](size_t size_bytes, uint64_t seed) {
    std::vector<uint8_t> value = RandomValue(size_bytes, seed);
    for (uint8_t& byte : value) byte |= 1;  // a zero on disk is none of a value's
    locators.push_back(ValueOf(store->Append(value, {}, &unsynced)));
  };
  append(500000, 1);  // fills the memory with something
  ASSERT_OK(directory->Sync(unsynced));
  (void)directory->FindStore({1})->ExpectOnDisk(*directory->FindStore({1})->FindSegment({1}));  // lets go of the chunk
  for (uint64_t i = 0; i < 50; ++i) append(100 + 37 * i, i);
  ASSERT_OK(directory->Sync(unsynced));

  const auto file = ValueOf(env.OpenForRead("/home/stores/0000000000000001/00000001.qseg"));
  std::vector<uint8_t> bytes(ValueOf(file->SizeBytes()));
  ASSERT_EQ(ValueOf(file->ReadAt(0, bytes)), bytes.size());
  std::set<uint64_t> gap_sizes;
  for (size_t i = 0; i < locators.size(); ++i) {
    const Locator& locator = locators[i];
    const uint64_t parts = PartCount(locator.value_size_bytes, kPartSizeDefaultBytes);
    const uint64_t begin =
        locator.offset_bytes + HeaderAndIndexSizeBytes(static_cast<uint32_t>(parts), false) + locator.value_size_bytes;
    const uint64_t end = i + 1 < locators.size() ? locators[i + 1].offset_bytes : bytes.size();
    gap_sizes.insert(end - begin);
    for (uint64_t at = begin; at < end; ++at) ASSERT_EQ(bytes[at], 0) << "behind extent " << i << " at " << at;
  }
  EXPECT_TRUE(gap_sizes.contains(7));
}

}  // namespace
}  // namespace quarry
