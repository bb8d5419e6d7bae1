// Rewritten segments: what they give back, that every locator still leads to its value, and what damage, failures,
// power cuts, readers and other passes beside a rewriting come to.
#include <algorithm>
#include <optional>

#include "context/layout.h"
#include "format/extent.h"
#include "gc/gc_test_util.h"
#include "gc/segment_rewrite.h"
#include "io/path.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

constexpr GcOptions kRewrite{.rewrite_above = 1.25};

class GcRewriteTest : public GcFixture {
 protected:
  /// Values of 100 to 700 bytes, several to a block and none alone in one, in one segment.
  std::vector<Known> AppendSmall(size_t count, uint64_t seed = 1) {
    std::vector<Known> all;
    UnsyncedExtents unsynced;
    for (size_t i = 0; i < count; ++i) {
      std::vector<uint8_t> value = RandomValue(100 + (i * 37) % 600, seed * 1000 + i);
      const Locator locator = ValueOf(store_->Append(value, {}, &unsynced));
      all.push_back({locator, std::move(value)});
    }
    EXPECT_OK(directory_->Sync(unsynced));
    return all;
  }
  /// A pass that keeps every `nth` of `all`.
  GcReport Collect(const std::vector<Known>& all, size_t nth, const GcOptions& options = kRewrite,
                   uint64_t bytes_max = UINT64_MAX) {
    const std::unique_ptr<GcPass> pass = Begin(options);
    for (size_t i = 0; i < all.size(); i += nth) pass->Mark(all[i].locator);
    EXPECT_OK(Finish(pass.get(), bytes_max));
    return pass->report();
  }
  void ExpectEveryNth(const std::vector<Known>& all, size_t nth) {
    for (size_t i = 0; i < all.size(); i += nth) ExpectReads(all[i]);
  }
  [[nodiscard]] std::string PathOf(const Locator& locator) const {
    return JoinPath("/home/stores/" + StoreDirectoryName(locator.store), SegmentFileName(locator.segment));
  }
  [[nodiscard]] SegmentHeader HeaderOf(const Locator& locator) {
    const auto file = ValueOf(memory_.OpenForRead(PathOf(locator)));
    return ValueOf(ReadSegmentHeader(file.get(), locator.store, locator.segment));
  }
  void ExpectNoLeftover() {
    for (const std::string& name : ValueOf(memory_.ListDirectory("/home/stores/" + StoreDirectoryName(store_->id())))) {
      EXPECT_FALSE(IsLeftover(name)) << name;
    }
  }
};

TEST_F(GcRewriteTest, PacksWhatSharesBlocksAndKeepsEveryLocator) {
  const std::vector<Known> all = AppendSmall(400);
  const uint64_t before = RealBytes();
  uint64_t live = 0;
  for (size_t i = 0; i < all.size(); i += 5) live += all[i].locator.extent_size_bytes;
  const GcReport report = Collect(all, 5);
  EXPECT_EQ(report.segments_rewritten, 1U);
  EXPECT_EQ(report.segments_damaged, 0U);
  EXPECT_EQ(report.rewritten_bytes, live);
  EXPECT_EQ(report.reclaimed_bytes, before - RealBytes());
  EXPECT_LT(RealBytes(), live * 5 / 4 + 3 * kBlockSizeBytes);
  EXPECT_EQ(store_->GetStats().live_bytes, live);
  EXPECT_EQ(store_->GetStats().extents, 80U);
  for (const bool after_crash : {false, true}) {
    if (after_crash) Crash(0);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(IsReadable(all[i]), i % 5 == 0) << i;
      if (i % 5 != 0) continue;
      std::vector<uint8_t> range(50);
      ASSERT_OK(directory_->ReadRange(all[i].locator, 30, {}, range));
      EXPECT_TRUE(std::equal(range.begin(), range.end(), all[i].value.begin() + 30));
    }
  }
  EXPECT_EQ(directory_->GetCounters().segment_map_loads, 1U);
  EXPECT_GT(directory_->GetCounters().segment_map_bytes, 0U);
  EXPECT_EQ(HeaderOf(all[0].locator).generation, 1U);
}

