// ValueCache: what gets in, what stays, and that the limit holds.
#include <sys/mman.h>

#include <set>

#include "cache/value_cache_test_util.h"

namespace quarry {
namespace {

/// How many pages, of those that lie whole in these ranges, belong to the process.
size_t MappedPages(const std::vector<std::pair<void*, size_t>>& ranges) {
  constexpr uintptr_t kPageBytes = 4096;
  size_t pages = 0;
  for (const auto& [begin, size_bytes] : ranges) {
    const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kPageBytes - 1) / kPageBytes * kPageBytes;
    for (uintptr_t page = first; page + kPageBytes <= reinterpret_cast<uintptr_t>(begin) + size_bytes;
         page += kPageBytes) {
      unsigned char resident = 0;
      if (::mincore(reinterpret_cast<void*>(page), kPageBytes, &resident) == 0) ++pages;
    }
  }
  return pages;
}

TEST_F(ValueCacheTest, TakesInWhatThereIsRoomForAndThenWhatIsAskedForAgain) {
  Limit(2 * kMiB);
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_FALSE(Read(MakeLocator(i, 80 << 10)).empty());
    EXPECT_TRUE(IsCached(MakeLocator(i, 80 << 10)));
  }
  FillUp(80 << 10);
  const uint64_t admissions = counters_.Snapshot().cache_admissions;
  const Locator late = MakeLocator(50, 80 << 10);
  EXPECT_TRUE(Read(late).empty());
  EXPECT_EQ(counters_.Snapshot().cache_admissions, admissions);
  EXPECT_EQ(counters_.Snapshot().cache_evictions, 0U);
  EXPECT_FALSE(Read(late).empty());
  EXPECT_EQ(counters_.Snapshot().cache_admissions, admissions + 1);
  EXPECT_EQ(counters_.Snapshot().cache_evictions, 1U);
  EXPECT_TRUE(IsCached(late));
}

TEST_F(ValueCacheTest, HandsOutTheSameBytesToAll) {
  Limit(8 * kMiB);
  const Locator locator = MakeLocator(1, 64 << 10);
  EXPECT_TRUE(cache_.Find(locator).empty());
  EXPECT_FALSE(cache_.NoteMiss(locator)) << "by itself once is not enough";
  EXPECT_TRUE(cache_.Find(locator).empty());
  EXPECT_TRUE(cache_.NoteMiss(locator));
  (void)Take(locator);
  bool hit = false;
  const ValueBuffer first = Read(locator, &hit);
  EXPECT_TRUE(hit);
  const ValueBuffer second = Read(locator, &hit);
  EXPECT_TRUE(hit);
  EXPECT_TRUE(IsValueOf(locator, first.bytes()));
  EXPECT_EQ(first.bytes().data(), second.bytes().data());
  EXPECT_EQ(first.bytes().data()[first.bytes().size()], 0) << "the server may look for the end of a string there";
  const Counters counters = counters_.Snapshot();
  EXPECT_EQ(counters.cache_hits, 2U);
  EXPECT_EQ(counters.cache_misses, 2U);
  EXPECT_EQ(counters.cache_admissions, 1U);
  EXPECT_GE(cache_.used_bytes(), 64U << 10);
  EXPECT_LE(cache_.used_bytes(), 73U << 10) << "an eighth and some hundred bytes may be lost";
  EXPECT_EQ(tally_->load(), cache_.used_bytes());
}

TEST_F(ValueCacheTest, ServesOnlyTheVeryLocator) {
  Limit(8 * kMiB);
  const Locator locator = MakeLocator(1, 5000);
  (void)Take(locator);
  ASSERT_TRUE(IsCached(locator));
  Locator other = locator;
  other.identity ^= 1;
  EXPECT_FALSE(IsCached(other));
  other = locator;
  other.value_size_bytes -= 1;
  EXPECT_FALSE(IsCached(other));
  other = locator;
  other.extent_size_bytes += 1;
  EXPECT_FALSE(IsCached(other));
  other = locator;
  other.segment.value += 1;
  EXPECT_FALSE(IsCached(other));
}

