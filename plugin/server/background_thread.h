// BackgroundThread: a thread of the plugin's own that the server knows, and that ends as soon as it is told to.
//
// Thread-safety: internally synchronised. Wait is called by the thread itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "quarry/memory_guard.h"

namespace quarry {

class BackgroundThread {
 public:
  /// After a pass that found no memory, so that others may come to have some.
  static constexpr std::chrono::seconds kRest{10};

  /// `name`: at most 15 characters; ps shows it.
  explicit BackgroundThread(const char* name) : name_(name) {}
  ~BackgroundThread() { Stop(); }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Runs `open` and then `body` in a new thread, and returns when `open` has returned. Started twice it goes on as it
  /// is. A thread that can't be made is an error in the log.
  void Start(std::function<void()> open, std::function<void()> body);
  /// Waits for its end. The owner may start it again.
  void Stop();

  /// False: the thread is to end. Else after `longest`, or earlier for a Wake since the last Wait.
  [[nodiscard]] bool Wait(std::chrono::microseconds longest);
  void Wake();
  [[nodiscard]] bool stopping();

  // By the thread itself.
  /// Runs `pass`, a piece of its work. False: there was no memory, and it ended there.
  template <typename Pass>
  [[nodiscard]] bool TryPass(const Pass& pass) {
    const Status status = OrOutOfMemory([&pass] { pass(); });
    if (!status.ok()) NoteOutOfMemory();
    return status.ok();
  }
  /// A pass found no memory, which the error log says once an hour at most.
  void NoteOutOfMemory();

 private:
  void Run(const std::function<void()>& open, const std::function<void()>& body);

  const char* const name_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool opened_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;

  std::optional<std::chrono::steady_clock::time_point> said_at_;  // of NoteOutOfMemory: the thread's own
};

}  // namespace quarry
