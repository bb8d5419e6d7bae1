// RowAppender: where a handler's values go that leave their rows: to the store of its table, in its session's
// transaction, with the write batch and the key that are in force.
//
// Invariants:
//  - Nothing is opened or joined before the first value. A statement whose values stay in their rows makes no store.
//  - What was appended is noted in the session's Transaction before its locator is handed out.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include "columns/column_options.h"
#include "quarry/store.h"
#include "server/mariadb_compat.h"

namespace quarry {

class RowAppender {
 public:
  /// `child`, the open InnoDB handler of the rows, must outlive the appender.
  void Attach(TABLE* table, const handler* child);
  void BeginStatement(uint32_t write_batch_bytes) { write_batch_bytes_ = write_batch_bytes; }
  /// The table has another InnoDB id, or will have: the next value goes to its store.
  void ForgetStore() { store_.reset(); }

  /// Appends `value`, but for a prefix that the head will hold, as `plan` says. The session has a Transaction. Errors:
  /// those of ReadChildTable, StoreDirectory::OpenForAppend and Store::Append.
  [[nodiscard]] Result<Locator> Append(std::span<const uint8_t> value, const ColumnPlan& plan,
                                       uint32_t prefix_size_bytes);

  /// Values went to the copy of an ALTER, which InnoDB makes durable by itself: they are to be synced before.
  [[nodiscard]] bool owes_sync() const { return owes_sync_; }
  void NoteSynced() { owes_sync_ = false; }

 private:
  TABLE* table_ = nullptr;
  const handler* child_ = nullptr;
  std::shared_ptr<Store> store_;
  uint32_t write_batch_bytes_ = kWriteBatchDefaultBytes;
  bool owes_sync_ = false;
};

}  // namespace quarry