TEST_F(GcRewriteTest, AHeaderOrMapThatThePageCacheHoldsDamagedIsReadFromTheDevice) {
  const std::vector<Known> all = AppendSmall(100);
  ASSERT_EQ(Collect(all, 10).segments_rewritten, 1U);
  uint64_t counted = 0;
  for (const uint64_t offset : {uint64_t{40}, kSegmentHeaderSizeBytes + 20}) {
    Crash(offset);
    bool is_damaged = false;
    const auto flip = [&] {
      EXPECT_TRUE(memory_.FlipBit(PathOf(all[0].locator), offset, 3));
      is_damaged = !is_damaged;
    };
    uint64_t reads = 0;
    env_.SetHook([&](const Call& call) {
      // Wrong in the first read of these bytes, and right in the one after it.
      const bool is_of_them =
          call.kind == CallKind::kRead && call.offset_bytes <= offset && offset < call.offset_bytes + call.size_bytes;
      if (is_of_them && reads++ < 2) flip();
      return Status::Ok();
    });
    ExpectReads(all[0]);
    EXPECT_FALSE(is_damaged);
    EXPECT_EQ(directory_->GetCounters().page_cache_corruptions, 1U) << ++counted;
    env_.SetHook({});
    ExpectEveryNth(all, 10);
  }
}

TEST_F(GcRewriteTest, AnExtentThatIsGoneIsNamedAsSuch) {
  const std::vector<Known> all = AppendSmall(100);
  (void)Collect(all, 10);
  const Status status = ReadValue(directory_.get(), all[1].locator).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("rewritten without it"), std::string::npos) << status.ToString();
}

TEST_F(GcRewriteTest, ARewrittenSegmentIsPunchedRewrittenAgainAndUnlinked) {
  const std::vector<Known> all = AppendSmall(450);
  EXPECT_EQ(Collect(all, 2).segments_rewritten, 1U);
  Crash(7);
  const GcReport again = Collect(all, 6);
  EXPECT_EQ(again.segments_rewritten, 1U);
  EXPECT_EQ(HeaderOf(all[0].locator).generation, 2U);
  ExpectEveryNth(all, 6);
  // The last third alone: holes suffice.
  const std::unique_ptr<GcPass> tail = Begin({.rewrite_above = 0});
  for (size_t i = 300; i < all.size(); i += 6) tail->Mark(all[i].locator);
  ASSERT_OK(Finish(tail.get()));
  EXPECT_GT(tail->report().holes, 0U);
  Crash(UINT64_MAX);
  for (size_t i = 300; i < all.size(); i += 6) ExpectReads(all[i]);
  EXPECT_FALSE(IsReadable(all[0]));
  ASSERT_OK(Finish(Begin(kRewrite).get()));
  EXPECT_EQ(store_->GetStats().segments, 0U);
  EXPECT_EQ(RealBytes(), 0U);
}

TEST_F(GcRewriteTest, PaddingAloneIsWorthIt) {
  // A commit each: a block each.
  const std::vector<Known> all = AppendSome(60, 700);
  EXPECT_GT(RealBytes(), 60 * kBlockSizeBytes);
  EXPECT_EQ(Collect(all, 1).segments_rewritten, 1U);
  EXPECT_LT(RealBytes(), 18 * kBlockSizeBytes);
  ExpectEveryNth(all, 1);
  EXPECT_EQ(Collect(all, 1).segments_rewritten, 0U);  // nothing is left to gain
}

TEST_F(GcRewriteTest, LargeExtentsOfAnyCodecAreCopiedAsTheyStand) {
  UnsyncedExtents unsynced;
  std::vector<Known> all;
  for (int i = 0; i < 24; ++i) {
    const std::vector<uint8_t> value = i % 3 == 0 ? TextValue(40000, 5) : RandomValue(i % 3 == 1 ? 150 : 5000, 9);
    const AppendOptions options{.part_size_bytes = 1000, .codec = i % 2 == 0 ? Codec::kZstd : Codec::kLz4};
    const Locator locator = ValueOf(store_->Append(value, options, &unsynced));
    all.push_back({locator, value});
    ASSERT_OK(directory_->Sync(unsynced));
  }
  EXPECT_GT(Collect(all, 2, {.rewrite_above = 1.01}).segments_rewritten, 0U);
  ExpectEveryNth(all, 2);
  Crash(3);
  ExpectEveryNth(all, 2);
}

TEST_F(GcRewriteTest, SmallStepsCopyLittleEach) {
  const std::vector<Known> all = AppendSmall(400);
  const std::unique_ptr<GcPass> pass = Begin(kRewrite);
  for (size_t i = 0; i < all.size(); i += 3) pass->Mark(all[i].locator);
  uint64_t steps = 0;
  for (bool done = false; !done; ++steps) {
    const GcStep step = ValueOf(pass->ReclaimSome(4096));
    EXPECT_LE(step.bytes, 4096 + 800U);
    ExpectEveryNth(all, 3);
    done = step.done;
  }
  EXPECT_GT(steps, 10U);
  EXPECT_EQ(pass->report().segments_rewritten, 1U);
}

