// What memory the machine, and the control groups around this process, leave to it.
// Thread-safety: every function may be called at any time.
#pragma once

#include <cstdint>
#include <string>

namespace quarry {

struct SystemMemory {
  uint64_t usable_bytes = 0;  ///< at most: the machine's, or the least limit of a control group; 0: not known
  uint64_t free_bytes = 0;    ///< of these, what nothing lies in, the page cache neither
};

/// Reads /proc and /sys/fs/cgroup below `root` (both hierarchies; tests have a tree of their own). What is missing or
/// makes no sense there is no limit.
[[nodiscard]] SystemMemory ReadSystemMemory(const std::string& root = "");

}  // namespace quarry
