#include "cache/map_cache.h"

#include <utility>

namespace quarry {

std::shared_ptr<const SegmentMap> MapCache::Find(const void* segment) {
  MutexLock lock(mutex_);
  const auto found = by_segment_.find(segment);
  if (found == by_segment_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return found->second->map;
}

void MapCache::Insert(const void* segment, std::shared_ptr<const SegmentMap> map) {
  MutexLock lock(mutex_);
  if (const auto found = by_segment_.find(segment); found != by_segment_.end()) Remove(found->second);
  kept_bytes_ += map->memory_bytes();
  by_use_.push_front({segment, std::move(map)});
  by_segment_[segment] = by_use_.begin();
  while (kept_bytes_ > budget_bytes_ && by_use_.size() > 1) Remove(std::prev(by_use_.end()));
}

void MapCache::Erase(const void* segment) {
  MutexLock lock(mutex_);
  if (const auto found = by_segment_.find(segment); found != by_segment_.end()) Remove(found->second);
}

void MapCache::Remove(std::list<Kept>::iterator kept) {
  kept_bytes_ -= kept->map->memory_bytes();
  by_segment_.erase(kept->segment);
  by_use_.erase(kept);
}

uint64_t MapCache::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace quarry
