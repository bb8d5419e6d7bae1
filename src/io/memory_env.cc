#include "io/memory_env.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <random>
#include <utility>

#include "base/mutex.h"
#include "io/memory_tree.h"
#include "io/path.h"

namespace quarry {

/// Everything behind the one mutex.
class MemoryEnv::Model {
 public:
  Mutex mutex;
  MemoryTree tree QUARRY_GUARDED_BY(mutex);
  uint64_t capacity_blocks QUARRY_GUARDED_BY(mutex) = UINT64_MAX;
  uint64_t now_micros QUARRY_GUARDED_BY(mutex) = 1'700'000'000'000'000;
  std::mt19937_64 random QUARRY_GUARDED_BY(mutex);
  bool keeps_birth_times QUARRY_GUARDED_BY(mutex) = true;
  uint64_t power_cuts QUARRY_GUARDED_BY(mutex) = 0;
  SystemMemory memory QUARRY_GUARDED_BY(mutex);

  /// ENOSPC when `blocks` more would not fit.
  [[nodiscard]] int Reserve(uint64_t blocks) const QUARRY_REQUIRES(mutex) {
    if (blocks == 0 || capacity_blocks == UINT64_MAX) return 0;
    const uint64_t used = tree.AllocatedBlocks();
    return used > capacity_blocks || blocks > capacity_blocks - used ? ENOSPC : 0;
  }
};

namespace {

bool IsAligned(uint64_t value) { return value % kBlockSizeBytes == 0; }

Status ErrnoStatus(int error, const char* operation, const std::string& path) {
  return error == 0 ? Status::Ok() : Status::FromErrno(error, operation, path);
}

}  // namespace

class MemoryEnv::WriteHandle : public WritableFile {
 public:
  WriteHandle(std::shared_ptr<Model> model, std::string path, std::shared_ptr<MemoryNode> node, uint64_t power_cuts)
      : model_(std::move(model)), path_(std::move(path)), node_(std::move(node)), power_cuts_(power_cuts) {}

  Status WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen("write"));
    if (!IsAligned(offset_bytes) || !IsAligned(data.size()) || !IsAligned(reinterpret_cast<uintptr_t>(data.data()))) {
      return Status::FromErrno(EINVAL, "write (unaligned)", path_);
    }
    MemoryFile& file = node_->file;
    QUARRY_TRY(ErrnoStatus(model_->Reserve(file.current().BlocksMissing(offset_bytes, data.size())), "write", path_));
    file.Write(offset_bytes, data);
    return Status::Ok();
  }

  Status Sync() override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen("fdatasync"));
    node_->file.Sync();
    return Status::Ok();
  }

  Status Truncate(uint64_t size_bytes) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen("truncate"));
    node_->file.Truncate(size_bytes);
    return Status::Ok();
  }

  Status Allocate(uint64_t offset_bytes, uint64_t size_bytes) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen("allocate"));
    if (size_bytes == 0) return Status::Ok();
    MemoryFile& file = node_->file;
    QUARRY_TRY(ErrnoStatus(model_->Reserve(file.current().BlocksMissing(offset_bytes, size_bytes)), "allocate", path_));
    file.Allocate(offset_bytes, size_bytes);
    return Status::Ok();
  }

  Status PunchHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen("punch hole"));
    if (!IsAligned(offset_bytes) || !IsAligned(size_bytes)) {
      return Status::FromErrno(EINVAL, "punch hole (unaligned)", path_);
    }
    node_->file.Punch(offset_bytes, size_bytes);
    return Status::Ok();
  }

  Status Close() override {
    MutexLock lock(model_->mutex);
    closed_ = true;
    return Status::Ok();
  }

 private:
  Status CheckOpen(const char* operation) const QUARRY_REQUIRES(model_->mutex) {
    if (closed_) return Status::FromErrno(EBADF, operation, path_);
    if (model_->power_cuts != power_cuts_) return Status::FromErrno(EIO, operation, path_ + " (after a power cut)");
    return Status::Ok();
  }

  const std::shared_ptr<Model> model_;
  const std::string path_;
  const std::shared_ptr<MemoryNode> node_;
  const uint64_t power_cuts_;
  bool closed_ QUARRY_GUARDED_BY(model_->mutex) = false;
};

