// See table_check.h.
#include "handler/table_check.h"

#include "rows/row_rewriter.h"
#include "server/error_log.h"
#include "server/running_engine.h"
#include "server/variables.h"
#include "transaction/transaction.h"

#include <mysql/service_print_check_msg.h>

namespace quarry {
namespace {

constexpr uint64_t kNamedRowsMax = 1000;
/// Of a primary key, in a message.
constexpr size_t kKeyTextMaxBytes = 200;

Status Damaged(const Locator& locator, const std::string& what) {
  return Status::Corruption(locator.store.value, locator.segment.value, locator.offset_bytes, what);
}

}  // namespace

TableCheck::TableCheck(THD* thd, TABLE* table, const ColumnLayout* layout, StoreAccess* access, std::string partition)
    : thd_(thd),
      table_(table),
      layout_(layout),
      access_(access),
      partition_(std::move(partition)),
      read_options_{ReadBatchBytes(thd, layout->has_ndb_defaults), /*skip_cache=*/true, PageCacheUse::kNone} {}

bool TableCheck::killed() const { return thd_->killed != NOT_KILLED; }

bool TableCheck::CheckRow() {
  ++rows_;
  for (const ColumnPlan& plan : layout_->columns) {
    if (killed()) interrupted_ = true;
    if (interrupted_) return false;
    if (!plan.managed()) continue;
    const auto* const field = static_cast<const Field_blob*>(table_->field[plan.field_index]);
    if (field->is_null()) continue;
    if (const Status status = CheckValue(plan, field); !status.ok()) ReportValue(plan, status);
  }
  return !interrupted_;
}

Status TableCheck::CheckValue(const ColumnPlan& plan, const Field_blob* field) {
  const std::span<const uint8_t> raw(field->get_ptr(), field->get_length());
  QUARRY_TRY_ASSIGN(const DecodedField head, DecodeField(raw));
  if (!head.is_head) return Status::Ok();
  QUARRY_TRY(access_->Require(head.locator.store, field->field_name));
  QUARRY_TRY(CheckClaimedSize(head.locator, LongestValueBytes(field->pack_length_no_ptr())));
  if (head.prefix.size() < plan.guaranteed_prefix_bytes) {
    return Damaged(head.locator,
                   "the head holds " + std::to_string(head.prefix.size()) + " raw bytes, an index may count on " +
                       std::to_string(plan.guaranteed_prefix_bytes) + " (ALTER TABLE ... FORCE writes it anew)");
  }
  const KillCheck kill_check(thd_);
  const Status status = Directory()->VerifyValue(head.head(), read_options_, &kill_check);
  if (status.code() != StatusCode::kCancelled) return status;
  interrupted_ = true;
  return Status::Ok();
}

std::string TableCheck::RowName() const {
  std::string name = "row " + std::to_string(rows_);
  if (!partition_.empty()) name += " of partition " + partition_;
  if (table_->s->primary_key >= MAX_KEY) return name;
  StringBuffer<kKeyTextMaxBytes> key(system_charset_info);
  key_unpack(&key, table_, &table_->key_info[table_->s->primary_key]);
  return name + " (PRIMARY '" + std::string(key.ptr(), std::min<size_t>(key.length(), kKeyTextMaxBytes)) + "')";
}

void TableCheck::ReportValue(const ColumnPlan& plan, const Status& status) {
  ++bad_values_;
  corrupt_ |= status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
              status.code() == StatusCode::kForeign;
  if (bad_values_ > kNamedRowsMax) return;
  const LEX_CSTRING& column = table_->field[plan.field_index]->field_name;
  const std::string message =
      RowName() + ", column '" + std::string(column.str, column.length) + "': " + status.ToString();
  Send("error", message);
  if (bad_values_ > 1) return;
  LogError("CHECK TABLE `%s`.`%s` found the first bad value: %s", table_->s->db.str, table_->s->table_name.str,
           message.c_str());
}

void TableCheck::Send(const char* kind, const std::string& message) {
  print_check_msg_context(thd_)(thd_, table_->s->db.str, table_->s->table_name.str, "check", kind, message.c_str(), 0);
}

int TableCheck::Finish() {
  if (killed()) interrupted_ = true;
  if (bad_values_ > kNamedRowsMax) {
    Send("error", std::to_string(bad_values_ - kNamedRowsMax) + " more values cannot be read");
  }
  if (interrupted_) Send("error", "interrupted after " + std::to_string(rows_) + " rows; the rest is not checked");
  if (corrupt_) return HA_ADMIN_CORRUPT;
  return interrupted_ || bad_values_ != 0 ? HA_ADMIN_FAILED : HA_ADMIN_OK;
}

}  // namespace quarry
