// SimulatedDisk: the Env of the simulation. MemoryEnv says what a power cut leaves, FaultEnv on top of it fails chosen
// calls, and this layer cuts the power, does ReplaceFile in its single steps, and watches what happens to segments.
//
// Invariants that it checks (the first violation is kept; names: violation.h):
//  - a block that holds data and was flushed is never written again, nor cut off, nor punched outside GC;
//  - after a failed flush, or a failed write that was not for want of space, a segment is not written or flushed again;
//  - a segment of an earlier life of the process is never written.
// Power goes after a chosen call that changes something; from then on every call fails until PowerOn.
// Thread-safety: for one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/env.h"
#include "io/fault_env.h"
#include "io/memory_env.h"
#include "quarry/locator.h"
#include "simulation/violation.h"

namespace quarry::simulation {

/// Hears of each call of the disk, before it has an effect and before its caller knows: there other threads may go on.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  virtual void Before(const char* what, const std::string& path, bool changes) = 0;
  virtual void After(const char* what, const std::string& path, bool changes) = 0;
  [[nodiscard]] virtual uint64_t NowMicros() = 0;
};

class SimulatedDisk : public Env {
 public:
  SimulatedDisk() : faults_(&memory_) {}

  /// Behind the process's back: no failure, no count, no check.
  [[nodiscard]] MemoryEnv* memory() { return &memory_; }
  [[nodiscard]] FaultEnv* faults() { return &faults_; }

  /// Power goes when `calls` more calls have changed something, in whatever life.
  void CutPowerAfter(uint64_t calls) { cut_at_ = changing_calls_ + calls; }
  void CutPowerNow() { power_is_off_ = true; }
  [[nodiscard]] bool power_is_off() const { return power_is_off_; }
  /// Settles what the cut left (MemoryEnv::PowerCut) and forgets planned failures; a new life of the process begins.
  void PowerOn(uint64_t cut_seed);

  [[nodiscard]] uint64_t changing_calls() const { return changing_calls_; }
  [[nodiscard]] uint64_t calls() const { return calls_; }
  /// Calls that failed in this life, missing and existing names not counted.
  [[nodiscard]] uint64_t failures() const { return failures_; }
  /// A call that changes something below `directory` failed in this life.
  [[nodiscard]] bool HasFailedBelow(const std::string& directory) const;
  /// A write or flush of this segment failed in this life.
  [[nodiscard]] bool HasFailed(StoreId store, SegmentNumber segment) const;
  /// No block of the extent was written after the last successful flush of its segment.
  [[nodiscard]] bool IsFlushed(const Locator& locator) const;
  /// Holes in flushed blocks are allowed now: GC is at work.
  void set_in_gc(bool in_gc) { in_gc_ = in_gc; }

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  /// Of every call and its outcome: two runs of one seed must agree.
  [[nodiscard]] uint64_t digest() const { return digest_; }
  void set_trace(bool trace) { trace_ = trace; }
  void set_watcher(CallWatcher* watcher) { watcher_ = watcher; }

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
  [[nodiscard]] SystemMemory GetMemory() override { return memory_.GetMemory(); }
  [[nodiscard]] uint64_t NowMicros() override {
    return watcher_ != nullptr ? watcher_->NowMicros() : memory_.NowMicros();
  }
  [[nodiscard]] Status FillRandom(std::span<uint8_t> out) override { return memory_.FillRandom(out); }

 private:
  class File;
  class Reader;
  class Point;

  /// What is known of one segment file, whatever directory it stands in now.
  struct Watched {
    static constexpr uint8_t kDirty = 1;        ///< written since the last successful flush
    static constexpr uint8_t kData = 2;         ///< the last write was not all zeros
    static constexpr uint8_t kFlushedData = 4;  ///< kData, and flushed
    static constexpr uint8_t kLost = 8;         ///< kDirty when a flush failed: the kernel may have dropped it
    std::vector<uint8_t> blocks;
    bool is_of_this_life = true;
    bool is_rewritten = false;     ///< took the place of another: extents do not stand at their own offsets
    bool has_failed = false;       ///< nothing may be written or flushed any more
    bool has_lost_writes = false;  ///< has_failed, or a write failed for want of space
  };

  template <typename Call>
  auto Do(const char* what, const std::string& path, uint64_t offset, uint64_t size, bool changes, Call call)
      -> decltype(call());
  void Note(const char* what, const std::string& path, uint64_t offset, uint64_t size, const Status& status);
  void Violate(const char* invariant, const std::string& detail);
  [[nodiscard]] Status WriteTemporary(const std::string& path, std::span<const uint8_t> contents);

  void BeforeWrite(Watched* watched, const std::string& path, uint64_t offset, std::span<const uint8_t> data);
  void BeforeFlush(const Watched& watched, const std::string& path);
  void BeforeCut(const Watched& watched, const std::string& path, uint64_t offset, uint64_t size, const char* what);

  MemoryEnv memory_;
  FaultEnv faults_;
  std::map<std::string, std::shared_ptr<Watched>> watched_;  ///< by "store/segment"
  uint64_t cut_at_ = 0;
  uint64_t changing_calls_ = 0;
  uint64_t calls_ = 0;
  uint64_t failures_ = 0;
  std::vector<std::string> changes_failed_;  ///< paths
  bool power_is_off_ = false;
  bool in_gc_ = false;
  bool trace_ = false;
  CallWatcher* watcher_ = nullptr;
  uint64_t digest_ = 0xcbf29ce484222325;
  std::optional<Violation> violation_;
};

}  // namespace quarry::simulation
