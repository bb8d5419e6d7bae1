// OrOutOfMemory: where std::bad_alloc ends: at the boundary of a thread, a pass or a statement, and around a step that
// has to be undone when it fails.
//
// The standard library throws when there is no memory. Nothing may be thrown out of a thread or into the server. What
// lies between gives back by its destructors what it took. Where that does not do, because a note of something durable
// is half made, a function is noexcept and the process ends: the next start reads what is on disk
// (docs/internals/concurrency.md, 'When memory runs out').
// Invariant: neither function fails for want of memory. Thread-safety: internally synchronised.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "quarry/status.h"

namespace quarry {

/// Since the process started, of all threads.
inline std::atomic<uint64_t> times_out_of_memory{0};

/// What `action` returns, a Status or a Result, or ok when it returns nothing; kOutOfMemory when it finds no memory.
template <typename Action, typename Answer = decltype(std::declval<const Action&>()())>
[[nodiscard]] std::conditional_t<std::is_void_v<Answer>, Status, Answer> OrOutOfMemory(const Action& action) {
  try {
    if constexpr (std::is_void_v<Answer>) {
      action();
      return Status::Ok();
    } else {
      return action();
    }
  } catch (const std::bad_alloc&) {
    times_out_of_memory.fetch_add(1, std::memory_order_relaxed);
    return Status::OutOfMemory();
  }
}

/// What to answer when there is none for a value.
[[nodiscard]] inline Status OutOfMemoryFor(uint64_t value_size_bytes) {
  times_out_of_memory.fetch_add(1, std::memory_order_relaxed);
  return OrOutOfMemory(
      [&] { return Status::OutOfMemory("a value of " + std::to_string(value_size_bytes) + " bytes"); });
}

}  // namespace quarry
