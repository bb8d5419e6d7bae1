// Many threads at once, with the background thread: every kind of size, reads beside writes, failures in between.
#include <algorithm>
#include <atomic>
#include <thread>

#include "io/fault_env.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

struct Shared {
  Mutex mutex;
  std::vector<std::pair<Locator, uint64_t>> durable QUARRY_GUARDED_BY(mutex);  ///< with the seed
  std::atomic<uint64_t> failed{0};
};

std::vector<uint8_t> ValueOfSeed(uint64_t seed) {
  static constexpr size_t kSizes[] = {100, 5000, 24 << 10, 64 << 10, 448 << 10};
  return seed % 2 == 0 ? RandomValue(kSizes[seed % 5], seed) : TextValue(kSizes[seed % 5], seed);
}

void Work(StoreDirectory* directory, Shared* shared, uint64_t thread, int rounds) {
  std::mt19937_64 random(thread);
  for (int round = 0; round < rounds; ++round) {
    UnsyncedExtents unsynced;
    std::vector<std::pair<Locator, uint64_t>> mine;
    for (uint64_t i = 0; i <= random() % 3; ++i) {
      const auto store = directory->OpenForAppend({1 + random() % 3}, "db/t");
      if (!store.ok()) continue;
      const uint64_t seed = thread << 32U | static_cast<uint64_t>(round) << 8U | i;
      AppendOptions options;
      options.codec = static_cast<Codec>(random() % 3);
      if (auto locator = (*store)->Append(ValueOfSeed(seed), options, &unsynced); locator.ok()) {
        mine.emplace_back(*locator, seed);
      } else {
        ++shared->failed;
      }
    }
    for (const auto& [locator, seed] : mine) {
      // A transaction sees its own rows; only a failed segment may not show them any more.
      const auto read = ReadValue(directory, locator);
      ASSERT_TRUE(!read.ok() || *read == ValueOfSeed(seed));
    }
    if (random() % 2 == 0) directory->StartSync(&unsynced);
    if (random() % 16 == 0) continue;  // rolled back
    if (!directory->Sync(unsynced).ok()) {
      ++shared->failed;
      continue;
    }
    std::pair<Locator, uint64_t> other;
    {
      MutexLock lock(shared->mutex);
      shared->durable.insert(shared->durable.end(), mine.begin(), mine.end());
      if (shared->durable.empty()) continue;
      other = shared->durable[random() % shared->durable.size()];
    }
    // The same few again and again, through the cache.
    for (int again = 0; again < 3; ++again) {
      const auto read = directory->ReadValue(other.first, {});
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      ASSERT_TRUE(std::ranges::equal(read->bytes(), ValueOfSeed(other.second)));
    }
    if (random() % 16 == 0) {
      ASSERT_OK(directory->SetValueCacheBytes(random() % (4 << 20)));
    }
    directory->Release(other.first);
    if (random() % 16 == 0) (void)static_cast<StoreDirectoryImpl*>(directory)->catalogue()->Renew();
    if (random() % 16 == 0) (void)directory->ListStores();
  }
}

void RunStress(FaultEnv* env, MemoryEnv* memory, bool with_failures) {
  DirectoryOptions options = TestOptions();
  for (const char* path : {"/disk1", "/disk2"}) ASSERT_OK(memory->CreateDirectory(path));
  options.data_paths = {"/disk1", "/disk2"};
  options.segment_size_bytes = 4 << 20;
  options.recent_cache_bytes = 2 << 20;
  options.value_cache_bytes = 2 << 20;
  options.zeroed_pool_bytes = 1 << 20;
  Shared shared;
  std::atomic<uint64_t> calls{0};
  {
    auto directory = ValueOf(StoreDirectoryImpl::Open(options, {env, true}));
    // Now and then, of whatever file: a segment's mostly, the catalogue's too.
    if (with_failures) {
      env->SetHook([&calls](const Call& call) {
        if (call.kind != CallKind::kSync && call.kind != CallKind::kWrite) return Status::Ok();
        const uint64_t n = ++calls;
        return n % 23 == 0 && n < 400 ? Status::FromErrno(n % 2 == 0 ? ENOSPC : EIO, "fail", call.path) : Status::Ok();
      });
    }
    std::vector<std::thread> threads;
    for (uint64_t thread = 1; thread <= 8; ++thread) {
      threads.emplace_back([&, thread] { Work(directory.get(), &shared, thread, 25); });
    }
    for (std::thread& thread : threads) thread.join();
    env->SetHook(nullptr);
    EXPECT_LE(directory->GetCounters().recent_cache_bytes, 2U << 20);
    EXPECT_GT(directory->GetCounters().cache_hits, 0U);
    EXPECT_LE(directory->GetCounters().cache_bytes, 4U << 20);
    EXPECT_EQ(with_failures, directory->GetCounters().segments_poisoned > 0);
    CutPower(memory, env, 7, &directory);
  }
  EXPECT_EQ(with_failures, shared.failed > 0);
  auto directory = ValueOf(StoreDirectoryImpl::Open(options, {env, true}));
  MutexLock lock(shared.mutex);
  EXPECT_GT(shared.durable.size(), 100U);
  for (const auto& [locator, seed] : shared.durable) {
    ASSERT_TRUE(ValueOf(ReadValue(directory.get(), locator)) == ValueOfSeed(seed));
  }
}

TEST(StoreStressTest, ThreadsShareLanes) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  RunStress(&env, &memory, false);
}

TEST(StoreStressTest, ThreadsShareFailures) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  RunStress(&env, &memory, true);
}

TEST(StoreStressTest, TwoPathsFlushAtTheSameTime) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  for (const char* path : {"/disk1", "/disk2"}) ASSERT_OK(memory.CreateDirectory(path));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1", "/disk2"};
  auto directory = ValueOf(OpenDirectory(&env, options));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced[2];
  for (UnsyncedExtents& one : unsynced) (void)ValueOf(store->Append(RandomValue(100, 1), {}, &one));
  // Each flush waits until the other path's has begun too: with one flush at a time this would never end.
  Mutex mutex;
  CondVar changed;
  std::set<std::string> flushing;
  env.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kSync) return Status::Ok();
    MutexLock lock(mutex);
    flushing.insert(call.path);
    changed.NotifyAll();
    while (flushing.size() < 2) changed.Wait(mutex);
    return Status::Ok();
  });
  std::vector<std::thread> committers;
  for (UnsyncedExtents& one : unsynced) {
    committers.emplace_back([&] { EXPECT_OK(directory->Sync(one)); });
  }
  for (std::thread& committer : committers) committer.join();
  EXPECT_EQ(flushing.size(), 2U);
  env.SetHook({});
}

}  // namespace
}  // namespace quarry
