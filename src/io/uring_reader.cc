#include "io/uring_reader.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace quarry {

namespace {

// Set once the kernel said that nobody here may have a ring, so that each thread need not ask again.
std::atomic<bool> uring_refused{false};

/// Rings of threads that ended.
struct IdleRings {
  Mutex mutex;
  std::vector<std::unique_ptr<UringReader>> rings QUARRY_GUARDED_BY(mutex);
};

// Never destroyed: threads may end after static destructors ran.
IdleRings& Idle() {
  static auto* const idle = new IdleRings();
  return *idle;
}

/// A thread's hold on its ring.
class Loan {
 public:
  Loan() {
    IdleRings& idle = Idle();
    {
      MutexLock lock(idle.mutex);
      if (!idle.rings.empty()) {
        ring_ = std::move(idle.rings.back());
        idle.rings.pop_back();
      }
    }
    if (ring_ == nullptr) ring_ = std::make_unique<UringReader>();
  }
  ~Loan() {
    if (!ring_->usable()) return;
    IdleRings& idle = Idle();
    MutexLock lock(idle.mutex);
    idle.rings.push_back(std::move(ring_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  [[nodiscard]] UringReader* ring() { return ring_.get(); }

 private:
  std::unique_ptr<UringReader> ring_;
};

}  // namespace

UringReader* UringReader::ForThisThread() {
  if (uring_refused.load(std::memory_order_relaxed)) return nullptr;
  thread_local Loan loan;
  return loan.ring()->usable() ? loan.ring() : nullptr;
}

UringReader::UringReader() {
  const int result = io_uring_queue_init(kEntries, &ring_, 0);
  usable_ = result == 0;
  if (result == -EPERM || result == -ENOSYS) uring_refused.store(true, std::memory_order_relaxed);
}

UringReader::~UringReader() {
  if (usable_) io_uring_queue_exit(&ring_);
}

void UringReader::Read(int fd, std::span<const ReadRequest> requests, std::span<int> results) {
  assert(usable_ && requests.size() <= kEntries && results.size() == requests.size());
  std::fill(results.begin(), results.end(), -EAGAIN);
  for (size_t i = 0; i < requests.size(); ++i) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    assert(entry != nullptr);  // every call leaves the ring empty
    // A kernel read moves less than 2 GiB; the rest of a longer one counts as a short read and is continued.
    const auto size = static_cast<unsigned>(std::min<size_t>(requests[i].out.size(), 1U << 30));
    io_uring_prep_read(entry, fd, requests[i].out.data(), size, requests[i].offset_bytes);
    io_uring_sqe_set_data64(entry, i);
  }
  size_t submitted = 0;
  while (submitted < requests.size()) {
    const int result = io_uring_submit_and_wait(&ring_, static_cast<unsigned>(requests.size() - submitted));
    if (result == -EINTR) continue;
    if (result <= 0) break;
    submitted += static_cast<size_t>(result);
  }
  Reap(results, submitted);
  if (submitted < requests.size()) {
    // Entries that the kernel would not take are still queued: this ring can't be used again.
    io_uring_queue_exit(&ring_);
    usable_ = false;
  }
}

void UringReader::Reap(std::span<int> results, size_t count) {
  while (count > 0) {
    io_uring_cqe* completion = nullptr;
    const int result = io_uring_wait_cqe(&ring_, &completion);
    if (result == -EINTR || result == -EAGAIN) continue;
    // Waiting can fail in no other way on a ring of our own; returning would leave the kernel with the caller's
    // buffers, so there is nothing to do but to try again.
    if (result < 0) continue;
    results[static_cast<size_t>(completion->user_data)] = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    --count;
  }
}

}  // namespace quarry
