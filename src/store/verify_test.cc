// Verification of whole installations: what it finds, what it calls harmless, and the scrub of a running directory.
#include "quarry/verify.h"

#include <functional>
#include <memory>
#include <utility>

#include "base/checksum.h"
#include "format/extent.h"
#include "format/segment_map.h"
#include "quarry/gc.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

constexpr const char* kStorePath = "/home/stores/0000000000000001";
constexpr const char* kSegmentPath = "/home/stores/0000000000000001/00000001.qseg";

TEST(VerifyTest, ACleanInstallation) {
  MemoryEnv env;
  ASSERT_OK(env.CreateDirectory("/disk1"));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1"};
  const Values values = MakeInstallation(&env, options, Codec::kZstd, 6);
  const Verified verified = VerifyAll(&env);
  ASSERT_OK(verified.totals.status());
  EXPECT_EQ(verified.seen.Text(), "");
  EXPECT_EQ(verified.totals->stores, 1U);
  EXPECT_EQ(verified.totals->segments, 1U);
  EXPECT_EQ(verified.totals->extents, values.size());
  EXPECT_GT(verified.totals->parts, values.size());
  EXPECT_EQ(verified.seen.last.bytes_done, verified.seen.last.bytes_total);
}

TEST(VerifyTest, MissingFilesAndPaths) {
  MemoryEnv env;
  for (const char* path : {"/disk1", "/disk2"}) ASSERT_OK(env.CreateDirectory(path));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1", "/disk2"};
  MakeInstallation(&env, options, Codec::kNone, 3);
  ASSERT_OK(env.Rename("/disk1", "/elsewhere"));
  const Verified away = VerifyAll(&env);
  EXPECT_EQ(away.seen.CountOf(FindingKind::kUnreadable), 2U) << away.seen.Text();  // the path, and the segment on it
  EXPECT_EQ(away.seen.CountOf(FindingKind::kMissing), 0U) << away.seen.Text();
  const Verified told = VerifyAll(&env, {"/home", {"/elsewhere"}});
  EXPECT_EQ(told.seen.Text(), "");
  EXPECT_EQ(told.totals->segments, 1U);
  EXPECT_EQ(VerifyAll(&env, {"/home", {"/home"}}).totals.status().code(), StatusCode::kInvalidArgument);

  ASSERT_OK(env.RemoveFile("/elsewhere/quarry/0000000000000001/00000001.qseg"));
  const Verified gone = VerifyAll(&env, {"/home", {"/elsewhere"}});
  ASSERT_EQ(gone.seen.findings.size(), 1U) << gone.seen.Text();
  EXPECT_EQ(gone.seen.findings[0].kind, FindingKind::kMissing);
  EXPECT_EQ(gone.seen.findings[0].segment, SegmentNumber{1});
  EXPECT_EQ(gone.seen.findings[0].table_name, "db/t");
}

TEST(VerifyTest, AFolderThatCannotBeListedIsVerifiedByItsRecords) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  const Values values = MakeInstallation(&memory, TestOptions(), Codec::kNone, 3);
  env.RefuseLists(kStorePath, EIO);
  const Verified verified = VerifyAll(&env);
  ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kUnreadable);
  EXPECT_EQ(verified.seen.findings[0].path, kStorePath);
  EXPECT_EQ(verified.totals->extents, values.size());
  ASSERT_OK(memory.RemoveFile(kSegmentPath));
  const Verified gone = VerifyAll(&env);
  EXPECT_EQ(gone.seen.findings.size(), 2U) << gone.seen.Text();
  EXPECT_EQ(gone.seen.CountOf(FindingKind::kMissing), 1U) << gone.seen.Text();
}

TEST(VerifyTest, NoSegmentIsMissingOnAPathThatCannotBeListed) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  ASSERT_OK(memory.CreateDirectory("/disk1"));
  DirectoryOptions options = TestOptions();
  options.data_paths = {"/disk1"};
  MakeInstallation(&memory, options, Codec::kNone, 3);
  env.RefuseLists("/disk1/quarry", EIO);
  const Verified verified = VerifyAll(&env);
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kUnreadable), 2U) << verified.seen.Text();  // the path, and the segment
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kMissing), 0U) << verified.seen.Text();
}

