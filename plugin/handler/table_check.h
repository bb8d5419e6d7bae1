// TableCheck: what CHECK TABLE does with the values of a table: reads every extent that the rows point at and says,
// row by row, what is wrong.
//
// Invariants:
//  - A value is read as any statement reads it, so every checksum is verified; nothing is repaired, nothing is marked.
//  - Memory is bounded whatever the size of a value: one step of it is held at a time.
//  - Every row that is not well is named, up to kNamedRowsMax of them; then they are counted.
// Thread-safety: externally synchronised; belongs to the session that checks.
#pragma once

#include "columns/column_options.h"
#include "quarry/locator.h"
#include "quarry/store.h"
#include "rows/store_access.h"
#include "server/mariadb_compat.h"

namespace quarry {

class TableCheck {
 public:
  /// `layout` is that of the open `table`. `access`: whose stores its heads may name. `partition`: for the messages;
  /// empty when there are none.
  TableCheck(THD* thd, TABLE* table, const ColumnLayout* layout, StoreAccess* access, std::string partition);

  /// The row in table->record[0], its managed columns as InnoDB gave them. False: the statement was killed.
  bool CheckRow();

  [[nodiscard]] uint64_t rows() const { return rows_; }
  /// Sends what is left to say. HA_ADMIN_OK; HA_ADMIN_CORRUPT: a value is damaged or missing; HA_ADMIN_FAILED: one
  /// could not be looked at (its data path is away, the disk refused), or the statement was killed.
  int Finish();

 private:
  Status CheckValue(const ColumnPlan& plan, const Field_blob* field);
  void ReportValue(const ColumnPlan& plan, const Status& status);
  void Send(const char* kind, const std::string& message);
  [[nodiscard]] std::string RowName() const;
  [[nodiscard]] bool killed() const;

  // Constant after construction.
  THD* const thd_;
  TABLE* const table_;
  const ColumnLayout* const layout_;
  StoreAccess* const access_;
  const std::string partition_;
  const ReadOptions read_options_;

  uint64_t rows_ = 0;
  uint64_t bad_values_ = 0;
  bool corrupt_ = false;
  bool interrupted_ = false;
};

}  // namespace quarry
