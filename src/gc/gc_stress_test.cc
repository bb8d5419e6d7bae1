// GC passes, which rewrite segments, beside appenders, committers, readers and a scrub, with the background thread:
// nothing that a row still has is lost, and nothing is called damaged.
#include <atomic>
#include <thread>

#include "base/shared_mutex.h"
#include "io/fault_env.h"
#include "quarry/gc.h"
#include "quarry/verify.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

std::vector<uint8_t> ValueOfSeed(uint64_t seed) {
  static constexpr size_t kSizes[] = {100, 900, 300, 5000, 100, 24 << 10, 300 << 10};
  return RandomValue(kSizes[seed % std::size(kSizes)], seed);
}

/// The rows: what has a locator here must be readable.
struct Rows {
  /// Held shared while a transaction is open, so that a pass can wait for those that were open when it began. The gate
  /// keeps new ones out meanwhile, else there might always be one.
  SharedMutex transactions;
  Mutex gate;
  void PassGate() { MutexLock lock(gate); }
  void WaitForOpenTransactions() {
    MutexLock lock(gate);
    ExclusiveLock nobody(transactions);
  }
  Mutex mutex;
  std::vector<std::pair<Locator, uint64_t>> live QUARRY_GUARDED_BY(mutex);
  std::atomic<bool> stop{false};
};

void Write(StoreDirectory* directory, Rows* rows, uint64_t thread, uint64_t rounds) {
  std::mt19937_64 random(thread);
  for (uint64_t round = 0; round < rounds; ++round) {
    rows->PassGate();
    SharedLock open(rows->transactions);
    const auto store = ValueOf(directory->OpenForAppend({1 + random() % 2}, "db/t"));
    UnsyncedExtents unsynced;
    AppendOptions options;
    options.codec = static_cast<Codec>(random() % 2);
    const uint64_t seed = thread << 32U | round;
    const Locator locator = ValueOf(store->Append(ValueOfSeed(seed), options, &unsynced));
    ASSERT_OK(directory->Sync(unsynced));
    Locator deleted;
    {
      MutexLock lock(rows->mutex);
      rows->live.emplace_back(locator, seed);
      if (rows->live.size() > 60) {
        std::swap(rows->live[random() % rows->live.size()], rows->live.back());
        deleted = rows->live.back().first;
        rows->live.pop_back();
      }
    }
    if (deleted.store.value != 0) directory->Release(deleted);
  }
}

void Read(StoreDirectory* directory, Rows* rows) {
  std::mt19937_64 random(77);
  while (!rows->stop) {
    rows->PassGate();
    SharedLock open(rows->transactions);  // a view that a pass waits for
    std::pair<Locator, uint64_t> row;
    {
      MutexLock lock(rows->mutex);
      if (rows->live.empty()) continue;
      row = rows->live[random() % rows->live.size()];
    }
    const auto read = ReadValue(directory, row.first);
    // Its writer may have deleted it since, but this view was there before any pass that could know.
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ASSERT_TRUE(*read == ValueOfSeed(row.second));
  }
}

class NoDamage final : public VerifyObserver {
 public:
  explicit NoDamage(const Rows* rows) : rows_(rows) {}
  void Found(const Finding& finding) override {
    EXPECT_TRUE(finding.kind == FindingKind::kLeftover || finding.kind == FindingKind::kDoubtful)
        << FindingKindName(finding.kind) << " " << finding.path << " +" << finding.offset_bytes << ": " << finding.what;
  }
  [[nodiscard]] bool Progress(const VerifyProgress& progress) override {
    (void)progress;
    return !rows_->stop;
  }

 private:
  const Rows* const rows_;
};

/// The number of parts that it verified.
uint64_t Scrub(StoreDirectory* directory, Rows* rows) {
  NoDamage observer(rows);
  uint64_t parts = 0;
  while (!rows->stop) {
    ScrubPlace place;
    parts += ScrubStores(directory, &place, &observer).parts;
  }
  return parts;
}

GcReport RunPass(StoreDirectory* directory, Rows* rows) {
  std::vector<StoreId> stores;
  for (const StoreStats& stats : directory->ListStores()) stores.push_back(stats.store);
  const std::unique_ptr<GcPass> pass = ValueOf(BeginGcPass(directory, stores));
  rows->WaitForOpenTransactions();
  {
    MutexLock lock(rows->mutex);
    for (const auto& [locator, seed] : rows->live) pass->Mark(locator);
  }
  rows->WaitForOpenTransactions();  // whoever may have seen more than the marks
  while (!ValueOf(pass->ReclaimSome(64 << 10)).done) {
  }
  return pass->report();
}

TEST(GcStressTest, PassesBesideWritersReadersAndAScrub) {
  MemoryEnv env;
  DirectoryOptions options = TestOptions();
  options.segment_size_bytes = 1 << 20;
  options.recent_cache_bytes = 1 << 20;
  options.zeroed_pool_bytes = 256 << 10;
  std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(StoreDirectoryImpl::Open(options, {&env, true}));
  Rows rows;
  uint64_t reclaimed_bytes = 0;
  uint64_t segments_rewritten = 0;
  uint64_t parts_verified = 0;
  std::vector<std::thread> writers;
  for (uint64_t thread = 1; thread <= 3; ++thread) {
    writers.emplace_back([&, thread] { Write(directory.get(), &rows, thread, 120); });
  }
  std::thread reader([&] { Read(directory.get(), &rows); });
  std::thread collector([&] {
    while (!rows.stop) {
      const GcReport report = RunPass(directory.get(), &rows);
      reclaimed_bytes += report.reclaimed_bytes;
      segments_rewritten += report.segments_rewritten;
    }
  });
  std::thread scrubber([&] { parts_verified = Scrub(directory.get(), &rows); });
  for (std::thread& writer : writers) writer.join();
  rows.stop = true;
  reader.join();
  collector.join();
  scrubber.join();
  EXPECT_GT(reclaimed_bytes, 0U);
  EXPECT_GT(segments_rewritten, 0U);
  EXPECT_GT(parts_verified, 0U);
  directory->DrainMaintenance();
  (void)RunPass(directory.get(), &rows);
  directory.reset();
  directory = ValueOf(StoreDirectoryImpl::Open(options, {&env, true}));
  uint64_t needed_bytes = 0;
  MutexLock lock(rows.mutex);
  for (const auto& [locator, seed] : rows.live) {
    const auto read = ReadValue(directory.get(), locator);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ASSERT_TRUE(*read == ValueOfSeed(seed));
    needed_bytes += RoundUpToBlock(locator.extent_size_bytes) + 2 * kBlockSizeBytes;
  }
  uint64_t real_bytes = 0;
  for (const StoreStats& stats : directory->ListStores()) real_bytes += stats.real_bytes;
  EXPECT_LE(real_bytes, needed_bytes + rows.live.size() * kBlockSizeBytes);
}

}  // namespace
}  // namespace quarry
