#include "handler/ha_quarry.h"

#include <partition_info.h>
#include <sql_partition.h>

#include "background/trash_sweep.h"
#include "columns/encryption.h"
#include "quarry/memory_guard.h"
#include "rows/gc_scan.h"
#include "rows/value_sample.h"
#include "server/child_handler.h"
#include "server/ha_error.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"
#include "server/variables.h"
#include "transaction/append_gate.h"
#include "transaction/transaction.h"

namespace quarry {

// ---------------------------------------------------------------- life

bool QuarryHandler::Initialise(MEM_ROOT* mem_root) { return AdoptChild(NewChildHandler(table_share, mem_root)); }

handler::Table_flags QuarryHandler::table_flags() const {
  // HA_CAN_EXPORT: FLUSH TABLES ... FOR EXPORT would export rows without their payload.
  // HA_REUSES_FILE_NAMES: t as QUARRY and t as InnoDB are one name in InnoDB's dictionary, so an ALTER ... ENGINE must
  // move the old table out of the way first. (storage_ht would do that too, but SHOW CREATE TABLE takes the list of
  // known options from it, and would print ours as comments.)
  return (ForwardingHandler::table_flags() & ~static_cast<Table_flags>(HA_CAN_EXPORT)) | HA_REUSES_FILE_NAMES;
}

handler* QuarryHandler::clone(const char* name, MEM_ROOT* mem_root) {
  QuarryHandler* const copy = Make(table_share, mem_root);
  if (copy == nullptr) return nullptr;
  if (CloneInto(copy, name, mem_root)) return copy;
  delete copy;
  return nullptr;
}

QuarryShare* QuarryHandler::OpenShare() {
  lock_shared_ha_data();
  auto* share = static_cast<QuarryShare*>(get_ha_share_ptr());
  if (share == nullptr) {
    const Status made = OrOutOfMemory([&] {  // the server's lock must be given back
      share = new QuarryShare(ResolveColumns(table, user_temporary_));
    });
    if (made.ok()) set_ha_share_ptr(share);
  }
  unlock_shared_ha_data();
  return share;
}

int QuarryHandler::open(const char* name, int mode, uint test_if_locked) {
  if (const int error = ForwardingHandler::open(name, mode, test_if_locked); error != 0) {
    const Status key = CheckKey(table_share);
    if (key.ok()) return error;
    // InnoDB said 'corrupted. Please drop the table and recreate', which nobody should do.
    ha_thd()->clear_error();
    return Fail(key, Action::kOpen);
  }
  if (OrOutOfMemory([this] { return AttachToTable(); }).ok()) return 0;
  close();
  return HA_ERR_OUT_OF_MEM;
}

Status QuarryHandler::AttachToTable() {
  user_temporary_ = ChildTableIsTemporary(child());
  share_ = OpenShare();
  if (share_ == nullptr) return Status::OutOfMemory();
  rewriter_.Attach(table, &share_->layout(), child());
  appender_.Attach(table, child());
  read_ahead_.Attach(this, table, child(), &rewriter_);
  read_options_.report = read_ahead_.report();
  virtual_on_managed_ = rewriter_.active() && table->vfield != nullptr;
  if (const Result<ChildTable> child_table = ReadChildTable(child()); child_table.ok()) OfferForSelfCheck(*child_table);
  return Status::Ok();
}

int QuarryHandler::close() {
  read_ahead_.Close();
  rewriter_.ForgetRow();
  appender_.ForgetStore();
  share_ = nullptr;
  return ForwardingHandler::close();
}

int QuarryHandler::reset() {
  read_ahead_.Close();
  const int error = ForwardingHandler::reset();
  rewriter_.ReleaseValues();
  child_range_reads_ = false;
  child_reserved_ids_ = false;
  gc_scan_ = nullptr;
  sample_ = nullptr;
  ht = QuarryHandlerton();
  return error;
}

void QuarryHandler::BeginStatement(THD* thd, bool locks_rows, bool locks_nothing) {
  ht = QuarryHandlerton();
  gc_scan_ = GcScan::Current();
  if (gc_scan_ != nullptr) gc_scan_->NoteKey(EncryptionKeyOf(table_share));
  if (!rewriter_.active()) return;
  sample_ = ValueSample::Current();
  rewriter_.BeginStatement(thd, locks_rows, locks_rows || table_share->tmp_table != NO_TMP_TABLE);
  read_options_.read_batch_bytes = ReadBatchBytes(thd, layout().has_ndb_defaults);
  appender_.BeginStatement(WriteBatchBytes(thd, layout().has_ndb_defaults));
  read_ahead_.BeginStatement(thd, locks_nothing && sample_ == nullptr, read_options_);
}

int QuarryHandler::external_lock(THD* thd, int lock_type) {
  if (lock_type == F_UNLCK) {
    read_ahead_.Close();
    const int sync_error = appender_.owes_sync() ? SyncForDdl() : 0;
    const int error = ForwardingHandler::external_lock(thd, lock_type);
    return error != 0 ? error : sync_error;
  }
  BeginStatement(thd, lock_type == F_WRLCK, lock_type == F_RDLCK && table->reginfo.lock_type == TL_READ);
  const int error = ForwardingHandler::external_lock(thd, lock_type);
  if (error == 0 && lock_type == F_WRLCK && rewriter_.active()) Transaction::JoinWhereSavepointsAre(thd);
  return error;
}

int QuarryHandler::start_stmt(THD* thd, thr_lock_type lock_type) {
  // Under LOCK TABLES ... WRITE a plain SELECT is a consistent read to InnoDB, whatever the table is locked for.
  BeginStatement(thd, get_lock_type() == F_WRLCK && lock_type >= TL_FIRST_WRITE, lock_type == TL_READ);
  const int error = ForwardingHandler::start_stmt(thd, lock_type);
  if (error == 0 && rewriter_.active()) Transaction::JoinWhereSavepointsAre(thd);
  return error;
}

int QuarryHandler::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_FLUSH:
      rewriter_.ForgetRow();
      break;
    case HA_EXTRA_END_COPY: {
      // InnoDB makes the copy durable by itself, before any commit. (INSERT ... SELECT comes here too and commits.)
      const enum_sql_command command = ha_thd()->lex->sql_command;
      if (command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT) break;
      if (const int error = SyncForDdl(); error != 0) return error;
      break;
    }
    default:
      break;
  }
  return ForwardingHandler::extra(operation);
}

