// DirectBuffers: slots belong to one holder, are used again, and never run out.
#include "cache/direct_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace quarry {
namespace {

constexpr size_t kHugePageBytes = 2U << 20;

TEST(DirectBuffersTest, ALoneReaderUsesOneSlotAgainAndAgain) {
  DirectBuffers buffers(8);
  EXPECT_EQ(buffers.held_bytes(), 0U);
  std::set<uint8_t*> places;
  for (int i = 0; i < 20; ++i) {
    DirectBuffers::Slot slot = buffers.Take();
    ASSERT_EQ(slot.bytes().size(), DirectBuffers::kSlotBytes);
    std::memset(slot.bytes().data(), i, slot.bytes().size());
    places.insert(slot.bytes().data());
  }
  EXPECT_EQ(places.size(), 1U);
  EXPECT_EQ(buffers.held_bytes(), kHugePageBytes);
}

TEST(DirectBuffersTest, EveryHolderHasMemoryOfItsOwnBeyondTheArenaToo) {
  DirectBuffers buffers(6);
  for (int round = 0; round < 2; ++round) {
    std::vector<DirectBuffers::Slot> slots;
    for (uint8_t i = 0; i < 10; ++i) {
      slots.push_back(buffers.Take());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(slots.back().bytes().data()) % 4096, 0U);
      std::memset(slots.back().bytes().data(), i, DirectBuffers::kSlotBytes);
    }
    for (uint8_t i = 0; i < 10; ++i) {
      EXPECT_EQ(slots[i].bytes().front(), i);
      EXPECT_EQ(slots[i].bytes().back(), i);
    }
    EXPECT_EQ(buffers.held_bytes(), 2 * kHugePageBytes) << "six slots of four to a page";
  }
}

TEST(DirectBuffersTest, WhoKeepsSlotsLeavesHalfOfThemToReads) {
  DirectBuffers buffers(6);
  std::vector<DirectBuffers::Slot> kept;
  while (std::optional<DirectBuffers::Slot> slot = buffers.TakeToKeep()) kept.push_back(std::move(*slot));
  EXPECT_EQ(kept.size(), 3U);
  std::vector<DirectBuffers::Slot> reading;
  for (int i = 0; i < 3; ++i) reading.push_back(buffers.Take());
  EXPECT_EQ(buffers.held_bytes(), 2 * kHugePageBytes);
  kept.clear();
  EXPECT_FALSE(buffers.TakeToKeep().has_value());
  reading.clear();
  EXPECT_TRUE(buffers.TakeToKeep().has_value());
  EXPECT_FALSE(DirectBuffers(0).TakeToKeep().has_value());
}

}  // namespace
}  // namespace quarry
