// What the tests of GC share: a store on a disk in memory that fails and loses power, and values that are known.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quarry/gc.h"
#include "store/store_test_util.h"

namespace quarry {

struct Known {
  Locator locator;
  std::vector<uint8_t> value;
};

class GcFixture : public testing::Test {
 protected:
  GcFixture() { Open(); }

  void Open() {
    directory_.reset();
    directory_ = ValueOf(OpenDirectory(&env_, Options()));
    store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  }
  static DirectoryOptions Options() {
    DirectoryOptions options = TestOptions();
    options.segment_size_bytes = 256 << 10;
    options.recent_cache_bytes = 0;
    return options;
  }
  void Crash(uint64_t seed) {
    store_.reset();
    CutPower(&memory_, &env_, seed, &directory_);
    Open();
  }

  Known Append(const std::vector<uint8_t>& value) {
    UnsyncedExtents unsynced;
    Known known{ValueOf(store_->Append(value, {}, &unsynced)), value};
    EXPECT_OK(directory_->Sync(unsynced));
    return known;
  }
  std::vector<Known> AppendSome(size_t count, size_t size_bytes) {
    std::vector<Known> all;
    for (size_t i = 0; i < count; ++i) all.push_back(Append(RandomValue(size_bytes, i)));
    return all;
  }
  /// By default nothing is rewritten: what a test of holes expects is exact.
  std::unique_ptr<GcPass> Begin(const GcOptions& options = {.rewrite_above = 0}) {
    const std::vector<StoreId> stores = {store_->id()};
    return ValueOf(BeginGcPass(directory_.get(), stores, options));
  }
  static Status Finish(GcPass* pass, uint64_t bytes_max = UINT64_MAX) {
    while (true) {
      QUARRY_TRY_ASSIGN(const GcStep step, pass->ReclaimSome(bytes_max));
      if (step.done) return Status::Ok();
    }
  }
  void ExpectReads(const Known& known) {
    const auto read = ReadValue(directory_.get(), known.locator);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(*read == known.value);
  }
  [[nodiscard]] bool IsReadable(const Known& known) {
    const auto read = ReadValue(directory_.get(), known.locator);
    EXPECT_TRUE(!read.ok() || *read == known.value);
    return read.ok();
  }
  [[nodiscard]] uint64_t RealBytes() { return store_->GetStats().real_bytes; }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::shared_ptr<Store> store_;
};

}  // namespace quarry
