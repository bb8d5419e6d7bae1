// Env: the one seam through which the core touches files, time and threads' sleep.
// Implementations: PosixEnv (production), MemoryEnv (tests; models what survives a power cut), FaultEnv (wraps
// another Env: fails the n-th call once or from then on, cuts power, delays).
//
// Invariants:
//  - Every call reports its error; none retries a failed flush.
//  - Writes through WritableFile go around the page cache (O_DIRECT where the file system has it): buffer address,
//    offset and length are multiples of kBlockSizeBytes. They are not durable until Sync returns ok.
//  - A created file is durable only after its Sync and SyncDirectory of its parent.
// Thread-safety: Env and the files are internally synchronised; calls on one file may run in parallel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/system_memory.h"
#include "quarry/status.h"

namespace quarry {

/// Unit of direct I/O and of hole punching.
inline constexpr uint64_t kBlockSizeBytes = 4096;

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Writes all of `data` at `offset_bytes` or fails. Short writes are continued; ENOSPC is kNoSpace.
  [[nodiscard]] virtual Status WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) = 0;
  /// fdatasync: everything whose WriteAt returned before this call is durable, the file's size included.
  [[nodiscard]] virtual Status Sync() = 0;
  [[nodiscard]] virtual Status Truncate(uint64_t size_bytes) = 0;
  /// Allocates (unwritten) blocks ahead and lets the file's size grow over them, so that parallel writes need not take
  /// the inode's lock one by one. A hint: an Env that cannot does nothing; ENOSPC is kNoSpace and changes nothing.
  [[nodiscard]] virtual Status Allocate(uint64_t offset_bytes, uint64_t size_bytes) {
    (void)offset_bytes;
    (void)size_bytes;
    return Status::Ok();
  }
  /// Deallocates whole blocks; the file's size stays.
  [[nodiscard]] virtual Status PunchHole(uint64_t offset_bytes, uint64_t size_bytes) = 0;
  /// Close errors are reported; the destructor closes too but cannot.
  [[nodiscard]] virtual Status Close() = 0;
};

/// One piece of a batched read.
struct ReadRequest {
  uint64_t offset_bytes = 0;
  std::span<uint8_t> out;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Fills `out` wholly or fails; reading past the end is kCorruption's business of the caller: returns the count read.
  [[nodiscard]] virtual Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) = 0;
  /// All of `requests` in one submission; a short read of any is an error (kIoError, "short read").
  [[nodiscard]] virtual Status ReadBatch(std::span<const ReadRequest> requests) = 0;
  /// Around the page cache: address, offset and length are multiples of kBlockSizeBytes; it ends at the end of the
  /// file. Nothing where that cannot be done with this file: ReadAt then.
  [[nodiscard]] virtual Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) {
    (void)offset_bytes;
    (void)out;
    return std::optional<size_t>();
  }
  [[nodiscard]] virtual Result<uint64_t> SizeBytes() = 0;
  /// Blocks really allocated, as du counts them.
  [[nodiscard]] virtual Result<uint64_t> AllocatedBytes() = 0;
  /// True when the file system knows that it keeps nothing for some of these bytes: punched, or never written. False
  /// where it cannot tell.
  [[nodiscard]] virtual Result<bool> HasHole(uint64_t offset_bytes, uint64_t size_bytes) {
    (void)offset_bytes;
    (void)size_bytes;
    return false;
  }
};

/// Keeps others out of a directory for as long as it lives; the kernel lets go of it when the process dies.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  virtual ~DirectoryLock() = default;
};

/// What a file takes.
struct FileSpace {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;  ///< as du counts it
};

/// What tells a directory from every copy of it. Not the device: its number changes when a machine starts.
struct DirectoryIdentity {
  uint64_t inode = 0;
  uint64_t birth_nanos = 0;  ///< since 1970 UTC; 0: the file system keeps none, and the inode's number says nothing
  bool operator==(const DirectoryIdentity&) const = default;
};

class Env {
 public:
  virtual ~Env() = default;
  /// The process-wide production Env.
  static Env* Posix();

  /// Creates `path`, which must not exist. Its mode is that of SetPosixModes; no symlink is followed.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  /// Opens an existing file for writing (hole punching, truncation at clean close).
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) = 0;
  /// Of a file that need not be open for it. Errors: kNotFound, kIoError.
  [[nodiscard]] virtual Result<FileSpace> GetFileSpace(const std::string& path);
  /// For one pass over the file, from the device itself: reads go around the page cache where the file system lets
  /// them. ReadAt alone, with address, offset and length multiples of kBlockSizeBytes; it ends at the end of the file.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> OpenForVerify(const std::string& path) {
    return OpenForRead(path);
  }
  /// Exclusive: nobody else holds it. Shared: nobody else holds it exclusively. Does not wait: kUnavailable when it
  /// is held. Null where the file system has no locks.
  [[nodiscard]] virtual Result<std::unique_ptr<DirectoryLock>> LockDirectory(const std::string& path, bool exclusive) {
    (void)path;
    (void)exclusive;
    return std::unique_ptr<DirectoryLock>();
  }
  [[nodiscard]] virtual Result<DirectoryIdentity> IdentifyDirectory(const std::string& path) {
    (void)path;
    return DirectoryIdentity();
  }
  /// Replaces `path` atomically and durably with `contents` (write `path`.new, fsync, rename, fsync directory). Calls
  /// for one path must not overlap; a crash may leave a `path`.new that the next call for `path` replaces.
  [[nodiscard]] virtual Status ReplaceFile(const std::string& path, std::span<const uint8_t> contents) = 0;
  /// The whole of a small file; refuses one larger than `limit_bytes` before allocating.
  [[nodiscard]] virtual Result<std::vector<uint8_t>> ReadSmallFile(const std::string& path, uint64_t limit_bytes);
  [[nodiscard]] virtual Result<bool> FileExists(const std::string& path) = 0;
  /// Ok when it is there already.
  [[nodiscard]] virtual Status CreateDirectory(const std::string& path) = 0;
  [[nodiscard]] virtual Status SyncDirectory(const std::string& path) = 0;
  /// Names only, sorted, without "." and "..".
  [[nodiscard]] virtual Result<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  [[nodiscard]] virtual Status Rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Status RemoveFile(const std::string& path) = 0;
  [[nodiscard]] virtual Status RemoveDirectory(const std::string& path) = 0;
  /// Whether the file system there has to commit a journal when it makes a file's new size or blocks durable, so that
  /// a flush of bytes that overwrite others is much cheaper. A constant of the mount.
  [[nodiscard]] virtual bool HasJournal(const std::string& directory) {
    (void)directory;
    return true;
  }
  /// Of the process, now.
  [[nodiscard]] virtual SystemMemory GetMemory() { return {}; }
  [[nodiscard]] virtual uint64_t NowMicros() = 0;
  /// For spans of time: nobody sets this clock.
  [[nodiscard]] virtual uint64_t MonotonicMicros() { return NowMicros(); }
  /// Bytes that nobody can guess, from the system's generator. (In tests: the same ones in each run.)
  [[nodiscard]] virtual Status FillRandom(std::span<uint8_t> out) = 0;
};

/// Modes of what Env::Posix() makes from now on, less the process's umask. At first 0660 and 0700, as MariaDB's.
void SetPosixModes(uint32_t files, uint32_t directories);

/// Of a removal that an earlier, cut off try may have done already.
[[nodiscard]] inline Status IgnoreNotFound(Status status) {
  return status.code() == StatusCode::kNotFound ? Status::Ok() : std::move(status);
}

}  // namespace quarry
