// A catalogue that is made anew after damage: what it keeps, what it no longer believes, and what never goes.
#include "store/catalogue_rebuild.h"

#include "context/catalogue_file.h"
#include "format/catalogue_log.h"
#include "quarry/gc.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

constexpr TableId kTable{10};
constexpr TableId kOther{20};

class CatalogueRebuildTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(memory_.CreateDirectory("/disk1"));
    options_.data_paths = {"/disk1"};
    Open();
    damaged_ = AppendTo(kTable, "db/damaged", 1);
    other_ = AppendTo(kOther, "db/other", 2);
  }
  void Open() { directory_ = ValueOf(OpenDirectory(&env_, options_)); }
  Locator AppendTo(TableId table, const std::string& name, uint64_t seed) {
    UnsyncedExtents unsynced;
    const Locator locator =
        ValueOf(ValueOf(directory_->OpenForAppend(table, name))->Append(RandomValue(3000, seed), {}, &unsynced));
    EXPECT_OK(directory_->Sync(unsynced));
    return locator;
  }
  void ExpectReadable() {
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), damaged_)), RandomValue(3000, 1));
    EXPECT_EQ(ValueOf(ReadValue(directory_.get(), other_)), RandomValue(3000, 2));
  }
  [[nodiscard]] std::vector<std::string> Catalogues() {
    std::vector<std::string> names = ValueOf(memory_.ListDirectory("/home"));
    std::erase_if(names, [](const std::string& name) { return !ParseCatalogueFileName(name); });
    return names;
  }
  /// The server stops, and a bit of the record that holds `text` is flipped.
  void Damage(const std::string& text) {
    directory_.reset();
    ASSERT_EQ(Catalogues().size(), 1U);
    const std::string path = "/home/" + Catalogues().front();
    const auto bytes = ValueOf(memory_.ReadSmallFile(path, 1 << 20));
    const auto found = std::find_end(bytes.begin(), bytes.end(), text.begin(), text.end());
    ASSERT_NE(found, bytes.end());
    ASSERT_TRUE(memory_.FlipBit(path, static_cast<uint64_t>(found - bytes.begin()), 0));
  }
  void LoseCatalogue() {
    directory_.reset();
    for (const std::string& name : Catalogues()) ASSERT_OK(memory_.RemoveFile("/home/" + name));
  }
  Result<RebuildReport> Rebuild(const RebuildOptions& options = {"/home", {}}) {
    return RebuildCatalogueFiles(&env_, options);
  }
  [[nodiscard]] uint64_t CollectableSegments(StoreId store) {
    return ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}))->report().segments;
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  Locator damaged_;
  Locator other_;
};

TEST_F(CatalogueRebuildTest, IsNotForACatalogueThatLostNothing) {
  EXPECT_EQ(Rebuild({"/nowhere", {}}).status().code(), StatusCode::kNotFound);
  directory_.reset();
  const std::vector<std::string> before = Catalogues();
  EXPECT_FALSE(ValueOf(Rebuild()).is_needed);
  EXPECT_EQ(Catalogues(), before);
}

TEST_F(CatalogueRebuildTest, KeepsWhatVerifiesAndUnbindsWhatALossConcerns) {
  Damage("db/damaged");
  EXPECT_GT(VerifyAll(&memory_).seen.CountOf(FindingKind::kDamaged), 0U);
  const RebuildReport report = ValueOf(Rebuild());
  EXPECT_TRUE(report.is_needed);
  EXPECT_EQ(report.stores, 2U);
  EXPECT_EQ(report.segments, 2U);
  EXPECT_EQ(report.unbound_stores, 1U);
  EXPECT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(Catalogues(), std::vector<std::string>{report.written});
  ASSERT_EQ(report.kept.size(), 1U);
  EXPECT_TRUE(ValueOf(memory_.FileExists("/home/" + report.kept[0])));
  EXPECT_EQ(VerifyAll(&memory_).seen.CountOf(FindingKind::kDamaged), 0U) << VerifyAll(&memory_).seen.Text();
  Open();
  EXPECT_TRUE(directory_->TakeNotices().empty());
  ExpectReadable();
  EXPECT_EQ(directory_->OwnershipOf(damaged_.store, kTable), Ownership::kUnbound);
  EXPECT_EQ(directory_->OwnershipOf(other_.store, kOther), Ownership::kBound);
  EXPECT_EQ(CollectableSegments(damaged_.store), 0U);
  EXPECT_EQ(CollectableSegments(other_.store), 1U);
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  EXPECT_EQ(CollectableSegments(damaged_.store), 1U);
  const StoreId store = damaged_.store;
  ASSERT_TRUE(ValueOf(ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}))->ReclaimSome(UINT64_MAX)).done);
  EXPECT_FALSE(ReadValue(directory_.get(), damaged_).ok()) << "nothing of it was marked: it is collected again";
}