TEST(VerifyTest, ForeignFilesAndLeftovers) {
  MemoryEnv env;
  const Values values = MakeInstallation(&env, TestOptions(), Codec::kNone, 3);
  const std::vector<uint8_t> bytes = {'x'};
  ASSERT_OK(env.ReplaceFile(std::string(kStorePath) + "/notes.txt", bytes));
  ASSERT_OK(env.ReplaceFile("/home/stray", bytes));
  ASSERT_OK(env.CreateDirectory("/home/stores/not-a-store"));
  ASSERT_OK(env.ReplaceFile("/home/OPENED.new", bytes));
  ASSERT_OK(env.ReplaceFile("/home/CATALOGUE-0000000000000000", bytes));
  const Verified verified = VerifyAll(&env);
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kForeign), 3U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kLeftover), 2U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings.size(), 5U) << verified.seen.Text();
}

TEST(VerifyTest, AStartKnowsWhereTheScrubWas) {
  MemoryEnv env;
  FaultEnv faults(&env);
  MakeInstallation(&env, TestOptions(), Codec::kNone, 3);
  auto directory = ValueOf(OpenDirectory(&faults, TestOptions()));
  EXPECT_EQ(LastScrubPlace(directory.get()).store, StoreId{0});
  ASSERT_OK(NoteScrubPlace(directory.get(), {StoreId{1}, SegmentNumber{7}}));
  for (int start = 0; start < 2; ++start) {
    CutPower(&env, &faults, 1, &directory);
    directory = ValueOf(OpenDirectory(&faults, TestOptions()));
    EXPECT_EQ(LastScrubPlace(directory.get()).store, StoreId{1});
    EXPECT_EQ(LastScrubPlace(directory.get()).segment, SegmentNumber{7});
  }
}

TEST(VerifyTest, AShortSegmentAndOneOfAnotherStore) {
  MemoryEnv env;
  MakeInstallation(&env, TestOptions(), Codec::kNone, 4);
  const auto whole = ValueOf(env.ReadSmallFile(kSegmentPath, 1 << 20));
  ASSERT_OK(env.ReplaceFile(kSegmentPath, std::span(whole).first(whole.size() - 8192)));
  const Verified cut = VerifyAll(&env);
  EXPECT_EQ(cut.seen.CountOf(FindingKind::kMissing), 1U) << cut.seen.Text();
  EXPECT_EQ(cut.seen.findings[0].offset_bytes, whole.size() - 8192);
  EXPECT_EQ(cut.seen.findings[0].size_bytes, 8192U);

  ASSERT_OK(env.CreateDirectory("/home/stores/0000000000000002"));
  ASSERT_OK(env.ReplaceFile("/home/stores/0000000000000002/00000001.qseg", whole));
  const Verified copied = VerifyAll(&env);
  EXPECT_TRUE(std::any_of(copied.seen.findings.begin(), copied.seen.findings.end(), [](const Finding& finding) {
    return finding.store == StoreId{2} && finding.kind == FindingKind::kDamaged && finding.offset_bytes == 0;
  })) << copied.seen.Text();
}

TEST(VerifyTest, DamageBeforeARangeThatWasNeverWrittenMakesNothingMissing) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  Locator locator;
  {
    const auto directory = ValueOf(OpenDirectory(&env, TestOptions()));
    const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
    UnsyncedExtents unsynced;
    locator = ValueOf(store->Append(std::vector<uint8_t>(1100), {.codec = Codec::kNone}, &unsynced));
    ASSERT_OK(directory->Sync(unsynced));
    env.FailCall(CallKind::kWrite, 2, ENOSPC);
    const auto failed =
        store->Append(RandomValue(200000, 1), {.codec = Codec::kNone, .write_batch_bytes = kBatchMinBytes}, &unsynced);
    ASSERT_EQ(failed.status().code(), StatusCode::kNoSpace);
  }
  const Verified short_file = VerifyAll(&memory);
  ASSERT_EQ(short_file.seen.CountOf(FindingKind::kDoubtful), 1U) << short_file.seen.Text();  // the size
  ASSERT_EQ(short_file.seen.CountOf(FindingKind::kLeftover), 1U) << short_file.seen.Text();  // the range
  ASSERT_EQ(short_file.seen.findings.size(), 2U) << short_file.seen.Text();
  ASSERT_TRUE(memory.FlipBit(kSegmentPath, locator.offset_bytes + 100, 1));
  const Verified verified = VerifyAll(&memory);
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kMissing), 0U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kDoubtful), 3U) << verified.seen.Text();  // the value, size and range
}

