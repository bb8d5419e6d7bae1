// What env.h promises, held against PosixEnv on a real directory, MemoryEnv, and FaultEnv around either.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "io/env.h"
#include "io/fault_env.h"
#include "io/memory_env.h"
#include "io/path.h"

namespace quarry {
namespace {

AlignedBuffer Filled(size_t size, uint8_t byte) {
  AlignedBuffer buffer(size);
  std::fill(buffer.span().begin(), buffer.span().end(), byte);
  return buffer;
}

class EnvContractTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const bool posix = GetParam().find("Posix") != std::string::npos;
    if (posix) {
      std::string pattern = (std::filesystem::temp_directory_path() / "quarry_env_XXXXXX").string();
      ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
      root_ = pattern;
      env_ = Env::Posix();
    } else {
      memory_ = std::make_unique<MemoryEnv>();
      root_ = "/root";
      ASSERT_TRUE(memory_->CreateDirectory(root_).ok());
      env_ = memory_.get();
    }
    if (GetParam().find("Fault") != std::string::npos) {
      fault_ = std::make_unique<FaultEnv>(env_);
      env_ = fault_.get();
    }
  }
  void TearDown() override {
    if (GetParam().find("Posix") != std::string::npos) std::filesystem::remove_all(root_);
  }

  std::string Path(const std::string& name) const { return JoinPath(root_, name); }
  std::unique_ptr<WritableFile> Create(const std::string& name) {
    auto file = env_->CreateFile(Path(name));
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return std::move(file).value();
  }
  std::unique_ptr<ReadableFile> OpenForRead(const std::string& name) {
    auto file = env_->OpenForRead(Path(name));
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return std::move(file).value();
  }

