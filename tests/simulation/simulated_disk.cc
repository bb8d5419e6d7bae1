#include "simulation/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "io/path.h"

namespace quarry::simulation {
namespace {

Status StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

/// What a segment is rewritten into, until it takes its place.
bool IsRewriting(const std::string& path) { return path.ends_with(".qseg.new"); }

/// "store/segment" of a segment's path, "home/CATALOGUE-..." of a catalogue's, empty for any other file: the directory
/// above moves between stores and trash.
std::string KeyOf(const std::string& path) {
  if (!path.ends_with(".qseg") && !IsRewriting(path) && path.find("/CATALOGUE-") == std::string::npos) return {};
  const std::string directory = ParentPath(path);
  return directory.substr(directory.rfind('/') + 1) + path.substr(path.rfind('/'));
}

std::string KeyOf(StoreId store, SegmentNumber segment) {
  char key[40];
  std::snprintf(key, sizeof(key), "%016llx/%08x.qseg", static_cast<unsigned long long>(store.value), segment.value);
  return key;
}

bool IsZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

std::string Where(const std::string& path, uint64_t block) { return path + " block " + std::to_string(block); }

}  // namespace

/// The time of one call, from before its effect to its return.
class SimulatedDisk::Point {
 public:
  Point(SimulatedDisk* disk, const char* what, const std::string& path, bool changes)
      : watcher_(disk->watcher_), what_(what), path_(path), changes_(changes) {
    if (watcher_ != nullptr) watcher_->Before(what_, path_, changes_);
  }
  ~Point() {
    if (watcher_ != nullptr) watcher_->After(what_, path_, changes_);
  }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

