// The bound on open segment files: of the class, and of a directory with more lanes and segments than the bound.
#include <dirent.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "context/open_files.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

struct Opened {
  explicit Opened(std::atomic<int>* counter) : count(counter) { ++*count; }
  ~Opened() { --*count; }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  std::atomic<int>* const count;
};

class OpenFilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] Result<FileSlot<Opened>::Pin> Open(FileSlot<Opened>* slot) {
    return slot->PinOrOpen([this]() -> Result<std::unique_ptr<Opened>> { return std::make_unique<Opened>(&open_); });
  }

  std::atomic<int> open_ = 0;
  OpenFiles files_{16, std::chrono::milliseconds(50)};
};

TEST_F(OpenFilesTest, WhoIsWokenOftenWaitsAsLong) {
  std::vector<OpenFiles::Lease> held;
  for (int i = 0; i < 15; ++i) held.push_back(ValueOf(files_.Take(1)));
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!stop) (void)files_.Take(1).ok();
    });
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(files_.Take(2).status().code(), StatusCode::kUnavailable);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(40));
  stop = true;
  for (std::thread& other : others) other.join();
}

TEST_F(OpenFilesTest, WhatWasNotUsedLatelyIsClosedForOthers) {
  std::vector<std::unique_ptr<FileSlot<Opened>>> slots;
  for (int i = 0; i < 40; ++i) {
    slots.push_back(std::make_unique<FileSlot<Opened>>(&files_, 1));
    ASSERT_OK(Open(slots.back().get()).status());
    EXPECT_FALSE(Open(slots.front().get())->empty());  // always in use
    EXPECT_LE(open_, 16);
  }
  EXPECT_EQ(files_.open(), 16U);
  EXPECT_FALSE(slots.back()->PinIfOpen().empty());
  EXPECT_TRUE(slots[20]->PinIfOpen().empty());
  EXPECT_EQ(files_.closed_for_room(), 24U);
  slots.clear();
  EXPECT_EQ(open_, 0);
  EXPECT_EQ(files_.open(), 0U);
}

TEST_F(OpenFilesTest, APinnedFileStays) {
  FileSlot<Opened> pinned(&files_, 1);
  const FileSlot<Opened>::Pin pin = ValueOf(Open(&pinned));
  std::vector<std::unique_ptr<FileSlot<Opened>>> slots;
  for (int i = 0; i < 40; ++i) {
    slots.push_back(std::make_unique<FileSlot<Opened>>(&files_, 1));
    ASSERT_OK(Open(slots.back().get()).status());
  }
  EXPECT_EQ(pin->count, &open_);
}

TEST_F(OpenFilesTest, WhoFindsAllInUseIsToldTheLimit) {
  std::vector<OpenFiles::Lease> leases;
  for (int i = 0; i < 16; ++i) leases.push_back(ValueOf(files_.Take()));
  FileSlot<Opened> slot(&files_, 1);
  const Status status = Open(&slot).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("all 16 descriptors that quarry_open_files allows"), std::string::npos)
      << status.message();
  leases.pop_back();
  EXPECT_OK(Open(&slot).status());
}

TEST_F(OpenFilesTest, WhoCanDoWithoutWaitsForNobody) {
  std::vector<OpenFiles::Lease> leases;
  for (int i = 0; i < 16; ++i) leases.push_back(ValueOf(files_.TakeNow()));
  EXPECT_EQ(files_.TakeNow().status().code(), StatusCode::kUnavailable);
  leases.clear();
  FileSlot<Opened> idle(&files_, 16);
  (void)ValueOf(Open(&idle));
  EXPECT_OK(files_.TakeNow().status());
}

TEST_F(OpenFilesTest, AHolderIsAskedToLetGo) {
  struct Holder : FileHolder {
    void LetGoOfFiles() override { pin.Release(); }
    FileSlot<Opened>::Pin pin;
  };
  std::vector<std::unique_ptr<FileSlot<Opened>>> slots;
  std::vector<std::shared_ptr<Holder>> holders;
  for (int i = 0; i < 40; ++i) {
    slots.push_back(std::make_unique<FileSlot<Opened>>(&files_, 1));
    holders.push_back(std::make_shared<Holder>());
    holders.back()->pin = ValueOf(slots.back()->PinOrOpen(
        [this]() -> Result<std::unique_ptr<Opened>> { return std::make_unique<Opened>(&open_); }, nullptr,
        holders.back()));
  }
  EXPECT_LE(open_, 16);
  holders.clear();
}

