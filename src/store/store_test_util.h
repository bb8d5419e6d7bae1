// What the store's tests share: a directory over a chosen Env, deterministic values, small helpers.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "context/layout.h"
#include "io/fault_env.h"
#include "io/memory_env.h"
#include "quarry/store.h"
#include "store/store_directory_impl.h"

namespace quarry {

#define ASSERT_OK(expression)                                              \
  do {                                                                     \
    const ::quarry::Status status_under_test_ = (expression);              \
    ASSERT_TRUE(status_under_test_.ok()) << status_under_test_.ToString(); \
  } while (false)
#define EXPECT_OK(expression)                                              \
  do {                                                                     \
    const ::quarry::Status status_under_test_ = (expression);              \
    EXPECT_TRUE(status_under_test_.ok()) << status_under_test_.ToString(); \
  } while (false)

/// The value of a Result that must be ok; ends the process with its message otherwise.
template <typename T>
T ValueOf(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().ToString();
    std::abort();
  }
  return std::move(result).value();
}

/// Bytes that do not compress.
inline std::vector<uint8_t> RandomValue(size_t size_bytes, uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + size_bytes);
  std::vector<uint8_t> value(size_bytes);
  for (size_t i = 0; i < value.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(value.data() + i, &word, std::min<size_t>(8, value.size() - i));
  }
  return value;
}

/// Text-like bytes that compress about 3:1 or better.
inline std::vector<uint8_t> TextValue(size_t size_bytes, uint64_t seed) {
  static const char* const kWords[] = {"segment ", "extent ", "quarry ", "locator ", "the ", "a ", "of 7 ", "flush\n"};
  std::mt19937_64 random(seed);
  std::string text;
  text.reserve(size_bytes + 128);
  while (text.size() < size_bytes) {
    for (uint64_t dice = random(), i = 0; i < 12; ++i, dice >>= 5) text += kWords[dice & 7];
  }
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size_bytes)};
}

inline DirectoryOptions TestOptions() {
  DirectoryOptions options;
  options.home_path = "/home";
  options.segment_size_bytes = 64ULL << 20;
  options.zeroed_pool_bytes = 0;
  return options;
}

/// Opens without the background thread: every test of one thread is deterministic.
inline Result<std::unique_ptr<StoreDirectoryImpl>> OpenDirectory(Env* env, const DirectoryOptions& options) {
  return StoreDirectoryImpl::Open(options, {env, false});
}

/// Power goes while `directory` is open: nothing that its destructor does reaches the disk.
inline void CutPower(MemoryEnv* memory, FaultEnv* env, uint64_t seed, std::unique_ptr<StoreDirectoryImpl>* directory) {
  for (size_t kind = 0; kind < kCallKinds; ++kind) env->FailCall(static_cast<CallKind>(kind), 1, EIO, true);
  directory->reset();
  memory->PowerCut(seed);
  env->ClearFailures();
}

/// A directory in memory, with one table to append to; power may go.
class OneTableTest : public testing::Test {
 protected:
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  Locator Append(size_t size_bytes, uint64_t seed) {
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    return ValueOf(store->Append(RandomValue(size_bytes, seed), {}, &unsynced_));
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  UnsyncedExtents unsynced_;
};

/// Where the segment of a locator lies in a directory of TestOptions without data paths.
inline std::string SegmentPathOf(const Locator& locator) {
  return "/home/stores/" + StoreDirectoryName(locator.store) + "/" + SegmentFileName(locator.segment);
}

/// Of the segment at `path`.
inline SegmentHeader HeaderOf(Env* env, const std::string& path) {
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes);
  EXPECT_EQ(ValueOf(ValueOf(env->OpenForRead(path))->ReadAt(0, block)), block.size());
  return ValueOf(DecodeSegmentHeader(block));
}

inline Result<std::vector<uint8_t>> ReadValue(StoreDirectory* directory, const Head& head,
                                              const ReadOptions& options = {}) {
  std::vector<uint8_t> out(head.locator.value_size_bytes);
  QUARRY_TRY(directory->Read(head, options, out));
  return out;
}

/// The same, by StoreDirectory::ReadValue.
inline Result<std::vector<uint8_t>> ReadInBuffer(StoreDirectory* directory, const Head& head,
                                                 const ReadOptions& options = {}) {
  QUARRY_TRY_ASSIGN(const ValueBuffer buffer, directory->ReadValue(head, options));
  return std::vector<uint8_t>(buffer.bytes().begin(), buffer.bytes().end());
}

}  // namespace quarry