TEST(VerifyTest, BlocksThatTheDeviceRefusesAreNamedAndTheRestIsRead) {
  MemoryEnv memory;
  FaultEnv env(&memory);
  MakeInstallation(&env, TestOptions(), Codec::kNone, 6);
  env.SetHook([](const Call& call) {
    const bool is_bad = call.kind == CallKind::kRead && call.path == kSegmentPath && call.offset_bytes <= 8192 &&
                        8192 < call.offset_bytes + call.size_bytes;
    return is_bad ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
  });
  const Verified verified = VerifyAll(&env);
  ASSERT_OK(verified.totals.status());
  EXPECT_GT(verified.seen.CountOf(FindingKind::kUnreadable), 0U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kDamaged), 0U) << verified.seen.Text();
  EXPECT_GT(verified.totals->extents, 3U);
}

// Who may write files and reads the salt of a segment can forge its extents. That keeps no verification busy.
class ForgedSegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeInstallation(&env_, TestOptions(), Codec::kNone, 1);
    header_ = HeaderOf(&env_, kSegmentPath);
  }
  void Write(std::vector<uint8_t> file) {
    EncodeSegmentHeader(header_, std::span<uint8_t, kSegmentHeaderSizeBytes>(file.data(), kSegmentHeaderSizeBytes));
    ASSERT_OK(env_.ReplaceFile(kSegmentPath, file));
  }
  /// As if it had been rewritten: the runs begin with `data`, zeros follow.
  void WriteRuns(std::vector<SegmentRun> runs, std::span<const uint8_t> data) {
    const SegmentMap map = SegmentMap::Place(std::move(runs));
    const std::vector<uint8_t> entries = map.Encode();
    header_.generation = 1;
    header_.run_count = static_cast<uint32_t>(map.runs().size());
    header_.data_end_bytes = map.data_end_bytes();
    header_.map_checksum = Checksum64(entries);
    std::vector<uint8_t> file(map.data_end_bytes());
    std::copy(entries.begin(), entries.end(), std::span(file).subspan(kSegmentHeaderSizeBytes).begin());
    std::copy(data.begin(), data.end(), std::span(file).subspan(DataBeginBytes(header_.run_count)).begin());
    Write(std::move(file));
  }
  /// Header and index of an extent of one raw part.
  [[nodiscard]] std::vector<uint8_t> FrontOf(uint64_t offset_bytes, uint64_t content_bytes, uint64_t checksum) const {
    ExtentHeader header;
    header.store = header_.store;
    header.segment = header_.segment;
    header.offset_bytes = offset_bytes;
    header.identity = 1;
    header.content_size_bytes = content_bytes;
    header.part_size_bytes = kPartSizeMaxBytes;
    PartEntry part;
    part.checksum = checksum;
    part.stored_size_bytes = static_cast<uint32_t>(content_bytes);
    std::vector<uint8_t> front(HeaderAndIndexSizeBytes(1, false));
    EncodeExtentIndex(header, {&part, 1}, {}, header_.salt, front);
    return front;
  }
  Remember VerifyInAThousandReads() {
    Remember seen;
    seen.reads_left = 1000;
    EXPECT_FALSE(ValueOf(VerifyInstallationFiles(&env_, {"/home", {}}, &seen)).stopped);
    return seen;
  }

  MemoryEnv env_;
  SegmentHeader header_;
};

TEST_F(ForgedSegmentTest, WhatAMapLeavesOutIsPassedOver) {
  WriteRuns({{4096, 0, 8, false}, {1ULL << 50, 0, 8, false}, {1ULL << 62, 0, 4096, false}}, {});
  EXPECT_EQ(VerifyInAThousandReads().Text(), "");
}

TEST_F(ForgedSegmentTest, AnExtentThatIsLongerThanItsRunIsDamaged) {
  const std::vector<uint8_t> content(5000);
  const std::vector<uint8_t> front = FrontOf(4096, content.size(), Checksum64(content));
  WriteRuns({{4096, 0, RoundUpToExtent(front.size()), true}, {1 << 20, 0, 8192, false}}, front);
  const Remember seen = VerifyInAThousandReads();
  EXPECT_EQ(seen.CountOf(FindingKind::kDamaged), 1U) << seen.Text();
  EXPECT_NE(seen.Text().find("the extent takes 5096 bytes, the map says 96"), std::string::npos) << seen.Text();
}

