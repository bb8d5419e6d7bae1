// See gc_thread.h.
#include "gc_thread.h"

#include <ctime>

#include <log.h>

#include "background_thread.h"
#include "gc_policy.h"
#include "gc_table_pass.h"
#include "housekeeping.h"
#include "hton.h"
#include "sysvars.h"

namespace quarry {

namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kPausePoll{100};

/// The tables whose names begin so are an ALTER's, half made.
constexpr std::string_view kUnfinishedMark = "/#sql";

void AddTo(GcFigures* figures, const StoreStats& stats) {
  figures->real_bytes += stats.real_bytes;
  figures->live_bytes += stats.live_bytes;
  figures->dead_bytes += stats.dead_bytes;
}

uint64_t NowSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

GcSettings SettingsNow() { return {SpaceAmplificationMax(), GcFullIntervalSeconds()}; }

/// What a pass did, for people.
std::string Summary(const GcReport& report) {
  std::string text = "gave back " + std::to_string(report.reclaimed_bytes) + " bytes, unlinked " +
                     std::to_string(report.segments_unlinked) + " segments, rewrote " +
                     std::to_string(report.segments_rewritten);
  if (report.rewrites_refused > 0) {
    text += ", had no room to rewrite " + std::to_string(report.rewrites_refused);
  }
  return text;
}

class Gc final : private GcHost {
 public:
  void Start();
  void Stop() { thread_.Stop(); }
  void Request();
  [[nodiscard]] GcStatus status();
  [[nodiscard]] std::optional<GcStoreStatus> OfStore(StoreId store);

 private:
  struct Table {
    GcTarget target;
    GcFigures figures;
    bool in_doubt = false;  ///< a rebuild of it is under way, or was cut off
  };
  struct Known {
    uint64_t since_s = 0;
    std::optional<GcMemory> last;
  };

  // GcHost
  [[nodiscard]] bool GoesOn() override;
  [[nodiscard]] bool Sleep(std::chrono::milliseconds time) override;
  [[nodiscard]] bool BeginFiles() override;
  void EndFiles() override;
  void SetState(const std::string& state) override;
  void NoteLook() override;

  void Run();
  /// One look at every table.
  void Round(bool forced);
  /// `requests`: what it answers.
  void EndRound(uint64_t requests);
  [[nodiscard]] Result<std::map<std::string, Table>> ListTables();
  [[nodiscard]] static GcFigures FiguresOf(const std::vector<StoreId>& stores);
  void RunPass(const Table& table, Known* known);
  void NotePass(const Table& table, const Status& status, const GcOutcome& outcome);
  void NoteDamage(const std::string& table, const GcReport& report);
  void NoteError(const std::string& error);

  // GC's thread alone.
  ServerLook look_;
  std::map<std::string, Known> known_;
  bool forced_ = false;

  std::mutex mutex_;  // guards the next two
  GcStatus status_;
  std::map<StoreId, GcStoreStatus> stores_;

  BackgroundThread thread_{"quarry_gc"};
};

void Gc::Start() {
  // What fails to open is opened by the first round.
  thread_.Start([this] { (void)look_.Open(); }, [this] { Run(); });
}

void Gc::Request() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++status_.requests;
}

GcStatus Gc::status() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return status_;
}

std::optional<GcStoreStatus> Gc::OfStore(StoreId store) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = stores_.find(store);
  return found == stores_.end() ? std::nullopt : std::optional<GcStoreStatus>(found->second);
}

bool Gc::GoesOn() { return (forced_ || GcIsOn()) && !thread_.stopping(); }

bool Gc::Sleep(std::chrono::milliseconds time) { return thread_.Wait(time) && GoesOn(); }

bool Gc::BeginFiles() {
  if (!GoesOn()) return false;
  while (!TryBeginFileStep()) {
    if (!Sleep(kPausePoll)) return false;
  }
  return true;
}

void Gc::EndFiles() { EndFileStep(); }

void Gc::SetState(const std::string& state) {
  const std::lock_guard<std::mutex> guard(mutex_);
  status_.state = state;
}

void Gc::NoteLook() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++status_.looks;
}

void Gc::Run() {
  std::optional<uint64_t> last_round_s;
  while (thread_.Wait(kTick)) {
    const GcStatus before = status();
    forced_ = before.requests != before.requests_done;
    // Asked at each tick: another quarry_gc_interval counts at once.
    const bool is_due = !last_round_s.has_value() || NowSeconds() >= *last_round_s + GcIntervalSeconds();
    if (!forced_ && (!GcIsOn() || !is_due)) continue;
    last_round_s = NowSeconds();
    Round(forced_);
    EndRound(before.requests);
  }
  look_.Close();
}

void Gc::EndRound(uint64_t requests) {
  const bool ended_early = thread_.stopping();
  const std::lock_guard<std::mutex> guard(mutex_);
  status_.state = "idle";
  if (!ended_early) status_.requests_done = requests;
}

