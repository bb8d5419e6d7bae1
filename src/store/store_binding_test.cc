// Bindings of tables, rebuilds, the trash, ids, and crashes in the middle of each.
#include "quarry/gc.h"
#include "store/store_binding_test_util.h"

namespace quarry {
namespace {

TEST_F(StoreBindingTest, FindNeverCreates) {
  EXPECT_EQ(directory_->Find(kTable).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(directory_->ListStores().empty());
  const Locator locator = AppendTo(kTable, 1);
  EXPECT_EQ(ValueOf(directory_->Find(kTable))->id(), locator.store);
  CrashAndOpen();
  EXPECT_EQ(ValueOf(directory_->Find(kTable))->id(), locator.store);
}

TEST_F(StoreBindingTest, ADiscardedStoreStaysReadableUntilTheLsnIsFlushed) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->Discard(kTable, 500));
  ExpectReadable(locator, 1);
  CrashAndOpen();
  ExpectReadable(locator, 1);
  EXPECT_TRUE(directory_->ListStores()[0].discarded);
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(499)), 0U);
  ExpectReadable(locator, 1);
  EXPECT_GT(ValueOf(directory_->EmptyTrash(500)), 0U);
  EXPECT_EQ(ReadValue(directory_.get(), locator).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(ValueOf(memory_.ListDirectory("/home/trash")).empty());
  CrashAndOpen();
  EXPECT_TRUE(directory_->ListStores().empty());
}

TEST_F(StoreBindingTest, ADiscardedStoreComesBackWhenItsTableDoes) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->Discard(kTable, 500));
  EXPECT_EQ(ValueOf(directory_->OpenForAppend(kTable, "db/t"))->id(), locator.store);
  CrashAndOpen();
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(UINT64_MAX)), 0U);
  ExpectReadable(locator, 1);
  const Locator more = AppendTo(kTable, 2);
  EXPECT_EQ(more.store, locator.store);
  EXPECT_FALSE(directory_->ListStores()[0].discarded);
}

TEST_F(StoreBindingTest, DiscardTouchesNoOtherTable) {
  const Locator mine = AppendTo(kTable, 1);
  const Locator other = AppendTo(kOther, 2);
  ASSERT_OK(directory_->Discard(kTable, 1));
  ASSERT_OK(directory_->Discard({999}, 1));
  (void)ValueOf(directory_->EmptyTrash(UINT64_MAX));
  EXPECT_FALSE(ReadValue(directory_.get(), mine).ok());
  ExpectReadable(other, 2);
}

TEST_F(StoreBindingTest, ARebuildKeepsTheStoreWhateverHappens) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  CrashAndOpen();
  EXPECT_TRUE(directory_->ListStores()[0].rebinding);
  // The rebuild may have committed: its old table is gone, its rows are in one that nobody told of.
  ASSERT_OK(directory_->Discard(kTable, 1));
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(UINT64_MAX)), 0U);
  ExpectReadable(locator, 1);
  ASSERT_OK(directory_->Rebind(kTable, kOther));
  CrashAndOpen();
  EXPECT_EQ(ValueOf(directory_->Find(kOther))->id(), locator.store);
  EXPECT_EQ(directory_->Find(kTable).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(directory_->ListStores()[0].rebinding);
  ExpectReadable(locator, 1);
}

TEST_F(StoreBindingTest, AnAbandonedRebuildChangesNothing) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->AbandonRebind(kTable));
  CrashAndOpen();
  EXPECT_EQ(ValueOf(directory_->Find(kTable))->id(), locator.store);
  ASSERT_OK(directory_->Discard(kTable, 1));
  EXPECT_TRUE(directory_->ListStores()[0].discarded);
}

constexpr RebindPair kRebuild{kTable, kOther};

