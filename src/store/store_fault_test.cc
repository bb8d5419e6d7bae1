// Failures of every call, and power cuts, against a model: what was synced is there, what was not is right or an error.
// (Flipped bits: corruption_test.cc.)
#include <random>

#include "io/fault_env.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

struct Known {
  Locator locator;
  uint64_t seed = 0;
  size_t size_bytes = 0;
  bool text = false;
  bool durable = false;
  [[nodiscard]] std::vector<uint8_t> Value() const {
    return text ? TextValue(size_bytes, seed) : RandomValue(size_bytes, seed);
  }
};

/// A random session over a few tables: appends, syncs, renewals of the catalogue, releases.
class Session {
 public:
  explicit Session(uint64_t seed) : random_(seed) {}

  void Run(StoreDirectory* directory, int steps) {
    for (int step = 0; step < steps; ++step) Step(directory);
  }

  /// Everything durable must be right; everything else right or an error.
  void Check(StoreDirectory* directory) const {
    for (const Known& known : known_) {
      const Result<std::vector<uint8_t>> read = ReadValue(directory, known.locator);
      if (known.durable) {
        ASSERT_TRUE(read.ok()) << read.status().ToString();
      }
      if (read.ok()) {
        ASSERT_TRUE(*read == known.Value()) << "wrong bytes";
      }
    }
  }
  /// After a crash: what was on its way is forgotten, as InnoDB would roll it back.
  void Crash() {
    open_.Clear();
    open_first_ = known_.size();
  }
  [[nodiscard]] size_t durable_count() const {
    return static_cast<size_t>(std::count_if(known_.begin(), known_.end(), [](const Known& k) { return k.durable; }));
  }

 private:
  void Step(StoreDirectory* directory) {
    const uint64_t dice = random_() % 100;
    if (dice < 70) {
      Append(directory);
    } else if (dice < 95) {
      const Status status = directory->Sync(open_);
      for (size_t i = open_first_; status.ok() && i < known_.size(); ++i) known_[i].durable = true;
      Crash();  // commits or rolls back: either way a new transaction begins
    } else if (dice < 97) {
      (void)static_cast<StoreDirectoryImpl*>(directory)->catalogue()->Renew();
    } else if (!known_.empty()) {
      directory->Release(known_[random_() % known_.size()].locator);
    }
  }

  void Append(StoreDirectory* directory) {
    const Result<std::shared_ptr<Store>> store = directory->OpenForAppend({1 + random_() % 3}, "db/t");
    if (!store.ok()) return;
    Known known;
    known.seed = random_();
    known.text = random_() % 2 == 0;
    const uint64_t shape = random_() % 10;
    known.size_bytes = random_() % (shape < 5 ? 3000 : shape < 9 ? 40000 : 800000);
    AppendOptions options;
    options.codec = static_cast<Codec>(random_() % 3);
    options.part_size_bytes = static_cast<uint32_t>(512 + random_() % 70000);
    options.write_batch_bytes = random_() % 2 == 0 ? 4096 : 256 << 10;
    const Result<Locator> locator = (*store)->Append(known.Value(), options, &open_);
    if (!locator.ok()) return;
    known.locator = *locator;
    known_.push_back(known);
  }

  std::mt19937_64 random_;
  std::vector<Known> known_;
  UnsyncedExtents open_;
  size_t open_first_ = 0;
};

DirectoryOptions SmallSegments() {
  DirectoryOptions options = TestOptions();
  options.segment_size_bytes = 1 << 20;
  options.recent_cache_bytes = 64 << 10;
  return options;
}

TEST(StoreFaultTest, PowerCutsLoseNothingThatWasSynced) {
  size_t durable = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MemoryEnv memory;
    FaultEnv env(&memory);
    DirectoryOptions options = SmallSegments();
    options.zeroed_pool_bytes = seed % 2 == 0 ? 256 << 10 : 0;
    Session session(seed);
    for (uint64_t life = 0; life < 3; ++life) {
      std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
      session.Check(directory.get());
      if (testing::Test::HasFatalFailure()) return;
      session.Run(directory.get(), 40);
      session.Crash();
      CutPower(&memory, &env, life == 2 ? 0 : seed * 31 + life, &directory);
    }
    std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
    session.Check(directory.get());
    if (testing::Test::HasFatalFailure()) return;
    durable += session.durable_count();
  }
  EXPECT_GT(durable, 500U);  // the model did cover something
}

