// A live catalogue with one bit wrong, each bit in turn: the store opens, every committed value is read, and nothing is
// given back of what the damage may concern.
#include <cstdio>

#include "context/catalogue_file.h"
#include "quarry/gc.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

constexpr TableId kDropped{3};
constexpr uint64_t kFillerBitStep = 61;  ///< of the zeros that fill blocks

class CatalogueDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(env_.CreateDirectory("/disk1"));
    options_.data_paths = {"/disk1"};
    options_.value_cache_bytes = 0;
    { const auto first = ValueOf(OpenDirectory(&env_, options_)); }
    stale_path_ = "/home/" + CatalogueFileName(ValueOf(ReadCatalogue(&env_, "/home")).generation);
    stale_ = ValueOf(env_.ReadSmallFile(stale_path_, 1 << 20));
    {
      const auto directory = ValueOf(OpenDirectory(&env_, options_));
      for (uint64_t table = 1; table <= 3; ++table) {
        UnsyncedExtents unsynced;
        const auto store = ValueOf(directory->OpenForAppend({table}, "db/t" + std::to_string(table)));
        locators_.push_back(ValueOf(store->Append(RandomValue(500, table), {}, &unsynced)));
        ASSERT_OK(directory->Sync(unsynced));
      }
      ASSERT_OK(directory->Discard(kDropped, 1));
    }
    { const auto renewed = ValueOf(OpenDirectory(&env_, options_)); }
    path_ = "/home/" + CatalogueFileName(ValueOf(ReadCatalogue(&env_, "/home")).generation);
    before_ = ValueOf(env_.ReadSmallFile(path_, 1 << 20));
    for (const Locator& locator : locators_) {
      segments_[SegmentPath(locator)] = ValueOf(env_.ReadSmallFile(SegmentPath(locator), 1 << 20));
    }
  }
  static std::string SegmentPath(const Locator& locator) {
    return "/disk1/quarry/" + StoreDirectoryName(locator.store) + "/" + SegmentFileName(locator.segment);
  }
  void Restore() {
    for (const std::string& name : ValueOf(env_.ListDirectory("/home"))) {
      if (ParseCatalogueFileName(name)) ASSERT_OK(env_.RemoveFile("/home/" + name));
    }
    ASSERT_OK(env_.ReplaceFile(path_, before_));
    ASSERT_OK(env_.ReplaceFile(stale_path_, stale_));
    for (const auto& [path, bytes] : segments_) {
      ASSERT_OK(env_.CreateDirectory(path.substr(0, path.rfind('/'))));
      ASSERT_OK(env_.ReplaceFile(path, bytes));
    }
    const std::string trashed = "/home/trash/" + StoreDirectoryName(locators_[2].store);
    ASSERT_OK(env_.CreateDirectory(trashed));
  }

  MemoryEnv env_;
  DirectoryOptions options_ = TestOptions();
  std::vector<Locator> locators_;
  std::string path_;
  std::vector<uint8_t> before_;
  std::string stale_path_;  ///< of an older generation, whose removal did not reach the disk
  std::vector<uint8_t> stale_;
  std::map<std::string, std::vector<uint8_t>> segments_;
};

TEST_F(CatalogueDamageTest, OfOneBitCostsNoValue) {
  uint64_t flips = 0;
  uint64_t seen = 0;
  uint64_t kept = 0;
  for (uint64_t bit = 0; bit < before_.size() * 8; ++bit) {
    if (before_[bit / 8] == 0 && bit % kFillerBitStep != 0) continue;
    Restore();
    ASSERT_TRUE(env_.FlipBit(path_, bit / 8, static_cast<int>(bit % 8)));
    ++flips;
    const CatalogueOnDisk damaged = ValueOf(ReadCatalogue(&env_, "/home"));
    const auto may_concern = [&damaged](StoreId store) {
      return std::any_of(damaged.losses.begin(), damaged.losses.end(),
                         [store](const CatalogueLoss& loss) { return loss.store.value == 0 || loss.store == store; });
    };
    seen += damaged.losses.empty() ? 0 : 1;
    auto opened = OpenDirectory(&env_, options_);
    ASSERT_TRUE(opened.ok()) << "bit " << bit << ": " << opened.status().ToString();
    StoreDirectoryImpl* const directory = opened->get();
    EXPECT_EQ(directory->KnownLosses().size(), damaged.losses.size());
    (void)directory->EmptyTrash(UINT64_MAX);
    for (uint64_t table = 1; table <= 3; ++table) {
      const Locator& locator = locators_[table - 1];
      const Result<std::vector<uint8_t>> read = ReadValue(directory, locator);
      if (TableId{table} == kDropped && !may_concern(locator.store)) {
        EXPECT_FALSE(read.ok()) << "bit " << bit;
        continue;
      }
      ASSERT_TRUE(read.ok()) << "bit " << bit << " table " << table << ": " << read.status().ToString();
      EXPECT_EQ(*read, RandomValue(500, table)) << "bit " << bit;
      EXPECT_NE(directory->OwnershipOf(locator.store, {table}), Ownership::kForeign) << "bit " << bit;
      if (!may_concern(locator.store)) continue;
      ++kept;
      const auto pass = ValueOf(BeginGcPass(directory, {&locator.store, 1}, {}));
      EXPECT_EQ(pass->report().segments, 0U) << "bit " << bit;
    }
    opened->reset();
    for (const Locator& locator : locators_) {
      if (!may_concern(locator.store)) continue;
      ASSERT_EQ(ValueOf(env_.ReadSmallFile(SegmentPath(locator), 1 << 20)), segments_[SegmentPath(locator)]);
    }
    if (HasFailure()) return;
  }
  std::printf("catalogue: %llu bits flipped, %llu of them a loss, %llu times a store was kept for it\n",
              static_cast<unsigned long long>(flips), static_cast<unsigned long long>(seen),
              static_cast<unsigned long long>(kept));
  EXPECT_GT(seen, flips / 2);
  EXPECT_GT(kept, seen) << "what nobody knows to be of one store concerns all";
}

}  // namespace
}  // namespace quarry
