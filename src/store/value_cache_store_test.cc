// The value cache behind StoreDirectory: what is read, what is not, and that it never stands for what is gone.
#include "store/store_test_util.h"

namespace quarry {
namespace {

class CachedStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.value_cache_bytes = 8 << 20;
    options_.recent_cache_bytes = 0;
    Reopen();
  }
  void Reopen() {
    directory_.reset();
    directory_ = ValueOf(OpenDirectory(&memory_, options_));
  }
  Locator Append(const std::vector<uint8_t>& value, Codec codec = Codec::kNone) {
    const auto store = ValueOf(directory_->OpenForAppend({1}, "test/t"));
    UnsyncedExtents unsynced;
    AppendOptions options;
    options.codec = codec;
    options.part_size_bytes = 16 << 10;
    const Locator locator = ValueOf(store->Append(value, options, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return locator;
  }
  std::vector<uint8_t> Read(const Locator& locator) {
    const ValueBuffer value = ValueOf(directory_->ReadValue(locator, {}));
    return {value.bytes().begin(), value.bytes().end()};
  }
  Counters counters() { return directory_->GetCounters(); }
  /// Turns over a bit in the middle of the extent.
  void Damage(const Locator& locator) {
    const std::string path = "/home/stores/0000000000000001/00000001.qseg";
    ASSERT_TRUE(memory_.FlipBit(path, locator.offset_bytes + locator.extent_size_bytes / 2, 3));
  }

  MemoryEnv memory_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

TEST_F(CachedStoreTest, TheSecondReadTouchesNoSegmentWhileThereIsRoom) {
  for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    const std::vector<uint8_t> value = TextValue(100000, static_cast<uint64_t>(codec));
    const Locator locator = Append(value, codec);
    Reopen();
    EXPECT_EQ(Read(locator), value);
    const Counters before = counters();
    EXPECT_EQ(Read(locator), value);
    EXPECT_EQ(counters().file_bytes_read, before.file_bytes_read);
    EXPECT_EQ(counters().read_submissions, before.read_submissions);
    EXPECT_EQ(counters().extents_read, before.extents_read + 1);
    EXPECT_EQ(counters().value_bytes_read, before.value_bytes_read + value.size());
    EXPECT_EQ(counters().cache_hits, 1U);
    EXPECT_EQ(directory_->ListStores().at(0).cached_bytes, counters().cache_bytes);
  }
}

TEST_F(CachedStoreTest, InAFullCacheTheThirdReadTouchesNoSegment) {
  options_.value_cache_bytes = 1 << 20;
  Reopen();
  std::vector<Locator> others;
  for (uint64_t i = 0; i < 20; ++i) others.push_back(Append(RandomValue(60000, 100 + i)));
  const std::vector<uint8_t> value = RandomValue(60000, 1);
  const Locator locator = Append(value);
  for (const Locator& other : others) (void)Read(other);
  const uint64_t admissions = counters().cache_admissions;
  EXPECT_GT(admissions, 10U);
  EXPECT_LT(admissions, 17U) << "what fits, and no more";
  EXPECT_EQ(counters().cache_evictions, 0U) << "for nothing that was asked for once something had to go";
  const std::vector<uint64_t> expected_reads_from_segment = {1, 1, 0};
  for (const uint64_t expected : expected_reads_from_segment) {
    const uint64_t misses = counters().cache_misses;
    EXPECT_EQ(Read(locator), value);
    EXPECT_EQ(counters().cache_misses - misses, expected);
  }
  EXPECT_EQ(counters().cache_admissions, admissions + 1);
  EXPECT_EQ(counters().cache_evictions, 1U);
}

TEST_F(CachedStoreTest, TwoReadersShareTheBytes) {
  const Locator locator = Append(RandomValue(50000, 1));
  (void)Read(locator);
  (void)Read(locator);
  const ValueBuffer one = ValueOf(directory_->ReadValue(locator, {}));
  const ValueBuffer two = ValueOf(directory_->ReadValue(locator, {}));
  EXPECT_EQ(one.bytes().data(), two.bytes().data());
}

TEST_F(CachedStoreTest, ARangeOfACachedValueTouchesNoSegment) {
  const std::vector<uint8_t> value = RandomValue(60000, 2);
  const Locator locator = Append(value);
  (void)Read(locator);
  (void)Read(locator);
  const uint64_t before = counters().file_bytes_read;
  std::vector<uint8_t> piece(1000);
  ASSERT_OK(directory_->ReadRange(locator, 30000, {}, piece));
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), value.begin() + 30000));
  EXPECT_EQ(ValueOf(quarry::ReadValue(directory_.get(), locator)), value);
  EXPECT_EQ(counters().file_bytes_read, before);
}

TEST_F(CachedStoreTest, AReaderOfRangesGetsTheWholeOnlyFromTheCache) {
  const std::vector<uint8_t> value = RandomValue(60000, 6);
  const Locator locator = Append(value);
  const uint64_t before = counters().file_bytes_read;
  EXPECT_TRUE(ValueOf(directory_->ReadIfCached(locator, {})).empty());
  EXPECT_EQ(counters().file_bytes_read, before) << "nothing is read at the first time";
  for (int again = 0; again < 2; ++again) {
    const ValueBuffer whole = ValueOf(directory_->ReadIfCached(locator, {}));
    EXPECT_TRUE(std::ranges::equal(whole.bytes(), value));
  }
  EXPECT_EQ(counters().cache_admissions, 1U);
  EXPECT_EQ(counters().cache_hits, 1U);
  ASSERT_OK(directory_->SetValueCacheBytes(0));
  for (int read = 0; read < 3; ++read) EXPECT_TRUE(ValueOf(directory_->ReadIfCached(locator, {})).empty());
}

