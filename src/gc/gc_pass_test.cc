// What a pass gives back and what it leaves alone; what failures, power cuts and doubtful marks do to it.
#include <algorithm>
#include <cerrno>
#include <map>

#include "context/layout.h"
#include "gc/gc_test_util.h"
#include "io/path.h"

namespace quarry {
namespace {

using GcPassTest = GcFixture;

TEST_F(GcPassTest, HolesLeaveExactlyTheMarkedBlocks) {
  const std::vector<Known> all = AppendSome(20, 9000);  // each starts in a block of its own and takes three
  const std::unique_ptr<GcPass> pass = Begin();
  for (size_t i = 0; i < all.size(); i += 2) pass->Mark(all[i].locator);
  const uint64_t before = RealBytes();
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(RealBytes(), (1 + 10 * 3) * kBlockSizeBytes);
  EXPECT_EQ(pass->report().reclaimed_bytes, before - RealBytes());
  EXPECT_EQ(pass->report().holes, 10U);  // neighbours are merged: the last one reaches to the end
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(IsReadable(all[i]), i % 2 == 0) << i;
  }
  const StoreStats stats = store_->GetStats();
  EXPECT_EQ(stats.extents, 10U);
  EXPECT_EQ(stats.live_bytes, 10 * all[0].locator.extent_size_bytes);
  EXPECT_EQ(stats.dead_bytes, 0U);
}

TEST_F(GcPassTest, WhatDiesAfterTheViewCountsAsDead) {
  const std::vector<Known> all = AppendSome(20, 9000);
  const uint64_t size = all[0].locator.extent_size_bytes;
  std::unique_ptr<GcPass> pass = Begin();
  for (size_t i = 0; i < 5; ++i) directory_->Release(all[i].locator);  // the view does not show them
  pass->NoteView();
  for (size_t i = 5; i < 8; ++i) directory_->Release(all[i].locator);  // the view does
  for (size_t i = 5; i < all.size(); ++i) pass->Mark(all[i].locator);
  for (size_t i = 8; i < 10; ++i) directory_->Release(all[i].locator);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(store_->GetStats().live_bytes, 10 * size);
  EXPECT_EQ(store_->GetStats().dead_bytes, 5 * size);
  EXPECT_EQ(store_->GetStats().extents, 10U);
  pass = Begin();
  for (size_t i = 10; i < all.size(); ++i) pass->Mark(all[i].locator);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(store_->GetStats().live_bytes, 10 * size);
  EXPECT_EQ(store_->GetStats().dead_bytes, 0U);
}

TEST_F(GcPassTest, AReleaseThatComesAfterTheViewIsNotCountedTwice) {
  const std::vector<Known> all = AppendSome(20, 9000);
  const std::unique_ptr<GcPass> pass = Begin();
  pass->NoteView();
  for (size_t i = 5; i < all.size(); ++i) pass->Mark(all[i].locator);
  for (size_t i = 0; i < 5; ++i)
    directory_->Release(all[i].locator);  // committed before the view, which is without them
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(store_->GetStats().live_bytes, 15 * all[0].locator.extent_size_bytes);
  EXPECT_EQ(store_->GetStats().dead_bytes, 0U);
}

TEST_F(GcPassTest, ASecondPassFindsNothing) {
  const std::vector<Known> all = AppendSome(10, 9000);
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<GcPass> pass = Begin();
    pass->Mark(all[3].locator);
    ASSERT_OK(Finish(pass.get()));
    EXPECT_EQ(pass->report().holes > 0, round == 0);
    EXPECT_EQ(pass->report().segments_done, pass->report().segments);
  }
  ExpectReads(all[3]);
}