class MemoryEnv::ReadHandle : public ReadableFile {
 public:
  ReadHandle(std::shared_ptr<Model> model, std::string path, std::shared_ptr<MemoryNode> node, uint64_t power_cuts)
      : model_(std::move(model)), path_(std::move(path)), node_(std::move(node)), power_cuts_(power_cuts) {}

  Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen());
    return node_->file.current().Read(offset_bytes, out);
  }

  Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) override {
    assert(offset_bytes % kBlockSizeBytes == 0 && out.size() % kBlockSizeBytes == 0);
    assert(reinterpret_cast<uintptr_t>(out.data()) % kBlockSizeBytes == 0);
    QUARRY_TRY_ASSIGN(const size_t size, ReadAt(offset_bytes, out));
    return std::optional<size_t>(size);
  }

  Status ReadBatch(std::span<const ReadRequest> requests) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen());
    for (const ReadRequest& request : requests) {
      if (node_->file.current().Read(request.offset_bytes, request.out) != request.out.size()) {
        return Status::FromErrno(EIO, "short read of", path_);
      }
    }
    return Status::Ok();
  }

  Result<uint64_t> SizeBytes() override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen());
    return node_->file.current().size();
  }

  Result<uint64_t> AllocatedBytes() override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen());
    return node_->file.current().allocated_blocks() * SparseBytes::kBlock;
  }

  Result<bool> HasHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    MutexLock lock(model_->mutex);
    QUARRY_TRY(CheckOpen());
    return node_->file.current().BlocksMissing(offset_bytes, size_bytes) > 0;
  }

 private:
  Status CheckOpen() const QUARRY_REQUIRES(model_->mutex) {
    if (model_->power_cuts != power_cuts_) return Status::FromErrno(EIO, "read", path_ + " (after a power cut)");
    return Status::Ok();
  }

  const std::shared_ptr<Model> model_;
  const std::string path_;
  const std::shared_ptr<MemoryNode> node_;
  const uint64_t power_cuts_;
};

MemoryEnv::MemoryEnv() : model_(std::make_shared<Model>()) {}
MemoryEnv::~MemoryEnv() = default;

void MemoryEnv::PowerCut(uint64_t seed) {
  MutexLock lock(model_->mutex);
  CutPolicy policy(seed);
  model_->tree.PowerCut(&policy);
  ++model_->power_cuts;
}

bool MemoryEnv::FlipBit(const std::string& path, uint64_t offset_bytes, int bit) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  return node != nullptr && !node->is_directory && node->file.FlipBit(offset_bytes, bit);
}

void MemoryEnv::SetCapacityBytes(uint64_t capacity_bytes) {
  MutexLock lock(model_->mutex);
  model_->capacity_blocks = capacity_bytes / SparseBytes::kBlock;
}

void MemoryEnv::AdvanceMicros(uint64_t micros) {
  MutexLock lock(model_->mutex);
  model_->now_micros += micros;
}

Result<std::unique_ptr<WritableFile>> MemoryEnv::CreateFile(const std::string& path) {
  MutexLock lock(model_->mutex);
  std::shared_ptr<MemoryNode> node;
  QUARRY_TRY(ErrnoStatus(model_->tree.CreateNode(path, false, &node), "create", path));
  return std::unique_ptr<WritableFile>(std::make_unique<WriteHandle>(model_, path, node, model_->power_cuts));
}

Result<std::unique_ptr<WritableFile>> MemoryEnv::OpenForWrite(const std::string& path) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  if (node == nullptr) return Status::FromErrno(ENOENT, "open", path);
  if (node->is_directory) return Status::FromErrno(EISDIR, "open", path);
  return std::unique_ptr<WritableFile>(std::make_unique<WriteHandle>(model_, path, node, model_->power_cuts));
}

