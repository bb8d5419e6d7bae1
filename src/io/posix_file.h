// The files of PosixEnv.
//
// Invariants:
//  - Writes go around the page cache where the file system lets them; where it does not, through it: fdatasync makes
//    both durable.
//  - A failed fdatasync is reported once and never retried here.
// Thread-safety: internally synchronised by the kernel (positional calls on one descriptor); Close is not to run
// beside other calls.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "io/env.h"

namespace quarry {

/// The unit of st_blocks, whatever the file system's block is.
inline constexpr size_t kStatBlockSize = 512;

class PosixWritableFile : public WritableFile {
 public:
  /// `fd` was opened without O_DIRECT; it is asked for here.
  PosixWritableFile(std::string path, unique_fd fd);

  [[nodiscard]] Status WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) override;
  [[nodiscard]] Status Sync() override;
  [[nodiscard]] Status Truncate(uint64_t size_bytes) override;
  [[nodiscard]] Status Allocate(uint64_t offset_bytes, uint64_t size_bytes) override;
  [[nodiscard]] Status PunchHole(uint64_t offset_bytes, uint64_t size_bytes) override;
  [[nodiscard]] Status Close() override;

  /// False where the file system refused O_DIRECT.
  [[nodiscard]] bool direct() const { return direct_.load(std::memory_order_relaxed); }

 private:
  bool LeaveDirect();

  const std::string path_;
  unique_fd fd_;
  std::atomic<bool> direct_{false};
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(std::string path, unique_fd fd);

  [[nodiscard]] Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override;
  [[nodiscard]] Status ReadBatch(std::span<const ReadRequest> requests) override;
  [[nodiscard]] Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) override;
  [[nodiscard]] Result<uint64_t> SizeBytes() override;
  [[nodiscard]] Result<uint64_t> AllocatedBytes() override;
  [[nodiscard]] Result<bool> HasHole(uint64_t offset_bytes, uint64_t size_bytes) override;

 protected:
  const std::string path_;
  const unique_fd fd_;

 private:
  Status ReadWhole(const ReadRequest& request, size_t done_bytes);
  Status ReadContiguous(std::span<const ReadRequest> requests);
  /// The descriptor of direct reads; -1: there is none.
  [[nodiscard]] int DirectDescriptor();

  std::mutex direct_mutex_;
  unique_fd direct_fd_;  ///< a second descriptor of the same file, opened at the first need
  enum class Direct : uint8_t { kUnknown, kOpen, kRefused };
  std::atomic<Direct> direct_{Direct::kUnknown};
};

/// Reads around the page cache where the file system lets it; elsewhere drops from the cache what it brought there.
class PosixVerifyFile : public PosixReadableFile {
 public:
  PosixVerifyFile(std::string path, unique_fd fd);

  [[nodiscard]] Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override;
  [[nodiscard]] Status ReadBatch(std::span<const ReadRequest> requests) override;
  /// ReadAt has asked the device.
  [[nodiscard]] Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) override {
    (void)offset_bytes;
    (void)out;
    return std::optional<size_t>();
  }

 private:
  std::atomic<bool> direct_{false};
};

}  // namespace quarry
