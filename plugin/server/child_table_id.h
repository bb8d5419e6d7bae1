// InnoDB's own id of the table behind a child handler: what a store is bound to.
//
// InnoDB exports no function for it. The id is read from memory: ha_innobase::m_prebuilt -> row_prebuilt_t {magic,
// table} -> dict_table_t {id, ..., name, ..., space_id}; the layout of the first two is mirrored in the .cc file.
// What an ALTER in place rebuilds the table into is read in the same way from InnoDB's context of the ALTER.
// Invariants:
//  - The magic is checked at every read: a child that is closed or of another layout gives kNotSupported, not garbage.
//  - A context counts only when it points at this child's own m_prebuilt and at its table.
//  - Once per server start the id, name and space so read are compared with INFORMATION_SCHEMA.INNODB_SYS_TABLES, by
//    a background thread. Three differences mean that the mirror is wrong for this server: every append is refused
//    from then on (the message says so); reads go on, for they follow locators only.
// Thread-safety: internally synchronised.
#pragma once

#include "quarry/status.h"
#include "quarry/types.h"
#include "server/mariadb_compat.h"

namespace quarry {

struct ChildTable {
  TableId id;
  uint32_t space_id = 0;
  std::string name;        ///< InnoDB's: "db/t", "db/t#P#p0", in the file system's character set
  bool temporary = false;  ///< lives in InnoDB's temporary tablespace: its id may equal a persistent table's
};

/// Of an open child (InnoDB) handler. Errors: kNotSupported when the memory does not look as expected, or when the
/// self-check found a difference.
Result<ChildTable> ReadChildTable(const handler* child);

/// The table into which an ALTER in place rebuilds the table of `child`, between prepare_inplace_alter_table and
/// InnoDB's commit; nothing when it rebuilds none. `context` is what InnoDB keeps of the ALTER for this child
/// (Alter_inplace_info::handler_ctx; of partitions, group_commit_ctx). Errors: kNotSupported, as ReadChildTable.
Result<std::optional<TableId>> ReadRebuiltTable(const handler* child, const inplace_alter_handler_ctx* context);

/// Whether a child belongs to a user's CREATE TEMPORARY TABLE, by InnoDB's own word. False when it cannot be told.
bool ChildTableIsTemporary(const handler* child);

/// Notes a table for the self-check: cheap, does nothing after the check has run.
void OfferForSelfCheck(const ChildTable& table);

/// Starts the thread of the self-check: after signal_ddl_recovery_done, never in plugin init under its lock.
void StartSelfCheck();
/// Stops and joins it: in handlerton::pre_shutdown and in plugin deinit.
void StopSelfCheck();

enum class SelfCheckState : uint8_t { kPending, kPassed, kFailed };
SelfCheckState GetSelfCheckState();

}  // namespace quarry
