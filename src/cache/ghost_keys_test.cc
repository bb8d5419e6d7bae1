// GhostKeys: for how long a key is remembered.
#include "cache/ghost_keys.h"

#include <gtest/gtest.h>

#include <random>

namespace quarry {
namespace {

constexpr uint64_t kMiB = 1ULL << 20;

uint64_t HashOfNumber(uint64_t number) {
  std::mt19937_64 random(number);
  return random();
}

TEST(GhostKeysTest, RemembersForAWindowOfBytes) {
  GhostKeys ghosts;
  EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(1), 100)) << "no memory at all";
  EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(1), 100));
  ghosts.Resize(16 * kMiB);
  for (uint64_t i = 0; i < 200; ++i) EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(i), 64 << 10));
  for (uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(ghosts.SeenBefore(HashOfNumber(i), 64 << 10)) << i;
  EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(0), 64 << 10)) << "said once, forgotten";
  for (uint64_t i = 1000; i < 1300; ++i) EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(i), 64 << 10));
  EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(0), 64 << 10)) << "more than the window was noted since";
}

TEST(GhostKeysTest, SmallValuesPushEachOtherOut) {
  GhostKeys ghosts;
  ghosts.Resize(kMiB);  // 264 slots
  for (uint64_t i = 0; i < 2000; ++i) EXPECT_FALSE(ghosts.SeenBefore(HashOfNumber(i), 100));
  uint64_t known = 0;
  for (uint64_t i = 1900; i < 2000; ++i) known += ghosts.SeenBefore(HashOfNumber(i), 100) ? 1 : 0;
  EXPECT_GT(known, 60U);
}

}  // namespace
}  // namespace quarry