 private:
  CallWatcher* const watcher_;
  const char* const what_;
  const std::string& path_;
  const bool changes_;
};

/// Every call goes through here. Power that goes goes after the call.
template <typename Call>
auto SimulatedDisk::Do(const char* what, const std::string& path, uint64_t offset, uint64_t size, bool changes,
                       Call call) -> decltype(call()) {
  if (power_is_off_) return Status::FromErrno(EIO, "power is off:", path);
  auto result = call();
  const uint64_t failures_before = failures_;
  Note(what, path, offset, size, StatusOf(result));
  if (changes && failures_ > failures_before) changes_failed_.push_back(path);
  if (changes && ++changing_calls_ == cut_at_) {
    power_is_off_ = true;
    if (trace_) std::printf("    -- power goes after changing call %llu\n", (unsigned long long)changing_calls_);
  }
  return result;
}

void SimulatedDisk::Note(const char* what, const std::string& path, uint64_t offset, uint64_t size,
                         const Status& status) {
  ++calls_;
  const bool is_failure =
      !status.ok() && status.code() != StatusCode::kNotFound && status.code() != StatusCode::kAlreadyExists;
  if (is_failure) ++failures_;
  const auto mix = [this](uint64_t word) { digest_ = (digest_ ^ word) * 0x100000001b3; };
  const auto mix_text = [&mix](std::string_view text) {
    mix(Checksum64({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  };
  mix_text(what);
  mix_text(path);
  mix(offset);
  mix(size);
  mix(static_cast<uint64_t>(status.code()));
  if (trace_) {
    std::printf("    %-10s %s %llu +%llu%s%s\n", what, path.c_str(), (unsigned long long)offset,
                (unsigned long long)size, status.ok() ? "" : " -> ", status.ok() ? "" : status.ToString().c_str());
  }
}

void SimulatedDisk::Violate(const char* invariant, const std::string& detail) {
  if (!violation_) violation_.emplace(invariant, detail);
}

void SimulatedDisk::PowerOn(uint64_t cut_seed) {
  faults_.ClearFailures();
  memory_.PowerCut(cut_seed);
  power_is_off_ = false;
  in_gc_ = false;
  failures_ = 0;
  changes_failed_.clear();
  for (auto& [key, watched] : watched_) {
    watched->is_of_this_life = false;
    watched->has_failed = false;
    watched->has_lost_writes = false;
    for (uint8_t& block : watched->blocks) block &= Watched::kFlushedData;
  }
}

bool SimulatedDisk::HasFailed(StoreId store, SegmentNumber segment) const {
  const auto found = watched_.find(KeyOf(store, segment));
  return found != watched_.end() && found->second->has_lost_writes;
}

bool SimulatedDisk::HasFailedBelow(const std::string& directory) const {
  return std::any_of(changes_failed_.begin(), changes_failed_.end(),
                     [&](const std::string& path) { return path.starts_with(directory + "/"); });
}

bool SimulatedDisk::IsFlushed(const Locator& locator) const {
  const auto found = watched_.find(KeyOf(locator.store, locator.segment));
  if (found == watched_.end()) return false;
  const std::vector<uint8_t>& blocks = found->second->blocks;
  if (found->second->is_rewritten) {
    return std::none_of(blocks.begin(), blocks.end(), [](uint8_t block) { return (block & Watched::kDirty) != 0; });
  }
  const uint64_t last = (locator.offset_bytes + locator.extent_size_bytes - 1) / kBlockSizeBytes;
  for (uint64_t block = locator.offset_bytes / kBlockSizeBytes; block <= last; ++block) {
    if (block >= blocks.size() || (blocks[block] & (Watched::kDirty | Watched::kLost)) != 0) return false;
  }
  return true;
}

// ---- what may be done to a segment ----

void SimulatedDisk::BeforeWrite(Watched* watched, const std::string& path, uint64_t offset,
                                std::span<const uint8_t> data) {
  if (!watched->is_of_this_life) Violate(kRecoveredNotAppended, "write to " + path);
  // Of several threads one may be about to write when another one's call fails.
  if (watched->has_failed && watcher_ == nullptr) Violate(kNothingAfterFailure, "write to " + path);
  const uint64_t end = (offset + data.size()) / kBlockSizeBytes;
  if (watched->blocks.size() < end) watched->blocks.resize(end);
  for (uint64_t block = offset / kBlockSizeBytes; block < end; ++block) {
    uint8_t& flags = watched->blocks[block];
    if ((flags & Watched::kFlushedData) != 0) Violate(kBlockWrittenOnce, Where(path, block));
    const bool is_zero = IsZero(data.subspan(block * kBlockSizeBytes - offset, kBlockSizeBytes));
    flags = static_cast<uint8_t>(Watched::kDirty | (is_zero ? 0 : Watched::kData));
  }
}

void SimulatedDisk::BeforeFlush(const Watched& watched, const std::string& path) {
  if (watched.has_failed && watcher_ == nullptr) Violate(kNothingAfterFailure, "flush of " + path);
}

void SimulatedDisk::BeforeCut(const Watched& watched, const std::string& path, uint64_t offset, uint64_t size,
                              const char* what) {
  const uint64_t end = std::min<uint64_t>(watched.blocks.size(), (offset + size) / kBlockSizeBytes);
  for (uint64_t block = (offset + kBlockSizeBytes - 1) / kBlockSizeBytes; block < end; ++block) {
    if ((watched.blocks[block] & Watched::kFlushedData) != 0)
      Violate(kFlushedNotCut, what + (" " + Where(path, block)));
  }
}

class SimulatedDisk::File : public WritableFile {
 public:
  /// `is_appender`: what fails through any other handle (zeros written ahead, holes) concerns nobody's bytes. One that
  /// writes other bytes than zeros is the appender's, too, who opened the file again.
  File(SimulatedDisk* disk, std::string path, std::shared_ptr<Watched> watched, std::unique_ptr<WritableFile> target,
       bool is_appender)
      : disk_(disk),
        path_(std::move(path)),
        watched_(std::move(watched)),
        target_(std::move(target)),
        is_appender_(is_appender) {}

  Status WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) override {
    const Point point(disk_, "write", path_, true);
    is_appender_ = is_appender_ || std::any_of(data.begin(), data.end(), [](uint8_t byte) { return byte != 0; });
    if (watched_ != nullptr && !disk_->power_is_off_) disk_->BeforeWrite(watched_.get(), path_, offset_bytes, data);
    const Status status = disk_->Do("write", path_, offset_bytes, data.size(), true,
                                    [&] { return target_->WriteAt(offset_bytes, data); });
    if (watched_ != nullptr && !status.ok()) {
      // Nobody knows what is there now.
      const uint64_t end = (offset_bytes + data.size()) / kBlockSizeBytes;
      for (uint64_t block = offset_bytes / kBlockSizeBytes; block < std::min(end, watched_->blocks.size()); ++block) {
        watched_->blocks[block] = Watched::kDirty;
      }
    }
    if (watched_ != nullptr && is_appender_ && !status.ok()) {
      watched_->has_lost_writes = true;
      watched_->has_failed = watched_->has_failed || status.code() != StatusCode::kNoSpace;
    }
    return status;
  }

  Status Sync() override {
    const Point point(disk_, "flush", path_, true);
    if (watched_ != nullptr && !disk_->power_is_off_) disk_->BeforeFlush(*watched_, path_);
    const Status status = disk_->Do("flush", path_, 0, 0, true, [&] { return target_->Sync(); });
    if (watched_ == nullptr) return status;
    if (!status.ok()) {
      if (!is_appender_) return status;  // the kernel tells each handle of a loss: the appender hears of it, too
      watched_->has_failed = watched_->has_lost_writes = true;
      for (uint8_t& block : watched_->blocks) {
        if ((block & Watched::kDirty) != 0) block |= Watched::kLost;
      }
      return status;
    }
    for (uint8_t& block : watched_->blocks) {
      if ((block & Watched::kData) != 0) block |= Watched::kFlushedData;
      block = static_cast<uint8_t>(block & ~Watched::kDirty);
    }
    return status;
  }

  Status Truncate(uint64_t size_bytes) override {
    const Point point(disk_, "truncate", path_, true);
    if (watched_ != nullptr && !disk_->power_is_off_) {
      disk_->BeforeCut(*watched_, path_, size_bytes, UINT64_MAX / 2, "truncate at");
    }
    return disk_->Do("truncate", path_, size_bytes, 0, true, [&] { return target_->Truncate(size_bytes); });
  }

  Status Allocate(uint64_t offset_bytes, uint64_t size_bytes) override {
    const Point point(disk_, "allocate", path_, true);
    return disk_->Do("allocate", path_, offset_bytes, size_bytes, true,
                     [&] { return target_->Allocate(offset_bytes, size_bytes); });
  }

  Status PunchHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    const Point point(disk_, "punch", path_, true);
    if (watched_ != nullptr && !disk_->power_is_off_ && !disk_->in_gc_) {
      disk_->BeforeCut(*watched_, path_, offset_bytes, size_bytes, "hole at");
    }
    const Status status = disk_->Do("punch", path_, offset_bytes, size_bytes, true,
                                    [&] { return target_->PunchHole(offset_bytes, size_bytes); });
    if (watched_ == nullptr || !status.ok()) return status;
    const uint64_t end = std::min<uint64_t>(watched_->blocks.size(), (offset_bytes + size_bytes) / kBlockSizeBytes);
    for (uint64_t block = offset_bytes / kBlockSizeBytes; block < end; ++block) watched_->blocks[block] = 0;
    return status;
  }

  Status Close() override {
    const Point point(disk_, "close", path_, false);
    return disk_->Do("close", path_, 0, 0, false, [&] { return target_->Close(); });
  }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
  const std::shared_ptr<Watched> watched_;  ///< null: no segment
  const std::unique_ptr<WritableFile> target_;
  bool is_appender_;
};

class SimulatedDisk::Reader : public ReadableFile {
 public:
  Reader(SimulatedDisk* disk, std::string path, std::unique_ptr<ReadableFile> target)
      : disk_(disk), path_(std::move(path)), target_(std::move(target)) {}

  Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override {
    const Point point(disk_, "read", path_, false);
    return disk_->Do("read", path_, offset_bytes, out.size(), false,
                     [&] { return target_->ReadAt(offset_bytes, out); });
  }
  Status ReadBatch(std::span<const ReadRequest> requests) override {
    const Point point(disk_, "read batch", path_, false);
    const uint64_t offset = requests.empty() ? 0 : requests.front().offset_bytes;
    // A short read is the caller's business, not the disk's failure.
    const uint64_t failures_before = disk_->failures_;
    const Status status =
        disk_->Do("read batch", path_, offset, requests.size(), false, [&] { return target_->ReadBatch(requests); });
    if (!status.ok() && status.message().find("short read") != std::string::npos) disk_->failures_ = failures_before;
    return status;
  }
  Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) override {
    const Point point(disk_, "read direct", path_, false);
    return disk_->Do("read direct", path_, offset_bytes, out.size(), false,
                     [&] { return target_->ReadDirect(offset_bytes, out); });
  }
  Result<uint64_t> SizeBytes() override {
    const Point point(disk_, "size", path_, false);
    return disk_->Do("size", path_, 0, 0, false, [&] { return target_->SizeBytes(); });
  }
  Result<uint64_t> AllocatedBytes() override {
    const Point point(disk_, "blocks", path_, false);
    return disk_->Do("blocks", path_, 0, 0, false, [&] { return target_->AllocatedBytes(); });
  }
  Result<bool> HasHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    const Point point(disk_, "hole", path_, false);
    return disk_->Do("hole", path_, offset_bytes, size_bytes, false,
                     [&] { return target_->HasHole(offset_bytes, size_bytes); });
  }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> target_;
};

