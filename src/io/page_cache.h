// The question whether the kernel's page cache holds a range of a file, which reads nothing and asks no device.
// Thread-safety: every function may be called at any time.
#pragma once

#include <cstdint>
#include <optional>

namespace quarry {

/// Whether all of the range is in the page cache now. Nothing where the kernel does not tell. `size_bytes` is at
/// least 1.
[[nodiscard]] std::optional<bool> IsInPageCache(int fd, uint64_t offset_bytes, uint64_t size_bytes);

// The two ways to ask, for IsInPageCache, tests and benchmarks.

/// cachestat(2), of Linux 6.5: one call.
[[nodiscard]] std::optional<bool> AskCachestat(int fd, uint64_t offset_bytes, uint64_t size_bytes);
/// mincore(2) on a mapping that nobody touches (a mapped file whose device fails would end the process). To whom does
/// not own the file and may not write it the kernel says that all of it is there.
[[nodiscard]] std::optional<bool> AskMincore(int fd, uint64_t offset_bytes, uint64_t size_bytes);

}  // namespace quarry
