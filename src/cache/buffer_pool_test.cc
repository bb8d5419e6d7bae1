// BufferPool: what it keeps for the next, and that it never holds more than its budget or what is out.
#include "cache/buffer_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

namespace quarry {
namespace {

constexpr size_t kMiB = 1U << 20;

TEST(BufferPoolTest, UsesAgainWhatWasGivenBack) {
  BufferPool pool(4 * kMiB);
  const uint8_t* const place = pool.Take(300 << 10).data();
  EXPECT_EQ(pool.held_bytes(), 512U << 10);
  const PooledBuffer again = pool.Take(500 << 10);
  EXPECT_EQ(again.data(), place);
  EXPECT_EQ(pool.held_bytes(), 512U << 10);
}

TEST(BufferPoolTest, ReadsNeverWaitAndTheirBuffersCount) {
  BufferPool pool(4 * kMiB);
  std::vector<PooledBuffer> out;
  for (int i = 0; i < 10; ++i) out.push_back(pool.Take(kMiB));
  EXPECT_EQ(pool.held_bytes(), 10 * kMiB);
  EXPECT_EQ(pool.counted_bytes(), 0U);
  for (size_t left = 10; left > 0; --left) {
    out.pop_back();
    EXPECT_LE(pool.held_bytes(), std::max((left - 1) * kMiB, 4 * kMiB)) << "free ones only beside those that are out";
  }
  EXPECT_EQ(pool.held_bytes(), 4 * kMiB);
}

TEST(BufferPoolTest, FreeBuffersOfAnotherSizeGiveWay) {
  BufferPool pool(4 * kMiB);
  for (int round = 0; round < 3; ++round) {
    std::vector<PooledBuffer> small;
    for (int i = 0; i < 64; ++i) small.push_back(pool.Take(64 << 10));
    small.clear();
    std::vector<PooledBuffer> large;
    for (int i = 0; i < 4; ++i) large.push_back(pool.Take(kMiB));
    EXPECT_EQ(pool.held_bytes(), 4 * kMiB) << "by Take";
    large.clear();
    const std::optional<PooledBuffer> tried = pool.TryAcquire(3 * kMiB);
    ASSERT_TRUE(tried.has_value());
    EXPECT_LE(pool.held_bytes(), 4 * kMiB) << "by TryAcquire";
  }
}

TEST(BufferPoolTest, WhatIsTakenOffTheBudgetIsSomebodyElses) {
  BufferPool pool(2 * kMiB);
  PooledBuffer kept = pool.Acquire(2 * kMiB);
  EXPECT_FALSE(pool.TryAcquire(kMiB).has_value());
  kept.Uncount();
  EXPECT_EQ(pool.held_bytes(), 0U);
  EXPECT_TRUE(pool.TryAcquire(kMiB).has_value());
  kept.Release();
  EXPECT_LE(pool.held_bytes(), 2 * kMiB);
}

/// Tells that its owner has found no room.
class Waits final : public Canceller {
 public:
  [[nodiscard]] bool IsCancelled() const override {
    waits_ = true;
    return false;
  }
  [[nodiscard]] bool waits() const { return waits_; }

 private:
  mutable std::atomic<bool> waits_{false};
};

// It needs the pool alone: as long as others took turns it would never get it.
TEST(BufferPoolTest, ALargeBufferIsNotOvertakenByThoseWhoComeLater) {
  BufferPool pool(4 * kMiB);
  PooledBuffer first = pool.Acquire(kMiB);
  Waits large_waits;
  Waits small_waits;
  std::atomic<int> turns{0};
  std::atomic<int> turn_of_large{0};
  std::atomic<int> turn_of_small{0};
  std::thread large([&] {
    const PooledBuffer buffer = pool.Acquire(5 * kMiB, &large_waits);
    turn_of_large = ++turns;
  });
  while (!large_waits.waits()) std::this_thread::yield();
  std::thread small([&] {
    const PooledBuffer buffer = pool.Acquire(kMiB, &small_waits);
    turn_of_small = ++turns;
  });
  while (!small_waits.waits() && turn_of_small == 0) std::this_thread::yield();
  first.Release();
  large.join();
  small.join();
  EXPECT_EQ(turn_of_large, 1);
  EXPECT_EQ(turn_of_small, 2);
}

TEST(BufferPoolTest, ALargeOneThatIsGivenUpHoldsNobodyUp) {
  BufferPool pool(4 * kMiB);
  const PooledBuffer first = pool.Acquire(kMiB);
  class Cancelled final : public Canceller {
   public:
    [[nodiscard]] bool IsCancelled() const override { return true; }
  } cancelled;
  EXPECT_TRUE(pool.Acquire(5 * kMiB, &cancelled).empty());
  EXPECT_FALSE(pool.Acquire(kMiB, &cancelled).empty()) << "there is room, and nobody waits";
}

// Else one append that found no memory would keep all others waiting for good.
TEST(BufferPoolTest, WhatThereIsNoMemoryForTakesNothingOfTheBudget) {
  BufferPool pool(4 * kMiB);
  EXPECT_THROW((void)pool.Acquire(SIZE_MAX), std::bad_alloc);
  EXPECT_EQ(pool.counted_bytes(), 0U);
  EXPECT_THROW((void)pool.TryAcquire(SIZE_MAX), std::bad_alloc);
  EXPECT_EQ(pool.counted_bytes(), 0U);
  const PooledBuffer all = pool.Acquire(4 * kMiB);
  EXPECT_FALSE(pool.TryAcquire(kMiB).has_value());
}

}  // namespace
}  // namespace quarry
