// The handler of a Quarry table: InnoDB's, but for the BLOB, TEXT and JSON columns whose payload lives in segments.
//
// Rows go through RowRewriter in both directions; transactions through Transaction; everything else is delegated by
// ForwardingHandler. docs/internals/handler.md says why the methods that matter differ, and who may look at a row.
//
// Invariants:
//  - No row reaches InnoDB with a head whose extent is not noted in the session's Transaction.
//  - No row leaves this handler with a head in a column of the read set.
//  - A table that InnoDB makes durable by itself (the copy of an ALTER) has its extents synced before.
//  - Nothing is thrown into the server: every handler is made by Make (guarded_handler.cc).
// Thread-safety: as every handler: one thread at a time.
#pragma once

#include "handler/forwarding_handler.h"
#include "handler/table_share.h"
#include "rows/read_ahead.h"
#include "rows/row_appender.h"
#include "rows/row_rewriter.h"
#include "server/child_table_id.h"
#include "server/ha_error.h"

namespace quarry {

class QuarryHandler : public ForwardingHandler {
 public:
  QuarryHandler(handlerton* hton, TABLE_SHARE* share) : ForwardingHandler(hton, share) {}
  /// In `mem_root`. Null: there is no memory.
  [[nodiscard]] static QuarryHandler* Make(TABLE_SHARE* share, MEM_ROOT* mem_root);

  /// Makes the child. False: InnoDB is not there.
  bool Initialise(MEM_ROOT* mem_root);
  /// Of an open handler.
  [[nodiscard]] const ColumnLayout& layout() const { return share_->layout(); }

  Table_flags table_flags() const override;

  handler* clone(const char* name, MEM_ROOT* mem_root) override;
  int open(const char* name, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int external_lock(THD* thd, int lock_type) override;
  int start_stmt(THD* thd, thr_lock_type lock_type) override;
  int extra(enum ha_extra_function operation) override;
  int info(uint flag) override;

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
  int read_range_first(const key_range* start_key, const key_range* end_key, bool eq_range, bool sorted) override;
  int read_range_next() override;
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar* buf) override;
  int rnd_pos(uchar* buf, uchar* position) override;
  int ft_read(uchar* buf) override;
  ha_rows multi_range_read_info_const(uint key_number, RANGE_SEQ_IF* seq, void* seq_param, uint ranges,
                                      uint* buffer_size, uint* mode, Cost_estimate* cost) override;
  ha_rows multi_range_read_info(uint key_number, uint ranges, uint keys, uint key_parts, uint* buffer_size, uint* mode,
                                Cost_estimate* cost) override;
  int multi_range_read_init(RANGE_SEQ_IF* seq, void* seq_param, uint ranges, uint mode,
                            HANDLER_BUFFER* buffer) override;
  int multi_range_read_next(range_id_t* range_info) override;
  int multi_range_read_explain_info(uint mode, char* text, size_t size) override;

  int write_row(const uchar* buf) override;
  int update_row(const uchar* old_data, const uchar* new_data) override;
  int delete_row(const uchar* buf) override;
  int end_bulk_insert() override;
  int truncate() override;
  int reset_auto_increment(ulonglong value) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first,
                          ulonglong* reserved) override;
  bool autoinc_lock_mode_stmt_unsafe() const override;