TEST_F(CatalogueRebuildTest, ACatalogueThatIsGoneIsMadeFromFilesAndMarkers) {
  const InstallationId installation = directory_->catalogue()->state().installation.id;
  LoseCatalogue();
  EXPECT_EQ(OpenDirectory(&env_, options_).status().code(), StatusCode::kCorruption);
  const RebuildReport report = ValueOf(Rebuild({"/home", {"/disk1"}}));
  EXPECT_EQ(report.stores, 2U);
  EXPECT_EQ(report.segments, 2U);
  EXPECT_EQ(report.unbound_stores, 2U);
  Open();
  EXPECT_EQ(directory_->catalogue()->state().installation.id, installation);
  ExpectReadable();
  const Locator more = AppendTo(kTable, "db/damaged", 3);
  EXPECT_GT(more.store, std::max(damaged_.store, other_.store));
  EXPECT_EQ(more.segment, SegmentNumber{1});
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  EXPECT_EQ(directory_->OwnershipOf(damaged_.store, kTable), Ownership::kBound);
}

// A device that gives errors for a while does not make it another's file, for then or for good.
TEST_F(CatalogueRebuildTest, ASegmentWhoseHeaderCouldNotBeReadIsReadLater) {
  LoseCatalogue();
  env_.SetHook([](const Call& call) {
    const bool is_refused = call.kind == CallKind::kRead && call.path.ends_with(".qseg");
    return is_refused ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
  });
  EXPECT_EQ(ValueOf(Rebuild({"/home", {"/disk1"}})).segments, 0U);
  Open();
  env_.SetHook(nullptr);
  ExpectReadable();
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  {
    const auto pass = ValueOf(BeginGcPass(directory_.get(), {&damaged_.store, 1}, {}));
    pass->Mark(damaged_);
    ASSERT_TRUE(ValueOf(pass->ReclaimSome(UINT64_MAX)).done);
  }
  directory_.reset();
  Open();
  ExpectReadable();
}

// What lies on it is not looked at. When it is back it is known by its names.
TEST_F(CatalogueRebuildTest, ADataPathThatIsAwayLosesNothing) {
  Damage("db/damaged");
  ASSERT_OK(memory_.Rename("/disk1", "/elsewhere"));
  EXPECT_EQ(Rebuild({"/home", {"/home"}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ValueOf(Rebuild()).segments, 2U) << "the records of the segments are whole";
  ASSERT_OK(memory_.Rename("/elsewhere", "/disk1"));
  Open();
  ExpectReadable();
}

TEST_F(CatalogueRebuildTest, NoNumberIsGivenOutThatALostRecordMayHaveHad) {
  CatalogueState state = directory_->catalogue()->state();
  LoseCatalogue();
  state.stores[damaged_.store].segments.clear();
  state.stores[damaged_.store].record->next_segment = SegmentNumber{1};
  state.Apply(CatalogueDamage{damaged_.store, 1, "a record was lost"});
  std::vector<CatalogueRecord> records = state.Records();
  records.emplace_back(CatalogueEnd{state.installation});
  ASSERT_OK(memory_.ReplaceFile("/home/" + CatalogueFileName(1), EncodeCatalogue(records, 1)));
  ASSERT_OK(memory_.Rename("/disk1", "/elsewhere"));
  EXPECT_EQ(ValueOf(Rebuild()).unbound_stores, 1U);
  ASSERT_OK(memory_.CreateDirectory("/disk2"));
  options_.data_paths = {"/disk2"};
  Open();
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  const Locator more = AppendTo(kTable, "db/damaged", 3);
  EXPECT_EQ(more.store, damaged_.store);
  EXPECT_NE(more.segment, damaged_.segment);
  directory_.reset();
  ASSERT_OK(memory_.Rename("/elsewhere", "/disk1"));
  options_.data_paths = {"/disk1", "/disk2"};
  Open();
  ExpectReadable();
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), more)), RandomValue(3000, 3));
}

TEST_F(CatalogueRebuildTest, WhatADropLeftComesBackWhenItsRecordIsInDoubt) {
  ASSERT_OK(directory_->Discard(kTable, 1));
  ASSERT_OK(directory_->Discard(kOther, 1));
  Damage("db/damaged");
  EXPECT_EQ(ValueOf(Rebuild()).unbound_stores, 1U);
  Open();
  (void)ValueOf(directory_->EmptyTrash(UINT64_MAX));
  EXPECT_EQ(ValueOf(ReadValue(directory_.get(), damaged_)), RandomValue(3000, 1));
  EXPECT_FALSE(ReadValue(directory_.get(), other_).ok());
  // Its folders may be removed by hand: nobody knows a table that it belongs to.
  directory_.reset();
  for (const char* const parent : {"/home/stores/", "/disk1/quarry/"}) {
    const std::string folder = parent + StoreDirectoryName(damaged_.store);
    for (const std::string& name : ValueOf(memory_.ListDirectory(folder))) {
      ASSERT_OK(memory_.RemoveFile(folder + "/" + name));
    }
    ASSERT_OK(memory_.RemoveDirectory(folder));
  }
  Open();
  EXPECT_TRUE(directory_->ListStores().empty());
}

