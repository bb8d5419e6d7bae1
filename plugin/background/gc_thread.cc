// See gc_thread.h.
#include "background/gc_thread.h"

#include <algorithm>

#include "background/file_steps.h"
#include "background/gc_policy.h"
#include "background/gc_table_pass.h"
#include "server/background_thread.h"
#include "server/error_log.h"
#include "server/running_engine.h"
#include "server/variables.h"

namespace quarry {

namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kPausePoll{100};
/// Until a pass has ended, for the forecast: before there was one, and at most. With it goes the time to the next look.
constexpr double kPassSecondsGuess = 2, kPassSecondsMax = 60;
constexpr double kLookSeconds = 2 * std::chrono::duration<double>(kTick).count();
/// Looks that don't wait for the interval: they take one part in so many of the time.
constexpr double kHurryShare = 10;

/// Tables that share a pass, and what they may be: the view that all of them are scanned in lasts seconds at the most.
constexpr size_t kGroupTables = 100;
constexpr uint64_t kSmallTableBytes = 64ULL << 20;
constexpr uint64_t kSmallTableRows = 20'000;
constexpr std::chrono::seconds kGroupScan{1};

/// The tables whose names begin so are an ALTER's, half made.
constexpr std::string_view kUnfinishedMark = "/#sql";

void AddTo(GcFigures* figures, const StoreStats& stats) {
  figures->real_bytes += stats.real_bytes;
  figures->live_bytes += stats.live_bytes;
  figures->dead_bytes += stats.dead_bytes;
  figures->uncounted_bytes += stats.uncounted_bytes;
  figures->extents += stats.extents;
}

double PreciseSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t NowSeconds() { return static_cast<uint64_t>(PreciseSeconds()); }

uint64_t ReleasedBytes() { return Directory()->GetCounters().stored_bytes_released; }

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
  [[nodiscard]] GcBoard* board() { return &board_; }

 private:
  struct Table {
    GcTarget target;
    GcFigures figures;      ///< as of the look at it, or the end of its pass
    bool in_doubt = false;  ///< a rebuild of it is under way, or was cut off
    bool may_bind = false;  ///< there are stores of which nobody knows the table: it may be this one
  };
  struct Known {
    uint64_t since_s = 0;
    std::optional<GcMemory> last;
    uint64_t dead_bytes_seen = 0;
    double pass_s = kPassSecondsGuess;  ///< until the next pass has ended, if it takes as long as the last one
    bool waits = false;                 ///< its pass was dropped: not before the interval is over
    bool was_fruitless = false;         ///< for GoesOnWithPostponed
    uint32_t drops = 0;                 ///< of its last passes, in a row
    uint64_t retry_at_s = 0;            ///< not before, unless a pass is asked for
    ScanMemory scan;
    uint64_t named_s = 0;  ///< its pass needs so long, which was said in the log; 0: it does not
  };
  /// A table may be beyond its bound when so much more has been released, or what will be until a pass has ended.
  struct Hurry {
    uint64_t released_bytes = 0;  ///< 0: at once
    double pass_s = 0;
  };
  using Tables = std::map<std::string, Table>;

  // GcHost
  [[nodiscard]] bool GoesOn() override;
  [[nodiscard]] bool Sleep(std::chrono::milliseconds time) override;
  [[nodiscard]] bool BeginFiles() override;
  void EndFiles() override;
  [[nodiscard]] uint64_t BytesPerSecond() override { return GcRateBytesPerSecond(); }
  void SetState(const std::string& state) override { board_.SetState(state); }
  void NoteLook() override { board_.NoteLook(); }