  int create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) override;
  int delete_table(const char* name) override;
  int rename_table(const char* from, const char* to) override;
  int discard_or_import_tablespace(my_bool discard) override;
  bool check_if_incompatible_data(HA_CREATE_INFO* create_info, uint table_changes) override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE* altered_table, Alter_inplace_info* info) override;
  bool prepare_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) override;
  bool commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) override;

  int check(THD* thd, HA_CHECK_OPT* options) override;

  void print_error(int error, myf flags) override;

 private:
  /// Once the child is open. Error: kOutOfMemory.
  Status AttachToTable();
  /// Null: there is no memory.
  QuarryShare* OpenShare();
  int Fail(const Status& status, Action action);

  /// Runs `read` (a call of the child that fills `buf`) and decodes the row.
  template <typename Read>
  int ReadRow(uchar* buf, Read read);
  /// The same for a row of a scan, which went on by `step`.
  template <typename Read>
  int ScanRow(uchar* buf, ScanStep step, Read read);
  int Decode(uchar* buf);
  [[nodiscard]] bool IsBeyondRange();
  int NextOfRanges(range_id_t* range_info);
  void BeginStatement(THD* thd, bool locks_rows, bool locks_nothing);
  /// What INSERT (`old_data` null) and UPDATE share: `encode` puts heads into the row, `write` gives it to InnoDB. What
  /// was appended for a row that InnoDB refuses is taken back.
  template <typename Encode, typename Write>
  int ChangeRow(const uchar* old_data, const uchar* new_data, const Encode& encode, const Write& write);

  /// The layout, with what the prefix limit of the table makes of its guaranteed prefixes.
  [[nodiscard]] ColumnLayout LimitedLayout();
  /// The handlers of all partitions of the table; of a table without partitions this one.
  std::vector<QuarryHandler*> Siblings();
  /// The fields of `record` that the handler of another partition handed out as they came from InnoDB become values.
  Status ShowFromElsewhere(const uchar* record);

  /// Makes this session's appends durable, for tables that never reach the commit hook.
  int SyncForDdl();
  bool CommitRebuild(TABLE* altered_table, Alter_inplace_info* info);
  /// A table or partition whose store must follow its heads to another InnoDB table.
  struct Rebuild {
    QuarryHandler* file;
    TableId before;
    TableId after;  ///< 0: it keeps its InnoDB table
  };
  std::vector<QuarryHandler*> CommittedTogether(const Alter_inplace_info* info);
  Status BeginRebuilds(const Alter_inplace_info* info, std::vector<Rebuild>* rebuilds);
  Status BeginRebuild(const inplace_alter_handler_ctx* context, Rebuild* rebuild);
  static void FinishRebuild(const Rebuild& rebuild, bool failed);

  // For a mark pass (ha_quarry_gc.cc).
  int BeginGcScan(bool scan);
  int MarkNextRow(uchar* buf);
  int RefuseInGcScan();
  /// For a sample: the child was asked for a row, and answered `error`.
  int EndSampleRow(uchar* buf, int error);

  // What CHECK TABLE is to answer.
  int CheckRowsAndValues(THD* thd, HA_CHECK_OPT* options);
  int CheckValues(THD* thd);
  void CheckLaterPartitions(THD* thd, HA_CHECK_OPT* options);

  [[nodiscard]] bool PrefetchesIds(THD* thd) const;
  uint64_t ReserveIds(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong* first, ulonglong* reserved);
  /// The child's write_row, with an id from the shared range when the session asks for that.
  int WriteChildRow(THD* thd, const uchar* buf);
  int UpdateChildRow(const uchar* old_data, const uchar* new_data);
  /// A row with this id is about to be written: the shared range must not give it again.
  void NoteExplicitId(Field* field);

  QuarryShare* share_ = nullptr;  ///< owned by the TABLE_SHARE (or ha_partition's)
  RowRewriter rewriter_;
  RowAppender appender_;
  ReadAhead read_ahead_;
  ReadOptions read_options_;
  bool user_temporary_ = false;
  bool virtual_on_managed_ = false;  ///< some VIRTUAL column is computed from a managed one
  bool reads_range_ = false;         ///< the server compares what is read with the end of its range, and may drop it
  bool child_range_reads_ = false;   ///< the multi-range read in progress is the child's own
  bool prefetching_ids_ = false;     ///< get_auto_increment was called for a range shared by all sessions
  bool id_is_counted_ = false;       ///< the last range of get_auto_increment: InnoDB's counter is past it
  bool child_reserved_ids_ = false;  ///< the child has reserved ids in this statement
  bool rebuilds_ = false;            ///< the ALTER in progress rebuilds the table in place
  GcScan* gc_scan_ = nullptr;        ///< not null: the statement is a mark pass's
  ValueSample* sample_ = nullptr;    ///< not null: it is a sample's
  uint32_t prefix_limit_to_state_ = kNoPrefixLimit;  ///< by the ALTER in progress
};

}  // namespace quarry