// Else an index would be made in place upon bytes that the heads do not hold.
TEST_F(CatalogueRebuildTest, APrefixLimitThatMayBeLostIsZero) {
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/damaged", 100));
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 100U);
  EXPECT_EQ(directory_->PrefixLimitBytes(kOther), kNoPrefixLimit);
  Damage("db/damaged");
  Open();
  for (const TableId table : {kTable, kOther}) {
    EXPECT_EQ(directory_->PrefixLimitBytes(table), 0U) << "what was lost may have bound the store to either";
  }
  directory_.reset();
  ASSERT_EQ(ValueOf(Rebuild()).unbound_stores, 1U);
  Open();
  for (const TableId table : {kTable, kOther}) {
    EXPECT_EQ(directory_->PrefixLimitBytes(table), 0U) << "the store may be either's";
  }
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  for (const bool after_start : {false, true}) {
    if (after_start) {
      directory_.reset();
      Open();
    }
    EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 0U) << "100 was stated in what is lost";
    EXPECT_EQ(directory_->PrefixLimitBytes(kOther), kNoPrefixLimit);
  }
}

TEST_F(CatalogueRebuildTest, APrefixLimitIsZeroWhenTheCatalogueIsGone) {
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/damaged", 100));
  LoseCatalogue();
  ASSERT_EQ(ValueOf(Rebuild({"/home", {"/disk1"}})).unbound_stores, 2U);
  Open();
  ASSERT_OK(directory_->BindUnbound(damaged_.store, kTable, "db/damaged"));
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 0U);
  EXPECT_EQ(directory_->PrefixLimitBytes(TableId{30}), 0U) << "another store has no table yet";
  ASSERT_OK(directory_->BindUnbound(other_.store, kOther, "db/other"));
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 0U);
  EXPECT_EQ(directory_->PrefixLimitBytes(TableId{30}), kNoPrefixLimit);
}

TEST_F(CatalogueRebuildTest, ADryRunChangesNothing) {
  Damage("db/damaged");
  const std::vector<std::string> before = ValueOf(memory_.ListDirectory("/home"));
  const RebuildReport report = ValueOf(Rebuild({"/home", {}, true}));
  EXPECT_EQ(report.unbound_stores, 1U);
  EXPECT_EQ(ValueOf(memory_.ListDirectory("/home")), before);
  EXPECT_EQ(ValueOf(Rebuild()).written, report.written);
}

// Else somebody would look for what went wrong with a catalogue that is there.
TEST_F(CatalogueRebuildTest, AFailureSaysWhichCatalogueCounts) {
  Damage("db/damaged");
  const std::vector<std::string> before = Catalogues();
  env_.FailCall(CallKind::kSync, 1, EIO);
  const Status unwritten = Rebuild().status();
  EXPECT_EQ(unwritten.code(), StatusCode::kIoError);
  EXPECT_NE(unwritten.message().find("the old catalogue still counts"), std::string::npos) << unwritten.ToString();
  EXPECT_EQ(Catalogues(), before);
  env_.FailCall(CallKind::kRename, 1, EIO);
  const Status not_kept = Rebuild().status();
  env_.ClearFailures();
  EXPECT_EQ(not_kept.code(), StatusCode::kIoError);
  EXPECT_NE(not_kept.message().find(Catalogues().back() + " is written and counts"), std::string::npos)
      << not_kept.ToString();
  EXPECT_EQ(Catalogues().size(), 2U);
  EXPECT_FALSE(ValueOf(Rebuild()).is_needed);
  Open();
  ExpectReadable();
  EXPECT_EQ(directory_->OwnershipOf(damaged_.store, kTable), Ownership::kUnbound);
}

TEST_F(CatalogueRebuildTest, SurvivesAFailureOrAPowerCutAtAnyCall) {
  Damage("db/damaged");
  for (const CallKind kind :
       {CallKind::kCreate, CallKind::kWrite, CallKind::kSync, CallKind::kSyncDirectory, CallKind::kRename}) {
    for (uint64_t n = 1; n <= 2; ++n) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " n " + std::to_string(n));
      env_.FailCall(kind, n, EIO, true);
      const Result<RebuildReport> report = Rebuild();
      env_.ClearFailures();
      memory_.PowerCut(n);
      Open();
      ExpectReadable();
      EXPECT_NE(directory_->OwnershipOf(damaged_.store, kTable), Ownership::kForeign);
      EXPECT_EQ(CollectableSegments(damaged_.store), 0U);
      ASSERT_OK(directory_->catalogue()->Commit({CatalogueDamage{damaged_.store, n, "damaged once more"}}));
      directory_.reset();
    }
  }
  (void)ValueOf(Rebuild());
  Open();
  ExpectReadable();
}

}  // namespace
}  // namespace quarry
