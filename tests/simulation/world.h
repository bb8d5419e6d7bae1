// World: one seeded run. A store directory on a SimulatedDisk, a model beside it, operations drawn by the seed.
//
// Everything happens on the calling thread: the directory is opened without its background thread, so what that would
// do is done inside the call that asks for it. Operations may meet failing calls and a power cut in their middle; after
// a cut the directory is opened again and compared with the model.
// Thread-safety: for one thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/segment_map.h"
#include "format/test_cipher.h"
#include "quarry/gc.h"
#include "quarry/verify.h"
#include "simulation/model.h"
#include "simulation/simulated_disk.h"
#include "store/store_directory_impl.h"

namespace quarry::simulation {

struct Settings {
  uint64_t operations = 50;
  /// Not 0: no power cut but one, after this changing call; then the run ends with a comparison.
  uint64_t cut_at_call = 0;
  bool trace = false;
};

/// Counts over all runs.
struct Totals {
  uint64_t seeds = 0;
  uint64_t operations = 0;
  uint64_t disk_calls = 0;
  uint64_t appends = 0;
  uint64_t appends_encrypted = 0;
  uint64_t commits = 0;
  uint64_t failed_commits = 0;
  uint64_t prepared_committed = 0;    ///< found prepared after a crash, and whole
  uint64_t prepared_rolled_back = 0;  ///< the same, and not whole
  uint64_t values_compared = 0;
  uint64_t values_from_cache = 0;
  uint64_t power_cuts = 0;
  uint64_t cuts_inside_operations = 0;
  uint64_t kills = 0;
  uint64_t clean_closes = 0;
  uint64_t planned_failures = 0;
  uint64_t failed_operations = 0;
  uint64_t bits_flipped = 0;
  uint64_t catalogues_damaged = 0;
  uint64_t verifications = 0;
  uint64_t scrubs = 0;
  uint64_t damages_verified = 0;  ///< flipped bits that verification saw, each time that it was asked
  uint64_t stores_dropped = 0;
  uint64_t stores_unlinked = 0;
  uint64_t rebinds = 0;
  uint64_t gc_passes_begun = 0;
  uint64_t gc_passes_done = 0;
  uint64_t gc_holes = 0;
  uint64_t gc_segments_unlinked = 0;
  uint64_t gc_bytes_reclaimed = 0;
  uint64_t gc_segments_rewritten = 0;
  uint64_t gc_bytes_rewritten = 0;
  uint64_t gc_segments_damaged = 0;
};

/// The key of values that are encrypted.
inline constexpr uint32_t kKey = 3;

class World {
 public:
  World(uint64_t seed, const Settings& settings, Totals* totals);
  ~World();

  /// Nothing when every invariant held.
  [[nodiscard]] std::optional<Violation> Run();
  [[nodiscard]] uint64_t digest() const { return disk_.digest(); }
  [[nodiscard]] uint64_t changing_calls() const { return disk_.changing_calls(); }

 private:
  using Operation = void (World::*)();
  struct Choice {
    unsigned weight;
    Operation operation;
    const char* name;
  };

  // world.cc: the run, lives of the process
  void RunAll();
  void DrawOptions();
  void OneOperation();
  void FirstOpen();
  void Crash(uint64_t cut_seed);
  void Reopen();
  void FailOpening();
  void ReopenTwice();
  void MountMissing();
  void EndLife(bool is_crash);
  void CloseCleanly();
  void CloseForGood();
  void KillProcess();
  void CutPower();
  void ArmPowerCut();
  void PlanFailure();
  void ForgetFailures();
  [[nodiscard]] uint64_t DrawCutSeed();