  void Run();
  /// Looks whether a round is due, and has it.
  void Tick();
  /// It can't wait for the interval: some table may be beyond its bound, or will be before a pass has ended.
  [[nodiscard]] bool IsHurried(uint64_t released_bytes) const;
  /// One look at every table.
  void Round(bool forced, bool hurried);
  /// Its figures when a pass that begins now ends.
  [[nodiscard]] GcFigures Forecast(const Table& table, const Known& known, const GcSettings& settings) const;
  /// When not to wait for the next round.
  void PlanHurries(const Tables& tables, const GcSettings& settings);
  [[nodiscard]] Result<Tables> ListTables();
  /// Error: nobody can tell now which transactions are open.
  [[nodiscard]] Status CheckLook();
  /// Of tables that have uncounted segments and are not waiting, the one whose turn it is to be counted; else end().
  [[nodiscard]] Tables::iterator NextToCount(Tables* tables, const GcSettings& settings);
  /// Any table may have heads into a store that lost its binding.
  [[nodiscard]] Status NoteWhatMayBind(Tables* tables);
  [[nodiscard]] static GcFigures FiguresOf(const std::vector<StoreId>& stores);
  /// A scan of it takes longer than it may: says so instead of beginning one.
  [[nodiscard]] bool TakesTooLong(const Table& table, Known* known);
  struct Wanted {
    uint64_t dead_bytes = 0;
    Table* table = nullptr;
    Known* known = nullptr;
  };
  void RunPasses(const std::vector<Wanted>& wanted);
  /// Over one table, or over several small ones, whose scans have less time then: returns those that need more.
  std::vector<Wanted> RunPass(const std::vector<Wanted>& group);
  void EndPass(const Wanted& wanted, const GcTableWork& work, const GcFigures& before, double began_s);
  void NoteError(const std::string& error) { board_.NoteError(error, thread_.stopping()); }

  // GC's thread alone.
  ServerLook look_;
  std::map<std::string, Known> known_;
  CountingTurns counting_{NowSeconds()};
  bool forced_ = false;
  ReleaseRate rate_;
  double rows_per_second_ = 0;  ///< of the last scan that tells
  // As of the last round.
  std::optional<uint64_t> last_round_s_;  ///< that was due
  uint64_t released_seen_ = 0;
  uint64_t released_between_ = 0;  ///< the two last rounds
  std::vector<Hurry> hurries_;
  double next_hurry_s_ = 0;

  GcBoard board_;
  BackgroundThread thread_{"quarry_gc"};
};

