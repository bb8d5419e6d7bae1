#include "handler/forwarding_handler.h"

#include "server/child_handler.h"

namespace quarry {

ForwardingHandler::~ForwardingHandler() { delete child_; }

bool ForwardingHandler::AdoptChild(handler* child) {
  child_ = child;
  return child_ != nullptr;
}

bool ForwardingHandler::CloneInto(ForwardingHandler* copy, const char* name, MEM_ROOT* mem_root) {
  handler* child_clone = child_->clone(name, mem_root);
  if (child_clone == nullptr) return false;
  copy->child_ = child_clone;
  copy->child_open_ = true;
  copy->init();
  const int mode = (table->db_stat & HA_READ_ONLY) != 0 ? O_RDONLY : O_RDWR;
  if (copy->set_ha_share_ref(ha_share) || copy->ha_open(table, name, mode, HA_OPEN_IGNORE_IF_LOCKED, mem_root) != 0) {
    if (copy->child_open_) copy->ForwardingHandler::close();
    return false;
  }
  copy->handler_stats = handler_stats;
  return true;
}

void ForwardingHandler::TakeOpened() {
  ref_length = child_->ref_length;
  key_used_on_scan = child_->key_used_on_scan;
  stats = child_->stats;
}

// The child checks the rowid filter, with its own members; the server builds it later and switches it on and off by
// setting members of this object. InnoDB asks at index_init, when it plans the read, and again for each row.
inline void ForwardingHandler::PushRowidFilter() {
  child_->pushed_rowid_filter = pushed_rowid_filter;
  child_->rowid_filter_is_active = rowid_filter_is_active;
}

// The child's checks of index condition and rowid filter compare rows with the end of the range that the server set on
// this object.
inline void ForwardingHandler::PushRange() {
  PushRowidFilter();
  child_->end_range = end_range;
  child_->range_key_part = range_key_part;
  child_->key_compare_result_on_equal = key_compare_result_on_equal;
  child_->in_range_check_pushed_down = in_range_check_pushed_down;
}

inline void ForwardingHandler::PushAutoIncrement() {
  child_->estimation_rows_to_insert = estimation_rows_to_insert;
  child_->next_insert_id = next_insert_id;
  child_->insert_id_for_cur_row = insert_id_for_cur_row;
  child_->auto_inc_interval_for_cur_row = auto_inc_interval_for_cur_row;
  child_->auto_inc_intervals_count = auto_inc_intervals_count;
}

inline void ForwardingHandler::TakeAutoIncrement() {
  next_insert_id = child_->next_insert_id;
  insert_id_for_cur_row = child_->insert_id_for_cur_row;
  auto_inc_interval_for_cur_row = child_->auto_inc_interval_for_cur_row;
  auto_inc_intervals_count = child_->auto_inc_intervals_count;
}

ulonglong ForwardingHandler::table_version() const { return child_->table_version(); }
enum row_type ForwardingHandler::get_row_type() const { return child_->get_row_type(); }
const char* ForwardingHandler::index_type(uint key_number) { return child_->index_type(key_number); }
handler::Table_flags ForwardingHandler::table_flags() const { return child_->table_flags(); }
ulong ForwardingHandler::index_flags(uint index, uint part, bool all_parts) const {
  return child_->index_flags(index, part, all_parts);
}
uint ForwardingHandler::max_supported_record_length() const { return child_->max_supported_record_length(); }
uint ForwardingHandler::max_supported_keys() const { return child_->max_supported_keys(); }
uint ForwardingHandler::max_supported_key_parts() const { return child_->max_supported_key_parts(); }
uint ForwardingHandler::max_supported_key_length() const { return child_->max_supported_key_length(); }
uint ForwardingHandler::max_supported_key_part_length() const { return child_->max_supported_key_part_length(); }
uint ForwardingHandler::min_record_length(uint options) const { return child_->min_record_length(options); }
const key_map* ForwardingHandler::keys_to_use_for_scanning() { return child_->keys_to_use_for_scanning(); }
alter_table_operations ForwardingHandler::alter_table_flags(alter_table_operations flags) {
  return child_->alter_table_flags(flags);
}
bool ForwardingHandler::can_convert_nocopy(const Field& field, const Column_definition& new_field) const {
  return child_->can_convert_nocopy(field, new_field);
}
Compare_keys ForwardingHandler::compare_key_parts(const Field& old_field, const Column_definition& new_field,
                                                  const KEY_PART_INFO& old_part, const KEY_PART_INFO& new_part) const {
  return child_->compare_key_parts(old_field, new_field, old_part, new_part);
}

bool ForwardingHandler::set_ha_share_ref(Handler_share** share) {
  // InnoDB never uses its Handler_share, but clone() of the child insists on one being set.
  return handler::set_ha_share_ref(share) || (child_->ha_share == nullptr && child_->set_ha_share_ref(share));
}
void ForwardingHandler::change_table_ptr(TABLE* table_arg, TABLE_SHARE* share) {
  handler::change_table_ptr(table_arg, share);
  child_->change_table_ptr(table_arg, share);
}

int ForwardingHandler::open(const char* name, int mode, uint test_if_locked) {
  if (!child_open_) {
    const int error = child_->ha_open(table, name, mode, test_if_locked | HA_OPEN_NO_PSI_CALL, &table->mem_root);
    if (error != 0) return error;
  }
  child_open_ = true;
  TakeOpened();
  return 0;
}
int ForwardingHandler::close() {
  child_open_ = false;
  return child_->ha_close();
}
int ForwardingHandler::reset() { return child_->ha_reset(); }
int ForwardingHandler::external_lock(THD* thd, int lock_type) {
  // As ha_external_lock, but for the audit event and the instrumentation, which the outer one has sent.
  const int error = child_->external_lock(thd, lock_type);
  if (error == 0 || lock_type == F_UNLCK) {
    child_->m_lock_type = lock_type;
    child_->cached_table_flags = child_->table_flags();
  }
  return error;
}
int ForwardingHandler::start_stmt(THD* thd, thr_lock_type lock_type) { return child_->start_stmt(thd, lock_type); }
uint ForwardingHandler::lock_count() const { return child_->lock_count(); }
THR_LOCK_DATA** ForwardingHandler::store_lock(THD* thd, THR_LOCK_DATA** to, thr_lock_type lock_type) {
  return child_->store_lock(thd, to, lock_type);
}
int ForwardingHandler::extra(enum ha_extra_function operation) { return child_->extra(operation); }
int ForwardingHandler::extra_opt(enum ha_extra_function operation, ulong argument) {
  return child_->extra_opt(operation, argument);
}
void ForwardingHandler::column_bitmaps_signal() { child_->column_bitmaps_signal(); }
void ForwardingHandler::init_table_handle_for_HANDLER() { child_->init_table_handle_for_HANDLER(); }
void ForwardingHandler::handler_stats_updated() {
  child_->handler_stats = handler_stats;
  child_->handler_stats_updated();
}
void ForwardingHandler::set_lock_type(enum thr_lock_type lock) { child_->set_lock_type(lock); }

int ForwardingHandler::info(uint flag) {
  const int error = child_->info(flag);
  stats = child_->stats;
  if ((flag & HA_STATUS_ERRKEY) != 0) errkey = child_->errkey;
  return error;
}
double ForwardingHandler::scan_time() { return child_->scan_time(); }
double ForwardingHandler::key_scan_time(uint index) { return child_->key_scan_time(index); }
double ForwardingHandler::avg_io_cost() { return child_->avg_io_cost(); }
double ForwardingHandler::read_time(uint index, uint ranges, ha_rows rows) {
  return child_->read_time(index, ranges, rows);
}
double ForwardingHandler::keyread_time(uint index, uint ranges, ha_rows rows) {
  return child_->keyread_time(index, ranges, rows);
}
ha_rows ForwardingHandler::records() { return child_->records(); }
ha_rows ForwardingHandler::records_in_range(uint index, const key_range* min_key, const key_range* max_key,
                                            page_range* pages) {
  return child_->records_in_range(index, min_key, max_key, pages);
}
ha_rows ForwardingHandler::estimate_rows_upper_bound() { return child_->estimate_rows_upper_bound(); }
void ForwardingHandler::get_dynamic_partition_info(PARTITION_STATS* stats_out, uint part_id) {
  child_->get_dynamic_partition_info(stats_out, part_id);
}

int ForwardingHandler::index_init(uint index, bool sorted) {
  PushRowidFilter();
  return child_->ha_index_init(index, sorted);
}
int ForwardingHandler::index_end() { return child_->ha_index_end(); }
int ForwardingHandler::index_read_map(uchar* buf, const uchar* key, key_part_map keypart_map,
                                      enum ha_rkey_function flag) {
  PushRange();
  return child_->index_read_map(buf, key, keypart_map, flag);
}
int ForwardingHandler::index_read_last_map(uchar* buf, const uchar* key, key_part_map keypart_map) {
  PushRange();
  return child_->index_read_last_map(buf, key, keypart_map);
}
int ForwardingHandler::index_read(uchar* buf, const uchar* key, uint key_length, enum ha_rkey_function flag) {
  PushRange();
  return child_->index_read(buf, key, key_length, flag);
}
int ForwardingHandler::index_read_last(uchar* buf, const uchar* key, uint key_length) {
  PushRange();
  return child_->index_read_last(buf, key, key_length);
}
int ForwardingHandler::index_next(uchar* buf) {
  PushRange();
  return child_->index_next(buf);
}
int ForwardingHandler::index_prev(uchar* buf) {
  PushRange();
  return child_->index_prev(buf);
}
int ForwardingHandler::index_first(uchar* buf) {
  PushRange();
  return child_->index_first(buf);
}
int ForwardingHandler::index_last(uchar* buf) {
  PushRange();
  return child_->index_last(buf);
}
int ForwardingHandler::index_next_same(uchar* buf, const uchar* key, uint key_length) {
  PushRange();
  return child_->index_next_same(buf, key, key_length);
}
int ForwardingHandler::rnd_init(bool scan) { return child_->ha_rnd_init(scan); }
int ForwardingHandler::rnd_end() { return child_->ha_rnd_end(); }
int ForwardingHandler::rnd_next(uchar* buf) { return child_->rnd_next(buf); }
int ForwardingHandler::rnd_pos(uchar* buf, uchar* position) { return child_->rnd_pos(buf, position); }
void ForwardingHandler::position(const uchar* record) {
  child_->position(record);
  memcpy(ref, child_->ref, ref_length);
}
int ForwardingHandler::cmp_ref(const uchar* ref1, const uchar* ref2) { return child_->cmp_ref(ref1, ref2); }
int ForwardingHandler::ft_init() {
  child_->ft_handler = ft_handler;
  return child_->ft_init();
}
void ForwardingHandler::ft_end() {
  child_->ft_end();
  child_->ft_handler = nullptr;
}
FT_INFO* ForwardingHandler::ft_init_ext(uint flags, uint index, String* key) {
  return child_->ft_init_ext(flags, index, key);
}
int ForwardingHandler::ft_read(uchar* buf) {
  child_->ft_handler = ft_handler;
  return child_->ft_read(buf);
}
bool ForwardingHandler::was_semi_consistent_read() { return child_->was_semi_consistent_read(); }
void ForwardingHandler::try_semi_consistent_read(bool yes) { child_->try_semi_consistent_read(yes); }
void ForwardingHandler::unlock_row() { child_->unlock_row(); }

Item* ForwardingHandler::idx_cond_push(uint key_number, Item* condition) {
  Item* rest = child_->idx_cond_push(key_number, condition);
  pushed_idx_cond = child_->pushed_idx_cond;
  pushed_idx_cond_keyno = child_->pushed_idx_cond_keyno;
  in_range_check_pushed_down = child_->in_range_check_pushed_down;
  return rest;
}
void ForwardingHandler::cancel_pushed_idx_cond() {
  handler::cancel_pushed_idx_cond();
  child_->cancel_pushed_idx_cond();
}

bool ForwardingHandler::rowid_filter_push(Rowid_filter* filter) {
  const bool refused = child_->rowid_filter_push(filter);
  pushed_rowid_filter = child_->pushed_rowid_filter;
  return refused;
}

ha_rows ForwardingHandler::multi_range_read_info_const(uint key_number, RANGE_SEQ_IF* seq, void* seq_param, uint ranges,
                                                       uint* buffer_size, uint* mode, Cost_estimate* cost) {
  return child_->multi_range_read_info_const(key_number, seq, seq_param, ranges, buffer_size, mode, cost);
}
ha_rows ForwardingHandler::multi_range_read_info(uint key_number, uint ranges, uint keys, uint key_parts,
                                                 uint* buffer_size, uint* mode, Cost_estimate* cost) {
  return child_->multi_range_read_info(key_number, ranges, keys, key_parts, buffer_size, mode, cost);
}
int ForwardingHandler::multi_range_read_init(RANGE_SEQ_IF* seq, void* seq_param, uint ranges, uint mode,
                                             HANDLER_BUFFER* buffer) {
  PushRowidFilter();
  const int error = child_->multi_range_read_init(seq, seq_param, ranges, mode, buffer);
  // DS-MRR takes the filter over when it is to read by rowid, where InnoDB can't use it.
  pushed_rowid_filter = child_->pushed_rowid_filter;
  rowid_filter_is_active = child_->rowid_filter_is_active;
  return error;
}
int ForwardingHandler::multi_range_read_next(range_id_t* range_info) {
  return child_->multi_range_read_next(range_info);
}
int ForwardingHandler::multi_range_read_explain_info(uint mode, char* text, size_t size) {
  return child_->multi_range_read_explain_info(mode, text, size);
}

// ha_sequence writes without the server's wrapper, so without its mark: a sequence's rows take part in no transaction.
inline void ForwardingHandler::MarkChildReadWrite() {
  if (table_share->table_type != TABLE_TYPE_SEQUENCE) MarkReadWrite(child_);
}

int ForwardingHandler::write_row(const uchar* buf) {
  MarkChildReadWrite();
  PushAutoIncrement();
  const int error = child_->write_row(buf);
  TakeAutoIncrement();
  return error;
}
int ForwardingHandler::WriteRowWithId(const uchar* buf, bool is_counted) {
  MarkChildReadWrite();
  if (is_counted) {
    // Else InnoDB would lock its counter once more for each row, to move it past the id, and wait for an INSERT ...
    // SELECT that holds the counter.
    Field* const id = std::exchange(table->next_number_field, nullptr);
    const int error = child_->write_row(buf);
    table->next_number_field = id;
    return error;
  }
  // The child must take the id for an explicit value, not continue an interval of its own.
  child_->next_insert_id = 0;
  child_->insert_id_for_cur_row = 0;
  return child_->write_row(buf);
}
int ForwardingHandler::update_row(const uchar* old_data, const uchar* new_data) {
  MarkChildReadWrite();
  return child_->update_row(old_data, new_data);
}
int ForwardingHandler::delete_row(const uchar* buf) {
  MarkChildReadWrite();
  return child_->delete_row(buf);
}
void ForwardingHandler::start_bulk_insert(ha_rows rows, uint flags) { child_->ha_start_bulk_insert(rows, flags); }
int ForwardingHandler::end_bulk_insert() { return child_->ha_end_bulk_insert(); }
int ForwardingHandler::delete_all_rows() { return child_->ha_delete_all_rows(); }
int ForwardingHandler::truncate() {
  const int error = child_->ha_truncate();
  if (error == 0) TakeOpened();
  return error;
}
int ForwardingHandler::reset_auto_increment(ulonglong value) { return child_->ha_reset_auto_increment(value); }
void ForwardingHandler::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                                           ulonglong* reserved) {
  child_->get_auto_increment(offset, increment, wanted, first, reserved);
}
void ForwardingHandler::release_auto_increment() { child_->ha_release_auto_increment(); }
bool ForwardingHandler::autoinc_lock_mode_stmt_unsafe() const { return child_->autoinc_lock_mode_stmt_unsafe(); }

