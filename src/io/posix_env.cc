// PosixEnv: Env on a POSIX file system. One instance for the process, without state but the modes of new files.
//
// Invariants: descriptors are close-on-exec and follow no symbolic link in the last place; interrupted calls are
// repeated, failed flushes never are. Thread-safety: internally synchronised.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/unique_fd.h"
#include "io/env.h"
#include "io/journal.h"
#include "io/path.h"
#include "io/posix_file.h"

namespace quarry {

namespace {

std::atomic<mode_t> file_mode{0660};
std::atomic<mode_t> directory_mode{0700};
constexpr const char* kTemporarySuffix = ".new";

Result<unique_fd> Open(const std::string& path, int flags, const char* operation) {
  while (true) {
    unique_fd fd(::open(path.c_str(), flags | O_CLOEXEC, file_mode.load(std::memory_order_relaxed)));
    if (fd.valid()) return fd;
    if (errno != EINTR) return Status::FromErrno(errno, operation, path);
  }
}

Status WriteWhole(int fd, std::span<const uint8_t> contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t result = ::write(fd, contents.data(), contents.size());
    if (result < 0 && errno == EINTR) continue;
    if (result <= 0) return Status::FromErrno(result < 0 ? errno : EIO, "write", path);
    contents = contents.subspan(static_cast<size_t>(result));
  }
  return Status::Ok();
}

// A new file with `contents`, flushed.
Status WriteTemporary(const std::string& path, std::span<const uint8_t> contents) {
  // What a crash left of an earlier try is in nobody's use.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Status::FromErrno(errno, "remove", path);
  QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create"));
  QUARRY_TRY(WriteWhole(fd.get(), contents, path));
  if (::fsync(fd.get()) != 0) return Status::FromErrno(errno, "fsync", path);
  if (const int system_errno = fd.Close(); system_errno != 0) return Status::FromErrno(system_errno, "close", path);
  return Status::Ok();
}

class PosixDirectoryLock final : public DirectoryLock {
 public:
  explicit PosixDirectoryLock(unique_fd fd) : fd_(std::move(fd)) {}

 private:
  const unique_fd fd_;
};

class PosixEnv : public Env {
 public:
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create"));
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, std::move(fd)));
  }

  Result<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_WRONLY | O_NOFOLLOW, "open"));
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(path, std::move(fd)));
  }

  Result<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_RDONLY | O_NOFOLLOW, "open"));
    return std::unique_ptr<ReadableFile>(std::make_unique<PosixReadableFile>(path, std::move(fd)));
  }

  Result<std::unique_ptr<ReadableFile>> OpenForVerify(const std::string& path) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_RDONLY | O_NOFOLLOW, "open"));
    return std::unique_ptr<ReadableFile>(std::make_unique<PosixVerifyFile>(path, std::move(fd)));
  }

  Result<FileSpace> GetFileSpace(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return Status::FromErrno(errno, "stat", path);
    if (!S_ISREG(info.st_mode)) return Status::FromErrno(ELOOP, "stat", path);  // as if it had been opened
    return FileSpace{static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_blocks) * kStatBlockSize};
  }

  Result<std::unique_ptr<DirectoryLock>> LockDirectory(const std::string& path, bool exclusive) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, "open directory"));
    while (::flock(fd.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return Status::Unavailable("'" + path + "' is held by another process");
      return std::unique_ptr<DirectoryLock>();  // a network file system without locks
    }
    return std::unique_ptr<DirectoryLock>(std::make_unique<PosixDirectoryLock>(std::move(fd)));
  }

  Status ReplaceFile(const std::string& path, std::span<const uint8_t> contents) override {
    const std::string temporary = path + kTemporarySuffix;
    Status status = WriteTemporary(temporary, contents);
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
      status = Status::FromErrno(errno, "rename", path);
    if (!status.ok()) {
      (void)::unlink(temporary.c_str());  // the first error is the one to report
      return status;
    }
    return SyncDirectory(ParentPath(path));
  }

  Result<DirectoryIdentity> IdentifyDirectory(const std::string& path) override {
    struct statx info {};
    if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &info) != 0) {
      return Status::FromErrno(errno, "identify", path);
    }
    DirectoryIdentity identity;
    if ((info.stx_mask & STATX_BTIME) == 0 || info.stx_btime.tv_sec <= 0) return identity;
    identity.inode = info.stx_ino;
    identity.birth_nanos = static_cast<uint64_t>(info.stx_btime.tv_sec) * 1'000'000'000 + info.stx_btime.tv_nsec;
    return identity;
  }

  Result<bool> FileExists(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return Status::FromErrno(errno, "stat", path);
  }

  Status CreateDirectory(const std::string& path) override {
    if (::mkdir(path.c_str(), directory_mode.load(std::memory_order_relaxed)) == 0) return Status::Ok();
    const int system_errno = errno;
    struct stat info {};
    if (system_errno == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return Status::Ok();
    return Status::FromErrno(system_errno, "create directory", path);
  }

  Status SyncDirectory(const std::string& path) override {
    QUARRY_TRY_ASSIGN(unique_fd fd, Open(path, O_RDONLY | O_DIRECTORY, "open directory"));
    if (::fsync(fd.get()) != 0) return Status::FromErrno(errno, "fsync directory", path);
    return Status::Ok();
  }

  Result<std::vector<std::string>> ListDirectory(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (directory == nullptr) return Status::FromErrno(errno, "list", path);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr && errno != 0) return Status::FromErrno(errno, "list", path);
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return Status::FromErrno(errno, "rename " + from + " to", to);
    return Status::Ok();
  }

  Status RemoveFile(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return Status::FromErrno(errno, "remove", path);
    return Status::Ok();
  }

  Status RemoveDirectory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) return Status::FromErrno(errno, "remove directory", path);
    return Status::Ok();
  }

  bool HasJournal(const std::string& directory) override { return FileSystemHasJournal(directory); }

  SystemMemory GetMemory() override { return ReadSystemMemory(); }

  uint64_t MonotonicMicros() override {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
  }

  uint64_t NowMicros() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }

  Status FillRandom(std::span<uint8_t> out) override {
    while (!out.empty()) {
      const ssize_t result = ::getrandom(out.data(), out.size(), 0);
      if (result < 0 && errno == EINTR) continue;
      if (result <= 0) return Status::FromErrno(result < 0 ? errno : EIO, "draw random bytes", "getrandom");
      out = out.subspan(static_cast<size_t>(result));
    }
    return Status::Ok();
  }
};

}  // namespace

void SetPosixModes(uint32_t files, uint32_t directories) {
  file_mode.store(files, std::memory_order_relaxed);
  directory_mode.store(directories, std::memory_order_relaxed);
}

Env* Env::Posix() {
  static PosixEnv env;
  return &env;
}

}  // namespace quarry