int QuarryHandler::SyncForDdl() {
  Transaction* transaction = Transaction::Find(ha_thd());
  appender_.NoteSynced();
  if (transaction == nullptr || transaction->unsynced()->empty()) return 0;
  if (const Status status = transaction->Sync(); !status.ok()) return Fail(status, Action::kSync);
  plugin_counters.ddl_syncs.fetch_add(1, std::memory_order_relaxed);
  transaction->unsynced()->Clear();
  return 0;
}

int QuarryHandler::Fail(const Status& status, Action action) { return ReportStatus(status, action, table_share); }

void QuarryHandler::print_error(int error, myf flags) {
  if (!IsReported(ha_thd(), error)) handler::print_error(error, flags);
}

// ---------------------------------------------------------------- reading

template <typename Read>
inline int QuarryHandler::ReadRow(uchar* buf, Read read) {
  if (gc_scan_ != nullptr) return RefuseInGcScan();
  if (!rewriter_.active()) return read();
  if (sample_ != nullptr) {
    rewriter_.BeginMark(buf);
    return EndSampleRow(buf, read());
  }
  // Of an index alone InnoDB fills in what is in the index, and no managed column ever is, but the read set may name
  // one (as the base of an indexed STORED column). It must not be looked at: short rows come out of InnoDB's prefetch
  // cache with whatever was in its memory between the columns that were asked for.
  if (keyread_enabled() && !rewriter_.whole_row()) {
    rewriter_.ForgetRow();
    return read();
  }
  rewriter_.BeginRead(buf);
  if (const int error = read(); error != 0) {
    rewriter_.AbandonRead();
    return error;
  }
  return Decode(buf);
}

template <typename Read>
inline int QuarryHandler::ScanRow(uchar* buf, ScanStep step, Read read) {
  const int error = ReadRow(buf, read);
  if (error == 0) {
    read_ahead_.NoteRow(step);
  } else {
    read_ahead_.EndScan();
  }
  return error;
}

int QuarryHandler::Decode(uchar* buf) {
  if (IsBeyondRange()) {
    rewriter_.DropRow(buf);
    return 0;
  }
  const Status status = rewriter_.DecodeRow(buf, read_options_);
  return status.ok() ? 0 : Fail(status, Action::kRead);
}

