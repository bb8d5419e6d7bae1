// Catalogue: group commit, renewal beside changes, failures and power cuts at every call.
#include "context/catalogue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "io/fault_env.h"
#include "io/memory_env.h"

namespace quarry {
namespace {

constexpr const char* kHome = "/home";

CatalogueStore StoreOf(uint64_t id, uint64_t table) {
  CatalogueStore store;
  store.store = StoreId{id};
  store.table_name = "db/t";
  store.tables = {TableId{table}};
  return store;
}

/// Table of each store.
std::map<uint64_t, uint64_t> TablesOf(const CatalogueState& state) {
  std::map<uint64_t, uint64_t> tables;
  for (const auto& [id, store] : state.stores) tables[id.value] = store.record->tables.back().value;
  return tables;
}

class CatalogueTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_.CreateDirectory(kHome).ok());
    ASSERT_TRUE(memory_.SyncDirectory("/").ok());
  }

  CatalogueOnDisk OnDisk() { return ReadCatalogue(&memory_, kHome).value(); }

  /// Null: it could not begin.
  std::unique_ptr<Catalogue> Open(uint64_t renewal_min_bytes = 1 << 20) {
    Result<CatalogueOnDisk> found = ReadCatalogue(&env_, kHome);
    if (!found.ok()) return nullptr;
    EXPECT_TRUE(found->losses.empty()) << found->losses[0].what;
    auto catalogue = std::make_unique<Catalogue>(&env_, kHome, std::move(found->state), std::move(found->generations),
                                                 renewal_min_bytes, &counters_);
    return catalogue->Begin({}).ok() ? std::move(catalogue) : nullptr;
  }

  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  CounterSet counters_;
};

TEST_F(CatalogueTest, WhatWasCommittedIsThereAfterAPowerCut) {
  const auto catalogue = Open();
  ASSERT_TRUE(catalogue->Commit({StoreOf(1, 10), StoreOf(2, 20)}).ok());
  (void)catalogue->Append({StoreOf(3, 30)});  // nobody asked for it
  memory_.PowerCut(0);
  EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 10}, {2, 20}}));
}

TEST_F(CatalogueTest, ALaterCommitCarriesWhatWasAppendedBefore) {
  const auto catalogue = Open();
  const Catalogue::Ticket lazy = catalogue->Append({StoreOf(3, 30)});
  ASSERT_TRUE(catalogue->Commit({StoreOf(1, 10)}).ok());
  const uint64_t flushes = env_.CountOf(CallKind::kSync);
  EXPECT_TRUE(catalogue->Sync(lazy).ok());
  EXPECT_EQ(env_.CountOf(CallKind::kSync), flushes);
  memory_.PowerCut(0);
  EXPECT_EQ(TablesOf(OnDisk().state).size(), 2U);
}

TEST_F(CatalogueTest, OneFlushServesAllWhoCameMeanwhile) {
  const auto catalogue = Open();
  std::vector<Catalogue::Ticket> tickets;
  for (uint64_t id = 1; id <= 100; ++id) tickets.push_back(catalogue->Append({StoreOf(id, id)}));
  const uint64_t flushes = env_.CountOf(CallKind::kSync);
  for (const Catalogue::Ticket& ticket : tickets) ASSERT_TRUE(catalogue->Sync(ticket).ok());
  EXPECT_EQ(env_.CountOf(CallKind::kSync), flushes + 1);
}

TEST_F(CatalogueTest, AChangeCostsTheSameHoweverManyStoresThereAre) {
  const auto catalogue = Open(1ULL << 40);
  std::vector<CatalogueRecord> many;
  for (uint64_t id = 1; id <= 10000; ++id) many.emplace_back(StoreOf(id, id));
  ASSERT_TRUE(catalogue->Commit(many).ok());
  const uint64_t bytes = env_.BytesOf(CallKind::kWrite);
  ASSERT_TRUE(catalogue->Commit({StoreOf(5, 6)}).ok());
  EXPECT_EQ(env_.BytesOf(CallKind::kWrite) - bytes, kBlockSizeBytes);
}

TEST_F(CatalogueTest, AFlushThatFailedIsRefusedAndTheNextChangeBeginsANewGeneration) {
  for (const CallKind kind : {CallKind::kWrite, CallKind::kSync}) {
    const auto catalogue = Open();
    ASSERT_TRUE(catalogue->Commit({StoreOf(1, 10)}).ok());
    const uint64_t generation = OnDisk().generation;
    env_.FailCall(kind, 1, EIO);
    EXPECT_EQ(catalogue->Commit({StoreOf(1, 11), StoreOf(2, 20)}).code(), StatusCode::kIoError);
    EXPECT_EQ(TablesOf(catalogue->state()), (std::map<uint64_t, uint64_t>{{1, 10}}));
    ASSERT_TRUE(catalogue->Commit({StoreOf(3, 30)}).ok());
    EXPECT_GT(OnDisk().generation, generation);
    EXPECT_EQ(OnDisk().generations.size(), 1U);
    memory_.PowerCut(0);
    EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 10}, {3, 30}}));
    memory_.PowerCut(1);
    for (const uint64_t left : OnDisk().generations) {
      ASSERT_TRUE(memory_.RemoveFile(std::string(kHome) + "/" + CatalogueFileName(left)).ok());
    }
  }
}

