// AUTO_INCREMENT: ids from a range that all sessions share (quarry_autoincrement_prefetch_sz), or InnoDB's own.
#include <chrono>

#include "handler/ha_quarry.h"
#include "server/plugin_counters.h"
#include "server/variables.h"

namespace quarry {

namespace {
// By SET INSERT_ID, or by a replicated statement: the server hands out these and asks no handler.
bool NamesIds(const THD* thd) { return thd->auto_inc_intervals_forced.nb_elements() != 0; }
}  // namespace

bool QuarryHandler::PrefetchesIds(THD* thd) const {
  if (table->next_number_field == nullptr || table_share->next_number_keypart != 0) return false;
  if (table_share->tmp_table != NO_TMP_TABLE || thd->lex->sql_command == SQLCOM_ALTER_TABLE) return false;
  if (AutoincrementPrefetch(thd) <= 1 || NamesIds(thd)) return false;
  // Statement-based replication needs the ids of one statement to follow from the table alone.
  return !mysql_bin_log.is_open() || thd->is_current_stmt_binlog_format_row();
}

namespace {
/// For a range that another session is reserving. That takes microseconds, unless that session waits for InnoDB's
/// counter, which an INSERT ... SELECT holds: perhaps the statement that waits here.
constexpr std::chrono::milliseconds kReservationWait{10};

void CountReservation(uint64_t ids) {
  plugin_counters.autoincrement_reservations.fetch_add(1, std::memory_order_relaxed);
  plugin_counters.autoincrement_reserved_ids.fetch_add(ids, std::memory_order_relaxed);
}
}  // namespace

int QuarryHandler::WriteChildRow(THD* thd, const uchar* buf) {
  Field* id = table->next_number_field;
  if (id == nullptr || buf != table->record[0]) return ForwardingHandler::write_row(buf);
  if (share_->gives_ids() && id->val_int() != 0) NoteExplicitId(id);
  if (PrefetchesIds(thd)) {
    prefetching_ids_ = true;
    const int error = update_auto_increment();
    prefetching_ids_ = false;
    return error != 0 ? error : WriteRowWithId(buf, id_is_counted_ && insert_id_for_cur_row != 0);
  }
  const bool is_named = NamesIds(thd);
  const uint reserved_before = auto_inc_intervals_count;
  const int error = ForwardingHandler::write_row(buf);
  // (The range of a named id has no end.)
  if (auto_inc_intervals_count != reserved_before && !is_named) {
    CountReservation(auto_inc_interval_for_cur_row.values());
  }
  if (error != 0 || !share_->gives_ids() || insert_id_for_cur_row == 0) return error;
  if (is_named) {
    share_->NoteExplicitId(insert_id_for_cur_row);
  } else {
    share_->NoteGivenId(insert_id_for_cur_row);
  }
  return 0;
}

int QuarryHandler::UpdateChildRow(const uchar* old_data, const uchar* new_data) {
  Field* id = table->found_next_number_field;
  if (id != nullptr && share_->gives_ids() && bitmap_is_set(table->write_set, id->field_index)) NoteExplicitId(id);
  return ForwardingHandler::update_row(old_data, new_data);
}

void QuarryHandler::NoteExplicitId(Field* field) {
  const longlong value = field->val_int();
  if (value > 0 || (field->flags & UNSIGNED_FLAG) != 0) share_->NoteExplicitId(static_cast<uint64_t>(value));
}

void QuarryHandler::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                                       ulonglong* reserved) {
  if (!prefetching_ids_) {
    ForwardingHandler::get_auto_increment(offset, increment, wanted, first, reserved);
    return;
  }
  const ulonglong count = std::max<ulonglong>(wanted, 1);
  id_is_counted_ = false;
  uint64_t id = share_->TakeIds(offset, increment, count);
  if (id == 0) {
    // A session that waits longer asks InnoDB too, which sees a deadlock, and a KILL.
    const std::unique_lock<std::timed_mutex> guard(share_->reservation_mutex(), kReservationWait);
    id = share_->TakeIds(offset, increment, count);
    if (id == 0) id = ReserveIds(offset, increment, count, first, reserved);
    if (id == 0) return;  // InnoDB's own answer stands
  }
  *first = id;
  *reserved = count;
  id_is_counted_ = true;
}

// Asks InnoDB for a range, and takes `wanted` ids of it before others share it. 0: there is no range to share (InnoDB
// counts only when the row is inserted, or the column's range is exhausted, or the range is too short); *first and
// *reserved are then InnoDB's own answer for this statement.
uint64_t QuarryHandler::ReserveIds(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                                   ulonglong* reserved) {
  // InnoDB continues the interval of a statement from the value it is handed in *first, when it was asked before in
  // the same statement by the same handler. A clone has not been asked before.
  handler* asked = child_reserved_ids_ ? child()->clone(table_share->normalized_path.str, ha_thd()->mem_root) : child();
  if (asked == nullptr) {
    *first = ULONGLONG_MAX;
    return 0;
  }
  const ulonglong count = std::max<ulonglong>(wanted, AutoincrementPrefetch(ha_thd()));
  *first = 0;
  *reserved = 0;
  asked->get_auto_increment(offset, increment, count, first, reserved);
  child_reserved_ids_ = true;
  uint64_t id = 0;
  if (*first != ULONGLONG_MAX && *reserved > 0 && asked->info(HA_STATUS_AUTO) == 0) {
    const ulonglong counter = asked->stats.auto_increment_value;
    const ulonglong span = (*reserved - 1) * increment + 1;
    const ulonglong end = *first > ULONGLONG_MAX - span ? counter : std::min(counter, *first + span);
    if (end > *first) id = share_->AddIds({*first, end}, offset, increment, wanted);
    if (id != 0) CountReservation((end - 1 - *first) / increment + 1);
  }
  if (asked != child()) {
    asked->ha_close();
    delete asked;
  }
  return id;
}

int QuarryHandler::reset_auto_increment(ulonglong value) {
  share_->ForgetIds();
  return ForwardingHandler::reset_auto_increment(value);
}

bool QuarryHandler::autoinc_lock_mode_stmt_unsafe() const {
  return ForwardingHandler::autoinc_lock_mode_stmt_unsafe() || AutoincrementPrefetch(ha_thd()) > 1;
}

}  // namespace quarry
