// Every bit of every file of a small installation, flipped in turn: the store gives an error or the right bytes, and
// verification finds every flip that has a meaning. The counts are printed.
#include <array>
#include <cerrno>
#include <cstdio>

#include "format/extent.h"
#include "format/segment_map.h"
#include "format/test_cipher.h"
#include "quarry/gc.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

constexpr const char* kSegmentPath = "/home/stores/0000000000000001/00000001.qseg";

uint64_t SizeOf(Env* env, const std::string& path) { return ValueOf(ValueOf(env->OpenForRead(path))->SizeBytes()); }

struct Flips {
  uint64_t flips = 0;
  uint64_t read_errors = 0;
  uint64_t damaged = 0;   ///< verification says so
  uint64_t leftover = 0;  ///< it names the place as one without a meaning
  void Print(const char* what) const {
    std::printf("%s: %llu bits flipped, %llu damaged by verification, %llu without a meaning, %llu reads refused\n",
                what, static_cast<unsigned long long>(flips), static_cast<unsigned long long>(damaged),
                static_cast<unsigned long long>(leftover), static_cast<unsigned long long>(read_errors));
  }
};

/// Reads all values while one bit is wrong, around the page cache (where the device puts them, if they are stored as
/// they are) and through it. The number of those that were refused.
uint64_t ReadAll(StoreDirectory* directory, const Values& values, uint64_t at) {
  uint64_t errors = 0;
  for (const auto& [locator, value] : values) {
    const std::array<Result<std::vector<uint8_t>>, 2> reads = {
        ReadValue(directory, locator, {.page_cache = PageCacheUse::kAll}),
        ReadInBuffer(directory, locator, {.page_cache = PageCacheUse::kNone})};
    EXPECT_EQ(reads[0].ok(), reads[1].ok()) << "one way alone is refused with byte " << at << " flipped";
    for (const Result<std::vector<uint8_t>>& read : reads) {
      if (read.ok()) {
        EXPECT_EQ(*read, value) << "wrong bytes with byte " << at << " flipped";
      } else {
        EXPECT_EQ(read.status().code(), StatusCode::kCorruption);
        EXPECT_NE(read.status().ToString().find("store 1 segment 1"), std::string::npos);
      }
    }
    errors += reads[0].ok() ? 0 : 1;
  }
  return errors;
}

/// Where each extent begins, and its size without what fills its end.
std::vector<std::pair<uint64_t, uint64_t>> Extents(MemoryEnv* env, const Values& values) {
  const auto file = ValueOf(env->OpenForRead(kSegmentPath));
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  for (const auto& [locator, value] : values) {
    std::vector<uint8_t> bytes(kExtentHeaderSizeBytes);
    EXPECT_EQ(ValueOf(file->ReadAt(locator.offset_bytes, bytes)), bytes.size());
    const auto header = ValueOf(DecodeExtentHeader(bytes, locator, HeaderOf(env, kSegmentPath).salt));
    extents.emplace_back(locator.offset_bytes, ExtentSizeBytes(header));
  }
  return extents;
}

constexpr uint32_t kKey = 7;

class CorruptionTest : public testing::Test {};

/// Nothing is kept in memory, so that each read looks at the files; values may be encrypted.
DirectoryOptions OptionsForFlips() {
  DirectoryOptions options = TestOptions();
  options.recent_cache_bytes = 0;
  options.value_cache_bytes = 0;
  const auto keys = std::make_shared<TestCipherProvider>();
  keys->Rotate(kKey, 0x1111);
  options.cipher_provider = keys;
  return options;
}

