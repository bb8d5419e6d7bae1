#include "store/maintenance.h"

#include <utility>

namespace quarry {

bool Maintenance::Submit(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopped_ || pauses_ > 0) return false;
    if (with_thread_) tasks_.push_back(std::move(task));
    if (with_thread_ && !thread_.joinable()) thread_ = Thread("quarry_store", [this] { Run(); });
  }
  if (with_thread_) {
    changed_.NotifyAll();
  } else {
    task();
  }
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
  {
    MutexLock lock(mutex_);
    if (--pauses_ > 0) return;
  }
  changed_.NotifyAll();
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
