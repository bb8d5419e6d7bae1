// See rebind_settling.h.
#include "background/rebind_settling.h"

#include "background/file_steps.h"
#include "background/rebind_judge.h"
#include "quarry/memory_guard.h"
#include "server/error_log.h"
#include "server/running_engine.h"
#include "server/server_look.h"

namespace quarry {
namespace {

Status Keep(const UndecidedRebind& rebind, TableId kept) {
  QUARRY_TRY(Directory()->SettleRebind(rebind.store, rebind.pair, kept));
  LogInformation("store %llu belongs to InnoDB's table %llu: a rebuild of table %llu into %llu was %s",
                 static_cast<unsigned long long>(rebind.store.value), static_cast<unsigned long long>(kept.value),
                 static_cast<unsigned long long>(rebind.pair.old_table.value),
                 static_cast<unsigned long long>(rebind.pair.new_table.value),
                 kept == rebind.pair.old_table ? "cut off" : "complete");
  return Status::Ok();
}

Result<Unsettled> Settle() {
  const std::vector<UndecidedRebind> undecided = Directory()->UndecidedRebinds();
  ServerLook look;
  QUARRY_TRY(look.session()->Open());
  QUARRY_TRY(look.CheckServerIsWhole());
  QUARRY_TRY_ASSIGN(const auto tables, look.Tables());
  return SettleRebinds(undecided, tables);
}

void SettleHere() {
  if (!TryBeginFileStep()) return;  // INSTALL, while a backup is taken
  const Result<Unsettled> unsettled = OrOutOfMemory([] { return Settle(); });
  EndFileStep();
  if (!unsettled.ok()) {
    LogWarning("rebuilds that were cut off are not decided yet: %s", unsettled.status().ToString().c_str());
    return;
  }
  for (const UndecidedRebind& rebind : unsettled->doubtful) {
    LogWarning(
        "store %llu stays marked as being rebuilt: a rebuild of InnoDB's table %llu was cut off, and InnoDB "
        "does not show what became of it. It is kept and can be read; its dead space is not given back",
        static_cast<unsigned long long>(rebind.store.value),
        static_cast<unsigned long long>(rebind.pair.old_table.value));
  }
}

}  // namespace

Result<Unsettled> SettleRebinds(const std::vector<UndecidedRebind>& undecided,
                                const std::map<uint64_t, std::string>& tables) {
  Unsettled unsettled;
  for (const UndecidedRebind& rebind : undecided) {
    switch (JudgeRebind(tables, rebind.pair)) {
      case RebindVerdict::kKeepOld:
        QUARRY_TRY(Keep(rebind, rebind.pair.old_table));
        break;
      case RebindVerdict::kKeepNew:
        QUARRY_TRY(Keep(rebind, rebind.pair.new_table));
        break;
      case RebindVerdict::kDropped:
        unsettled.dropped.push_back(rebind);
        break;
      case RebindVerdict::kDoubt:
        unsettled.doubtful.push_back(rebind);
        break;
    }
  }
  return unsettled;
}

void SettleRebindsAtStart() {
  // In a thread without a session: the service would run its statements inside INSTALL's. Failing that, the sweep does.
  (void)OrOutOfMemory([] {
    if (!Directory()->UndecidedRebinds().empty()) (void)RunAside(SettleHere);
  });
}

}  // namespace quarry
