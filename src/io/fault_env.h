// FaultEnv: wraps another Env, counts calls, fails chosen ones and lets a test watch or block them. For tests.
//
// Invariant: an injected failure happens instead of the call, except a short write, which happens before it fails.
// Thread-safety: internally synchronised. The hook runs on the calling thread with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/env.h"

namespace quarry {

enum class CallKind : uint8_t {
  kCreate,  ///< CreateFile
  kOpen,    ///< OpenForWrite, OpenForRead
  kRead,    ///< ReadAt, ReadBatch (one call), ReadSmallFile
  kWrite,   ///< WriteAt
  kSync,    ///< WritableFile::Sync
  kTruncate,
  kAllocate,
  kPunchHole,
  kClose,
  kReplace,  ///< ReplaceFile
  kCreateDirectory,
  kSyncDirectory,
  kList,  ///< ListDirectory, FileExists, GetFileSpace
  kRename,
  kRemove,  ///< RemoveFile, RemoveDirectory
};
inline constexpr size_t kCallKinds = static_cast<size_t>(CallKind::kRemove) + 1;

/// What is known of a call before it is made. `size_bytes` and `offset_bytes` are 0 where they mean nothing;
/// `requests` is 1 but for ReadBatch.
struct Call {
  CallKind kind = CallKind::kRead;
  uint64_t number = 0;  ///< of this kind, counts from 1
  std::string path;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  size_t requests = 1;
};

class FaultEnv : public Env {
 public:
  /// `target` must outlive this Env and its files.
  explicit FaultEnv(Env* target);
  ~FaultEnv() override;

  /// Fails the `n`-th call of `kind` from now (1: the next) with `system_errno`; with `and_later` every later one too.
  void FailCall(CallKind kind, uint64_t n, int system_errno, bool and_later = false);
  /// The `n`-th write from now puts only its first `keep_bytes` (whole blocks) in the file, then fails.
  void ShortWrite(uint64_t n, uint64_t keep_bytes, int system_errno);
  /// Forgets every planned failure.
  void ClearFailures();

  /// Calls of `kind` since construction, failed ones included.
  [[nodiscard]] uint64_t CountOf(CallKind kind) const;
  /// Bytes asked for by calls of `kind` (reads and writes).
  [[nodiscard]] uint64_t BytesOf(CallKind kind) const;

  /// Runs before every call (before an injected failure too) and may block or sleep. A status that is not ok is
  /// returned to the caller instead of the call. Empty: none.
  void SetHook(std::function<Status(const Call&)> hook);
  /// Hooks: each ListDirectory, FileExists and GetFileSpace of `path` fails with `system_errno`; ...
  void RefuseLists(const std::string& path, int system_errno);
  /// ... each read of `path` that begins before `end_bytes` fails with EIO.
  void RefuseReads(const std::string& path, uint64_t end_bytes);

  [[nodiscard]] Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override;
  [[nodiscard]] Status ReplaceFile(const std::string& path, std::span<const uint8_t> contents) override;
  [[nodiscard]] Result<std::vector<uint8_t>> ReadSmallFile(const std::string& path, uint64_t limit_bytes) override;
  [[nodiscard]] Result<FileSpace> GetFileSpace(const std::string& path) override;
  [[nodiscard]] Result<DirectoryIdentity> IdentifyDirectory(const std::string& path) override;
  [[nodiscard]] Result<bool> FileExists(const std::string& path) override;
  [[nodiscard]] Status CreateDirectory(const std::string& path) override;
  [[nodiscard]] Status SyncDirectory(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> ListDirectory(const std::string& path) override;
  [[nodiscard]] Status Rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] Status RemoveFile(const std::string& path) override;
  [[nodiscard]] Status RemoveDirectory(const std::string& path) override;
  [[nodiscard]] bool HasJournal(const std::string& directory) override { return target_->HasJournal(directory); }
  [[nodiscard]] SystemMemory GetMemory() override { return target_->GetMemory(); }
  [[nodiscard]] uint64_t NowMicros() override;
  [[nodiscard]] Status FillRandom(std::span<uint8_t> out) override;

 private:
  class State;
  class FaultWritableFile;
  class FaultReadableFile;
  Env* const target_;
  std::shared_ptr<State> state_;
};

}  // namespace quarry
