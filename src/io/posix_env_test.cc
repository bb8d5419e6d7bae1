// What is particular to PosixEnv: direct I/O and its fall-back, symbolic links.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/unique_fd.h"
#include "io/env.h"
#include "io/posix_file.h"

namespace quarry {
namespace {

class PosixEnvTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "quarry_posix_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::string root_;
};

unique_fd OpenFd(const std::string& path, int flags) {
  return unique_fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
}

TEST_F(PosixEnvTest, FilesAreForTheServerAlone) {
  const mode_t old_mask = ::umask(0);
  EXPECT_TRUE(Env::Posix()->CreateFile(Path("f")).ok());
  EXPECT_TRUE(Env::Posix()->CreateDirectory(Path("d")).ok());
  EXPECT_TRUE(Env::Posix()->ReplaceFile(Path("m"), {}).ok());
  ::umask(old_mask);
  struct stat info {};
  ASSERT_EQ(::stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0660U);
  ASSERT_EQ(::stat(Path("m").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0660U);
  ASSERT_EQ(::stat(Path("d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
}

TEST_F(PosixEnvTest, ModesAreWhatTheServerWasToldToUse) {
  const mode_t old_mask = ::umask(0);
  SetPosixModes(0640, 0750);
  EXPECT_TRUE(Env::Posix()->CreateFile(Path("f")).ok());
  EXPECT_TRUE(Env::Posix()->CreateDirectory(Path("d")).ok());
  SetPosixModes(0660, 0700);
  ::umask(old_mask);
  struct stat info {};
  ASSERT_EQ(::stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0640U);
  ASSERT_EQ(::stat(Path("d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0750U);
}

TEST_F(PosixEnvTest, NoSymbolicLinkIsFollowed) {
  ASSERT_TRUE(Env::Posix()->CreateFile(Path("target")).ok());
  ASSERT_EQ(::symlink(Path("target").c_str(), Path("link").c_str()), 0);
  EXPECT_EQ(Env::Posix()->OpenForRead(Path("link")).status().system_errno(), ELOOP);
  EXPECT_EQ(Env::Posix()->OpenForWrite(Path("link")).status().system_errno(), ELOOP);
  EXPECT_EQ(Env::Posix()->CreateFile(Path("link")).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(PosixEnvTest, ALeftoverOfACrashIsReplaced) {
  ASSERT_TRUE(Env::Posix()->CreateFile(Path("m.new")).ok());
  const std::vector<uint8_t> contents = {1, 2, 3};
  ASSERT_TRUE(Env::Posix()->ReplaceFile(Path("m"), contents).ok());
  EXPECT_EQ(Env::Posix()->ListDirectory(root_).value(), std::vector<std::string>{"m"});
}

TEST_F(PosixEnvTest, WritesWorkWithAndWithoutDirectIo) {
  // A descriptor that refuses O_DIRECT for good is hard to come by; one that is not direct takes the same path after.
  AlignedBuffer buffer(8192);
  std::fill(buffer.span().begin(), buffer.span().end(), uint8_t{5});
  std::vector<std::string> paths = {Path("f")};
  struct statfs info {};
  const bool has_shm = ::statfs("/dev/shm", &info) == 0 && ::access("/dev/shm", W_OK) == 0;
  if (has_shm) paths.push_back("/dev/shm/quarry_posix_test_" + std::to_string(::getpid()));
  for (const std::string& path : paths) {
    PosixWritableFile file(path, OpenFd(path, O_WRONLY | O_CREAT | O_EXCL));
    std::cout << path << (file.direct() ? " is" : " is not") << " written with O_DIRECT\n";
    EXPECT_TRUE(file.WriteAt(4096, buffer.span()).ok());
    EXPECT_TRUE(file.Sync().ok());
    EXPECT_EQ(Env::Posix()->OpenForRead(path).value()->SizeBytes().value(), 12288U);
    EXPECT_TRUE(file.Close().ok());
    EXPECT_EQ(file.WriteAt(0, buffer.span()).system_errno(), EBADF) << "errors of the system come through";
    EXPECT_EQ(file.Sync().system_errno(), EBADF);
    ::unlink(path.c_str());
  }
}

TEST_F(PosixEnvTest, DirectReadsStayWithTheFileWhateverBecomesOfItsName) {
  // As a segment's file that GC puts another one in the place of.
  AlignedBuffer buffer(4096);
  std::fill(buffer.span().begin(), buffer.span().end(), uint8_t{5});
  const auto writer = Env::Posix()->CreateFile(Path("f")).value();
  ASSERT_TRUE(writer->WriteAt(0, buffer.span()).ok());
  const auto reader = Env::Posix()->OpenForRead(Path("f")).value();
  ASSERT_TRUE(Env::Posix()->RemoveFile(Path("f")).ok());
  std::fill(buffer.span().begin(), buffer.span().end(), uint8_t{6});
  const auto other = Env::Posix()->CreateFile(Path("f")).value();
  ASSERT_TRUE(other->WriteAt(0, buffer.span()).ok());
  const Result<std::optional<size_t>> read = reader->ReadDirect(0, buffer.span());
  ASSERT_TRUE(read.ok());
  if (!read->has_value()) GTEST_SKIP() << "this file system has no direct reads, or there is no /proc";
  EXPECT_EQ(**read, 4096U);
  EXPECT_EQ(buffer.data()[0], 5);
}

TEST_F(PosixEnvTest, ErrorsNameOperationAndPath) {
  const Status status = Env::Posix()->OpenForRead(Path("none")).status();
  EXPECT_EQ(status.message(), "open " + Path("none") + ": No such file or directory (errno 2)");
  EXPECT_EQ(Env::Posix()->ReadSmallFile(root_, 100).status().code(), StatusCode::kCorruption)
      << "a directory is larger than the limit";
  EXPECT_EQ(Env::Posix()->ReadSmallFile(root_, 1 << 20).status().system_errno(), EISDIR);
}

TEST_F(PosixEnvTest, AFullDeviceIsNoSpace) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "this machine has no /dev/full";
  PosixWritableFile file("/dev/full", OpenFd("/dev/full", O_WRONLY));
  EXPECT_FALSE(file.direct()) << "a device without O_DIRECT is written all the same";
  EXPECT_EQ(file.WriteAt(0, AlignedBuffer(4096).span()).code(), StatusCode::kNoSpace);
}

// As on a full disk whose file system has smaller blocks than ours.
TEST_F(PosixEnvTest, AWriteThatEndsInsideABlockSaysWhy) {
  AlignedBuffer buffer(2 * kBlockSizeBytes);
  buffer.FillZero();
  const auto file = Env::Posix()->CreateFile(Path("f")).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = kBlockSizeBytes + 1024;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = file->WriteAt(0, buffer.span());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.system_errno(), EFBIG) << status.ToString();
}

TEST_F(PosixEnvTest, AWantOfDescriptorsDoesNotEndDirectReads) {
  AlignedBuffer buffer(kBlockSizeBytes);
  buffer.FillZero();
  {
    const auto writer = Env::Posix()->CreateFile(Path("f")).value();
    ASSERT_TRUE(writer->WriteAt(0, buffer.span()).ok());
  }
  const auto probe = Env::Posix()->OpenForRead(Path("f")).value();
  if (!probe->ReadDirect(0, buffer.span()).value()) GTEST_SKIP() << "this file system keeps files in memory";
  const auto reader = Env::Posix()->OpenForRead(Path("f")).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = reader->ReadDirect(0, buffer.span());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(refused.value().has_value());
  EXPECT_EQ(reader->ReadDirect(0, buffer.span()).value(), kBlockSizeBytes);
}

}  // namespace
}  // namespace quarry
