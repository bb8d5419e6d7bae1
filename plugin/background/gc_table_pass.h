// GcTablePass: one mark pass over a table (all its partitions), or over several small ones, from sealing to the last
// hole. Several wait for the same transactions once, and are read in the same view.
//
//   1. Seal           BeginGcPass: what its stores have appended so far is the candidate
//   2. WaitForWriters every row that was being written has reached InnoDB (AppendGate), and every transaction that is
//                     open then has ended, prepared ones included
//   3. MarkInView     one REPEATABLE READ view; the transactions that are open then, and InnoDB's LSN; every locator
//                     that the view's rows hold is marked (GcScan), history rows of a versioned table included
//   4. WaitForReaders those transactions have ended and InnoDB has flushed that LSN
//   5. Reclaim        ReclaimSome, step by step, at a rate
//
// docs/internals/durability.md ('Why a mark pass is right') argues why nothing that is unmarked then can be needed by
// anybody. Invariants:
//  - Any error, any doubt, any change of a table until the end of step 4 drops the table: nothing of it is given back.
//  - No file is changed while Quarry is paused; no lock, no view is held while it waits for somebody's transaction.
// Thread-safety: belongs to GC's thread.
#pragma once

#include <functional>
#include <set>

#include "quarry/gc.h"
#include "server/child_name.h"
#include "server/mariadb_compat.h"
#include "server/server_look.h"

namespace quarry {

/// What a pass needs of the thread that runs it.
class GcHost {
 public:
  /// False: the pass must stop, now.
  [[nodiscard]] virtual bool GoesOn() = 0;
  /// Returns GoesOn(), at once when it turns false.
  [[nodiscard]] virtual bool Sleep(std::chrono::milliseconds time) = 0;
  /// Waits while Quarry is paused. True: files may be changed until EndFiles; false: the pass must stop.
  [[nodiscard]] virtual bool BeginFiles() = 0;
  virtual void EndFiles() = 0;
  /// What is given back, or copied, in a second at most; 0: no limit. It may be another at any time.
  [[nodiscard]] virtual uint64_t BytesPerSecond() = 0;
  /// What the pass is doing, for people.
  virtual void SetState(const std::string& state) = 0;
  /// It has looked once more whether those that it waits for have ended.
  virtual void NoteLook() = 0;

 protected:
  ~GcHost() = default;
};

struct GcTarget {
  std::string child_name;           ///< "db/t", as InnoDB has it
  std::set<uint64_t> child_tables;  ///< of all partitions
  std::vector<StoreId> stores;
};

struct GcOutcome {
  GcReport report;
  uint64_t rows = 0;                       ///< that the scan saw
  double scan_seconds = 0;                 ///< 0: there was none
  bool is_whole = false;                   ///< the scan saw all rows
  bool has_overrun = false;                ///< it ended because of the timeout
  std::map<StoreId, uint64_t> live_bytes;  ///< of marked extents, by store; one that two rows share counts twice
};

/// One table of a pass, and what became of it.
struct GcTableWork {
  explicit GcTableWork(GcTarget target_in) : target(std::move(target_in)), name(SplitChildName(target.child_name)) {}

  GcTarget target;
  TableName name;
  Status status;  ///< why it was dropped
  GcOutcome outcome;
  std::unique_ptr<GcPass> pass;
};

/// How a pass is to be done.
struct GcManner {
  std::chrono::seconds timeout;       ///< of each wait for transactions
  std::chrono::seconds scan_timeout;  ///< of the scan of a table
  GcOptions options;
};

class GcScan;

class GcTablePass {
 public:
  GcTablePass(std::vector<GcTableWork>* tables, StoreDirectory* directory, ServerLook* look, GcHost* host,
              const GcManner& manner);

  /// Each table tells what was done with it, also when it was dropped.
  void Run();

 private:
  struct LookOutside {
    std::vector<OpenTransaction> transactions;
    ServerLook::Lsn lsn;
  };
  /// The steps up to the last that all tables take together.
  [[nodiscard]] Status MarkAll();
  /// `work` for each table that was not dropped; its error drops the table.
  void ForEach(const std::function<Status(GcTableWork*)>& work);
  [[nodiscard]] Status Seal(GcTableWork* table);
  [[nodiscard]] Status WaitForWriters();
  [[nodiscard]] Status MarkInView();
  [[nodiscard]] Status ScanInView();
  [[nodiscard]] Status Scan(GcTableWork* table);
  [[nodiscard]] Status BindUnbound(const GcScan& scan, const GcTarget& target);
  [[nodiscard]] Status WaitForReaders();
  [[nodiscard]] Status CheckUnchanged();
  [[nodiscard]] Status Reclaim(GcTableWork* table);
  /// Waits for `micros`, or until the host has another rate than `bytes_per_second`.
  [[nodiscard]] Status WaitAtRate(uint64_t micros, uint64_t bytes_per_second);
  /// For people: the first of the tables, and how many more.
  [[nodiscard]] std::string Names() const;

  /// Until every one of `open` has ended and InnoDB has flushed `lsn`.
  [[nodiscard]] Status WaitUntilEnded(OpenTransactions* open, uint64_t lsn, const std::string& why);
  /// Not more often than once a second, after the first ones.
  [[nodiscard]] Status PaceLook();
  [[nodiscard]] Result<LookOutside> LookNow();
  [[nodiscard]] Result<LookOutside> LookInView();
  [[nodiscard]] std::chrono::steady_clock::time_point Deadline() const;

  // Constant after construction.
  std::vector<GcTableWork>* const tables_;
  StoreDirectory* const directory_;
  ServerLook* const look_;
  GcHost* const host_;
  const GcManner manner_;

  OpenTransactions readers_;  ///< open when the view was made
  uint64_t view_lsn_ = 0;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::milliseconds between_looks_{0};
};

}  // namespace quarry