TEST_F(StoreBindingTest, ARebindingStoreIsBoundToBothTables) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/t", 100));
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  for (const bool crash : {false, true}) {
    if (crash) CrashAndOpen();
    ExpectOwnership(locator.store, Ownership::kBound, Ownership::kBound);
    for (const TableId table : {kTable, kOther}) {
      EXPECT_EQ(ValueOf(directory_->Find(table))->id(), locator.store);
      EXPECT_EQ(AppendTo(table, 2).store, locator.store);
      EXPECT_EQ(directory_->PrefixLimitBytes(table), 100U);
    }
    const StoreStats stats = directory_->ListStores().at(0);
    EXPECT_EQ(stats.table, kTable);
    EXPECT_EQ(stats.rebound_to, kOther);
    EXPECT_TRUE(stats.rebinding);
    EXPECT_EQ(directory_->UndecidedRebinds().size(), crash ? 1U : 0U);
  }
  EXPECT_EQ(directory_->UndecidedRebinds()[0].pair, kRebuild);
  EXPECT_EQ(directory_->BeginRebind(kTable, TableId{0}).code(), StatusCode::kInvalidArgument);
}

TEST_F(StoreBindingTest, ARebuildThatACrashCutOffIsSettledForTheTableThatIsLeft) {
  for (const TableId kept : {kTable, kOther}) {
    SCOPED_TRACE(kept.value);
    const TableId gone = kept == kTable ? kOther : kTable;
    const Locator locator = AppendTo(kTable, 1);
    ASSERT_OK(directory_->BeginRebind(kTable, kOther));
    ASSERT_OK(directory_->SettleRebind(locator.store, kRebuild, kept));
    EXPECT_TRUE(directory_->ListStores()[0].rebinding) << "the rebuild is under way";
    CrashAndOpen();
    EXPECT_EQ(directory_->SettleRebind(locator.store, kRebuild, TableId{999}).code(), StatusCode::kInvalidArgument);
    ASSERT_OK(directory_->SettleRebind(locator.store, {kTable, TableId{999}}, kTable));
    EXPECT_TRUE(directory_->ListStores()[0].rebinding) << "another rebuild was seen";
    ASSERT_OK(directory_->SettleRebind(locator.store, kRebuild, kept));
    for (const bool crash : {false, true}) {
      if (crash) CrashAndOpen();
      EXPECT_EQ(directory_->OwnershipOf(locator.store, kept), Ownership::kBound);
      EXPECT_EQ(directory_->OwnershipOf(locator.store, gone), Ownership::kForeign);
      EXPECT_FALSE(directory_->ListStores()[0].rebinding);
      EXPECT_TRUE(directory_->UndecidedRebinds().empty());
      ExpectReadable(locator, 1);
    }
    ASSERT_OK(directory_->Discard(kept, 1));
    EXPECT_GT(ValueOf(directory_->EmptyTrash(1)), 0U);
  }
}

TEST_F(StoreBindingTest, AnUndecidedStoreOfADroppedTableStaysBoundToBothInTheTrash) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->DiscardRebinding(locator.store, kRebuild, 1));
  EXPECT_FALSE(directory_->ListStores()[0].discarded) << "the rebuild is under way";
  CrashAndOpen();
  ASSERT_OK(directory_->DiscardRebinding(locator.store, kRebuild, 5));
  for (const bool crash : {false, true}) {
    if (crash) CrashAndOpen();
    EXPECT_TRUE(directory_->ListStores()[0].discarded);
    ExpectOwnership(locator.store, Ownership::kBound, Ownership::kBound);
    EXPECT_TRUE(directory_->UndecidedRebinds().empty());
    EXPECT_EQ(ValueOf(directory_->EmptyTrash(4)), 0U);
    ExpectReadable(locator, 1);
  }
  // The DROP was undone, and shows which of the two it was.
  EXPECT_EQ(ValueOf(directory_->Find(kOther))->id(), locator.store);
  ASSERT_EQ(directory_->UndecidedRebinds().size(), 1U);
  ASSERT_OK(directory_->DiscardRebinding(locator.store, kRebuild, 6));
  EXPECT_GT(ValueOf(directory_->EmptyTrash(6)), 0U);
  ExpectOwnership(locator.store, Ownership::kForeign, Ownership::kForeign);
  CrashAndOpen();
  EXPECT_TRUE(directory_->ListStores().empty());
}

