#include "simulation/world.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace quarry::simulation {
namespace {

constexpr const char* kHome = "/home";

}  // namespace

World::World(uint64_t seed, const Settings& settings, Totals* totals)
    : dice_(seed), settings_(settings), totals_(totals) {
  disk_.set_trace(settings.trace);
}

World::~World() {
  disk_.CutPowerNow();
  gc_.reset();
  directory_.reset();
}

std::optional<Violation> World::Run() {
  std::optional<Violation> violation;
  try {
    RunAll();
  } catch (const Violation& thrown) {
    violation = thrown;
  }
  ++totals_->seeds;
  totals_->disk_calls += disk_.calls();
  return violation;
}

void World::RunAll() {
  DrawOptions();
  if (settings_.cut_at_call != 0) disk_.CutPowerAfter(settings_.cut_at_call);
  FirstOpen();
  bool was_cut = false;
  for (clock_ = 1; clock_ <= settings_.operations && !(was_cut && settings_.cut_at_call != 0); ++clock_) {
    OneOperation();
    CheckDisk();
    if (disk_.power_is_off()) {
      ++totals_->cuts_inside_operations;
      was_cut = true;
      Crash(DrawCutSeed());
    }
  }
  Crash(DrawCutSeed());
  if (settings_.cut_at_call == 0 && dice_.Percent(20)) DamageCatalogue();
}

void World::DrawOptions() {
  options_.home_path = kHome;
  options_.segment_size_bytes = dice_.OneOf<uint64_t>({64 << 10, 128 << 10, 256 << 10, 1 << 20});
  options_.zeroed_pool_bytes = dice_.OneOf<uint64_t>({0, 0, 32 << 10, 128 << 10});
  options_.open_files_max = dice_.OneOf<uint32_t>({16, 16, 1024});
  options_.recent_cache_bytes = dice_.OneOf<uint64_t>({0, 0, 4 << 20});
  options_.value_cache_bytes = dice_.OneOf<uint64_t>({0, 0, 100 << 10, 1 << 20});
  options_.catalogue_renewal_bytes = dice_.OneOf<uint64_t>({16 << 10, 100 << 10, 1 << 20});
  has_small_values_ = dice_.Percent(33);
  for (uint64_t path = dice_.OneOf<uint64_t>({0, 0, 1, 2}); path > 0; --path) {
    options_.data_paths.push_back("/disk" + std::to_string(path));
    (void)disk_.memory()->CreateDirectory(options_.data_paths.back());
  }
  (void)disk_.memory()->SyncDirectory("/");
  for (Slot& slot : slots_) slot.table = {next_table_++};
  keys_ = std::make_shared<TestCipherProvider>(dice_.Word());
  keys_->Rotate(kKey, dice_.Word());
  options_.cipher_provider = keys_;
  encrypted_percent_ = dice_.OneOf<unsigned>({0, 0, 50, 100});
}

void World::OneOperation() {
  static constexpr Choice kChoices[] = {
      {38, &World::Append, "append"},
      {14, &World::CommitSome, "commit"},
      {3, &World::RollBack, "roll back"},
      {8, &World::Read, "read"},
      {4, &World::ReadRange, "read range"},
      {7, &World::DeleteRows, "delete"},
      {3, &World::Renew, "renew"},
      {2, &World::SyncAll, "sync all"},
      {1, &World::FlipBit, "flip bit"},
      {2, &World::DropTable, "drop"},
      {1, &World::UndoDrop, "undo drop"},
      {2, &World::EmptyTrash, "empty trash"},
      {2, &World::RebuildTable, "rebuild"},
      {4, &World::BeginGc, "gc begin"},
      {5, &World::MarkGc, "gc mark"},
      {8, &World::ReclaimGc, "gc reclaim"},
      {1, &World::DropGc, "gc drop"},
      {2, &World::Scrub, "scrub"},
      // From here on: not when power is to go at one chosen call.
      {3, &World::PlanFailure, "plan failure"},
      {3, &World::ForgetFailures, "forget failures"},
      {2, &World::ArmPowerCut, "arm power cut"},
      {2, &World::CutPower, "power cut"},
      {1, &World::KillProcess, "kill"},
      {1, &World::CloseCleanly, "close"},
  };
  constexpr size_t kUndisturbed = 18;
  const size_t count = settings_.cut_at_call != 0 ? kUndisturbed : std::size(kChoices);
  unsigned sum = 0;
  for (size_t i = 0; i < count; ++i) sum += kChoices[i].weight;
  uint64_t drawn = dice_.Below(sum);
  const Choice* choice = kChoices;
  for (; drawn >= choice->weight; ++choice) drawn -= choice->weight;
  if (settings_.trace) std::printf("%llu %s\n", static_cast<unsigned long long>(clock_), choice->name);
  ++totals_->operations;
  (this->*choice->operation)();
}

