// StoreDirectory::ReadAhead: what other threads read, what they leave alone, and what becomes of reads that nobody
// takes. ReadOptions::report: which reads waited for a device.
#include "context/ahead_reads.h"

#include <condition_variable>
#include <mutex>

#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr size_t kValueBytes = 64 << 10;

class ReadAheadTest : public OneTableTest {
 protected:
  void SetUp() override {
    memory_.SetMemory({64ULL << 20, 0});
    options_.value_cache_bytes = 0;
    options_.recent_cache_bytes = 0;
    OpenWithThreads();
  }
  void TearDown() override { directory_.reset(); }
  void OpenWithThreads() {
    directory_.reset();
    directory_ = ValueOf(StoreDirectoryImpl::Open(options_, {&env_, true}));
  }
  /// Values of which none is in memory.
  std::vector<Locator> AppendCold(size_t count) {
    std::vector<Locator> locators;
    for (size_t seed = 0; seed < count; ++seed) locators.push_back(Append(kValueBytes, seed));
    EXPECT_OK(directory_->Sync(unsynced_));
    OpenWithThreads();
    return locators;
  }
  static std::vector<uint8_t> BytesOf(const ValueBuffer& value) { return {value.bytes().begin(), value.bytes().end()}; }
  Counters counters() { return directory_->GetCounters(); }
  std::unique_ptr<AheadRead> ReadAhead(const Locator& locator) { return directory_->ReadAhead(locator, {}); }
};

/// Holds all reads of segments from Close to Open.
class Gate {
 public:
  explicit Gate(FaultEnv* env) {
    env->SetHook([this](const Call& call) {
      if (call.kind != CallKind::kRead) return Status::Ok();
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
      return Status::Ok();
    });
  }
  void WaitFor(size_t reads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= reads; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t waiting_ = 0;
  bool open_ = false;
};

TEST_F(ReadAheadTest, TheReaderGetsWhatAnotherThreadRead) {
  const std::vector<Locator> locators = AppendCold(4);
  std::vector<std::unique_ptr<AheadRead>> reads;
  Gate gate(&env_);
  for (const Locator& locator : locators) reads.push_back(ReadAhead(locator));
  gate.WaitFor(1);  // by none of this thread
  for (const std::unique_ptr<AheadRead>& read : reads) ASSERT_NE(read, nullptr);
  gate.Open();
  size_t taken = 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    const ValueBuffer value = reads[i]->Take();
    if (value.empty()) continue;  // no thread had come to it
    ++taken;
    EXPECT_EQ(BytesOf(value), RandomValue(kValueBytes, i));
  }
  EXPECT_GE(taken, 1U);
  EXPECT_EQ(counters().read_ahead_values, taken);
  EXPECT_EQ(counters().read_ahead_bytes, taken * kValueBytes);
  EXPECT_EQ(counters().extents_read, taken);
  EXPECT_EQ(counters().read_ahead_unused, 0U);
}

TEST_F(ReadAheadTest, NobodyWaitsForAReadThatNoThreadHasBegun) {
  const std::vector<Locator> locators = AppendCold(AheadReads::kThreadsMax + 1);
  Gate gate(&env_);
  std::vector<std::unique_ptr<AheadRead>> reads;
  for (const Locator& locator : locators) reads.push_back(ReadAhead(locator));
  ASSERT_NE(reads.back(), nullptr);
  EXPECT_TRUE(reads.back()->Take().empty());
  gate.Open();
  directory_->DrainReadsAhead();
  EXPECT_EQ(counters().read_ahead_values, AheadReads::kThreadsMax);
}

TEST_F(ReadAheadTest, WhatNobodyTakesIsCounted) {
  const std::vector<Locator> locators = AppendCold(2);
  Gate gate(&env_);
  std::unique_ptr<AheadRead> while_it_reads = ReadAhead(locators[0]);
  gate.WaitFor(1);
  while_it_reads.reset();
  gate.Open();
  directory_->DrainReadsAhead();
  std::unique_ptr<AheadRead> when_it_was_read = ReadAhead(locators[1]);
  directory_->DrainReadsAhead();
  when_it_was_read.reset();
  EXPECT_EQ(counters().read_ahead_values, 2U);
  EXPECT_EQ(counters().read_ahead_unused, 2U);
}