void Gc::Start() {
  // What fails to open is opened by the first round.
  thread_.Start([this] { (void)look_.Open(); }, [this] { Run(); });
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

void Gc::Run() {
  while (thread_.Wait(kTick)) {
    if (thread_.TryPass([this] { Tick(); })) continue;
    hurries_.clear();
    board_.EndRound(std::nullopt);
    (void)thread_.Wait(BackgroundThread::kRest);
  }
  look_.Close();
}

void Gc::Tick() {
  const GcStatus before = board_.status();
  forced_ = before.requests != before.requests_done;
  const uint64_t released = ReleasedBytes();
  rate_.Note(released, PreciseSeconds());
  // Asked at each tick: another quarry_gc_interval counts at once.
  const bool is_due = !last_round_s_.has_value() || NowSeconds() >= *last_round_s_ + GcIntervalSeconds();
  if (!forced_ && (!GcIsOn() || (!is_due && !IsHurried(released)))) return;
  if (is_due) last_round_s_ = NowSeconds();
  Round(forced_, !is_due);
  board_.EndRound(thread_.stopping() ? std::nullopt : std::optional(before.requests));
}

bool Gc::IsHurried(uint64_t released_bytes) const {
  if (PreciseSeconds() < next_hurry_s_) return false;
  const auto released = static_cast<double>(released_bytes - released_seen_);
  return std::any_of(hurries_.begin(), hurries_.end(), [this, released](const Hurry& hurry) {
    const double expected = released > 0 ? rate_.bytes_per_second() * hurry.pass_s : 0;
    return released + expected >= static_cast<double>(hurry.released_bytes);
  });
}

void Gc::PlanHurries(const Tables& tables, const GcSettings& settings) {
  for (const auto& [child_name, table] : tables) {
    const Known& known = known_.at(child_name);
    if (table.in_doubt || known.waits) continue;
    const bool is_amplified =
        JudgeGc(table.figures, known.last, settings, NowSeconds(), known.since_s) == GcVerdict::kAmplified;
    const uint64_t missing = DeadUntilAmplified(table.figures, known.last, settings);
    hurries_.push_back({is_amplified ? 0 : std::max<uint64_t>(missing, 1), known.pass_s});
  }
}

GcFigures Gc::Forecast(const Table& table, const Known& known, const GcSettings& settings) const {
  if (released_between_ == 0 || table.figures.dead_bytes <= known.dead_bytes_seen) return table.figures;
  const double died = static_cast<double>(table.figures.dead_bytes - known.dead_bytes_seen);
  const double share = std::min(1.0, died / static_cast<double>(released_between_));
  return WhenOverwritten(table.figures, static_cast<uint64_t>(share * rate_.bytes_per_second() * known.pass_s),
                         settings);
}

void Gc::Round(bool forced, bool hurried) {
  const double began_s = PreciseSeconds();
  const uint64_t released = ReleasedBytes();
  released_between_ = released - std::exchange(released_seen_, released);
  hurries_ = {{kGcWorthMinBytes, 0}};  // for tables that are made from now on
  next_hurry_s_ = 0;
  if (Directory()->ListBindings().empty()) return;
  SetState("looking");
  next_hurry_s_ = began_s + GcIntervalSeconds();  // should this look fail
  Result<Tables> tables = ListTables();
  if (!tables.ok()) {
    NoteError(tables.status().ToString());
    return;
  }
  next_hurry_s_ = PreciseSeconds() + kHurryShare * (PreciseSeconds() - began_s);
  std::erase_if(known_, [&tables](const auto& known) { return tables->count(known.first) == 0; });
  const GcSettings settings = SettingsNow();
  const auto counted_next = NextToCount(&*tables, settings);
  std::vector<Wanted> wanted;
  for (auto& [child_name, table] : *tables) {
    Known& known = known_.try_emplace(child_name, Known{.since_s = NowSeconds(), .last = {}, .scan = {}}).first->second;
    if (table.in_doubt) {
      if (forced) NoteError(Quoted(SplitChildName(child_name)) + ": a rebuild of it is under way or was cut off");
      continue;
    }
    if (!forced && known.waits && (hurried || NowSeconds() < known.retry_at_s)) continue;
    const GcFigures figures = Forecast(table, known, settings);
    known.dead_bytes_seen = table.figures.dead_bytes;
    const GcVerdict verdict = JudgeGc(figures, known.last, settings, NowSeconds(), known.since_s);
    const bool may_bind = table.may_bind && !known.last;
    const bool is_counted_now = counted_next != tables->end() && &counted_next->second == &table;
    if (forced || may_bind || is_counted_now || verdict != GcVerdict::kNotYet) {
      wanted.push_back({figures.real_bytes - std::min(figures.real_bytes, figures.live_bytes), &table, &known});
    }
  }
  // What gives back most comes first.
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Wanted& a, const Wanted& b) { return a.dead_bytes > b.dead_bytes; });
  if (const Status status = wanted.empty() ? Status::Ok() : CheckLook(); !status.ok()) {
    hurries_.clear();
    NoteError(status.ToString());
    return;
  }
  RunPasses(wanted);
  PlanHurries(*tables, settings);
}

// Passes that could tell nothing of transactions would all be dropped, each behind a segment more for its table.
Status Gc::CheckLook() {
  return look_.InView([this] { return look_.Transactions().status(); });
}

