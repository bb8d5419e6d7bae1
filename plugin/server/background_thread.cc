#include "server/background_thread.h"

#include <pthread.h>

#include <new>
#include <system_error>

#include "server/error_log.h"
#include "server/mariadb_compat.h"

namespace quarry {

namespace {
constexpr std::chrono::hours kSayAgain{1};
}  // namespace

void BackgroundThread::Start(std::function<void()> open, std::function<void()> body) {
  std::unique_lock lock(mutex_);
  if (thread_.joinable()) return;
  opened_ = stopping_ = woken_ = false;
  try {
    thread_ = std::thread([this, open = std::move(open), body = std::move(body)] { Run(open, body); });
  } catch (const std::system_error& error) {
    LogError("the thread %s can't be started: %s", name_, error.what());
    return;
  } catch (const std::bad_alloc&) {
    LogError("the thread %s can't be started: out of memory", name_);
    return;
  }
  changed_.wait(lock, [this] { return opened_; });
}

void BackgroundThread::Run(const std::function<void()>& open, const std::function<void()>& body) {
  pthread_setname_np(pthread_self(), name_);
  const bool usable = my_thread_init() == 0;
  if (usable) {
    (void)TryPass(open);
  } else {
    LogError("the thread %s can't be made known to the server, its work is not done", name_);
  }
  {
    const std::lock_guard lock(mutex_);
    opened_ = true;
  }
  changed_.notify_all();
  if (!usable) return;
  body();
  my_thread_end();
}

void BackgroundThread::NoteOutOfMemory() {
  const auto now = std::chrono::steady_clock::now();
  if (said_at_ && now < *said_at_ + kSayAgain) return;
  said_at_ = now;
  LogWarning("the thread %s ran out of memory: what it was doing ends there, and is tried again later", name_);
}

void BackgroundThread::Stop() {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ended.swap(thread_);
  }
  changed_.notify_all();
  if (ended.joinable()) ended.join();
}

bool BackgroundThread::Wait(std::chrono::microseconds longest) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest, [this] { return stopping_ || woken_; });
  woken_ = false;
  return !stopping_;
}

void BackgroundThread::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

bool BackgroundThread::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace quarry
