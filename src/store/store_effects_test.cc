// What the knobs do, by what reaches the device: batches, part size, the recent cache, the zeroed pool, the tail.
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "io/fault_env.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

class StoreEffectsTest : public testing::Test {
 protected:
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  Locator Append(std::span<const uint8_t> value, const AppendOptions& options = {}) {
    UnsyncedExtents unsynced;
    const Locator locator = ValueOf(ValueOf(directory_->OpenForAppend({1}, "db/t"))->Append(value, options, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return locator;
  }
  uint64_t FileSize(const std::string& name) {
    return ValueOf(ValueOf(memory_.OpenForRead("/home/stores/0000000000000001/" + name))->SizeBytes());
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

TEST_F(StoreEffectsTest, TheWriteBatchSetsSizeAndNumberOfWrites) {
  Open();
  Append(RandomValue(10, 1));  // makes the segment
  const std::vector<uint8_t> value = RandomValue(4 << 20, 1);
  for (const uint32_t batch : {64U << 10, 256U << 10, 1U << 20}) {
    uint64_t largest = 0;
    env_.SetHook([&](const Call& call) {
      if (call.kind == CallKind::kWrite) largest = std::max(largest, call.size_bytes);
      return Status::Ok();
    });
    const uint64_t before = env_.CountOf(CallKind::kWrite);
    AppendOptions options;
    options.write_batch_bytes = batch;
    Append(value, options);
    env_.SetHook({});
    EXPECT_EQ(largest, batch);
    EXPECT_EQ(env_.CountOf(CallKind::kWrite) - before, (4U << 20) / batch + 1);
  }
}

TEST_F(StoreEffectsTest, SmallExtentsOfOneCommitAreOneWrite) {
  Open();
  Append(RandomValue(10, 1));
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  const uint64_t before = env_.CountOf(CallKind::kWrite);
  for (uint64_t i = 0; i < 100; ++i) (void)ValueOf(store->Append(RandomValue(5000, i), {}, &unsynced));
  ASSERT_OK(directory_->Sync(unsynced));
  EXPECT_EQ(env_.CountOf(CallKind::kWrite) - before, 1U);
}

TEST_F(StoreEffectsTest, TheReadBatchSetsTheNumberOfSubmissions) {
  options_.recent_cache_bytes = 0;
  Open();
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    AppendOptions options;
    options.codec = codec;
    options.part_size_bytes = kPartSizeNdbMaxBytes;
    const std::vector<uint8_t> value = RandomValue(1 << 20, 1);
    const Locator locator = Append(value, options);
    uint64_t last = UINT64_MAX;
    for (const uint32_t batch : {16U << 10, 128U << 10, 2U << 20}) {
      const uint64_t before = env_.CountOf(CallKind::kRead);
      const ReadOptions read_options{.read_batch_bytes = batch, .page_cache = PageCacheUse::kAll};
      ASSERT_EQ(ValueOf(ReadValue(directory_.get(), locator, read_options)), value);
      const uint64_t submissions = env_.CountOf(CallKind::kRead) - before;
      EXPECT_LT(submissions, last);
      EXPECT_GE(submissions, (1U << 20) / batch);
      last = submissions;
    }
    EXPECT_EQ(last, 1U);
  }
}

TEST_F(StoreEffectsTest, TheFirstReadOfWhatIsLargeGoesAroundThePageCacheWhereMemoryIsShort) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  memory_.SetMemory({64ULL << 20, 0});
  Open();
  const Locator large = Append(RandomValue(100000, 1), {.write_batch_bytes = kBatchMinBytes});
  const Locator small = Append(RandomValue(20000, 2), {.write_batch_bytes = kBatchMinBytes});
  const auto goes_around = [&](const Locator& locator) {
    const Counters before = directory_->GetCounters();
    EXPECT_OK(ReadInBuffer(directory_.get(), locator, {}).status());
    EXPECT_EQ(directory_->GetCounters().read_submissions, before.read_submissions + 1);
    return directory_->GetCounters().direct_read_submissions > before.direct_read_submissions;
  };
  EXPECT_TRUE(goes_around(large));
  EXPECT_FALSE(goes_around(large));
  EXPECT_FALSE(goes_around(small));
  memory_.SetMemory({64ULL << 20, 32ULL << 20});
  Open();
  EXPECT_FALSE(goes_around(large)) << "memory is free";
}

TEST_F(StoreEffectsTest, WhatTheValueCacheTakesInAtOnceIsNotInThePageCacheToo) {
  options_.recent_cache_bytes = 0;
  memory_.SetMemory({64ULL << 20, 32ULL << 20});
  Open();
  const Locator locator = Append(RandomValue(100000, 1), {.write_batch_bytes = kBatchMinBytes});
  EXPECT_OK(ReadInBuffer(directory_.get(), locator, {}).status());
  EXPECT_EQ(directory_->GetCounters().cache_admissions, 1U);
  EXPECT_EQ(directory_->GetCounters().direct_read_submissions, 1U);
}

TEST_F(StoreEffectsTest, WhatThePageCacheHoldsDamagedIsReadOnceMoreFromTheDevice) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  const std::vector<uint8_t> value = RandomValue(20000, 1);
  const Locator locator = Append(value, {.write_batch_bytes = kBatchMinBytes});
  // Wrong in the first read, and right in the one after it.
  uint64_t reads = 0;
  env_.SetHook([&](const Call& call) {
    if (call.kind == CallKind::kRead && reads++ < 2) {
      EXPECT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + 1000, 3));
    }
    return Status::Ok();
  });
  EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), locator, {})), value);
  EXPECT_EQ(directory_->GetCounters().page_cache_corruptions, 1U);
  EXPECT_EQ(directory_->GetCounters().corruptions, 0U);
  const std::vector<std::string> notices = directory_->TakeNotices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("page cache"), std::string::npos) << notices[0];
  // Of the device itself it is damage.
  reads = 1;
  EXPECT_EQ(ReadInBuffer(directory_.get(), locator, {}).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(directory_->GetCounters().page_cache_corruptions, 1U);
  EXPECT_EQ(directory_->GetCounters().corruptions, 1U);
}