// The table that InnoDB has now is the one that is rebuilt: what the first rebuild left open is decided by that.
TEST_F(StoreBindingTest, ASecondRebuildDecidesTheFirst) {
  const Locator locator = AppendTo(kTable, 1);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  CrashAndOpen();
  const TableId third{30};
  ASSERT_OK(directory_->BeginRebind(kOther, third));
  EXPECT_TRUE(directory_->UndecidedRebinds().empty());
  ExpectOwnership(locator.store, Ownership::kForeign, Ownership::kBound);
  EXPECT_EQ(directory_->OwnershipOf(locator.store, third), Ownership::kBound);
  ASSERT_OK(directory_->AbandonRebind(kOther));
  CrashAndOpen();
  ExpectOwnership(locator.store, Ownership::kForeign, Ownership::kBound);
  EXPECT_EQ(directory_->OwnershipOf(locator.store, third), Ownership::kForeign);
}

// What a failed call left on the disk is settled by the next start, whichever it is.
TEST_F(StoreBindingTest, EveryStepOfARebuildSurvivesAFailureAtAnyCall) {
  int failures = 0;
  for (const CallKind kind : {CallKind::kWrite, CallKind::kSyncDirectory, CallKind::kSync}) {
    for (uint64_t n = 1; n <= 3; ++n) {
      for (const bool commits : {false, true}) {
        SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " n " + std::to_string(n));
        const TableId before{1000 + n * 10 + static_cast<uint64_t>(kind) * 1000 + (commits ? 2U : 0U)};
        const TableId after{before.value + 1};
        const Locator locator = AppendTo(before, n);
        env_.FailCall(kind, n, EIO);
        Status status = directory_->BeginRebind(before, after);
        const bool begun = status.ok();
        if (begun) status = commits ? directory_->Rebind(before, after) : directory_->AbandonRebind(before);
        env_.ClearFailures();
        if (!status.ok()) ++failures;
        const TableId kept = begun && commits ? after : before;
        EXPECT_EQ(directory_->OwnershipOf(locator.store, kept), Ownership::kBound);
        EXPECT_EQ(directory_->UndecidedRebinds().size(), begun && !status.ok() ? 1U : 0U);
        CrashAndOpen();
        EXPECT_EQ(directory_->OwnershipOf(locator.store, kept), Ownership::kBound);
        ASSERT_OK(directory_->SettleRebind(locator.store, {before, after}, kept));
        CrashAndOpen();
        EXPECT_TRUE(directory_->UndecidedRebinds().empty());
        EXPECT_EQ(ValueOf(directory_->Find(kept))->id(), locator.store);
        ExpectReadable(locator, n);
      }
    }
  }
  EXPECT_GT(failures, 0);
}

// With the call the power goes, before or after the record was written.
TEST_F(StoreBindingTest, APowerCutInTheMiddleOfARebuildLeavesTheTableThatInnodbHas) {
  for (uint64_t step = 1; step <= 2; ++step) {
    for (const bool carried_out : {false, true}) {
      SCOPED_TRACE("record " + std::to_string(step) + (carried_out ? " written" : " not written"));
      const TableId before{100 * step + (carried_out ? 10U : 0U)};
      const TableId after{before.value + 1};
      const Locator locator = AppendTo(before, step);
      uint64_t calls = 0;
      env_.SetHook([&](const Call& call) {
        if (call.kind == (carried_out ? CallKind::kSync : CallKind::kWrite)) ++calls;
        return calls < step ? Status::Ok() : Status::FromErrno(EIO, "the power goes", call.path);
      });
      const bool begun = directory_->BeginRebind(before, after).ok();
      EXPECT_EQ(begun, step == 2);
      if (begun) {
        EXPECT_FALSE(directory_->Rebind(before, after).ok());
      }
      env_.SetHook(nullptr);
      CutPower(&memory_, &env_, carried_out ? UINT64_MAX : 0, &directory_);
      Open();
      const TableId kept = begun ? after : before;  // InnoDB commits between the two
      EXPECT_EQ(directory_->OwnershipOf(locator.store, kept), Ownership::kBound);
      EXPECT_EQ(directory_->UndecidedRebinds().size(), (step == 1) == carried_out ? 1U : 0U);
      ASSERT_OK(directory_->SettleRebind(locator.store, {before, after}, kept));
      EXPECT_EQ(AppendTo(kept, 3).store, locator.store);
      ExpectReadable(locator, step);
    }
  }
}

