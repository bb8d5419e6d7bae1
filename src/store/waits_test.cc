// Who waits for whom: nobody for background work, and whoever waits for others can give up.
//
// Where one of these fails somebody waits for ever: then the test is ended from outside.
#include <atomic>
#include <set>
#include <thread>

#include "quarry/gc.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

/// Holds up chosen calls until it is opened.
class Gate {
 public:
  void Wait() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mutex_);
    while (waiting_ < count) changed_.Wait(mutex_);
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int waiting_ QUARRY_GUARDED_BY(mutex_) = 0;
  bool open_ QUARRY_GUARDED_BY(mutex_) = false;
};

class WaitsTest : public testing::Test {
 protected:
  void Open() {
    directory_ = ValueOf(StoreDirectoryImpl::Open(options_, {&env_, true}));
    store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  }
  void TearDown() override {
    gate_.Open();
    for (std::thread& thread : threads_) thread.join();
    env_.SetHook({});
    store_.reset();
  }
  Locator Commit(size_t size_bytes, uint64_t seed) {
    UnsyncedExtents unsynced;
    const Locator locator = ValueOf(store_->Append(RandomValue(size_bytes, seed), {}, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return locator;
  }
  void ExpectReadable(const std::vector<Locator>& locators, size_t size_bytes) {
    for (uint64_t i = 0; i < locators.size(); ++i) {
      EXPECT_TRUE(ValueOf(ReadValue(directory_.get(), locators[i])) == RandomValue(size_bytes, i)) << i;
    }
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  Gate gate_;
  std::atomic<int> ended_{0};
  std::vector<std::thread> threads_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::shared_ptr<Store> store_;
};

TEST_F(WaitsTest, CommitsGoOnHoweverLongMaintenanceIsPaused) {
  options_.zeroed_pool_bytes = 256 << 10;
  options_.segment_size_bytes = 2 << 20;
  Open();
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 50; ++i) locators.push_back(Commit(20000, i));
  directory_->PauseMaintenance();
  const Counters before = directory_->GetCounters();
  for (uint64_t i = 50; i < 1000; ++i) locators.push_back(Commit(20000, i));
  EXPECT_EQ(directory_->GetCounters().zero_bytes_written, before.zero_bytes_written) << "nothing of its own accord";
  EXPECT_EQ(env_.CountOf(CallKind::kTruncate), 0U);
  directory_->ResumeMaintenance();
  for (uint64_t i = 1000; i < 1200; ++i) {
    locators.push_back(Commit(20000, i));
    directory_->DrainMaintenance();
  }
  EXPECT_GT(directory_->GetCounters().zero_bytes_written, before.zero_bytes_written);
  ExpectReadable(locators, 20000);
}

TEST_F(WaitsTest, CommitsGoOnWhileZerosAreBeingWritten) {
  options_.zeroed_pool_bytes = 1 << 20;
  Open();
  const std::thread::id committer = std::this_thread::get_id();
  std::atomic<uint64_t> begin{0};
  std::atomic<uint64_t> end{0};
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kWrite) return Status::Ok();
    const uint64_t call_end = call.offset_bytes + call.size_bytes;
    if (std::this_thread::get_id() == committer) {
      EXPECT_TRUE(call_end <= begin || call.offset_bytes >= end) << call.offset_bytes << " meets the zeros";
    } else if (end == 0) {
      begin = call.offset_bytes;
      end = call_end;
      gate_.Wait();
    }
    return Status::Ok();
  });
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 10; ++i) locators.push_back(Commit(20000, i));
  gate_.AwaitWaiting(1);
  for (uint64_t i = 10; i < 200; ++i) locators.push_back(Commit(20000, i));
  EXPECT_GT(locators.back().offset_bytes, end) << "the zeros are passed by now";
  gate_.Open();
  directory_->DrainMaintenance();
  for (uint64_t i = 200; i < 300; ++i) locators.push_back(Commit(20000, i));
  directory_->DrainMaintenance();
  ExpectReadable(locators, 20000);
  CutPower(&memory_, &env_, 0, &directory_);
  Open();
  ExpectReadable(locators, 20000);
}

TEST_F(WaitsTest, ASealedSegmentIsNotHeldUpByItsZeros) {
  options_.zeroed_pool_bytes = 1 << 20;
  Open();
  const std::thread::id committer = std::this_thread::get_id();
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kWrite && std::this_thread::get_id() != committer) gate_.Wait();
    return Status::Ok();
  });
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 10; ++i) locators.push_back(Commit(20000, i));
  gate_.AwaitWaiting(1);
  directory_->FindStore(store_->id())->SealForGc();
  EXPECT_EQ(directory_->FindStore(store_->id())->SealedSegments().size(), 1U);
  gate_.Open();
  directory_->DrainMaintenance();
  const auto file = ValueOf(memory_.OpenForRead(SegmentPathOf(locators[0])));
  EXPECT_EQ(ValueOf(file->SizeBytes()), locators.back().offset_bytes + (20000 / 4096 + 1) * kBlockSizeBytes)
      << "who wrote the zeros cuts them off";
  ExpectReadable(locators, 20000);
}

