// ChunkSupply: whom it asks for a chunk, and what it remembers of those that are gone.
#include "cache/chunk_supply.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace quarry {
namespace {

constexpr size_t kMiB = 1U << 20;

class Holder final : public ChunkHolder {
 public:
  void GiveUpChunk() override { chunk.Release(); }
  PooledBuffer chunk;
};

/// Counts what was allocated through it and not freed.
template <typename T>
struct Counting {
  using value_type = T;
  explicit Counting(size_t* live_in) : live(live_in) {}
  template <typename U>
  Counting(const Counting<U>& other) : live(other.live) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) {
    ++*live;
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* memory, size_t count) {
    --*live;
    std::allocator<T>().deallocate(memory, count);
  }
  template <typename U>
  bool operator==(const Counting<U>& other) const {
    return live == other.live;
  }

  size_t* live;
};

TEST(ChunkSupplyTest, KeepsNoMemoryOfHoldersThatAreGoneAndAsksThoseThatAreThere) {
  size_t live = 0;
  BufferPool pool(kMiB);
  ChunkSupply supply(&pool);
  const auto make = [&live] { return std::allocate_shared<Holder>(Counting<Holder>(&live)); };
  const std::shared_ptr<Holder> holder = make();
  holder->chunk = supply.Acquire(kMiB, nullptr);
  supply.Opened(holder);
  for (int i = 0; i < 10000; ++i) supply.Opened(make());
  EXPECT_LT(live, 1000U);
  EXPECT_FALSE(supply.Acquire(kMiB, nullptr).empty());
  EXPECT_TRUE(holder->chunk.empty());
}

}  // namespace
}  // namespace quarry