TEST_F(GcRewriteTest, APassThatIsDroppedLeavesNothing) {
  const std::vector<Known> all = AppendSmall(400);
  std::unique_ptr<GcPass> pass = Begin(kRewrite);
  for (size_t i = 0; i < all.size(); i += 3) pass->Mark(all[i].locator);
  while (pass->report().rewritten_bytes == 0) (void)ValueOf(pass->ReclaimSome(4096));
  pass.reset();
  ExpectNoLeftover();
  ExpectEveryNth(all, 3);
  EXPECT_EQ(Collect(all, 3).segments_rewritten, 1U);
}

TEST_F(GcRewriteTest, AReaderInTheMiddleKeepsTheOldFile) {
  const std::vector<Known> all = AppendSmall(400);
  Crash(UINT64_MAX);  // nothing is in memory, no file is open
  bool has_run = false;
  // Between the look-up of the place and the read itself the whole pass happens.
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kRead || call.offset_bytes < kSegmentHeaderSizeBytes || has_run) return Status::Ok();
    has_run = true;
    EXPECT_EQ(Collect(all, 5).segments_rewritten, 1U);
    return Status::Ok();
  });
  ExpectReads(all[395]);
  EXPECT_TRUE(has_run);
  env_.SetHook(nullptr);
  ExpectEveryNth(all, 5);
  EXPECT_EQ(HeaderOf(all[0].locator).generation, 1U);
}

TEST_F(GcRewriteTest, ADamagedExtentIsNeitherHealedNorLost) {
  const std::vector<Known> all = AppendSmall(400);
  const uint64_t place = all[50].locator.offset_bytes + all[50].locator.extent_size_bytes - 10;
  ASSERT_TRUE(memory_.FlipBit(PathOf(all[50].locator), place, 2));
  const GcReport report = Collect(all, 5);
  EXPECT_EQ(report.segments_rewritten, 0U);
  EXPECT_EQ(report.segments_damaged, 1U);
  EXPECT_NE(report.damage.find("part 0 checksum mismatch"), std::string::npos) << report.damage;
  ExpectNoLeftover();
  for (size_t i = 0; i < all.size(); i += 5) {
    if (i != 50) ExpectReads(all[i]);
  }
  ASSERT_TRUE(memory_.FlipBit(PathOf(all[50].locator), place, 2));
  ExpectReads(all[50]);
  EXPECT_EQ(Collect(all, 5).segments_rewritten, 1U);
  ExpectEveryNth(all, 5);
}

TEST_F(GcRewriteTest, AnUnreadableExtentIsNeitherSkippedNorAnEndlessError) {
  const std::vector<Known> all = AppendSmall(400);
  const std::unique_ptr<GcPass> pass = Begin(kRewrite);
  for (size_t i = 0; i < all.size(); i += 5) pass->Mark(all[i].locator);
  env_.SetHook([&](const Call& call) {
    const bool is_data = call.kind == CallKind::kRead && call.offset_bytes >= kSegmentHeaderSizeBytes;
    return is_data ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
  });
  ASSERT_OK(Finish(pass.get()));
  env_.SetHook(nullptr);
  EXPECT_EQ(pass->report().segments_damaged, 1U);
  EXPECT_NE(pass->report().damage.find("Input/output error"), std::string::npos) << pass->report().damage;
  ExpectEveryNth(all, 5);
}

TEST_F(GcRewriteTest, NoRoomIsNoError) {
  const std::vector<Known> all = AppendSmall(400);
  for (const CallKind kind : {CallKind::kCreate, CallKind::kAllocate, CallKind::kWrite, CallKind::kSync}) {
    const std::unique_ptr<GcPass> pass = Begin(kRewrite);
    for (size_t i = 0; i < all.size(); i += 5) pass->Mark(all[i].locator);
    env_.FailCall(kind, 1, ENOSPC, true);
    ASSERT_OK(Finish(pass.get()));
    EXPECT_EQ(pass->report().rewrites_refused + pass->report().segments_skipped, 1U);
    env_.ClearFailures();
    ExpectNoLeftover();
    ExpectEveryNth(all, 5);
  }
  EXPECT_EQ(Collect(all, 5).segments_rewritten, 1U);
}