void Gc::Round(bool forced) {
  if (Directory()->ListStores().empty()) return;
  SetState("looking");
  const Result<std::map<std::string, Table>> tables = ListTables();
  if (!tables.ok()) {
    NoteError(tables.status().ToString());
    return;
  }
  std::erase_if(known_, [&tables](const auto& known) { return tables->count(known.first) == 0; });
  const GcSettings settings = SettingsNow();
  for (const auto& [inner_name, table] : *tables) {
    if (!GoesOn()) return;
    const auto known = known_.try_emplace(inner_name, Known{NowSeconds(), std::nullopt}).first;
    if (table.in_doubt) {
      if (forced) NoteError(Quoted(SplitInnerName(inner_name)) + ": a rebuild of it is under way or was cut off");
      continue;
    }
    const GcVerdict verdict = JudgeGc(table.figures, known->second.last, settings, NowSeconds(), known->second.since_s);
    if (forced || verdict != GcVerdict::kNotYet) RunPass(table, &known->second);
  }
}

Result<std::map<std::string, Gc::Table>> Gc::ListTables() {
  if (!look_.is_open()) QUARRY_TRY(look_.Open());
  QUARRY_TRY(look_.CheckServerIsWhole());
  QUARRY_TRY_ASSIGN(const auto inner_tables, look_.Tables());
  std::map<std::string, Table> tables;
  for (const auto& [id, inner_name] : inner_tables) {
    if (inner_name.find(kUnfinishedMark) != std::string::npos) continue;
    const std::string name = WithoutPartition(inner_name);
    tables[name].target.inner_name = name;
    tables[name].target.inner_tables.insert(id);
  }
  for (const StoreStats& stats : Directory()->ListStores()) {
    const auto inner = inner_tables.find(stats.table.value);
    if (inner == inner_tables.end() || stats.discarded) continue;
    const auto table = tables.find(WithoutPartition(inner->second));
    if (table == tables.end()) continue;
    table->second.in_doubt |= stats.rebinding;
    table->second.target.stores.push_back(stats.store);
    AddTo(&table->second.figures, stats);
  }
  std::erase_if(tables, [](const auto& table) { return table.second.target.stores.empty(); });
  return tables;
}

GcFigures Gc::FiguresOf(const std::vector<StoreId>& stores) {
  GcFigures figures;
  for (const StoreId store : stores) {
    if (const Result<StoreStats> stats = Directory()->GetStoreStats(store); stats.ok()) AddTo(&figures, *stats);
  }
  return figures;
}

void Gc::RunPass(const Table& table, Known* known) {
  GcManner manner = {std::chrono::seconds(GcTimeoutSeconds()), GcRateBytesPerSecond(), {}};
  manner.options.rewrite_above = RewriteAbove(SettingsNow());
  GcTablePass pass(table.target, Directory(), &look_, this, manner);
  GcOutcome outcome;
  const GcFigures before = FiguresOf(table.target.stores);
  const Status status = pass.Run(&outcome);
  const GcReport& report = outcome.report;
  NotePass(table, status, outcome);
  const std::string name = Quoted(SplitInnerName(table.target.inner_name));
  if (report.segments_damaged > 0) NoteDamage(name, report);
  if (!status.ok()) {
    NoteError(name + ": " + status.ToString());
    return;
  }
  GcFigures after = FiguresOf(table.target.stores);
  const bool left_some = report.reclaimed_bytes > 0 && after.dead_bytes >= kGcWorthMinBytes;
  after.dead_bytes = std::min(after.dead_bytes, before.dead_bytes);  // what died meanwhile is for the next pass
  known->last = GcMemory{after, NowSeconds(), left_some};
  if (report.reclaimed_bytes > 0 || report.rewrites_refused > 0) {
    sql_print_information("QUARRY: GC of table %s: %s", name.c_str(), Summary(report).c_str());
  }
}

void Gc::NotePass(const Table& table, const Status& status, const GcOutcome& outcome) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++(status.ok() ? status_.passes : status_.passes_dropped);
  status_.rows_scanned += outcome.rows;
  status_.reclaimed_bytes += outcome.report.reclaimed_bytes;
  status_.segments_unlinked += outcome.report.segments_unlinked;
  status_.segments_rewritten += outcome.report.segments_rewritten;
  status_.rewritten_bytes += outcome.report.rewritten_bytes;
  status_.rewrites_refused += outcome.report.rewrites_refused;
  status_.segments_damaged += outcome.report.segments_damaged;
  if (!status.ok()) return;
  for (const StoreId store : table.target.stores) {
    const auto live = outcome.live_bytes.find(store);
    stores_[store] = {static_cast<uint64_t>(time(nullptr)), live == outcome.live_bytes.end() ? 0 : live->second};
  }
}

void Gc::NoteDamage(const std::string& table, const GcReport& report) {
  bool news = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    news = status_.last_damage != report.damage;
    status_.last_damage = report.damage;
  }
  if (!news) return;
  sql_print_error("QUARRY: GC leaves %llu damaged segments of table %s as they are; the first: %s",
                  static_cast<unsigned long long>(report.segments_damaged), table.c_str(), report.damage.c_str());
}

void Gc::NoteError(const std::string& error) {
  const bool is_ending = thread_.stopping();
  bool news = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    news = !is_ending && status_.last_error != error;
    status_.last_error = error;
  }
  if (news) sql_print_warning("QUARRY: a mark pass was dropped and will be tried again: %s", error.c_str());
}

Gc& TheGc() {
  static Gc gc;
  return gc;
}

}  // namespace

void StartGc() { TheGc().Start(); }
void StopGc() { TheGc().Stop(); }
void RequestGc() { TheGc().Request(); }
GcStatus GetGcStatus() { return TheGc().status(); }
std::optional<GcStoreStatus> GetGcStoreStatus(StoreId store) { return TheGc().OfStore(store); }

}  // namespace quarry
