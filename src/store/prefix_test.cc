// Values whose first bytes stand in the row: the segment holds the others, and together they are the value or an error.
#include <algorithm>
#include <array>

#include "format/test_cipher.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr uint32_t kKey = 7;

class PrefixTest : public testing::Test {
 protected:
  struct Written {
    std::vector<uint8_t> value;
    Locator locator;
    [[nodiscard]] Head head() const {
      return {locator, std::span<const uint8_t>(value).first(locator.prefix_size_bytes)};
    }
  };
  void SetUp() override {
    const auto keys = std::make_shared<TestCipherProvider>();
    keys->Rotate(kKey, 0x1111);
    options_.cipher_provider = keys;
    Open();
  }
  void Open() {
    directory_.reset();
    directory_ = ValueOf(OpenDirectory(&env_, options_));
  }
  Written Append(std::vector<uint8_t> value, uint32_t prefix_size_bytes, AppendOptions options = {}) {
    options.prefix_size_bytes = prefix_size_bytes;
    const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
    UnsyncedExtents unsynced;
    const Locator locator = ValueOf(store->Append(value, options, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return {std::move(value), locator};
  }
  void ExpectReadsBothWays(const Written& written) {
    for (const PageCacheUse use : {PageCacheUse::kNone, PageCacheUse::kAll}) {
      for (const uint32_t batch : {4096U, 1U << 20}) {
        const ReadOptions options{.read_batch_bytes = batch, .skip_cache = true, .page_cache = use};
        EXPECT_EQ(ValueOf(ReadValue(directory_.get(), written.head(), options)), written.value);
        EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), written.head(), options)), written.value);
        EXPECT_OK(directory_->VerifyValue(written.head(), options, nullptr));
      }
    }
    EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), written.head())), written.value) << "into the cache";
    EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), written.head())), written.value) << "and from there";
  }
  [[nodiscard]] Counters counters() { return directory_->GetCounters(); }

  MemoryEnv env_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

TEST_F(PrefixTest, EveryWayAValueTakesReadsBack) {
  std::vector<Written> all;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{511}, size_t{5000}, size_t{70000}, size_t{700000}}) {
    for (const size_t prefix : {size_t{0}, size_t{1}, size_t{100}, size_t{4000}, size_t{29736}, size_t{65535}}) {
      for (const auto& [codec, key] : {std::pair(Codec::kNone, 0U), {Codec::kLz4, 0U}, {Codec::kNone, kKey}}) {
        for (const uint32_t part_size : {512U, 65536U}) {
          AppendOptions options;
          options.codec = codec;
          options.part_size_bytes = part_size;
          options.encryption_key_id = key;
          all.push_back(Append(TextValue(size, size), static_cast<uint32_t>(std::min(size, prefix)), options));
        }
      }
    }
  }
  for (const bool after_start : {false, true}) {
    if (after_start) Open();
    for (const Written& written : all) ExpectReadsBothWays(written);
  }
}

TEST_F(PrefixTest, RangesEndAndBeginInBoth) {
  const Written written = Append(RandomValue(100000, 1), 3000);
  for (const bool after_start : {false, true}) {
    if (after_start) Open();
    for (const size_t begin : {0, 1, 2999, 3000, 3001, 70000}) {
      for (const size_t size : {0, 1, 2, 3000, 25000}) {
        std::vector<uint8_t> piece(size);
        ASSERT_OK(directory_->ReadRange(written.head(), begin, {}, piece));
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), written.value.begin() + static_cast<ptrdiff_t>(begin)))
            << begin << "+" << size;
      }
    }
  }
}

TEST_F(PrefixTest, ARangeWithinThePrefixAsksNoFile) {
  options_.recent_cache_bytes = 0;
  Open();
  const Written written = Append(RandomValue(65536, 1), 29736);
  Open();
  const Counters before = counters();
  std::vector<uint8_t> piece(29736);
  ASSERT_OK(directory_->ReadRange(written.head(), 0, {}, piece));
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), written.value.begin()));
  EXPECT_EQ(counters().read_submissions, before.read_submissions);
  EXPECT_EQ(counters().extents_read, before.extents_read);
}

// 64 KiB with the largest inline part of the published measurements (docs/use/ndb.md).
TEST_F(PrefixTest, TheSegmentHoldsAndIsReadForTheRemainderAlone) {
  options_.recent_cache_bytes = 0;
  options_.value_cache_bytes = 0;
  Open();
  const Written written = Append(RandomValue(65536, 1), 29736);
  EXPECT_LE(directory_->ListStores()[0].live_bytes, 35950U);
  Open();
  const Counters before = counters();
  EXPECT_EQ(ValueOf(ReadInBuffer(directory_.get(), written.head(), {.page_cache = PageCacheUse::kNone})),
            written.value);
  EXPECT_LE(counters().file_bytes_read - before.file_bytes_read, 40960U);
  EXPECT_EQ(counters().read_submissions, before.read_submissions + 1);
}

