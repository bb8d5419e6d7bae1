// GcTablePass: one mark pass over one table (all its partitions), from sealing to the last hole.
//
//   1. Seal           BeginGcPass: what its stores have appended so far is the candidate
//   2. WaitForWriters every row that was being written has reached InnoDB (AppendGate), and every transaction that is
//                     open then has ended, prepared ones included
//   3. MarkInView     one REPEATABLE READ view; the transactions that are open then, and InnoDB's LSN; every locator
//                     that the view's rows hold is marked (GcScan), history rows of a versioned table included
//   4. WaitForReaders those transactions have ended and InnoDB has flushed that LSN
//   5. Reclaim        ReclaimSome, step by step, at a rate
//
// docs/durability.md ('Why a mark pass is right') argues why nothing that is unmarked then can be needed by anybody.
// Invariants:
//  - Any error, any doubt, any change of the table until the end of step 4 drops the pass: nothing is given back.
//  - No file is changed while Quarry is paused; no lock, no view is held while it waits for somebody's transaction.
// Thread-safety: belongs to GC's thread.
#pragma once

#include <functional>
#include <set>

#include "inner_name.h"
#include "mariadb_compat.h"
#include "quarry/gc.h"
#include "server_look.h"

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
  /// What the pass is doing, for people.
  virtual void SetState(const std::string& state) = 0;
  /// It has looked once more whether those that it waits for have ended.
  virtual void NoteLook() = 0;

 protected:
  ~GcHost() = default;
};

struct GcTarget {
  std::string inner_name;           ///< "db/t", as InnoDB has it
  std::set<uint64_t> inner_tables;  ///< of all partitions
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

/// How a pass is to be done.
struct GcManner {
  std::chrono::seconds timeout;   ///< of each wait for transactions, and of the scan
  uint64_t bytes_per_second = 0;  ///< 0: no limit
  GcOptions options;
};

class GcScan;

class GcTablePass {
 public:
  GcTablePass(GcTarget target, StoreDirectory* directory, ServerLook* look, GcHost* host, const GcManner& manner);

  /// Errors say why the pass was dropped. `outcome` tells what was done, also then.
  [[nodiscard]] Status Run(GcOutcome* outcome);

 private:
  struct LookOutside {
    std::vector<OpenTransaction> transactions;
    ServerLook::Lsn lsn;
  };
  [[nodiscard]] Status Seal();
  [[nodiscard]] Status WaitForWriters();
  [[nodiscard]] Status MarkInView(GcOutcome* outcome);
  [[nodiscard]] Status Scan(GcOutcome* outcome);
  [[nodiscard]] Status BindUnbound(const GcScan& scan);
  [[nodiscard]] Status WaitForReaders();
  [[nodiscard]] Status CheckUnchanged();
  [[nodiscard]] Status Reclaim();

  /// Until every one of `open` has ended and InnoDB has flushed `lsn`.
  [[nodiscard]] Status WaitUntilEnded(OpenTransactions* open, uint64_t lsn, const std::string& why);
  /// Not more often than once a second, after the first ones.
  [[nodiscard]] Status PaceLook();
  [[nodiscard]] Result<LookOutside> LookNow();
  [[nodiscard]] Result<LookOutside> LookInView();
  [[nodiscard]] std::chrono::steady_clock::time_point Deadline() const;

  // Constant after construction.
  const GcTarget target_;
  const TableName name_;
  StoreDirectory* const directory_;
  ServerLook* const look_;
  GcHost* const host_;
  const GcManner manner_;

  std::unique_ptr<GcPass> pass_;
  OpenTransactions readers_;  ///< open when the view was made
  uint64_t view_lsn_ = 0;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::milliseconds between_looks_{0};
};

}  // namespace quarry
