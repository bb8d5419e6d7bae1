// See gc_table_pass.h.
#include "gc_table_pass.h"

#include "append_gate.h"
#include "gc_scan.h"
#include "inner_table_id.h"

namespace quarry {

namespace {

/// Between two looks of one wait; the first ones come sooner, for most transactions are short.
constexpr std::chrono::milliseconds kBetweenLooks{1000};
constexpr std::chrono::milliseconds kFirstBetweenLooks{150};
constexpr std::chrono::milliseconds kGatePoll{50};
/// Of one step: what others may have to wait for, and what a pause waits for.
constexpr uint64_t kStepMaxBytes = 8ULL << 20;

Status Stopped() { return Status::Unavailable("GC was told to stop"); }

}  // namespace

GcTablePass::GcTablePass(GcTarget target, StoreDirectory* directory, ServerLook* look, GcHost* host,
                         const GcManner& manner)
    : target_(std::move(target)),
      name_(SplitInnerName(target_.inner_name)),
      directory_(directory),
      look_(look),
      host_(host),
      manner_(manner) {}

std::chrono::steady_clock::time_point GcTablePass::Deadline() const {
  return std::chrono::steady_clock::now() + manner_.timeout;
}

Status GcTablePass::Run(GcOutcome* outcome) {
  QUARRY_TRY(Seal());
  Status status = WaitForWriters();
  if (status.ok()) status = MarkInView(outcome);
  if (status.ok()) status = WaitForReaders();
  if (status.ok()) status = CheckUnchanged();
  if (status.ok()) status = Reclaim();
  outcome->report = pass_->report();
  return status;
}

Status GcTablePass::Seal() {
  host_->SetState("sealing " + Quoted(name_));
  if (!host_->BeginFiles()) return Stopped();
  Result<std::unique_ptr<GcPass>> pass = BeginGcPass(directory_, target_.stores, manner_.options);
  host_->EndFiles();
  QUARRY_TRY(pass.status());
  pass_ = std::move(*pass);
  return Status::Ok();
}

Status GcTablePass::WaitForWriters() {
  host_->SetState("waiting for writers of " + Quoted(name_));
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

Status GcTablePass::MarkInView(GcOutcome* outcome) {
  host_->SetState("scanning " + Quoted(name_));
  QUARRY_TRY(PaceLook());
  QUARRY_TRY(look_->BeginView());
  pass_->NoteView();
  Status status;
  if (Result<LookOutside> look = LookInView(); look.ok()) {
    readers_ = OpenTransactions(look->transactions);
    view_lsn_ = look->lsn.current;
    status = Scan(outcome);
  } else {
    status = look.status();
  }
  look_->EndView();
  return status;
}

Status GcTablePass::Scan(GcOutcome* outcome) {
  const GcScan::Limits limits = {[this] { return host_->GoesOn(); }, Deadline()};
  const auto began = std::chrono::steady_clock::now();
  GcScan scan(pass_.get(), &limits);
  // USE INDEX (): from the first row to the last. The count makes it one row, however many there are.
  const std::string select = "SELECT SQL_NO_CACHE COUNT(*), SUM(1) FROM " + Quoted(name_);
  Result<QueryRows> rows = look_->session()->Query(select + " FOR SYSTEM_TIME ALL USE INDEX ()");
  if (!rows.ok() && look_->session()->error_number() == ER_VERS_NOT_VERSIONED) {
    rows = look_->session()->Query(select + " USE INDEX ()");
  }
  outcome->rows = scan.rows();
  outcome->scan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  outcome->has_overrun = scan.overran();
  const Status status = scan.Finish(target_.inner_tables);
  if (!rows.ok() && status.ok()) return rows.status();
  QUARRY_TRY(status);
  if (rows->size() != 1 || (*rows)[0][0] != std::to_string(scan.rows())) {
    return Status::Unavailable("the scan saw " + std::to_string(scan.rows()) + " rows, the server counted " +
                               (rows->size() == 1 ? (*rows)[0][0].value_or("NULL") : "nothing"));
  }
  outcome->is_whole = true;
  outcome->live_bytes = scan.live_bytes();
  return BindUnbound(scan);
}

// Only now is it known which table such a store belongs to: the next pass collects it.
Status GcTablePass::BindUnbound(const GcScan& scan) {
  for (const auto& [store, table] : scan.stores_met()) {
    if (directory_->OwnershipOf(store, table) != Ownership::kUnbound) continue;
    QUARRY_TRY(directory_->BindUnbound(store, table, target_.inner_name));
  }
  return Status::Ok();
}

Status GcTablePass::WaitForReaders() {
  host_->SetState("waiting for readers of " + Quoted(name_));
  return WaitUntilEnded(&readers_, view_lsn_, "older than its scan");
}

// What is dead stays dead whatever becomes of the table; but nothing is given back of a table that is not the one
// whose rows were looked at.
Status GcTablePass::CheckUnchanged() {
  QUARRY_TRY(look_->CheckServerIsWhole());
  if (GetSelfCheckState() != SelfCheckState::kPassed) {
    return Status::Unavailable("InnoDB's table ids have not been verified yet (status variable quarry_table_id_check)");
  }
  QUARRY_TRY_ASSIGN(const std::set<uint64_t> now, look_->TablesOf(target_.inner_name));
  if (now != target_.inner_tables) return Status::Unavailable("the table was altered or dropped during the pass");
  return Status::Ok();
}

Status GcTablePass::Reclaim() {
  host_->SetState("reclaiming space of " + Quoted(name_));
  const uint64_t bytes_per_second = manner_.bytes_per_second;
  GcRate rate(bytes_per_second);
  const uint64_t step_bytes = bytes_per_second == 0 ? kStepMaxBytes : std::min(kStepMaxBytes, bytes_per_second / 4);
  while (true) {
    if (!host_->BeginFiles()) return Stopped();
    const Result<GcStep> step = pass_->ReclaimSome(step_bytes);
    host_->EndFiles();
    QUARRY_TRY(step.status());
    if (step->done) return Status::Ok();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    const uint64_t wait_micros = rate.WaitMicros(step->bytes, static_cast<uint64_t>(micros));
    if (!host_->Sleep(std::chrono::milliseconds(wait_micros / 1000))) return Stopped();
  }
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
  QUARRY_TRY(look_->BeginView());
  Result<LookOutside> look = LookInView();
  look_->EndView();
  return look;
}

Result<GcTablePass::LookOutside> GcTablePass::LookInView() {
  LookOutside look;
  QUARRY_TRY_ASSIGN(look.transactions, look_->Transactions());
  QUARRY_TRY_ASSIGN(look.lsn, look_->ReadLsn());
  return look;
}

}  // namespace quarry
