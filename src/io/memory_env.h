// MemoryEnv: files and directories in memory, with a model of what a power cut leaves. For tests.
//
// The model: a write is volatile until a Sync of its file that started after it returned. A creation or removal is
// volatile until SyncDirectory of its parent, a rename until that of both parents. PowerCut keeps everything durable
// and, of the rest, any subset that a disk could have kept: each 512-byte sector of each volatile write on its own,
// size changes, truncations, allocations and holes of a file up to some point in their order (so a file may be longer
// than what was written, and zeros there), each volatile directory operation on its own unless an earlier one on the
// same name was dropped. What lies in a directory whose creation was dropped is gone.
//
// Invariants: a write that O_DIRECT would refuse for its alignment is refused (EINVAL); handles opened before a power
// cut give kIoError after it; paths are compared as text after collapsing slashes. Thread-safety: internally
// synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/env.h"

namespace quarry {

class MemoryEnv : public Env {
 public:
  MemoryEnv();
  ~MemoryEnv() override;

  /// Drops a subset of what is volatile, drawn from `seed` (the same calls and seed give the same subset), and makes
  /// the rest durable. seed 0 drops all of it, seed UINT64_MAX keeps all of it.
  void PowerCut(uint64_t seed);

  /// Flips bit `bit` of the byte at `offset_bytes` of a file, durably, behind everybody's back. False: no such byte.
  [[nodiscard]] bool FlipBit(const std::string& path, uint64_t offset_bytes, int bit);

  /// Total bytes that all files may allocate; a write beyond is ENOSPC. Default: no limit.
  void SetCapacityBytes(uint64_t capacity_bytes);

  /// Whether directories have a birth time (the default), or the file system keeps none.
  void SetKeepsBirthTimes(bool keeps);

  /// What GetMemory says. Default: nothing is known.
  void SetMemory(const SystemMemory& memory);

  /// Virtual time in microseconds, which only tests move.
  void AdvanceMicros(uint64_t micros);

  [[nodiscard]] Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override;
  [[nodiscard]] Status ReplaceFile(const std::string& path, std::span<const uint8_t> contents) override;
  [[nodiscard]] Result<DirectoryIdentity> IdentifyDirectory(const std::string& path) override;
  [[nodiscard]] Result<bool> FileExists(const std::string& path) override;
  [[nodiscard]] Status CreateDirectory(const std::string& path) override;
  [[nodiscard]] Status SyncDirectory(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> ListDirectory(const std::string& path) override;
  [[nodiscard]] Status Rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] Status RemoveFile(const std::string& path) override;
  [[nodiscard]] Status RemoveDirectory(const std::string& path) override;
  [[nodiscard]] SystemMemory GetMemory() override;
  [[nodiscard]] uint64_t NowMicros() override;
  [[nodiscard]] Status FillRandom(std::span<uint8_t> out) override;

 private:
  class Model;
  class WriteHandle;
  class ReadHandle;
  std::shared_ptr<Model> model_;  ///< shared with the handles, which may outlive the Env
};

}  // namespace quarry
