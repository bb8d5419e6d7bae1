// RowLookers: which columns of a row somebody may look at, so that they must be values and not heads. This is the only
// place that decides it; docs/internals/handler.md, 'Who looks at a row', has the table of lookers.
//
// The server says in the read set what it will look at. That is the whole truth only where InnoDB fills in no more
// than the read set. In a row that is locked to be changed InnoDB fills in every column, and some parts of the server
// look at columns that they never asked for:
//  - The binary log and Galera write whole row images (rpl_write_set), of a versioned table even under MINIMAL.
//  - A replication applier computes generated columns and runs row triggers without marking what they read.
//  - SET column = DEFAULT computes the column's expression from the row, without marking what it reads.
//  - A row that moves to another partition is handed to that partition's handler as it is.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

class RowLookers {
 public:
  void Attach(TABLE* table);

  /// `locks_rows`: InnoDB fills in every column, for the row may be changed. `whole_rows`: it does so for that or
  /// another reason.
  void BeginStatement(THD* thd, bool locks_rows, bool whole_rows);
  /// Before each read: the server's sets may have changed since the last.
  void BeginRow();

  /// The child fills in every column of the row, whatever the read set says.
  [[nodiscard]] bool whole_row() const { return whole_rows_; }
  /// Somebody may write the whole row anew.
  [[nodiscard]] bool all_columns() const { return all_columns_; }
  /// Column `field_index` must be a value when the read returns.
  [[nodiscard]] bool LooksAtRead(uint field_index) const {
    return all_columns_ || bitmap_is_set(table_->read_set, field_index) ||
           (applies_events_ && computed_from_[field_index]) || (may_set_defaults_ && IsOfDefault(field_index));
  }

  /// The row that is about to be written is logged. Whether the image of the row before, or after, the change will
  /// hold column `field_index`, is asked then.
  [[nodiscard]] bool LogsRow() const { return table_->file->row_logging; }
  [[nodiscard]] bool LogsBefore(uint field_index) const;
  [[nodiscard]] bool LogsAfter(uint field_index) const;

 private:
  /// A column whose DEFAULT is an expression over others.
  struct ComputedDefault {
    uint field_index;
    std::vector<bool> computed_from;  ///< by field
  };

  [[nodiscard]] bool MovesBetweenPartitions() const;
  /// Some column that is written has a DEFAULT that is computed from column `field_index`.
  [[nodiscard]] bool IsOfDefault(uint field_index) const;

  TABLE* table_ = nullptr;
  std::vector<bool> computed_from_;  ///< by field: some generated column is computed from it
  std::vector<ComputedDefault> defaults_;
  bool changes_rows_ = false;  ///< not only locks them, as SELECT ... FOR UPDATE does
  bool whole_rows_ = false;
  bool applies_events_ = false;  ///< the statement is a row event of a binary log
  bool runs_triggers_ = false;   ///< and it runs the table's row triggers
  bool may_set_defaults_ = false;
  bool all_columns_ = false;
};

}  // namespace quarry
