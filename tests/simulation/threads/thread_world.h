// ThreadWorld: one seeded run with threads. A store directory on a SimulatedDisk, a model beside it, and a few threads
// that append, commit, read, delete, renew the catalogue, collect garbage, back up and drop tables at the same time.
//
// A run is one to three lives of the process. Each ends by a power cut (at any call), a kill or a clean close; then the
// directory is opened again and compared with the model. The model changes between scheduling points only, so what it
// says is true at the moment of each call's effect.
// Thread-safety: one thread of the system; the fibres take turns at scheduling points.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quarry/gc.h"
#include "quarry/verify.h"
#include "simulation/model.h"
#include "simulation/simulated_disk.h"
#include "simulation/threads/fiber_scheduler.h"
#include "simulation/threads/hostile.h"
#include "store/store_directory_impl.h"

namespace quarry::simulation {

/// Counts over all runs.
struct ThreadTotals {
  uint64_t seeds = 0;
  uint64_t steps = 0;
  uint64_t switches = 0;
  uint64_t disk_calls = 0;
  uint64_t lives = 0;
  uint64_t threads = 0;
  uint64_t appends = 0;
  uint64_t hostile_values = 0;
  uint64_t commits = 0;
  uint64_t failed_commits = 0;
  uint64_t prepared_decided = 0;
  uint64_t forgeries_refused = 0;  ///< marks of extents, in values, that are none
  uint64_t values_compared = 0;
  uint64_t power_cuts = 0;
  uint64_t kills = 0;
  uint64_t clean_closes = 0;
  uint64_t planned_failures = 0;
  uint64_t slow_paths = 0;
  uint64_t backups = 0;
  uint64_t renewals = 0;
  uint64_t counters_compared = 0;
  uint64_t gc_passes = 0;
  uint64_t tables_dropped = 0;
};

class ThreadWorld final : private CallWatcher {
 public:
  /// `ignored`: invariants that may be broken.
  ThreadWorld(uint64_t seed, bool trace, const std::set<std::string>& ignored, ThreadTotals* totals);

  /// Nothing when every invariant held. After a violation the world must not be destroyed: its threads stand still.
  [[nodiscard]] std::optional<Violation> Run();
  [[nodiscard]] uint64_t digest() const { return disk_.digest() ^ scheduler_.digest(); }

 private:
  using ValuePointer = std::shared_ptr<Value>;
  /// A transaction.
  struct Deal {
    UnsyncedExtents unsynced;
    std::vector<ValuePointer> values;
    bool is_open = true;
  };
  using DealPointer = std::shared_ptr<Deal>;
  struct Prepared {
    std::vector<ValuePointer> values;
    bool is_acknowledged = false;
    CommitRecord record;
  };

  // thread_world.cc: lives
  void RunAll();
  void DrawOptions();
  void DrawDisturbances();
  void PlanFailure();
  void Open();
  void OneLife();
  void StartClients(std::vector<size_t>* clients);
  void Begin(std::vector<size_t>* clients, const char* name, void (ThreadWorld::*body)(Dice*));
  void EndLife();
  void EndDeals(bool is_crash);
  [[nodiscard]] uint64_t DrawCutSeed();
  [[nodiscard]] bool is_over() const { return disk_.power_is_off(); }

  // CallWatcher
  void Before(const char* what, const std::string& path, bool changes) override;
  void After(const char* what, const std::string& path, bool changes) override;
  [[nodiscard]] uint64_t NowMicros() override { return scheduler_.now_micros(); }
  [[nodiscard]] uint64_t DrawDelay(const char* what, const std::string& path, bool changes);

  // thread_clients.cc
  void Writer(Dice* dice);
  void Reader(Dice* dice);
  void Renewer(Dice* dice);
  void Syncer(Dice* dice);
  void Backup(Dice* dice);
  void Collector(Dice* dice);
  void Dropper(Dice* dice);
  void Creator(Dice* dice);
  [[nodiscard]] DealPointer BeginDeal();
  void AppendOne(Dice* dice, TableId table, const DealPointer& deal);
  [[nodiscard]] std::vector<uint8_t> DrawBytes(Dice* dice, StoreId store, const AppendOptions& options);
  [[nodiscard]] std::string CataloguePath();
  [[nodiscard]] HostileFacts FactsOf(Dice* dice, StoreId store, const AppendOptions& options);
  void Commit(Dice* dice, const DealPointer& deal);
  void EndDeal(const DealPointer& deal, Value::State state);
  void DeleteRow(Dice* dice);
  void MoveRow(Dice* dice);
  [[nodiscard]] ValuePointer PickRow(Dice* dice);
  void MarkView(GcPass* pass, const std::set<uint64_t>& stores, uint64_t began_at);
  [[nodiscard]] Result<std::shared_ptr<Store>> OpenStore(TableId table);

  // thread_checks.cc
  void Check(bool holds, const char* invariant, const std::string& detail);
  void CheckDisk();
  void ExpectCause(const Status& status, const char* what);
  /// An operation that began then has ended now: it waited for nobody's background work.
  void CheckWait(const char* what, uint64_t began_micros, std::span<const ValuePointer> values);
  [[nodiscard]] bool IsOnSlowPath(const Value& value);
  void CompareValue(Dice* dice, const Value& value);
  void CompareAll();
  void CompareCounters();
  void CompareQuiet();
  void CompareRecords(StoreId store);
  void VerifyFiles();
  [[nodiscard]] bool IsCommitted(const Finding& finding) const;
  void DecidePrepared();
  void CheckNoForgery(StoreId store);
  /// Nothing: no record can name them all.
  [[nodiscard]] std::optional<CommitRecord> DescribeCommit(const std::vector<ValuePointer>& values);
  void NotePrepared(const std::vector<ValuePointer>& values, const std::optional<CommitRecord>& record,
                    bool is_acknowledged);
  [[nodiscard]] std::vector<StoreId> SharedStores();

  Dice dice_;
  const std::set<std::string> ignored_;
  ThreadTotals* const totals_;
  FiberScheduler scheduler_;
  Dice disk_dice_;
  SimulatedDisk disk_;
  DirectoryOptions options_;
  std::unique_ptr<StoreDirectoryImpl> directory_;

  uint64_t clock_ = 0;  ///< counts appends and passes
  uint64_t tables_ = 1;
  uint64_t next_table_ = 1000;  ///< of those that are dropped again
  uint64_t lsn_ = 100;
  std::vector<ValuePointer> values_;
  std::map<uint64_t, ValuePointer> rows_;  ///< by key: what a view of the tables shows
  std::vector<DealPointer> deals_;         ///< that are open
  std::vector<Prepared> prepared_;
  std::set<uint64_t> has_unknown_;  ///< stores where an append failed or was cut off: something may be there of it

  // Of this life.
  uint64_t slow_path_ = 0;       ///< number of a data path whose calls take long; 0: none
  uint64_t slow_from_call_ = 0;  ///< of the disk
  bool has_slow_removals_ = false;
  bool has_long_backups_ = false;
  bool has_failures_planned_ = false;
  uint64_t writer_steps_max_ = 4;
  unsigned hostile_percent_ = 0;
  uint32_t pauses_ = 0;  ///< that have returned, and not ended
};

}  // namespace quarry::simulation
