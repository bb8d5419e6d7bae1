// Values of every size and codec, whole and in ranges, before and after flushes and restarts.
#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr TableId kTable{42};

class StoreBasicTest : public testing::Test {
 protected:
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  void Reopen() {
    directory_.reset();
    Open();
  }
  Locator Append(std::span<const uint8_t> value, const AppendOptions& options = {}) {
    return ValueOf(ValueOf(directory_->OpenForAppend(kTable, "db/t"))->Append(value, options, &unsynced_));
  }

  MemoryEnv env_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  UnsyncedExtents unsynced_;
};

TEST_F(StoreBasicTest, EveryCodecAndSizeReadsBackAtEveryStage) {
  Open();
  struct Written {
    Locator locator;
    std::vector<uint8_t> value;
  };
  std::vector<Written> all;
  const size_t sizes[] = {0, 1, 511, 512, 513, 4095, 4096, 65535, 65536, 65537, 262000, 300000, 448 << 10, 3000000};
  for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    for (const uint32_t part_size : {kPartSizeMinBytes, kPartSizeNdbMaxBytes, kPartSizeDefaultBytes, 1U << 20}) {
      for (const size_t size : sizes) {
        for (const bool text : {false, true}) {
          Written written;
          written.value = text ? TextValue(size, size) : RandomValue(size, size);
          AppendOptions options;
          options.codec = codec;
          options.part_size_bytes = part_size;
          written.locator = Append(written.value, options);
          ASSERT_EQ(written.locator.value_checksum, ValueChecksumOf(written.value, 0, part_size));
          ASSERT_EQ(ValueOf(ReadValue(directory_.get(), written.locator)), written.value);
          all.push_back(std::move(written));
        }
      }
    }
  }
  const auto check_all = [&] {
    for (const Written& written : all) {
      ASSERT_EQ(ValueOf(ReadValue(directory_.get(), written.locator, {.read_batch_bytes = 4096})), written.value);
      ASSERT_EQ(ValueOf(ReadValue(directory_.get(), written.locator)), written.value);
    }
  };
  ASSERT_OK(directory_->Sync(unsynced_));
  check_all();
  Reopen();
  check_all();
  const std::vector<StoreStats> stats = directory_->ListStores();
  ASSERT_EQ(stats.size(), 1U);
  EXPECT_EQ(stats[0].extents, all.size());
  EXPECT_EQ(stats[0].table, kTable);
  EXPECT_EQ(stats[0].table_name, "db/t");
  EXPECT_EQ(ValueOf(directory_->GetStoreStats(stats[0].store)).real_bytes, stats[0].real_bytes);
  EXPECT_EQ(directory_->GetStoreStats(StoreId{99}).status().code(), StatusCode::kNotFound);
}

TEST_F(StoreBasicTest, RangesTouchPartBoundaries) {
  Open();
  for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    AppendOptions options;
    options.codec = codec;
    options.part_size_bytes = 1000;
    const std::vector<uint8_t> value = TextValue(10500, 5);
    const Locator locator = Append(value, options);
    ASSERT_OK(directory_->Sync(unsynced_));
    Reopen();
    for (const size_t begin : {0, 1, 999, 1000, 1001, 5000, 10499, 10500}) {
      for (const size_t size : {0, 1, 2, 999, 1000, 1001, 2500, 10500}) {
        if (begin + size > value.size()) continue;
        std::vector<uint8_t> out(size);
        ASSERT_OK(directory_->ReadRange(locator, begin, {4096}, out));
        ASSERT_TRUE(std::equal(out.begin(), out.end(), value.begin() + static_cast<std::ptrdiff_t>(begin)));
      }
    }
    std::vector<uint8_t> beyond(2);
    EXPECT_EQ(directory_->ReadRange(locator, 10499, {4096}, beyond).code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(StoreBasicTest, LargeValue) {
  Open();
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    AppendOptions options;
    options.codec = codec;
    options.part_size_bytes = codec == Codec::kNone ? kPartSizeMaxBytes : kPartSizeDefaultBytes;
    std::vector<uint8_t> value = RandomValue(70 << 20, 1);  // larger than a segment
    std::fill(value.begin() + (20 << 20), value.begin() + (50 << 20), uint8_t{7});
    const Locator locator = Append(value, options);
    ASSERT_OK(directory_->Sync(unsynced_));
    EXPECT_LE(directory_->GetCounters().staging_bytes, 64U << 20);
    ASSERT_TRUE(ValueOf(ReadValue(directory_.get(), locator)) == value);
    std::vector<uint8_t> out(100000);
    ASSERT_OK(directory_->ReadRange(locator, 40 << 20, {}, out));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), value.begin() + (40 << 20)));
    const Locator small = Append(RandomValue(100, 2));
    ASSERT_OK(directory_->Sync(unsynced_));
    // Uncompressed it fills a segment of its own.
    if (codec == Codec::kNone) {
      EXPECT_NE(small.segment, locator.segment);
    }
  }
}

