// What a pass encrypts while it rewrites: plain extents and those of old keys. Every locator still leads to its value,
// also after a power cut, and a later pass takes what was encrypted for what it is.
#include <algorithm>

#include "context/layout.h"
#include "format/extent.h"
#include "format/test_cipher.h"
#include "gc/gc_test_util.h"
#include "io/path.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

constexpr uint32_t kKey = 1;
constexpr uint32_t kOtherKey = 7;
constexpr uint32_t kPrefix = 30;
constexpr GcOptions kRewrite{.rewrite_above = 1.25};

struct Value {
  std::vector<uint8_t> bytes;
  Locator locator;
  uint32_t prefix_size_bytes = 0;
  [[nodiscard]] Head head() const { return {locator, std::span<const uint8_t>(bytes).first(prefix_size_bytes)}; }
};

class GcEncryptionTest : public testing::Test {
 protected:
  GcEncryptionTest() {
    provider_->Rotate(kKey, 0x1111);
    provider_->Rotate(kOtherKey, 0x7777);
    Open();
  }

  void Open() {
    store_.reset();
    directory_.reset();
    directory_ = ValueOf(OpenDirectory(&env_, Options()));
    store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  }
  [[nodiscard]] DirectoryOptions Options() const {
    DirectoryOptions options = TestOptions();
    options.segment_size_bytes = 4 << 20;
    options.recent_cache_bytes = 0;
    options.cipher_provider = provider_;
    return options;
  }
  void Crash(uint64_t seed) {
    store_.reset();
    CutPower(&memory_, &env_, seed, &directory_);
    Open();
  }