TEST_F(CachedStoreTest, WhoSkipsTheCacheSeesWhatTheSegmentHolds) {
  const std::vector<uint8_t> value = RandomValue(60000, 3);
  const Locator locator = Append(value);
  Reopen();
  (void)Read(locator);
  (void)Read(locator);
  Damage(locator);
  EXPECT_EQ(Read(locator), value) << "verified when it was read";
  ReadOptions from_segment;
  from_segment.skip_cache = true;
  EXPECT_EQ(directory_->ReadValue(locator, from_segment).status().code(), StatusCode::kCorruption);
  std::vector<uint8_t> out(value.size());
  EXPECT_EQ(directory_->Read(locator, from_segment, out).code(), StatusCode::kCorruption);
  EXPECT_EQ(directory_->ReadRange(locator, 0, from_segment, out).code(), StatusCode::kCorruption);
}

TEST_F(CachedStoreTest, WhatDoesNotVerifyIsNotKept) {
  const Locator locator = Append(RandomValue(60000, 4));
  Reopen();
  Damage(locator);
  for (int read = 0; read < 5; ++read) {
    EXPECT_EQ(directory_->ReadValue(locator, {}).status().code(), StatusCode::kCorruption);
  }
  EXPECT_EQ(counters().cache_admissions, 0U);
  EXPECT_EQ(counters().cache_bytes, 0U);
}

TEST_F(CachedStoreTest, ALocatorThatDiffersIsReadAndRefused) {
  Locator locator = Append(RandomValue(60000, 5));
  (void)Read(locator);
  (void)Read(locator);
  locator.identity ^= 1;
  EXPECT_EQ(directory_->ReadValue(locator, {}).status().code(), StatusCode::kCorruption);
}

TEST_F(CachedStoreTest, WhatLeftTheTrashIsGone) {
  const Locator locator = Append(RandomValue(60000, 6));
  (void)Read(locator);
  (void)Read(locator);
  ASSERT_OK(directory_->Discard({1}, 100));
  EXPECT_EQ(Read(locator).size(), 60000U) << "readable until the trash is emptied";
  const ValueBuffer held = ValueOf(directory_->ReadValue(locator, {}));
  ASSERT_TRUE(directory_->EmptyTrash(100).ok());
  EXPECT_EQ(directory_->ReadValue(locator, {}).status().code(), StatusCode::kNotFound);
  EXPECT_GT(counters().cache_bytes, 60000U) << "somebody still reads it";
  EXPECT_EQ(held.bytes()[0], RandomValue(60000, 6)[0]);
}

TEST_F(CachedStoreTest, WhatReplacesACachedValueIsReadFromMemory) {
  const Locator old = Append(RandomValue(60000, 8));
  for (int read = 0; read < 3; ++read) (void)Read(old);
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    const std::vector<uint8_t> value = TextValue(50000, static_cast<uint64_t>(codec));
    const Locator by = Append(value, codec);
    directory_->CarryInCache(old, by, value);
    const Counters before = counters();
    EXPECT_EQ(Read(by), value);
    EXPECT_EQ(counters().file_bytes_read, before.file_bytes_read);
    EXPECT_EQ(counters().cache_hits, before.cache_hits + 1);
    EXPECT_EQ(directory_->ListStores().at(0).cached_bytes, counters().cache_bytes);
    ReadOptions from_segment;
    from_segment.skip_cache = true;
    const ValueBuffer stored = ValueOf(directory_->ReadValue(by, from_segment));
    EXPECT_TRUE(std::equal(value.begin(), value.end(), stored.bytes().begin(), stored.bytes().end()));
  }
}

TEST_F(CachedStoreTest, WhatIsReleasedIsReadFromTheSegment) {
  const std::vector<uint8_t> value = RandomValue(60000, 9);
  const Locator old = Append(RandomValue(60000, 10));
  for (int read = 0; read < 3; ++read) (void)Read(old);
  const Locator by = Append(value);
  directory_->CarryInCache(old, by, value);
  ASSERT_EQ(counters().cache_carried, 1U);
  directory_->Release(by);  // the transaction rolled back
  const uint64_t hits = counters().cache_hits;
  EXPECT_EQ(Read(by), value) << "a hint, nothing else";
  EXPECT_EQ(counters().cache_hits, hits);
  EXPECT_EQ(Read(old), RandomValue(60000, 10)) << "that one is needed, and was left where it is";
  EXPECT_EQ(counters().cache_hits, hits + 1);
  directory_->Release(old);
  EXPECT_EQ(Read(old), RandomValue(60000, 10));
  EXPECT_EQ(counters().cache_hits, hits + 1);
}

TEST_F(CachedStoreTest, TheSizeMovesWhileValuesAreRead) {
  const std::vector<uint8_t> value = RandomValue(60000, 7);
  const Locator locator = Append(value);
  (void)Read(locator);
  (void)Read(locator);
  EXPECT_GT(counters().cache_bytes, 60000U);
  ASSERT_OK(directory_->SetValueCacheBytes(0));
  EXPECT_EQ(counters().cache_bytes, 0U);
  const uint64_t hits = counters().cache_hits;
  for (int read = 0; read < 3; ++read) EXPECT_EQ(Read(locator), value);
  EXPECT_EQ(counters().cache_hits, hits);
  ASSERT_OK(directory_->SetValueCacheBytes(8 << 20));
  for (int read = 0; read < 3; ++read) EXPECT_EQ(Read(locator), value);
  EXPECT_EQ(counters().cache_hits, hits + 2);
  EXPECT_EQ(directory_->SetValueCacheBytes(kValueCacheMaxBytes + 1).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quarry
