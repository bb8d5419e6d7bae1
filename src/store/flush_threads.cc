#include "store/flush_threads.h"

#include <system_error>
#include <utility>

namespace quarry {

bool FlushThreads::TryRun(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    if (max_ > 0) {
      if (tasks_.size() >= idle_) {
        if (threads_.size() >= max_) return false;
        try {
          threads_.emplace_back("quarry_flush", [this] { Run(); });
        } catch (const std::system_error&) {
          return false;  // the system has no thread to give
        }
        ++idle_;
      }
      tasks_.push_back(std::move(task));
      changed_.NotifyOne();
      return true;
    }
  }
  task();
  return true;
}

void FlushThreads::Run() {
  MutexLock lock(mutex_);
  while (true) {
    while (tasks_.empty() && !stopped_) changed_.Wait(mutex_);
    if (tasks_.empty()) return;  // what was taken is run before the end
    std::function<void()> task = std::move(tasks_.back());
    tasks_.pop_back();
    --idle_;
    lock.Unlock();
    task();
    task = nullptr;  // what it pinned may die now, outside the lock
    lock.Lock();
    ++idle_;
  }
}

void FlushThreads::Stop() {
  std::vector<Thread> threads;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
  }
  changed_.NotifyAll();
  for (Thread& thread : threads) thread.join();
}

}  // namespace quarry