TEST_F(ValueCacheTest, AScanLeavesTheHotSetAlone) {
  Limit(8 * kMiB);
  std::vector<Locator> hot;
  for (uint64_t i = 0; i < 80; ++i) hot.push_back(MakeLocator(i, 64 << 10));
  for (int round = 0; round < 4; ++round) {
    for (const Locator& locator : hot) (void)Read(locator);
  }
  EXPECT_EQ(counters_.Snapshot().cache_admissions, hot.size());
  for (const uint64_t scan : {1000, 10000}) {
    for (uint64_t i = scan; i < scan + 1000; ++i) (void)Read(MakeLocator(i, 64 << 10));  // 64 MiB through a cache of 8
  }
  const uint64_t admissions = counters_.Snapshot().cache_admissions;
  EXPECT_GT(admissions, hot.size());
  EXPECT_LE(admissions, 8 * kMiB / (64 << 10)) << "what there was room for";
  EXPECT_EQ(counters_.Snapshot().cache_evictions, 0U);
  // What the scans left is what goes when others come to stay.
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 5000; i < 5020; ++i) (void)Read(MakeLocator(i, 64 << 10));
  }
  EXPECT_EQ(counters_.Snapshot().cache_admissions, admissions + 20);
  for (const Locator& locator : hot) EXPECT_TRUE(IsCached(locator));
}

TEST_F(ValueCacheTest, ANewHotSetReplacesAnOldOne) {
  Limit(8 * kMiB);
  const auto read_often = [&](uint64_t from) {
    uint64_t hits = 0;
    for (int round = 0; round < 12; ++round) {
      hits = 0;
      for (uint64_t i = from; i < from + 60; ++i) {
        bool hit = false;
        (void)Read(MakeLocator(i, 100 << 10), &hit);
        hits += hit ? 1 : 0;
      }
    }
    return hits;
  };
  EXPECT_EQ(read_often(0), 60U);
  EXPECT_GE(read_often(5000), 50U);
  EXPECT_LE(cache_.used_bytes(), cache_.limit_bytes());
}

TEST_F(ValueCacheTest, WhatIsUsedStaysLongerThanWhatIsNot) {
  Limit(4 * kMiB);
  for (uint64_t i = 0; i < 40; ++i) (void)Take(MakeLocator(i, 60 << 10));
  for (uint64_t i = 0; i < 40; i += 2) {
    for (int use = 0; use < 3; ++use) EXPECT_TRUE(IsCached(MakeLocator(i, 60 << 10)));
  }
  for (uint64_t i = 100; i < 140; ++i) (void)Take(MakeLocator(i, 60 << 10));
  int used = 0;
  int unused = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    if (IsCached(MakeLocator(i, 60 << 10))) ++(i % 2 == 0 ? used : unused);
  }
  EXPECT_GT(used, unused + 10);
}

TEST_F(ValueCacheTest, ALargeValueIsNeverWorthwhile) {
  Limit(8 * kMiB);
  for (int read = 0; read < 5; ++read) EXPECT_TRUE(Read(MakeLocator(1, kMiB + 1)).empty());
  EXPECT_EQ(cache_.used_bytes(), 0U);
  EXPECT_FALSE(cache_.HasRoomFor(kMiB + 1));
  EXPECT_TRUE(cache_.HasRoomFor(kMiB / 2));
  EXPECT_FALSE(Read(MakeLocator(2, kMiB / 2)).empty());
}