TEST_F(ForgedSegmentTest, ExtentsInsideOfEachOtherEndTheLook) {
  std::vector<uint8_t> file(4 << 20);
  for (uint64_t at = kSegmentHeaderSizeBytes; at + kBlockSizeBytes <= file.size(); at += 128) {
    const std::vector<uint8_t> front = FrontOf(at, file.size() - at - HeaderAndIndexSizeBytes(1, false), 0);
    std::copy(front.begin(), front.end(), std::span(file).subspan(at).begin());
  }
  Write(std::move(file));
  const Remember seen = VerifyInAThousandReads();
  EXPECT_NE(seen.Text().find("it was forged"), std::string::npos) << seen.Text();
}

class ScrubTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.recent_cache_bytes = 0;
    OpenWithSegments(1 << 20);
  }
  void OpenWithSegments(uint64_t size_bytes) {
    store_.reset();
    directory_.reset();
    options_.segment_size_bytes = size_bytes;
    directory_ = ValueOf(OpenDirectory(&env_, options_));
    store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  }
  Locator Append(size_t size_bytes, uint64_t seed) {
    const Locator locator = ValueOf(store_->Append(RandomValue(size_bytes, seed), {}, &unsynced_));
    EXPECT_OK(directory_->Sync(unsynced_));
    return locator;
  }
  Remember Scrub(ScrubPlace* place, uint64_t reads_left = 0) {
    Remember seen;
    seen.reads_left = reads_left;
    last_ = ScrubStores(directory_.get(), place, &seen);
    return seen;
  }

  MemoryEnv env_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::shared_ptr<Store> store_;
  UnsyncedExtents unsynced_;
  VerifyTotals last_;
};

TEST_F(ScrubTest, FindsDamageInSealedAndActiveSegments) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 30; ++i) locators.push_back(Append(100000, i));
  ScrubPlace place;
  EXPECT_EQ(Scrub(&place).Text(), "");
  EXPECT_EQ(last_.extents, 30U);
  EXPECT_GE(last_.segments, 3U);
  EXPECT_EQ(place.store, StoreId{1});
  for (const size_t i : {size_t{2}, locators.size() - 1}) {
    const std::string path = std::string(kStorePath) + "/0000000" + std::to_string(locators[i].segment.value) + ".qseg";
    ASSERT_TRUE(env_.FlipBit(path, locators[i].offset_bytes + 5000, 1));
  }
  place = {};
  const Remember seen = Scrub(&place);
  ASSERT_EQ(seen.findings.size(), 2U) << seen.Text();
  EXPECT_EQ(seen.CountOf(FindingKind::kDamaged), 2U) << seen.Text();
  EXPECT_EQ(seen.findings[0].table_name, "db/t");
  EXPECT_EQ(seen.findings[0].segment, locators[2].segment);
}

TEST_F(ScrubTest, GoesOnWhereItWasStopped) {
  for (uint64_t i = 0; i < 30; ++i) Append(100000, i);
  ScrubPlace place;
  Scrub(&place, 2);
  EXPECT_TRUE(last_.stopped);
  const ScrubPlace stopped_at = place;
  EXPECT_GT(stopped_at.segment, SegmentNumber{0});
  Scrub(&place);
  EXPECT_FALSE(last_.stopped);
  EXPECT_LT(last_.segments, directory_->ListStores()[0].segments + 1);
  EXPECT_GT(place.segment, stopped_at.segment);
}

TEST_F(ScrubTest, HolesOfDeadExtentsAreNoDamage) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 40; ++i) locators.push_back(Append(3000 + 1111 * i, i));
  const std::vector<StoreId> stores = {store_->id()};
  const auto pass = ValueOf(BeginGcPass(directory_.get(), stores));
  for (size_t i = 0; i < locators.size(); i += 3) pass->Mark(locators[i]);
  bool is_done = false;
  while (!is_done) {
    is_done = ValueOf(pass->ReclaimSome(8192)).done;
    ScrubPlace place;
    const Remember seen = Scrub(&place);  // while the holes are being punched
    EXPECT_EQ(seen.CountOf(FindingKind::kDamaged) + seen.CountOf(FindingKind::kMissing), 0U) << seen.Text();
  }
  ASSERT_GT(pass->report().punched_bytes, 0U);
  directory_.reset();
  const Verified verified = VerifyAll(&env_);
  EXPECT_EQ(verified.seen.CountOf(FindingKind::kDamaged), 0U) << verified.seen.Text();
  // One that is live is still found.
  ASSERT_TRUE(env_.FlipBit(kSegmentPath, locators[9].offset_bytes + 2000, 1));
  EXPECT_EQ(VerifyAll(&env_).seen.CountOf(FindingKind::kDamaged), 1U);
}