int QuarryHandler::info(uint flag) {
  const int error = ForwardingHandler::info(flag);
  // For SHOW TABLE STATUS and INFORMATION_SCHEMA.TABLES alone: the figures by which plans are made stay InnoDB's.
  if (error != 0 || (flag & HA_STATUS_VARIABLE_EXTRA) == 0 || !rewriter_.active()) return error;
  const Result<ChildTable> child_table = ReadChildTable(child());
  if (!child_table.ok()) return 0;
  const Result<std::shared_ptr<Store>> store = Directory()->Find(child_table->id);
  if (!store.ok()) return 0;  // nothing was appended
  const StoreStats values = (*store)->GetStats();
  stats.data_file_length += values.live_bytes;
  stats.delete_length += values.dead_bytes;
  if (stats.records > 0) stats.mean_rec_length = static_cast<ulong>(stats.data_file_length / stats.records);
  return 0;
}

int QuarryHandler::index_init(uint index, bool sorted) {
  if (sample_ != nullptr) rewriter_.FetchAll();
  read_ahead_.BeginIndex(index, sorted);
  return ForwardingHandler::index_init(index, sorted);
}
int QuarryHandler::index_end() {
  read_ahead_.EndScan();
  return ForwardingHandler::index_end();
}
int QuarryHandler::index_read_map(uchar* buf, const uchar* key, key_part_map keypart_map, enum ha_rkey_function flag) {
  read_ahead_.BeginKey(ScanStart::From::kKey, key, keypart_map, flag);
  return ScanRow(buf, ScanStep::kNone, [&] { return ForwardingHandler::index_read_map(buf, key, keypart_map, flag); });
}
int QuarryHandler::index_read_last_map(uchar* buf, const uchar* key, key_part_map keypart_map) {
  read_ahead_.BeginKey(ScanStart::From::kKeyLast, key, keypart_map, HA_READ_PREFIX_LAST);
  return ScanRow(buf, ScanStep::kNone, [&] { return ForwardingHandler::index_read_last_map(buf, key, keypart_map); });
}
int QuarryHandler::index_read(uchar* buf, const uchar* key, uint key_length, enum ha_rkey_function flag) {
  read_ahead_.EndScan();
  return ReadRow(buf, [&] { return ForwardingHandler::index_read(buf, key, key_length, flag); });
}
int QuarryHandler::index_read_last(uchar* buf, const uchar* key, uint key_length) {
  read_ahead_.EndScan();
  return ReadRow(buf, [&] { return ForwardingHandler::index_read_last(buf, key, key_length); });
}
int QuarryHandler::index_next(uchar* buf) {
  return ScanRow(buf, ScanStep::kNext, [&] { return ForwardingHandler::index_next(buf); });
}
int QuarryHandler::index_prev(uchar* buf) {
  return ScanRow(buf, ScanStep::kPrev, [&] { return ForwardingHandler::index_prev(buf); });
}
int QuarryHandler::index_first(uchar* buf) {
  read_ahead_.BeginFrom(ScanStart::From::kFirst);
  return ScanRow(buf, ScanStep::kNone, [&] { return ForwardingHandler::index_first(buf); });
}
int QuarryHandler::index_last(uchar* buf) {
  read_ahead_.BeginFrom(ScanStart::From::kLast);
  return ScanRow(buf, ScanStep::kNone, [&] { return ForwardingHandler::index_last(buf); });
}
int QuarryHandler::index_next_same(uchar* buf, const uchar* key, uint key_length) {
  return ScanRow(buf, ScanStep::kNextSame, [&] { return ForwardingHandler::index_next_same(buf, key, key_length); });
}
// The row behind a range is read to see that the range has ended, and handed to no one: its values need not be read,
// nor be readable. But the server compares the row once more, and computes virtual columns of it first: neither may
// come upon an empty field.
bool QuarryHandler::IsBeyondRange() {
  return reads_range_ && end_range != nullptr && rewriter_.is_outside_of_keys() && table->vfield == nullptr &&
         compare_key(end_range) > 0;
}
int QuarryHandler::read_range_first(const key_range* start_key, const key_range* end_key, bool eq_range_arg,
                                    bool sorted) {
  reads_range_ = true;
  const int error = ForwardingHandler::read_range_first(start_key, end_key, eq_range_arg, sorted);
  reads_range_ = false;
  return error;
}
int QuarryHandler::read_range_next() {
  reads_range_ = true;
  const int error = ForwardingHandler::read_range_next();
  reads_range_ = false;
  return error;
}

