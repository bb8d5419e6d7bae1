// RowRewriter: heads instead of values on the way into InnoDB, values instead of heads on the way out.
//
// The record buffer stays the server's own: only the length and the pointer of a managed BLOB field are exchanged,
// and put back after InnoDB has seen the row (InnoDB tests record == table->record[0] for AUTO_INCREMENT).
//
// Invariants:
//  - Values handed out live until the next row is read through the same handler, or its reset: as InnoDB's own do.
//  - The fields of the last row read are remembered as InnoDB gave them. An update whose new value is, by pointer,
//    or by its bytes, the old one keeps the old head: no extent is written, and InnoDB sees no change.
//  - Only columns in the read set are decoded. Under a write lock InnoDB fills in the others as well; their raw
//    fields are remembered, never decoded.
//  - Of a column that a SELECT looks at only in pieces (wanted_ranges.h) the field has the value's length, and
//    its bytes where they are looked at and where the head has them; the others are not read.
//  - Out of line goes a value longer than inline_size, and one of 64 bytes or more that ends like a head.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include "column_options.h"
#include "mariadb_compat.h"
#include "quarry/store.h"
#include "sparse_buffer.h"
#include "value_range.h"

namespace quarry {

class GcScan;
class Transaction;

/// What writing a row needs. Called at each value that goes out of line: joins the server's transaction and opens the
/// store.
class AppendTarget {
 public:
  virtual Result<Store*> OpenStore() = 0;
  /// What the value is encrypted with; 0: nothing.
  [[nodiscard]] virtual uint32_t EncryptionKeyId() const = 0;

 protected:
  ~AppendTarget() = default;
};

/// The longest value that a column whose length takes `length_size` bytes can hold.
[[nodiscard]] inline uint64_t LongestValueBytes(uint32_t length_size) { return (uint64_t{1} << (8 * length_size)) - 1; }

/// kCorruption when a head claims a value longer than `longest_bytes`, which the column cannot hold.
[[nodiscard]] Status CheckClaimedSize(const Locator& locator, uint64_t longest_bytes);

class RowRewriter {
 public:
  /// `layout` must outlive the rewriter.
  void Attach(TABLE* table, const ColumnLayout* layout);
  /// Any managed column at all?
  [[nodiscard]] bool active() const { return !columns_.empty(); }

  /// Before the child reads into `buf`. What was handed out is gone. Also empties the fields that will be decoded: a
  /// column that the child leaves alone (its own template was built before the read set grew) must not be decoded
  /// from a stale pointer.
  void BeginRead(uchar* buf, bool decode_all);
  /// When the child read nothing: `buf` as it was.
  void AbandonRead() { Restore(); }
  /// The child is about to free what it handed out.
  void ForgetRow();
  /// A statement begins: what the last one looked at says nothing about it.
  void ForgetStatement();
  /// The statement ended: gives the buffers of the values it read back.
  void ReleaseValues();

  /// After the child filled `buf`. `decode_all`: whatever the read set says. `whole_row`: the child filled in every
  /// column. Errors: those of StoreDirectory::Read; kNotSupported: no memory for the value.
  Status DecodeRow(uchar* buf, bool decode_all, bool whole_row, const ReadOptions& options);

  /// GC's way of reading: no value is. BeginMark before the child fills `buf`, MarkRow after: gives `scan` the locator
  /// of every head, and leaves the managed columns empty. The read set must hold them all (FetchAll). Errors:
  /// kCorruption: a head that cannot be decoded, a column that the child did not fill in; kNotSupported.
  void FetchAll();
  void BeginMark(uchar* buf);
  Status MarkRow(uchar* buf, GcScan* scan);

  /// Before the child writes `buf`. Restore() must follow, also after an error.
  Status EncodeInsert(const uchar* buf, AppendTarget* target, uint32_t write_batch_bytes, Transaction* transaction);
  /// Before the child updates `old_data` to `new_data`. Restore() must follow, also after an error.
  Status EncodeUpdate(const uchar* old_data, const uchar* new_data, AppendTarget* target, uint32_t write_batch_bytes,
                      const ReadOptions& read_options, Transaction* transaction);
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

    bool known = false;  ///< raw is what InnoDB holds of the last row read, which was not NULL
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
  };
  struct Patch {
    const Column* column;
    uchar* record;
    Bytes original;
  };

  Status DecodeColumn(Column* column, uchar* buf, bool ranges_allowed, const ReadOptions& options);
  Status ReadColumn(Column* column, const DecodedField& field, bool ranges_allowed, const ReadOptions& options);
  Status ReadPieces(Column* column, const DecodedField& field, const ReadOptions& options);
  bool WantsPieces(Column* column, const DecodedField& field);
  Result<Bytes> EncodeValue(Column* column, const Bytes& value, AppendTarget* target, uint32_t write_batch_bytes,
                            Transaction* transaction);
  void PatchField(const Column& column, const uchar* record, const Bytes& bytes);
  static bool SameValue(const Column& column, const Bytes& value);
  static bool SameBehindHead(const Column& column, const Bytes& value, const ReadOptions& options);
  static void CarryInCache(const Bytes& old_raw, const Bytes& new_raw, const Bytes& value);
  void NoteHead(const Bytes& raw, Transaction* transaction);

  TABLE* table_ = nullptr;
  std::vector<Column> columns_;
  std::vector<Patch> patches_;
  std::vector<ByteRange> ranges_;  ///< of the value being read
};

}  // namespace quarry