TEST_F(CorruptionTest, EveryBitOfASegment) {
  struct Variant {
    Codec codec;
    uint32_t key;
  };
  for (const auto& [codec, key] :
       {Variant{Codec::kNone, 0}, {Codec::kLz4, 0}, {Codec::kZstd, 0}, {Codec::kLz4, kKey}}) {
    MemoryEnv env;
    const DirectoryOptions options = OptionsForFlips();
    const Values values = MakeInstallation(&env, options, codec, 4, 700, key);
    ASSERT_EQ(VerifyAll(&env).seen.findings.size(), 0U);
    const std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
    // A running server has read the header: what becomes of it later concerns no read.
    ASSERT_EQ(ReadAll(directory.get(), values, 0), 0U);
    const auto extents = Extents(&env, values);
    Flips flips;
    for (uint64_t at = 0; at < SizeOf(&env, kSegmentPath); ++at) {
      const bool has_meaning = at < kBlockSizeBytes || std::any_of(extents.begin(), extents.end(), [at](const auto& e) {
                                 return at >= e.first && at < e.first + e.second;
                               });
      for (int bit = 0; bit < 8; ++bit) {
        ASSERT_TRUE(env.FlipBit(kSegmentPath, at, bit));
        ++flips.flips;
        flips.read_errors += ReadAll(directory.get(), values, at);
        const Verified verified = VerifyAll(&env);
        ASSERT_FALSE(verified.seen.findings.empty()) << "byte " << at << " bit " << bit << " was not noticed";
        const Finding& finding = verified.seen.findings.front();
        if (has_meaning) {
          ASSERT_EQ(finding.kind, FindingKind::kDamaged) << "byte " << at << "\n" << verified.seen.Text();
          ++flips.damaged;
        } else {
          ASSERT_EQ(finding.kind, FindingKind::kLeftover) << "byte " << at << "\n" << verified.seen.Text();
          ++flips.leftover;
        }
        ASSERT_LE(finding.offset_bytes, at);
        ASSERT_LT(at, finding.offset_bytes + finding.size_bytes);
        if (at < kBlockSizeBytes) {
          ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
          ASSERT_EQ(verified.totals->extents, values.size());
        }
        ASSERT_EQ(finding.table_name, "db/t");
        ASSERT_EQ(finding.path, kSegmentPath);
        ASSERT_TRUE(env.FlipBit(kSegmentPath, at, bit));
      }
      if (testing::Test::HasFailure()) return;
    }
    // Every byte of every extent is covered for reads: header, index and parts.
    uint64_t covered = 0;
    for (const auto& [offset, size] : extents) covered += size;
    EXPECT_EQ(flips.read_errors, covered * 8);
    EXPECT_EQ(flips.damaged, (covered + kBlockSizeBytes) * 8);
    EXPECT_EQ(directory->GetCounters().corruptions, 2 * flips.read_errors) << "each was refused both ways";
    flips.Print((std::string("segment, codec ") + CodecName(codec) + (key != 0 ? ", encrypted" : "")).c_str());
  }
}

// The catalogue has the salt, by which extents are told from anything else.
TEST_F(CorruptionTest, ADamagedHeaderCostsNoValue) {
  MemoryEnv env;
  DirectoryOptions options = OptionsForFlips();
  options.segment_size_bytes = 65536;
  const Values values = MakeInstallation(&env, options, Codec::kNone, 10, 4000);
  EXPECT_NE(values.front().first.segment, values.back().first.segment);
  for (uint64_t bit = 0; bit < 8 * kBlockSizeBytes; bit += 37) {
    ASSERT_TRUE(env.FlipBit(kSegmentPath, bit / 8, static_cast<int>(bit % 8)));
    const std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
    ASSERT_EQ(ReadAll(directory.get(), values, bit / 8), 0U);
    Remember scrub;
    ScrubPlace place;
    (void)ScrubStores(directory.get(), &place, &scrub);
    ASSERT_EQ(scrub.findings.size(), 1U) << scrub.Text();
    EXPECT_EQ(scrub.findings[0].kind, FindingKind::kDamaged);
    EXPECT_EQ(scrub.findings[0].size_bytes, kBlockSizeBytes);
    ASSERT_TRUE(env.FlipBit(kSegmentPath, bit / 8, static_cast<int>(bit % 8)));
  }
}

