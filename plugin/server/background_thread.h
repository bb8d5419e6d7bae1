// BackgroundThread: a thread of the plugin's own that the server knows, and that ends as soon as it is told to.
//
// Thread-safety: internally synchronised. Wait is called by the thread itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace quarry {

class BackgroundThread {
 public:
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

 private:
  void Run(const std::function<void()>& open, const std::function<void()>& body);

  const char* const name_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool opened_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace quarry
