// ValueCacheTest: a cache without readers, and values whose bytes follow from their locators.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/value_cache.h"

namespace quarry {

inline constexpr uint64_t kMiB = 1ULL << 20;

inline Locator MakeLocator(uint64_t number, uint64_t size_bytes, uint64_t store = 1) {
  Locator locator;
  locator.store = {store};
  locator.segment = {static_cast<uint32_t>(1 + number % 7)};
  locator.offset_bytes = 4096 + number * 4096;
  locator.extent_size_bytes = size_bytes + 64;
  locator.value_size_bytes = size_bytes;
  locator.identity = 1 + number * 31;
  return locator;
}

inline uint8_t ByteOf(const Locator& locator, uint64_t at) {
  return static_cast<uint8_t>(locator.offset_bytes / 4096 * 7 + locator.store.value + at);
}

inline bool IsValueOf(const Locator& locator, std::span<const uint8_t> bytes) {
  if (bytes.size() != locator.value_size_bytes) return false;
  for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 61) {
    if (bytes[i] != ByteOf(locator, i)) return false;
  }
  return true;
}

inline std::vector<uint8_t> BytesOf(const Locator& locator) {
  std::vector<uint8_t> bytes(locator.value_size_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteOf(locator, i);
  return bytes;
}

class ValueCacheTest : public testing::Test {
 protected:
  void Limit(uint64_t bytes) { ASSERT_TRUE(cache_.Resize(bytes)); }

  /// What a reader does: looks, and takes in what is worth it. The value, if the cache holds it now.
  ValueBuffer Read(const Locator& locator, bool* was_hit = nullptr) {
    ValueBuffer found = cache_.Find(locator);
    if (was_hit != nullptr) *was_hit = !found.empty();
    if (!found.empty()) return found;
    return cache_.NoteMiss(locator) || cache_.HasRoomFor(locator.value_size_bytes) ? Take(locator) : ValueBuffer();
  }
  /// Until there is no room for such a value any more; nobody asks for what is taken in.
  void FillUp(uint64_t value_size_bytes) {
    for (uint64_t i = 100000; cache_.HasRoomFor(value_size_bytes); ++i) (void)Take(MakeLocator(i, value_size_bytes));
  }
  ValueBuffer Take(const Locator& locator) {
    ValueCache::Filling filling = cache_.Begin(locator, tally_);
    if (filling.empty()) return {};
    const std::span<uint8_t> bytes = filling.bytes();
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteOf(locator, i);
    return cache_.Publish(std::move(filling));
  }
  bool IsCached(const Locator& locator) {
    uint8_t byte = 0;
    return cache_.Copy(locator, 0, {&byte, 1});
  }

  CounterSet counters_;
  ValueCache::Tally tally_ = std::make_shared<std::atomic<uint64_t>>(0);
  ValueCache cache_{&counters_};
};

}  // namespace quarry