TEST_F(GcRewriteTest, MemoryIsBounded) {
  const std::vector<Known> all = AppendSmall(400);
  const GcReport report = Collect(all, 5, {.rewrite_above = 1.25, .memory_max_bytes = 100});
  EXPECT_EQ(report.segments_rewritten, 0U);
  EXPECT_EQ(report.rewrites_refused, 1U);
  ExpectEveryNth(all, 5);
  EXPECT_EQ(Collect(all, 5).segments_rewritten, 1U);
  // Now it has a map, for which there is no memory either: it stays as it is.
  EXPECT_EQ(Collect(all, 10, {.rewrite_above = 1.25, .memory_max_bytes = 100}).segments_skipped, 1U);
  ExpectEveryNth(all, 5);
}

// As versions of a row do where the table has system versioning.
TEST_F(GcRewriteTest, ExtentsThatManyRowsShareTakeMemoryOnce) {
  const std::vector<Known> all = AppendSmall(400);
  const std::unique_ptr<GcPass> pass = Begin({.rewrite_above = 1.25, .memory_max_bytes = 10000});
  for (int version = 0; version < 20; ++version) {
    for (size_t i = 0; i < all.size(); i += 5) pass->Mark(all[i].locator);
  }
  ASSERT_OK(Finish(pass.get()));
  EXPECT_EQ(pass->report().segments_rewritten, 1U);
  ExpectEveryNth(all, 5);
}

TEST_F(GcRewriteTest, TheNewMapCountsAmongTheMemoryOfThePass) {
  const std::vector<Known> all = AppendSmall(400);
  // Neither do the 80 lie next to each other, nor has the counter of extents less than 400.
  EXPECT_GE(Collect(all, 5).memory_bytes, 400 * sizeof(NeededExtent) + 80 * (sizeof(SegmentRun) + MapSizeBytes(1)));
}

TEST_F(GcRewriteTest, ManySegmentsArePackedWithinTheMemoryOfOne) {
  const std::vector<Known> all = AppendSmall(4000);
  const uint64_t segments = Begin(kRewrite)->report().segments;
  ASSERT_GT(segments, 4U);
  // As much as the extents of one segment and the maps of those before it need, not those of all.
  const GcOptions options{.rewrite_above = 1.25, .memory_max_bytes = 20000};
  uint64_t rewritten = 0;
  for (uint64_t pass = 0; pass < 3 * segments && rewritten < segments; ++pass) {
    const GcReport report = Collect(all, 5, options);
    EXPECT_TRUE(report.rewrites_postponed == 0 || report.segments_rewritten > 0 || pass == 0) << pass;
    rewritten += report.segments_rewritten;
    ExpectEveryNth(all, 5);
  }
  EXPECT_EQ(rewritten, segments);
}

TEST_F(GcRewriteTest, AnotherPassDoesNotTouchTheNewFile) {
  const std::vector<Known> all = AppendSmall(400);
  const std::unique_ptr<GcPass> first = Begin(kRewrite);
  const std::unique_ptr<GcPass> second = Begin(kRewrite);
  for (size_t i = 0; i < all.size(); i += 5) {
    first->Mark(all[i].locator);
    second->Mark(all[i].locator);
  }
  while (first->report().rewritten_bytes == 0) (void)ValueOf(first->ReclaimSome(4096));
  ASSERT_OK(Finish(second.get()));  // beside the one that is at it
  EXPECT_EQ(second->report().segments_rewritten, 0U);
  const std::unique_ptr<GcPass> third = Begin(kRewrite);
  for (size_t i = 0; i < all.size(); i += 5) third->Mark(all[i].locator);
  ASSERT_OK(Finish(first.get()));
  EXPECT_EQ(first->report().segments_rewritten, 1U);
  ASSERT_OK(Finish(third.get()));  // its marks are of the file that was
  EXPECT_EQ(third->report().holes + third->report().segments_rewritten, 0U);
  ExpectEveryNth(all, 5);
}

TEST_F(GcRewriteTest, APoisonedSegmentIsRewrittenInTheNextLifeOnly) {
  const std::vector<Known> all = AppendSmall(400);
  UnsyncedExtents unsynced;
  (void)ValueOf(store_->Append(RandomValue(100, 1), {}, &unsynced));
  env_.FailCall(CallKind::kSync, 1, EIO);
  EXPECT_FALSE(directory_->Sync(unsynced).ok());
  EXPECT_EQ(Collect(all, 5).segments_rewritten, 0U);
  Crash(UINT64_MAX);
  EXPECT_EQ(Collect(all, 5).segments_rewritten, 1U);
  ExpectEveryNth(all, 5);
}

