// ValueCache against a model, and beside threads.
#include <map>
#include <random>
#include <thread>

#include "cache/value_cache_test_util.h"

namespace quarry {
namespace {

// The model: what is in a pinned buffer is the value; what was never taken in is no hit; the books balance.
TEST_F(ValueCacheTest, RandomHistoriesHoldTheLimitAndTheBytes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    uint64_t limit = 0;
    bool lowered = false;
    std::map<uint64_t, bool> taken;
    std::vector<std::pair<Locator, ValueBuffer>> pins;
    const auto size_of = [](uint64_t number) { return 64 + number * 977 % 70000; };
    for (int step = 0; step < 1500; ++step) {
      const uint64_t number = random() % (random() % 2 == 0 ? 20 : 400);
      const Locator locator = MakeLocator(number, size_of(number));
      const uint64_t dice = random() % 100;
      if (dice < 1 || step == 0) {
        const uint64_t wanted = random() % 4 == 0 ? 0 : random() % (2 * kMiB);
        Limit(wanted);
        lowered = wanted < limit || lowered;
        limit = wanted;
      } else if (dice < 75) {
        const uint64_t admissions = counters_.Snapshot().cache_admissions;
        bool hit = false;
        ValueBuffer value = Read(locator, &hit);
        ASSERT_TRUE(!hit || taken[number]) << "seed " << seed;
        if (counters_.Snapshot().cache_admissions != admissions) taken[number] = true;
        if (!value.empty()) {
          ASSERT_TRUE(IsValueOf(locator, value.bytes())) << "seed " << seed;
          if (random() % 4 == 0) pins.emplace_back(locator, std::move(value));
        }
      } else if (dice < 80) {
        std::vector<uint8_t> piece(1 + random() % locator.value_size_bytes);
        const uint64_t offset = random() % (locator.value_size_bytes - piece.size() + 1);
        if (cache_.Copy(locator, offset, piece)) {
          ASSERT_TRUE(taken[number]);
          ASSERT_EQ(piece.back(), ByteOf(locator, offset + piece.size() - 1));
        }
      } else if (dice < 85) {
        const uint64_t carried = counters_.Snapshot().cache_carried;
        const Locator by = MakeLocator(random() % 4000 + 100000, locator.value_size_bytes, 1);
        cache_.Carry(locator, by, BytesOf(by), tally_);
        ASSERT_TRUE(taken[number] || counters_.Snapshot().cache_carried == carried);
        if (IsCached(by)) {
          const ValueBuffer value = Read(by);
          ASSERT_TRUE(IsValueOf(by, value.bytes())) << "seed " << seed;
        }
      } else if (dice < 88) {
        cache_.Forget(locator);
        ASSERT_FALSE(IsCached(locator));
      } else if (!pins.empty()) {
        const size_t which = random() % pins.size();
        ASSERT_TRUE(IsValueOf(pins[which].first, pins[which].second.bytes())) << "seed " << seed;
        std::swap(pins[which], pins.back());
        pins.pop_back();
      }
      lowered = lowered && cache_.used_bytes() > cache_.limit_bytes();
      ASSERT_TRUE(lowered || cache_.used_bytes() <= cache_.limit_bytes()) << "seed " << seed;
      ASSERT_LE(cache_.limit_bytes(), limit);
      ASSERT_EQ(tally_->load(), cache_.used_bytes());
    }
    Limit(0);
    pins.clear();
    ASSERT_EQ(cache_.used_bytes(), 0U) << "seed " << seed;
  }
  EXPECT_GT(counters_.Snapshot().cache_hits, 1000U);
  EXPECT_GT(counters_.Snapshot().cache_evictions, 1000U);
}

TEST_F(ValueCacheTest, ThreadsReadWhileTheLimitMoves) {
  Limit(2 * kMiB);
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> over{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread + 1);
      std::vector<std::pair<Locator, ValueBuffer>> pins;
      for (int step = 0; step < 20000; ++step) {
        const uint64_t number = random() % 200;
        const Locator locator = MakeLocator(number, 2000 + number * 300, 1 + number % 3);
        ValueBuffer value = Read(locator);
        if (!value.empty() && !IsValueOf(locator, value.bytes())) ++wrong;
        if (cache_.used_bytes() > 8 * kMiB) ++over;
        if (step % 17 == 0) {
          const Locator by = MakeLocator(random() % 200, locator.value_size_bytes, locator.store.value);
          cache_.Carry(locator, by, BytesOf(by), tally_);
        }
        if (step % 23 == 0) cache_.Forget(locator);
        if (!value.empty() && step % 3 == 0) pins.emplace_back(locator, std::move(value));
        if (pins.size() > 5) {
          if (!IsValueOf(pins.front().first, pins.front().second.bytes())) ++wrong;
          pins.erase(pins.begin());
        }
      }
    });
  }
  threads.emplace_back([&] {
    std::mt19937_64 random(99);
    for (int step = 0; step < 300; ++step) {
      if (!cache_.Resize(random() % 5 == 0 ? 0 : random() % (4 * kMiB))) ++wrong;
      if (step % 10 == 0) cache_.ForgetStore({1 + random() % 3});
      std::this_thread::yield();
    }
    if (!cache_.Resize(2 * kMiB)) ++wrong;
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(over.load(), 0U);
  EXPECT_LE(cache_.used_bytes(), cache_.limit_bytes());
  EXPECT_GT(counters_.Snapshot().cache_hits, 0U);
  Limit(0);
  EXPECT_EQ(cache_.used_bytes(), 0U);
  EXPECT_EQ(tally_->load(), 0U);
}

}  // namespace
}  // namespace quarry
