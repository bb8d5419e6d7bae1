// What core files leave out: the values of a server that died belong to its users.
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "cache/direct_buffers.h"
#include "cache/value_cache.h"

namespace quarry {
namespace {

/// The kernel's flags of the mapping in which `address` lies, as in /proc/self/smaps.
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool is_its = false;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      is_its = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    } else if (is_its && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return {};
}

bool IsLeftOut(const void* address) {
  const std::string flags = FlagsOf(address);
  EXPECT_FALSE(flags.empty());
  return flags.find(" dd ") != std::string::npos;
}

TEST(CoreFileTest, OtherMemoryIsInThem) {
  const std::string text(100, 'x');
  EXPECT_FALSE(IsLeftOut(text.data()));
}

TEST(CoreFileTest, LargeValuesOfTheCacheAreLeftOut) {
  CounterSet counters;
  ValueCache cache(&counters);
  ASSERT_TRUE(cache.Resize(16ULL << 20));
  Locator locator;
  locator.value_size_bytes = 100'000;
  ValueCache::Filling filling = cache.Begin(locator, std::make_shared<std::atomic<uint64_t>>(0));
  ASSERT_FALSE(filling.empty());
  EXPECT_TRUE(IsLeftOut(filling.bytes().data()));
}

TEST(CoreFileTest, BuffersOfDirectReadsAreLeftOut) {
  DirectBuffers buffers(4);
  DirectBuffers::Slot slot = buffers.Take();
  EXPECT_TRUE(IsLeftOut(slot.bytes().data()));
}

}  // namespace
}  // namespace quarry
