#include "io/page_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace quarry {
namespace {

uint64_t PageBytes() {
  static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return page_bytes;
}

struct Pages {
  uint64_t first;
  uint64_t count;
};

Pages PagesOf(uint64_t offset_bytes, uint64_t size_bytes) {
  const uint64_t first = offset_bytes / PageBytes();
  return {first, (offset_bytes + size_bytes - 1) / PageBytes() - first + 1};
}

}  // namespace

// The C library does not know it yet. (A preadv2 with RWF_NOWAIT is no such question: it starts to read what is not
// there.)
std::optional<bool> AskCachestat(int fd, uint64_t offset_bytes, uint64_t size_bytes) {
  constexpr long kCachestat = 451;  // on every architecture
  struct {
    uint64_t offset_bytes, size_bytes;
  } range = {offset_bytes, size_bytes};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;  // pages
  } found = {};
  if (::syscall(kCachestat, fd, &range, &found, 0) != 0) return std::nullopt;
  return found.cached >= PagesOf(offset_bytes, size_bytes).count;
}

std::optional<bool> AskMincore(int fd, uint64_t offset_bytes, uint64_t size_bytes) {
  const Pages pages = PagesOf(offset_bytes, size_bytes);
  const uint64_t mapped_bytes = pages.count * PageBytes();
  void* const mapping =
      ::mmap(nullptr, mapped_bytes, PROT_NONE, MAP_SHARED, fd, static_cast<off_t>(pages.first * PageBytes()));
  if (mapping == MAP_FAILED) return std::nullopt;
  std::optional<bool> answer = true;
  std::array<unsigned char, 256> present;
  for (uint64_t done = 0; done < pages.count && answer.value_or(false); done += present.size()) {
    const uint64_t count = std::min<uint64_t>(present.size(), pages.count - done);
    char* const begin = static_cast<char*>(mapping) + done * PageBytes();
    if (::mincore(begin, count * PageBytes(), present.data()) != 0) {
      answer = std::nullopt;
    } else {
      answer = std::all_of(present.begin(), present.begin() + static_cast<std::ptrdiff_t>(count),
                           [](unsigned char page) { return (page & 1U) != 0; });
    }
  }
  (void)::munmap(mapping, mapped_bytes);
  return answer;
}

std::optional<bool> IsInPageCache(int fd, uint64_t offset_bytes, uint64_t size_bytes) {
  // An older kernel does not know cachestat, and a container may forbid it.
  static std::atomic<bool> has_cachestat{true};
  if (has_cachestat.load(std::memory_order_relaxed)) {
    if (const std::optional<bool> answer = AskCachestat(fd, offset_bytes, size_bytes)) return answer;
    has_cachestat.store(false, std::memory_order_relaxed);
  }
  return AskMincore(fd, offset_bytes, size_bytes);
}

}  // namespace quarry