TEST(StoreFaultTest, ANthCallThatFailsLosesNothingThatWasSynced) {
  size_t durable = 0;
  for (const CallKind kind : {CallKind::kWrite, CallKind::kSync, CallKind::kCreate, CallKind::kSyncDirectory,
                              CallKind::kOpen, CallKind::kRead, CallKind::kTruncate}) {
    for (const int system_errno : {EIO, ENOSPC}) {
      for (const bool and_later : {false, true}) {
        for (const uint64_t n : {1, 4, 13}) {
          SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " errno " + std::to_string(system_errno) +
                       " later " + std::to_string(and_later) + " n " + std::to_string(n));
          MemoryEnv memory;
          FaultEnv env(&memory);
          Session session(n * 100 + static_cast<uint64_t>(kind));
          std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, SmallSegments()));
          session.Run(directory.get(), 15);
          env.FailCall(kind, n, system_errno, and_later);
          session.Run(directory.get(), 25);
          env.ClearFailures();
          session.Check(directory.get());  // the device works again: reads of what was durable do too
          session.Run(directory.get(), 10);
          session.Crash();
          CutPower(&memory, &env, n, &directory);
          directory = ValueOf(OpenDirectory(&env, SmallSegments()));
          session.Check(directory.get());
          if (testing::Test::HasFatalFailure()) return;
          durable += session.durable_count();
        }
      }
    }
  }
  EXPECT_GT(durable, 1000U);
}

TEST(StoreFaultTest, OpenThatFailsAnywhereLeavesNothingHalfMade) {
  for (const CallKind kind : {CallKind::kCreateDirectory, CallKind::kSyncDirectory, CallKind::kList, CallKind::kRead}) {
    for (uint64_t n = 1; n <= 6; ++n) {
      MemoryEnv memory;
      FaultEnv env(&memory);
      ASSERT_OK(memory.CreateDirectory("/disk1"));
      DirectoryOptions options = TestOptions();
      options.data_paths = {"/disk1"};
      env.FailCall(kind, n, EIO);
      const Result<std::unique_ptr<StoreDirectoryImpl>> opened = OpenDirectory(&env, options);
      env.ClearFailures();
      if (!opened.ok()) {
        EXPECT_FALSE(ValueOf(memory.FileExists("/home"))) << "kind " << static_cast<int>(kind) << " n " << n;
        EXPECT_FALSE(ValueOf(memory.FileExists("/disk1/quarry")));
      }
      EXPECT_OK(OpenDirectory(&env, options).status());
    }
  }
}

TEST(StoreFaultTest, ACreationThatFailsTakesNoSegmentNumber) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  const auto directory = ValueOf(OpenDirectory(&env, TestOptions()));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  for (const CallKind kind : {CallKind::kCreate, CallKind::kWrite, CallKind::kSync, CallKind::kSyncDirectory}) {
    for (int i = 0; i < 3; ++i) {
      env.FailCall(kind, 1, ENOSPC);
      EXPECT_FALSE(store->Append(RandomValue(5000, 1), {}, &unsynced).ok());
    }
  }
  EXPECT_EQ(ValueOf(store->Append(RandomValue(5000, 1), {}, &unsynced)).segment, SegmentNumber{1});
}

TEST(StoreFaultTest, AFolderThatCannotBeMadeTakesNoSegmentNumber) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  ASSERT_OK(memory.CreateDirectory("/disk1"));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1"};
  const auto directory = ValueOf(OpenDirectory(&env, options));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  for (const CallKind kind : {CallKind::kCreateDirectory, CallKind::kSyncDirectory}) {
    env.FailCall(kind, 1, ENOSPC);
    EXPECT_FALSE(store->Append(RandomValue(5000, 1), {}, &unsynced).ok());
  }
  EXPECT_EQ(ValueOf(store->Append(RandomValue(5000, 1), {}, &unsynced)).segment, SegmentNumber{1});
}

}  // namespace
}  // namespace quarry