uint64_t World::DrawCutSeed() {
  const uint64_t drawn = dice_.Below(100);
  if (drawn < 15) return 0;
  if (drawn < 25) return UINT64_MAX;
  return (dice_.Word() ^ settings_.cut_at_call) | 1U;
}

// ---- lives of the process ----

void World::FirstOpen() { Reopen(); }

void World::EndLife(bool is_crash) {
  if (!is_crash) prepared_.clear();  // a clean shutdown leaves no transaction undecided
  for (Transaction& transaction : transactions_) {
    if (is_crash && dice_.Percent(50)) NotePrepared(transaction.values, false);
    EndTransaction(&transaction, Value::State::kLost);
  }
  gc_.reset();
  if (directory_ != nullptr) totals_->values_from_cache += directory_->GetCounters().cache_hits;
}

void World::Crash(uint64_t cut_seed) {
  if (settings_.trace) std::printf("  crash, cut seed %llu\n", static_cast<unsigned long long>(cut_seed));
  CheckDisk();
  disk_.CutPowerNow();
  EndLife(true);
  directory_.reset();
  disk_.PowerOn(cut_seed);
  Reopen();
}

void World::CutPower() {
  ++totals_->power_cuts;
  Crash(DrawCutSeed());
}

void World::KillProcess() {
  ++totals_->kills;
  Crash(UINT64_MAX);
}

void World::CloseForGood() {
  disk_.faults()->ClearFailures();
  EndLife(false);
  directory_.reset();
  CheckDisk();
  disk_.PowerOn(DrawCutSeed());
}

void World::CloseCleanly() {
  ++totals_->clean_closes;
  CloseForGood();
  Reopen();
}

void World::ArmPowerCut() { disk_.CutPowerAfter(1 + dice_.Below(40)); }

void World::PlanFailure() {
  static constexpr CallKind kKinds[] = {
      CallKind::kWrite,         CallKind::kWrite,  CallKind::kSync,      CallKind::kSync,  CallKind::kCreate,
      CallKind::kOpen,          CallKind::kRead,   CallKind::kTruncate,  CallKind::kList,  CallKind::kAllocate,
      CallKind::kRename,        CallKind::kRemove, CallKind::kPunchHole, CallKind::kClose, CallKind::kCreateDirectory,
      CallKind::kSyncDirectory,
  };
  ++totals_->planned_failures;
  const int system_errno = dice_.Percent(50) ? EIO : ENOSPC;
  const uint64_t number = 1 + dice_.Below(8);
  if (dice_.Percent(10)) {
    disk_.faults()->ShortWrite(number, dice_.Below(16) * kBlockSizeBytes, system_errno);
  } else if (dice_.Percent(10)) {
    disk_.memory()->SetCapacityBytes((64 + dice_.Below(1024)) << 10);
  } else {
    disk_.faults()->FailCall(kKinds[dice_.Below(std::size(kKinds))], number, system_errno, dice_.Percent(30));
  }
}

void World::ForgetFailures() {
  disk_.faults()->ClearFailures();
  disk_.memory()->SetCapacityBytes(UINT64_MAX);
}

void World::FailOpening() {
  if (settings_.cut_at_call != 0) return;
  if (dice_.Percent(10)) disk_.CutPowerAfter(1 + dice_.Below(12));
  if (dice_.Percent(10)) PlanFailure();
}