  std::unique_ptr<MemoryEnv> memory_;
  std::unique_ptr<FaultEnv> fault_;
  std::string root_;
  Env* env_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Envs, EnvContractTest, testing::Values("Posix", "Memory", "FaultPosix", "FaultMemory"),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(EnvContractTest, WritesComeBackAndGapsAreZero) {
  auto writer = Create("f");
  EXPECT_TRUE(writer->WriteAt(8192, Filled(8192, 0xab).span()).ok());
  EXPECT_TRUE(writer->WriteAt(0, Filled(4096, 0xcd).span()).ok());
  EXPECT_TRUE(writer->WriteAt(0, {}).ok());
  EXPECT_TRUE(writer->Sync().ok());
  auto reader = OpenForRead("f");
  EXPECT_EQ(reader->SizeBytes().value(), 16384U);
  std::vector<uint8_t> bytes(20000, 0xff);
  EXPECT_EQ(reader->ReadAt(0, bytes).value(), 16384U) << "the end of the file cuts a read short";
  EXPECT_EQ(bytes[0], 0xcd);
  EXPECT_EQ(bytes[4095], 0xcd);
  EXPECT_EQ(bytes[4096], 0);
  EXPECT_EQ(bytes[8191], 0);
  EXPECT_EQ(bytes[8192], 0xab);
  EXPECT_EQ(bytes[16383], 0xab);
  EXPECT_EQ(bytes[16384], 0xff);
  EXPECT_EQ(reader->ReadAt(16384, bytes).value(), 0U);
  EXPECT_EQ(reader->ReadAt(1 << 30, bytes).value(), 0U);
  EXPECT_TRUE(writer->Close().ok());
}

TEST_P(EnvContractTest, CreateWantsANewFileAndOpenAnOldOne) {
  Create("f");
  EXPECT_EQ(env_->CreateFile(Path("f")).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(env_->OpenForWrite(Path("g")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_->OpenForRead(Path("g")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_->CreateFile(Path("no/f")).status().code(), StatusCode::kNotFound);
  auto writer = env_->OpenForWrite(Path("f")).value();
  EXPECT_TRUE(writer->WriteAt(0, Filled(4096, 1).span()).ok());
  EXPECT_EQ(OpenForRead("f")->SizeBytes().value(), 4096U);
}

TEST_P(EnvContractTest, BatchesReadEveryRequestOrFail) {
  auto writer = Create("f");
  AlignedBuffer content(1 << 20);
  for (size_t i = 0; i < content.size(); ++i) content.data()[i] = static_cast<uint8_t>(i * 31 / 7);
  ASSERT_TRUE(writer->WriteAt(0, content.span()).ok());
  auto reader = OpenForRead("f");
  // Scattered, contiguous, and more than one submission of either.
  for (const auto& [count, stride] : {std::pair<size_t, size_t>{1, 0}, {3, 5000}, {200, 5000}, {3, 777}, {200, 777}}) {
    std::vector<std::vector<uint8_t>> out(count, std::vector<uint8_t>(777));
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < count; ++i) requests.push_back({100 + i * stride, out[i]});
    ASSERT_TRUE(reader->ReadBatch(requests).ok());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(std::equal(out[i].begin(), out[i].end(), content.data() + 100 + i * stride)) << count << " " << i;
    }
  }
  EXPECT_TRUE(reader->ReadBatch({}).ok());
}

TEST_P(EnvContractTest, DirectReadsGiveTheSameBytesUpToTheEnd) {
  auto writer = Create("f");
  AlignedBuffer content(64 << 10);
  for (size_t i = 0; i < content.size(); ++i) content.data()[i] = static_cast<uint8_t>(i * 31 / 7);
  ASSERT_TRUE(writer->WriteAt(0, content.span()).ok());
  ASSERT_TRUE(writer->Truncate(60000).ok());
  auto reader = OpenForRead("f");
  AlignedBuffer out(128 << 10);
  const auto read = [&](uint64_t offset, size_t size) {
    return reader->ReadDirect(offset, out.span().first(size)).value();
  };
  if (!read(0, 4096)) GTEST_SKIP() << "the file system of the tests has no direct reads";
  EXPECT_EQ(read(8192, 16384), 16384U);
  EXPECT_TRUE(std::equal(out.data(), out.data() + 16384, content.data() + 8192));
  EXPECT_EQ(read(0, 128 << 10), 60000U) << "the end of the file cuts a read short";
  EXPECT_TRUE(std::equal(out.data(), out.data() + 60000, content.data()));
  EXPECT_EQ(read(64 << 10, 4096), 0U);
}

TEST_P(EnvContractTest, AShortBatchIsAnError) {
  ASSERT_TRUE(Create("f")->WriteAt(0, Filled(8192, 1).span()).ok());
  auto reader = OpenForRead("f");
  std::vector<uint8_t> a(4096);
  std::vector<uint8_t> b(4097);
  const std::vector<ReadRequest> contiguous = {{0, a}, {4096, b}};
  EXPECT_EQ(reader->ReadBatch(contiguous).code(), StatusCode::kIoError);
  const std::vector<ReadRequest> scattered = {{4096, b}, {0, a}};
  const Status status = reader->ReadBatch(scattered);
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_NE(status.message().find("short read"), std::string::npos) << status.message();
  const std::vector<ReadRequest> single = {{8192, a}};
  EXPECT_EQ(reader->ReadBatch(single).code(), StatusCode::kIoError);
}

TEST_P(EnvContractTest, PunchedBlocksReadAsZeroAndAreGivenBack) {
  auto writer = Create("f");
  ASSERT_TRUE(writer->WriteAt(0, Filled(1 << 20, 7).span()).ok());
  ASSERT_TRUE(writer->Sync().ok());
  auto reader = OpenForRead("f");
  const uint64_t before = reader->AllocatedBytes().value();
  EXPECT_GE(before, 1U << 20);
  ASSERT_TRUE(writer->PunchHole(4096, 512 << 10).ok());
  EXPECT_TRUE(writer->PunchHole(0, 0).ok());
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(reader->SizeBytes().value(), 1U << 20);
  EXPECT_EQ(reader->AllocatedBytes().value(), before - (512 << 10));
  std::vector<uint8_t> bytes(3);
  EXPECT_EQ(reader->ReadAt(4095, bytes).value(), 3U);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{7, 0, 0}));
}

