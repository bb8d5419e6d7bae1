// HashOf: where an extent stands in tables of what was read. Not on disk, not for secrets. Thread-safety: pure.
#pragma once

#include <cstdint>

#include "quarry/locator.h"

namespace quarry {

/// Of the place alone: two locators of one place have the same.
[[nodiscard]] inline uint64_t HashOf(const Locator& locator) {
  uint64_t hash = locator.store.value * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ (hash >> 32U) ^ locator.segment.value) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33U) ^ locator.offset_bytes) * 0xc4ceb9fe1a85ec53ULL;
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 31U);
}

}  // namespace quarry
