// See store_access.h.
#include "rows/store_access.h"

#include "quarry/store.h"
#include "server/child_table_id.h"
#include "server/error_log.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

// The client is told nothing of the other store. The operator may have lost this one.
void LogForeign(const handler* child, StoreId store) {
  static std::mutex mutex;
  static StoreId last;
  {
    const std::lock_guard lock(mutex);
    if (last == store) return;
    last = store;
  }
  const Result<ChildTable> table = ReadChildTable(child);
  LogError(
      "a row of InnoDB's table %s names store %llu, which is not bound to that table: the row was "
      "forged or damaged, or the store was lost",
      table.ok() ? table->name.c_str() : "(unknown)", static_cast<unsigned long long>(store.value));
}

}  // namespace

StoreAccess::Answer StoreAccess::Check(StoreId store) {
  const Result<ChildTable> table = ReadChildTable(child_);
  if (!table.ok()) return Answer::kOwn;
  // InnoDB gives temporary tables ids of their own, which equal those of others: no store is theirs.
  if (table->temporary) return Answer::kForeign;
  switch (Directory()->OwnershipOf(store, table->id)) {
    case Ownership::kBound:
      own_ = store;
      return Answer::kOwn;
    case Ownership::kUnbound:
      return Answer::kOwn;
    case Ownership::kForeign:
      break;
  }
  return Answer::kForeign;
}

Status StoreAccess::Require(StoreId store, const LEX_CSTRING& column) {
  if (store == own_ && store != StoreId{}) return Status::Ok();
  if (Check(store) == Answer::kOwn) return Status::Ok();
  const std::string where = "column '" + std::string(column.str, column.length) + "': ";
  plugin_counters.foreign_heads_refused.fetch_add(1, std::memory_order_relaxed);
  LogForeign(child_, store);
  return Status::Foreign(where + "the value that the row refers to is lost, or never was this table's");
}

}  // namespace quarry