/// Two data paths, of which one stands still; `fast_` and `slow_` are transactions that stay on theirs.
class SlowPathTest : public WaitsTest {
 protected:
  void SetUp() override {
    for (const char* path : {"/disk1", "/disk2"}) ASSERT_OK(memory_.CreateDirectory(path));
    options_.data_paths = {"/disk1", "/disk2"};
    options_.zeroed_pool_bytes = 256 << 10;
    Open();
    for (UnsyncedExtents* const unsynced : {&fast_, &slow_}) {
      (void)ValueOf(store_->Append(RandomValue(100, 1), {}, unsynced));
      ASSERT_OK(directory_->Sync(*unsynced));
    }
    env_.SetHook([this](const Call& call) {
      if (call.path.starts_with("/disk2") && call.kind != CallKind::kRead) gate_.Wait();
      return Status::Ok();
    });
  }
  /// In threads that end when the gate opens: as many as take all the memory there is for such appends.
  void AppendSlowly(int count, size_t size_bytes) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, i, size_bytes] {
        UnsyncedExtents unsynced = slow_;
        EXPECT_OK(store_->Append(RandomValue(size_bytes, static_cast<uint64_t>(i)), {}, &unsynced).status());
        EXPECT_OK(directory_->Sync(unsynced));
      });
    }
  }

  UnsyncedExtents fast_;
  UnsyncedExtents slow_;
};

TEST_F(SlowPathTest, OthersCommitBesideItWhateverMemoryItHolds) {
  AppendSlowly(40, 600 << 10);  // private: a write buffer each
  gate_.AwaitWaiting(30);
  for (uint64_t i = 0; i < 50; ++i) {
    for (const size_t size : {20000, 600 << 10}) {
      ASSERT_OK(store_->Append(RandomValue(size, i), {}, &fast_).status());
      ASSERT_OK(directory_->Sync(fast_));
    }
  }
}

TEST_F(SlowPathTest, OthersStageBesideItWhateverChunksItHolds) {
  AppendSlowly(60, 300 << 10);  // three fill a chunk
  gate_.AwaitWaiting(2);
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_OK(store_->Append(RandomValue(20000, i), {}, &fast_).status());
    ASSERT_OK(directory_->Sync(fast_));
  }
}

// The one thread of the directory is held up by it: that costs speed and space, and no commit.
TEST_F(SlowPathTest, OthersCommitWhileMaintenanceIsHeldUpByIt) {
  AppendSlowly(1, 20000);
  gate_.AwaitWaiting(1);
  ASSERT_TRUE(directory_->FindStore(store_->id()) != nullptr);
  directory_->RunMaintenance([this] { gate_.Wait(); });
  gate_.AwaitWaiting(2);
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_OK(store_->Append(RandomValue(8000, i), {}, &fast_).status());
    ASSERT_OK(directory_->Sync(fast_));
  }
}

class Killed : public Canceller {
 public:
  [[nodiscard]] bool IsCancelled() const override { return is_killed_; }
  void Kill(StoreDirectory* directory) {
    is_killed_ = true;
    directory->WakeWaiters();
  }

 private:
  std::atomic<bool> is_killed_{false};
};

TEST_F(WaitsTest, WhoFollowsAFlushCanGiveUpAndTheOthersAreServed) {
  Open();
  (void)Commit(100, 1);  // makes the segment
  std::atomic<int> appended{0};
  Killed killed;
  std::atomic<int> gave_up{0};
  std::atomic<int> served{0};
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kSync && call.path.ends_with(".qseg")) gate_.Wait();
    return Status::Ok();
  });
  const auto commit = [&](const Canceller* canceller) {
    threads_.emplace_back([&, canceller] {
      UnsyncedExtents unsynced(canceller);
      EXPECT_OK(store_->Append(RandomValue(5000, 3), {}, &unsynced).status());
      ++appended;
      const Status status = directory_->Sync(unsynced);
      if (status.ok()) {
        ++served;
      } else {
        EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
        ++gave_up;
      }
    });
  };
  commit(nullptr);  // leads
  gate_.AwaitWaiting(1);
  for (int i = 0; i < 4; ++i) commit(i % 2 == 0 ? &killed : nullptr);
  while (appended < 5) std::this_thread::yield();
  killed.Kill(directory_.get());
  while (gave_up < 2) std::this_thread::yield();
  EXPECT_EQ(served, 0);
  gate_.Open();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_EQ(served, 3);
}