// ---- Env ----

Result<std::unique_ptr<WritableFile>> SimulatedDisk::CreateFile(const std::string& path) {
  const Point point(this, "create", path, true);
  QUARRY_TRY_ASSIGN(auto file, Do("create", path, 0, 0, true, [&] { return faults_.CreateFile(path); }));
  std::shared_ptr<Watched> watched;
  if (const std::string key = KeyOf(path); !key.empty()) watched = watched_[key] = std::make_shared<Watched>();
  return std::unique_ptr<WritableFile>(std::make_unique<File>(this, path, std::move(watched), std::move(file), true));
}

Result<std::unique_ptr<WritableFile>> SimulatedDisk::OpenForWrite(const std::string& path) {
  const Point point(this, "open", path, false);
  QUARRY_TRY_ASSIGN(auto file, Do("open", path, 0, 0, false, [&] { return faults_.OpenForWrite(path); }));
  std::shared_ptr<Watched> watched;
  if (const std::string key = KeyOf(path); !key.empty()) watched = watched_[key];
  return std::unique_ptr<WritableFile>(std::make_unique<File>(this, path, std::move(watched), std::move(file), false));
}

Result<std::unique_ptr<ReadableFile>> SimulatedDisk::OpenForRead(const std::string& path) {
  const Point point(this, "open", path, false);
  QUARRY_TRY_ASSIGN(auto file, Do("open", path, 0, 0, false, [&] { return faults_.OpenForRead(path); }));
  return std::unique_ptr<ReadableFile>(std::make_unique<Reader>(this, path, std::move(file)));
}