TEST_F(StoreBindingTest, OwnershipFollowsEveryChangeAndTheGenerationTellsOfIt) {
  EXPECT_EQ(directory_->OwnershipOf(StoreId{1}, kTable), Ownership::kForeign) << "there is no such store";
  uint64_t generation = directory_->BindingGeneration();
  const auto expect_news = [&] {
    EXPECT_GT(directory_->BindingGeneration(), generation);
    generation = directory_->BindingGeneration();
  };
  const StoreId store = AppendTo(kTable, 1).store;
  expect_news();
  ExpectOwnership(store, Ownership::kBound, Ownership::kForeign);
  AppendTo(kTable, 2);
  EXPECT_EQ(directory_->BindingGeneration(), generation) << "an append changes no binding";
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  expect_news();
  ASSERT_OK(directory_->AbandonRebind(kTable));
  expect_news();
  ExpectOwnership(store, Ownership::kBound, Ownership::kForeign);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->Rebind(kTable, kOther));
  expect_news();
  ExpectOwnership(store, Ownership::kForeign, Ownership::kBound);
  ASSERT_OK(directory_->Discard(kOther, 1));
  expect_news();
  ExpectOwnership(store, Ownership::kForeign, Ownership::kBound);
  (void)ValueOf(directory_->EmptyTrash(1));
  expect_news();
  ExpectOwnership(store, Ownership::kForeign, Ownership::kForeign);
}

TEST_F(StoreBindingTest, AStoreWhoseRecordsAreLostIsReadAndBoundByAScanAlone) {
  const Locator locator = AppendTo(kTable, 1);
  const StoreId store = locator.store;
  CatalogueInstallation installation = directory_->catalogue()->state().installation;
  directory_.reset();
  WriteCatalogue({installation, CatalogueEnd{installation}});
  Open();
  EXPECT_EQ(directory_->TakeNotices().size(), 1U);
  ExpectOwnership(store, Ownership::kUnbound, Ownership::kUnbound);
  ExpectReadable(locator, 1);
  const auto pass = ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}));
  EXPECT_EQ(pass->report().segments, 0U);
  ASSERT_OK(directory_->BindUnbound(store, kTable, "db/t"));
  ASSERT_OK(directory_->BindUnbound(store, kOther, "db/other"));  // it has an owner
  CrashAndOpen();
  ExpectOwnership(store, Ownership::kBound, Ownership::kForeign);
  ExpectReadable(locator, 1);
  EXPECT_TRUE(directory_->TakeNotices().empty());
  EXPECT_EQ(ValueOf(BeginGcPass(directory_.get(), {&store, 1}, {}))->report().segments, 1U);
}

TEST_F(StoreBindingTest, WhileDamageMayConcernAStoreNothingOfItIsGivenBack) {
  const Locator damaged = AppendTo(kTable, 1);
  const Locator other = AppendTo(kOther, 2);
  ASSERT_OK(directory_->Discard(kTable, 1));
  ASSERT_OK(directory_->Discard(kOther, 1));
  std::vector<CatalogueRecord> records = directory_->catalogue()->state().Records();
  directory_.reset();
  records.emplace_back(CatalogueDamage{damaged.store, 1, "a record does not verify"});
  records.emplace_back(CatalogueEnd{std::get<CatalogueInstallation>(records[0])});
  WriteCatalogue(records);
  for (int start = 0; start < 2; ++start) {
    Reopen();
    (void)ValueOf(directory_->EmptyTrash(1));
    ExpectReadable(damaged, 1);
    EXPECT_FALSE(ReadValue(directory_.get(), other).ok());
    EXPECT_EQ(directory_->TakeNotices().size(), 2U) << "what is known, and what was refused";
  }
}

