// No memory: std::bad_alloc at each call of the file system in turn, as of an allocation right before it. Whoever is at
// work answers with an error, everything is as consistent as before, and the next try does the work.
#include <algorithm>
#include <new>
#include <string>

#include "gc/gc_test_util.h"
#include "quarry/memory_guard.h"
#include "quarry/verify.h"

namespace quarry {
namespace {

constexpr GcOptions kRewrite{.rewrite_above = 1.25};

bool IsAny(const Call&) { return true; }
bool IsOfCatalogue(const Call& call) { return call.path.find("CATALOGUE-") != std::string::npos; }
/// But for the writes and flushes of segments, which lanes make where no memory may be missing.
bool IsOfNewSegment(const Call& call) {
  return IsOfCatalogue(call) || call.kind == CallKind::kCreate || call.kind == CallKind::kSyncDirectory;
}

class NoFinding final : public VerifyObserver {
 public:
  void Found(const Finding& finding) override { EXPECT_EQ(finding.kind, FindingKind::kLeftover) << finding.what; }
  [[nodiscard]] bool Progress(const VerifyProgress&) override { return true; }
};

class MemoryShortageTest : public GcFixture {
 protected:
  /// The `number`th call from now on of those that `concerns` finds no memory.
  void StarveAt(uint64_t number, bool (*concerns)(const Call&)) {
    calls_ = 0;
    starved_at_ = number;
    env_.SetHook([this, concerns](const Call& call) {
      if (concerns(call) && ++calls_ == starved_at_) throw std::bad_alloc();
      return Status::Ok();
    });
  }
  /// From now on there is memory. True: there was none for a call.
  [[nodiscard]] bool Feed() {
    env_.SetHook({});
    return calls_ >= starved_at_;
  }
  void ExpectAllRead(const std::vector<Known>& all) {
    for (const Known& known : all) ExpectReads(known);
  }
  /// The newest file of the catalogue.
  [[nodiscard]] std::string LastGeneration() {
    std::string last;
    for (const std::string& name : ValueOf(memory_.ListDirectory("/home"))) {
      if (name.starts_with("CATALOGUE-")) last = std::max(last, name);
    }
    return last;
  }

 private:
  uint64_t calls_ = 0;
  uint64_t starved_at_ = 0;
};

TEST_F(MemoryShortageTest, AStartIsRefusedAndTheNextOneFindsEverything) {
  const std::vector<Known> all = AppendSome(20, 30000);
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    store_.reset();
    if (number % 2 == 0) {
      directory_.reset();
    } else {
      CutPower(&memory_, &env_, number, &directory_);
    }
    StarveAt(++number, IsAny);
    {
      const auto opened = OpenDirectory(&env_, Options());
      is_starved = Feed();
      EXPECT_EQ(opened.status().code(), is_starved ? StatusCode::kOutOfMemory : StatusCode::kOk) << number;
    }
    Open();
    ExpectAllRead(all);
  }
  EXPECT_GT(number, 10U);
}

TEST_F(MemoryShortageTest, AShutdownCostsCountersAtTheMost) {
  std::vector<Known> all;
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    all.push_back(Append(RandomValue(30000, number)));
    store_.reset();
    StarveAt(++number, IsOfCatalogue);
    directory_.reset();
    is_starved = Feed();
    Open();
    ExpectAllRead(all);
  }
  EXPECT_GT(number, 2U);
}

TEST_F(MemoryShortageTest, AnAppendThatNeedsASegmentFailsAndTheNextOneMakesIt) {
  constexpr size_t kSizeBytes = 200'000;  // one to a segment
  std::vector<Known> all;
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    StarveAt(++number, IsOfNewSegment);
    UnsyncedExtents unsynced;
    const Status status = store_->Append(RandomValue(kSizeBytes, number), {}, &unsynced).status();
    is_starved = Feed();
    EXPECT_EQ(status.code(), is_starved ? StatusCode::kOutOfMemory : StatusCode::kOk) << number;
    all.push_back(Append(RandomValue(kSizeBytes, 1000 + number)));
    if (number % 3 == 0) Crash(number);
    ExpectAllRead(all);
  }
  EXPECT_GT(number, 4U);
}

TEST_F(MemoryShortageTest, ARenewalOfTheCatalogueIsMadeTheNextTime) {
  std::vector<Known> all;
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    all.push_back(Append(RandomValue(1000, number)));
    StarveAt(++number, IsAny);
    (void)OrOutOfMemory([this] { return directory_->catalogue()->Renew(); });  // as TaskThreads does
    is_starved = Feed();
    const std::string before = LastGeneration();
    EXPECT_OK(directory_->catalogue()->Renew());
    EXPECT_GT(LastGeneration(), before) << number;
    Crash(number);
    ExpectAllRead(all);
  }
  EXPECT_GT(number, 5U);
}