TEST_F(CatalogueTest, AFullDiskLeavesTheOldGenerationAndIsTriedAgain) {
  const auto catalogue = Open();
  ASSERT_TRUE(catalogue->Commit({StoreOf(1, 10)}).ok());
  const uint64_t generation = OnDisk().generation;
  memory_.SetCapacityBytes(0);
  EXPECT_EQ(catalogue->Renew().code(), StatusCode::kNoSpace);
  EXPECT_EQ(OnDisk().generations, (std::vector<uint64_t>{generation}));
  EXPECT_EQ(catalogue->Commit({StoreOf(2, 20)}).code(), StatusCode::kNoSpace);
  memory_.SetCapacityBytes(UINT64_MAX);
  ASSERT_TRUE(catalogue->Commit({StoreOf(3, 30)}).ok());
  memory_.PowerCut(0);
  EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 10}, {3, 30}}));
}

TEST_F(CatalogueTest, ALogThatIsLongAsksForItsRenewal) {
  int requests = 0;
  Catalogue catalogue(&env_, kHome, {}, {}, 16 * kBlockSizeBytes, &counters_);
  catalogue.SetRenewer([&] {
    ++requests;
    EXPECT_TRUE(catalogue.Renew().ok());
  });
  ASSERT_TRUE(catalogue.Begin({}).ok());
  for (uint64_t change = 0; change < 100; ++change) ASSERT_TRUE(catalogue.Commit({StoreOf(1, change + 1)}).ok());
  EXPECT_GE(requests, 5);
  EXPECT_LE(requests, 10);
  EXPECT_LE(OnDisk().size_bytes, 17 * kBlockSizeBytes);
  EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 100}}));
}

// Changes that come while the snapshot is being written, from whatever call of it on.
TEST_F(CatalogueTest, ChangesGoOnWhileItIsRenewed) {
  const auto catalogue = Open();
  ASSERT_TRUE(catalogue->Commit({StoreOf(1, 10), StoreOf(2, 20)}).ok());
  bool is_inside = false;
  uint64_t table = 100;
  env_.SetHook([&](const Call& call) {
    if (is_inside || call.kind != CallKind::kWrite || !call.path.ends_with(CatalogueFileName(2))) return Status::Ok();
    is_inside = true;
    if (table == 100) {
      EXPECT_TRUE(catalogue->Commit({StoreOf(1, ++table), CatalogueStoreGone{StoreId{2}}}).ok());
    }
    is_inside = false;
    return Status::Ok();
  });
  ASSERT_TRUE(catalogue->Renew().ok());
  env_.SetHook({});
  EXPECT_EQ(table, 101U);
  EXPECT_EQ(OnDisk().generation, 2U);
  memory_.PowerCut(0);
  EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 101}}));
}

TEST_F(CatalogueTest, ThreadsAndRenewals) {
  const auto catalogue = Open();
  std::vector<std::thread> threads;
  for (uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&catalogue, id] {
      for (uint64_t table = 1; table <= 200; ++table) ASSERT_TRUE(catalogue->Commit({StoreOf(id, table)}).ok());
    });
  }
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(catalogue->Renew().ok());
  for (std::thread& thread : threads) thread.join();
  memory_.PowerCut(0);
  EXPECT_EQ(TablesOf(OnDisk().state), (std::map<uint64_t, uint64_t>{{1, 200}, {2, 200}, {3, 200}, {4, 200}}));
}

// Power goes, or a call fails once, or from then on, at every call of a history with renewals.
TEST_F(CatalogueTest, WhateverFailsAndWheneverPowerGoesWhatWasAcknowledgedIsThere) {
  for (const bool is_cut : {true, false}) {
    bool has_ended = false;
    for (uint64_t stop = 1; !has_ended; ++stop) {
      for (const uint64_t seed : {0ULL, 7ULL, 99ULL, ~0ULL}) {
        MemoryEnv memory;
        FaultEnv env(&memory);
        ASSERT_TRUE(memory.CreateDirectory(kHome).ok());
        ASSERT_TRUE(memory.SyncDirectory("/").ok());
        std::map<uint64_t, uint64_t> acknowledged;
        std::map<uint64_t, uint64_t> asked;
        uint64_t calls = 0;
        env.SetHook([&](const Call& call) {
          const bool changes =
              call.kind != CallKind::kRead && call.kind != CallKind::kList && call.kind != CallKind::kOpen;
          if (changes) ++calls;
          const bool fails = changes && (is_cut ? calls >= stop : calls == stop);
          return fails ? Status::FromErrno(EIO, "planned", call.path) : Status::Ok();
        });
        Catalogue catalogue(&env, kHome, {}, {}, 1 << 20, &counters_);
        bool has_begun = catalogue.Begin({}).ok();
        for (uint64_t change = 1; change <= 12; ++change) {
          const uint64_t id = change % 3 + 1;
          if (change % 4 == 0) (void)catalogue.Renew();
          asked[id] = change;
          if (catalogue.Commit({StoreOf(id, change)}).ok()) {
            acknowledged[id] = change;
            has_begun = true;
          }
        }
        has_ended = calls < stop;
        memory.PowerCut(seed);
        const CatalogueOnDisk found = ReadCatalogue(&memory, kHome).value();
        if (has_begun) {
          ASSERT_TRUE(found.losses.empty()) << "stop " << stop << ": " << found.losses[0].what;
        }
        const std::map<uint64_t, uint64_t> tables = TablesOf(found.state);
        for (const auto& [id, table] : acknowledged) {
          ASSERT_TRUE(tables.contains(id)) << "stop " << stop << " seed " << seed << " store " << id;
          ASSERT_GE(tables.at(id), table) << "stop " << stop << " seed " << seed << " store " << id;
          ASSERT_LE(tables.at(id), asked[id]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quarry
