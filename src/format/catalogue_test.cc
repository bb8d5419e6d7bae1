// The catalogue's records, a generation as a file, and what is made of it when bytes are damaged or were never written.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "format/catalogue_log.h"
#include "format/catalogue_state.h"

namespace quarry {
namespace {

constexpr uint64_t kGeneration = 0x1234567890ULL;

CatalogueInstallation SomeInstallation() {
  return {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 1700000000000000, StoreId{77}, 4};
}

CatalogueStore SomeStore(uint64_t id) {
  CatalogueStore store;
  store.store = StoreId{id};
  store.created_micros = 1700000000000000;
  store.next_segment = SegmentNumber{9};
  store.rebinding = true;
  store.discarded = true;
  store.discarded_at_lsn = 987654321;
  store.prefix_limit_bytes = 700;
  store.table_name = "db/table";
  store.tables = {TableId{100}, TableId{200}};
  return store;
}

CatalogueSegment SomeSegment(uint64_t store, uint32_t number) {
  CatalogueSegment segment;
  segment.store = StoreId{store};
  segment.segment = SegmentNumber{number};
  segment.path_number = 2;
  segment.state = SegmentState::kPoisoned;
  segment.counted = CountedExtents::kNeeded;
  segment.salt = {9, 8, 7};
  segment.size_bytes = 1 << 20;
  segment.extents = 3;
  segment.live_bytes = 4;
  segment.dead_bytes = 5;
  segment.plain_bytes = 6;
  segment.encrypted_bytes = 7;
  segment.oldest_key_version = 8;
  return segment;
}

std::vector<CatalogueRecord> OneOfEachKind() {
  return {SomeInstallation(),
          DataPath{3, "/data/three"},
          SomeStore(7),
          SomeSegment(7, 8),
          CatalogueSegmentGone{StoreId{7}, SegmentNumber{2}},
          CatalogueStoreGone{StoreId{6}},
          CatalogueDamage{StoreId{5}, 17, "a record was lost"},
          CatalogueScrubPlace{StoreId{7}, SegmentNumber{8}, 17},
          CatalogueUnknown{99, StoreId{7}, {1, 2, 3}},
          CatalogueEnd{SomeInstallation()}};
}

std::vector<CatalogueRecord> Snapshot() {
  return {SomeInstallation(), SomeStore(7), SomeSegment(7, 8), CatalogueEnd{SomeInstallation()}};
}

/// A snapshot, and behind it a flush of one record for each store given.
std::vector<uint8_t> FileWithFlushes(const std::vector<std::vector<uint64_t>>& flushes) {
  CatalogueEncoder encoder(kGeneration);
  for (const CatalogueRecord& record : Snapshot()) encoder.Add(record, true);
  encoder.EndFlush();
  for (const std::vector<uint64_t>& stores : flushes) {
    for (const uint64_t store : stores) encoder.Add(SomeStore(store), false);
    encoder.EndFlush();
  }
  return encoder.TakeBlocks();
}

std::vector<uint64_t> StoresIn(const CatalogueLog& log) {
  std::vector<uint64_t> stores;
  for (const CatalogueRecord& record : log.records) {
    if (const auto* store = std::get_if<CatalogueStore>(&record)) stores.push_back(store->store.value);
  }
  return stores;
}

TEST(CatalogueLogTest, EveryKindOfRecordComesBack) {
  const std::vector<uint8_t> file = EncodeCatalogue(OneOfEachKind(), kGeneration);
  const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
  EXPECT_EQ(log.records, OneOfEachKind());
  EXPECT_TRUE(log.has_snapshot);
  EXPECT_TRUE(log.losses.empty());
  EXPECT_FALSE(log.has_torn_tail);
}

TEST(CatalogueLogTest, AFlushBeginsInANewBlock) {
  EXPECT_EQ(FileWithFlushes({}).size(), 4096U);
  EXPECT_EQ(FileWithFlushes({{1}, {2, 3}}).size(), 3 * 4096U);
  EXPECT_EQ(StoresIn(ReadCatalogueLog(FileWithFlushes({{1}, {2, 3}}), kGeneration).value()),
            (std::vector<uint64_t>{7, 1, 2, 3}));
}

TEST(CatalogueLogTest, AnotherGenerationsRecordsAreNotBelieved) {
  const CatalogueLog log = ReadCatalogueLog(FileWithFlushes({{1}}), kGeneration + 1).value();
  EXPECT_TRUE(log.records.empty());
  EXPECT_FALSE(log.has_snapshot);
}

TEST(CatalogueLogTest, ATypeThatIsNotKnownAndNotOptionalIsRefused) {
  std::vector<uint8_t> bytes;
  AppendCatalogueRecord(CatalogueUnknown{99, {}, {}}, {1, 1, 1, false}, &bytes);
  CatalogueFrame frame = DecodeCatalogueFrame(bytes).value();
  frame.flags = 0;
  EXPECT_EQ(DecodeCatalogueBody(frame, bytes).status().code(), StatusCode::kNotSupported);
}

TEST(CatalogueLogTest, WithoutItsEndASnapshotIsNotWhole) {
  std::vector<CatalogueRecord> records = Snapshot();
  records.pop_back();
  EXPECT_FALSE(ReadCatalogueLog(EncodeCatalogue(records, kGeneration), kGeneration)->has_snapshot);
}

// Each bit: what is lost is known, and nothing else is.
TEST(CatalogueLogTest, AFlippedBitCostsNoMoreThanItsRecord) {
  const std::vector<uint8_t> sound = FileWithFlushes({{1}, {2, 3}});
  const CatalogueLog whole = ReadCatalogueLog(sound, kGeneration).value();
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    if (sound[bit / 8] == 0 && bit % 101 != 0) continue;  // most of it fills blocks
    std::vector<uint8_t> file = sound;
    file[bit / 8] = static_cast<uint8_t>(file[bit / 8] ^ (1U << (bit % 8)));
    const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
    ASSERT_FALSE(log.has_torn_tail) << "bit " << bit;
    ASSERT_TRUE(log.has_snapshot) << "bit " << bit;
    ASSERT_LE(whole.records.size() - log.records.size(), 1U) << "bit " << bit;
    ASSERT_EQ(log.losses.size(), whole.records.size() - log.records.size()) << "bit " << bit;
    for (const CatalogueRecord& record : log.records) {
      ASSERT_TRUE(std::find(whole.records.begin(), whole.records.end(), record) != whole.records.end())
          << "bit " << bit;
    }
  }
}

TEST(CatalogueLogTest, ADamagedBodyStillSaysWhichStoreItConcerns) {
  std::vector<uint8_t> file = FileWithFlushes({{1}, {2}});
  file[4096 + kCatalogueFrameSizeBytes] ^= 1;
  const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
  ASSERT_EQ(log.losses.size(), 1U);
  EXPECT_EQ(log.losses[0].store, StoreId{1});
  EXPECT_EQ(StoresIn(log), (std::vector<uint64_t>{7, 2}));
}

TEST(CatalogueLogTest, TheScrubsPlaceIsNoLoss) {
  std::vector<CatalogueRecord> records = Snapshot();
  records.insert(records.begin() + 1, CatalogueScrubPlace{StoreId{7}, SegmentNumber{8}, 17});
  std::vector<uint8_t> file = EncodeCatalogue(records, kGeneration);
  const size_t at = DecodeCatalogueFrame(file)->RecordSizeBytes();
  file[at + kCatalogueFrameSizeBytes] ^= 1;
  const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
  EXPECT_TRUE(log.losses.empty());
  EXPECT_EQ(log.records, Snapshot());
}

// Whatever sectors of the last flush a power cut leaves: nothing is a loss, and what was flushed before is all there.
TEST(CatalogueLogTest, ATornTailIsNoDamage) {
  std::vector<uint64_t> many(60);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 100 + i;
  const std::vector<uint8_t> before = FileWithFlushes({{1}});
  const std::vector<uint8_t> whole = FileWithFlushes({{1}, many});
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> file = whole;
    bool is_torn = false;
    for (size_t sector = before.size(); sector < file.size(); sector += 512) {
      if (random() % 4 != 0) continue;
      std::fill_n(file.begin() + static_cast<ptrdiff_t>(sector), 512, uint8_t{0});
      is_torn = true;
    }
    const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
    ASSERT_TRUE(log.losses.empty()) << "round " << round << ": " << log.losses[0].what;
    const std::vector<uint64_t> stores = StoresIn(log);
    ASSERT_GE(stores.size(), 2U);
    ASSERT_LE(stores.size(), 2 + many.size());
    ASSERT_TRUE(is_torn || stores.size() == 2 + many.size());
  }
}

