#include "rows/sparse_buffer.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace quarry {
namespace {

constexpr size_t kPage = 4096;

void FillWith(SparseBuffer* buffer, const ByteRange& range, uint8_t byte) {
  const std::span<uint8_t> memory = buffer->Fill(range);
  ASSERT_EQ(memory.size(), range.size());
  std::fill(memory.begin(), memory.end(), byte);
}

size_t BytesOtherThan(const SparseBuffer& buffer, size_t size, uint8_t byte) {
  return size - static_cast<size_t>(std::count(buffer.data(), buffer.data() + size, byte));
}

size_t ResidentPages(const SparseBuffer& buffer, size_t size) {
  std::vector<unsigned char> pages((size + kPage - 1) / kPage);
  auto* const memory = const_cast<uint8_t*>(buffer.data());
  EXPECT_EQ(mincore(memory, size, pages.data()), 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; }));
}

TEST(SparseBufferTest, OnlyWhatWasFilledIsThere) {
  SparseBuffer buffer;
  ASSERT_TRUE(buffer.Prepare(1 << 20));
  FillWith(&buffer, {5000, 6000}, 7);
  EXPECT_EQ(BytesOtherThan(buffer, 1 << 20, 0), 1000U);
  EXPECT_EQ(std::count(buffer.data() + 5000, buffer.data() + 6000, 7), 1000);
}

TEST(SparseBufferTest, NothingOfTheValueBeforeIsSeen) {
  SparseBuffer buffer;
  for (const size_t filled : {size_t{100}, SparseBuffer::kKeptBytes, SparseBuffer::kKeptBytes + 1, size_t{1} << 20}) {
    ASSERT_TRUE(buffer.Prepare(2 << 20));
    FillWith(&buffer, {70000, 70000 + filled}, 7);
    FillWith(&buffer, {0, 10}, 9);
    ASSERT_TRUE(buffer.Prepare(2 << 20));
    EXPECT_EQ(BytesOtherThan(buffer, 2 << 20, 0), 0U) << filled;
  }
  FillWith(&buffer, {0, 10}, 9);
  ASSERT_TRUE(buffer.Prepare(4 << 20));
  EXPECT_EQ(BytesOtherThan(buffer, 4 << 20, 0), 0U);
}

TEST(SparseBufferTest, HoldsNoMoreMemoryThanItNeeds) {
  constexpr size_t kSize = 64 << 20;
  constexpr size_t kPiece = 65536;
  SparseBuffer buffer;
  for (size_t i = 0; i < 1000; i++) {
    ASSERT_TRUE(buffer.Prepare(kSize));
    const uint64_t begin = i * 65537 % (kSize - kPiece);
    FillWith(&buffer, {begin, begin + kPiece}, 7);
  }
  EXPECT_LE(ResidentPages(buffer, kSize) * kPage, SparseBuffer::kKeptBytes + 3 * kPiece);
}

TEST(SparseBufferTest, SaysWhenThereIsNoMemory) {
  SparseBuffer buffer;
  EXPECT_FALSE(buffer.Prepare(size_t{1} << 60));
  EXPECT_EQ(buffer.data(), nullptr);
}

TEST(SparseBufferTest, BetweenUsesNoMemoryIsHeld) {
  SparseBuffer buffer;
  ASSERT_TRUE(buffer.Prepare(SparseBuffer::kKeptAddressBytes));
  buffer.EndUse();
  EXPECT_NE(buffer.data(), nullptr);
  ASSERT_TRUE(buffer.Prepare(100));
  FillWith(&buffer, {0, 100}, 7);
  buffer.EndUse();
  EXPECT_EQ(buffer.data(), nullptr);
  ASSERT_TRUE(buffer.Prepare(SparseBuffer::kKeptAddressBytes + 1));
  buffer.EndUse();
  EXPECT_EQ(buffer.data(), nullptr);
}

TEST(SparseBufferTest, MovesWithWhatItHolds) {
  SparseBuffer first;
  ASSERT_TRUE(first.Prepare(100));
  FillWith(&first, {0, 100}, 7);
  SparseBuffer second(std::move(first));
  EXPECT_EQ(second.data()[99], 7);
  SparseBuffer third;
  ASSERT_TRUE(third.Prepare(5000));
  third = std::move(second);
  EXPECT_EQ(third.data()[99], 7);
  ASSERT_TRUE(third.Prepare(100));
  EXPECT_EQ(BytesOtherThan(third, 100, 0), 0U);
}

}  // namespace
}  // namespace quarry