TEST_F(GcPassTest, SegmentsWithoutAMarkAreUnlinkedAndTheirNumbersNotUsedAgain) {
  const std::vector<Known> all = AppendSome(60, 12000);  // several segments
  const uint32_t segments = store_->GetStats().segments;
  ASSERT_GT(segments, 2U);
  const std::unique_ptr<GcPass> pass = Begin();
  pass->Mark(all.back().locator);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().segments_unlinked, segments - 1);
  EXPECT_EQ(store_->GetStats().segments, 1U);
  EXPECT_EQ(ReadValue(directory_.get(), all.front().locator).status().code(), StatusCode::kNotFound);
  ExpectReads(all.back());
  const Known later = Append(RandomValue(100, 1));
  EXPECT_GT(later.locator.segment, all.back().locator.segment);
  Crash(0);
  ExpectReads(all.back());
  ExpectReads(later);
  EXPECT_GT(Append(RandomValue(100, 2)).locator.segment, later.locator.segment);
}

TEST_F(GcPassTest, NumbersAreNotUsedAgainWhenEverythingWasUnlinked) {
  const Known first = Append(RandomValue(5000, 1));
  ASSERT_OK(Finish(Begin().get()));
  EXPECT_EQ(store_->GetStats().segments, 0U);
  Crash(0);
  EXPECT_GT(Append(RandomValue(5000, 1)).locator.segment, first.locator.segment);
}

TEST_F(GcPassTest, WhatIsAppendedAfterTheBeginIsNoCandidate) {
  const Known before = Append(RandomValue(9000, 1));
  const std::unique_ptr<GcPass> pass = Begin();
  const Known after = Append(RandomValue(9000, 2));
  ASSERT_OK(Finish(pass.get()));
  EXPECT_FALSE(IsReadable(before));
  ExpectReads(after);
  Crash(0);
  ExpectReads(after);
}

TEST_F(GcPassTest, AnExtentOfZerosBehindAHoleSurvivesACrash) {
  // Recovery takes zeros at the end for unused space.
  UnsyncedExtents unsynced;
  const Known dead{ValueOf(store_->Append(RandomValue(9000, 2), {}, &unsynced)), RandomValue(9000, 2)};
  const std::vector<uint8_t> zeros(60000);
  const Known tail{ValueOf(store_->Append(zeros, {}, &unsynced)), zeros};
  ASSERT_OK(directory_->Sync(unsynced));
  ASSERT_NE(tail.locator.offset_bytes % kBlockSizeBytes, 0U);  // its block begins with the end of the dead one
  const std::unique_ptr<GcPass> pass = Begin();
  pass->Mark(tail.locator);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().holes, 1U);
  Crash(UINT64_MAX);
  ExpectReads(tail);
  EXPECT_FALSE(IsReadable(dead));
}

TEST_F(GcPassTest, SmallStepsAddUpToTheSame) {
  const std::vector<Known> all = AppendSome(60, 12000);
  const std::unique_ptr<GcPass> pass = Begin();
  for (size_t i = 0; i < all.size(); i += 7) pass->Mark(all[i].locator);
  uint64_t steps = 0;
  for (bool done = false; !done; ++steps) {
    const GcStep step = ValueOf(pass->ReclaimSome(1));
    EXPECT_TRUE(step.done || step.bytes > 0);
    done = step.done;
  }
  EXPECT_GT(steps, pass->report().segments);
  uint64_t blocks = 0;
  for (size_t i = 0; i < all.size(); i += 7) {
    ExpectReads(all[i]);
    blocks += 3;
  }
  EXPECT_EQ(RealBytes(), (blocks + store_->GetStats().segments) * kBlockSizeBytes);
}

TEST_F(GcPassTest, AMarkThatPointsNowhereKeepsItsSegment) {
  const std::vector<Known> all = AppendSome(5, 9000);
  const std::unique_ptr<GcPass> pass = Begin();
  Locator beyond = all[0].locator;
  beyond.offset_bytes += 1ULL << 40;
  pass->Mark(beyond);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().segments_in_doubt, 1U);
  for (const Known& known : all) ExpectReads(known);
}

