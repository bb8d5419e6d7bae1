// RowSampler: looks at some rows of a table for QUARRY_VALUES, in a session of Quarry's own.
//
// A table of fewer than kSampleRowsMax rows is looked at whole. Of a longer one with an integer as the first column of
// its primary key, kDiveRows are taken at up to 32 places, evenly spread between the smallest and the largest key. Else
// they are the first ones in the order of the clustered index and, where it has a key to go backwards by, the last
// ones. In the order of a key the server reads a row of every partition, so partitions make for fewer places.
//
// Invariants:
//  - The reads are consistent and lock no row. They wait for a metadata lock for one second at most.
//  - No statement takes longer than a second, and none begins after the first second.
//  - No part of a value is read, but the header of each stored one is.
// Thread-safety: belongs to the session's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rows/value_sample.h"
#include "server/child_name.h"
#include "server/server_session.h"

namespace quarry {

class RowSampler {
 public:
  static constexpr unsigned kSampleRowsMax = 1024;
  static constexpr unsigned kDiveRows = 32;

  /// `definition` is read now.
  RowSampler(const TABLE* definition, const TableName& name);

  /// Until it is done, or `thd` is killed.
  void Run(THD* thd);

  [[nodiscard]] const TableSample& sample() const { return sample_; }
  [[nodiscard]] bool has_all_rows() const { return has_all_rows_; }
  /// What kept it from looking at more, or at a value.
  [[nodiscard]] const Status& status() const { return status_.ok() ? sample_.status : status_; }
  /// Quoted.
  [[nodiscard]] const std::string& table() const { return table_; }

 private:
  Status RunIn(ServerSession* session, const std::function<bool()>& goes_on);
  Status DiveIn(ServerSession* session, const std::function<bool()>& goes_on);
  /// `clauses` come behind the table's name.
  Status Look(ServerSession* session, const std::string& clauses, unsigned rows);

  const std::string table_;
  const std::string history_;  ///< " FOR SYSTEM_TIME ALL" of a versioned table
  std::string key_;            ///< the first column of the primary key, quoted; empty: rows cannot be ordered by it
  bool key_is_integer_ = false;
  bool key_is_unsigned_ = false;
  TableSample sample_;
  bool has_all_rows_ = false;
  Status status_;
};

}  // namespace quarry