/// Does something once, when the first bytes were read.
class DoMeanwhile final : public Remember {
 public:
  explicit DoMeanwhile(std::function<void()> action) : action_(std::move(action)) {}
  [[nodiscard]] bool Progress(const VerifyProgress& progress) override {
    if (const auto action = std::exchange(action_, nullptr)) action();
    return Remember::Progress(progress);
  }

 private:
  std::function<void()> action_;
};

// A scrub takes minutes for a segment. What was counted before a pass need not be there behind it.
TEST_F(ScrubTest, APassMeanwhileLeavesNoDoubt) {
  OpenWithSegments(64 << 20);
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 30; ++i) locators.push_back(Append(100000, i));
  DoMeanwhile seen([&] {
    const std::vector<StoreId> stores = {store_->id()};
    const auto pass = ValueOf(BeginGcPass(directory_.get(), stores, {.rewrite_above = 0}));
    for (size_t i = 0; i < 12; ++i) pass->Mark(locators[i]);  // more than the scrub has read
    while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
    }
    EXPECT_GT(pass->report().punched_bytes, 0U);
  });
  ScrubPlace place;
  EXPECT_EQ(ScrubStores(directory_.get(), &place, &seen).extents, 12U);
  EXPECT_EQ(seen.Text(), "");
}

// As versions of a row do where the table has system versioning.
TEST_F(ScrubTest, ValuesThatRowsShareLeaveNoDoubt) {
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 5; ++i) locators.push_back(Append(100000, i));
  const std::vector<StoreId> stores = {store_->id()};
  const auto pass = ValueOf(BeginGcPass(directory_.get(), stores));
  uint64_t live = 0;
  for (const Locator& locator : locators) {
    for (int row = 0; row < 3; ++row) pass->Mark(locator);
    live += locator.extent_size_bytes;
  }
  while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
  }
  EXPECT_EQ(store_->GetStats().live_bytes, live);
  EXPECT_EQ(store_->GetStats().extents, locators.size());
  ScrubPlace place;
  EXPECT_EQ(Scrub(&place).Text(), "");
  // Without memory for the extents nobody knows, but there are no more bytes than blocks.
  const auto unaware = ValueOf(BeginGcPass(directory_.get(), stores, {.rewrite_above = 0}));
  for (const Locator& locator : locators) {
    for (int row = 0; row < 3; ++row) unaware->Mark(locator);
  }
  while (!ValueOf(unaware->ReclaimSome(1 << 20)).done) {
  }
  EXPECT_LE(store_->GetStats().live_bytes, store_->GetStats().real_bytes);
  store_.reset();
  directory_.reset();
  EXPECT_EQ(VerifyAll(&env_).seen.CountOf(FindingKind::kMissing), 0U);
}

// Values of one size, with sectors of zeros; the second is dead, still there and not counted.
class DeadExtentTest : public ScrubTest {
 protected:
  void SetUp() override {
    ScrubTest::SetUp();
    for (int i = 0; i < 3; ++i) {
      locators_.push_back(ValueOf(store_->Append(std::vector<uint8_t>(1100), {.codec = Codec::kNone}, &unsynced_)));
    }
    const std::vector<StoreId> stores = {store_->id()};
    const auto pass = ValueOf(BeginGcPass(directory_.get(), stores, {.rewrite_above = 0}));
    pass->Mark(locators_[0]);
    pass->Mark(locators_[2]);
    while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
    }
    store_.reset();
    directory_.reset();
    ASSERT_EQ(VerifyAll(&env_).seen.Text(), "");
  }

  std::vector<Locator> locators_;
};

