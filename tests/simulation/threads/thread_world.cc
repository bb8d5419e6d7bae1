#include "simulation/threads/thread_world.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace quarry::simulation {
namespace {

constexpr const char* kHome = "/home";
constexpr uint64_t kSlowMicros = 20'000'000;

}  // namespace

ThreadWorld::ThreadWorld(uint64_t seed, bool trace, const std::set<std::string>& ignored, ThreadTotals* totals)
    : dice_(seed), ignored_(ignored), totals_(totals), scheduler_(dice_.Word(), trace), disk_dice_(dice_.Word()) {
  disk_.set_trace(trace);
  disk_.set_watcher(this);
}

std::optional<Violation> ThreadWorld::Run() {
  std::optional<Violation> violation = scheduler_.Run([this] { RunAll(); });
  ++totals_->seeds;
  totals_->steps += scheduler_.steps();
  totals_->switches += scheduler_.switches();
  totals_->disk_calls += disk_.calls();
  return violation;
}

void ThreadWorld::RunAll() {
  DrawOptions();
  DrawDisturbances();
  Open();
  for (uint64_t lives = dice_.OneOf<uint64_t>({1, 1, 2, 3}); lives > 0; --lives) {
    OneLife();
    Open();
  }
  disk_.CutPowerNow();
  directory_.reset();
}

void ThreadWorld::DrawOptions() {
  const FiberScheduler::Alone alone(&scheduler_);
  options_.home_path = kHome;
  options_.segment_size_bytes = dice_.OneOf<uint64_t>({64 << 10, 128 << 10, 256 << 10, 1 << 20});
  options_.zeroed_pool_bytes = dice_.OneOf<uint64_t>({0, 32 << 10, 128 << 10});
  options_.open_files_max = dice_.OneOf<uint32_t>({16, 16, 1024});
  options_.recent_cache_bytes = dice_.OneOf<uint64_t>({0, 0, 256 << 10});
  options_.value_cache_bytes = dice_.OneOf<uint64_t>({0, 0, 100 << 10});
  options_.catalogue_renewal_bytes = dice_.OneOf<uint64_t>({16 << 10, 100 << 10, 1 << 20});
  for (uint64_t path = dice_.OneOf<uint64_t>({0, 0, 1, 2, 3}), number = 1; number <= path; ++number) {
    options_.data_paths.push_back("/disk" + std::to_string(number));
    (void)disk_.memory()->CreateDirectory(options_.data_paths.back());
  }
  (void)disk_.memory()->SyncDirectory("/");
  tables_ = 1 + dice_.Below(2);
}

uint64_t ThreadWorld::DrawCutSeed() {
  const uint64_t drawn = dice_.Below(100);
  if (drawn < 15) return 0;
  if (drawn < 35) return UINT64_MAX;
  return dice_.Word() | 1U;
}

// ---- lives of the process ----

void ThreadWorld::Open() {
  constexpr int kDisturbedMax = 2;
  for (int attempt = 0; directory_ == nullptr; ++attempt) {
    if (attempt < kDisturbedMax && dice_.Percent(8)) disk_.CutPowerAfter(1 + dice_.Below(12));
    Result<std::unique_ptr<StoreDirectoryImpl>> opened = StoreDirectoryImpl::Open(options_, {&disk_, true});
    if (opened.ok() && !disk_.power_is_off()) {
      directory_ = std::move(opened).value();
      break;
    }
    Check(disk_.power_is_off(), kOpensAgain, opened.status().ToString());
    opened = Status::NotFound("closed");
    disk_.PowerOn(DrawCutSeed());
  }
  CompareAll();
  CompareCounters();
  VerifyFiles();
  DecidePrepared();
}

void ThreadWorld::DrawDisturbances() {
  slow_path_ = 0;
  if (options_.data_paths.size() > 1 && dice_.Percent(30)) {
    slow_path_ = 1 + dice_.Below(options_.data_paths.size());
    slow_from_call_ = disk_.calls() + dice_.OneOf<uint64_t>({0, 100, 200, 400});
    ++totals_->slow_paths;
  }
  has_slow_removals_ = dice_.Percent(15);
  has_long_backups_ = dice_.Percent(70);
  hostile_percent_ = dice_.OneOf<unsigned>({0, 30, 70});
  writer_steps_max_ = slow_path_ != 0 ? 24 : dice_.OneOf<uint64_t>({3, 6, 12});
  // Memory that is in use on a slow path is waited for; elsewhere there is so little that everybody waits for it.
  const bool has_much = slow_path_ != 0 || dice_.Percent(40);
  kChunkBudgetBytes = has_much ? 16 << 20 : kChunkSizeBytes * dice_.OneOf<uint64_t>({1, 2, 4});
  kWriteBufferBudgetBytes = has_much ? 16 << 20 : dice_.OneOf<uint64_t>({64 << 10, 256 << 10});
}

