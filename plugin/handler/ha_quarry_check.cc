// QuarryHandler's part in CHECK TABLE: InnoDB's own check of the rows, then, unless QUICK, every value of every row.
#include "handler/ha_quarry.h"

#include <my_check_opt.h>
#include <mysql/services.h>
#include <sql_lex.h>

#include "handler/table_check.h"
#include "server/child_table_id.h"

namespace quarry {

namespace {

/// While it lives, InnoDB fetches the managed columns and the primary key, nothing else.
class CheckedColumns {
 public:
  CheckedColumns(TABLE* table, const ColumnLayout& layout)
      : table_(table),
        saved_(table->read_set),
        bits_(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map) + 1) {
    my_bitmap_init(&columns_, bits_.data(), table->s->fields);
    for (const ColumnPlan& plan : layout.columns) {
      if (plan.managed()) bitmap_set_bit(&columns_, plan.field_index);
    }
    if (table->s->primary_key < MAX_KEY) {
      const KEY& key = table->key_info[table->s->primary_key];
      for (uint i = 0; i < key.user_defined_key_parts; i++) {
        bitmap_set_bit(&columns_, key.key_part[i].field->field_index);
      }
    }
    table->read_set = &columns_;
  }
  ~CheckedColumns() {
    table_->read_set = saved_;
    my_bitmap_free(&columns_);
  }
  CheckedColumns(const CheckedColumns&) = delete;
  CheckedColumns& operator=(const CheckedColumns&) = delete;

 private:
  TABLE* const table_;
  MY_BITMAP* const saved_;
  std::vector<my_bitmap_map> bits_;
  MY_BITMAP columns_;
};

/// "p0" of InnoDB's "db/t#P#p0", "p0#SP#s1" of a subpartition; empty for a table of its own.
std::string PartitionOf(const handler* child) {
  const Result<ChildTable> child_table = ReadChildTable(child);
  if (!child_table.ok()) return std::string();
  constexpr std::string_view kMark = "#P#";
  const size_t mark = child_table->name.find(kMark);
  return mark == std::string::npos ? std::string() : child_table->name.substr(mark + kMark.size());
}

}  // namespace

int QuarryHandler::check(THD* thd, HA_CHECK_OPT* options) {
  const int answer = CheckRowsAndValues(thd, options);
  // The server checks no partition after one that is not well; what else is damaged should be said all the same.
  if (answer == HA_ADMIN_CORRUPT) CheckLaterPartitions(thd, options);
  return answer;
}

int QuarryHandler::CheckRowsAndValues(THD* thd, HA_CHECK_OPT* options) {
  // InnoDB's check leaves its handler reading without locks, through the view that it opened; ours goes on with both.
  if (const int answer = ForwardingHandler::check(thd, options); answer != HA_ADMIN_OK) return answer;
  if ((options->flags & T_QUICK) != 0 || !rewriter_.active()) return HA_ADMIN_OK;
  return CheckValues(thd);
}

int QuarryHandler::CheckValues(THD* thd) {
  const ColumnLayout layout = LimitedLayout();
  TableCheck values(thd, table, &layout, rewriter_.store_access(), PartitionOf(child()));
  const CheckedColumns columns(table, layout);
  rewriter_.ForgetRow();
  ForwardingHandler::info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
  thd_progress_init(thd, 1);
  int error = ForwardingHandler::rnd_init(true);
  if (error == 0) {
    while (true) {
      error = ForwardingHandler::rnd_next(table->record[0]);
      if (error == HA_ERR_RECORD_DELETED) continue;
      if (error == 0) error = Guarded([&] { return values.CheckRow() ? 0 : HA_ERR_ABORTED_BY_USER; });
      if (error != 0) break;
      thd_progress_report(thd, values.rows(), std::max<uint64_t>(values.rows(), stats.records));
    }
    ForwardingHandler::rnd_end();
  }
  thd_progress_end(thd);
  const int answer = values.Finish();
  if (error == 0 || error == HA_ERR_END_OF_FILE || thd->killed != NOT_KILLED) return answer;
  // Becomes a line of the answer.
  print_error(error, MYF(0));
  return HA_ADMIN_FAILED;
}

void QuarryHandler::CheckLaterPartitions(THD* thd, HA_CHECK_OPT* options) {
  const bool chosen_ones = (thd->lex->alter_info.partition_flags & ALTER_PARTITION_ADMIN) != 0;
  if (chosen_ones) return;
  bool later = false;
  for (QuarryHandler* const partition : Siblings()) {
    if (later && partition->get_lock_type() != F_UNLCK && thd->killed == NOT_KILLED) {
      (void)partition->CheckRowsAndValues(thd, options);
    }
    later |= partition == this;
  }
}

}  // namespace quarry
