// ForwardingHandler: the whole handler interface of MariaDB 10.11, delegated to a child handler of the same table.
//
// Dull on purpose: a method here only calls the child's, after and before the members that both sides read are made
// equal. What Quarry changes stands in ha_quarry.cc; docs/internals/handler.md says why.
//
// Invariants:
//  - Row and index methods call the child's own virtuals, not its ha_* wrappers: the server's wrappers around *this*
//    do statistics, virtual columns and binary logging, after ha_quarry has decoded the row.
//  - Set-up calls (open, index_init, rnd_init, reset, ...) go through the child's ha_* wrappers, which keep its state.
//  - What is not delegated keeps the server's base implementation, which calls back into this object: read_range_*,
//    calculate_checksum, update_first_row, index_read_idx_map, lookup handlers.
// Thread-safety: as every handler: one thread at a time, the one that uses the TABLE.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

class ForwardingHandler : public handler {
 public:
  ForwardingHandler(handlerton* hton, TABLE_SHARE* share) : handler(hton, share) {}
  ~ForwardingHandler() override;
  ForwardingHandler(const ForwardingHandler&) = delete;
  ForwardingHandler& operator=(const ForwardingHandler&) = delete;

  [[nodiscard]] handler* child() const { return child_; }

  // What the table is.
  ulonglong table_version() const override;
  enum row_type get_row_type() const override;
  const char* index_type(uint key_number) override;
  Table_flags table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  uint max_supported_record_length() const override;
  uint max_supported_keys() const override;
  uint max_supported_key_parts() const override;
  uint max_supported_key_length() const override;
  uint max_supported_key_part_length() const override;
  uint min_record_length(uint options) const override;
  const key_map* keys_to_use_for_scanning() override;
  alter_table_operations alter_table_flags(alter_table_operations flags) override;
  bool can_convert_nocopy(const Field& field, const Column_definition& new_field) const override;
  Compare_keys compare_key_parts(const Field& old_field, const Column_definition& new_field,
                                 const KEY_PART_INFO& old_part, const KEY_PART_INFO& new_part) const override;