TEST_F(ReadAheadTest, WhatIsInMemoryIsNotReadAhead) {
  options_.recent_cache_bytes = 16 << 20;
  OpenWithThreads();
  const Locator recent = Append(kValueBytes, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  EXPECT_EQ(ReadAhead(recent), nullptr);
  options_.value_cache_bytes = 8 << 20;
  OpenWithThreads();
  const std::unique_ptr<AheadRead> cold = ReadAhead(recent);
  ASSERT_NE(cold, nullptr);
  directory_->DrainReadsAhead();
  EXPECT_EQ(ReadAhead(recent), nullptr) << "it went into the value cache";
  EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), recent)), RandomValue(kValueBytes, 1));
  EXPECT_EQ(counters().cache_hits, 1U);
}

TEST_F(ReadAheadTest, DamageIsLeftToTheReader) {
  const Locator locator = AppendCold(1)[0];
  ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + locator.extent_size_bytes / 2, 3));
  std::unique_ptr<AheadRead> read = ReadAhead(locator);
  directory_->DrainReadsAhead();
  EXPECT_TRUE(read->Take().empty());
  EXPECT_EQ(ReadInBuffer(directory_.get(), locator).status().code(), StatusCode::kCorruption);
  env_.FailCall(CallKind::kRead, 1, EIO, true);
  read = ReadAhead(locator);
  directory_->DrainReadsAhead();
  EXPECT_TRUE(read->Take().empty());
}

TEST_F(ReadAheadTest, HeadsThatLeadNowhereDoNoHarm) {
  const Locator good = AppendCold(1)[0];
  std::vector<Locator> heads(5, good);
  heads[0].store = StoreId{99};
  heads[1].segment = SegmentNumber{99};
  heads[2].offset_bytes = UINT64_MAX - 7;
  heads[3].offset_bytes += 1ULL << 30;  // beyond the file
  heads[4].extent_size_bytes = UINT64_MAX;
  for (const Locator& head : heads) {
    const std::unique_ptr<AheadRead> read = ReadAhead(head);
    directory_->DrainReadsAhead();
    EXPECT_TRUE(read == nullptr || read->Take().empty());
    EXPECT_FALSE(ReadInBuffer(directory_.get(), head).ok());
  }
}

TEST_F(ReadAheadTest, TheDirectoryClosesWhileReadsWait) {
  const std::vector<Locator> locators = AppendCold(3 * AheadReads::kThreadsMax);
  for (const Locator& locator : locators) (void)ReadAhead(locator);
  directory_.reset();
}

TEST_F(ReadAheadTest, ThreadsBeginAndEndAsTheirOwnerWants) {
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  options_.read_thread_hooks = {[&] { ++begun; }, [&] { ++ended; }};
  const Locator locator = AppendCold(1)[0];
  const std::unique_ptr<AheadRead> read = ReadAhead(locator);
  directory_->DrainReadsAhead();
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 0);
  (void)read->Take();
  directory_.reset();
  EXPECT_EQ(ended, 1);
}

TEST_F(ReadAheadTest, TheFirstReadOfALargeValueWaitsForTheDevice) {
  const std::vector<Locator> locators = AppendCold(1);
  const auto waits = [&](const Locator& locator) {
    ReadReport report;
    ReadOptions options;
    options.report = &report;
    EXPECT_OK(directory_->ReadValue(locator, options).status());
    return report.waited_for_device;
  };
  EXPECT_TRUE(waits(locators[0]));
  EXPECT_FALSE(waits(locators[0])) << "it was read lately";
  const Locator small = Append(PageCacheRule::kAroundMinBytes / 2, 1);
  ASSERT_OK(directory_->Sync(unsynced_));
  EXPECT_FALSE(waits(small)) << "nobody keeps a record of these";
  options_.value_cache_bytes = 8 << 20;
  OpenWithThreads();
  EXPECT_TRUE(waits(locators[0])) << "into the value cache";
  EXPECT_FALSE(waits(locators[0])) << "from there";
}

}  // namespace
}  // namespace quarry
