#include "io/fault_env.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/mutex.h"

namespace quarry {

/// Counts and plans, shared with the files, which may outlive the Env.
class FaultEnv::State {
 public:
  struct Plan {
    CallKind kind = CallKind::kRead;
    uint64_t number = 0;  ///< of the call, counted as Call::number is
    int system_errno = 0;
    bool and_later = false;
    uint64_t keep_bytes = 0;  ///< of a short write
  };

  void AddPlan(Plan plan, uint64_t n) {
    MutexLock lock(mutex_);
    plan.number = calls_[static_cast<size_t>(plan.kind)] + n;
    plans_.push_back(plan);
  }

  void ClearPlans() {
    MutexLock lock(mutex_);
    plans_.clear();
  }

  void SetHook(std::function<Status(const Call&)> hook) {
    MutexLock lock(mutex_);
    hook_ = std::move(hook);
  }

  uint64_t CountOf(CallKind kind) const {
    MutexLock lock(mutex_);
    return calls_[static_cast<size_t>(kind)];
  }

  uint64_t BytesOf(CallKind kind) const {
    MutexLock lock(mutex_);
    return bytes_[static_cast<size_t>(kind)];
  }

  /// Counts the call, lets the hook see it, and says whether it is to fail. `keep_bytes` is for writes.
  Status Before(Call call, uint64_t* keep_bytes = nullptr) {
    std::function<Status(const Call&)> hook;
    Status failure;
    {
      MutexLock lock(mutex_);
      call.number = ++calls_[static_cast<size_t>(call.kind)];
      bytes_[static_cast<size_t>(call.kind)] += call.size_bytes;
      hook = hook_;
      const auto plan = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& candidate) {
        return candidate.kind == call.kind &&
               (candidate.and_later ? call.number >= candidate.number : call.number == candidate.number);
      });
      if (plan != plans_.end()) {
        failure = Status::FromErrno(plan->system_errno, "injected failure of", call.path);
        if (keep_bytes != nullptr) *keep_bytes = std::min(plan->keep_bytes, call.size_bytes);
      }
    }
    if (hook) QUARRY_TRY(hook(call));
    return failure;
  }

 private:
  mutable Mutex mutex_;
  std::array<uint64_t, kCallKinds> calls_ QUARRY_GUARDED_BY(mutex_){};
  std::array<uint64_t, kCallKinds> bytes_ QUARRY_GUARDED_BY(mutex_){};
  std::vector<Plan> plans_ QUARRY_GUARDED_BY(mutex_);
  std::function<Status(const Call&)> hook_ QUARRY_GUARDED_BY(mutex_);
};

class FaultEnv::FaultWritableFile : public WritableFile {
 public:
  FaultWritableFile(std::shared_ptr<State> state, std::string path, std::unique_ptr<WritableFile> target)
      : state_(std::move(state)), path_(std::move(path)), target_(std::move(target)) {}

  Status WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) override {
    uint64_t keep_bytes = 0;
    const Status status = state_->Before({CallKind::kWrite, 0, path_, offset_bytes, data.size(), 1}, &keep_bytes);
    if (status.ok()) return target_->WriteAt(offset_bytes, data);
    if (keep_bytes != 0) QUARRY_TRY(target_->WriteAt(offset_bytes, data.first(keep_bytes)));
    return status;
  }
  Status Sync() override {
    QUARRY_TRY(state_->Before({CallKind::kSync, 0, path_, 0, 0, 1}));
    return target_->Sync();
  }
  Status Truncate(uint64_t size_bytes) override {
    QUARRY_TRY(state_->Before({CallKind::kTruncate, 0, path_, size_bytes, 0, 1}));
    return target_->Truncate(size_bytes);
  }
  Status Allocate(uint64_t offset_bytes, uint64_t size_bytes) override {
    QUARRY_TRY(state_->Before({CallKind::kAllocate, 0, path_, offset_bytes, size_bytes, 1}));
    return target_->Allocate(offset_bytes, size_bytes);
  }
  Status PunchHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    QUARRY_TRY(state_->Before({CallKind::kPunchHole, 0, path_, offset_bytes, size_bytes, 1}));
    return target_->PunchHole(offset_bytes, size_bytes);
  }
  Status Close() override {
    const Status status = state_->Before({CallKind::kClose, 0, path_, 0, 0, 1});
    // The descriptor is gone whatever close says, as in the kernel.
    const Status closed = target_->Close();
    return status.ok() ? closed : status;
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
  const std::unique_ptr<WritableFile> target_;
};

class FaultEnv::FaultReadableFile : public ReadableFile {
 public:
  FaultReadableFile(std::shared_ptr<State> state, std::string path, std::unique_ptr<ReadableFile> target)
      : state_(std::move(state)), path_(std::move(path)), target_(std::move(target)) {}

  Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override {
    QUARRY_TRY(state_->Before({CallKind::kRead, 0, path_, offset_bytes, out.size(), 1}));
    return target_->ReadAt(offset_bytes, out);
  }
  Status ReadBatch(std::span<const ReadRequest> requests) override {
    uint64_t size_bytes = 0;
    for (const ReadRequest& request : requests) size_bytes += request.out.size();
    const uint64_t offset_bytes = requests.empty() ? 0 : requests.front().offset_bytes;
    QUARRY_TRY(state_->Before({CallKind::kRead, 0, path_, offset_bytes, size_bytes, requests.size()}));
    return target_->ReadBatch(requests);
  }
  Result<std::optional<size_t>> ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) override {
    QUARRY_TRY(state_->Before({CallKind::kRead, 0, path_, offset_bytes, out.size(), 1}));
    return target_->ReadDirect(offset_bytes, out);
  }
  Result<uint64_t> SizeBytes() override {
    QUARRY_TRY(state_->Before({CallKind::kList, 0, path_, 0, 0, 1}));
    return target_->SizeBytes();
  }
  Result<uint64_t> AllocatedBytes() override {
    QUARRY_TRY(state_->Before({CallKind::kList, 0, path_, 0, 0, 1}));
    return target_->AllocatedBytes();
  }
  Result<bool> HasHole(uint64_t offset_bytes, uint64_t size_bytes) override {
    QUARRY_TRY(state_->Before({CallKind::kList, 0, path_, offset_bytes, size_bytes, 1}));
    return target_->HasHole(offset_bytes, size_bytes);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> target_;
};

