// GcScan: the scan of a mark pass, as the handlers see it: they read every row of a table by the view of GC's own
// session and give it each locator, and no payload is read.
//
// The scan is an ordinary SELECT of one row (a count) on GC's thread; a handler that is locked by a statement on that
// thread asks for Current() and, from then on, marks instead of decoding. What the SELECT gets of a managed column is
// empty.
//
// Invariants:
//  - The scan counts only when, for each of the expected InnoDB tables, one scan from the first row to InnoDB's end of
//    file went through rnd_next, with every managed column fetched. Whatever else happens is an error of the scan.
//  - It gives way: it ends, with an error, when somebody waits for a metadata lock that conflicts, when the table's
//    cached definitions are to be closed (FLUSH TABLES), at its deadline, and when its thread is to stop.
// Thread-safety: belongs to GC's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>

#include "quarry/gc.h"
#include "server/mariadb_compat.h"

namespace quarry {

class GcScan {
 public:
  struct Limits {
    std::function<bool()> goes_on;  ///< false: GC's thread is to stop
    std::chrono::steady_clock::time_point deadline;
  };
  /// While it lives it is Current() on this thread. `pass` and `limits` must outlive it.
  GcScan(GcPass* pass, const Limits* limits);
  ~GcScan();
  GcScan(const GcScan&) = delete;
  GcScan& operator=(const GcScan&) = delete;

  /// nullptr on every other thread.
  static GcScan* Current();

  // By a handler.
  /// A scan of InnoDB table `table` begins.
  void Begin(TableId table);
  /// Before each row. False: the scan must end now.
  [[nodiscard]] bool GoesOn(TABLE* table);
  void NoteRow() { ++rows_; }
  /// `own`: the head names a store of its table. One that does not is marked too, for a mark can only keep, and in
  /// another table's store it does nothing; but it counts as nothing alive.
  void Mark(const Locator& locator, bool own) {
    pass_->Mark(locator);
    if (own) live_bytes_[locator.store] += locator.extent_size_bytes;
    if (own && locator.store != last_store_) NoteStore(locator.store);
  }
  void NoteStore(StoreId store);
  void NoteEnd(TableId table);
  /// What the table's values are encrypted with now (EncryptionKeyOf).
  void NoteKey(uint32_t key_id) { key_id_ = key_id; }
  void Fail(const Status& status);

  // By the pass.
  [[nodiscard]] uint64_t rows() const { return rows_; }
  /// It ended because of the deadline.
  [[nodiscard]] bool overran() const { return overran_; }
  [[nodiscard]] const std::map<StoreId, uint64_t>& live_bytes() const { return live_bytes_; }
  [[nodiscard]] uint32_t key_id() const { return key_id_; }
  /// Those that heads name, each with the table that they are in.
  [[nodiscard]] const std::set<std::pair<StoreId, TableId>>& stores_met() const { return stores_met_; }
  /// Ok: the marks of exactly `tables` are complete.
  [[nodiscard]] Status Finish(const std::set<uint64_t>& tables) const;

 private:
  /// Looking at locks costs more than looking at a flag.
  static constexpr uint64_t kRowsBetweenLooks = 256;

  GcPass* const pass_;
  const Limits* const limits_;
  Status status_;
  bool overran_ = false;
  uint32_t key_id_ = 0;
  uint64_t rows_ = 0;
  uint64_t calls_ = 0;
  std::set<uint64_t> begun_;
  std::map<uint64_t, int> ended_;
  std::map<StoreId, uint64_t> live_bytes_;
  TableId table_;       ///< that is being scanned
  StoreId last_store_;  ///< in stores_met_ already
  std::set<std::pair<StoreId, TableId>> stores_met_;
};

}  // namespace quarry
