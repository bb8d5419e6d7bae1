#include "context/task_threads.h"

#include <system_error>
#include <utility>

namespace quarry {

bool TaskThreads::Take(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (stopped_ || pauses_ > 0) return false;
    if (threads_max_ > 0) {
      if (!HasRoom()) return false;
      tasks_.push_back(std::move(task));
    }
  }
  if (threads_max_ > 0) {
    work_.NotifyOne();
  } else {
    RunTask(task);
  }
  return true;
}

void TaskThreads::RunTask(const std::function<void()>& task) {
  (void)OrOutOfMemory([&task] { task(); });
}

bool TaskThreads::HasRoom() {
  if (tasks_.size() < threads_.size() - running_) return true;
  if (threads_.size() < threads_max_) {
    try {
      threads_.emplace_back(name_, [this] { Run(); });
      return true;
    } catch (const std::system_error&) {
      // The system has no thread to give. Those that are there come round.
    }
  }
  return !threads_.empty() && tasks_.size() < threads_.size() - running_ + queue_max_;
}

void TaskThreads::Drain() {
  const MutexLock lock(mutex_);
  while (running_ > 0 || (!tasks_.empty() && !stopped_ && pauses_ == 0)) ended_.Wait(mutex_);
}

void TaskThreads::Pause() {
  const MutexLock lock(mutex_);
  ++pauses_;
  while (running_ > 0) ended_.Wait(mutex_);
}

void TaskThreads::Resume() {
  {
    const MutexLock lock(mutex_);
    if (--pauses_ > 0) return;
  }
  work_.NotifyAll();
}

void TaskThreads::Stop() {
  std::vector<Thread> threads;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
  }
  work_.NotifyAll();
  for (Thread& thread : threads) thread.join();
  ended_.NotifyAll();
}

void TaskThreads::Run() {
  if (hooks_.begin) hooks_.begin();
  RunTasks();
  if (hooks_.end) hooks_.end();
}

void TaskThreads::RunTasks() {
  MutexLock lock(mutex_);
  while (true) {
    if (stopped_ && (tasks_.empty() || pauses_ > 0)) return;
    if (tasks_.empty() || pauses_ > 0) {
      work_.Wait(mutex_);
      continue;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.Unlock();
    RunTask(task);
    task = nullptr;  // what it pinned may die now, outside the lock
    lock.Lock();
    --running_;
    ended_.NotifyAll();
  }
}

}  // namespace quarry
