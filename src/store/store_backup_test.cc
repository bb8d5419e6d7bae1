// A backup as the snapshot describes it: what was committed at that moment is there, whatever happened since.
#include <gtest/gtest.h>

#include "io/path.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

std::vector<uint8_t> WholeFile(Env* env, const std::string& path) {
  std::unique_ptr<ReadableFile> file = ValueOf(env->OpenForRead(path));
  std::vector<uint8_t> contents(ValueOf(file->SizeBytes()));
  size_t read = 0;
  while (read < contents.size()) read += ValueOf(file->ReadAt(read, std::span(contents).subspan(read)));
  return contents;
}

/// Copies what `snapshot` says to `env` under /copy (home) and /copy-<number> (data paths).
void Copy(Env* from, const BackupSnapshot& snapshot, Env* to) {
  const auto write = [to](const std::string& path, const std::vector<uint8_t>& contents) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      (void)to->CreateDirectory(path.substr(0, slash));
    }
    EXPECT_OK(to->ReplaceFile(path, contents));
  };
  for (const BackupSnapshot::SmallFile& file : snapshot.small_files) write("/copy/" + file.name, file.contents);
  for (const BackupSnapshot::SegmentFile& segment : snapshot.segments) {
    const std::string home =
        segment.path_number == 0 ? "/copy/" : "/copy-" + std::to_string(segment.path_number) + "/quarry/";
    write(home + segment.name, WholeFile(from, segment.path));
  }
  for (const BackupSnapshot::DataPath& path : snapshot.data_paths) {
    write("/copy-" + std::to_string(path.path_number) + "/quarry/PATH", WholeFile(from, path.marker));
  }
}

struct Written {
  Locator locator;
  std::vector<uint8_t> value;
};

Written Append(StoreDirectory* directory, uint64_t table, size_t size_bytes, uint64_t seed) {
  UnsyncedExtents unsynced;
  const std::shared_ptr<Store> store = ValueOf(directory->OpenForAppend(TableId{table}, "db/t"));
  Written written{{}, RandomValue(size_bytes, seed)};
  written.locator = ValueOf(store->Append(written.value, {}, &unsynced));
  EXPECT_OK(directory->Sync(unsynced));
  return written;
}

TEST(StoreBackup, CopyMadeLaterHoldsTheMoment) {
  MemoryEnv memory;
  auto directory = ValueOf(OpenDirectory(&memory, TestOptions()));
  std::vector<Written> written;
  for (uint64_t i = 0; i < 20; ++i) written.push_back(Append(directory.get(), 7, 100 + 9000 * i, i));
  written.push_back(Append(directory.get(), 8, 5000, 99));
  ASSERT_OK(directory->LowerPrefixLimit(TableId{7}, "db/t", 300));
  const BackupSnapshot snapshot = ValueOf(directory->TakeBackupSnapshot());
  // Afterwards: more in the same segments, a new store, a rebuild, a drop, a lower limit.
  for (uint64_t i = 0; i < 20; ++i) Append(directory.get(), 7, 70000, 1000 + i);
  Append(directory.get(), 9, 5000, 5);
  ASSERT_OK(directory->LowerPrefixLimit(TableId{7}, "db/t", 10));
  ASSERT_OK(directory->BeginRebind(TableId{7}, TableId{70}));
  ASSERT_OK(directory->Rebind(TableId{7}, TableId{70}));
  BackupSnapshot found = snapshot;
  ASSERT_OK(directory->Discard(TableId{8}, 1));
  for (BackupSnapshot::SegmentFile& segment : found.segments) {
    if (ValueOf(memory.FileExists(segment.path))) continue;
    const size_t stores = segment.path.find("/stores/");
    ASSERT_NE(stores, std::string::npos);
    segment.path.replace(stores, 8, "/trash/");
  }
  MemoryEnv other;
  ASSERT_OK(other.CreateDirectory("/copy"));
  Copy(&memory, found, &other);
  DirectoryOptions options = TestOptions();
  options.home_path = "/copy";
  auto copy = ValueOf(OpenDirectory(&other, options));
  for (const Written& each : written) EXPECT_EQ(ValueOf(ReadValue(copy.get(), each.locator)), each.value);
  EXPECT_EQ(ValueOf(copy->Find(TableId{7}))->id(), written.front().locator.store);
  EXPECT_EQ(ValueOf(copy->Find(TableId{8}))->id(), written.back().locator.store);
  EXPECT_EQ(copy->Find(TableId{70}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(copy->Find(TableId{9}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(copy->PrefixLimitBytes(TableId{7}), 300U);
  // It goes on by itself, without a number given out twice.
  const Written more = Append(copy.get(), 7, 3000, 55);
  EXPECT_EQ(ValueOf(ReadValue(copy.get(), more.locator)), more.value);
  for (const Written& each : written) EXPECT_EQ(ValueOf(ReadValue(copy.get(), each.locator)), each.value);
}

TEST(StoreBackup, CopyDoesNotFindTheSourcesDataPaths) {
  MemoryEnv memory;
  for (const char* path : {"/a", "/b"}) ASSERT_OK(memory.CreateDirectory(path));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/a", "/b"};
  auto directory = ValueOf(OpenDirectory(&memory, options));
  std::vector<Written> written;
  for (uint64_t i = 0; i < 8; ++i) written.push_back(Append(directory.get(), 7, 40000, i));
  const BackupSnapshot snapshot = ValueOf(directory->TakeBackupSnapshot());
  ASSERT_EQ(snapshot.data_paths.size(), 2U);
  // The copy lies beside the source, where its paths can be seen.
  for (const char* path : {"/copy", "/copy-1", "/copy-2"}) ASSERT_OK(memory.CreateDirectory(path));
  Copy(&memory, snapshot, &memory);
  options.home_path = "/copy";
  options.data_paths = {};
  {
    auto copy = ValueOf(OpenDirectory(&memory, options));
    const Status status = ReadValue(copy.get(), written[0].locator).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.ToString().find("quarry_data_paths must name"), std::string::npos) << status.ToString();
  }
  options.data_paths = {"/copy-2", "/copy-1"};  // in any order: the marker tells
  auto copy = ValueOf(OpenDirectory(&memory, options));
  for (const Written& each : written) EXPECT_EQ(ValueOf(ReadValue(copy.get(), each.locator)), each.value);
}

TEST(StoreBackup, RefusesWhenADataPathIsAway) {
  MemoryEnv memory;
  ASSERT_OK(memory.CreateDirectory("/a"));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/a"};
  {
    auto directory = ValueOf(OpenDirectory(&memory, options));
    Append(directory.get(), 7, 40000, 1);
  }
  ASSERT_OK(memory.Rename("/a", "/not-mounted"));
  options.data_paths = {};
  auto directory = ValueOf(OpenDirectory(&memory, options));
  EXPECT_EQ(directory->TakeBackupSnapshot().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace quarry