Gc::Tables::iterator Gc::NextToCount(Tables* tables, const GcSettings& settings) {
  size_t left = 0;
  auto next = tables->end();
  for (auto table = tables->begin(); table != tables->end(); ++table) {
    const GcFigures& figures = table->second.figures;
    const auto found = known_.find(table->first);
    const Known known = found == known_.end() ? Known() : found->second;
    if (table->second.in_doubt || !IsToCount(figures, known.last)) continue;
    ++left;
    if (known.waits) continue;
    if (next == tables->end() || figures.dead_bytes > next->second.figures.dead_bytes) next = table;
  }
  return counting_.IsDue(left, settings, NowSeconds()) ? next : tables->end();
}

Result<Gc::Tables> Gc::ListTables() {
  if (!look_.is_open()) QUARRY_TRY(look_.Open());
  QUARRY_TRY(look_.CheckServerIsWhole());
  QUARRY_TRY_ASSIGN(const auto child_tables, look_.Tables());
  Tables tables;
  for (const auto& [id, child_name] : child_tables) {
    if (child_name.find(kUnfinishedMark) != std::string::npos) continue;
    const std::string name = WithoutPartition(child_name);
    tables[name].target.child_name = name;
    tables[name].target.child_tables.insert(id);
  }
  bool has_unbound = false;
  for (const StoreStats& stats : Directory()->ListStores()) {
    has_unbound |= stats.table == TableId{};
    auto child_table = child_tables.find(stats.table.value);
    if (child_table == child_tables.end()) child_table = child_tables.find(stats.rebound_to.value);
    if (child_table == child_tables.end() || stats.discarded) continue;
    const auto table = tables.find(WithoutPartition(child_table->second));
    if (table == tables.end()) continue;
    table->second.in_doubt |= stats.rebinding;
    table->second.target.stores.push_back(stats.store);
    AddTo(&table->second.figures, stats);
  }
  if (has_unbound) QUARRY_TRY(NoteWhatMayBind(&tables));
  std::erase_if(tables, [](const auto& table) { return table.second.target.stores.empty() && !table.second.may_bind; });
  return tables;
}

Status Gc::NoteWhatMayBind(Tables* tables) {
  QUARRY_TRY_ASSIGN(const std::set<std::string> names, look_.QuarryTables());
  for (auto& [child_name, table] : *tables) table.may_bind = names.count(Quoted(SplitChildName(child_name))) > 0;
  return Status::Ok();
}

GcFigures Gc::FiguresOf(const std::vector<StoreId>& stores) {
  GcFigures figures;
  for (const StoreId store : stores) {
    if (const Result<StoreStats> stats = Directory()->GetStoreStats(store); stats.ok()) AddTo(&figures, *stats);
  }
  return figures;
}

bool Gc::TakesTooLong(const Table& table, Known* known) {
  const uint64_t timeout_s = GcTimeoutSeconds();
  const uint64_t needed_s = ScanSecondsBeyond(known->scan, table.figures.extents, rows_per_second_, timeout_s);
  board_.NoteNeeded(table.target.stores, needed_s);
  if (needed_s == 0) {
    known->named_s = 0;
    return false;
  }
  known->waits = true;
  const std::string name = Quoted(SplitChildName(table.target.child_name));
  const std::string why = name + ": a scan takes about " + std::to_string(needed_s) +
                          " s, and quarry_gc_timeout allows " + std::to_string(timeout_s) + " s";
  board_.NoteSkipped(why, known->named_s == 0);
  known->named_s = needed_s;
  return true;
}