int ForwardingHandler::create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) {
  return child_->create(name, form, create_info);
}
int ForwardingHandler::delete_table(const char* name) { return child_->delete_table(name); }
void ForwardingHandler::drop_table(const char* name) { child_->drop_table(name); }
int ForwardingHandler::rename_table(const char* from, const char* to) { return child_->rename_table(from, to); }
void ForwardingHandler::update_create_info(HA_CREATE_INFO* create_info) { child_->update_create_info(create_info); }
void ForwardingHandler::append_create_info(String* packet) { child_->append_create_info(packet); }
int ForwardingHandler::discard_or_import_tablespace(my_bool discard) {
  return child_->ha_discard_or_import_tablespace(discard);
}
bool ForwardingHandler::check_if_incompatible_data(HA_CREATE_INFO* create_info, uint table_changes) {
  return child_->check_if_incompatible_data(create_info, table_changes);
}
enum_alter_inplace_result ForwardingHandler::check_if_supported_inplace_alter(TABLE* altered_table,
                                                                              Alter_inplace_info* info) {
  return child_->check_if_supported_inplace_alter(altered_table, info);
}
bool ForwardingHandler::prepare_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) {
  return child_->ha_prepare_inplace_alter_table(altered_table, info);
}
bool ForwardingHandler::inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) {
  return child_->ha_inplace_alter_table(altered_table, info);
}
bool ForwardingHandler::commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) {
  return child_->ha_commit_inplace_alter_table(altered_table, info, commit);
}