  // Life of the handler.
  bool set_ha_share_ref(Handler_share** share) override;
  void change_table_ptr(TABLE* table_arg, TABLE_SHARE* share) override;
  int open(const char* name, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int external_lock(THD* thd, int lock_type) override;
  int start_stmt(THD* thd, thr_lock_type lock_type) override;
  uint lock_count() const override;
  THR_LOCK_DATA** store_lock(THD* thd, THR_LOCK_DATA** to, thr_lock_type lock_type) override;
  int extra(enum ha_extra_function operation) override;
  int extra_opt(enum ha_extra_function operation, ulong argument) override;
  void column_bitmaps_signal() override;
  void init_table_handle_for_HANDLER() override;
  void handler_stats_updated() override;
  void set_lock_type(enum thr_lock_type lock) override;

  // Figures for the optimizer.
  int info(uint flag) override;
  double scan_time() override;
  double key_scan_time(uint index) override;
  double avg_io_cost() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
  double keyread_time(uint index, uint ranges, ha_rows rows) override;
  ha_rows records() override;
  ha_rows records_in_range(uint index, const key_range* min_key, const key_range* max_key, page_range* pages) override;
  ha_rows estimate_rows_upper_bound() override;
  void get_dynamic_partition_info(PARTITION_STATS* stats_out, uint part_id) override;

  // Reading.
  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar* buf, const uchar* key, key_part_map keypart_map, enum ha_rkey_function flag) override;
  int index_read_last_map(uchar* buf, const uchar* key, key_part_map keypart_map) override;
  int index_read(uchar* buf, const uchar* key, uint key_length, enum ha_rkey_function flag) override;
  int index_read_last(uchar* buf, const uchar* key, uint key_length) override;
  int index_next(uchar* buf) override;
  int index_prev(uchar* buf) override;
  int index_first(uchar* buf) override;
  int index_last(uchar* buf) override;
  int index_next_same(uchar* buf, const uchar* key, uint key_length) override;
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar* buf) override;
  int rnd_pos(uchar* buf, uchar* position) override;
  void position(const uchar* record) override;
  int cmp_ref(const uchar* ref1, const uchar* ref2) override;
  int ft_init() override;
  void ft_end() override;
  FT_INFO* ft_init_ext(uint flags, uint index, String* key) override;
  int ft_read(uchar* buf) override;
  bool was_semi_consistent_read() override;
  void try_semi_consistent_read(bool yes) override;
  void unlock_row() override;
  Item* idx_cond_push(uint key_number, Item* condition) override;
  void cancel_pushed_idx_cond() override;
  bool rowid_filter_push(Rowid_filter* filter) override;
  ha_rows multi_range_read_info_const(uint key_number, RANGE_SEQ_IF* seq, void* seq_param, uint ranges,
                                      uint* buffer_size, uint* mode, Cost_estimate* cost) override;
  ha_rows multi_range_read_info(uint key_number, uint ranges, uint keys, uint key_parts, uint* buffer_size, uint* mode,
                                Cost_estimate* cost) override;
  int multi_range_read_init(RANGE_SEQ_IF* seq, void* seq_param, uint ranges, uint mode,
                            HANDLER_BUFFER* buffer) override;
  int multi_range_read_next(range_id_t* range_info) override;
  int multi_range_read_explain_info(uint mode, char* text, size_t size) override;

  // Writing.
  int write_row(const uchar* buf) override;
  int update_row(const uchar* old_data, const uchar* new_data) override;
  int delete_row(const uchar* buf) override;
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  int delete_all_rows() override;
  int truncate() override;
  int reset_auto_increment(ulonglong value) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                          ulonglong* reserved) override;
  void release_auto_increment() override;
  bool autoinc_lock_mode_stmt_unsafe() const override;

  // Definition.
  int create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) override;
  int delete_table(const char* name) override;
  void drop_table(const char* name) override;
  int rename_table(const char* from, const char* to) override;
  void update_create_info(HA_CREATE_INFO* create_info) override;
  void append_create_info(String* packet) override;
  int discard_or_import_tablespace(my_bool discard) override;
  bool check_if_incompatible_data(HA_CREATE_INFO* create_info, uint table_changes) override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE* altered_table, Alter_inplace_info* info) override;
  bool prepare_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) override;
  bool inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) override;
  bool commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) override;

  // Administration, foreign keys, query cache, errors.
  int check(THD* thd, HA_CHECK_OPT* options) override;
  int check_for_upgrade(HA_CHECK_OPT* options) override;
  int repair(THD* thd, HA_CHECK_OPT* options) override;
  int optimize(THD* thd, HA_CHECK_OPT* options) override;
  int analyze(THD* thd, HA_CHECK_OPT* options) override;
  bool is_crashed() const override;
  int disable_indexes(key_map map, bool persist) override;
  int enable_indexes(key_map map, bool persist) override;
  int indexes_are_disabled() override;
  bool is_fk_defined_on_table_or_index(uint index) override;
  char* get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char* text) override;
  bool can_switch_engines() override;
  int get_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) override;
  int get_parent_foreign_key_list(THD* thd, List<FOREIGN_KEY_INFO>* list) override;
  bool referenced_by_foreign_key() const noexcept override;
  uint8 table_cache_type() override;
  my_bool register_query_cache_table(THD* thd, const char* table_key, uint key_length, qc_engine_callback* callback,
                                     ulonglong* engine_data) override;
  bool get_error_message(int error, String* buf) override;
  bool get_foreign_dup_key(char* table_name, uint table_name_size, char* key_name, uint key_name_size) override;
  bool is_fatal_error(int error, uint flags) override;

 protected:
  /// Must be called once, right after construction. False: InnoDB is not there.
  bool AdoptChild(handler* child);
  /// What the child's open set and the server reads from this object: ref_length, stats, key_used_on_scan, ...
  void TakeOpened();
  /// Makes `copy` an open handler over a clone of this child. False: out of memory, or the clone cannot be opened.
  bool CloneInto(ForwardingHandler* copy, const char* name, MEM_ROOT* mem_root);
  /// write_row for a row whose AUTO_INCREMENT column this object has filled in already. `is_counted`: the child's
  /// counter is past the id.
  int WriteRowWithId(const uchar* buf, bool is_counted);

 private:
  void PushRange();
  void PushRowidFilter();
  void PushAutoIncrement();
  void MarkChildReadWrite();
  void TakeAutoIncrement();

  handler* child_ = nullptr;
  bool child_open_ = false;  ///< AdoptOpenChild was called
};

}  // namespace quarry
