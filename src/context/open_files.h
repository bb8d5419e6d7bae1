// OpenFiles: how many segment files may be open at once. FileSlot: a file that is opened at need, and closed when
// nobody uses it and its descriptors are wanted elsewhere.
//
// Invariants:
//  - Descriptors are counted before the file is opened and until it is closed: there are never more than the limit.
//  - A file stays open while it is pinned. Of the others those go first that were not used lately (CLOCK: every slot
//    that was used since the hand passed it gets another turn).
//  - Who finds all of them pinned asks those that can let go to do so, and waits, kWaitMax at most.
// Thread-safety: internally synchronised. No lock of theirs is held while a file is opened, closed or let go of.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/published_atomic.h"
#include "quarry/canceller.h"
#include "quarry/status.h"

namespace quarry {

/// Something that keeps a file pinned for a reason that it can do away with.
class FileHolder {
 public:
  virtual ~FileHolder() = default;
  /// Unpins the file, now or soon. Must neither open another one nor wait for a device.
  virtual void LetGoOfFiles() = 0;
};

class OpenFiles {
 public:
  static constexpr std::chrono::seconds kWaitMax{10};
  /// What a few calls at once need.
  static constexpr uint32_t kLimitMin = 16;

  explicit OpenFiles(uint32_t limit, std::chrono::milliseconds wait_max = kWaitMax)
      : limit_(limit < kLimitMin ? kLimitMin : limit), wait_max_(wait_max) {}

  /// The right to so many descriptors. Give the file up first.
  class Lease {
   public:
    Lease() = default;
    Lease(OpenFiles* files, uint32_t descriptors) : files_(files), descriptors_(descriptors) {}
    Lease(Lease&& other) noexcept
        : files_(std::exchange(other.files_, nullptr)), descriptors_(std::exchange(other.descriptors_, 0)) {}
    Lease& operator=(Lease&& other) noexcept {
      GiveBack();
      files_ = std::exchange(other.files_, nullptr);
      descriptors_ = std::exchange(other.descriptors_, 0);
      return *this;
    }
    ~Lease() { GiveBack(); }

   private:
    void GiveBack();

    OpenFiles* files_ = nullptr;
    uint32_t descriptors_ = 0;
  };

  /// Errors: kUnavailable when all are in use for kWaitMax, kCancelled.
  [[nodiscard]] Result<Lease> Take(uint32_t descriptors = 1, const Canceller* canceller = nullptr)
      QUARRY_EXCLUDES(mutex_) {
    return TakeWithin(wait_max_, descriptors, canceller);
  }
  /// The same for who can do without: waits for nobody.
  [[nodiscard]] Result<Lease> TakeNow(uint32_t descriptors = 1) QUARRY_EXCLUDES(mutex_) {
    return TakeWithin(std::chrono::milliseconds(0), descriptors, nullptr);
  }

  [[nodiscard]] uint32_t limit() const { return limit_; }
  [[nodiscard]] uint32_t open() const QUARRY_EXCLUDES(mutex_);
  /// Files that were closed to make room.
  [[nodiscard]] uint64_t closed_for_room() const QUARRY_EXCLUDES(mutex_);

  /// A file of either kind, and what closes it.
  using AnyFile = std::unique_ptr<void, void (*)(void*)>;

  /// What FileSlot has that is the same for all files.
  class Slot {
   public:
    explicit Slot(OpenFiles* files) : files_(files) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    /// The file is there, and stays until Unpin. False: it is closed.
    [[nodiscard]] bool TryPin() const {
      uint32_t pins = pins_.load(std::memory_order_acquire);
      do {
        if (pins == kClosed) return false;
      } while (!pins_.compare_exchange_strong(pins, pins + 1, std::memory_order_acquire));
      if (!was_used_.load(std::memory_order_relaxed)) was_used_.store(true, std::memory_order_relaxed);
      return true;
    }
    void Unpin() const { pins_.fetch_sub(1, std::memory_order_release); }

   protected:
    ~Slot() = default;
    /// The file, to be closed by the caller. Takes no memory: it is called by destructors.
    [[nodiscard]] virtual AnyFile Detach() = 0;
    /// `put` stores the file; it is pinned once when this returns.
    void Enter(Lease lease, const std::function<void()>& put, std::weak_ptr<FileHolder> holder);
    /// Nobody uses it any more.
    void Leave();

    OpenFiles* const files_;
    Mutex open_mutex_;  ///< one opens it at a time

   private:
    friend class OpenFiles;
    static constexpr uint32_t kClosed = UINT32_MAX;

    mutable PublishedAtomic<uint32_t> pins_{kClosed};
    mutable std::atomic<bool> was_used_{false};
    // Guarded by files_->mutex_ (the compiler cannot check that across objects).
    Lease lease_;
    std::list<Slot*>::iterator place_;
    std::weak_ptr<FileHolder> holder_;
  };