TEST_P(EnvContractTest, AllocatedSpaceReadsAsZeroAndKeepsWhatIsThere) {
  auto writer = Create("f");
  ASSERT_TRUE(writer->WriteAt(0, Filled(8192, 7).span()).ok());
  ASSERT_TRUE(writer->Allocate(4096, 1 << 20).ok());
  EXPECT_TRUE(writer->Allocate(0, 0).ok());
  ASSERT_TRUE(writer->WriteAt(12288, Filled(4096, 9).span()).ok());
  ASSERT_TRUE(writer->Sync().ok());
  auto reader = OpenForRead("f");
  // A file system that cannot allocate leaves the size to the write.
  const uint64_t size = reader->SizeBytes().value();
  ASSERT_TRUE(size == 4096 + (1 << 20) || size == 16384) << size;
  EXPECT_GE(reader->AllocatedBytes().value(), size == 16384 ? 12288U : size);
  std::vector<uint8_t> expected(8192, 7);
  expected.resize(12288, 0);
  expected.resize(16384, 9);
  expected.resize(size, 0);
  std::vector<uint8_t> bytes(size, 0xff);
  EXPECT_EQ(reader->ReadAt(0, bytes).value(), size);
  EXPECT_TRUE(bytes == expected);
  ASSERT_TRUE(writer->Truncate(16384).ok());
  EXPECT_EQ(reader->SizeBytes().value(), 16384U) << "a clean close cuts the unused rest off";
}

TEST_P(EnvContractTest, TruncateCutsAndGrows) {
  auto writer = Create("f");
  ASSERT_TRUE(writer->WriteAt(0, Filled(8192, 7).span()).ok());
  ASSERT_TRUE(writer->Truncate(5000).ok());
  auto reader = OpenForRead("f");
  EXPECT_EQ(reader->SizeBytes().value(), 5000U);
  ASSERT_TRUE(writer->Truncate(8192).ok());
  std::vector<uint8_t> bytes(2);
  EXPECT_EQ(reader->ReadAt(4999, bytes).value(), 2U);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{7, 0})) << "what was cut off does not come back";
}

