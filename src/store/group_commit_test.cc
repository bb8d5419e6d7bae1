// Group commit: who shares a flush, what a failed flush does to whom, and that nobody waits for ever.
#include <atomic>
#include <thread>

#include "io/fault_env.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr TableId kTable{1};

/// Lets a test hold back flushes: Sync calls block while the gate is shut.
class Gate {
 public:
  void Shut() {
    MutexLock lock(mutex_);
    shut_ = true;
  }
  void Open() {
    MutexLock lock(mutex_);
    shut_ = false;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (shut_) changed_.Wait(mutex_);
    --waiting_;
  }
  void AwaitWaiting() {
    MutexLock lock(mutex_);
    while (waiting_ == 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool shut_ QUARRY_GUARDED_BY(mutex_) = false;
  int waiting_ QUARRY_GUARDED_BY(mutex_) = 0;
};

/// Any extent larger than this batch is written by its own appender.
constexpr AppendOptions kPrivate{.write_batch_bytes = 64U << 10};

class GroupCommitTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = ValueOf(OpenDirectory(&env_, TestOptions()));
    store_ = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
    UnsyncedExtents first;  // the segment is made now, not in the middle of a test
    (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &first));
    ASSERT_OK(directory_->Sync(first));
    env_.SetHook([this](const Call& call) {
      if (call.kind == CallKind::kSync) gate_.Pass();
      return Status::Ok();
    });
  }
  void TearDown() override {
    gate_.Open();
    env_.SetHook({});
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  Gate gate_;
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::shared_ptr<Store> store_;
};

// The flush of the first has begun, but has not come to fdatasync, when another's write fails: nothing is flushed in
// that file any more, so the first is lost as well and must hear it.
TEST_F(GroupCommitTest, AWriteThatFailsUnderARunningFlushTakesItsCommitterAlong) {
  UnsyncedExtents first;
  (void)ValueOf(store_->Append(RandomValue(5000, 2), {}, &first));
  bool began = false;
  UnsyncedExtents second;
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kWrite) return Status::Ok();
    if (began) return Status::FromErrno(EIO, "write", call.path);
    began = true;
    EXPECT_FALSE(store_->Append(RandomValue(400000, 3), kPrivate, &second).ok());
    return Status::Ok();
  });
  EXPECT_FALSE(directory_->Sync(first).ok());
  EXPECT_TRUE(began);
  env_.SetHook({});
  EXPECT_EQ(directory_->GetCounters().segments_poisoned, 1U);
}

// The fdatasync of the first is under way when another's write fails: the flush succeeds, and the segment stays
// poisoned.
TEST_F(GroupCommitTest, AFlushThatSucceedsDoesNotHealASegmentThatFailedMeanwhile) {
  UnsyncedExtents first;
  const Locator locator = ValueOf(store_->Append(RandomValue(5000, 2), {}, &first));
  bool began = false;
  UnsyncedExtents second;
  env_.SetHook([&](const Call& call) {
    if (began) return call.kind == CallKind::kWrite ? Status::FromErrno(EIO, "write", call.path) : Status::Ok();
    if (call.kind != CallKind::kSync) return Status::Ok();
    began = true;
    EXPECT_FALSE(store_->Append(RandomValue(400000, 3), kPrivate, &second).ok());
    return Status::Ok();
  });
  EXPECT_FALSE(directory_->Sync(first).ok()) << "nobody knows what the write that failed has spoilt";
  EXPECT_TRUE(began);
  env_.SetHook({});
  for (const std::shared_ptr<Segment>& segment : static_cast<StoreImpl*>(store_.get())->AllSegments()) {
    if (segment->number() != locator.segment) continue;
    EXPECT_EQ(segment->state(), SegmentState::kPoisoned);
  }
}