// Nor does one that the device refuses: a rewritten segment has a copy of it.
TEST_F(CorruptionTest, AHeaderThatCannotBeReadCostsNoValue) {
  for (const bool is_rewritten : {false, true}) {
    MemoryEnv memory;
    FaultEnv env(&memory);
    const DirectoryOptions options = OptionsForFlips();
    const Values values = MakeInstallation(&env, options, Codec::kNone, 80, 15);
    const std::vector<StoreId> stores = {values.front().first.store};
    std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
    if (is_rewritten) {
      const auto pass = ValueOf(BeginGcPass(directory.get(), stores));
      for (size_t i = 0; i < values.size(); i += 10) pass->Mark(values[i].first);
      ASSERT_TRUE(ValueOf(pass->ReclaimSome(UINT64_MAX)).done);
      ASSERT_EQ(pass->report().segments_rewritten, 1U);
    }
    directory.reset();
    env.RefuseReads(kSegmentPath, kSegmentHeaderSizeBytes);
    directory = ValueOf(OpenDirectory(&env, options));
    for (size_t i = 0; i < values.size(); i += 10) {
      EXPECT_EQ(ValueOf(ReadValue(directory.get(), values[i].first)), values[i].second) << i;
    }
    env.SetHook(nullptr);
    for (size_t i = 0; i < values.size(); i += 10) {
      EXPECT_EQ(ValueOf(ReadValue(directory.get(), values[i].first)), values[i].second) << "it reads again";
    }
  }
}