TEST_F(StoreBindingTest, ARebindOntoATableThatHasAStoreKeepsBoth) {
  const Locator old_rows = AppendTo(kTable, 1);
  const Locator new_rows = AppendTo(kOther, 2);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->Rebind(kTable, kOther));
  EXPECT_EQ(ValueOf(directory_->Find(kOther))->id(), new_rows.store);  // appends go to the newest
  ASSERT_OK(directory_->Discard(kOther, 1));
  for (const StoreStats& stats : directory_->ListStores()) EXPECT_TRUE(stats.discarded);
  (void)ValueOf(directory_->EmptyTrash(1));
  EXPECT_FALSE(ReadValue(directory_.get(), old_rows).ok());
  EXPECT_FALSE(ReadValue(directory_.get(), new_rows).ok());
}

TEST_F(StoreBindingTest, AStoreOfATableIsNotForgottenInTheTrashForAnotherOneThatCameBack) {
  const Locator old_rows = AppendTo(kTable, 1);
  const Locator new_rows = AppendTo(kOther, 2);
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->Rebind(kTable, kOther));
  ASSERT_OK(directory_->Discard(kOther, 1));
  // The drop was undone, and the table's first use comes to the first of its two stores.
  uint64_t flushes = 0;
  env_.SetHook([&flushes](const Call& call) {
    const bool is_flush = call.kind == CallKind::kSync && call.path.find("CATALOGUE") != std::string::npos;
    return is_flush && ++flushes == 2 ? Status::FromErrno(EIO, "fdatasync", call.path) : Status::Ok();
  });
  EXPECT_FALSE(directory_->Find(kOther).ok());
  env_.SetHook(nullptr);
  ASSERT_OK(directory_->Find(kOther).status());
  ASSERT_OK(directory_->RestoreStores(kOther));
  EXPECT_EQ(ValueOf(directory_->EmptyTrash(UINT64_MAX)), 0U);
  ExpectReadable(old_rows, 1);
  ExpectReadable(new_rows, 2);
}

TEST_F(StoreBindingTest, EveryStepOfATrashCycleSurvivesAFailureAtAnyCall) {
  for (const CallKind kind :
       {CallKind::kWrite, CallKind::kSync, CallKind::kRename, CallKind::kRemove, CallKind::kSyncDirectory}) {
    for (uint64_t n = 1; n <= 6; ++n) {
      for (const bool crash : {false, true}) {
        SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " n " + std::to_string(n));
        const TableId table{1000 + n * 10 + static_cast<uint64_t>(kind) * 1000 + (crash ? 1U : 0U)};
        const Locator locator = AppendTo(table, n);
        env_.FailCall(kind, n, EIO);
        bool failed = !directory_->Discard(table, 5).ok();
        failed = !directory_->Find(table).ok() || failed;
        failed = !directory_->Discard(table, 6).ok() || failed;
        env_.ClearFailures();
        if (crash) CrashAndOpen();
        ExpectReadable(locator, n);
        ASSERT_OK(directory_->Discard(table, 7));
        env_.FailCall(kind, n, EIO);
        failed = !directory_->EmptyTrash(7).ok() || failed;
        env_.ClearFailures();
        EXPECT_OK(directory_->SaveCounters());  // a store whose directory is gone has none
        if (crash) CrashAndOpen();
        (void)ValueOf(directory_->EmptyTrash(7));
        EXPECT_EQ(ReadValue(directory_.get(), locator).status().code(), StatusCode::kNotFound);
      }
    }
  }
  EXPECT_TRUE(ValueOf(memory_.ListDirectory("/home/trash")).empty());
}

