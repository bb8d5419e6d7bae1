// Encrypted extents: nothing plain in the files, whatever way a value takes; keys that are rotated, missing or wrong.
#include <algorithm>
#include <string>

#include "format/extent.h"
#include "format/test_cipher.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

constexpr uint32_t kKey = 7;

/// Stands in every part of a value, once at least in what a compressor makes of it.
const std::string kMarker = "a payload that nobody may find";

std::vector<uint8_t> MarkedValue(size_t size_bytes, uint64_t seed) {
  // Every other kilobyte does not compress, so that a marker stands in raw and in compressed parts.
  std::vector<uint8_t> value = RandomValue(size_bytes, seed);
  for (size_t at = 0; at + kMarker.size() <= size_bytes; at += kMarker.size()) {
    if (at / 1024 % 2 == 0) std::copy(kMarker.begin(), kMarker.end(), value.begin() + static_cast<ptrdiff_t>(at));
  }
  return value;
}

class StoreCipherTest : public testing::Test {
 protected:
  StoreCipherTest() {
    options_.cipher_provider = provider_;
    options_.recent_cache_bytes = 0;
    provider_->Rotate(kKey, 0x1111);
    Open();
  }
  void Open() {
    directory_.reset();
    directory_ = ValueOf(OpenDirectory(&env_, options_));
  }
  Result<Locator> TryAppend(std::span<const uint8_t> value, AppendOptions options = {}) {
    UnsyncedExtents unsynced;
    QUARRY_TRY_ASSIGN(const std::shared_ptr<Store> store, directory_->OpenForAppend({1}, "db/t"));
    QUARRY_TRY_ASSIGN(const Locator locator, store->Append(value, options, &unsynced));
    QUARRY_TRY(directory_->Sync(unsynced));
    return locator;
  }
  Locator Append(std::span<const uint8_t> value, AppendOptions options = {}) {
    options.encryption_key_id = kKey;
    return ValueOf(TryAppend(value, options));
  }
  StatusCode ReadCode(const Locator& locator) { return ReadValue(directory_.get(), locator).status().code(); }
  std::string SegmentPathOf(const Locator& locator) {
    char name[64];
    std::snprintf(name, sizeof name, "/home/stores/%016x/%08x.qseg", static_cast<unsigned>(locator.store.value),
                  locator.segment.value);
    return name;
  }
  /// The bytes of the extent, as they are in the file.
  std::vector<uint8_t> ExtentBytes(const Locator& locator) {
    std::vector<uint8_t> bytes(locator.extent_size_bytes);
    const auto file = ValueOf(memory_.OpenForRead(SegmentPathOf(locator)));
    EXPECT_EQ(ValueOf(file->ReadAt(locator.offset_bytes, bytes)), bytes.size());
    return bytes;
  }
  ExtentIndex IndexOf(const Locator& locator) {
    return ValueOf(DecodeExtentIndex(ExtentBytes(locator), locator, HeaderOf(&memory_, SegmentPathOf(locator)).salt));
  }
  bool MarkerInFiles() {
    for (const std::string& store : ValueOf(memory_.ListDirectory("/home/stores"))) {
      for (const std::string& name : ValueOf(memory_.ListDirectory("/home/stores/" + store))) {
        const auto file = ValueOf(memory_.OpenForRead("/home/stores/" + store + "/" + name));
        std::vector<uint8_t> bytes(ValueOf(file->SizeBytes()));
        EXPECT_EQ(ValueOf(file->ReadAt(0, bytes)), bytes.size());
        if (std::search(bytes.begin(), bytes.end(), kMarker.begin(), kMarker.end()) != bytes.end()) return true;
      }
    }
    return false;
  }

  std::shared_ptr<TestCipherProvider> provider_ = std::make_shared<TestCipherProvider>();
  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
};