TEST_F(GroupCommitTest, EightCommittersBehindARunningFlushShareTheNext) {
  for (const size_t size : {size_t{5000}, size_t{400000}}) {  // staged and private
    const uint64_t flushes_before = directory_->GetCounters().flushes;
    const uint64_t syncs_before = env_.CountOf(CallKind::kSync);
    gate_.Shut();
    std::thread leader([&] {
      UnsyncedExtents unsynced;
      (void)ValueOf(store_->Append(RandomValue(size, 2), {}, &unsynced));
      EXPECT_OK(directory_->Sync(unsynced));
    });
    gate_.AwaitWaiting();
    constexpr int kCommitters = 8;
    std::vector<UnsyncedExtents> unsynced(kCommitters);
    std::vector<Locator> locators;
    for (int i = 0; i < kCommitters; ++i) {
      locators.push_back(ValueOf(
          store_->Append(RandomValue(size, 100 + static_cast<uint64_t>(i)), {}, &unsynced[static_cast<size_t>(i)])));
    }
    std::vector<std::thread> committers;
    for (int i = 0; i < kCommitters; ++i) {
      committers.emplace_back([&, i] { EXPECT_OK(directory_->Sync(unsynced[static_cast<size_t>(i)])); });
    }
    gate_.Open();
    leader.join();
    for (std::thread& committer : committers) committer.join();
    EXPECT_EQ(env_.CountOf(CallKind::kSync) - syncs_before, 2U);
    EXPECT_EQ(directory_->GetCounters().flushes - flushes_before, 2U);
    for (int i = 0; i < kCommitters; ++i) {
      EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[static_cast<size_t>(i)])),
                RandomValue(size, 100 + static_cast<uint64_t>(i)));
    }
  }
}

TEST_F(GroupCommitTest, ACommitAfterItsFlushNeedsNoOther) {
  UnsyncedExtents first;
  UnsyncedExtents second;
  (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &first));
  (void)ValueOf(store_->Append(RandomValue(100, 2), {}, &second));
  const uint64_t before = env_.CountOf(CallKind::kSync);
  ASSERT_OK(directory_->Sync(first));
  ASSERT_OK(directory_->Sync(second));
  ASSERT_OK(directory_->Sync(first));
  ASSERT_OK(store_->SyncAll());
  EXPECT_EQ(env_.CountOf(CallKind::kSync) - before, 1U);
}

TEST_F(GroupCommitTest, AFlushThatStartedBeforeDoesNotCount) {
  gate_.Shut();
  UnsyncedExtents first;
  (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &first));
  std::thread leader([&] { EXPECT_OK(directory_->Sync(first)); });
  gate_.AwaitWaiting();
  // Appended while the flush runs: a power cut right after that flush may lose it, so its commit must flush again.
  UnsyncedExtents late;
  const Locator locator = ValueOf(store_->Append(RandomValue(400000, 2), kPrivate, &late));
  gate_.Open();
  leader.join();
  const uint64_t before = env_.CountOf(CallKind::kSync);
  ASSERT_OK(directory_->Sync(late));
  EXPECT_EQ(env_.CountOf(CallKind::kSync) - before, 1U);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), RandomValue(400000, 2));
}

TEST_F(GroupCommitTest, AFailedFlushFailsItsWaitersAndPoisonsTheSegmentAlone) {
  UnsyncedExtents durable;
  const Locator kept = ValueOf(store_->Append(RandomValue(3000, 1), {}, &durable));
  ASSERT_OK(directory_->Sync(durable));
  UnsyncedExtents lost;
  const Locator gone = ValueOf(store_->Append(RandomValue(3000, 2), {}, &lost));
  env_.FailCall(CallKind::kSync, 1, EIO);
  const Status failed = directory_->Sync(lost);
  EXPECT_EQ(failed.code(), StatusCode::kIoError);
  EXPECT_EQ(failed.system_errno(), EIO);
  EXPECT_EQ(directory_->GetCounters().segments_poisoned, 1U);
  EXPECT_EQ(directory_->GetCounters().flush_errors, 1U);
  // Never trusted again, however often it is asked for, though the device works now.
  EXPECT_FALSE(directory_->Sync(lost).ok());
  EXPECT_OK(directory_->Sync(durable));
  UnsyncedExtents next;
  const Locator after = ValueOf(store_->Append(RandomValue(3000, 3), {}, &next));
  EXPECT_NE(after.segment, gone.segment);
  ASSERT_OK(directory_->Sync(next));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(3000, 1));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), after)), RandomValue(3000, 3));
  // A DDL that trusts SyncAll alone hears of the loss, once.
  EXPECT_FALSE(store_->SyncAll().ok());
  EXPECT_OK(store_->SyncAll());
}

