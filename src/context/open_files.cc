#include "context/open_files.h"

#include <string>

namespace quarry {
namespace {

constexpr std::chrono::milliseconds kStep{10};
/// Each may cost a flush.
constexpr size_t kHoldersAskedAtOnce = 8;

}  // namespace

void OpenFiles::Lease::GiveBack() {
  if (files_ == nullptr) return;
  {
    const MutexLock lock(files_->mutex_);
    files_->used_ -= descriptors_;
  }
  std::exchange(files_, nullptr)->given_back_.NotifyAll();
}

Result<OpenFiles::Lease> OpenFiles::TakeWithin(std::chrono::milliseconds wait_max, uint32_t descriptors,
                                               const Canceller* canceller) {
  std::chrono::microseconds waited{0};
  MutexLock lock(mutex_);
  while (used_ + descriptors > limit_) {
    Victim victim;
    if (Evict(&victim)) {
      ++closed_for_room_;
      lock.Unlock();
      { const Victim closed = std::move(victim); }
      lock.Lock();
      continue;
    }
    if (waited >= wait_max) {
      return Status::Unavailable("all " + std::to_string(limit_) +
                                 " descriptors that quarry_open_files allows for segments have been in use for " +
                                 std::to_string(wait_max.count()) + " ms");
    }
    if (canceller != nullptr && canceller->IsCancelled()) return Status::Cancelled("a descriptor");
    if (std::vector<std::shared_ptr<FileHolder>> holders = NextHolders(); !holders.empty()) {
      lock.Unlock();
      for (const std::shared_ptr<FileHolder>& holder : holders) holder->LetGoOfFiles();
      holders.clear();  // perhaps the last to know of one, whose files go with it
      lock.Lock();
      if (used_ + descriptors <= limit_) break;
    }
    // Who was woken may have waited for much less than a step.
    const auto began = std::chrono::steady_clock::now();
    const bool was_woken = given_back_.WaitFor(mutex_, kStep);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
    waited += was_woken ? took : kStep;
  }
  used_ += descriptors;
  return Lease(this, descriptors);
}

uint32_t OpenFiles::open() const {
  const MutexLock lock(mutex_);
  return used_;
}

uint64_t OpenFiles::closed_for_room() const {
  const MutexLock lock(mutex_);
  return closed_for_room_;
}

bool OpenFiles::Evict(Victim* victim) {
  // In the first round all may have been used lately; in the second only who is pinned stays.
  for (size_t left = 2 * ring_.size(); left > 0; --left) {
    Slot* const slot = ring_.front();
    ring_.splice(ring_.end(), ring_, ring_.begin());
    if (slot->was_used_.exchange(false, std::memory_order_relaxed)) continue;
    uint32_t unpinned = 0;
    if (!slot->pins_.compare_exchange_strong(unpinned, Slot::kClosed, std::memory_order_acq_rel)) continue;
    victim->file = slot->Detach();
    victim->lease = std::move(slot->lease_);
    ring_.erase(slot->place_);
    return true;
  }
  return false;
}

std::vector<std::shared_ptr<FileHolder>> OpenFiles::NextHolders() {
  std::vector<std::shared_ptr<FileHolder>> holders;
  holders.reserve(kHoldersAskedAtOnce);  // first: none of them may go under the lock
  for (size_t left = ring_.size(); left > 0 && holders.size() < kHoldersAskedAtOnce; --left) {
    if (auto holder = ring_.front()->holder_.lock(); holder != nullptr) holders.push_back(std::move(holder));
    ring_.splice(ring_.end(), ring_, ring_.begin());
  }
  return holders;
}

void OpenFiles::Slot::Enter(Lease lease, const std::function<void()>& put, std::weak_ptr<FileHolder> holder) {
  const MutexLock lock(files_->mutex_);
  place_ = files_->ring_.insert(files_->ring_.end(), this);  // first: without memory the slot is as before
  put();
  lease_ = std::move(lease);
  holder_ = std::move(holder);
  pins_.store(1, std::memory_order_release);
}

void OpenFiles::Slot::Leave() {
  Victim file;
  const MutexLock lock(files_->mutex_);
  if (pins_.load(std::memory_order_relaxed) == kClosed) return;
  file.file = Detach();
  file.lease = std::move(lease_);
  files_->ring_.erase(place_);
}

}  // namespace quarry