TEST_F(StoreCipherTest, EveryWayAValueTakesReadsBackAndLeavesNothingPlain) {
  // Staged; gathered into one write; streamed; an index longer than half a batch; of no part, of a part and a byte.
  struct Way {
    size_t size_bytes;
    uint32_t part_size_bytes;
    uint32_t batch_bytes;
  };
  uint64_t seed = 0;
  for (const Way& way : {Way{0, 65536, 524288}, Way{1, 65536, 524288}, Way{3000, 512, 524288},
                         Way{65537, 65536, 524288}, Way{600000, 65536, 1U << 20}, Way{3U << 20, 1U << 20, 4U << 20},
                         Way{3U << 20, 65536, 524288}, Way{300000, 512, 8192}, Way{2U << 20, 16U << 20, 65536}}) {
    for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
      const std::vector<uint8_t> value = MarkedValue(way.size_bytes, ++seed);
      const Locator locator = Append(value, {way.part_size_bytes, codec, way.batch_bytes});
      const ExtentIndex index = IndexOf(locator);
      EXPECT_TRUE(index.header.encrypted);
      EXPECT_EQ(index.cipher.key_id, kKey);
      for (const uint32_t batch : {4096U, 100000U, 1U << 20}) {
        EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator, {.read_batch_bytes = batch})), value)
            << way.size_bytes << CodecName(codec);
      }
      for (const size_t offset : {size_t{0}, way.size_bytes / 3, way.size_bytes - way.size_bytes / 7}) {
        std::vector<uint8_t> piece(std::min<size_t>(way.size_bytes - offset, 5000));
        ASSERT_OK(directory_->ReadRange(locator, offset, {}, piece));
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), value.begin() + static_cast<ptrdiff_t>(offset)));
      }
    }
  }
  EXPECT_FALSE(MarkerInFiles());
  (void)ValueOf(TryAppend(MarkedValue(100000, 1), {65536, Codec::kZstd, 524288}));
  EXPECT_TRUE(MarkerInFiles()) << "the search itself must be able to find something";
}

TEST_F(StoreCipherTest, TheSameValueNeverLooksTheSame) {
  const std::vector<uint8_t> value(4096, 'x');
  const std::vector<uint8_t> first = ExtentBytes(Append(value, {512, Codec::kNone, 524288}));
  const std::vector<uint8_t> second = ExtentBytes(Append(value, {512, Codec::kNone, 524288}));
  const size_t parts = HeaderAndIndexSizeBytes(8, true);
  std::vector<std::string> blocks;
  for (const std::vector<uint8_t>& extent : {first, second}) {
    for (size_t part = 0; part < 8; ++part) {
      blocks.emplace_back(extent.begin() + static_cast<ptrdiff_t>(parts + part * 520),
                          extent.begin() + static_cast<ptrdiff_t>(parts + part * 520 + 16));
    }
  }
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(std::unique(blocks.begin(), blocks.end()), blocks.end()) << "key and IV of two parts were the same";
}

TEST_F(StoreCipherTest, RotatedKeysAreUsedFromThenOnAndOldOnesKeepReading) {
  const std::vector<uint8_t> value = MarkedValue(10000, 1);
  const Locator old_locator = Append(value);
  provider_->Rotate(kKey, 0x2222);
  const Locator new_locator = Append(value);
  EXPECT_EQ(IndexOf(old_locator).cipher.key_version, 1U);
  EXPECT_EQ(IndexOf(new_locator).cipher.key_version, 2U);
  Open();
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), old_locator)), value);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), new_locator)), value);
  provider_->Replace(kKey, 1, 0);
  EXPECT_EQ(ReadCode(old_locator), StatusCode::kKeyUnavailable);
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), new_locator)), value) << "only what needs the missing version is away";
}