Result<std::unique_ptr<ReadableFile>> MemoryEnv::OpenForRead(const std::string& path) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  if (node == nullptr) return Status::FromErrno(ENOENT, "open", path);
  if (node->is_directory) return Status::FromErrno(EISDIR, "open", path);
  return std::unique_ptr<ReadableFile>(std::make_unique<ReadHandle>(model_, path, node, model_->power_cuts));
}

Status MemoryEnv::ReplaceFile(const std::string& path, std::span<const uint8_t> contents) {
  MutexLock lock(model_->mutex);
  MemoryTree& tree = model_->tree;
  const std::string temporary = path + ".new";
  if (tree.Find(temporary) != nullptr) QUARRY_TRY(ErrnoStatus(tree.Remove(temporary, false), "remove", temporary));
  const uint64_t blocks = (contents.size() + SparseBytes::kBlock - 1) / SparseBytes::kBlock;
  QUARRY_TRY(ErrnoStatus(model_->Reserve(blocks), "write", temporary));
  std::shared_ptr<MemoryNode> node;
  QUARRY_TRY(ErrnoStatus(tree.CreateNode(temporary, false, &node), "create", temporary));
  node->file.Write(0, contents);
  node->file.Sync();
  QUARRY_TRY(ErrnoStatus(tree.Rename(temporary, path), "rename", path));
  return ErrnoStatus(tree.SyncDirectory(ParentPath(path)), "fsync directory", path);
}

void MemoryEnv::SetKeepsBirthTimes(bool keeps) {
  MutexLock lock(model_->mutex);
  model_->keeps_birth_times = keeps;
}

Result<DirectoryIdentity> MemoryEnv::IdentifyDirectory(const std::string& path) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  if (node == nullptr) return Status::FromErrno(ENOENT, "identify", path);
  // Numbers rise, as time does.
  return DirectoryIdentity{node->number, model_->keeps_birth_times ? node->number * 1000 : 0};
}

Result<bool> MemoryEnv::FileExists(const std::string& path) {
  MutexLock lock(model_->mutex);
  return model_->tree.Find(path) != nullptr;
}

Status MemoryEnv::CreateDirectory(const std::string& path) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  if (node != nullptr && node->is_directory) return Status::Ok();
  return ErrnoStatus(model_->tree.CreateNode(path, true, nullptr), "create directory", path);
}

Status MemoryEnv::SyncDirectory(const std::string& path) {
  MutexLock lock(model_->mutex);
  return ErrnoStatus(model_->tree.SyncDirectory(path), "fsync directory", path);
}

Result<std::vector<std::string>> MemoryEnv::ListDirectory(const std::string& path) {
  MutexLock lock(model_->mutex);
  const auto node = model_->tree.Find(path);
  if (node == nullptr) return Status::FromErrno(ENOENT, "list", path);
  if (!node->is_directory) return Status::FromErrno(ENOTDIR, "list", path);
  std::vector<std::string> names;
  for (const auto& [name, child] : node->children) names.push_back(name);
  return names;
}

Status MemoryEnv::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(model_->mutex);
  return ErrnoStatus(model_->tree.Rename(from, to), "rename", from + " to " + to);
}

Status MemoryEnv::RemoveFile(const std::string& path) {
  MutexLock lock(model_->mutex);
  return ErrnoStatus(model_->tree.Remove(path, false), "remove", path);
}

Status MemoryEnv::RemoveDirectory(const std::string& path) {
  MutexLock lock(model_->mutex);
  return ErrnoStatus(model_->tree.Remove(path, true), "remove directory", path);
}

void MemoryEnv::SetMemory(const SystemMemory& memory) {
  MutexLock lock(model_->mutex);
  model_->memory = memory;
}

SystemMemory MemoryEnv::GetMemory() {
  MutexLock lock(model_->mutex);
  return model_->memory;
}

uint64_t MemoryEnv::NowMicros() {
  MutexLock lock(model_->mutex);
  return model_->now_micros;
}

Status MemoryEnv::FillRandom(std::span<uint8_t> out) {
  MutexLock lock(model_->mutex);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(model_->random());
  return Status::Ok();
}

}  // namespace quarry
