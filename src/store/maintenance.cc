#include "store/maintenance.h"

#include <utility>

namespace quarry {

bool Maintenance::Submit(std::function<void()> task) {
  bool queued = true;
  {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    queued = with_thread_ || pauses_ > 0;
    if (queued) tasks_.push_back(std::move(task));
    if (with_thread_ && !thread_.joinable()) thread_ = Thread("quarry_store", [this] { Run(); });
  }
  changed_.NotifyAll();
  if (!queued) task();
  return true;
}

void Maintenance::Drain() {
  MutexLock lock(mutex_);
  while (running_ || (!tasks_.empty() && !stopped_ && pauses_ == 0)) changed_.Wait(mutex_);
}

void Maintenance::Pause() {
  MutexLock lock(mutex_);
  ++pauses_;
  while (running_) changed_.Wait(mutex_);
}

void Maintenance::Resume() {
  std::deque<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    if (--pauses_ > 0) return;
    if (!with_thread_) waiting.swap(tasks_);
  }
  changed_.NotifyAll();
  for (const std::function<void()>& task : waiting) task();
}

void Maintenance::Stop() {
  Thread thread;
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    dropped.swap(tasks_);
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

void Maintenance::Run() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    if (tasks_.empty() || pauses_ > 0) {
      changed_.Wait(mutex_);
      continue;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    lock.Unlock();
    task();
    task = nullptr;  // what it pinned may die now, outside the lock
    lock.Lock();
    running_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace quarry
