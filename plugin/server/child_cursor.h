// ChildCursor: a second handler of a Quarry table's InnoDB table, in the same transaction and read view, for a thread
// that wants to know which rows a scan will come to.
//
// Invariants:
//  - It locks no row, and is used only where the child locks none (ReadAhead says where).
//  - What goes wrong in it is told to its caller alone: it adds nothing to the statement's errors and warnings.
//  - It counts as nothing in the server's statistics of reads; InnoDB counts its rows.
// Thread-safety: as a handler. To be closed before the child's statement ends.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// How a scan began.
struct ScanStart {
  enum class From : uint8_t { kNowhere, kTable, kFirst, kLast, kKey, kKeyLast };
  From from = From::kNowhere;
  uint index = 0;
  bool sorted = false;
  std::vector<uchar> key;  ///< kKey, kKeyLast
  key_part_map keypart_map = 0;
  ha_rkey_function flag = HA_READ_KEY_EXACT;
};

/// How it goes on.
enum class ScanStep : uint8_t { kNone, kNext, kPrev, kNextSame };

class ChildCursor {
 public:
  /// `child` is open and in a statement. Null: it could not be opened.
  static std::unique_ptr<ChildCursor> Open(handler* child);
  ~ChildCursor();
  ChildCursor(const ChildCursor&) = delete;
  ChildCursor& operator=(const ChildCursor&) = delete;

  /// Reads the first row. `row` is laid out as the records of the table, but is none of them. Values of BLOB columns
  /// stay until the next call. False: there is none.
  [[nodiscard]] bool Begin(const ScanStart& start, uchar* row);
  /// Reads the one after it. False: there is none.
  [[nodiscard]] bool Next(const ScanStart& start, ScanStep step, uchar* row);
  void End();

 private:
  ChildCursor();

  MEM_ROOT memory_;
  handler* file_ = nullptr;
  bool is_locked_ = false;
};

}  // namespace quarry