TEST_F(DeadExtentTest, DoesNotMakeUpForALiveOneThatIsDamaged) {
  ASSERT_TRUE(env_.FlipBit(kSegmentPath, locators_[0].offset_bytes + 100, 1));
  const Verified verified = VerifyAll(&env_);
  ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kDoubtful) << verified.seen.Text();
}

TEST_F(DeadExtentTest, DoesNotMakeUpForALiveOneWhoseHeaderIsLost) {
  auto bytes = ValueOf(env_.ReadSmallFile(kSegmentPath, 1 << 20));
  const auto header = std::span(bytes).subspan(locators_[0].offset_bytes, kExtentHeaderSizeBytes);
  std::fill(header.begin(), header.end(), uint8_t{0xff});
  ASSERT_OK(env_.ReplaceFile(kSegmentPath, bytes));
  // What verifies has as many bytes as the pass counted; a restart must not forget that this proves nothing.
  for (int restart = 0; restart < 3; ++restart) {
    const Verified verified = VerifyAll(&env_);
    ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
    EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kDoubtful) << verified.seen.Text();
    const auto directory = ValueOf(OpenDirectory(&env_, options_));
    UnsyncedExtents unsynced;
    ASSERT_OK(ValueOf(directory->OpenForAppend({1}, "db/t"))->Append(RandomValue(5000, 1), {}, &unsynced).status());
    ASSERT_OK(directory->Sync(unsynced));
  }
}

TEST_F(DeadExtentTest, DoesNotMakeUpForALiveOneThatIsCutOff) {
  const auto whole = ValueOf(env_.ReadSmallFile(kSegmentPath, 1 << 20));
  ASSERT_OK(env_.ReplaceFile(kSegmentPath, std::span(whole).first(locators_[2].offset_bytes)));
  const Verified verified = VerifyAll(&env_);
  ASSERT_EQ(verified.seen.findings.size(), 1U) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kDoubtful) << verified.seen.Text();
  EXPECT_EQ(verified.seen.findings[0].offset_bytes, locators_[2].offset_bytes);
}

// Documents are added and deleted, GC gives back, the server ends in every way: nothing needs a person to look at it.
class OrdinaryHistoryTest : public OneTableTest {
 protected:
  void SetUp() override {
    options_.segment_size_bytes = 1 << 20;
    options_.zeroed_pool_bytes = 128 << 10;
    Open();
  }
  /// Of every size, several in a block and over its edges; committed in groups.
  void AppendDocuments(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t number = values_.size();
      const size_t size_bytes = number % 5 == 0 ? 200 + number * 37 % 900 : 1000 + number * 7919 % 30000;
      std::vector<uint8_t> value = TextValue(size_bytes, number);
      AppendOptions options;
      options.codec = number % 3 == 0 ? Codec::kLz4 : Codec::kNone;
      const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
      const Locator locator = ValueOf(store->Append(value, options, &unsynced_));
      values_.emplace_back(locator, std::move(value));
      if (number % 4 == 3) Commit();
    }
    Commit();
  }
  void Commit() {
    ASSERT_OK(directory_->Sync(unsynced_));
    unsynced_.Clear();
  }
  void DeleteEveryOther() {
    Values kept;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (i % 2 == 0) {
        directory_->Release(values_[i].first);
      } else {
        kept.push_back(std::move(values_[i]));
      }
    }
    values_ = std::move(kept);
  }
  void RunGc(double rewrite_above = 0) {
    const StoreId store = ValueOf(directory_->Find({1}))->id();
    const auto pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {.rewrite_above = rewrite_above}));
    for (const auto& [locator, value] : values_) pass->Mark(locator);
    while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
    }
    EXPECT_GT(pass->report().reclaimed_bytes, 0U);
  }
  void Kill() { CutPower(&memory_, &env_, UINT64_MAX, &directory_); }
  void ExpectNoDoubt(const char* when) {
    const Verified verified = VerifyAll(&memory_);
    for (const Finding& finding : verified.seen.findings) {
      EXPECT_EQ(finding.kind, FindingKind::kLeftover) << when << ":\n" << verified.seen.Text();
    }
    for (const auto& [locator, value] : values_) EXPECT_TRUE(ValueOf(ReadValue(directory_.get(), locator)) == value);
  }

  Values values_;
};