void ThreadWorld::PlanFailure() {
  static constexpr CallKind kKinds[] = {
      CallKind::kWrite,  CallKind::kWrite,     CallKind::kSync,     CallKind::kSync,
      CallKind::kCreate, CallKind::kOpen,      CallKind::kTruncate, CallKind::kRead,
      CallKind::kRename, CallKind::kPunchHole, CallKind::kRemove,   CallKind::kAllocate,
  };
  ++totals_->planned_failures;
  const FiberScheduler::Alone alone(&scheduler_);
  const int system_errno = dice_.Percent(50) ? EIO : ENOSPC;
  const uint64_t number = 1 + dice_.Below(30);
  if (dice_.Percent(10)) {
    disk_.faults()->ShortWrite(number, dice_.Below(16) * kBlockSizeBytes, system_errno);
  } else if (dice_.Percent(10)) {
    disk_.memory()->SetCapacityBytes((128 + dice_.Below(512)) << 10);
  } else {
    disk_.faults()->FailCall(kKinds[dice_.Below(std::size(kKinds))], number, system_errno, dice_.Percent(20));
  }
}

void ThreadWorld::Begin(std::vector<size_t>* clients, const char* name, void (ThreadWorld::*body)(Dice*)) {
  ++totals_->threads;
  clients->push_back(scheduler_.Start(name, [this, body, seed = dice_.Word()] {
    Dice dice(seed);
    (this->*body)(&dice);
  }));
}

void ThreadWorld::StartClients(std::vector<size_t>* clients) {
  for (uint64_t writers = dice_.OneOf<uint64_t>({1, 1, 2, 2, 3, 4}); writers > 0; --writers) {
    Begin(clients, "writer", &ThreadWorld::Writer);
  }
  if (dice_.Percent(40)) Begin(clients, "renewer", &ThreadWorld::Renewer);
  if (dice_.Percent(30)) Begin(clients, "reader", &ThreadWorld::Reader);
  if (dice_.Percent(15)) Begin(clients, "syncer", &ThreadWorld::Syncer);
  if (dice_.Percent(30)) Begin(clients, "backup", &ThreadWorld::Backup);
  if (dice_.Percent(25)) Begin(clients, "collector", &ThreadWorld::Collector);
  if (dice_.Percent(15)) {
    Begin(clients, "dropper", &ThreadWorld::Dropper);
    Begin(clients, "creator", &ThreadWorld::Creator);
  }
}

void ThreadWorld::OneLife() {
  ++totals_->lives;
  std::vector<size_t> clients;
  if (dice_.Percent(25)) {
    PlanFailure();
    has_slow_removals_ = false;  // who fails to make a segment removes it
  }
  if (dice_.Percent(50)) disk_.CutPowerAfter(1 + dice_.Below(dice_.OneOf<uint64_t>({30, 100, 300})));
  StartClients(&clients);
  for (const size_t client : clients) scheduler_.Join(client);
  if (!is_over() && dice_.Percent(80)) CompareQuiet();
  EndLife();
}

void ThreadWorld::EndDeals(bool is_crash) {
  for (const DealPointer& deal : std::vector<DealPointer>(deals_)) {
    if (is_crash && dice_.Percent(50)) NotePrepared(deal->values, DescribeCommit(deal->values), false);
    EndDeal(deal, Value::State::kLost);
  }
}

void ThreadWorld::EndLife() {
  const bool was_off = is_over();
  const bool is_crash = was_off || dice_.Percent(60);
  uint64_t cut_seed = DrawCutSeed();
  if (is_crash) {
    scheduler_.Say("== power is off ==");
    ++(was_off ? totals_->power_cuts : totals_->kills);
    disk_.CutPowerNow();
  } else {
    scheduler_.Say("== clean close ==");
    ++totals_->clean_closes;
    prepared_.clear();
  }
  EndDeals(is_crash);
  disk_.faults()->ClearFailures();
  directory_.reset();
  CheckDisk();
  const FiberScheduler::Alone alone(&scheduler_);
  disk_.memory()->SetCapacityBytes(UINT64_MAX);
  disk_.PowerOn(cut_seed);
  DrawDisturbances();
}

// ---- what the disk takes ----

uint64_t ThreadWorld::DrawDelay(const char* what, const std::string& path, bool changes) {
  if (!changes || is_over()) return 0;
  if (slow_path_ != 0 && disk_.calls() >= slow_from_call_ &&
      path.starts_with(options_.data_paths[slow_path_ - 1] + "/"))
    return kSlowMicros;
  if (has_slow_removals_ && std::strcmp(what, "remove") == 0 && path.ends_with(".qseg")) return kSlowMicros;
  return 0;
}

void ThreadWorld::Before(const char* what, const std::string& path, bool changes) {
  if (changes && pauses_ > 0 && !is_over()) {
    Check(!scheduler_.name().starts_with("quarry_store"), kPausedIsStill, std::string(what) + " " + path);
  }
  if (const uint64_t delay = DrawDelay(what, path, changes); delay > 0) {
    scheduler_.Sleep(delay, what);
  } else {
    scheduler_.Pass(what, CodePlace::current());
  }
  scheduler_.Advance(changes ? 1 + disk_dice_.Below(100) : 1);
  scheduler_.EnterCall();
}

void ThreadWorld::After(const char* what, const std::string& path, bool changes) {
  scheduler_.LeaveCall();
  (void)path;
  CheckDisk();
  // What comes while a flush is under way is not in it.
  if (changes) scheduler_.Pass(what, CodePlace::current());
}

}  // namespace quarry::simulation