TEST_F(GroupCommitTest, ALateExtentOfAPoisonedSegmentIsPoisoned) {
  gate_.Shut();
  env_.FailCall(CallKind::kSync, 1, EIO);
  UnsyncedExtents first;
  (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &first));
  std::thread leader([&] { EXPECT_EQ(directory_->Sync(first).code(), StatusCode::kIoError); });
  gate_.AwaitWaiting();
  UnsyncedExtents late;
  (void)ValueOf(store_->Append(RandomValue(100, 2), {}, &late));
  gate_.Open();
  leader.join();
  EXPECT_EQ(directory_->Sync(late).code(), StatusCode::kPoisoned);
}

TEST_F(GroupCommitTest, AFullDiskFailsTheStatementAndTheLaneGoesOn) {
  UnsyncedExtents durable;
  const Locator kept = ValueOf(store_->Append(RandomValue(3000, 1), {}, &durable));
  ASSERT_OK(directory_->Sync(durable));
  // Private: the append itself fails, and nobody else notices.
  UnsyncedExtents staged;
  const Locator beside = ValueOf(store_->Append(RandomValue(3000, 2), {}, &staged));
  env_.FailCall(CallKind::kWrite, 1, ENOSPC);
  UnsyncedExtents none;
  EXPECT_EQ(store_->Append(RandomValue(400000, 3), kPrivate, &none).status().code(), StatusCode::kNoSpace);
  EXPECT_TRUE(none.empty());
  ASSERT_OK(directory_->Sync(staged));
  EXPECT_EQ(directory_->GetCounters().segments_poisoned, 0U);
  // Staged: the commit fails.
  UnsyncedExtents lost;
  (void)ValueOf(store_->Append(RandomValue(3000, 4), {}, &lost));
  env_.FailCall(CallKind::kWrite, 1, ENOSPC);
  EXPECT_EQ(directory_->Sync(lost).code(), StatusCode::kNoSpace);
  UnsyncedExtents next;
  const Locator after = ValueOf(store_->Append(RandomValue(3000, 5), {}, &next));
  ASSERT_OK(directory_->Sync(next));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), kept)), RandomValue(3000, 1));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), beside)), RandomValue(3000, 2));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), after)), RandomValue(3000, 5));
}

TEST_F(GroupCommitTest, ATransactionOverSeveralStoresWaitsForAll) {
  UnsyncedExtents unsynced;
  std::vector<Locator> locators;
  for (uint64_t table = 1; table <= 3; ++table) {
    const auto store = ValueOf(directory_->OpenForAppend({table}, "db/t"));
    locators.push_back(ValueOf(store->Append(RandomValue(2000, table), {}, &unsynced)));
  }
  ASSERT_OK(directory_->Sync(unsynced));
  const DirectoryOptions options = TestOptions();
  env_.SetHook({});
  store_.reset();
  CutPower(&memory_, &env_, 0, &directory_);
  directory_ = ValueOf(OpenDirectory(&env_, options));
  for (uint64_t table = 1; table <= 3; ++table) {
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[table - 1])), RandomValue(2000, table));
  }
}