TEST_F(StoreCipherTest, TheCatalogueTellsWhichSegmentsNeedAnOldKey) {
  const std::vector<uint8_t> value = MarkedValue(10000, 1);
  provider_->Rotate(kKey, 0x2222);
  const Locator newer = Append(value);
  provider_->Replace(kKey, 2, 0);
  const Locator older = Append(value);
  const Locator plain = ValueOf(TryAppend(value));
  for (int start = 0; start < 2; ++start) {
    Open();
    const CatalogueState state = directory_->catalogue()->state();
    const CatalogueSegment& segment = state.stores.at(older.store).segments.at(older.segment.value);
    EXPECT_EQ(segment.oldest_key_version, 1U);
    EXPECT_EQ(segment.encrypted_bytes, newer.extent_size_bytes + older.extent_size_bytes);
    EXPECT_EQ(segment.plain_bytes, plain.extent_size_bytes);
  }
}

TEST_F(StoreCipherTest, AMissingOrWrongKeyIsAnErrorAndComesBack) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    const std::vector<uint8_t> value = MarkedValue(200000, 1);
    const Locator locator = Append(value, {4096, codec, 524288});
    const uint64_t corruptions = directory_->GetCounters().corruptions;
    for (const uint64_t secret : {0x9999, 0}) {
      provider_->Replace(kKey, 1, secret);
      const Status status = ReadValue(directory_.get(), locator).status();
      EXPECT_EQ(status.code(), StatusCode::kKeyUnavailable);
      EXPECT_NE(status.message().find("segment 1 offset "), std::string::npos) << status.message();
      std::vector<uint8_t> piece(100);
      EXPECT_EQ(directory_->ReadRange(locator, 150000, {}, piece).code(), StatusCode::kKeyUnavailable);
    }
    EXPECT_EQ(directory_->GetCounters().corruptions, corruptions) << "nothing on the disk is wrong";
    provider_->Replace(kKey, 1, 0x1111);
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
  }
}

TEST_F(StoreCipherTest, WithoutAKeyNothingIsAppendedAndNothingIsPoisoned) {
  const std::vector<uint8_t> value = MarkedValue(3 << 20, 1);
  const Locator before = Append(value);
  AppendOptions options;
  options.encryption_key_id = kKey + 1;
  EXPECT_EQ(TryAppend(value, options).status().code(), StatusCode::kKeyUnavailable);
  EXPECT_EQ(directory_->GetCounters().segments_poisoned, 0U);
  EXPECT_EQ(Append(value).segment, before.segment);
  options_.cipher_provider = nullptr;
  Open();
  options.encryption_key_id = kKey;
  EXPECT_EQ(TryAppend(value, options).status().code(), StatusCode::kKeyUnavailable);
  EXPECT_EQ(ReadCode(before), StatusCode::kKeyUnavailable);
}

/// A key that goes away in the middle of a value.
class FailingProvider final : public CipherProvider {
 public:
  explicit FailingProvider(uint32_t parts) : parts_(parts) {}
  Result<CipherParameters> NewExtent(uint32_t) override { return CipherParameters{kCipherSchemeMariadb1, kKey, 1, {}}; }
  Result<std::unique_ptr<Cipher>> Open(const CipherParameters&) override {
    return std::unique_ptr<Cipher>(std::make_unique<FailingCipher>(parts_));
  }

 private:
  class FailingCipher final : public Cipher {
   public:
    explicit FailingCipher(uint32_t parts) : parts_(parts) {}
    Status Encrypt(uint32_t part, std::span<const uint8_t>, std::span<uint8_t> out) override {
      std::fill(out.begin(), out.end(), uint8_t{0xaa});
      return part < parts_ ? Status::Ok() : Status::KeyUnavailable("the key went away");
    }
    Status Decrypt(uint32_t, std::span<const uint8_t>, std::span<uint8_t>) override {
      return Status::KeyUnavailable("the key went away");
    }

   private:
    const uint32_t parts_;
  };
  const uint32_t parts_;
};