TEST_P(EnvContractTest, ReplaceFileLeavesOldOrNew) {
  const std::vector<uint8_t> old_contents(10, 'o');
  const std::vector<uint8_t> new_contents(100000, 'n');
  ASSERT_TRUE(env_->ReplaceFile(Path("m"), old_contents).ok());
  EXPECT_EQ(env_->ReadSmallFile(Path("m"), 10).value(), old_contents);
  ASSERT_TRUE(env_->ReplaceFile(Path("m"), new_contents).ok());
  EXPECT_EQ(env_->ReadSmallFile(Path("m"), 1 << 20).value(), new_contents);
  EXPECT_EQ(env_->ListDirectory(root_).value(), std::vector<std::string>{"m"}) << "nothing stays beside it";
  EXPECT_EQ(env_->ReadSmallFile(Path("m"), 99999).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(env_->ReadSmallFile(Path("none"), 10).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(env_->ReplaceFile(Path("m"), {}).ok());
  EXPECT_TRUE(env_->ReadSmallFile(Path("m"), 0)->empty());
  EXPECT_FALSE(env_->ReplaceFile(Path("no/m"), old_contents).ok());
}

TEST_P(EnvContractTest, DirectoriesListRenameAndRemove) {
  ASSERT_TRUE(env_->CreateDirectory(Path("d")).ok());
  EXPECT_TRUE(env_->CreateDirectory(Path("d")).ok()) << "there already";
  EXPECT_EQ(env_->CreateDirectory(Path("x/y")).code(), StatusCode::kNotFound);
  Create("d/b");
  Create("d/a");
  EXPECT_EQ(env_->CreateDirectory(Path("d/a")).code(), StatusCode::kAlreadyExists) << "a file is no directory";
  EXPECT_EQ(env_->ListDirectory(Path("d")).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(env_->SyncDirectory(Path("d")).ok());
  EXPECT_TRUE(env_->FileExists(Path("d/a")).value());
  EXPECT_TRUE(env_->FileExists(Path("d")).value());
  EXPECT_FALSE(env_->FileExists(Path("d/c")).value());
  EXPECT_FALSE(env_->FileExists(Path("e/c")).value());
  EXPECT_FALSE(env_->RemoveDirectory(Path("d")).ok()) << "not empty";
  EXPECT_FALSE(env_->RemoveFile(Path("d")).ok()) << "not a file";

  ASSERT_TRUE(env_->CreateDirectory(Path("t")).ok());
  ASSERT_TRUE(env_->Rename(Path("d"), Path("t/d")).ok());
  EXPECT_FALSE(env_->FileExists(Path("d")).value());
  EXPECT_EQ(env_->ListDirectory(Path("t/d")).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(env_->Rename(Path("d"), Path("t/e")).code(), StatusCode::kNotFound);
  EXPECT_TRUE(env_->RemoveFile(Path("t/d/a")).ok());
  EXPECT_TRUE(env_->RemoveFile(Path("t/d/b")).ok());
  EXPECT_EQ(env_->RemoveFile(Path("t/d/b")).code(), StatusCode::kNotFound);
  EXPECT_TRUE(env_->RemoveDirectory(Path("t/d")).ok());
  EXPECT_EQ(env_->ListDirectory(Path("d")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_->SyncDirectory(Path("d")).code(), StatusCode::kNotFound);
}

TEST_P(EnvContractTest, AnOpenFileOutlivesItsName) {
  auto writer = Create("f");
  ASSERT_TRUE(writer->WriteAt(0, Filled(4096, 9).span()).ok());
  auto reader = OpenForRead("f");
  ASSERT_TRUE(env_->RemoveFile(Path("f")).ok());
  ASSERT_TRUE(writer->WriteAt(4096, Filled(4096, 8).span()).ok());
  std::vector<uint8_t> bytes(8192);
  EXPECT_EQ(reader->ReadAt(0, bytes).value(), 8192U);
  EXPECT_EQ(bytes[8191], 8);
}

TEST_P(EnvContractTest, ThreadsShareAFile) {
  auto writer = Create("f");
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      const AlignedBuffer buffer = Filled(4096, static_cast<uint8_t>(t + 1));
      for (size_t i = 0; i < 20; ++i) {
        if (!writer->WriteAt((i * failures.size() + t) * 4096, buffer.span()).ok()) ++failures[t];
        if (i % 10 == 0 && !writer->Sync().ok()) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
  auto reader = OpenForRead("f");
  threads.clear();
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<uint8_t> a(1);
      std::vector<uint8_t> b(1);
      for (size_t i = 1; i < 20; ++i) {
        const std::vector<ReadRequest> requests = {{(i * 4 + t) * 4096, a}, {t * 4096, b}};
        if (!reader->ReadBatch(requests).ok() || a[0] != t + 1 || b[0] != t + 1) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

TEST(PathTest, ParentAndJoin) {
  EXPECT_EQ(ParentPath("/a/b"), "/a");
  EXPECT_EQ(ParentPath("/a/b/"), "/a");
  EXPECT_EQ(ParentPath("/a//b"), "/a");
  EXPECT_EQ(ParentPath("/a"), "/");
  EXPECT_EQ(ParentPath("/"), "/");
  EXPECT_EQ(ParentPath("a/b"), "a");
  EXPECT_EQ(ParentPath("a"), ".");
  EXPECT_EQ(ParentPath(""), ".");
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "b"), "/a/b");
}

}  // namespace
}  // namespace quarry