TEST_F(OrdinaryHistoryTest, LeavesNoDoubt) {
  for (int round = 0; round < 4; ++round) {
    AppendDocuments(150);
    DeleteEveryOther();
    RunGc(round == 2 ? 1.25 : 0);
    ExpectNoDoubt("after GC");
    AppendDocuments(40);
    if (round % 2 == 0) {
      directory_.reset();
    } else {
      Kill();
    }
    Open();
    directory_.reset();
    Open();
    ExpectNoDoubt(round % 2 == 0 ? "after a clean shutdown" : "after a kill");
  }
  EXPECT_GT(VerifyAll(&memory_).seen.CountOf(FindingKind::kLeftover), 10U) << "of that it has to tell damage apart";
}

TEST_F(OrdinaryHistoryTest, AKillRightBehindAPassLeavesNoDoubtEither) {
  AppendDocuments(150);
  ASSERT_OK(directory_->SaveCounters());
  DeleteEveryOther();
  RunGc();
  Kill();
  Open();
  ExpectNoDoubt("after a kill");
}

TEST_F(OrdinaryHistoryTest, NorDoesAKillInTheMiddleOfAPass) {
  AppendDocuments(150);
  ASSERT_OK(directory_->SaveCounters());
  DeleteEveryOther();
  const StoreId store = ValueOf(directory_->Find({1}))->id();
  std::unique_ptr<GcPass> pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {.rewrite_above = 0}));
  for (const auto& [locator, value] : values_) pass->Mark(locator);
  while (pass->report().holes < 20) ASSERT_FALSE(ValueOf(pass->ReclaimSome(kBlockSizeBytes)).done);
  pass.reset();
  Kill();
  Open();
  ExpectNoDoubt("after a kill");
}

// The one kind of damage that looks like the end of a dead extent: a header that is lost at the begin of a block.
TEST_F(OrdinaryHistoryTest, AHeaderThatIsLostBehindAHoleIsNoLeftover) {
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  const auto append = [&](size_t size_bytes) {
    const Locator locator = ValueOf(store->Append(RandomValue(size_bytes, values_.size()), {}, &unsynced_));
    values_.emplace_back(locator, RandomValue(size_bytes, values_.size()));
  };
  append(20000);
  Commit();
  append(1000);  // begins a block; one more behind it
  append(1200);
  append(900);
  Commit();
  values_.erase(values_.begin());
  values_.erase(values_.begin() + 2);  // dead, and stays: as many bytes as those that are lost could need
  RunGc();
  directory_.reset();
  const Locator& lost = values_[0].first;
  ASSERT_EQ(lost.offset_bytes % kBlockSizeBytes, 0U);
  EXPECT_EQ(VerifyAll(&memory_).seen.CountOf(FindingKind::kDoubtful), 0U) << VerifyAll(&memory_).seen.Text();
  const auto whole = ValueOf(memory_.ReadSmallFile(SegmentPathOf(lost), 1 << 20));
  for (const size_t size : {size_t{8}, kExtentHeaderSizeBytes}) {
    for (size_t offset = 0; offset < size; ++offset) {
      ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(lost), lost.offset_bytes + offset, 2));
    }
    const Verified verified = VerifyAll(&memory_);
    EXPECT_EQ(verified.seen.CountOf(FindingKind::kDoubtful) + verified.seen.CountOf(FindingKind::kDamaged), 1U)
        << verified.seen.Text();
    for (size_t offset = 0; offset < size; ++offset) {
      ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(lost), lost.offset_bytes + offset, 2));
    }
  }
}

// The same in the middle of a block, behind the end of a dead one.
TEST_F(OrdinaryHistoryTest, ADamagedHeaderBehindTheEndOfADeadOneIsNoLeftover) {
  const auto store = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  for (const size_t size_bytes : {17000, 900, 1200, 700}) {
    const Locator locator = ValueOf(store->Append(RandomValue(size_bytes, size_bytes), {}, &unsynced_));
    values_.emplace_back(locator, RandomValue(size_bytes, size_bytes));
  }
  Commit();
  values_.erase(values_.begin());
  values_.erase(values_.begin() + 1);  // dead, and stays
  RunGc();
  directory_.reset();
  const Locator& lost = values_[0].first;
  ASSERT_NE(lost.offset_bytes % kBlockSizeBytes, 0U);
  const Verified whole = VerifyAll(&memory_);
  ASSERT_EQ(whole.seen.findings.size(), 1U) << whole.seen.Text();
  EXPECT_EQ(whole.seen.findings[0].kind, FindingKind::kLeftover) << whole.seen.Text();
  for (uint64_t byte = 0; byte < kExtentHeaderSizeBytes; ++byte) {
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(lost), lost.offset_bytes + byte, 2));
    const Verified verified = VerifyAll(&memory_);
    EXPECT_GE(verified.seen.CountOf(FindingKind::kDoubtful) + verified.seen.CountOf(FindingKind::kDamaged), 1U)
        << byte << ":\n"
        << verified.seen.Text();
    ASSERT_TRUE(memory_.FlipBit(SegmentPathOf(lost), lost.offset_bytes + byte, 2));
  }
}