TEST_F(GcPassTest, ASegmentWhoseHeaderCannotBeReadStaysWholeUntilNothingInItIsNeeded) {
  const std::vector<Known> all = AppendSome(10, 9000);  // in one segment
  store_.reset();
  Open();
  env_.RefuseReads(SegmentPathOf(all[0].locator), kSegmentHeaderSizeBytes);
  const std::unique_ptr<GcPass> pass = Begin();
  pass->Mark(all[0].locator);
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().segments_in_doubt, 1U);
  EXPECT_NE(pass->report().damage.find("Input/output error"), std::string::npos) << pass->report().damage;
  for (const Known& known : all) ExpectReads(known);
  ASSERT_OK(Finish(Begin().get()));
  EXPECT_EQ(store_->GetStats().segments, 0U);
  env_.SetHook(nullptr);
}

TEST_F(GcPassTest, AStoreThatWentToTheTrashIsLeftAlone) {
  const Known known = Append(RandomValue(9000, 1));
  const std::unique_ptr<GcPass> pass = Begin();
  ASSERT_OK(directory_->Discard({1}, 10));
  ASSERT_OK(Finish(pass.get()));
  ExpectReads(known);
  const std::vector<StoreId> stores = {store_->id()};
  EXPECT_EQ(ValueOf(BeginGcPass(directory_.get(), stores))->report().segments, 0U);
}

TEST_F(GcPassTest, WhatIsFullIsNoCandidateBeforeItIsFlushed) {
  std::map<std::string, bool> is_flushed;  // by the path of a segment
  env_.SetHook([&is_flushed](const Call& call) {
    if (call.kind == CallKind::kWrite || call.kind == CallKind::kSync) {
      is_flushed[call.path] = call.kind == CallKind::kSync;
    }
    return Status::Ok();
  });
  const std::shared_ptr<StoreImpl> store = directory_->FindStore(store_->id());
  const std::string parent = "/home/stores/" + StoreDirectoryName(store_->id()) + "/";
  const auto unflushed_candidates = [&] {
    const auto segments = store->SealedSegments();
    return std::count_if(segments.begin(), segments.end(), [&](const std::shared_ptr<Segment>& segment) {
      return !is_flushed.at(parent + SegmentFileName(segment->number()));
    });
  };
  UnsyncedExtents unsynced;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    (void)ValueOf(store_->Append(RandomValue(100 << 10, seed), {}, &unsynced));  // two to a segment
    EXPECT_EQ(unflushed_candidates(), 0);
  }
  const std::unique_ptr<GcPass> pass = Begin();
  EXPECT_EQ(pass->report().segments, 3U);
  EXPECT_EQ(unflushed_candidates(), 0);
  env_.SetHook(nullptr);
}

TEST_F(GcPassTest, TheLossOfAnotherIsNotSwallowedByTheSealing) {
  UnsyncedExtents unsynced;
  (void)ValueOf(store_->Append(RandomValue(5000, 1), {}, &unsynced));
  env_.FailCall(CallKind::kSync, 1, EIO);
  (void)Begin();
  EXPECT_FALSE(store_->SyncAll().ok());
  EXPECT_FALSE(directory_->Sync(unsynced).ok());
}

TEST_F(GcPassTest, AFullDiskIsRelievedThoughNothingCanBeRecorded) {
  const std::vector<Known> all = AppendSome(10, 9000);
  const auto is_full = [](const Call& call) {
    const bool is_record = call.kind == CallKind::kWrite && call.path.find("CATALOGUE") != std::string::npos;
    return is_record ? Status::FromErrno(ENOSPC, "write", call.path) : Status::Ok();
  };
  const std::unique_ptr<GcPass> first = Begin();
  first->Mark(all[0].locator);
  env_.SetHook(is_full);
  ASSERT_OK(Finish(first.get()));
  EXPECT_GT(first->report().punched_bytes, 0U);
  const std::unique_ptr<GcPass> second = Begin();
  ASSERT_OK(Finish(second.get()));  // no mark at all: it can't be unlinked, but emptied
  EXPECT_EQ(RealBytes(), kBlockSizeBytes);
  env_.SetHook(nullptr);
}