// Each pass waits twice for transactions, a few tenths of a second in all: many small tables share that.
void Gc::RunPasses(const std::vector<Wanted>& wanted) {
  std::vector<Wanted> group;
  std::vector<Wanted> alone;
  const auto run_group = [this, &group, &alone] {
    if (group.empty()) return;
    const std::vector<Wanted> longer = RunPass(group);
    alone.insert(alone.end(), longer.begin(), longer.end());
    group.clear();
  };
  for (const Wanted& next : wanted) {
    if (!GoesOn()) return;
    if (TakesTooLong(*next.table, next.known)) continue;
    const GcFigures& figures = next.table->figures;
    const bool is_small =
        figures.real_bytes <= kSmallTableBytes && std::max(figures.extents, next.known->scan.rows) <= kSmallTableRows;
    if (!is_small) {
      (void)RunPass({next});
      continue;
    }
    group.push_back(next);
    if (group.size() == kGroupTables) run_group();
  }
  if (GoesOn()) run_group();
  for (const Wanted& next : alone) {
    if (!GoesOn()) return;
    (void)RunPass({next});
  }
}

std::vector<Gc::Wanted> Gc::RunPass(const std::vector<Wanted>& group) {
  const double began_s = PreciseSeconds();
  const std::chrono::seconds timeout(GcTimeoutSeconds());
  GcManner manner = {timeout, group.size() == 1 ? timeout : std::min(timeout, kGroupScan), {}};
  manner.options.rewrite_above = RewriteAbove(SettingsNow());
  std::vector<GcTableWork> works;
  std::vector<GcFigures> before;
  for (const Wanted& wanted : group) {
    works.emplace_back(wanted.table->target);
    before.push_back(FiguresOf(wanted.table->target.stores));
  }
  GcTablePass(&works, Directory(), &look_, this, manner).Run();
  std::vector<Wanted> longer;
  for (size_t i = 0; i < group.size(); ++i) {
    if (works[i].outcome.has_overrun && manner.scan_timeout < manner.timeout) {
      group[i].known->scan.rows = std::max(works[i].outcome.rows, kSmallTableRows + 1);
      longer.push_back(group[i]);
    } else {
      EndPass(group[i], works[i], before[i], began_s);
    }
  }
  return longer;
}

void Gc::EndPass(const Wanted& wanted, const GcTableWork& work, const GcFigures& before, double began_s) {
  Table* const table = wanted.table;
  Known* const known = wanted.known;
  const GcReport& report = work.outcome.report;
  board_.NotePass(work);
  known->waits = !work.status.ok();
  if (work.outcome.is_whole || work.outcome.has_overrun) {
    NoteScan(&known->scan, work.outcome.rows, work.outcome.scan_seconds, work.outcome.is_whole, GcTimeoutSeconds(),
             before.extents);
    if (known->scan.rows_per_second > 0) rows_per_second_ = known->scan.rows_per_second;
  }
  const std::string name = Quoted(work.name);
  if (report.segments_damaged > 0) board_.NoteDamage(name, report);
  if (!work.status.ok()) {
    if (GoesOn()) known->retry_at_s = NowSeconds() + RetrySeconds(++known->drops, GcIntervalSeconds());
    NoteError(name + ": " + work.status.ToString());
    return;
  }
  known->drops = 0;
  table->figures = FiguresOf(table->target.stores);
  known->dead_bytes_seen = table->figures.dead_bytes;
  known->pass_s = std::min(PreciseSeconds() - began_s + kLookSeconds, kPassSecondsMax);
  known->last = AfterPass(before, table->figures, report.reclaimed_bytes, NowSeconds());
  known->last->left_some |=
      GoesOnWithPostponed(report.rewrites_postponed, report.segments_rewritten, &known->was_fruitless);
  if (report.reclaimed_bytes > 0 || report.rewrites_refused > 0) {
    LogInformation("GC of table %s: %s", name.c_str(), Summary(report).c_str());
  }
}

Gc& TheGc() {
  static Gc gc;
  return gc;
}

}  // namespace

void StartGc() { TheGc().Start(); }
void StopGc() { TheGc().Stop(); }
void RequestGc() { TheGc().board()->Request(); }
GcStatus GetGcStatus() { return TheGc().board()->status(); }
std::optional<GcStoreStatus> GetGcStoreStatus(StoreId store) { return TheGc().board()->OfStore(store); }

}  // namespace quarry
