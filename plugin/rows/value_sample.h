// ValueSample: what some rows of a table hold, column by column. A statement that runs on this thread while one lives
// reads rows for their heads alone, as a mark pass does (gc_scan.h): no part is read, and what it gets of a managed
// column is empty.
//
// Thread-safety: belongs to the thread that made it.
#pragma once

#include <map>

#include "quarry/options.h"
#include "quarry/status.h"
#include "server/mariadb_compat.h"

namespace quarry {

struct DecodedField;

/// Of one column, in the rows that were looked at.
struct ColumnSample {
  uint64_t inline_values = 0;  ///< whole in their rows
  uint64_t inline_bytes = 0;
  uint64_t stored_values = 0;  ///< with parts in segments
  uint64_t prefix_bytes = 0;   ///< of these, what their rows hold
  uint64_t parts = 0;
  uint64_t part_bytes = 0;    ///< uncompressed
  uint64_t stored_bytes = 0;  ///< in segments
};

struct TableSample {
  uint64_t rows = 0;
  std::map<uint, ColumnSample> columns;  ///< by the number of the field
  Status status;                         ///< of the first value that could not be told
};

class ValueSample {
 public:
  /// While it lives it is Current() on this thread, and adds to `sample`, which must outlive it.
  explicit ValueSample(TableSample* sample);
  ~ValueSample();
  ValueSample(const ValueSample&) = delete;
  ValueSample& operator=(const ValueSample&) = delete;

  /// nullptr on every other thread.
  static ValueSample* Current();

  void NoteRow() { ++sample_->rows; }
  void NoteField(uint field_index, const DecodedField& field);
  /// The first one is kept. The value is not counted.
  void NoteFailure(const Status& status);

 private:
  TableSample* const sample_;
};

}  // namespace quarry