TEST_F(ValueCacheTest, WhatIsPinnedIsNeitherFreedNorForgottenByTheLimit) {
  Limit(4 * kMiB);
  std::vector<ValueBuffer> pins;
  std::vector<Locator> pinned;
  for (uint64_t i = 0; i < 200; ++i) {
    const Locator locator = MakeLocator(i, 100 << 10);
    ValueBuffer value = Take(locator);
    if (value.empty()) break;
    pins.push_back(std::move(value));
    pinned.push_back(locator);
    ASSERT_LE(cache_.used_bytes(), cache_.limit_bytes());
  }
  EXPECT_LT(pins.size(), 41U);
  EXPECT_GT(pins.size(), 30U);
  EXPECT_TRUE(Take(MakeLocator(999, 100 << 10)).empty()) << "all of it is being read";

  Limit(kMiB);
  EXPECT_GT(cache_.used_bytes(), 3 * kMiB) << "memory in use is counted";
  EXPECT_TRUE(Take(MakeLocator(999, 100 << 10)).empty());
  Limit(0);
  for (size_t i = 0; i < pins.size(); ++i) EXPECT_TRUE(IsValueOf(pinned[i], pins[i].bytes()));
  pins.clear();
  EXPECT_EQ(cache_.used_bytes(), 0U);
  EXPECT_EQ(tally_->load(), 0U);
}

TEST_F(ValueCacheTest, AnAbandonedFillingLeavesNothing) {
  Limit(4 * kMiB);
  const Locator locator = MakeLocator(1, 9000);
  {
    const ValueCache::Filling filling = cache_.Begin(locator, tally_);
    ASSERT_FALSE(filling.empty());
    EXPECT_GT(cache_.used_bytes(), 9000U);
    EXPECT_FALSE(IsCached(locator));
  }
  EXPECT_EQ(cache_.used_bytes(), 0U);
  EXPECT_EQ(tally_->load(), 0U);
}

TEST_F(ValueCacheTest, TwoReadersThatFillTheSameEndUpWithOne) {
  Limit(4 * kMiB);
  const Locator locator = MakeLocator(1, 9000);
  ValueBuffer one = Take(locator);
  ValueBuffer two = Take(locator);
  EXPECT_TRUE(IsValueOf(locator, one.bytes()));
  EXPECT_TRUE(IsValueOf(locator, two.bytes()));
  const uint64_t both = cache_.used_bytes();
  two.Release();
  EXPECT_EQ(cache_.used_bytes() * 2, both);
  one.Release();
  EXPECT_TRUE(IsCached(locator));
}

TEST_F(ValueCacheTest, AFillingThatOutlivesALimitIsNotKept) {
  Limit(4 * kMiB);
  const Locator locator = MakeLocator(1, 9000);
  ValueCache::Filling filling = cache_.Begin(locator, tally_);
  Limit(0);
  for (size_t i = 0; i < 9000; ++i) filling.bytes()[i] = ByteOf(locator, i);
  ValueBuffer value = cache_.Publish(std::move(filling));
  EXPECT_TRUE(IsValueOf(locator, value.bytes()));
  value.Release();
  EXPECT_EQ(cache_.used_bytes(), 0U);
}

TEST_F(ValueCacheTest, AStoreThatIsGoneTakesItsValuesAlong) {
  Limit(8 * kMiB);
  for (uint64_t i = 0; i < 50; ++i) (void)Take(MakeLocator(i, 9000, 1 + i % 2));
  const uint64_t before = cache_.used_bytes();
  cache_.ForgetStore({2});
  EXPECT_EQ(cache_.used_bytes() * 2, before);
  EXPECT_TRUE(IsCached(MakeLocator(0, 9000, 1)));
  EXPECT_FALSE(IsCached(MakeLocator(1, 9000, 2)));
}

TEST_F(ValueCacheTest, TheIndexOfAHugeCacheIsCountedAndOffIsOff) {
  EXPECT_TRUE(cache_.Resize(64));  // all of it would be keys
  EXPECT_EQ(cache_.limit_bytes(), 0U);
  EXPECT_TRUE(cache_.Resize(1024 * kMiB));
  EXPECT_LT(cache_.limit_bytes(), 1024 * kMiB);
  EXPECT_GT(cache_.limit_bytes(), 1020 * kMiB);
  Limit(0);
  for (int read = 0; read < 4; ++read) EXPECT_TRUE(Read(MakeLocator(1, 9000)).empty());
  EXPECT_EQ(counters_.Snapshot().cache_misses, 0U);
}