FaultEnv::FaultEnv(Env* target) : target_(target), state_(std::make_shared<State>()) {}
FaultEnv::~FaultEnv() = default;

void FaultEnv::FailCall(CallKind kind, uint64_t n, int system_errno, bool and_later) {
  state_->AddPlan({kind, 0, system_errno, and_later, 0}, n);
}

void FaultEnv::ShortWrite(uint64_t n, uint64_t keep_bytes, int system_errno) {
  state_->AddPlan({CallKind::kWrite, 0, system_errno, false, keep_bytes / kBlockSizeBytes * kBlockSizeBytes}, n);
}

void FaultEnv::ClearFailures() { state_->ClearPlans(); }
uint64_t FaultEnv::CountOf(CallKind kind) const { return state_->CountOf(kind); }
uint64_t FaultEnv::BytesOf(CallKind kind) const { return state_->BytesOf(kind); }
void FaultEnv::SetHook(std::function<Status(const Call&)> hook) { state_->SetHook(std::move(hook)); }

void FaultEnv::RefuseLists(const std::string& path, int system_errno) {
  SetHook([path, system_errno](const Call& call) {
    const bool is_refused = call.kind == CallKind::kList && call.path == path;
    return is_refused ? Status::FromErrno(system_errno, "list", call.path) : Status::Ok();
  });
}

void FaultEnv::RefuseReads(const std::string& path, uint64_t end_bytes) {
  SetHook([path, end_bytes](const Call& call) {
    const bool is_refused = call.kind == CallKind::kRead && call.path == path && call.offset_bytes < end_bytes;
    return is_refused ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
  });
}

Result<std::unique_ptr<WritableFile>> FaultEnv::CreateFile(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kCreate, 0, path, 0, 0, 1}));
  QUARRY_TRY_ASSIGN(auto file, target_->CreateFile(path));
  return std::unique_ptr<WritableFile>(std::make_unique<FaultWritableFile>(state_, path, std::move(file)));
}

Result<std::unique_ptr<WritableFile>> FaultEnv::OpenForWrite(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kOpen, 0, path, 0, 0, 1}));
  QUARRY_TRY_ASSIGN(auto file, target_->OpenForWrite(path));
  return std::unique_ptr<WritableFile>(std::make_unique<FaultWritableFile>(state_, path, std::move(file)));
}

Result<std::unique_ptr<ReadableFile>> FaultEnv::OpenForRead(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kOpen, 0, path, 0, 0, 1}));
  QUARRY_TRY_ASSIGN(auto file, target_->OpenForRead(path));
  return std::unique_ptr<ReadableFile>(std::make_unique<FaultReadableFile>(state_, path, std::move(file)));
}

Status FaultEnv::ReplaceFile(const std::string& path, std::span<const uint8_t> contents) {
  QUARRY_TRY(state_->Before({CallKind::kReplace, 0, path, 0, contents.size(), 1}));
  return target_->ReplaceFile(path, contents);
}

Result<std::vector<uint8_t>> FaultEnv::ReadSmallFile(const std::string& path, uint64_t limit_bytes) {
  QUARRY_TRY(state_->Before({CallKind::kRead, 0, path, 0, 0, 1}));
  return target_->ReadSmallFile(path, limit_bytes);
}

Result<FileSpace> FaultEnv::GetFileSpace(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kList, 0, path, 0, 0, 1}));
  return target_->GetFileSpace(path);
}

Result<DirectoryIdentity> FaultEnv::IdentifyDirectory(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kList, 0, path, 0, 0, 1}));
  return target_->IdentifyDirectory(path);
}

Result<bool> FaultEnv::FileExists(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kList, 0, path, 0, 0, 1}));
  return target_->FileExists(path);
}

Status FaultEnv::CreateDirectory(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kCreateDirectory, 0, path, 0, 0, 1}));
  return target_->CreateDirectory(path);
}

Status FaultEnv::SyncDirectory(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kSyncDirectory, 0, path, 0, 0, 1}));
  return target_->SyncDirectory(path);
}

Result<std::vector<std::string>> FaultEnv::ListDirectory(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kList, 0, path, 0, 0, 1}));
  return target_->ListDirectory(path);
}

Status FaultEnv::Rename(const std::string& from, const std::string& to) {
  QUARRY_TRY(state_->Before({CallKind::kRename, 0, from, 0, 0, 1}));
  return target_->Rename(from, to);
}

Status FaultEnv::RemoveFile(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kRemove, 0, path, 0, 0, 1}));
  return target_->RemoveFile(path);
}

Status FaultEnv::RemoveDirectory(const std::string& path) {
  QUARRY_TRY(state_->Before({CallKind::kRemove, 0, path, 0, 0, 1}));
  return target_->RemoveDirectory(path);
}

uint64_t FaultEnv::NowMicros() { return target_->NowMicros(); }

Status FaultEnv::FillRandom(std::span<uint8_t> out) { return target_->FillRandom(out); }

}  // namespace quarry