int QuarryHandler::rnd_init(bool scan) {
  read_ahead_.EndScan();
  if (gc_scan_ != nullptr) return BeginGcScan(scan);
  if (sample_ != nullptr) rewriter_.FetchAll();
  if (scan) read_ahead_.BeginFrom(ScanStart::From::kTable);
  return ForwardingHandler::rnd_init(scan);
}
int QuarryHandler::rnd_end() {
  read_ahead_.CloseCursor();
  return ForwardingHandler::rnd_end();
}
int QuarryHandler::rnd_next(uchar* buf) {
  if (gc_scan_ != nullptr) return MarkNextRow(buf);
  return ScanRow(buf, ScanStep::kNext, [&] { return ForwardingHandler::rnd_next(buf); });
}
int QuarryHandler::rnd_pos(uchar* buf, uchar* position) {
  return ReadRow(buf, [&] { return ForwardingHandler::rnd_pos(buf, position); });
}
int QuarryHandler::ft_read(uchar* buf) {
  return ReadRow(buf, [&] { return ForwardingHandler::ft_read(buf); });
}

// Multi-range reads: the child's DS-MRR reads through clones of its own and fills record[0] like any read. But its
// wrappers compute virtual columns before the row is decoded, so a table where one may depend on a managed column
// uses the server's default, which goes through this object row by row. So does whatever is no DS-MRR.
ha_rows QuarryHandler::multi_range_read_info_const(uint key_number, RANGE_SEQ_IF* seq, void* seq_param, uint ranges,
                                                   uint* buffer_size, uint* mode, Cost_estimate* cost) {
  if (virtual_on_managed_) {
    return handler::multi_range_read_info_const(key_number, seq, seq_param, ranges, buffer_size, mode, cost);
  }
  return ForwardingHandler::multi_range_read_info_const(key_number, seq, seq_param, ranges, buffer_size, mode, cost);
}
ha_rows QuarryHandler::multi_range_read_info(uint key_number, uint ranges, uint keys, uint key_parts, uint* buffer_size,
                                             uint* mode, Cost_estimate* cost) {
  if (virtual_on_managed_) {
    return handler::multi_range_read_info(key_number, ranges, keys, key_parts, buffer_size, mode, cost);
  }
  return ForwardingHandler::multi_range_read_info(key_number, ranges, keys, key_parts, buffer_size, mode, cost);
}
int QuarryHandler::multi_range_read_init(RANGE_SEQ_IF* seq, void* seq_param, uint ranges, uint mode,
                                         HANDLER_BUFFER* buffer) {
  child_range_reads_ = !virtual_on_managed_ && (mode & HA_MRR_USE_DEFAULT_IMPL) == 0;
  if (child_range_reads_) return ForwardingHandler::multi_range_read_init(seq, seq_param, ranges, mode, buffer);
  return handler::multi_range_read_init(seq, seq_param, ranges, mode, buffer);
}
int QuarryHandler::multi_range_read_next(range_id_t* range_info) {
  if (!child_range_reads_) return handler::multi_range_read_next(range_info);
  return NextOfRanges(range_info);
}

// A row that several ranges match is read once: for the others DS-MRR says that record[0] holds it still. So the row
// handed out must be there still, and it is found out whether the child read another one.
int QuarryHandler::NextOfRanges(range_id_t* range_info) {
  if (gc_scan_ != nullptr) return RefuseInGcScan();
  if (sample_ != nullptr) return HA_ERR_WRONG_COMMAND;  // its statements have no such reads
  if (!rewriter_.active()) return ForwardingHandler::multi_range_read_next(range_info);
  if (keyread_enabled() && !rewriter_.whole_row()) {
    rewriter_.ForgetRow();
    return ForwardingHandler::multi_range_read_next(range_info);
  }
  uchar* const buf = table->record[0];
  rewriter_.BeginReadAgain(buf);
  if (const int error = ForwardingHandler::multi_range_read_next(range_info); error != 0) {
    rewriter_.AbandonRead();
    return error;
  }
  return rewriter_.IsSameRow(buf) ? 0 : Decode(buf);
}

