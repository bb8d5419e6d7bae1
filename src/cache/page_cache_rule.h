// PageCacheRule: which reads of segments go through the operating system's page cache, and stay in it.
//
// The first read of kAroundMinBytes or more goes around it while less than a kSpareShare-th of the memory is free; all
// else goes through it. A read is the first one when the same one was not noted while others that add up to half of the
// memory were.
//
// Why: through it a read of a large value takes up to two and a half times as long, and puts out what was there. That
// is worth it where memory lies idle, and where it is found again. Asking the kernel what it holds is no way:
// RWF_NOWAIT has the device read what is not there (since Linux 5.9), cachestat is in Linux 6.5 and forbidden in many
// containers, mincore needs a mapping.
//
// Invariants: memory is fixed; an answer never changes what is read. Thread-safety: internally synchronised.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/mutex.h"
#include "cache/ghost_keys.h"
#include "io/system_memory.h"

namespace quarry {

class PageCacheRule {
 public:
  static constexpr uint64_t kAroundMinBytes = 32ULL << 10;
  static constexpr uint64_t kSpareShare = 8;
  /// The memory is looked at so often at most.
  static constexpr uint64_t kLookMicros = 100'000;

  /// Takes the size of the memory now; later only what is free.
  explicit PageCacheRule(std::function<SystemMemory()> look);

  /// For a read of `size_bytes` whose key has this hash. Around: true. `is_first`, if not null, is set to true when the
  /// read is one of kAroundMinBytes or more, and the first.
  [[nodiscard]] bool GoesAround(uint64_t hash, uint64_t size_bytes, uint64_t now_micros, bool* is_first = nullptr)
      QUARRY_EXCLUDES(mutex_);

 private:
  [[nodiscard]] bool HasSpareMemory(uint64_t now_micros);

  const std::function<SystemMemory()> look_;
  std::atomic<uint64_t> look_from_micros_{0};
  std::atomic<bool> has_spare_memory_{false};
  Mutex mutex_;  ///< a leaf
  GhostKeys read_lately_ QUARRY_GUARDED_BY(mutex_);
};

}  // namespace quarry