void World::Reopen() {
  constexpr int kDisturbedMax = 2;
  if (dice_.Percent(5)) MountMissing();
  for (int attempt = 0; directory_ == nullptr; ++attempt) {
    if (attempt < kDisturbedMax) FailOpening();
    if (attempt == kDisturbedMax) disk_.memory()->SetCapacityBytes(UINT64_MAX);
    Result<std::unique_ptr<StoreDirectoryImpl>> opened = StoreDirectoryImpl::Open(options_, {&disk_, false});
    CheckDisk();
    // With files that could not be looked at (of a data path, of a store) it opens, and takes nothing new there: then
    // it is opened once more.
    const bool may_lack_files =
        opened.ok() && disk_.failures() > 0 && (!options_.data_paths.empty() || !(*opened)->PathTroubles().empty());
    if (opened.ok() && !disk_.power_is_off() && !may_lack_files) {
      directory_ = std::move(opened).value();
      break;
    }
    const bool was_off = disk_.power_is_off();
    Check(was_off || disk_.failures() > 0, kOpensAgain, opened.ok() ? "" : opened.status().ToString());
    // An Open that fails ends the process; what it did stays in the page cache unless power went.
    disk_.CutPowerNow();
    opened = Status::NotFound("closed");
    disk_.PowerOn(was_off ? DrawCutSeed() : UINT64_MAX);
  }
  disk_.faults()->ClearFailures();
  Observe();
  const std::vector<StoreStats> list = directory_->ListStores();
  for (const StoreStats& stats : list) {
    // The catalogue was read: what else it might have said matters no more, but for the LSN, which is not shown.
    std::erase_if(stores_[stats.store.value].others, [&](const Shape& shape) { return !shape.LooksLike(stats); });
  }
  CompareAll();
  CompareStats();
  CheckNoLeftovers();
  VerifyFiles();
  DecidePrepared();
  if (disk_.power_is_off()) return;  // a cut that was planned long ago
  if (dice_.Percent(15)) ReopenTwice();
}

void World::ReopenTwice() {
  const auto describe = [this] {
    std::map<uint64_t, std::string> described;
    for (const StoreStats& stats : directory_->ListStores()) {
      described[stats.store.value] = stats.table_name + " table " + std::to_string(stats.table.value) + " segments " +
                                     std::to_string(stats.segments) + " extents " + std::to_string(stats.extents) +
                                     " live " + std::to_string(stats.live_bytes) + " dead " +
                                     std::to_string(stats.dead_bytes) + " real " + std::to_string(stats.real_bytes) +
                                     (stats.rebinding ? " rebinding" : "") + (stats.discarded ? " discarded" : "");
    }
    return described;
  };
  if (disk_.failures() > 0) return;  // a segment whose scan failed may come out another way
  const auto before = describe();
  disk_.CutPowerNow();
  directory_.reset();
  disk_.PowerOn(UINT64_MAX);
  Result<std::unique_ptr<StoreDirectoryImpl>> opened = StoreDirectoryImpl::Open(options_, {&disk_, false});
  if (disk_.power_is_off()) {  // a cut that was planned long ago
    opened = Status::NotFound("closed");
    disk_.PowerOn(DrawCutSeed());
    return Reopen();
  }
  Check(opened.ok(), kOpensAgain, opened.status().ToString());
  directory_ = std::move(opened).value();
  const auto after = describe();
  for (const auto& [id, description] : before) {
    const auto found = after.find(id);
    const std::string now = found == after.end() ? "gone" : found->second;
    Check(now == description, kReopenTwiceSame, "store " + std::to_string(id) + " was " + description + ", is " + now);
  }
  Check(after.size() == before.size(), kReopenTwiceSame, "a store appeared");
}

void World::MountMissing() {
  if (options_.data_paths.empty() || store_id_max_ == 0) return;
  const std::string path = options_.data_paths[dice_.Below(options_.data_paths.size())];
  MemoryEnv* const memory = disk_.memory();
  (void)memory->Rename(path, path + ".away");
  (void)memory->SyncDirectory("/");
  {
    // Its values are away with it, and nothing else: the others read back, and so do these when it is there again.
    const uint64_t failures_before = disk_.failures();
    const auto opened = StoreDirectoryImpl::Open(options_, {&disk_, false});
    // A cut or a failure may have been planned long ago.
    Check(opened.ok() || disk_.power_is_off() || disk_.failures() > failures_before, kOpensAgain,
          "a data path is away and Open says " + opened.status().ToString());
  }
  (void)memory->Rename(path + ".away", path);
  (void)memory->SyncDirectory("/");
  disk_.PowerOn(UINT64_MAX);
}

}  // namespace quarry::simulation