TEST_F(ValueCacheTest, WhatIsWrittenInThePlaceOfAUsedValueIsThere) {
  Limit(8 * kMiB);
  const Locator old = MakeLocator(1, 64 << 10);
  const Locator by = MakeLocator(2, 50 << 10);
  const std::vector<uint8_t> value = BytesOf(by);
  cache_.Carry(old, by, value, tally_);
  EXPECT_FALSE(IsCached(by)) << "the old one is not there";
  (void)Take(old);
  cache_.Carry(old, by, value, tally_);
  EXPECT_FALSE(IsCached(by)) << "nobody has read the old one here";
  ASSERT_TRUE(IsCached(old));
  cache_.Carry(old, by, value, tally_);
  const ValueBuffer found = cache_.Find(by);
  EXPECT_TRUE(IsValueOf(by, found.bytes()));
  EXPECT_EQ(found.bytes().data()[value.size()], 0);
  EXPECT_TRUE(IsCached(old)) << "the transaction may roll back";
  EXPECT_EQ(counters_.Snapshot().cache_carried, 1U);
  EXPECT_EQ(tally_->load(), cache_.used_bytes());
}

TEST_F(ValueCacheTest, WhatIsWrittenAndNotReadDoesNotStay) {
  Limit(8 * kMiB);
  (void)Take(MakeLocator(0, 64 << 10));
  for (int read = 0; read < 10; ++read) ASSERT_TRUE(IsCached(MakeLocator(0, 64 << 10)));
  for (uint64_t i = 0; i < 10; ++i) {
    const Locator by = MakeLocator(i + 1, 64 << 10);
    cache_.Carry(MakeLocator(i, 64 << 10), by, BytesOf(by), tally_);
  }
  EXPECT_EQ(counters_.Snapshot().cache_carried, 3U);
}

TEST_F(ValueCacheTest, OnlyTheVeryBytesAreCarried) {
  Limit(8 * kMiB);
  const Locator old = MakeLocator(1, 64 << 10);
  (void)Take(old);
  ASSERT_TRUE(IsCached(old));
  cache_.Carry(old, MakeLocator(2, 64 << 10), BytesOf(MakeLocator(3, 63 << 10)), tally_);
  EXPECT_FALSE(IsCached(MakeLocator(2, 64 << 10))) << "another length";
  const Locator large = MakeLocator(4, kMiB + 1);
  cache_.Carry(old, large, BytesOf(large), tally_);
  EXPECT_FALSE(IsCached(large)) << "as long as no reader would take in";
  Limit(0);
  cache_.Carry(old, MakeLocator(5, 100), BytesOf(MakeLocator(5, 100)), tally_);
  EXPECT_EQ(cache_.used_bytes(), 0U);
}

TEST_F(ValueCacheTest, WhatIsForgottenIsNotFoundAndGoesFirst) {
  Limit(4 * kMiB);
  std::vector<Locator> taken;
  while (counters_.Snapshot().cache_evictions == 0) {
    taken.push_back(MakeLocator(taken.size(), 100 << 10));
    (void)Take(taken.back());
  }
  std::vector<Locator> kept;
  std::vector<Locator> forgotten;
  for (const Locator& locator : taken) {
    if (!IsCached(locator)) continue;
    (kept.size() < forgotten.size() ? kept : forgotten).push_back(locator);
  }
  const ValueBuffer held = cache_.Find(forgotten[0]);
  for (const Locator& locator : forgotten) cache_.Forget(locator);
  for (const Locator& locator : forgotten) EXPECT_FALSE(IsCached(locator));
  EXPECT_TRUE(IsValueOf(forgotten[0], held.bytes())) << "somebody still reads it";
  (void)Take(forgotten[1]);
  EXPECT_TRUE(IsCached(forgotten[1])) << "it may come back";
  for (uint64_t i = 0; i + 3 < forgotten.size(); ++i) (void)Take(MakeLocator(1000 + i, 100 << 10));
  EXPECT_LE(cache_.used_bytes(), cache_.limit_bytes());
  size_t still = 0;
  for (const Locator& locator : kept) still += IsCached(locator) ? 1 : 0;
  EXPECT_GE(still + 1, kept.size()) << "the memory of what nobody will ask for was there";
}

