#include "background/trash_sweep.h"

#include "background/rebind_settling.h"
#include "quarry/memory_guard.h"
#include "server/error_log.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

/// Set at start, so that what a crash left behind is looked for.
std::atomic<bool> look_wanted{true};

/// One of the tables that the store is bound to, if InnoDB has one.
std::optional<TableId> TableOf(const StoreStats& store, const std::map<uint64_t, std::string>& tables) {
  if (tables.count(store.table.value) != 0) return store.table;
  if (tables.count(store.rebound_to.value) != 0) return store.rebound_to;
  return std::nullopt;
}

}  // namespace

void TrashSweep::Wake() { look_wanted.store(true, std::memory_order_release); }

Result<TrashSweep::Look> TrashSweep::TakeLook() {
  if (!server_.is_open()) QUARRY_TRY(server_.Open());
  QUARRY_TRY(server_.CheckServerIsWhole());
  return server_.InView([this] { return LookInView(); });
}

Result<TrashSweep::Look> TrashSweep::LookInView() {
  Look look;
  QUARRY_TRY_ASSIGN(look.tables, server_.Tables());
  QUARRY_TRY_ASSIGN(look.transactions, server_.Transactions());
  QUARRY_TRY_ASSIGN(look.lsn, server_.ReadLsn());
  return look;
}

// A DROP was rolled back, by InnoDB or by a crash: the table uses its stores again, even if it only reads. All of them,
// before anything is emptied: its first use may have failed behind the first one.
Status TrashSweep::Restore(const Look& look) {
  for (const StoreStats& store : Directory()->ListBindings()) {
    const std::optional<TableId> table = TableOf(store, look.tables);
    if (!store.discarded || !table) continue;
    QUARRY_TRY(Directory()->RestoreStores(*table));
    if (store.rebinding) Wake();
  }
  return Status::Ok();
}

// `stores` was listed before the look: a store is made after its table, so its table would be in the look.
Status TrashSweep::Discard(const std::vector<StoreStats>& stores, const std::vector<UndecidedRebind>& dropped,
                           const Look& look) {
  unsigned discarded = 0;
  for (const UndecidedRebind& rebind : dropped) {
    ++discarded;
    QUARRY_TRY(Directory()->DiscardRebinding(rebind.store, rebind.pair, look.lsn.current));
    waiting_ = true;
  }
  for (const StoreStats& store : stores) {
    if (TableOf(store, look.tables) || (store.rebinding && !store.discarded)) continue;
    // Nobody knows its table: a mark pass finds it.
    if (store.table == TableId{} && !store.discarded) continue;
    if (!store.discarded) {
      ++discarded;
      QUARRY_TRY(Directory()->Discard(store.table, look.lsn.current));
    }
    waiting_ = true;
  }
  if (discarded > 0) LogInformation("%u stores of dropped tables go to the trash", discarded);
  if (!waiting_) return Status::Ok();
  open_then_ = OpenTransactions(look.transactions);  // first: an LSN goes with those that were open then
  discarded_lsn_ = look.lsn.current;
  return Status::Ok();
}

bool TrashSweep::MayEmpty(const Look& look) {
  open_then_.Update(look.transactions);
  return look.lsn.flushed >= discarded_lsn_ && open_then_.all_ended();
}

Status TrashSweep::LookOnce() {
  const std::vector<StoreStats> stores = Directory()->ListBindings();
  if (stores.empty()) return Status::Ok();
  const std::vector<UndecidedRebind> undecided = Directory()->UndecidedRebinds();
  QUARRY_TRY_ASSIGN(const Look look, TakeLook());
  QUARRY_TRY(Restore(look));
  QUARRY_TRY_ASSIGN(const Unsettled unsettled, SettleRebinds(undecided, look.tables));
  // A table that has no name of its own only now will soon have one, or be gone.
  for (const UndecidedRebind& rebind : unsettled.doubtful) {
    if (rebind.pair.new_table.value != 0) Wake();
  }
  if (!waiting_) return Discard(stores, unsettled.dropped, look);
  if (!MayEmpty(look)) return Status::Ok();
  waiting_ = false;
  QUARRY_TRY_ASSIGN(const uint64_t bytes, Directory()->EmptyTrash(discarded_lsn_));
  if (bytes > 0) {
    LogInformation("the trash was emptied, %llu bytes given back", static_cast<unsigned long long>(bytes));
  }
  // Tables dropped since the first look.
  Wake();
  return Status::Ok();
}

bool TrashSweep::Step() {
  if (!look_wanted.exchange(false, std::memory_order_acq_rel) && !waiting_) return false;
  const Status status = OrOutOfMemory([this] { return LookOnce(); });
  if (!status.ok() && !failed_before_) {
    LogWarning("stores of dropped tables are kept for now: %s: %s", StatusCodeName(status.code()),
               status.message().c_str());
  }
  failed_before_ = !status.ok();
  if (!status.ok()) Wake();
  return waiting_ || look_wanted.load(std::memory_order_acquire);
}

}  // namespace quarry