TEST_F(ScrubTest, AStoreInTheTrashIsLeftOut) {
  Append(5000, 1);
  ASSERT_OK(directory_->Discard({1}, 5));
  ScrubPlace place;
  EXPECT_EQ(Scrub(&place).Text(), "");
  EXPECT_EQ(last_.segments, 0U);
}

// A round takes days. Whoever holds a segment that GC replaces or unlinks keeps its space and its descriptors.
TEST_F(ScrubTest, HoldsNoSegmentBeforeItsTurn) {
  OpenWithSegments(64 << 10);
  std::vector<Locator> locators;
  for (uint64_t i = 0; i < 60; ++i) locators.push_back(Append(1000, i));  // each in a block of its own
  std::vector<std::weak_ptr<Segment>> later;
  for (const Locator& locator : locators) {
    if (locator.segment == locators[0].segment) continue;
    later.emplace_back(static_cast<StoreImpl*>(store_.get())->FindSegment(locator.segment));
  }
  ASSERT_FALSE(later.empty());
  uint64_t rewritten = 0;
  uint64_t unlinked = 0;
  DoMeanwhile seen([&] {
    {
      const std::vector<StoreId> stores = {store_->id()};
      const auto pass = ValueOf(BeginGcPass(directory_.get(), stores, {.rewrite_above = 1.25}));
      for (size_t i = 0; i < 30; ++i) pass->Mark(locators[i]);
      while (!ValueOf(pass->ReclaimSome(1 << 20)).done) {
      }
      rewritten = pass->report().segments_rewritten;
      unlinked = pass->report().segments_unlinked;
    }
    for (const std::weak_ptr<Segment>& segment : later) EXPECT_TRUE(segment.expired());
  });
  ScrubPlace place;
  EXPECT_EQ(ScrubStores(directory_.get(), &place, &seen).extents, 30U);
  EXPECT_EQ(seen.Text(), "");
  EXPECT_GT(rewritten, 1U) << "one that the scrub had not come to";
  EXPECT_GT(unlinked, 0U);
}

TEST_F(ScrubTest, LeavesAStoreThatIsDropped) {
  for (uint64_t i = 0; i < 30; ++i) Append(100000, i);
  DoMeanwhile seen([&] { EXPECT_OK(directory_->Discard({1}, 5)); });
  ScrubPlace place;
  EXPECT_FALSE(ScrubStores(directory_.get(), &place, &seen).stopped);
  EXPECT_EQ(seen.Text(), "");
  EXPECT_GT(seen.last.bytes_done, 0U);
  EXPECT_LE(seen.last.bytes_done, options_.segment_size_bytes) << "of three segments";
}

TEST_F(ScrubTest, HoldsNoStoreBeforeItsTurn) {
  Append(5000, 1);
  std::shared_ptr<Store> other = ValueOf(directory_->OpenForAppend({2}, "db/dropped"));
  (void)ValueOf(other->Append(RandomValue(5000, 2), {}, &unsynced_));
  ASSERT_OK(directory_->Sync(unsynced_));
  const std::weak_ptr<Store> dropped = std::exchange(other, nullptr);
  bool is_gone = false;
  DoMeanwhile seen([&] {
    EXPECT_OK(directory_->Discard({2}, 5));
    EXPECT_GT(ValueOf(directory_->EmptyTrash(5)), 0U);
    is_gone = dropped.expired();
  });
  ScrubPlace place;
  EXPECT_EQ(ScrubStores(directory_.get(), &place, &seen).stores, 1U);
  EXPECT_EQ(seen.Text(), "");
  EXPECT_TRUE(is_gone);
}

}  // namespace
}  // namespace quarry
