#include "cache/page_cache_rule.h"

#include <utility>

namespace quarry {

PageCacheRule::PageCacheRule(std::function<SystemMemory()> look)
    : look_(std::move(look)), read_lately_(kAroundMinBytes) {
  read_lately_.Resize(look_().usable_bytes / 2);
}

bool PageCacheRule::GoesAround(uint64_t hash, uint64_t size_bytes, uint64_t now_micros, bool* is_first) {
  if (size_bytes < kAroundMinBytes) return false;
  {
    const MutexLock lock(mutex_);
    if (read_lately_.Note(hash, size_bytes)) return false;
  }
  if (is_first != nullptr) *is_first = true;
  return !HasSpareMemory(now_micros);
}

bool PageCacheRule::HasSpareMemory(uint64_t now_micros) {
  uint64_t from = look_from_micros_.load(std::memory_order_relaxed);
  // One looks; the others go by the answer of before.
  if (now_micros >= from && look_from_micros_.compare_exchange_strong(from, now_micros + kLookMicros)) {
    const SystemMemory memory = look_();
    has_spare_memory_.store(memory.free_bytes > memory.usable_bytes / kSpareShare, std::memory_order_relaxed);
  }
  return has_spare_memory_.load(std::memory_order_relaxed);
}

}  // namespace quarry