TEST_F(MemoryShortageTest, AMarkPassLeavesWhatIsNeededAndTheNextOneGivesBackTheRest) {
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    // A segment with a hole behind the first half of the values, which are too few for the blocks that they share. That
    // of the round before is dead.
    std::vector<Known> needed;
    UnsyncedExtents unsynced;
    for (size_t i = 0; i < 200; ++i) {
      const std::vector<uint8_t> value = RandomValue(100 + (i * 37) % 600, number * 1000 + i);
      const Locator locator = ValueOf(store_->Append(value, {}, &unsynced));
      if (i < 100 && i % 5 == 0) needed.push_back({locator, value});
    }
    ASSERT_OK(directory_->Sync(unsynced));
    store_.reset();
    Open();  // so that nothing is left to be sealed
    StarveAt(++number, IsAny);
    {
      const std::vector<StoreId> stores = {store_->id()};
      const Result<std::unique_ptr<GcPass>> pass = BeginGcPass(directory_.get(), stores, kRewrite);
      EXPECT_TRUE(pass.ok() || pass.status().code() == StatusCode::kOutOfMemory) << pass.status().ToString();
      for (size_t i = 0; pass.ok() && i < needed.size(); ++i) (*pass)->Mark(needed[i].locator);
      for (bool is_done = !pass.ok(); !is_done;) {
        const Result<GcStep> step = (*pass)->ReclaimSome(64 << 10);
        EXPECT_TRUE(step.ok() || step.status().code() == StatusCode::kOutOfMemory) << step.status().ToString();
        is_done = step.ok() && step->done;
      }
    }
    is_starved = Feed();
    ExpectAllRead(needed);
    if (number % 4 == 0) Crash(number);
    const std::unique_ptr<GcPass> next = Begin(kRewrite);
    for (const Known& known : needed) next->Mark(known.locator);
    ASSERT_OK(Finish(next.get()));
    EXPECT_EQ(next->report().segments_damaged, 0U);
    EXPECT_LT(RealBytes(), 36U << 10) << number;
    ExpectAllRead(needed);
  }
  EXPECT_GT(number, 20U);
}

TEST_F(MemoryShortageTest, AScrubStopsAtItsPlaceAndGoesOnThere) {
  (void)AppendSome(20, 30000);
  store_.reset();
  Open();
  const uint64_t segments = store_->GetStats().segments;
  ASSERT_GT(segments, 2U);
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    ScrubPlace place;
    NoFinding observer;
    StarveAt(++number, IsAny);
    const VerifyTotals first = ScrubStores(directory_.get(), &place, &observer);
    is_starved = Feed();
    EXPECT_EQ(first.is_out_of_memory, is_starved);
    EXPECT_EQ(first.stopped, is_starved);
    if (!is_starved) continue;
    const VerifyTotals rest = ScrubStores(directory_.get(), &place, &observer);
    EXPECT_FALSE(rest.stopped);
    EXPECT_EQ(first.segments + rest.segments, segments) << number;
  }
  EXPECT_GT(number, segments);
}

TEST_F(MemoryShortageTest, TheTrashIsEmptiedTheNextTime) {
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    const TableId table{100 + number};
    {
      UnsyncedExtents unsynced;
      const auto store = ValueOf(directory_->OpenForAppend(table, "db/dropped"));
      (void)ValueOf(store->Append(RandomValue(5000, number), {}, &unsynced));
      ASSERT_OK(directory_->Sync(unsynced));
    }
    ASSERT_OK(directory_->Discard(table, 10));
    StarveAt(++number, IsAny);
    const Status status = directory_->EmptyTrash(10).status();
    is_starved = Feed();
    EXPECT_EQ(status.code(), is_starved ? StatusCode::kOutOfMemory : StatusCode::kOk) << number;
    EXPECT_OK(directory_->EmptyTrash(10).status());
    EXPECT_EQ(directory_->ListBindings().size(), 1U) << "only the store of the fixture is left";
  }
  EXPECT_GT(number, 5U);
}

TEST_F(MemoryShortageTest, ABindingIsAsBeforeAndCanBeChangedTheNextTime) {
  const TableId other{2};
  uint64_t number = 0;
  for (bool is_starved = true; is_starved;) {
    StarveAt(++number, IsAny);
    const Status status = directory_->BeginRebind({1}, other);
    is_starved = Feed();
    EXPECT_EQ(status.code(), is_starved ? StatusCode::kOutOfMemory : StatusCode::kOk) << number;
    EXPECT_EQ(directory_->OwnershipOf(store_->id(), other), is_starved ? Ownership::kForeign : Ownership::kBound);
    EXPECT_EQ(directory_->OwnershipOf(store_->id(), {1}), Ownership::kBound);
    EXPECT_OK(directory_->AbandonRebind({1}));
    EXPECT_TRUE(directory_->UndecidedRebinds().empty());
    EXPECT_EQ(directory_->OwnershipOf(store_->id(), other), Ownership::kForeign);
  }
  EXPECT_GT(number, 1U);
}

TEST_F(MemoryShortageTest, ZerosAheadAreLeftOutAndNoCommitFails) {
  DirectoryOptions options = Options();
  options.segment_size_bytes = 4 << 20;
  options.zeroed_pool_bytes = 1 << 20;
  store_.reset();
  directory_.reset();
  directory_ = ValueOf(OpenDirectory(&env_, options));
  store_ = ValueOf(directory_->OpenForAppend({1}, "db/t"));
  (void)Append(RandomValue(1000, 0));  // its segment is open from now on: another handle on it is for zeros
  StarveAt(1, [](const Call& call) { return call.kind == CallKind::kOpen; });
  std::vector<Known> all;
  for (uint64_t i = 1; i <= 10; ++i) all.push_back(Append(RandomValue(1000, i)));
  EXPECT_TRUE(Feed());
  EXPECT_EQ(directory_->GetCounters().zero_bytes_written, 0U);
  // The next segment gets some.
  for (uint64_t i = 0; i < 120; ++i) all.push_back(Append(RandomValue(50'000, i)));
  EXPECT_GT(directory_->GetCounters().zero_bytes_written, 0U);
  ExpectAllRead(all);
}

}  // namespace
}  // namespace quarry
