#include "rows/row_appender.h"

#include "columns/encryption.h"
#include "server/child_table_id.h"
#include "server/running_engine.h"
#include "transaction/transaction.h"

namespace quarry {

void RowAppender::Attach(TABLE* table, const handler* child) {
  table_ = table;
  child_ = child;
  ForgetStore();
}

Result<Locator> RowAppender::Append(std::span<const uint8_t> value, const ColumnPlan& plan,
                                    uint32_t prefix_size_bytes) {
  if (store_ == nullptr) {
    QUARRY_TRY_ASSIGN(const ChildTable child_table, ReadChildTable(child_));
    QUARRY_TRY_ASSIGN(store_, Directory()->OpenForAppend(child_table.id, child_table.name));
  }
  if (table_->s->tmp_table != NO_TMP_TABLE) owes_sync_ = true;
  Transaction* const transaction = Transaction::Of(table_->in_use);
  transaction->Join(table_->in_use);
  const AppendOptions options = {plan.part_size_bytes, plan.codec, write_batch_bytes_, prefix_size_bytes,
                                 EncryptionKeyOf(table_->s)};
  QUARRY_TRY_ASSIGN(const Locator locator, store_->Append(value, options, transaction->unsynced()));
  transaction->NoteAppended(locator);
  return locator;
}

}  // namespace quarry