  // world_checks.cc: comparing
  void Check(bool holds, const char* invariant, const std::string& detail) const;
  void CheckDisk() const;
  /// An operation failed: one of its own calls must have.
  void ExpectCause(const Status& status, uint64_t failures_before, const char* what);
  void CompareValue(const Value& value);
  void CompareRange(const Value& value);
  void VerifyValue(const Value& value);
  void CompareBytes(const Value& value, const Status& status, uint64_t failures_before, bool is_right);
  void CompareAll();
  void CompareStats();
  /// A crash now would find the segment named by the catalogue.
  void CheckRecorded(const Locator& locator);
  /// Learns from ListStores what a failed or cut off change has come to; everything else must be as it was.
  void Observe();
  [[nodiscard]] std::map<uint32_t, std::string> SegmentFiles(StoreId store);
  [[nodiscard]] uint64_t AllocatedBlocks(const std::string& path);
  [[nodiscard]] uint64_t FileSizeBytes(const std::string& path);
  void CheckNoLeftovers();
  /// Flips a bit of the catalogue of a directory that is closed: it opens, and nothing that is needed goes.
  void DamageCatalogue();
  /// Some store whose table was dropped and came back.
  [[nodiscard]] std::optional<StoreId> DropAndRestore();
  /// Where, at best in the last record of `restored`.
  [[nodiscard]] uint64_t DrawDamagedByte(std::span<const uint8_t> catalogue, std::optional<StoreId> restored);

  // world_operations.cc
  void Append();
  void AppendOne();
  void Commit();
  void RollBack();
  void CommitSome();
  void Read();
  void ReadRange();
  void DeleteRows();
  void Renew();
  void SyncAll();
  void FlipBit();
  void DropTable();
  void UndoDrop();
  void EmptyTrash();
  void RebuildTable();
  [[nodiscard]] bool IsUnlinkedByName(const StoreModel& store);
  [[nodiscard]] Result<std::shared_ptr<Store>> OpenStore(TableId table);
  void CommitTransaction(Transaction* transaction);
  void EndTransaction(Transaction* transaction, Value::State state);
  void EndTransactions(bool of_before_gc_only);
  [[nodiscard]] Value* PickValue(Value::State state);
  [[nodiscard]] std::vector<StoreModel*> StoresOf(TableId table);
  void Attempt(StoreModel* store, const Shape& shape);
  void Succeeded(StoreModel* store, const Shape& shape);

  // world_prepared.cc
  void NotePrepared(const std::vector<size_t>& values, bool is_acknowledged);
  void DecidePrepared();
  void DecideOne(const PreparedTransaction& transaction);

  // world_verify.cc
  void VerifyFiles();
  void Scrub();
  void CheckFindings(const std::vector<Finding>& findings);
  [[nodiscard]] bool IsHalfUnlinked(const Finding& finding);

  // world_gc.cc
  void BeginGc();
  void MarkGc();
  void ReclaimGc();
  void DropGc();
  /// What is allocated is what the marks need, and no segment is left that was worth rewriting.
  void CheckGivenBack();
  void CheckGivenBackIn(const std::string& path, const std::vector<const Value*>& needed);
  /// The map of the file at `path`; nothing when it was never rewritten.
  [[nodiscard]] std::optional<SegmentMap> MapOf(const std::string& path);

  Dice dice_;
  const Settings settings_;
  Totals* const totals_;
  DirectoryOptions options_;
  std::shared_ptr<TestCipherProvider> keys_;
  unsigned encrypted_percent_ = 0;  ///< of the values
  SimulatedDisk disk_;
  std::unique_ptr<StoreDirectoryImpl> directory_;

  uint64_t clock_ = 0;  ///< number of the current operation
  std::array<Transaction, 3> transactions_;
  std::array<Slot, 3> slots_;
  std::vector<TableId> dropped_;
  std::vector<Value> values_;
  std::vector<PreparedTransaction> prepared_;  ///< as a crash now would find them
  std::map<uint64_t, StoreModel> stores_;      ///< by id
  std::set<uint64_t> unlinked_;                ///< ids of stores that are gone for good
  uint64_t next_table_ = 1;
  uint64_t store_id_max_ = 0;
  uint64_t lsn_ = 100;
  bool has_small_values_ = false;  ///< many to a block: segments are worth rewriting

  struct Pass {
    std::unique_ptr<GcPass> pass;
    GcOptions options;
    uint64_t began_at = 0;
    std::vector<StoreId> stores;
    std::map<std::pair<uint64_t, uint32_t>, std::string> segments;  ///< candidates and where they lie
    std::vector<size_t> marked;
    std::set<uint64_t> dropped;  ///< stores that were in the trash for a while: what came of them is not compared
    bool is_marked = false;
  };
  std::optional<Pass> gc_;
};

}  // namespace quarry::simulation
