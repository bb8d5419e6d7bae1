// RowRewriter: heads instead of values on the way into InnoDB, values instead of heads on the way out.
//
// The record buffer stays the server's own: only the length and the pointer of a managed BLOB field are exchanged,
// and put back after InnoDB has seen the row (InnoDB tests record == table->record[0] for AUTO_INCREMENT).
//
// Invariants:
//  - Values handed out live until the next row is read through the same handler, or its reset: as InnoDB's own do.
//  - The fields of the last row read are remembered as InnoDB gave them. An update whose new value is, by pointer,
//    or by its bytes, the old one keeps the old head: no extent is written, and InnoDB sees no change.
//  - What must be a value when a read returns is RowLookers' to say. Under a write lock InnoDB fills in the other
//    columns as well: their raw fields are remembered, and replaced by values before the row is logged (ShowToLog).
//  - A head is followed only into a store of the table that it was found in (StoreAccess).
//  - Of a column that a SELECT looks at only in pieces (wanted_ranges.h) the field has the value's length, and
//    its bytes where they are looked at and where the head has them; the others are not read.
//  - Out of line goes a value longer than inline_size and than its own head, and one of 64 bytes or more that ends like
//    a head. The head holds its first prefix_size bytes, the segment the others.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include "columns/column_options.h"
#include "quarry/store.h"
#include "rows/row_lookers.h"
#include "rows/sparse_buffer.h"
#include "rows/store_access.h"
#include "rows/value_range.h"
#include "server/mariadb_compat.h"

namespace quarry {

class GcScan;
class RowAppender;
class Transaction;
class ValueSample;

/// Values that were asked for before the row that holds them was read (read_ahead.h).
class ValuesAhead {
 public:
  /// The value behind `locator`, which is about to be read; or an empty buffer, then it is to be read.
  [[nodiscard]] virtual ValueBuffer Take(const Locator& locator) = 0;

 protected:
  ~ValuesAhead() = default;
};

/// The longest value that a column whose length takes `length_size` bytes can hold.
[[nodiscard]] inline uint64_t LongestValueBytes(uint32_t length_size) { return (uint64_t{1} << (8 * length_size)) - 1; }

/// kCorruption when a head claims a value longer than `longest_bytes`, which the column cannot hold.
[[nodiscard]] Status CheckClaimedSize(const Locator& locator, uint64_t longest_bytes);

class RowRewriter {
 public:
  /// `layout` and `child`, the open InnoDB handler of the rows, must outlive the rewriter.
  void Attach(TABLE* table, const ColumnLayout* layout, const handler* child);
  /// Whole values are asked of `ahead` first.
  void UseAhead(ValuesAhead* ahead) { ahead_ = ahead; }
  /// Any managed column at all?
  [[nodiscard]] bool active() const { return !columns_.empty(); }

  /// A statement begins, with these rules for its rows (RowLookers::BeginStatement): what the last one looked at, and
  /// was allowed to read, says nothing about it.
  void BeginStatement(THD* thd, bool locks_rows, bool whole_rows);
  [[nodiscard]] bool whole_row() const { return lookers_.whole_row(); }
  [[nodiscard]] StoreAccess* store_access() { return &access_; }

  /// A row can be told from another by its keys without any managed column.
  [[nodiscard]] bool is_outside_of_keys() const { return is_outside_of_keys_; }

  /// Before the child reads into `buf`. What was handed out is gone. The fields that will be looked at are emptied: one
  /// that the child leaves alone must not be decoded from a stale pointer.
  void BeginRead(uchar* buf);
  /// The same before a read of which the child may decide that its row is the one of before, and leave `buf` alone: a
  /// multi-range read, which hands out a row once for each range that it matches.
  void BeginReadAgain(uchar* buf);
  /// After BeginReadAgain, when the child returned a row: whether it left `buf` alone. Then `buf` is as it was handed
  /// out, and the read is done.
  bool IsSameRow(const uchar* buf);
  /// When the child read nothing: `buf` as it was.
  void AbandonRead();
  /// When nobody will look at the row that the child read: leaves its fields empty.
  void DropRow(uchar* buf);
  /// The child is about to free what it handed out.
  void ForgetRow();
  /// The statement ended: gives the buffers of the values it read back.
  void ReleaseValues();

  /// After the child filled `buf`. Errors: those of StoreDirectory::Read; kForeign; kOutOfMemory: no memory for the
  /// value.
  Status DecodeRow(uchar* buf, const ReadOptions& options);

  /// Before a row is written that will be logged: of the row just read, what the log will hold of the images `before`
  /// and `after` (nullptr: none) and is not decoded yet, becomes its value there. Errors: those of DecodeRow.
  Status ShowToLog(const uchar* before, const uchar* after, const ReadOptions& options);
  /// Fields of `record` that are the row just read's, as it came from InnoDB, become their values: the record goes to
  /// another handler. Counts the heads among them as caught.
  Status ShowToOther(const uchar* record, const ReadOptions& options);

  /// For a row beside the one being read, which another cursor of the child reads into `row`: before it does, and
  /// after. `heads`: those whose values DecodeRow would read whole, in its order; they point into the row. False: one
  /// is damaged or not the table's own.
  void PrepareAhead(uchar* row) const;
  [[nodiscard]] bool FindHeadsAhead(const uchar* row, std::vector<DecodedField>* heads);