 private:
  /// Closed outside of the mutex: the file first, then its lease.
  struct Victim {
    Lease lease;
    AnyFile file{nullptr, nullptr};
  };
  [[nodiscard]] Result<Lease> TakeWithin(std::chrono::milliseconds wait_max, uint32_t descriptors,
                                         const Canceller* canceller) QUARRY_EXCLUDES(mutex_);
  /// False: all that are open are pinned.
  [[nodiscard]] bool Evict(Victim* victim) QUARRY_REQUIRES(mutex_);
  void Remove(Slot* slot) QUARRY_REQUIRES(mutex_);
  /// A few of those whose holders can let go, the next ones at each call.
  [[nodiscard]] std::vector<std::shared_ptr<FileHolder>> NextHolders() QUARRY_REQUIRES(mutex_);

  const uint32_t limit_;
  const std::chrono::milliseconds wait_max_;
  mutable Mutex mutex_;
  CondVar given_back_;
  uint32_t used_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t closed_for_room_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::list<Slot*> ring_ QUARRY_GUARDED_BY(mutex_);  ///< open ones; the hand stands before the first
};

/// A file that is open for its owner alone, for as long as that has it.
template <typename File>
class LeasedFile {
 public:
  LeasedFile() = default;
  LeasedFile(OpenFiles::Lease lease, std::unique_ptr<File> file) : lease_(std::move(lease)), file_(std::move(file)) {}
  LeasedFile(LeasedFile&& other) noexcept = default;
  LeasedFile& operator=(LeasedFile&& other) noexcept {
    Release();
    lease_ = std::move(other.lease_);
    file_ = std::move(other.file_);
    return *this;
  }
  ~LeasedFile() = default;
  void Release() {
    file_.reset();
    lease_ = OpenFiles::Lease();
  }
  [[nodiscard]] bool empty() const { return file_ == nullptr; }
  [[nodiscard]] File* get() const { return file_.get(); }
  File* operator->() const { return get(); }

 private:
  OpenFiles::Lease lease_;  ///< given back behind the file
  std::unique_ptr<File> file_;
};

template <typename File>
class FileSlot final : public OpenFiles::Slot {
 public:
  /// `descriptors`: as many as an open File may have.
  FileSlot(OpenFiles* files, uint32_t descriptors) : Slot(files), descriptors_(descriptors) {}
  ~FileSlot() { Leave(); }

  /// Keeps the file open. To be given up before the slot.
  class Pin {
   public:
    Pin() = default;
    explicit Pin(const FileSlot* slot) : slot_(slot) {}
    Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      Release();
      slot_ = std::exchange(other.slot_, nullptr);
      return *this;
    }
    ~Pin() { Release(); }
    void Release() {
      if (slot_ != nullptr) std::exchange(slot_, nullptr)->Unpin();
    }
    [[nodiscard]] bool empty() const { return slot_ == nullptr; }
    [[nodiscard]] File* get() const { return slot_->file_.get(); }
    File* operator->() const { return get(); }

   private:
    const FileSlot* slot_ = nullptr;
  };

  /// For whoever knows that somebody has it pinned meanwhile.
  [[nodiscard]] File* file_if_pinned() const { return file_.get(); }
  /// Empty: the file is closed.
  [[nodiscard]] Pin PinIfOpen() const { return TryPin() ? Pin(this) : Pin(); }

  /// Opens the file with `open` when it is closed. Errors: those of OpenFiles::Take and of `open`.
  template <typename Open>
  [[nodiscard]] Result<Pin> PinOrOpen(const Open& open, const Canceller* canceller = nullptr,
                                      std::weak_ptr<FileHolder> holder = {}) QUARRY_EXCLUDES(open_mutex_) {
    if (TryPin()) return Pin(this);
    // Before the mutex, behind which others would wait once more.
    QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, files_->Take(descriptors_, canceller));
    const MutexLock lock(open_mutex_);
    if (TryPin()) return Pin(this);
    QUARRY_TRY_ASSIGN(std::unique_ptr<File> file, open());
    return Put(std::move(lease), std::move(file), std::move(holder));
  }

  /// A file that was opened under `lease`.
  [[nodiscard]] Pin Put(OpenFiles::Lease lease, std::unique_ptr<File> file, std::weak_ptr<FileHolder> holder) {
    Enter(
        std::move(lease), [&] { file_ = std::move(file); }, std::move(holder));
    return Pin(this);
  }

 private:
  [[nodiscard]] OpenFiles::AnyFile Detach() override {
    return {file_.release(), [](void* file) { delete static_cast<File*>(file); }};
  }

  const uint32_t descriptors_;
  std::unique_ptr<File> file_;  ///< changes under the mutex of files_, while nobody has it pinned
};

}  // namespace quarry