TEST(CatalogueLogTest, WhatIsMissingBeforeALaterFlushIsALoss) {
  std::vector<uint8_t> file = FileWithFlushes({{1}, {2}});
  std::fill_n(file.begin() + 4096, 4096, uint8_t{0});
  const CatalogueLog log = ReadCatalogueLog(file, kGeneration).value();
  ASSERT_EQ(log.losses.size(), 1U);
  EXPECT_EQ(log.losses[0].store, StoreId{0});
  EXPECT_EQ(StoresIn(log), (std::vector<uint64_t>{7, 2}));
}

TEST(CatalogueStateTest, TheLastRecordOfAnObjectCounts) {
  CatalogueState state;
  for (const CatalogueRecord& record : OneOfEachKind()) state.Apply(record);
  EXPECT_EQ(state.installation, SomeInstallation());
  ASSERT_EQ(state.stores.size(), 1U);
  EXPECT_EQ(*state.stores.at(StoreId{7}).record, SomeStore(7));
  CatalogueStore changed = SomeStore(7);
  changed.discarded = changed.rebinding = false;
  changed.discarded_at_lsn = 0;
  changed.next_segment = {1};
  state.Apply(changed);
  EXPECT_FALSE(state.stores.at(StoreId{7}).record->discarded);
  EXPECT_EQ(state.stores.at(StoreId{7}).record->next_segment, SegmentNumber{9});
  state.Apply(CatalogueSegmentGone{StoreId{7}, SegmentNumber{8}});
  EXPECT_TRUE(state.stores.at(StoreId{7}).segments.empty());
  state.Apply(CatalogueStoreGone{StoreId{7}});
  EXPECT_TRUE(state.stores.empty());
  EXPECT_TRUE(state.kept.empty());
}