  /// GC's way of reading: no value is. BeginMark before the child fills `buf`, MarkRow after: gives `scan` the locator
  /// of every head, and leaves the managed columns empty. The read set must hold them all (FetchAll). Errors:
  /// kCorruption: a head that cannot be decoded, a column that the child did not fill in; kNotSupported.
  void FetchAll();
  void BeginMark(uchar* buf);
  Status MarkRow(uchar* buf, GcScan* scan);
  /// The same for a sample, which is given every value that is not NULL, and what is wrong with one.
  void SampleRow(uchar* buf, ValueSample* sample);

  /// Some field of `record` ends like a head: it is what another handler read, not shown as its value (ShowToOther).
  [[nodiscard]] bool HoldsHead(const uchar* record) const;
  /// Before the child writes `buf`. Restore() must follow, also after an error.
  Status EncodeInsert(const uchar* buf, RowAppender* appender);
  /// Before the child updates `old_data` to `new_data`. Restore() must follow, also after an error.
  Status EncodeUpdate(const uchar* old_data, const uchar* new_data, RowAppender* appender, const ReadOptions& options);
  void Restore();

  /// The update of the row just read succeeded (before Restore): heads that the new row does not carry are probably
  /// dead.
  void NoteReplaced(const uchar* old_data, const uchar* new_data, Transaction* transaction);
  /// The row just read was deleted: its extents are probably dead.
  void NoteDeleted(const uchar* buf, Transaction* transaction);

 private:
  /// Content of a BLOB field in a record.
  struct Bytes {
    const uchar* data = nullptr;
    uint32_t size = 0;
    bool operator==(const Bytes&) const = default;
    [[nodiscard]] std::span<const uint8_t> span() const { return {data, size}; }
  };

  /// What the statement looks at of a column; found out at its first long value.
  enum class Wanted : uint8_t { kUnknown, kWhole, kRanges };

  struct Column {
    const ColumnPlan* plan = nullptr;
    size_t offset = 0;  ///< of the field in the record
    uint length_size = 0;
    size_t null_offset = 0;
    uchar null_bit = 0;  ///< 0: NOT NULL
    uint64_t value_size_max = 0;
    uint32_t inline_max = 0;   ///< longer values go out of line
    uint32_t prefix_size = 0;  ///< raw bytes at the start of a head

    bool known = false;     ///< raw is what InnoDB holds of the last row read, which was not NULL
    bool examined = false;  ///< known, and `handed` is the value: it was inline, or was read
    Bytes raw;
    Bytes handed;         ///< what the server sees of it
    ValueBuffer decoded;  ///< the value when it came from a segment
    SparseBuffer pieces;  ///< instead of `decoded`: the ranges of it that the statement wants
    Wanted wanted = Wanted::kUnknown;
    query_id_t wanted_by = 0;            ///< the statement of which `wanted` is true
    std::vector<RangeRequest> requests;  ///< kRanges: which
    std::unique_ptr<uint8_t[]> head;     ///< the head being written
    size_t head_capacity = 0;

    [[nodiscard]] bool IsNull(const uchar* record) const {
      return null_bit != 0 && (record[null_offset] & null_bit) != 0;
    }
    [[nodiscard]] Bytes Get(const uchar* record) const;
    void Set(uchar* record, const Bytes& bytes) const;
    /// `record` has what was handed out of the last row read.
    [[nodiscard]] bool IsHandedIn(const uchar* record) const {
      return record != nullptr && known && !IsNull(record) && Get(record) == handed;
    }
  };
  struct Patch {
    const Column* column;
    uchar* record;
    Bytes original;
    bool was_null = false;  ///< and its NULL bit is to be set again
  };

  [[nodiscard]] const LEX_CSTRING& NameOf(const Column& column) const;
  Status DecodeColumn(Column* column, bool ranges_allowed, const ReadOptions& options);
  Status ExamineLate(Column* column, const uchar* record, const uchar* other_record, bool foreseen,
                     const ReadOptions& options);
  Status ReadColumn(Column* column, const DecodedField& field, bool ranges_allowed, const ReadOptions& options);
  Status ReadPieces(Column* column, const DecodedField& field, const ReadOptions& options);
  bool WantsPieces(Column* column, const DecodedField& field);
  Result<DecodedField> TakeField(const Column& column, uchar* buf) const;
  Result<Bytes> EncodeValue(Column* column, const Bytes& value, RowAppender* appender);
  void PatchField(const Column& column, const uchar* record, const Bytes& bytes);
  static bool SameValue(const Column& column, const Bytes& value);
  bool SameBehindHead(const Column& column, const Bytes& value, const ReadOptions& options);
  void CarryInCache(const Bytes& old_raw, const Bytes& new_raw, const Bytes& value);
  void NoteHead(const Bytes& raw, Transaction* transaction);
  Status DecodeColumns(uchar* buf, const ReadOptions& options);
  Status RequireOwn(const Column& column);
#ifdef QUARRY_GUARDED_ROWS
  void HideHead(Column* column);
#else
  static void HideHead(Column* /*column*/) {}
#endif

  TABLE* table_ = nullptr;
  RowLookers lookers_;
  StoreAccess access_;
  ValuesAhead* ahead_ = nullptr;
  std::vector<Column> columns_;
  bool is_outside_of_keys_ = true;
  std::vector<Patch> patches_;
  std::vector<ByteRange> ranges_;  ///< of the value being read
};

}  // namespace quarry