  Value Append(size_t size_bytes, uint64_t seed, AppendOptions options) {
    Value value{RandomValue(size_bytes, seed), {}, options.prefix_size_bytes};
    // Half of it compresses.
    std::fill(value.bytes.begin() + static_cast<ptrdiff_t>(size_bytes / 2), value.bytes.end(), uint8_t{'x'});
    UnsyncedExtents unsynced;
    value.locator = ValueOf(store_->Append(value.bytes, options, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return value;
  }

  /// Of all sizes and forms; the last has no part.
  std::vector<Value> AppendAllForms(uint32_t key_id) {
    std::vector<Value> all;
    uint64_t seed = 1;
    for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
      for (const size_t size : {size_t{40}, size_t{300}, size_t{5000}, size_t{70000}, size_t{600000}}) {
        for (const uint32_t prefix : {0U, kPrefix}) {
          all.push_back(Append(size, seed++, {4096, codec, kWriteBatchDefaultBytes, prefix, key_id}));
        }
      }
    }
    all.push_back(Append(kPrefix, seed, {4096, Codec::kNone, kWriteBatchDefaultBytes, kPrefix, key_id}));
    return all;
  }

  GcReport Collect(const std::vector<Value>& needed, const GcEncryption& encryption, uint64_t bytes_max = UINT64_MAX) {
    const std::vector<StoreId> stores = {store_->id()};
    const std::unique_ptr<GcPass> pass = ValueOf(BeginGcPass(directory_.get(), stores, kRewrite));
    for (const Value& value : needed) pass->Mark(value.locator);
    pass->SetEncryption(store_->id(), encryption);
    while (!ValueOf(pass->ReclaimSome(bytes_max)).done) {
    }
    EXPECT_EQ(pass->report().segments_damaged, 0U) << pass->report().damage;
    return pass->report();
  }

  void ExpectAll(const std::vector<Value>& all) {
    for (const Value& value : all) {
      const auto read = ReadValue(directory_.get(), value.head(), {.skip_cache = true});
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      ASSERT_TRUE(*read == value.bytes) << value.bytes.size();
      ASSERT_OK(directory_->VerifyValue(value.head(), {}, nullptr));
      if (value.bytes.size() < 200) continue;
      std::vector<uint8_t> range(100);
      ASSERT_OK(directory_->ReadRange(value.head(), 90, {}, range));
      EXPECT_TRUE(std::equal(range.begin(), range.end(), value.bytes.begin() + 90));
    }
  }
  [[nodiscard]] StoreStats Stats() const { return store_->GetStats(); }
  /// Whether any file of the store holds `needle`.
  [[nodiscard]] bool FilesHold(std::span<const uint8_t> needle) {
    const std::string directory = "/home/stores/" + StoreDirectoryName(store_->id());
    for (const std::string& name : ValueOf(memory_.ListDirectory(directory))) {
      const auto file = ValueOf(memory_.OpenForRead(JoinPath(directory, name)));
      std::vector<uint8_t> bytes(ValueOf(file->SizeBytes()));
      EXPECT_EQ(ValueOf(file->ReadAt(0, bytes)), bytes.size());
      if (std::search(bytes.begin(), bytes.end(), needle.begin(), needle.end()) != bytes.end()) return true;
    }
    return false;
  }

  std::shared_ptr<TestCipherProvider> provider_ = std::make_shared<TestCipherProvider>();
  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::shared_ptr<Store> store_;
};

TEST_F(GcEncryptionTest, PlainValuesAreEncryptedAndReadAsBefore) {
  for (const uint64_t bytes_max : {UINT64_MAX, uint64_t{5000}}) {
    const std::vector<Value> all = AppendAllForms(0);
    const std::span<const uint8_t> needle = std::span(all[4].bytes).subspan(100, 200);
    EXPECT_TRUE(FilesHold(needle));
    EXPECT_GT(Stats().plain_bytes, 0U);
    const GcReport report = Collect(all, {kKey, 0}, bytes_max);
    EXPECT_GT(report.segments_rewritten, 0U);
    EXPECT_EQ(report.encrypted_extents, all.size());
    EXPECT_FALSE(FilesHold(needle));
    EXPECT_EQ(Stats().plain_bytes, 0U);
    EXPECT_GT(Stats().encrypted_bytes, 0U);
    EXPECT_EQ(Stats().oldest_key_version, 1U);
    ExpectAll(all);
    Crash(bytes_max);
    ExpectAll(all);
    EXPECT_EQ(Stats().plain_bytes, 0U) << "it is known after a crash, too";
    // The next pass finds nothing to do, and everything where it is.
    EXPECT_EQ(Collect(all, {kKey, 0}).segments_rewritten, 0U);
    ExpectAll(all);
    Collect({}, {});
  }
}

// Encrypted they take a quarter more than their rows say, and an entry of the map each.
TEST_F(GcEncryptionTest, SmallValuesAreRewrittenOnce) {
  std::vector<Value> all;
  for (uint64_t i = 0; i < 300; ++i) all.push_back(Append(60, i, {}));
  EXPECT_EQ(Collect(all, {kKey, 0}).segments_rewritten, 1U);
  for (const GcEncryption& encryption : {GcEncryption{kKey, 0}, GcEncryption{}}) {
    EXPECT_EQ(Collect(all, encryption).segments_rewritten, 0U);
  }
  ExpectAll(all);
}

TEST_F(GcEncryptionTest, OldKeyVersionsAreLeftBehind) {
  const std::vector<Value> all = AppendAllForms(kKey);
  EXPECT_EQ(Collect(all, {kKey, 1}).segments_rewritten, 0U) << "nothing is too old";
  provider_->Rotate(kKey, 0x2222);
  EXPECT_EQ(Collect(all, {kKey, 1}).segments_rewritten, 0U) << "one version behind is allowed";
  EXPECT_EQ(Collect(all, {kKey, 2}).encrypted_extents, all.size());
  EXPECT_EQ(Stats().oldest_key_version, 2U);
  provider_->Replace(kKey, 1, 0);  // the old version may go
  ExpectAll(all);
  Open();
  ExpectAll(all);
  EXPECT_EQ(Stats().oldest_key_version, 2U);
}

TEST_F(GcEncryptionTest, ASegmentOfBothIsPackedAndOnlyThePlainIsEncrypted) {
  std::vector<Value> all;
  std::vector<Value> needed;
  for (uint64_t i = 0; i < 200; ++i) {
    AppendOptions options;
    options.encryption_key_id = i % 2 == 0 ? kKey : 0;
    all.push_back(Append(100 + 13 * i, i, options));
    if (i % 3 == 0) needed.push_back(all.back());
  }
  const GcReport report = Collect(needed, {kKey, 0});
  EXPECT_EQ(report.encrypted_extents, needed.size() / 2);
  ExpectAll(needed);
  // Again, now without an encryption that is wanted: what was encoded anew is copied as it is.
  std::vector<Value> fewer;
  for (size_t i = 0; i < needed.size(); i += 4) fewer.push_back(needed[i]);
  const GcReport packed = Collect(fewer, {});
  EXPECT_EQ(packed.segments_rewritten, 1U);
  EXPECT_EQ(packed.encrypted_extents, 0U);
  ExpectAll(fewer);
  EXPECT_EQ(Stats().plain_bytes, 0U);
  Crash(7);
  ExpectAll(fewer);
}

TEST_F(GcEncryptionTest, AnotherKeyIsAnotherKey) {
  std::vector<Value> all;
  AppendOptions other;
  other.encryption_key_id = kOtherKey;
  all.push_back(Append(5000, 1, other));
  EXPECT_EQ(Collect(all, {kKey, 0}).segments_rewritten, 0U) << "nothing is known to be plain";
  all.push_back(Append(5000, 2, other));
  all.push_back(Append(5000, 3, {}));
  EXPECT_EQ(Collect(all, {kKey, 0}).encrypted_extents, 2U);
  provider_->Replace(kOtherKey, 1, 0);
  ExpectAll({all[1], all[2]});
}

TEST_F(GcEncryptionTest, AMissingKeyLeavesTheSegmentAsItIs) {
  const std::vector<Value> all = AppendAllForms(0);
  GcReport report = Collect(all, {99, 0});
  EXPECT_EQ(report.segments_rewritten, 0U);
  EXPECT_GT(report.rewrites_refused, 0U);
  ExpectAll(all);
  std::vector<Value> old = AppendAllForms(kOtherKey);
  old.push_back(Append(5000, 500, {}));  // plain, so that their segment is looked at
  std::vector<Value> both = all;
  both.insert(both.end(), old.begin(), old.end());
  provider_->Replace(kOtherKey, 1, 0);  // so it cannot be decrypted
  report = Collect(both, {kKey, 0});
  EXPECT_GT(report.rewrites_refused, 0U);
  ExpectAll(all);
  provider_->Replace(kOtherKey, 1, 0x7777);
  ExpectAll(both);
}

TEST_F(GcEncryptionTest, ARewritingThatFindsNoMemoryIsLeftOut) {
  const auto starving = std::make_shared<StarvingProvider>(provider_);
  DirectoryOptions options = Options();
  options.cipher_provider = starving;
  store_.reset();
  directory_.reset();
  directory_ = ValueOf(OpenDirectory(&env_, options));
  store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  const std::vector<Value> all = AppendAllForms(0);
  starving->is_starving = true;
  const GcReport report = Collect(all, {kKey, 0});
  EXPECT_EQ(report.segments_rewritten, 0U);
  EXPECT_GT(report.rewrites_refused, 0U);
  ExpectAll(all);
  starving->is_starving = false;
  EXPECT_EQ(Collect(all, {kKey, 0}).encrypted_extents, all.size());
  ExpectAll(all);
}

TEST_F(GcEncryptionTest, WhatACrashLeftUncountedCountsAsPlainUntilItWasLookedAt) {
  const std::vector<Value> all = AppendAllForms(kKey);
  Crash(3);
  EXPECT_GT(Stats().plain_bytes, 0U) << "nobody knows";
  const GcReport report = Collect(all, {kKey, 0});
  EXPECT_GT(report.segments_rewritten, 0U);
  EXPECT_EQ(report.encrypted_extents, 0U);
  EXPECT_EQ(Stats().plain_bytes, 0U);
  ExpectAll(all);
}

TEST_F(GcEncryptionTest, NobodyTakesANewerKeyForTheOldestOneAfterACrash) {
  std::vector<Value> all = AppendAllForms(kKey);
  Crash(3);
  provider_->Rotate(kKey, 0x2222);
  AppendOptions newer;
  newer.encryption_key_id = kKey;
  all.push_back(Append(5000, 900, newer));
  EXPECT_EQ(Stats().oldest_key_version, 0U) << "an operator would throw version 1 away";
  (void)Collect(all, {kKey, 0});
  EXPECT_EQ(Stats().oldest_key_version, 1U);
  ExpectAll(all);
}

TEST_F(GcEncryptionTest, APowerCutAtAnyCallLeavesTheOldOrTheNew) {
  const std::vector<Value> all = AppendAllForms(0);
  Open();
  for (uint64_t cut = 0;; cut += 3) {
    uint64_t calls = 0;
    env_.SetHook(
        [&](const Call&) { return calls++ >= cut ? Status::FromErrno(EIO, "the power is gone", "") : Status::Ok(); });
    const std::vector<StoreId> stores = {store_->id()};
    auto pass = BeginGcPass(directory_.get(), stores, kRewrite);
    bool is_done = false;
    if (pass.ok()) {
      for (const Value& value : all) (*pass)->Mark(value.locator);
      (*pass)->SetEncryption(store_->id(), {kKey, 0});
      auto step = (*pass)->ReclaimSome(UINT64_MAX);
      while (step.ok() && !step->done) step = (*pass)->ReclaimSome(UINT64_MAX);
      is_done = step.ok();
      pass->reset();
    }
    env_.SetHook(nullptr);
    Crash(cut);
    ExpectAll(all);
    if (is_done && calls < cut) return;
  }
}

}  // namespace
}  // namespace quarry