// Nobody can undo that drop any more; a store whose folder is gone must not be what the table gets.
TEST_F(StoreBindingTest, ATableIsServedThoughTheEndOfItsOldStoreCouldNotBeFlushed) {
  const Locator old_rows = AppendTo(kTable, 1);
  ASSERT_OK(directory_->Discard(kTable, 1));
  env_.SetHook([](const Call& call) {
    const bool is_last = call.kind == CallKind::kSyncDirectory && call.path == "/home/trash";
    return is_last ? Status::FromErrno(EIO, "fsync directory", call.path) : Status::Ok();
  });
  ASSERT_FALSE(directory_->EmptyTrash(1).ok());
  env_.SetHook(nullptr);
  const Locator new_rows = AppendTo(kTable, 2);
  EXPECT_NE(new_rows.store, old_rows.store);
  for (const bool crash : {false, true}) {
    if (crash) CrashAndOpen();
    ExpectReadable(new_rows, 2);
    EXPECT_EQ(ValueOf(directory_->Find(kTable))->id(), new_rows.store);
  }
  (void)ValueOf(directory_->EmptyTrash(1));
  ASSERT_EQ(directory_->ListStores().size(), 1U);
  ExpectReadable(new_rows, 2);
  EXPECT_FALSE(ReadValue(directory_.get(), old_rows).ok());
}

TEST_F(StoreBindingTest, ASuccessAfterAFailureIsOnDiskEvenWhenNothingChanges) {
  AppendTo(kTable, 1);
  ASSERT_OK(directory_->Discard(kTable, 1));
  ASSERT_OK(directory_->Find(kTable).status());
  // The record is written, and then its flush fails.
  env_.FailCall(CallKind::kSync, 1, EIO);
  ASSERT_FALSE(directory_->Discard(kTable, 2).ok());
  ASSERT_OK(directory_->AbandonRebind(kTable));
  CrashAndOpen();
  EXPECT_FALSE(directory_->ListStores()[0].discarded);
}

TEST_F(StoreBindingTest, IdsAreNeverUsedTwice) {
  std::set<uint64_t> seen;
  for (uint64_t i = 1; i <= 40; ++i) {
    const Locator locator = AppendTo({i}, i);
    EXPECT_TRUE(seen.insert(locator.store.value).second);
    ASSERT_OK(directory_->Discard({i}, 1));
    (void)ValueOf(directory_->EmptyTrash(1));
    if (i % 3 == 0) CrashAndOpen();
  }
}

// Each TRUNCATE gives a table another id.
TEST_F(StoreBindingTest, NothingIsRememberedOfTablesThatAreGone) {
  for (uint64_t table = 100; table < 110; ++table) {
    AppendTo({table}, table);
    ASSERT_OK(directory_->Discard({table}, 1));
    EXPECT_GT(ValueOf(directory_->EmptyTrash(1)), 0U);
  }
  AppendTo(kTable, 1);
  EXPECT_EQ(directory_->CountTables(), 1U);
}

TEST_F(StoreBindingTest, AMissingSegmentFailsOnlyItsReads) {
  const Locator lost = AppendTo(kTable, 1);
  Reopen();
  const Locator kept = AppendTo(kTable, 2);
  Reopen();
  ASSERT_NE(lost.segment, kept.segment);
  ASSERT_OK(memory_.RemoveFile("/home/stores/" + StoreDirectoryName(lost.store) + "/" + SegmentFileName(lost.segment)));
  Reopen();
  EXPECT_EQ(ReadValue(directory_.get(), lost).status().code(), StatusCode::kNotFound);
  ExpectReadable(kept, 2);
  const Locator more = AppendTo(kTable, 3);
  EXPECT_GT(more.segment.value, kept.segment.value);
}

TEST_F(StoreBindingTest, HalfMadeThingsAreRemoved) {
  AppendTo(kTable, 1);
  directory_.reset();
  ASSERT_OK(memory_.CreateDirectory("/home/stores/0000000000000007"));
  const std::string empty_segment = "/home/stores/0000000000000001/00000009.qseg";
  (void)ValueOf(memory_.CreateFile(empty_segment));
  Open();
  EXPECT_FALSE(ValueOf(memory_.FileExists("/home/stores/0000000000000007")));
  EXPECT_FALSE(ValueOf(memory_.FileExists(empty_segment)));
  EXPECT_EQ(directory_->ListStores().size(), 1U);
  EXPECT_GT(AppendTo(kTable, 2).segment.value, 9U);
}