TEST_F(GcRewriteTest, EveryByteFlippedGivesAnErrorOrTheRightBytes) {
  std::vector<Known> all = AppendSmall(60);
  EXPECT_EQ(Collect(all, 4).segments_rewritten, 1U);
  store_.reset();
  directory_.reset();
  const std::string path = PathOf(all[0].locator);
  const uint64_t size = ValueOf(ValueOf(memory_.OpenForRead(path))->SizeBytes());
  ASSERT_LE(size, 7 * kBlockSizeBytes);
  const SegmentHeader header = HeaderOf(all[0].locator);
  uint64_t refused = 0;
  for (uint64_t at = 0; at < size; ++at) {
    const int bit = static_cast<int>(at % 8);
    ASSERT_TRUE(memory_.FlipBit(path, at, bit));
    directory_ = ValueOf(OpenDirectory(&env_, Options()));
    const uint64_t refused_before = refused;
    for (size_t i = 0; i < all.size(); i += 4) refused += IsReadable(all[i]) ? 0 : 1;  // IsReadable compares
    const bool is_layout = at < DataBeginBytes(15) || at >= CopyBeginBytes(header);
    ASSERT_TRUE(!is_layout || refused == refused_before) << at << ": header and map stand there twice";
    directory_.reset();
    ASSERT_TRUE(memory_.FlipBit(path, at, bit));
  }
  EXPECT_GT(refused, header.data_end_bytes - DataBeginBytes(15) - 15 * kExtentAlignmentBytes);
  Open();
  ExpectEveryNth(all, 4);
}

TEST_F(GcRewriteTest, FailuresAnywhereHurtNothingThatIsMarked) {
  for (const CallKind kind :
       {CallKind::kCreate, CallKind::kOpen, CallKind::kRead, CallKind::kWrite, CallKind::kAllocate, CallKind::kSync,
        CallKind::kClose, CallKind::kRename, CallKind::kSyncDirectory, CallKind::kRemove}) {
    for (uint64_t number = 1; number <= 5; ++number) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + " number " + std::to_string(number));
      const std::vector<Known> all = AppendSmall(300, number);
      const std::unique_ptr<GcPass> pass = Begin(kRewrite);
      for (size_t i = 0; i < all.size(); i += 5) pass->Mark(all[i].locator);
      env_.FailCall(kind, number, EIO);
      if (const Status status = Finish(pass.get(), 20000); !status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kIoError);
        env_.ClearFailures();
        if (number % 2 == 0) EXPECT_OK(Finish(pass.get()));  // the call may be repeated
      }
      env_.ClearFailures();
      for (const bool after_crash : {false, true}) {
        if (after_crash) Crash(number);
        ExpectEveryNth(all, 5);
      }
      ExpectNoLeftover();
      ASSERT_OK(Finish(Begin(kRewrite).get()));  // nobody needs anything: the next round starts empty
      EXPECT_EQ(store_->GetStats().segments, 0U);
    }
  }
}

TEST_F(GcRewriteTest, APowerCutAfterAnyCallLeavesTheOneFileOrTheOther) {
  uint64_t calls = 0;
  const auto changes = [](CallKind kind) {
    return kind != CallKind::kRead && kind != CallKind::kOpen && kind != CallKind::kList;
  };
  for (uint64_t cut_at = 1;; ++cut_at) {
    const std::vector<Known> all = AppendSmall(200, cut_at);
    const std::unique_ptr<GcPass> pass = Begin(kRewrite);
    for (size_t i = 0; i < all.size(); i += 5) pass->Mark(all[i].locator);
    calls = 0;
    env_.SetHook([&](const Call& call) {
      if (changes(call.kind)) ++calls;
      return calls > cut_at ? Status::FromErrno(EIO, "power is off", call.path) : Status::Ok();
    });
    const bool is_done = Finish(pass.get(), 8192).ok();
    env_.SetHook(nullptr);
    for (const uint64_t seed : {uint64_t{0}, cut_at, UINT64_MAX}) {
      Crash(seed);
      SCOPED_TRACE("cut at " + std::to_string(cut_at) + " seed " + std::to_string(seed));
      ExpectEveryNth(all, 5);
      ExpectNoLeftover();
    }
    ASSERT_OK(Finish(Begin(kRewrite).get()));
    if (is_done) break;
  }
  EXPECT_GT(calls, 8U);
}

}  // namespace
}  // namespace quarry
