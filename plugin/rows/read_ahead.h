// ReadAhead: has other threads read the values of the rows that a scan will come to.
//
// The server asks for one row at a time, so a scan of large values waits for the device at each of them. After a few
// rows that did, a second cursor of InnoDB's (ChildCursor) replays the scan in a row buffer of its own, passes
// the rows that were read and stays a few ahead. It takes heads alone; StoreDirectory::ReadAhead reads their values.
//
// Invariants:
//  - It is advice. A row, its values, errors and warnings are the same without it: Take gives what ReadValue would, or
//    nothing, and no difference between the two cursors does more than end it.
//  - Rows are told by the locators of their values, in order: it needs no column that the statement does not read.
//  - Only for reads that lock nothing, in the statement's own view. At most quarry_batch_size bytes are read ahead
//    for a table, all its partitions together.
//  - It costs at most about what it may save: it replays kReplayedPerWait rows for each wait seen, reads
//    kValuesAheadMax values ahead, and ends when more of them were passed by than were used.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include <deque>

#include "quarry/ahead_read.h"
#include "rows/row_rewriter.h"
#include "server/child_cursor.h"

namespace quarry {

class ReadAhead final : public ValuesAhead {
 public:
  /// `outer` is the handler that the server uses of `table`, `child` InnoDB's, both open.
  void Attach(const handler* outer, TABLE* table, handler* child, RowRewriter* rewriter);

  /// `locks_nothing`: the statement reads its own view, and nothing else.
  void BeginStatement(THD* thd, bool locks_nothing, const ReadOptions& options);
  /// A table scan ended; there may be many, of partitions, and each would keep a cursor.
  void CloseCursor();
  /// Before the lock of the child's statement goes.
  void Close();
  /// For the reads of the handler.
  [[nodiscard]] ReadReport* report() { return &report_; }

  // A scan: its beginning, each row that was handed out, its end.
  void BeginIndex(uint index, bool sorted);
  void BeginFrom(ScanStart::From from);
  void BeginKey(ScanStart::From from, const uchar* key, key_part_map keypart_map, ha_rkey_function flag);
  void NoteRow(ScanStep step);
  void EndScan();

  /// ValuesAhead: the reader is about to read this value.
  [[nodiscard]] ValueBuffer Take(const Locator& locator) override;

 private:
  /// Four rows that waited, one after another. A row that found its values in memory undoes half of one.
  static constexpr uint32_t kPressureOfWait = 2;
  static constexpr uint32_t kPressureToBegin = 4 * kPressureOfWait;
  static constexpr uint64_t kReplayedPerWait = 256;
  static constexpr size_t kValuesAheadFirst = 2;
  static constexpr size_t kValuesAheadMax = 16;
  static constexpr uint32_t kRowsAtOnce = 64;   ///< read for one, when they have no values
  static constexpr uint32_t kInMemoryMax = 32;  ///< values in a row that need no reading
  static constexpr uint64_t kPassedByMax = 8;   ///< more than were used

  enum class State : uint8_t { kOff, kWatching, kAhead };
  struct Expected {
    Locator locator;
    std::unique_ptr<AheadRead> read;  ///< null: the reader reads it
    uint64_t size_bytes = 0;          ///< of `read`
  };

  void Watch();
  void WatchAnew();
  /// The cursor stands on the row that was read last. False: it never came to it.
  [[nodiscard]] bool CatchUp();
  void ReadOn();
  [[nodiscard]] bool ReadHeads(bool is_first);
  void Expect(const DecodedField& field);
  /// Of what may be read ahead for the table.
  [[nodiscard]] bool HasRoomFor(uint64_t size_bytes) const;
  void TakeOff(uint64_t size_bytes);
  void DropFirst();
  [[nodiscard]] bool IsBeyondRange();

  // Constant while attached.
  const handler* outer_ = nullptr;
  TABLE* table_ = nullptr;
  handler* child_ = nullptr;
  RowRewriter* rewriter_ = nullptr;

  // Of the statement.
  bool is_allowed_ = false;
  uint64_t limit_bytes_ = 0;
  ReadOptions options_;
  std::unique_ptr<ChildCursor> cursor_;
  std::vector<uchar> row_;

  // Of the scan.
  State state_ = State::kOff;
  ScanStart start_;
  ScanStep step_ = ScanStep::kNone;
  uint64_t rows_ = 0;            ///< handed out
  uint64_t waits_ = 0;           ///< of these: for a device, since it began to watch
  uint32_t pressure_ = 0;        ///< see kPressureToBegin
  ReadReport report_;            ///< of the row that is being read
  std::optional<Locator> last_;  ///< the last value of it, or of a row before

  // While ahead.
  std::deque<Expected> expected_;
  std::vector<DecodedField> heads_;  ///< of the row under the cursor
  size_t values_ahead_ = 0;
  uint64_t bytes_ahead_ = 0;  ///< by this scan
  uint64_t last_size_bytes_ = 0;
  uint32_t in_memory_ = 0;
  uint64_t used_ = 0;
  uint64_t passed_by_ = 0;
  bool has_value_ = false;  ///< the row that is being read
  bool is_at_end_ = false;  ///< the cursor
};

}  // namespace quarry
