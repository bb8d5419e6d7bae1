// MapCache: the maps of rewritten segments that reads used last.
//
// Invariant: holds at most its budget, but for the one map that was put in last. A map that is dropped is read again.
// Thread-safety: internally synchronised.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "format/segment_map.h"

namespace quarry {

class MapCache {
 public:
  explicit MapCache(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// `segment` is an identity, nothing is done with what it points to. Null: not there.
  [[nodiscard]] std::shared_ptr<const SegmentMap> Find(const void* segment) QUARRY_EXCLUDES(mutex_);
  void Insert(const void* segment, std::shared_ptr<const SegmentMap> map) QUARRY_EXCLUDES(mutex_);
  void Erase(const void* segment) QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] uint64_t kept_bytes() const QUARRY_EXCLUDES(mutex_);

 private:
  struct Kept {
    const void* segment;
    std::shared_ptr<const SegmentMap> map;
  };
  void Remove(std::list<Kept>::iterator kept) QUARRY_REQUIRES(mutex_);

  const uint64_t budget_bytes_;
  mutable Mutex mutex_;
  std::list<Kept> by_use_ QUARRY_GUARDED_BY(mutex_);  ///< the last used in front
  std::unordered_map<const void*, std::list<Kept>::iterator> by_segment_ QUARRY_GUARDED_BY(mutex_);
  uint64_t kept_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
};

}  // namespace quarry