TEST_F(StoreEffectsTest, ReadsAroundThePageCacheGiveTheSameBytes) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  // Extents that begin and end anywhere in a block; longer than a slot, than two, than a read batch; every codec.
  for (const size_t size : {1, 100, 4096, 50000, 511 << 10, 512 << 10, 513 << 10, 1100 << 10, 3000000}) {
    for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
      const std::vector<uint8_t> value = RandomValue(size, static_cast<uint32_t>(size));
      const Locator locator = Append(value, {.codec = codec, .write_batch_bytes = kBatchMinBytes});
      for (const uint32_t batch : {kBatchMinBytes, 100000U, kReadBatchDefaultBytes, kBatchMaxBytes}) {
        const ReadOptions options{.read_batch_bytes = batch, .page_cache = PageCacheUse::kNone};
        ASSERT_EQ(ValueOf(ReadValue(directory_.get(), locator, options)), value) << size << " " << batch;
        ASSERT_EQ(ValueOf(ReadInBuffer(directory_.get(), locator, options)), value) << size << " " << batch;
        const size_t begin = size / 3;
        std::vector<uint8_t> range(size / 2);
        ASSERT_OK(directory_->ReadRange(locator, begin, options, range));
        ASSERT_TRUE(std::equal(range.begin(), range.end(), value.begin() + static_cast<ptrdiff_t>(begin)));
      }
    }
  }
  const Counters counters = directory_->GetCounters();
  EXPECT_EQ(counters.direct_read_submissions, counters.read_submissions);
}

TEST_F(StoreEffectsTest, AValueReadAroundThePageCacheStaysInTheBufferThatTheDeviceFilled) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  constexpr size_t kValues = kDirectSlots + 8;  // more than there are buffers to keep
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < kValues; ++i) {
    locators.push_back(Append(RandomValue(100000 + i, i), {.write_batch_bytes = kBatchMinBytes}));
  }
  const uint64_t written = directory_->GetCounters().buffer_bytes;
  std::vector<ValueBuffer> held;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kValues; ++i) {
      held.push_back(ValueOf(directory_->ReadValue(locators[i], {.page_cache = PageCacheUse::kNone})));
      const uint64_t buffers = directory_->GetCounters().buffer_bytes - written;
      if (i < kDirectSlots / 2) {
        EXPECT_EQ(buffers % DirectBuffers::kSlotBytes, 0U) << "a copy was made of value " << i;
      }
    }
    for (size_t i = 0; i < kValues; ++i) {
      const std::span<const uint8_t> bytes = held[i].bytes();
      const std::vector<uint8_t> value = RandomValue(100000 + i, i);
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), value.begin(), value.end())) << i;
      if (i < kDirectSlots / 2) {
        EXPECT_EQ(*(bytes.data() + bytes.size()), 0);
      }
    }
    held.clear();
  }
  const Counters counters = directory_->GetCounters();
  EXPECT_EQ(counters.read_submissions, 2 * kValues);
  EXPECT_EQ(counters.direct_read_submissions, 2 * kValues);
  EXPECT_EQ(counters.extents_read, 2 * kValues);
}