Status SimulatedDisk::WriteTemporary(const std::string& path, std::span<const uint8_t> contents) {
  QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> file, CreateFile(path));
  AlignedBuffer padded(contents.size());
  padded.FillZero();
  std::memcpy(padded.data(), contents.data(), contents.size());
  QUARRY_TRY(file->WriteAt(0, padded.span()));
  QUARRY_TRY(file->Truncate(contents.size()));
  QUARRY_TRY(file->Sync());
  return file->Close();
}

// As PosixEnv does it, each step a call of its own.
Status SimulatedDisk::ReplaceFile(const std::string& path, std::span<const uint8_t> contents) {
  const std::string temporary = path + ".new";
  if (const Status status = RemoveFile(temporary); !status.ok() && status.code() != StatusCode::kNotFound)
    return status;
  Status status = WriteTemporary(temporary, contents);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) {
    (void)RemoveFile(temporary);
    return status;
  }
  return SyncDirectory(ParentPath(path));
}

Result<DirectoryIdentity> SimulatedDisk::IdentifyDirectory(const std::string& path) {
  return Do("identify", path, 0, 0, false, [&] { return faults_.IdentifyDirectory(path); });
}

Result<bool> SimulatedDisk::FileExists(const std::string& path) {
  const Point point(this, "exists", path, false);
  return Do("exists", path, 0, 0, false, [&] { return faults_.FileExists(path); });
}

Status SimulatedDisk::CreateDirectory(const std::string& path) {
  const Point point(this, "mkdir", path, true);
  return Do("mkdir", path, 0, 0, true, [&] { return faults_.CreateDirectory(path); });
}

Status SimulatedDisk::SyncDirectory(const std::string& path) {
  const Point point(this, "flush dir", path, true);
  return Do("flush dir", path, 0, 0, true, [&] { return faults_.SyncDirectory(path); });
}

Result<std::vector<std::string>> SimulatedDisk::ListDirectory(const std::string& path) {
  const Point point(this, "list", path, false);
  return Do("list", path, 0, 0, false, [&] { return faults_.ListDirectory(path); });
}

Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  const Point point(this, "rename", from, true);
  QUARRY_TRY(Do("rename", from + " to " + to, 0, 0, true, [&] { return faults_.Rename(from, to); }));
  if (IsRewriting(from)) {
    const std::shared_ptr<Watched> watched = watched_[KeyOf(from)];
    watched->is_rewritten = true;
    watched_.erase(KeyOf(from));
    watched_[KeyOf(to)] = watched;
  }
  return Status::Ok();
}

Status SimulatedDisk::RemoveFile(const std::string& path) {
  const Point point(this, "remove", path, true);
  return Do("remove", path, 0, 0, true, [&] { return faults_.RemoveFile(path); });
}

Status SimulatedDisk::RemoveDirectory(const std::string& path) {
  const Point point(this, "rmdir", path, true);
  return Do("rmdir", path, 0, 0, true, [&] { return faults_.RemoveDirectory(path); });
}

}  // namespace quarry::simulation
