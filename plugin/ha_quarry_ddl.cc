// QuarryHandler's part in DDL: CREATE, RENAME, ALTER in place, and what is refused.
#include "ha_error.h"
#include "ha_quarry.h"
#include "hton.h"
#include "transaction.h"
#include "trash_sweep.h"

namespace quarry {

int QuarryHandler::create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) {
  THD* thd = ha_thd();
  const bool temporary = (create_info->options & HA_LEX_CREATE_TMP_TABLE) != 0;
  if (CheckCreateOptions(thd, form, create_info)) return HA_WRONG_CREATE_OPTION;
  if (ResolveColumns(form, temporary).any_managed() && RefuseEncryption(thd, form, create_info)) {
    return HA_WRONG_CREATE_OPTION;
  }
  return ForwardingHandler::create(name, form, create_info);
}

int QuarryHandler::delete_table(const char* name) {
  // The sweep finds the store by InnoDB's table id: this table's name may be in use again by then.
  const int error = ForwardingHandler::delete_table(name);
  TrashSweep::Wake();
  return error;
}

int QuarryHandler::rename_table(const char* from, const char* to) {
  if (const int error = SyncForDdl(); error != 0) return error;
  return ForwardingHandler::rename_table(from, to);
}

int QuarryHandler::discard_or_import_tablespace(my_bool discard) {
  my_printf_error(ER_ILLEGAL_HA,
                  "%s TABLESPACE is not supported for QUARRY table `%s`.`%s`: the tablespace holds the rows without "
                  "the payload of their BLOB columns; use a dump, or ALTER TABLE ... ENGINE=InnoDB first",
                  MYF(0), discard != 0 ? "DISCARD" : "IMPORT", table_share->db.str, table_share->table_name.str);
  return HA_ERR_UNSUPPORTED;
}

bool QuarryHandler::check_if_incompatible_data(HA_CREATE_INFO* create_info, uint table_changes) {
  if (RefuseExchange(ha_thd(), table)) return COMPATIBLE_DATA_NO;
  return ForwardingHandler::check_if_incompatible_data(create_info, table_changes);
}

namespace {
bool Rebuilds(enum_alter_inplace_result result) {
  return result != HA_ALTER_INPLACE_INSTANT && result != HA_ALTER_INPLACE_NOCOPY_NO_LOCK &&
         result != HA_ALTER_INPLACE_NOCOPY_LOCK;
}
}  // namespace

enum_alter_inplace_result QuarryHandler::check_if_supported_inplace_alter(TABLE* altered_table,
                                                                          Alter_inplace_info* info) {
  rebuilds_ = false;
  // What is done in place never comes to create().
  if (CheckAlterOptions(ha_thd(), table, altered_table, user_temporary_)) return HA_ALTER_ERROR;
  const bool managed = rewriter_.active() || ResolveColumns(altered_table, user_temporary_).any_managed();
  if (!managed) return ForwardingHandler::check_if_supported_inplace_alter(altered_table, info);
  if (RefuseEncryption(ha_thd(), altered_table, info->create_info)) return HA_ALTER_ERROR;
  const AlterVerdict verdict = CompareForAlter(table, altered_table, info, user_temporary_);
  if (!verdict.in_place) {
    info->unsupported_reason = verdict.reason;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  const enum_alter_inplace_result result = ForwardingHandler::check_if_supported_inplace_alter(altered_table, info);
  if (result == HA_ALTER_ERROR || result == HA_ALTER_INPLACE_NOT_SUPPORTED || !Rebuilds(result)) return result;
  if (table->part_info != nullptr) {
    // InnoDB commits all partitions in one call, which only the first partition's handler sees.
    info->unsupported_reason = "QUARRY rebuilds partitioned tables by copying";
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  rebuilds_ = true;
  return result;
}

bool QuarryHandler::commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) {
  if (!rewriter_.active() || !commit) return ForwardingHandler::commit_inplace_alter_table(altered_table, info, commit);
  rewriter_.ForgetRow();
  return CommitRebuild(altered_table, info);
}

// A rebuild gives the table a new InnoDB id while its heads still point into the store of the old one. So the store
// is protected durably before InnoDB commits, and bound to the new id after.
bool QuarryHandler::CommitRebuild(TABLE* altered_table, Alter_inplace_info* info) {
  const Result<InnerTable> before = ReadInnerTable(child());
  if (!before.ok()) {
    Fail(before.status(), Action::kRebuild);
    return true;
  }
  bool begun = false;
  if (rebuilds_) {
    const Status status = Directory()->BeginRebind(before->id);
    begun = status.ok();
    if (!begun && status.code() != StatusCode::kNotFound) {
      Fail(status, Action::kRebuild);
      return true;
    }
  }
  const bool failed = ForwardingHandler::commit_inplace_alter_table(altered_table, info, true);
  store_.reset();
  share_->ForgetStore();
  if (!begun) return failed;
  const Result<InnerTable> after = ReadInnerTable(child());
  Status status = after.status();
  if (failed || (after.ok() && after->id == before->id)) {
    status = Directory()->AbandonRebind(before->id);
  } else if (after.ok()) {
    status = Directory()->Rebind(before->id, after->id);
  }
  // The rebuild itself is done. The store stays protected: nothing is lost, its dead space waits for a mark pass.
  if (!status.ok()) {
    sql_print_warning("QUARRY: the store of table `%s`.`%s` stays marked as being rebuilt: %s", table_share->db.str,
                      table_share->table_name.str, status.ToString().c_str());
  }
  return failed;
}

}  // namespace quarry