TEST_F(StoreEffectsTest, AFailedReadAroundThePageCacheIsTold) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  const Locator locator = Append(RandomValue(100000, 1), {.write_batch_bytes = 64U << 10});
  const ReadOptions direct{.page_cache = PageCacheUse::kNone};
  ASSERT_OK(ReadValue(directory_.get(), locator, direct).status());
  env_.FailCall(CallKind::kRead, 1, EIO);
  const Status status = ReadValue(directory_.get(), locator, direct).status();
  EXPECT_EQ(status.system_errno(), EIO) << status.ToString();
  EXPECT_OK(ReadValue(directory_.get(), locator, direct).status());
  env_.FailCall(CallKind::kRead, 1, EIO);
  const Status in_place = ReadInBuffer(directory_.get(), locator, direct).status();
  EXPECT_EQ(in_place.system_errno(), EIO) << in_place.ToString();
  EXPECT_OK(ReadInBuffer(directory_.get(), locator, direct).status());
}

TEST_F(StoreEffectsTest, AnExtentThatItsFileIsTooShortForIsDamage) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  const Locator locator = Append(RandomValue(100000, 1), {.write_batch_bytes = kBatchMinBytes});
  const std::string path = "/home/stores/0000000000000001/00000001.qseg";
  ASSERT_OK(ValueOf(memory_.OpenForWrite(path))->Truncate(locator.offset_bytes + 50000));
  for (const PageCacheUse use : {PageCacheUse::kNone, PageCacheUse::kAll}) {
    for (const auto& read : {&ReadValue, &ReadInBuffer}) {
      const Status status = (*read)(directory_.get(), locator, {.page_cache = use}).status();
      EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      EXPECT_NE(status.ToString().find("the extent ends at"), std::string::npos) << status.ToString();
    }
  }
  EXPECT_EQ(directory_->GetCounters().corruptions, 4U);
}

TEST_F(StoreEffectsTest, ARangeReadsOnlyItsParts) {
  options_.recent_cache_bytes = 0;
  Open();
  AppendOptions options;
  options.part_size_bytes = 4096;
  const Locator locator = Append(RandomValue(1 << 20, 1), options);
  const uint64_t before = env_.BytesOf(CallKind::kRead);
  std::vector<uint8_t> out(100);
  ASSERT_OK(directory_->ReadRange(locator, 500000, {}, out));
  EXPECT_LT(env_.BytesOf(CallKind::kRead) - before, 16384U);
}

TEST_F(StoreEffectsTest, TheRecentCacheServesWhatWasJustWrittenAndIsBounded) {
  options_.recent_cache_bytes = 4 << 20;
  Open();
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 200; ++i) locators.push_back(Append(RandomValue(100000, i)));
  EXPECT_LE(directory_->GetCounters().recent_cache_bytes, 4U << 20);
  uint64_t before = env_.CountOf(CallKind::kRead);
  for (uint64_t i = 190; i < 200; ++i) {
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[i])), RandomValue(100000, i));
  }
  EXPECT_EQ(env_.CountOf(CallKind::kRead), before);
  EXPECT_EQ(directory_->GetCounters().recent_cache_hits, 10U);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[0])), RandomValue(100000, 0));
  EXPECT_GT(env_.CountOf(CallKind::kRead), before);
  EXPECT_EQ(directory_->GetCounters().recent_cache_misses, 1U);
}

TEST_F(StoreEffectsTest, WhatIsStagedForADroppedTableIsGivenBack) {
  Open();
  ASSERT_GT(options_.recent_cache_bytes, kChunkSizeBytes);
  {
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    UnsyncedExtents unsynced;
    // One chunk is full and written, and kept for reads; one is open.
    for (uint64_t i = 0; i < 5; ++i) (void)ValueOf(store->Append(RandomValue(300000, i), {}, &unsynced));
    ASSERT_OK(directory_->Sync(unsynced));
  }
  ASSERT_GT(directory_->GetCounters().recent_cache_bytes, 0U);
  ASSERT_GT(directory_->GetCounters().staging_bytes, 0U);
  ASSERT_OK(directory_->Discard({1}, 1));
  ASSERT_GT(ValueOf(directory_->EmptyTrash(1)), 0U);
  EXPECT_EQ(directory_->GetCounters().staging_bytes, 0U);
}

TEST_F(StoreEffectsTest, PrivateExtentsAreRecentToo) {
  options_.recent_cache_bytes = 8 << 20;
  Open();
  const Locator locator = Append(RandomValue(448 << 10, 1));
  const uint64_t before = env_.CountOf(CallKind::kRead);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), RandomValue(448 << 10, 1));
  EXPECT_EQ(env_.CountOf(CallKind::kRead), before);
}

