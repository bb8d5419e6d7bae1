// Thread: a named std::thread. ThreadScratch: memory that each thread keeps for itself.
// In the simulation of threads both are simulated (scheduling.h).
// Thread-safety: a Thread is externally synchronised; scratch belongs to its thread.
#pragma once

#include <pthread.h>

#include <functional>
#include <thread>
#include <utility>

#include "base/scheduling.h"

namespace quarry {

#ifdef QUARRY_SIMULATED_THREADS
class Thread {
 public:
  Thread() = default;
  Thread(const char* name, std::function<void()> body)
      : thread_(Scheduler::current->Start(name, std::move(body))), is_joinable_(true) {}
  Thread(Thread&& other) noexcept : thread_(other.thread_), is_joinable_(std::exchange(other.is_joinable_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    thread_ = other.thread_;
    is_joinable_ = std::exchange(other.is_joinable_, false);
    return *this;
  }

  [[nodiscard]] bool joinable() const { return is_joinable_; }
  void join() {
    Scheduler::current->Join(thread_);
    is_joinable_ = false;
  }

 private:
  size_t thread_ = 0;
  bool is_joinable_ = false;
};

template <typename T>
T& ThreadScratch() {
  static const char kKey = 0;
  std::shared_ptr<void>& slot = Scheduler::current->Scratch(&kKey);
  if (slot == nullptr) slot = std::make_shared<T>();
  return *static_cast<T*>(slot.get());
}
#else
class Thread {
 public:
  Thread() = default;
  /// `name`: at most 15 characters, and constant. Throws std::system_error when the system has no thread to give.
  Thread(const char* name, std::function<void()> body)
      : thread_([name, run = std::move(body)] {
          (void)pthread_setname_np(pthread_self(), name);
          run();
        }) {}

  [[nodiscard]] bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

template <typename T>
T& ThreadScratch() {
  thread_local T scratch;
  return scratch;
}
#endif

}  // namespace quarry