// ---- prefix limits ----

TEST_F(StoreBindingTest, APrefixLimitOnlyFallsAndOutlivesCrashes) {
  const Locator locator = AppendTo(kTable, 1);
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), kNoPrefixLimit);
  for (const auto& [stated, in_force] : {std::pair{700U, 700U}, {800U, 700U}, {0U, 0U}, {65535U, 0U}}) {
    ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/t", stated));
    EXPECT_EQ(directory_->PrefixLimitBytes(kTable), in_force);
    CrashAndOpen();
    EXPECT_EQ(directory_->PrefixLimitBytes(kTable), in_force);
  }
  EXPECT_EQ(directory_->LowerPrefixLimit(kTable, "db/t", 65536).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(directory_->LowerPrefixLimit(TableId{0}, "db/t", 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(directory_->PrefixLimitBytes(kOther), kNoPrefixLimit);
  EXPECT_EQ(AppendTo(kTable, 2).store, locator.store);
  ExpectReadable(locator, 1);
}

TEST_F(StoreBindingTest, APrefixLimitIsThereBeforeTheFirstValue) {
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/t", 100));
  CrashAndOpen();
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 100U);
  const Locator locator = AppendTo(kTable, 1);
  EXPECT_EQ(directory_->ListStores().size(), 1U);
  Reopen();
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 100U);
  ExpectReadable(locator, 1);
}

TEST_F(StoreBindingTest, APrefixLimitFollowsTheHeads) {
  AppendTo(kTable, 1);
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/t", 100));
  ASSERT_OK(directory_->BeginRebind(kTable, kOther));
  ASSERT_OK(directory_->Rebind(kTable, kOther));
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), kNoPrefixLimit);
  EXPECT_EQ(directory_->PrefixLimitBytes(kOther), 100U);
  CrashAndOpen();
  EXPECT_EQ(directory_->PrefixLimitBytes(kOther), 100U);
  ASSERT_OK(directory_->Discard(kOther, 5));
  CrashAndOpen();
  EXPECT_EQ(directory_->PrefixLimitBytes(kOther), 100U) << "a dropped table that comes back has the same heads";
}

TEST_F(StoreBindingTest, APrefixLimitThatCannotBeWrittenIsAnError) {
  AppendTo(kTable, 1);
  ASSERT_OK(directory_->LowerPrefixLimit(kTable, "db/t", 700));
  env_.FailCall(CallKind::kWrite, 1, EIO, true);
  EXPECT_FALSE(directory_->LowerPrefixLimit(kTable, "db/t", 100).ok());
  env_.ClearFailures();
  CrashAndOpen();
  EXPECT_EQ(directory_->PrefixLimitBytes(kTable), 700U);
}

TEST_F(StoreBindingTest, StoresWithoutACatalogueAreRefused) {
  AppendTo(kTable, 1);
  directory_.reset();
  for (const std::string& name : ValueOf(memory_.ListDirectory("/home"))) {
    if (ParseCatalogueFileName(name)) ASSERT_OK(memory_.RemoveFile("/home/" + name));
  }
  EXPECT_EQ(OpenDirectory(&env_, options_).status().code(), StatusCode::kCorruption);
}

TEST_F(StoreBindingTest, AHomeFromBeforeTheFirstReleaseIsRefusedByName) {
  directory_.reset();
  ASSERT_OK(memory_.ReplaceFile("/home/DIRECTORY", std::vector<uint8_t>{1}));
  const Status status = OpenDirectory(&env_, options_).status();
  EXPECT_EQ(status.code(), StatusCode::kNotSupported);
  EXPECT_NE(status.message().find("DIRECTORY"), std::string::npos);
}

}  // namespace
}  // namespace quarry
