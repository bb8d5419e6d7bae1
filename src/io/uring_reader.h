// UringReader: a small io_uring for batched reads, on loan to one thread at a time.
//
// Invariants:
//  - When a call returns, the kernel holds no pointer into the caller's buffers any more, whatever went wrong.
//  - Where io_uring is not permitted (a container's policy, an old kernel, a limit) the answer is 'not done' and the
//    caller reads with pread: slower, never wrong.
//  - A thread keeps its ring until it ends; then the next thread in need gets it, since making one costs far more than
//  a
//    read, and servers start and end threads all the time.
// Thread-safety: ForThisThread gives each thread its own; an instance is externally synchronised.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <span>

#include "io/env.h"

namespace quarry {

class UringReader {
 public:
  /// Reads asked for in one submission; longer batches take several.
  static constexpr unsigned kEntries = 64;

  /// This thread's ring, taken or made at first use; nullptr where there is none to be had.
  static UringReader* ForThisThread();

  UringReader();
  ~UringReader();
  UringReader(const UringReader&) = delete;
  UringReader& operator=(const UringReader&) = delete;

  /// Submits all of `requests` (at most kEntries) on `fd` and waits for them. results[i] is the byte count of request
  /// i, or minus an errno; -EAGAIN where it was not done.
  void Read(int fd, std::span<const ReadRequest> requests, std::span<int> results);

  [[nodiscard]] bool usable() const { return usable_; }

 private:
  void Reap(std::span<int> results, size_t count);

  io_uring ring_{};
  bool usable_ = false;
};

}  // namespace quarry
