// QuarryHandler's part in DDL: CREATE, RENAME, ALTER in place, and what is refused.
#include "handler/ha_quarry.h"

#include <partition_info.h>

#include <ha_partition.h>

#include "background/trash_sweep.h"
#include "columns/encryption.h"
#include "quarry/memory_guard.h"
#include "server/error_log.h"
#include "server/ha_error.h"
#include "server/running_engine.h"
#include "transaction/transaction.h"

namespace quarry {

int QuarryHandler::create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) {
  THD* thd = ha_thd();
  const bool temporary = (create_info->options & HA_LEX_CREATE_TMP_TABLE) != 0;
  if (CheckCreateOptions(thd, form, create_info) ||
      (ResolveColumns(form, temporary).any_managed() && CheckEncryption(thd, form))) {
    MarkReported(thd);
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
  MarkReported(ha_thd());
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
  prefix_limit_to_state_ = kNoPrefixLimit;
  // What is done in place never comes to create().
  if (CheckAlterOptions(ha_thd(), table, altered_table, user_temporary_)) return HA_ALTER_ERROR;
  HideColumnOptions(info);
  const bool managed = rewriter_.active() || ResolveColumns(altered_table, user_temporary_).any_managed();
  if (!managed) return ForwardingHandler::check_if_supported_inplace_alter(altered_table, info);
  const AlterVerdict verdict = CompareForAlter(table, LimitedLayout(), altered_table, info, user_temporary_);
  if (!verdict.in_place) return AskForCopy(ha_thd(), info, verdict.reason);
  if (AsksForRewrite(ha_thd(), info)) return AskForCopy(ha_thd(), info, "every value is written anew");
  const enum_alter_inplace_result result = ForwardingHandler::check_if_supported_inplace_alter(altered_table, info);
  if (result == HA_ALTER_ERROR || result == HA_ALTER_INPLACE_NOT_SUPPORTED) return result;
  rebuilds_ = Rebuilds(result);
  if (rebuilds_ && verdict.must_not_rebuild) {
    return AskForCopy(ha_thd(), info, "values older than a change of PREFIX_SIZE must be written anew");
  }
  if (rebuilds_ && table->part_info != nullptr && !AsksForInPlace(ha_thd(), info)) {
    // Plain InnoDB tables, too: a kill in the middle leaves files behind, and a few of them kept InnoDB from starting.
    return AskForCopy(ha_thd(), info, "InnoDB's rebuild of partitions in place does not survive every crash");
  }
  prefix_limit_to_state_ = verdict.prefix_limit_bytes;
  return result;
}

// Asked for anew each time: EXCHANGE PARTITION gives a table other heads, and their limit, under the same definition.
// All partitions count for each: ha_partition does in place what one of them says can be done in place.
ColumnLayout QuarryHandler::LimitedLayout() {
  ColumnLayout layout = share_->layout();
  for (const QuarryHandler* const file : Siblings()) {
    const Result<ChildTable> child_table = ReadChildTable(file->child());
    // What is not known counts as nothing guaranteed: then an index beyond those that there are is made by a copy.
    layout.ApplyPrefixLimit(child_table.ok() ? Directory()->PrefixLimitBytes(child_table->id) : 0);
  }
  return layout;
}

std::vector<QuarryHandler*> QuarryHandler::Siblings() {
  if (table->part_info == nullptr) return {this};
  std::vector<QuarryHandler*> files;
  for (handler** file = static_cast<ha_partition*>(table->file)->get_child_handlers(); *file != nullptr; file++) {
    files.push_back(static_cast<QuarryHandler*>(*file));
  }
  return files;
}

// The limit is durable before the new definition can be: whichever of the two a crash leaves in force, it is true of
// every head. An ALTER that fails later has lowered it for nothing, which only costs a copy one day.
bool QuarryHandler::prepare_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) {
  if (prefix_limit_to_state_ != kNoPrefixLimit) {
    const Result<ChildTable> child_table = ReadChildTable(child());
    Status status = child_table.status();
    if (child_table.ok())
      status = Directory()->LowerPrefixLimit(child_table->id, child_table->name, prefix_limit_to_state_);
    if (!status.ok()) {
      Fail(status, Action::kAlter);
      return true;
    }
  }
  return ForwardingHandler::prepare_inplace_alter_table(altered_table, info);
}