#ifndef QUARRY_GUARDED_CACHE
TEST_F(ValueCacheTest, WhatMakesRoomLeavesItsMemoryToTheNext) {
  Limit(4 * kMiB);
  std::set<const uint8_t*> places;
  for (uint64_t i = 0; i < 200; ++i) places.insert(Take(MakeLocator(i, 100 << 10)).bytes().data());
  EXPECT_LE(places.size(), 40U);
}

TEST_F(ValueCacheTest, WhatIsForgottenLeavesItsMemoryToTheNextBeforeTheCacheIsFull) {
  Limit(64 * kMiB);
  std::set<const uint8_t*> places;
  for (uint64_t i = 0; i < 20; ++i) places.insert(Take(MakeLocator(i, 100 << 10)).bytes().data());
  ASSERT_EQ(places.size(), 20U);
  const uint64_t used = cache_.used_bytes();
  for (uint64_t i = 0; i < 200; ++i) {  // as updates do: a value comes, and the one that it replaces is released
    places.insert(Take(MakeLocator(20 + i, 100 << 10)).bytes().data());
    cache_.Forget(MakeLocator(i, 100 << 10));
  }
  EXPECT_EQ(places.size(), 21U);
  EXPECT_LE(cache_.used_bytes(), used + used / 20);
  EXPECT_EQ(counters_.Snapshot().cache_evictions, 0U) << "nothing that could be found went";
  for (uint64_t i = 200; i < 220; ++i) EXPECT_TRUE(IsCached(MakeLocator(i, 100 << 10)));
}

TEST_F(ValueCacheTest, WhatIsForgottenAndStillReadOrOfAnotherSizeKeepsItsMemory) {
  Limit(64 * kMiB);
  const Locator read = MakeLocator(1, 100 << 10);
  const Locator shorter = MakeLocator(2, 50 << 10);
  ValueBuffer held = Take(read);
  (void)Take(shorter);
  cache_.Forget(read);
  cache_.Forget(shorter);
  const uint8_t* const place = held.bytes().data();
  EXPECT_NE(Take(MakeLocator(3, 100 << 10)).bytes().data(), place);
  EXPECT_TRUE(IsValueOf(read, held.bytes()));
  held.Release();
  EXPECT_EQ(Take(MakeLocator(4, 100 << 10)).bytes().data(), place) << "nobody reads it any more";
  EXPECT_TRUE(IsCached(MakeLocator(3, 100 << 10)));
  EXPECT_TRUE(IsCached(MakeLocator(4, 100 << 10)));
}
#endif

// Freed to malloc, it would stay with the process: other threads' buffers lie between.
TEST_F(ValueCacheTest, TheMemoryOfLargeValuesGoesBackToTheSystem) {
  Limit(64 * kMiB);
  std::vector<std::pair<void*, size_t>> places;
  std::vector<std::unique_ptr<uint8_t[]>> between;
  for (uint64_t i = 0; i < 50; ++i) {
    const ValueBuffer value = Take(MakeLocator(i, 100 << 10));
    places.emplace_back(const_cast<uint8_t*>(value.bytes().data()), value.bytes().size());
    between.push_back(std::make_unique<uint8_t[]>(1000));
  }
  EXPECT_EQ(MappedPages(places), 50 * 25U);
  Limit(0);
  EXPECT_EQ(MappedPages(places), 0U);
}

#ifdef QUARRY_GUARDED_CACHE
TEST_F(ValueCacheTest, WhoWritesToACachedValueDies) {
  Limit(4 * kMiB);
  const ValueBuffer value = Take(MakeLocator(1, 9000));
  EXPECT_DEATH(*const_cast<volatile uint8_t*>(value.bytes().data() + 8999) = 1, "");
}
#endif

}  // namespace
}  // namespace quarry