TEST(CatalogueStateTest, NumbersAreAboveWhateverWasNamed) {
  CatalogueState state;
  state.Apply(SomeSegment(500, 12));
  state.Apply(CatalogueStoreGone{StoreId{600}});
  EXPECT_EQ(state.installation.next_store, StoreId{601});
  state.Apply(SomeStore(500));
  EXPECT_EQ(state.stores.at(StoreId{500}).record->next_segment, SegmentNumber{13});
  state.Apply(SomeInstallation());
  EXPECT_EQ(state.installation.next_store, StoreId{601});
}

TEST(CatalogueStateTest, ASnapshotIsTheSameState) {
  CatalogueState state;
  for (const CatalogueRecord& record : OneOfEachKind()) state.Apply(record);
  state.Apply(SomeSegment(8, 1));  // its store's record is lost
  CatalogueState again;
  for (const CatalogueRecord& record : state.Records()) again.Apply(record);
  EXPECT_EQ(again.Records(), state.Records());
  std::vector<CatalogueRecord> in_pieces = state.CommonRecords();
  StoreId at;
  do {
    const std::vector<CatalogueRecord> some = state.SomeRecords(&at, 1);
    in_pieces.insert(in_pieces.end(), some.begin(), some.end());
  } while (at.value != 0);
  EXPECT_EQ(in_pieces, state.Records());
}

TEST(CatalogueStateTest, DamageKeepsWhatItMayConcern) {
  CatalogueState state;
  EXPECT_TRUE(state.MayGiveBack(StoreId{7}));
  state.Apply(CatalogueDamage{StoreId{7}, 1, "lost"});
  EXPECT_FALSE(state.MayGiveBack(StoreId{7}));
  EXPECT_TRUE(state.MayGiveBack(StoreId{8}));
  state.Apply(CatalogueDamage{StoreId{0}, 2, "lost"});
  EXPECT_FALSE(state.MayGiveBack(StoreId{8}));
}

}  // namespace
}  // namespace quarry