TEST_F(PrefixTest, TheShapeOfAValueIsReadFromItsHeaderAlone) {
  options_.recent_cache_bytes = 0;
  const Written raw = Append(RandomValue(200000, 1), 100, {.part_size_bytes = 4000});
  const Written packed = Append(TextValue(200000, 2), 0, {.part_size_bytes = 65536, .codec = Codec::kZstd});
  const Written hidden = Append(RandomValue(200000, 3), 0, {.part_size_bytes = 65536, .encryption_key_id = kKey});
  Open();
  const Counters before = counters();
  for (const auto& [written, parts] : {std::pair{&raw, 50U}, {&packed, 4U}, {&hidden, 4U}}) {
    const StoredShape shape = ValueOf(directory_->ReadShape(written->locator, {}));
    EXPECT_EQ(shape.parts, parts);
    EXPECT_EQ(shape.space_bytes, written->locator.extent_size_bytes);
  }
  EXPECT_LE(counters().file_bytes_read - before.file_bytes_read, 3U * 80);
  Locator nowhere = raw.locator;
  nowhere.segment = {77};
  EXPECT_EQ(directory_->ReadShape(nowhere, {}).status().code(), StatusCode::kNotFound);
  nowhere = raw.locator;
  nowhere.offset_bytes += 8;
  EXPECT_EQ(directory_->ReadShape(nowhere, {}).status().code(), StatusCode::kCorruption);
}

TEST_F(PrefixTest, AnotherPrefixIsRefusedWhereverItIsUsed) {
  const Written written = Append(RandomValue(50000, 1), 100);
  std::vector<uint8_t> other = written.value;
  other[50] ^= 1;
  const std::array<Head, 2> heads = {Head(written.locator, std::span<const uint8_t>(other).first(100)),
                                     Head(written.locator, std::span<const uint8_t>(written.value).first(99))};
  for (const Head& head : heads) {
    std::vector<uint8_t> out(50000);
    std::vector<uint8_t> piece(10);
    EXPECT_EQ(directory_->Read(head, {}, out).code(), StatusCode::kCorruption);
    EXPECT_EQ(directory_->ReadValue(head, {}).status().code(), StatusCode::kCorruption);
    EXPECT_EQ(directory_->ReadRange(head, 0, {}, piece).code(), StatusCode::kCorruption);
    EXPECT_EQ(directory_->ReadRange(head, 95, {}, piece).code(), StatusCode::kCorruption);
    EXPECT_EQ(directory_->VerifyValue(head, {}, nullptr).code(), StatusCode::kCorruption);
    EXPECT_OK(directory_->ReadRange(head, 100, {}, piece));  // which does not use it
  }
}

TEST_F(PrefixTest, TheChecksumOfAWholeValueIsCompared) {
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    for (const uint32_t key : {0U, kKey}) {
      AppendOptions options;
      options.codec = codec;
      options.encryption_key_id = key;
      Written written = Append(TextValue(200000, 1), 100, options);
      EXPECT_EQ(written.locator.value_checksum, ValueChecksumOf(written.value, 100, options.part_size_bytes));
      written.locator.value_checksum ^= 1;
      std::vector<uint8_t> piece(5000);
      for (const PageCacheUse use : {PageCacheUse::kNone, PageCacheUse::kAll}) {
        const ReadOptions around{.skip_cache = true, .page_cache = use};
        EXPECT_EQ(ReadValue(directory_.get(), written.head(), around).status().code(), StatusCode::kCorruption);
        EXPECT_EQ(ReadInBuffer(directory_.get(), written.head(), around).status().code(), StatusCode::kCorruption);
        EXPECT_EQ(directory_->VerifyValue(written.head(), around, nullptr).code(), StatusCode::kCorruption);
      }
      EXPECT_OK(directory_->ReadRange(written.head(), 50000, {}, piece));  // it relies on the parts' checksums
    }
  }
}

TEST_F(PrefixTest, EveryBitOfAHeadIsNoticedOrChangesNothing) {
  const Written written = Append(RandomValue(9000, 1), 20);
  std::vector<uint8_t> field(written.value.begin(), written.value.begin() + 20);
  field.resize(20 + kTrailerSizeBytes);
  EncodeTrailer(written.locator, std::span<uint8_t>(field).last<kTrailerSizeBytes>());
  for (size_t bit = 0; bit < 8 * (field.size() - 8); ++bit) {
    field[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    const Result<DecodedField> decoded = DecodeField(field);
    const StatusCode code = decoded.ok()
                                ? ReadValue(directory_.get(), decoded->head(), {.skip_cache = true}).status().code()
                                : decoded.status().code();
    EXPECT_EQ(code, StatusCode::kCorruption) << bit;
    field[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
  }
}

TEST_F(PrefixTest, APrefixLongerThanTheValueOrAHeadIsNoOption) {
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  AppendOptions options;
  options.prefix_size_bytes = 101;
  EXPECT_EQ(store->Append(RandomValue(100, 1), options, &unsynced).status().code(), StatusCode::kInvalidArgument);
  options.prefix_size_bytes = kPrefixMaxBytes + 1;
  EXPECT_EQ(store->Append(RandomValue(100000, 1), options, &unsynced).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(PrefixTest, IdentitiesDifferAndNoneIsZero) {
  std::vector<uint64_t> identities;
  for (int i = 0; i < 300; ++i) identities.push_back(Append(RandomValue(100, 1), 0).locator.identity);
  std::sort(identities.begin(), identities.end());
  EXPECT_EQ(std::adjacent_find(identities.begin(), identities.end()), identities.end());
  EXPECT_NE(identities.front(), 0U);
}

}  // namespace
}  // namespace quarry