int ForwardingHandler::check(THD* thd, HA_CHECK_OPT* options) { return child_->check(thd, options); }
int ForwardingHandler::check_for_upgrade(HA_CHECK_OPT* options) { return child_->check_for_upgrade(options); }
int ForwardingHandler::repair(THD* thd, HA_CHECK_OPT* options) { return child_->repair(thd, options); }
int ForwardingHandler::optimize(THD* thd, HA_CHECK_OPT* options) { return child_->optimize(thd, options); }
int ForwardingHandler::analyze(THD* thd, HA_CHECK_OPT* options) { return child_->analyze(thd, options); }
bool ForwardingHandler::is_crashed() const { return child_->is_crashed(); }
int ForwardingHandler::disable_indexes(key_map map, bool persist) { return child_->disable_indexes(map, persist); }
int ForwardingHandler::enable_indexes(key_map map, bool persist) { return child_->enable_indexes(map, persist); }
int ForwardingHandler::indexes_are_disabled() { return child_->indexes_are_disabled(); }
bool ForwardingHandler::is_fk_defined_on_table_or_index(uint index) {
  return child_->is_fk_defined_on_table_or_index(index);
}
char* ForwardingHandler::get_foreign_key_create_info() { return child_->get_foreign_key_create_info(); }
void ForwardingHandler::free_foreign_key_create_info(char* text) { child_->free_foreign_key_create_info(text); }
bool ForwardingHandler::can_switch_engines() { return child_->can_switch_engines(); }
int ForwardingHandler::get_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
  return child_->get_foreign_key_list(thd, list);
}
int ForwardingHandler::get_parent_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) {
  return child_->get_parent_foreign_key_list(thd, list);
}
bool ForwardingHandler::referenced_by_foreign_key() const noexcept { return child_->referenced_by_foreign_key(); }
uint8 ForwardingHandler::table_cache_type() { return child_->table_cache_type(); }
my_bool ForwardingHandler::register_query_cache_table(THD* thd, const char* table_key, uint key_length,
                                                      qc_engine_callback* callback, ulonglong* engine_data) {
  return child_->register_query_cache_table(thd, table_key, key_length, callback, engine_data);
}
bool ForwardingHandler::get_error_message(int error, String* buf) { return child_->get_error_message(error, buf); }
bool ForwardingHandler::get_foreign_dup_key(char* table_name, uint table_name_size, char* key_name,
                                            uint key_name_size) {
  return child_->get_foreign_dup_key(table_name, table_name_size, key_name, key_name_size);
}
bool ForwardingHandler::is_fatal_error(int error, uint flags) { return child_->is_fatal_error(error, flags); }

}  // namespace quarry