TEST_F(StoreCipherTest, AKeyThatGoesAwayInTheMiddleFailsThatAppendOnly) {
  for (const uint32_t parts : {0, 1, 40}) {
    options_.cipher_provider = std::make_shared<FailingProvider>(parts);
    Open();
    const std::vector<uint8_t> plain = RandomValue(10000, parts);
    const Locator before = ValueOf(TryAppend(plain));
    AppendOptions options;
    options.encryption_key_id = kKey;
    for (const size_t size : {size_t{100000}, size_t{6} << 20}) {
      const StatusCode code = TryAppend(MarkedValue(size, 1), options).status().code();
      EXPECT_EQ(code, parts >= PartCount(size, kPartSizeDefaultBytes) ? StatusCode::kOk : StatusCode::kKeyUnavailable);
    }
    EXPECT_EQ(directory_->GetCounters().segments_poisoned, 0U);
    EXPECT_EQ(ValueOf(TryAppend(plain)).segment, before.segment);
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), before)), plain);
    EXPECT_FALSE(MarkerInFiles());
  }
}

TEST_F(StoreCipherTest, ARangeReadsOnlyItsPartsOfAnEncryptedValue) {
  const Locator locator = Append(RandomValue(10 << 20, 1), {65536, Codec::kNone, 524288});
  const Counters before = directory_->GetCounters();
  std::vector<uint8_t> piece(1000);
  ASSERT_OK(directory_->ReadRange(locator, 5 << 20, {}, piece));
  const Counters after = directory_->GetCounters();
  EXPECT_LE(after.file_bytes_read - before.file_bytes_read, 65536U + 8 + 8192);
  EXPECT_EQ(after.parts_decrypted - before.parts_decrypted, 1U);
}

TEST_F(StoreCipherTest, EveryFlippedBitIsAnErrorOrTheRightBytes) {
  const std::vector<uint8_t> value = MarkedValue(1200, 3);
  const Locator locator = Append(value, {512, Codec::kLz4, 524288});
  Open();  // nothing is in memory any more
  for (uint64_t at = 0; at < locator.extent_size_bytes; ++at) {
    const int bit = static_cast<int>(at % 8);
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + at, bit));
    EXPECT_EQ(ReadCode(locator), StatusCode::kCorruption) << at;
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(locator), locator.offset_bytes + at, bit));
  }
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator)), value);
}

TEST_F(StoreCipherTest, AStartAfterACrashNeedsNoKey) {
  for (uint64_t i = 0; i < 20; ++i) (void)Append(MarkedValue(i * 1000, i), {2048, Codec::kZstd, 524288});
  const uint64_t live = directory_->ListStores()[0].live_bytes;
  CutPower(&memory_, &env_, 1, &directory_);
  options_.cipher_provider = nullptr;
  Open();
  EXPECT_GE(directory_->ListStores()[0].live_bytes, live);
}

// A server must not end because one of its statements finds no memory.
TEST_F(StoreCipherTest, AReadThatFindsNoMemoryIsAnError) {
  const auto starving = std::make_shared<StarvingProvider>(provider_);
  options_.cipher_provider = starving;
  Open();
  const std::vector<uint8_t> value = RandomValue(100000, 1);
  const Locator locator = Append(value);
  std::vector<uint8_t> piece(100);
  for (const bool skip_cache : {false, true}) {
    const ReadOptions options{.skip_cache = skip_cache};
    starving->is_starving = true;
    for (int time = 0; time < 2; ++time) {  // the second one is taken into the cache by whoever asks
      for (const Status& status : {ReadValue(directory_.get(), locator, options).status(),
                                   ReadInBuffer(directory_.get(), locator, options).status(),
                                   directory_->ReadRange(locator, 70000, options, piece),
                                   directory_->VerifyValue(locator, options, nullptr)}) {
        EXPECT_EQ(status.ToString(), "out of memory: a value of 100000 bytes");
      }
      (void)directory_->ReadIfCached(locator, options);  // the same, or nothing
    }
    EXPECT_EQ(directory_->GetCounters().cache_bytes, 0U);
    starving->is_starving = false;
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), locator, options)), value);
  }
}

}  // namespace
}  // namespace quarry