bool QuarryHandler::commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) {
  if (!rewriter_.active() || !commit) return ForwardingHandler::commit_inplace_alter_table(altered_table, info, commit);
  return CommitRebuild(altered_table, info);
}

// InnoDB commits all partitions in one call of the first one's handler.
std::vector<QuarryHandler*> QuarryHandler::CommittedTogether(const Alter_inplace_info* info) {
  if (info->group_commit_ctx == nullptr) return {this};
  return Siblings();
}

namespace {
// What InnoDB keeps of the ALTER for the `number`th of the handlers that it commits together.
const inplace_alter_handler_ctx* ContextOf(const Alter_inplace_info* info, size_t number) {
  return info->group_commit_ctx == nullptr ? info->handler_ctx : info->group_commit_ctx[number];
}
}  // namespace

Status QuarryHandler::BeginRebuild(const inplace_alter_handler_ctx* context, Rebuild* rebuild) {
  QUARRY_TRY_ASSIGN(const ChildTable before, ReadChildTable(child()));
  rebuild->before = before.id;
  const Result<std::optional<TableId>> rebuilt = ReadRebuiltTable(child(), context);
  if (!rebuilt.ok()) return rebuilds_ ? rebuilt.status() : Status::Ok();
  if (!*rebuilt) return Status::Ok();
  rebuild->after = **rebuilt;
  return Directory()->BeginRebind(rebuild->before, rebuild->after);
}

// On an error no store stays marked.
Status QuarryHandler::BeginRebuilds(const Alter_inplace_info* info, std::vector<Rebuild>* rebuilds) {
  const std::vector<QuarryHandler*> files = CommittedTogether(info);
  rebuilds->reserve(files.size());  // one that began must be in it
  for (size_t i = 0; i < files.size(); i++) {
    Rebuild rebuild{files[i], {}, {}};
    Status status = OrOutOfMemory([&] { return files[i]->BeginRebuild(ContextOf(info, i), &rebuild); });
    if (!status.ok()) {
      for (const Rebuild& begun : *rebuilds) FinishRebuild(begun, true);
      return status;
    }
    rebuilds->push_back(rebuild);
  }
  return Status::Ok();
}

// The rebuild itself is done or undone. A store that stays undecided is bound to both tables and loses nothing: the
// sweep decides it by what InnoDB has.
void QuarryHandler::FinishRebuild(const Rebuild& rebuild, bool failed) {
  QuarryHandler* const file = rebuild.file;
  file->appender_.ForgetStore();
  file->rewriter_.store_access()->Forget();
  if (rebuild.after.value == 0) return;
  const Result<ChildTable> now = ReadChildTable(file->child());
  const bool committed = now.ok() ? now->id == rebuild.after : !failed;
  const Status status =
      committed ? Directory()->Rebind(rebuild.before, rebuild.after) : Directory()->AbandonRebind(rebuild.before);
  if (status.ok()) return;
  LogWarning("the store of table `%s`.`%s` stays marked as being rebuilt for now (InnoDB's table %llu into %llu): %s",
             file->table_share->db.str, file->table_share->table_name.str,
             static_cast<unsigned long long>(rebuild.before.value),
             static_cast<unsigned long long>(rebuild.after.value), status.ToString().c_str());
  TrashSweep::Wake();
}

// A rebuild gives the table a new InnoDB id while its heads still point into the store of the old one. So the store
// is bound to both, durably, before InnoDB commits, and to the one that is left after.
bool QuarryHandler::CommitRebuild(TABLE* altered_table, Alter_inplace_info* info) {
  for (QuarryHandler* file : CommittedTogether(info)) file->rewriter_.ForgetRow();
  std::vector<Rebuild> rebuilds;
  if (const Status status = BeginRebuilds(info, &rebuilds); !status.ok()) {
    Fail(status, Action::kRebuild);
    return true;
  }
  const bool failed = ForwardingHandler::commit_inplace_alter_table(altered_table, info, true);
  for (const Rebuild& rebuild : rebuilds) {
    // What InnoDB decided stands. A store for which there is no memory stays marked until the next start.
    (void)OrOutOfMemory([&] { FinishRebuild(rebuild, failed); });
  }
  return failed;
}

}  // namespace quarry