// GC rewrote it: a map behind its header, both again at its end, and extents elsewhere than their locators say.
void FlipRewrittenSegment(uint32_t key) {
  MemoryEnv env;
  const DirectoryOptions options = OptionsForFlips();
  const Values values = MakeInstallation(&env, options, Codec::kNone, 80, 15, key);
  Values kept;
  {
    const std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
    const std::vector<StoreId> stores = {values.front().first.store};
    const auto pass = ValueOf(BeginGcPass(directory.get(), stores));
    for (size_t i = 0; i < values.size(); i += 10) {
      pass->Mark(values[i].first);
      kept.push_back(values[i]);
    }
    while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
    }
    ASSERT_GT(pass->report().segments_rewritten, 0U);
  }
  ASSERT_EQ(VerifyAll(&env).seen.findings.size(), 0U) << VerifyAll(&env).seen.Text();
  Flips flips;
  uint64_t needed_bytes = kBlockSizeBytes;
  for (const auto& [locator, value] : kept) needed_bytes += locator.extent_size_bytes;
  const SegmentHeader header = HeaderOf(&env, kSegmentPath);
  const uint64_t size = SizeOf(&env, kSegmentPath);
  ASSERT_TRUE(HasCopy(header, size));
  for (uint64_t at = 0; at < size; ++at) {
    const bool is_copy = at >= CopyBeginBytes(header);
    const bool is_layout = is_copy || at < DataBeginBytes(header.run_count);
    for (int bit = is_copy ? static_cast<int>(at % 8) : 0; bit < 8; bit += is_copy ? 8 : 1) {
      ASSERT_TRUE(env.FlipBit(kSegmentPath, at, bit));
      ++flips.flips;
      // Opened anew, for a map stays in memory once it was read.
      const auto directory = OpenDirectory(&env, options);
      const uint64_t errors = directory.ok() ? ReadAll(directory->get(), kept, at) : 1;
      const Verified verified = VerifyAll(&env);
      const bool is_damaged = verified.seen.CountOf(FindingKind::kDamaged) > 0;
      ASSERT_TRUE(is_damaged || errors == 0) << "byte " << at << " bit " << bit << "\n" << verified.seen.Text();
      ASSERT_TRUE(errors == 0 || !is_layout) << "byte " << at << " bit " << bit << ": the other one was to be read";
      flips.read_errors += errors;
      ++(is_damaged ? flips.damaged : flips.leftover);
      ASSERT_TRUE(env.FlipBit(kSegmentPath, at, bit));
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(flips.damaged, needed_bytes * 8);
  flips.Print(key == 0 ? "rewritten segment" : "rewritten segment, encrypted");
}

TEST_F(CorruptionTest, EveryBitOfARewrittenSegment) { FlipRewrittenSegment(0); }

TEST_F(CorruptionTest, EveryBitOfARewrittenSegmentOfEncryptedExtents) { FlipRewrittenSegment(kKey); }

// Else a damaged write would be found when memory has let go of what was written, and not when it is asked for.
TEST_F(CorruptionTest, VerifyingAsksTheFileAndNotTheMemoryThatHasWhatWasWrittenLast) {
  MemoryEnv env;
  const auto directory = ValueOf(OpenDirectory(&env, TestOptions()));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  for (const size_t size : {size_t{20000}, size_t{3} << 20}) {
    UnsyncedExtents unsynced;
    const Locator locator = ValueOf(store->Append(RandomValue(size, size), {}, &unsynced));
    EXPECT_OK(directory->VerifyValue(locator, {}, nullptr));  // nothing is wrong with what is not written yet
    ASSERT_OK(directory->Sync(unsynced));
    EXPECT_OK(directory->VerifyValue(locator, {}, nullptr));
    const uint64_t at = locator.offset_bytes + locator.extent_size_bytes / 2;
    ASSERT_TRUE(env.FlipBit(SegmentPathOf(locator), at, 3));
    EXPECT_OK(ReadValue(directory.get(), locator, {.skip_cache = true}).status());
    EXPECT_EQ(directory->VerifyValue(locator, {}, nullptr).code(), StatusCode::kCorruption);
    ASSERT_TRUE(env.FlipBit(SegmentPathOf(locator), at, 3));
    EXPECT_OK(directory->VerifyValue(locator, {}, nullptr));
  }
  EXPECT_EQ(directory->GetCounters().corruptions, 2U);
}

/// Every bit of a small file of a data path: each in an installation of its own, for opening may write it anew. The
/// engine starts. `takes_path_away`: no value of the path is read then, and none of it is given back.
void FlipSmallFile(const std::string& path, bool takes_path_away) {
  DirectoryOptions options = OptionsForFlips();
  options.data_paths = {"/disk1"};
  Flips flips;
  uint64_t size = 1;
  for (uint64_t at = 0; at < size; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      MemoryEnv env;
      ASSERT_OK(env.CreateDirectory("/disk1"));
      const Values values = MakeInstallation(&env, options, Codec::kNone, 2);
      size = SizeOf(&env, path);
      ASSERT_TRUE(env.FlipBit(path, at, bit));
      ++flips.flips;
      const Verified verified = VerifyAll(&env);
      ASSERT_OK(verified.totals.status());
      const auto found = std::find_if(verified.seen.findings.begin(), verified.seen.findings.end(),
                                      [&path](const Finding& finding) { return finding.path == path; });
      ASSERT_NE(found, verified.seen.findings.end()) << "byte " << at << " bit " << bit << " was not noticed";
      ASSERT_EQ(found->kind, FindingKind::kDamaged) << found->what;
      ++flips.damaged;
      const std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(&env, options));
      for (const auto& [locator, value] : values) {
        const Result<std::vector<uint8_t>> read = ReadValue(directory.get(), locator, {});
        ASSERT_EQ(read.ok(), !takes_path_away) << "byte " << at << " bit " << bit;
        if (read.ok()) {
          ASSERT_EQ(*read, value);
        } else {
          ++flips.read_errors;
          ASSERT_EQ(read.status().code(), StatusCode::kUnavailable) << read.status().ToString();
        }
      }
    }
  }
  flips.Print(path.c_str());
}

TEST_F(CorruptionTest, EveryBitOfAPathMarker) { FlipSmallFile("/disk1/quarry/PATH", true); }

// Whose path it is cannot be told then: it is only read.
TEST_F(CorruptionTest, EveryBitOfTheRecordOfWhoOpenedAPath) { FlipSmallFile("/disk1/quarry/OPENED", false); }

}  // namespace
}  // namespace quarry
