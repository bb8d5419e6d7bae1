// See gc_table_pass.h.
#include "background/gc_table_pass.h"

#include "columns/encryption.h"
#include "quarry/memory_guard.h"
#include "rows/gc_scan.h"
#include "server/child_table_id.h"
#include "transaction/append_gate.h"

namespace quarry {

namespace {

/// Between two looks of one wait; the first ones come sooner, for most transactions are short.
constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr std::chrono::milliseconds kFirstBetweenLooks{150};
constexpr std::chrono::milliseconds kGatePoll{50};
/// Of one step: what others may have to wait for, and what a pause waits for.
constexpr uint64_t kStepMaxBytes = 8ULL << 20;
/// Between two looks at the rate.
constexpr uint64_t kNapMaxMicros = 1'000'000;

Status Stopped() { return Status::Unavailable("GC was told to stop"); }

}  // namespace

GcTablePass::GcTablePass(std::vector<GcTableWork>* tables, StoreDirectory* directory, ServerLook* look, GcHost* host,
                         const GcManner& manner)
    : tables_(tables), directory_(directory), look_(look), host_(host), manner_(manner) {}

std::chrono::steady_clock::time_point GcTablePass::Deadline() const {
  return std::chrono::steady_clock::now() + manner_.timeout;
}

std::string GcTablePass::Names() const {
  const std::string first = Quoted(tables_->front().name);
  return tables_->size() == 1 ? first : first + " and " + std::to_string(tables_->size() - 1) + " more";
}

void GcTablePass::ForEach(const std::function<Status(GcTableWork*)>& work) {
  for (GcTableWork& table : *tables_) {
    if (table.status.ok()) table.status = OrOutOfMemory([&] { return work(&table); });
  }
}

void GcTablePass::Run() {
  ForEach([this](GcTableWork* table) { return Seal(table); });
  const Status status = OrOutOfMemory([this] { return MarkAll(); });
  ForEach([this, &status](GcTableWork* table) { return status.ok() ? Reclaim(table) : status; });
  for (GcTableWork& table : *tables_) {
    if (table.pass != nullptr) table.outcome.report = table.pass->report();
  }
}

Status GcTablePass::MarkAll() {
  QUARRY_TRY(WaitForWriters());
  QUARRY_TRY(MarkInView());
  QUARRY_TRY(WaitForReaders());
  return CheckUnchanged();
}

Status GcTablePass::Seal(GcTableWork* table) {
  host_->SetState("sealing " + Quoted(table->name));
  if (!host_->BeginFiles()) return Stopped();
  Result<std::unique_ptr<GcPass>> pass = BeginGcPass(directory_, table->target.stores, manner_.options);
  host_->EndFiles();
  QUARRY_TRY(pass.status());
  table->pass = std::move(*pass);
  return Status::Ok();
}

Status GcTablePass::WaitForWriters() {
  host_->SetState("waiting for writers of " + Names());
  const uint64_t ticket = TheAppendGate().Ticket();
  const auto deadline = Deadline();
  while (!TheAppendGate().AllPast(ticket)) {
    if (!host_->Sleep(kGatePoll)) return Stopped();
    if (std::chrono::steady_clock::now() >= deadline) {
      return Status::Unavailable("a row took longer to write than quarry_gc_timeout");
    }
  }
  QUARRY_TRY_ASSIGN(const LookOutside look, LookNow());
  OpenTransactions writers(look.transactions);
  return WaitUntilEnded(&writers, 0, "open before its scan");
}

Status GcTablePass::MarkInView() {
  host_->SetState("scanning " + Names());
  QUARRY_TRY(PaceLook());
  return look_->InView([this] { return ScanInView(); });
}

Status GcTablePass::ScanInView() {
  ForEach([](GcTableWork* table) {
    table->pass->NoteView();
    return Status::Ok();
  });
  QUARRY_TRY_ASSIGN(const LookOutside look, LookInView());
  readers_ = OpenTransactions(look.transactions);
  view_lsn_ = look.lsn.current;
  ForEach([this](GcTableWork* table) { return Scan(table); });
  return Status::Ok();
}

Status GcTablePass::Scan(GcTableWork* table) {
  host_->SetState("scanning " + Quoted(table->name));
  // The view stays; the metadata lock of a table that was scanned goes with its savepoint.
  QUARRY_TRY(look_->session()->Run("SAVEPOINT before_scan"));
  const auto began = std::chrono::steady_clock::now();
  const GcScan::Limits limits = {[this] { return host_->GoesOn(); }, began + manner_.scan_timeout};
  GcScan scan(table->pass.get(), &limits);
  // USE INDEX (): from the first row to the last. The count makes it one row, however many there are.
  const std::string select = "SELECT SQL_NO_CACHE COUNT(*), SUM(1) FROM " + Quoted(table->name);
  Result<QueryRows> rows = look_->session()->Query(select + " FOR SYSTEM_TIME ALL USE INDEX ()");
  if (!rows.ok() && look_->session()->error_number() == ER_VERS_NOT_VERSIONED) {
    rows = look_->session()->Query(select + " USE INDEX ()");
  }
  GcOutcome* const outcome = &table->outcome;
  outcome->rows = scan.rows();
  outcome->scan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  outcome->has_overrun = scan.overran();
  const Status status = scan.Finish(table->target.child_tables);
  QUARRY_TRY(look_->session()->Run("ROLLBACK TO SAVEPOINT before_scan"));
  if (!rows.ok() && status.ok()) return rows.status();
  QUARRY_TRY(status);
  if (rows->size() != 1 || (*rows)[0][0] != std::to_string(scan.rows())) {
    return Status::Unavailable("the scan saw " + std::to_string(scan.rows()) + " rows, the server counted " +
                               (rows->size() == 1 ? (*rows)[0][0].value_or("NULL") : "nothing"));
  }
  outcome->is_whole = true;
  outcome->live_bytes = scan.live_bytes();
  for (const StoreId store : table->target.stores) table->pass->SetEncryption(store, WantedEncryption(scan.key_id()));
  return BindUnbound(scan, table->target);
}

// Only now is it known which table such a store belongs to: the next pass collects it.
Status GcTablePass::BindUnbound(const GcScan& scan, const GcTarget& target) {
  for (const auto& [store, table] : scan.stores_met()) {
    if (directory_->OwnershipOf(store, table) != Ownership::kUnbound) continue;
    QUARRY_TRY(directory_->BindUnbound(store, table, target.child_name));
  }
  return Status::Ok();
}

Status GcTablePass::WaitForReaders() {
  host_->SetState("waiting for readers of " + Names());
  return WaitUntilEnded(&readers_, view_lsn_, "older than its scan");
}

// What is dead stays dead whatever becomes of the table; but nothing is given back of a table that is not the one
// whose rows were looked at.
Status GcTablePass::CheckUnchanged() {
  QUARRY_TRY(look_->CheckServerIsWhole());
  if (GetSelfCheckState() != SelfCheckState::kPassed) {
    return Status::Unavailable("InnoDB's table ids have not been verified yet (status variable quarry_table_id_check)");
  }
  std::map<std::string, std::set<uint64_t>> now;
  if (tables_->size() == 1) {
    const std::string& child_name = tables_->front().target.child_name;
    QUARRY_TRY_ASSIGN(now[child_name], look_->TablesOf(child_name));
  } else {
    QUARRY_TRY_ASSIGN(const auto tables, look_->Tables());
    for (const auto& [table, child_name] : tables) now[WithoutPartition(child_name)].insert(table);
  }
  ForEach([&now](GcTableWork* table) {
    if (now[table->target.child_name] == table->target.child_tables) return Status::Ok();
    return Status::Unavailable("the table was altered or dropped during the pass");
  });
  return Status::Ok();
}

Status GcTablePass::Reclaim(GcTableWork* table) {
  host_->SetState("reclaiming space of " + Quoted(table->name));
  uint64_t bytes_per_second = host_->BytesPerSecond();
  std::optional<GcRate> rate(bytes_per_second);
  Status first;
  while (true) {
    if (!host_->BeginFiles()) return Stopped();
    const uint64_t step_bytes = bytes_per_second == 0 ? kStepMaxBytes : std::min(kStepMaxBytes, bytes_per_second / 4);
    const Result<GcStep> step = OrOutOfMemory([&] { return table->pass->ReclaimSome(step_bytes); });
    host_->EndFiles();
    if (!step.ok()) {
      if (first.ok()) first = step.status();
      if (step.status().code() == StatusCode::kUnavailable) return first;
      continue;  // with the segments behind the one that cannot be changed
    }
    if (step->done) return first;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    QUARRY_TRY(WaitAtRate(rate->WaitMicros(step->bytes, static_cast<uint64_t>(micros)), bytes_per_second));
    const uint64_t rate_now = host_->BytesPerSecond();
    if (rate_now != bytes_per_second) rate.emplace(bytes_per_second = rate_now);
  }
}

Status GcTablePass::WaitAtRate(uint64_t micros, uint64_t bytes_per_second) {
  do {
    const uint64_t nap_micros = std::min(micros, kNapMaxMicros);
    micros -= nap_micros;
    if (!host_->Sleep(std::chrono::milliseconds(nap_micros / 1000))) return Stopped();
  } while (micros > 0 && host_->BytesPerSecond() == bytes_per_second);
  return Status::Ok();
}

Status GcTablePass::WaitUntilEnded(OpenTransactions* open, uint64_t lsn, const std::string& why) {
  const auto deadline = Deadline();
  between_looks_ = kFirstBetweenLooks;
  Status doubt;
  uint64_t flushed = 0;
  while (!open->all_ended() || flushed < lsn) {
    if (std::chrono::steady_clock::now() >= deadline) {
      if (!doubt.ok()) return doubt;
      if (open->all_ended()) return Status::Unavailable("InnoDB did not flush its log within quarry_gc_timeout");
      return Status::Unavailable("there is still " + open->Describe() + ", " + why);
    }
    const Result<LookOutside> look = LookNow();
    if (!host_->GoesOn()) return Stopped();
    doubt = look.status();
    if (!look.ok()) continue;
    open->Update(look->transactions);
    flushed = look->lsn.flushed;
    host_->NoteLook();
  }
  return Status::Ok();
}

Status GcTablePass::PaceLook() {
  const auto next = last_look_ + between_looks_;
  between_looks_ = std::min(2 * between_looks_, kBetweenLooks);
  const auto now = std::chrono::steady_clock::now();
  if (next > now && !host_->Sleep(std::chrono::duration_cast<std::chrono::milliseconds>(next - now))) return Stopped();
  last_look_ = std::chrono::steady_clock::now();
  return Status::Ok();
}

Result<GcTablePass::LookOutside> GcTablePass::LookNow() {
  QUARRY_TRY(PaceLook());
  if (!look_->is_open()) QUARRY_TRY(look_->Open());
  return look_->InView([this] { return LookInView(); });
}

Result<GcTablePass::LookOutside> GcTablePass::LookInView() {
  LookOutside look;
  QUARRY_TRY_ASSIGN(look.transactions, look_->Transactions());
  QUARRY_TRY_ASSIGN(look.lsn, look_->ReadLsn());
  return look;
}

}  // namespace quarry
