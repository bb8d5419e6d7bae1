// unique_fd: owns a file descriptor.
// Invariant: closed exactly once; whoever must know of a close error calls Close, the destructor cannot tell.
// Thread-safety: a value; externally synchronised.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace quarry {

class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) {
      (void)Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~unique_fd() { (void)Close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

  /// Closes when open. Returns 0 or the errno. Linux frees the descriptor even on EINTR: never closed twice.
  int Close() {
    const int fd = std::exchange(fd_, -1);
    if (fd < 0 || ::close(fd) == 0 || errno == EINTR) return 0;
    return errno;
  }

 private:
  int fd_ = -1;
};

}  // namespace quarry