TEST_F(SlowPathTest, WhoWaitsForMemoryCanGiveUp) {
  AppendSlowly(40, 600 << 10);
  gate_.AwaitWaiting(kWriteBufferBudgetBytes / (512 << 10));  // they have all there is
  Killed killed;
  std::atomic<int> began{0};
  std::vector<std::thread> waiting;
  for (const size_t size : {size_t{600 << 10}, size_t{700 << 10}}) {
    waiting.emplace_back([&, size] {
      UnsyncedExtents unsynced(&killed);
      for (const UnsyncedExtents::Entry& entry : slow_.entries()) unsynced.Add(entry);
      ++began;
      const auto locator = store_->Append(RandomValue(size, 1), {}, &unsynced);
      EXPECT_EQ(locator.status().code(), StatusCode::kCancelled) << locator.status().ToString();
    });
  }
  while (began < 2) std::this_thread::yield();
  killed.Kill(directory_.get());
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(WaitsTest, WhoNeedsADescriptorFlushesForNobody) {
  options_.open_files_max = kFlushThreadsMax + 1;
  Open();
  // Every flush thread hangs with a descriptor, and the last one is that of a lane that wants a flush.
  std::vector<UnsyncedExtents> hanging(kFlushThreadsMax + 1);
  for (uint64_t i = 0; i < hanging.size(); ++i) {
    const auto store = ValueOf(directory_->OpenForAppend({10 + i}, "db/hanging"));
    ASSERT_OK(store->Append(RandomValue(5000, i), {}, &hanging[i]).status());
  }
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kSync && call.path.ends_with(".qseg")) gate_.Wait();
    return Status::Ok();
  });
  for (size_t i = 0; i < kFlushThreadsMax; ++i) directory_->StartSync(&hanging[i]);
  gate_.AwaitWaiting(static_cast<int>(kFlushThreadsMax));
  class AskedThrice final : public Canceller {
   public:
    [[nodiscard]] bool IsCancelled() const override { return ++asked_ > 3; }

   private:
    mutable std::atomic<int> asked_{0};
  } canceller;
  UnsyncedExtents unsynced(&canceller);
  EXPECT_EQ(store_->Append(RandomValue(5000, 99), {}, &unsynced).status().code(), StatusCode::kCancelled);
  gate_.Open();
  for (const UnsyncedExtents& extents : hanging) EXPECT_OK(directory_->Sync(extents));
}

// Every flush thread is at work elsewhere. Others begin their commits while each flush runs: whoever led for them as
// well would not come to his own.
TEST_F(WaitsTest, WhoLeadsForLackOfAFlushThreadLeadsOneFlush) {
  Open();
  const std::string own_path = SegmentPathOf(Commit(100, 1));
  std::vector<UnsyncedExtents> hanging(kFlushThreadsMax);
  for (uint64_t i = 0; i < hanging.size(); ++i) {
    const auto store = ValueOf(directory_->OpenForAppend({10 + i}, "db/hanging"));
    ASSERT_OK(store->Append(RandomValue(5000, i), {}, &hanging[i]).status());
  }
  constexpr size_t kOthers = 20;
  std::vector<UnsyncedExtents> others;
  others.reserve(kOthers);
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kSync || !call.path.ends_with(".qseg")) return Status::Ok();
    if (call.path != own_path) {
      gate_.Wait();
    } else if (others.size() < kOthers) {
      others.emplace_back();
      EXPECT_OK(store_->Append(RandomValue(5000, others.size()), {}, &others.back()).status());
      directory_->StartSync(&others.back());
    }
    return Status::Ok();
  });
  for (UnsyncedExtents& extents : hanging) directory_->StartSync(&extents);
  gate_.AwaitWaiting(static_cast<int>(kFlushThreadsMax));
  UnsyncedExtents first;
  ASSERT_OK(store_->Append(RandomValue(5000, 99), {}, &first).status());
  directory_->StartSync(&first);
  EXPECT_EQ(others.size(), 1U) << "it led the flushes of those who came meanwhile";
  EXPECT_OK(directory_->Sync(first));
  for (size_t i = 0; i < others.size(); ++i) EXPECT_OK(directory_->Sync(others[i]));
  EXPECT_EQ(others.size(), kOthers);
  gate_.Open();
  for (const UnsyncedExtents& extents : hanging) EXPECT_OK(directory_->Sync(extents));
}