TEST_F(GroupCommitTest, ABlockThatWasFlushedIsNeverWrittenAgain) {
  std::map<std::string, std::map<uint64_t, bool>> flushed;  // by path and block
  std::atomic<bool> again{false};
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kWrite) {
      for (uint64_t at = call.offset_bytes; at < call.offset_bytes + call.size_bytes; at += kBlockSizeBytes) {
        if (!flushed[call.path].emplace(at, false).second) again = true;
      }
    }
    return Status::Ok();
  });
  AppendOptions options;
  for (uint64_t i = 0; i < 300; ++i) {
    UnsyncedExtents unsynced;
    options.codec = static_cast<Codec>(i % 3);
    (void)ValueOf(store_->Append(TextValue(i * i * 7 % 900000, i), options, &unsynced));
    if (i % 3 == 0) ASSERT_OK(directory_->Sync(unsynced));
  }
  env_.SetHook({});
  EXPECT_GT(flushed.size(), 0U);
  EXPECT_FALSE(again) << "a block was written twice";
}

class SealingTest : public OneTableTest {};

// The last run of a segment is the next flush's, and is still being written when the flush before it ends: the segment
// is not complete before it is on the disk.
TEST_F(SealingTest, ASegmentIsSealedWhenItsLastRunIsFlushed) {
  options_.segment_size_bytes = 1 << 20;
  Open();
  const Locator first = Append(5000, 1);
  const auto store = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
  const auto segment = static_cast<StoreImpl*>(store.get())->FindSegment(first.segment);
  Gate gate;
  UnsyncedExtents second;
  std::thread next;
  std::atomic<int> writes{0};
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kWrite) return Status::Ok();
    const int write = ++writes;
    if (write == 1) {
      // The flush has begun. The segment gets one run more, and then another begins.
      EXPECT_EQ(ValueOf(store->Append(RandomValue(5000, 2), {}, &second)).segment, first.segment);
      gate.Shut();
      next = std::thread([&] { EXPECT_OK(store->Append(RandomValue(900000, 3), kPrivate, &second).status()); });
      gate.AwaitWaiting();
    } else if (write == 2) {
      gate.Pass();
    }
    return Status::Ok();
  });
  EXPECT_OK(directory_->Sync(unsynced_));
  EXPECT_EQ(segment->state(), SegmentState::kActive) << "its last run is not written";
  gate.Open();
  next.join();
  env_.SetHook({});
  EXPECT_OK(directory_->Sync(second));
  EXPECT_EQ(segment->state(), SegmentState::kSealed);
}

// ---- flushes that StartSync begins ----

class StartSyncTest : public GroupCommitTest {
 protected:
  void SetUp() override {
    GroupCommitTest::SetUp();
    store_.reset();
    directory_.reset();
    directory_ = ValueOf(StoreDirectoryImpl::Open(TestOptions(), {&env_, true}));
    store_ = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
    UnsyncedExtents first;  // the segment is made now
    (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &first));
    ASSERT_OK(directory_->Sync(first));
    before_ = directory_->GetCounters();
  }
  UnsyncedExtents Append(uint64_t seed) {
    UnsyncedExtents unsynced;
    (void)ValueOf(store_->Append(RandomValue(3000, seed), {}, &unsynced));
    return unsynced;
  }
  [[nodiscard]] uint64_t Flushes() const { return directory_->GetCounters().flushes - before_.flushes; }
  [[nodiscard]] uint64_t Committers() const {
    return directory_->GetCounters().committers_flushed - before_.committers_flushed;
  }
  Counters before_;
};

TEST_F(StartSyncTest, TheFlushRunsWhileItsCallerGoesOn) {
  gate_.Shut();
  UnsyncedExtents unsynced = Append(2);
  directory_->StartSync(&unsynced);
  gate_.AwaitWaiting();  // another thread is in fdatasync
  EXPECT_EQ(Flushes(), 0U);
  gate_.Open();
  ASSERT_OK(directory_->Sync(unsynced));
  EXPECT_EQ(Flushes(), 1U);
  EXPECT_EQ(Committers(), 1U) << "a committer counts once";
  directory_->StartSync(&unsynced);
  ASSERT_OK(directory_->Sync(unsynced));
  EXPECT_EQ(Flushes(), 1U);
}

