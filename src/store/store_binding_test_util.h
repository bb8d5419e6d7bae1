// StoreBindingTest: a directory of stores in memory, for tests of bindings and of data paths.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "format/catalogue_log.h"
#include "io/fault_env.h"
#include "store/store_test_util.h"

namespace quarry {

inline constexpr TableId kTable{10};
inline constexpr TableId kOther{20};

class StoreBindingTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  void Reopen() {
    directory_.reset();
    Open();
  }
  /// Loses everything volatile, as at kill -9 plus power loss.
  void CrashAndOpen() {
    CutPower(&memory_, &env_, 0, &directory_);
    Open();
  }
  Locator AppendTo(TableId table, uint64_t seed, size_t size = 3000) {
    UnsyncedExtents unsynced;
    const Locator locator =
        ValueOf(ValueOf(directory_->OpenForAppend(table, "db/t"))->Append(RandomValue(size, seed), {}, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return locator;
  }
  void ExpectOwnership(StoreId store, Ownership by_table, Ownership by_other) {
    EXPECT_EQ(directory_->OwnershipOf(store, kTable), by_table);
    EXPECT_EQ(directory_->OwnershipOf(store, kOther), by_other);
  }
  void ExpectReadable(const Locator& locator, uint64_t seed, size_t size = 3000) {
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), RandomValue(size, seed));
  }

  /// The home has this catalogue and no other.
  void WriteCatalogue(const std::vector<CatalogueRecord>& records) {
    for (const std::string& name : ValueOf(memory_.ListDirectory("/home"))) {
      if (ParseCatalogueFileName(name)) ASSERT_OK(memory_.RemoveFile("/home/" + name));
    }
    ASSERT_OK(memory_.ReplaceFile("/home/" + CatalogueFileName(1), EncodeCatalogue(records, 1)));
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

}  // namespace quarry