TEST_F(WaitsTest, ThoseWhoWaitForASegmentThatCannotBeMadeFailTogether) {
  Open();
  std::atomic<int> tries{0};
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kCreate || !call.path.ends_with(".qseg")) return Status::Ok();
    ++tries;
    gate_.Wait();
    return Status::FromErrno(ENOSPC, "create", call.path);
  });
  constexpr int kAppenders = 16;
  std::atomic<int> failed{0};
  std::atomic<int> begun{0};
  for (int i = 0; i < kAppenders; ++i) {
    threads_.emplace_back([&] {
      UnsyncedExtents unsynced;
      ++begun;
      if (store_->Append(RandomValue(5000, 1), {}, &unsynced).status().code() == StatusCode::kNoSpace) ++failed;
    });
  }
  while (begun < kAppenders) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // who comes later tries once more
  gate_.Open();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_EQ(failed, kAppenders);
  EXPECT_LT(tries, kAppenders / 2);
}

TEST_F(WaitsTest, GcStaysAwayFromAPathThatHangs) {
  options_.data_paths = {"/disk1", "/disk2"};
  for (const std::string& path : options_.data_paths) ASSERT_OK(memory_.CreateDirectory(path));
  Open();
  const Locator a = Commit(20000, 1);
  const Locator b = Commit(20000, 2);
  ASSERT_NE(a.segment, b.segment) << "one on each path";
  env_.SetHook([&](const Call& call) {
    if (call.path.starts_with("/disk1") && call.path.ends_with(".qseg")) gate_.Wait();
    return Status::Ok();
  });
  // One of the next two hangs. The other has to be over before the clock moves: else its path is slow as well.
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([this] {
      UnsyncedExtents unsynced;
      EXPECT_OK(store_->Append(RandomValue(5000, 3), {}, &unsynced).status());
      EXPECT_OK(directory_->Sync(unsynced));
      ++ended_;
    });
  }
  gate_.AwaitWaiting(1);
  while (ended_ == 0) std::this_thread::yield();
  memory_.AdvanceMicros(2 * PathHealth::kSlowMicros);
  const std::vector<StoreId> stores = {store_->id()};
  const auto pass = ValueOf(BeginGcPass(directory_.get(), stores));
  pass->Mark(a);
  pass->Mark(b);
  const GcStep step = ValueOf(pass->ReclaimSome(UINT64_MAX));
  EXPECT_TRUE(step.done);
  EXPECT_EQ(pass->report().segments, 1U);
  EXPECT_EQ(pass->report().segments_done, 1U);
}

TEST_F(WaitsTest, OtherTablesGoOnWhileTheTrashIsEmptied) {
  Open();
  const Locator dropped = Commit(30000, 1);
  ASSERT_OK(directory_->OpenForAppend({2}, "db/rebuilt").status());
  ASSERT_OK(directory_->OpenForAppend({3}, "db/dropped too").status());
  ASSERT_OK(directory_->Discard({1}, 5));
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kRemove) gate_.Wait();
    return Status::Ok();
  });
  std::atomic<uint64_t> given_back{0};
  std::atomic<bool> is_over{false};
  threads_.emplace_back([&] {
    given_back = ValueOf(directory_->EmptyTrash(5));
    is_over = true;
  });
  gate_.AwaitWaiting(1);
  ASSERT_OK(directory_->OpenForAppend({4}, "db/first value").status());
  ASSERT_OK(directory_->BeginRebind({2}, {5}));
  ASSERT_OK(directory_->Rebind({2}, {5}));
  ASSERT_OK(directory_->Discard({3}, 6));
  ASSERT_OK(directory_->Discard({1}, 6));  // it is going
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(5)), 0U) << "another call is at it";
  EXPECT_EQ(directory_->Find({1}).status().code(), StatusCode::kNotFound);
  const auto again = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  EXPECT_NE(again->id(), dropped.store);
  ASSERT_OK(directory_->SaveCounters());
  EXPECT_FALSE(is_over);
  gate_.Open();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_GT(given_back, 30000U);
  EXPECT_EQ(directory_->FindStore(dropped.store), nullptr);
  EXPECT_EQ(ValueOf(directory_->Find({1}))->id(), again->id());
}

TEST_F(WaitsTest, AStoreWhoseUnlinkingFailedIsThereForTheNextTry) {
  Open();
  const Locator dropped = Commit(30000, 1);
  ASSERT_OK(directory_->OpenForAppend({2}, "db/other").status());
  ASSERT_OK(directory_->Discard({1}, 5));
  ASSERT_OK(directory_->Discard({2}, 5));
  env_.FailCall(CallKind::kRemove, 1, EIO);
  EXPECT_FALSE(directory_->EmptyTrash(5).ok());
  env_.ClearFailures();
  ASSERT_OK(directory_->EmptyTrash(5).status());
  EXPECT_EQ(directory_->FindStore(dropped.store), nullptr);
  EXPECT_TRUE(directory_->ListStores().empty());
}

}  // namespace
}  // namespace quarry
