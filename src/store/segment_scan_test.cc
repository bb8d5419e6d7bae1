// What recovery's scan makes of damage: it must not cost the neighbours anything.
#include "store/segment_scan.h"

#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr const char* kPath = "/home/stores/0000000000000001/00000001.qseg";

TEST(SegmentScanTest, ADamagedHeaderHidesNoNeighbour) {
  for (const size_t first_size_bytes :
       {100, 9000}) {  // the neighbour begins in the same block, or in the middle of a later one
    MemoryEnv memory;
    FaultEnv env(&memory);
    std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, TestOptions()));
    UnsyncedExtents unsynced;
    Locator first;
    Locator neighbour;
    const std::vector<uint8_t> zeros(60000);  // looks like unused space at the end of the segment
    {
      const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
      first = ValueOf(store->Append(RandomValue(first_size_bytes, 1), {}, &unsynced));
      neighbour = ValueOf(store->Append(zeros, {}, &unsynced));
    }
    ASSERT_OK(directory->Sync(unsynced));
    ASSERT_TRUE(memory.FlipBit(kPath, first.offset_bytes + 20, 3));
    {
      const auto file = ValueOf(memory.OpenForRead(kPath));
      const SegmentScan scan = ValueOf(ScanSegment(file.get(), {1}, {1}, 0));
      EXPECT_EQ(scan.extents, 1U);
      EXPECT_TRUE(scan.passed_over);
    }
    CutPower(&memory, &env, 1, &directory);
    directory = ValueOf(OpenDirectory(&env, TestOptions()));
    EXPECT_TRUE(ValueOf(ReadValue(directory.get(), neighbour)) == zeros);
    EXPECT_EQ(ReadValue(directory.get(), first).status().code(), StatusCode::kCorruption);
  }
}

}  // namespace
}  // namespace quarry