TEST_F(GcPassTest, FailuresAnywhereHurtNothingThatIsMarked) {
  for (const CallKind kind : {CallKind::kWrite, CallKind::kOpen, CallKind::kPunchHole, CallKind::kRemove,
                              CallKind::kSyncDirectory, CallKind::kClose, CallKind::kList, CallKind::kSync}) {
    for (uint64_t number = 1; number <= 6; ++number) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " number " + std::to_string(number));
      const std::vector<Known> all = AppendSome(40, 12000);
      env_.FailCall(kind, number, EIO);
      const std::unique_ptr<GcPass> pass = Begin();
      for (size_t i = 0; i < all.size() / 2; i += 3) pass->Mark(all[i].locator);
      if (const Status status = Finish(pass.get(), 20000); !status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kIoError);
        env_.ClearFailures();
        if (number % 2 == 0) EXPECT_OK(Finish(pass.get()));  // the call may be repeated
      }
      env_.ClearFailures();
      for (const bool after_crash : {false, true}) {
        if (after_crash) Crash(number);
        for (size_t i = 0; i < all.size() / 2; i += 3) ExpectReads(all[i]);
      }
      ASSERT_OK(Finish(Begin().get()));  // nobody needs anything: the next round starts empty
      EXPECT_EQ(store_->GetStats().segments, 0U);
    }
  }
}

TEST_F(GcPassTest, ASegmentThatCannotBeChangedKeepsNoOtherFromItsTurn) {
  const std::vector<Known> all = AppendSome(60, 12000);
  std::map<uint32_t, Known> first;  // of each segment
  for (const Known& known : all) first.try_emplace(known.locator.segment.value, known);
  ASSERT_GT(first.size(), 2U);
  const std::unique_ptr<GcPass> pass = Begin();
  for (const auto& [segment, known] : first) pass->Mark(known.locator);
  // As on a path that the system has made read-only: for good.
  env_.SetHook([path = SegmentPathOf(all[0].locator)](const Call& call) {
    const bool is_refused = call.kind == CallKind::kPunchHole && call.path == path;
    return is_refused ? Status::FromErrno(EROFS, "punch hole", call.path) : Status::Ok();
  });
  EXPECT_EQ(Finish(pass.get()).code(), StatusCode::kIoError);
  EXPECT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().segments_done, first.size());
  EXPECT_EQ(pass->report().holes, first.size() - 1) << "one in each of the others";
  env_.SetHook(nullptr);
  for (const auto& [segment, known] : first) ExpectReads(known);
}

TEST(GcRateTest, SpreadsStepsOverTime) {
  GcRate rate(1'000'000);
  EXPECT_EQ(rate.WaitMicros(500'000, 1000), 500'000U);
  EXPECT_EQ(rate.WaitMicros(250'000, 501'000), 250'000U);
  EXPECT_EQ(rate.WaitMicros(100'000, 601'000), 250'000U);  // came too early: 150'000 are still owed
  EXPECT_EQ(rate.WaitMicros(1000, 100'000'000), 1000U);    // a pause is no credit
  EXPECT_EQ(GcRate(0).WaitMicros(1ULL << 60, 5), 0U);
}

TEST_F(GcPassTest, AFullDiskGetsItsSpaceBack) {
  for (const bool is_active : {true, false}) {
    const std::vector<Known> all = AppendSome(is_active ? 3 : 12, 60000);
    const uint64_t before = RealBytes();
    // Nothing more can be allocated, for the catalogue neither.
    env_.SetHook([](const Call& call) {
      const bool allocates = call.kind == CallKind::kWrite || call.kind == CallKind::kCreate ||
                             call.kind == CallKind::kAllocate || call.kind == CallKind::kReplace;
      return allocates ? Status::FromErrno(ENOSPC, "write", call.path) : Status::Ok();
    });
    const std::unique_ptr<GcPass> pass = Begin();
    ASSERT_OK(Finish(pass.get()));
    EXPECT_LT(RealBytes(), before / 4) << (is_active ? "of what was active" : "of what was sealed");
    env_.SetHook(nullptr);
    ASSERT_OK(Finish(Begin().get()));
    (void)Append(RandomValue(5000, 1));
  }
}

}  // namespace
}  // namespace quarry