TEST_F(StartSyncTest, SyncWaitsForItsEnd) {
  gate_.Shut();
  UnsyncedExtents unsynced = Append(2);
  directory_->StartSync(&unsynced);
  gate_.AwaitWaiting();
  std::atomic<bool> done{false};
  std::thread committer([&] {
    EXPECT_OK(directory_->Sync(unsynced));
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(done);
  gate_.Open();
  committer.join();
}

TEST_F(StartSyncTest, AFailureIsHeardBySync) {
  env_.FailCall(CallKind::kSync, 1, EIO);
  UnsyncedExtents lost = Append(2);
  directory_->StartSync(&lost);
  EXPECT_EQ(directory_->Sync(lost).code(), StatusCode::kIoError);
  UnsyncedExtents next = Append(3);
  directory_->StartSync(&next);
  EXPECT_OK(directory_->Sync(next));
}

TEST_F(StartSyncTest, WhoComesBehindARunningFlushGetsTheNextWithoutWaitingForIt) {
  gate_.Shut();
  UnsyncedExtents first = Append(2);
  directory_->StartSync(&first);
  gate_.AwaitWaiting();
  std::vector<UnsyncedExtents> others;
  for (uint64_t i = 0; i < 5; ++i) others.push_back(Append(10 + i));
  for (UnsyncedExtents& other : others) directory_->StartSync(&other);
  gate_.Open();
  while (Flushes() < 2) std::this_thread::yield();  // nobody called Sync
  for (const UnsyncedExtents& other : others) EXPECT_OK(directory_->Sync(other));
  EXPECT_OK(directory_->Sync(first));
  EXPECT_EQ(Flushes(), 2U);
  EXPECT_EQ(Committers(), 6U);
}

TEST_F(StartSyncTest, WhatIsAppendedBehindTheStartNeedsAnotherFlush) {
  gate_.Shut();
  UnsyncedExtents unsynced = Append(2);
  directory_->StartSync(&unsynced);
  gate_.AwaitWaiting();
  const Locator late = ValueOf(store_->Append(RandomValue(5000, 3), {}, &unsynced));
  gate_.Open();
  directory_->StartSync(&unsynced);
  ASSERT_OK(directory_->Sync(unsynced));
  EXPECT_EQ(Flushes(), 2U);
  env_.SetHook({});
  store_.reset();
  CutPower(&memory_, &env_, 0, &directory_);
  directory_ = ValueOf(OpenDirectory(&env_, TestOptions()));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), late)), RandomValue(5000, 3));
}

TEST_F(StartSyncTest, ALeaderWhoIsDoneLeavesTheNextFlushToOthers) {
  gate_.Shut();
  const UnsyncedExtents first = Append(2);
  std::thread leader([&] { EXPECT_OK(directory_->Sync(first)); });
  gate_.AwaitWaiting();
  UnsyncedExtents second = Append(3);
  directory_->StartSync(&second);
  const UnsyncedExtents third = Append(4);
  std::thread waiter([&] { EXPECT_OK(directory_->Sync(third)); });
  gate_.Open();
  leader.join();
  waiter.join();
  EXPECT_OK(directory_->Sync(second));
  EXPECT_EQ(Flushes(), 2U);
}

TEST_F(StartSyncTest, NobodyNeedsToCallSync) {
  for (uint64_t i = 0; i < 50; ++i) {
    UnsyncedExtents unsynced = Append(i);
    directory_->StartSync(&unsynced);  // and its transaction rolls back
  }
  store_.reset();
  directory_.reset();
}

}  // namespace
}  // namespace quarry