TEST_F(OpenFilesTest, ThreadsShareFewDescriptors) {
  std::vector<std::unique_ptr<FileSlot<Opened>>> slots;
  for (int i = 0; i < 64; ++i) slots.push_back(std::make_unique<FileSlot<Opened>>(&files_, 2));
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned i = 0; i < 5000; ++i) {
        const auto pin = Open(slots[(i * 7 + thread * 13) % slots.size()].get());
        ASSERT_OK(pin.status());
        if (const int now = *(*pin)->count; now > most) most = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 8);
  slots.clear();
  EXPECT_EQ(files_.open(), 0U);
}

// ---- a directory ----

size_t OpenSegments(const std::string& root) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && target.string().starts_with(root) && target.extension() == ".qseg") ++count;
  }
  return count;
}

class BoundedDirectoryTest : public ::testing::Test {
 protected:
  BoundedDirectoryTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "quarry_open_files_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    options_ = TestOptions();
    options_.home_path = root_ + "/home";
    options_.segment_size_bytes = 64 << 10;
    options_.open_files_max = 16;
    options_.recent_cache_bytes = 0;
    options_.value_cache_bytes = 0;
  }
  ~BoundedDirectoryTest() override { std::filesystem::remove_all(root_); }

  std::string root_;
  DirectoryOptions options_;
};

TEST_F(BoundedDirectoryTest, ManyTablesInOneTransaction) {
  auto directory = ValueOf(OpenDirectory(Env::Posix(), options_));
  UnsyncedExtents unsynced;
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<Head> heads;
  for (uint64_t table = 1; table <= 100; ++table) {
    stores.push_back(ValueOf(directory->OpenForAppend({table}, "db/t" + std::to_string(table))));
    heads.push_back({ValueOf(stores.back()->Append(RandomValue(9000, table), {}, &unsynced)), {}});
    EXPECT_LE(OpenSegments(root_), 16U);
  }
  ASSERT_OK(directory->Sync(unsynced));
  // The next appends open the files again.
  for (uint64_t table = 1; table <= 100; ++table) {
    heads.push_back({ValueOf(stores[table - 1]->Append(RandomValue(9000, 100 + table), {}, &unsynced)), {}});
  }
  ASSERT_OK(directory->Sync(unsynced));
  for (uint64_t i = 0; i < heads.size(); ++i) {
    EXPECT_EQ(ValueOf(ReadValue(directory.get(), heads[i])), RandomValue(9000, i + 1));
    EXPECT_LE(OpenSegments(root_), 16U);
  }
  EXPECT_LE(directory->GetCounters().open_files, 16U);
  EXPECT_GT(directory->GetCounters().open_files_closed, 100U);
}

// Somebody removed it, or its data path is away.
TEST_F(BoundedDirectoryTest, AnActiveSegmentWhoseFileIsGoneStopsNoAppend) {
  auto directory = ValueOf(OpenDirectory(Env::Posix(), options_));
  const auto append = [&](uint64_t table, uint64_t seed) {
    UnsyncedExtents unsynced;
    const auto store = ValueOf(directory->OpenForAppend({table}, "db/t"));
    Result<Locator> locator = store->Append(RandomValue(9000, seed), {}, &unsynced);
    EXPECT_OK(directory->Sync(unsynced));
    return locator;
  };
  const Locator lost = ValueOf(append(1, 1));
  for (uint64_t table = 2; table <= 100; ++table) EXPECT_OK(append(table, table).status());  // they take its descriptor
  std::filesystem::remove(root_ + SegmentPathOf(lost));
  const Result<Locator> next = append(1, 200);
  ASSERT_OK(next.status());
  EXPECT_EQ(ValueOf(ReadValue(directory.get(), {*next, {}})), RandomValue(9000, 200));
  EXPECT_EQ(ReadValue(directory.get(), {lost, {}}).status().code(), StatusCode::kNotFound);
}

TEST_F(BoundedDirectoryTest, ATransactionOfManySegments) {
  auto directory = ValueOf(OpenDirectory(Env::Posix(), options_));
  auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  std::vector<Head> heads;
  for (uint64_t i = 0; i < 200; ++i) {
    heads.push_back({ValueOf(store->Append(RandomValue(30000, i), {}, &unsynced)), {}});
    EXPECT_LE(OpenSegments(root_), 16U);
  }
  ASSERT_OK(directory->Sync(unsynced));
  for (uint64_t i = 0; i < heads.size(); ++i)
    EXPECT_EQ(ValueOf(ReadValue(directory.get(), heads[i])), RandomValue(30000, i));
}

}  // namespace
}  // namespace quarry