int QuarryHandler::multi_range_read_explain_info(uint mode, char* text, size_t size) {
  if (virtual_on_managed_) return handler::multi_range_read_explain_info(mode, text, size);
  return ForwardingHandler::multi_range_read_explain_info(mode, text, size);
}

// ---------------------------------------------------------------- writing

Status QuarryHandler::ShowFromElsewhere(const uchar* record) {
  for (QuarryHandler* const sibling : Siblings()) {
    if (sibling != this) QUARRY_TRY(sibling->rewriter_.ShowToOther(record, read_options_));
  }
  return Status::Ok();
}

template <typename Encode, typename Write>
int QuarryHandler::ChangeRow(const uchar* old_data, const uchar* new_data, const Encode& encode, const Write& write) {
  THD* thd = ha_thd();
  if (!rewriter_.active()) {
    ClearReadWrite(thd, QuarryHandlerton());
    return write();
  }
  Transaction* transaction = Transaction::Of(thd);
  if (transaction == nullptr) return HA_ERR_OUT_OF_MEM;
  ClearReadWrite(thd, QuarryHandlerton());
  const AppendGate::Stay until_innodb_knows(transaction->gate());
  const Transaction::Mark mark = transaction->SetMark();
  const Status status = OrOutOfMemory([&]() -> Status {
    QUARRY_TRY(rewriter_.ShowToLog(old_data, new_data, read_options_));
    return encode();
  });
  const int error = status.ok() ? write() : Fail(status, Action::kAppend);
  if (error == 0 && old_data != nullptr) rewriter_.NoteReplaced(old_data, new_data, transaction);
  rewriter_.Restore();
  if (error != 0) transaction->RollbackTo(mark);
  return error;
}

int QuarryHandler::write_row(const uchar* buf) {
  return ChangeRow(
      nullptr, buf,
      [&] {
        // Of the row of another partition every column is a value by now, or something was not foreseen.
        if (table->part_info != nullptr && rewriter_.HoldsHead(buf)) QUARRY_TRY(ShowFromElsewhere(buf));
        return rewriter_.EncodeInsert(buf, &appender_);
      },
      [&] { return WriteChildRow(ha_thd(), buf); });
}

int QuarryHandler::update_row(const uchar* old_data, const uchar* new_data) {
  return ChangeRow(
      old_data, new_data, [&] { return rewriter_.EncodeUpdate(old_data, new_data, &appender_, read_options_); },
      [&] { return UpdateChildRow(old_data, new_data); });
}

int QuarryHandler::delete_row(const uchar* buf) {
  THD* thd = ha_thd();
  if (!rewriter_.active()) {
    ClearReadWrite(thd, QuarryHandlerton());
    return ForwardingHandler::delete_row(buf);
  }
  Transaction* transaction = Transaction::Of(thd);
  if (transaction == nullptr) return HA_ERR_OUT_OF_MEM;
  ClearReadWrite(thd, QuarryHandlerton());
  if (const Status status = rewriter_.ShowToLog(buf, nullptr, read_options_); !status.ok()) {
    return Fail(status, Action::kRead);
  }
  // InnoDB deletes the row under its cursor; what the record holds in a managed column does not matter to it.
  const int error = ForwardingHandler::delete_row(buf);
  if (error == 0) rewriter_.NoteDeleted(buf, transaction);
  return error;
}

int QuarryHandler::end_bulk_insert() {
  const int sync_error = appender_.owes_sync() ? SyncForDdl() : 0;
  const int error = ForwardingHandler::end_bulk_insert();
  // Galera replicates the rows of CREATE TABLE ... SELECT only when select_create::send_eof finds InnoDB's handlerton
  // here. BeginStatement and reset put ours back.
  THD* thd = ha_thd();
  if (thd->lex->sql_command == SQLCOM_CREATE_TABLE && WSREP(thd)) ht = InnodbHandlerton();
  return error != 0 ? error : sync_error;
}

int QuarryHandler::truncate() {
  rewriter_.ForgetRow();
  rewriter_.store_access()->Forget();
  const int error = ForwardingHandler::truncate();
  // The table has a new InnoDB id, hence a new store at the next append.
  appender_.ForgetStore();
  share_->ForgetIds();
  TrashSweep::Wake();
  return error;
}

}  // namespace quarry