TEST_F(StoreBasicTest, BuffersOfReadValuesAreUsedAgainButNeverWhileHeld) {
  Open();
  ASSERT_OK(directory_->SetValueCacheBytes(0));
  const std::vector<uint8_t> first = RandomValue(60000, 1);
  const std::vector<uint8_t> second = TextValue(61000, 2);
  const Locator first_locator = Append(first);
  AppendOptions options;
  options.codec = Codec::kZstd;
  const Locator second_locator = Append(second, options);
  const auto is = [](const ValueBuffer& buffer, const std::vector<uint8_t>& value) {
    return std::equal(buffer.bytes().begin(), buffer.bytes().end(), value.begin(), value.end());
  };

  ValueBuffer held = ValueOf(directory_->ReadValue(first_locator, {}));
  ValueBuffer other = ValueOf(directory_->ReadValue(second_locator, {}));
  EXPECT_NE(held.bytes().data(), other.bytes().data());
  EXPECT_TRUE(is(held, first));
  EXPECT_TRUE(is(other, second));

  const uint8_t* const memory = other.bytes().data();
  other.Release();
  EXPECT_TRUE(other.empty());
  EXPECT_TRUE(other.bytes().empty());
  other = ValueOf(directory_->ReadValue(first_locator, {}));
  EXPECT_EQ(other.bytes().data(), memory) << "what was given back last is taken first";
  EXPECT_TRUE(is(other, first));
  EXPECT_TRUE(is(held, first));

  // An assignment gives back what was held, a move takes it along.
  held = std::move(other);
  EXPECT_EQ(held.bytes().data(), memory);
  EXPECT_FALSE(ValueOf(directory_->ReadValue(Append({}), {})).empty());
}

TEST_F(StoreBasicTest, BadArgumentsNameTheValueAndChangeNothing) {
  Open();
  const auto store = ValueOf(directory_->OpenForAppend(kTable, "db/t"));
  AppendOptions options;
  options.part_size_bytes = 511;
  const Status part = store->Append({}, options, &unsynced_).status();
  EXPECT_EQ(part.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(part.message().find("511"), std::string::npos);
  options = {};
  options.codec = static_cast<Codec>(9);
  EXPECT_EQ(store->Append({}, options, &unsynced_).status().code(), StatusCode::kInvalidArgument);
  options = {};
  options.write_batch_bytes = 100;
  EXPECT_EQ(store->Append({}, options, &unsynced_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store->Append({}, {}, nullptr).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(unsynced_.empty());
  EXPECT_EQ(directory_->GetCounters().extents_appended, 0U);
  EXPECT_EQ(directory_->OpenForAppend({0}, "x").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(StoreBasicTest, ReadsOfWhatIsNotThereSayWhat) {
  Open();
  Locator locator = Append(RandomValue(1000, 1));
  ASSERT_OK(directory_->Sync(unsynced_));
  std::vector<uint8_t> out(1000);
  std::vector<uint8_t> wrong_size(999);
  EXPECT_EQ(directory_->Read(locator, {}, wrong_size).code(), StatusCode::kInvalidArgument);
  Locator other = locator;
  other.store = StoreId{77};
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kNotFound);
  other = locator;
  other.segment = SegmentNumber{77};
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kNotFound);
  other = locator;
  other.offset_bytes += 8;
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kCorruption);
  other = locator;
  other.offset_bytes = 1ULL << 40;
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kCorruption);
  other = locator;
  other.extent_size_bytes = 40;
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kCorruption);
  other = locator;
  other.identity ^= 1;
  EXPECT_EQ(directory_->Read(other, {}, out).code(), StatusCode::kCorruption);
  EXPECT_EQ(directory_->GetCounters().corruptions, 4U);
}

TEST_F(StoreBasicTest, ReleaseOnlyCounts) {
  Open();
  const std::vector<uint8_t> value = RandomValue(5000, 1);
  const Locator locator = Append(value);
  ASSERT_OK(directory_->Sync(unsynced_));
  directory_->Release(locator);
  EXPECT_EQ(directory_->ListStores()[0].dead_bytes, locator.extent_size_bytes);
  EXPECT_EQ(directory_->ListStores()[0].live_bytes, 0U);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
  Reopen();
  EXPECT_EQ(directory_->ListStores()[0].dead_bytes, locator.extent_size_bytes);
  EXPECT_EQ(directory_->ListStores()[0].extents, 0U);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
}

TEST_F(StoreBasicTest, SegmentsRollAndStayReadable) {
  options_.segment_size_bytes = 256 << 10;
  Open();
  std::vector<std::pair<Locator, std::vector<uint8_t>>> all;
  for (uint64_t i = 0; i < 200; ++i) {
    std::vector<uint8_t> value = RandomValue(1000 + i * 97, i);
    const Locator locator = Append(value);
    all.emplace_back(locator, std::move(value));
    if (i % 7 == 0) ASSERT_OK(directory_->Sync(unsynced_));
  }
  ASSERT_OK(directory_->Sync(unsynced_));
  EXPECT_GT(directory_->ListStores()[0].segments, 5U);
  for (int round = 0; round < 2; ++round) {
    for (const auto& [locator, value] : all) ASSERT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
    Reopen();
  }
}

TEST_F(StoreBasicTest, TheIndexOfAHugeValueIsBounded) {
  EXPECT_EQ(PartSizeFor(0, 512), 512U);
  EXPECT_EQ(PartSizeFor(uint64_t{kPartsMax} * 512, 512), 512U);
  EXPECT_EQ(PartSizeFor(uint64_t{kPartsMax} * 512 + 1, 512), 513U);
  EXPECT_EQ(PartSizeFor(UINT32_MAX, 512), 65536U);
  EXPECT_EQ(PartSizeFor(UINT32_MAX, kPartSizeMaxBytes), kPartSizeMaxBytes);
  Open();
  AppendOptions options;
  options.part_size_bytes = 512;
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    options.codec = codec;
    const std::vector<uint8_t> value = RandomValue(size_t{kPartsMax} * 512 + 12345, 7);
    const Locator locator = ValueOf(store->Append(value, options, &unsynced_));
    EXPECT_LE(locator.extent_size_bytes, value.size() + kPartsMax * 20ULL);
    EXPECT_EQ(locator.value_checksum, ValueChecksumOf(value, 0, options.part_size_bytes));
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
    std::vector<uint8_t> piece(1000);
    ASSERT_OK(directory_->ReadRange(locator, value.size() - 20000, {}, piece));
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), value.end() - 20000));
  }
}

}  // namespace
}  // namespace quarry