TEST_F(StoreEffectsTest, SmallFlushesHitZeroedSpaceAndItsTailIsCutOff) {
  options_.zeroed_pool_bytes = 4 << 20;
  Open();
  for (uint64_t i = 0; i < 400; ++i) Append(RandomValue(60000, i));
  const Counters counters = directory_->GetCounters();
  EXPECT_GT(counters.zero_bytes_written, 20U << 20);
  EXPECT_LT(counters.zero_bytes_written, 32U << 20);
  EXPECT_GT(counters.flushes_zeroed, 350U);
  EXPECT_GT(FileSize("00000001.qseg"), 400U * 60000 + (1 << 20));
  directory_.reset();
  EXPECT_LT(FileSize("00000001.qseg"), 400U * 62000);
}

TEST_F(StoreEffectsTest, LargeFlushesGetNoZeros) {
  options_.zeroed_pool_bytes = 4 << 20;
  Open();
  for (uint64_t i = 0; i < 20; ++i) Append(RandomValue(300 << 10, i));
  EXPECT_EQ(directory_->GetCounters().zero_bytes_written, 0U);
  // One among small ones begins their count anew.
  for (uint64_t i = 0; i < 20; ++i) Append(RandomValue(i % 4 == 3 ? 2 << 20 : 24 << 10, i));
  EXPECT_EQ(directory_->GetCounters().zero_bytes_written, 0U);
  for (uint64_t i = 0; i < 20; ++i) Append(RandomValue(100 << 10, i));
  EXPECT_GT(directory_->GetCounters().zero_bytes_written, 0U);
}

class NoJournalEnv : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;
  bool HasJournal(const std::string& directory) override {
    (void)directory;
    return false;
  }
};

TEST(ZerosAheadTest, WithoutAJournalEveryByteIsWrittenOnce) {
  MemoryEnv memory;
  NoJournalEnv env(&memory);
  DirectoryOptions options = TestOptions();
  options.zeroed_pool_bytes = 4 << 20;
  const auto directory = ValueOf(OpenDirectory(&env, options));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  for (uint64_t i = 0; i < 100; ++i) {
    UnsyncedExtents unsynced;
    (void)ValueOf(store->Append(RandomValue(24000, i), {}, &unsynced));
    ASSERT_OK(directory->Sync(unsynced));
  }
  EXPECT_EQ(directory->GetCounters().zero_bytes_written, 0U);
}

TEST_F(StoreEffectsTest, TheZeroedTailOfACrashStaysUntilGc) {
  options_.zeroed_pool_bytes = 4 << 20;
  Open();
  Locator last;
  for (uint64_t i = 0; i < 20; ++i) last = Append(std::vector<uint8_t>(60000, 0));
  EXPECT_GT(FileSize("00000001.qseg"), 4U << 20);
  CutPower(&memory_, &env_, 0, &directory_);
  const uint64_t size = FileSize("00000001.qseg");
  Open();
  EXPECT_EQ(FileSize("00000001.qseg"), size) << "no byte decides what stays";
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), last)), std::vector<uint8_t>(60000, 0));
}

TEST_F(StoreEffectsTest, APoolOfNothingZeroesNothing) {
  Open();
  for (uint64_t i = 0; i < 30; ++i) Append(RandomValue(60000, i));
  EXPECT_EQ(directory_->GetCounters().zero_bytes_written, 0U);
  EXPECT_EQ(directory_->GetCounters().flushes_zeroed, 0U);
}

TEST_F(StoreEffectsTest, WhatCompressionSavesOfALargeRangeIsNotWritten) {
  Open();
  AppendOptions options;
  options.codec = Codec::kZstd;
  const std::vector<uint8_t> value = TextValue(4 << 20, 1);
  const uint64_t before = env_.BytesOf(CallKind::kWrite);
  const Locator locator = Append(value, options);
  EXPECT_LT(locator.extent_size_bytes, 2U << 20);
  EXPECT_LT(env_.BytesOf(CallKind::kWrite) - before, locator.extent_size_bytes + 4 * kBlockSizeBytes);
  EXPECT_LT(directory_->ListStores()[0].real_bytes, locator.extent_size_bytes + 8 * kBlockSizeBytes);
  const Locator next = Append(RandomValue(100, 2));
  CutPower(&memory_, &env_, 0, &directory_);
  Open();
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), next)), RandomValue(100, 2));
}

TEST_F(StoreEffectsTest, ManyIdleStoresDoNotStarveABusyOne) {
  Open();
  // More stores than there are chunks, each with an extent that waits for its commit.
  std::vector<UnsyncedExtents> unsynced(60);
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 60; ++i) {
    const auto store = ValueOf(directory_->OpenForAppend({i + 1}, "db/t"));
    locators.push_back(ValueOf(store->Append(RandomValue(1000, i), {}, &unsynced[i])));
  }
  EXPECT_LE(directory_->GetCounters().staging_bytes, 32U << 20);
  for (uint64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locators[i])), RandomValue(1000, i));
    ASSERT_OK(directory_->Sync(unsynced[i]));
  }
}

}  // namespace
}  // namespace quarry
