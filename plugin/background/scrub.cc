// See scrub.h.
#include "background/scrub.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>

#include "background/file_steps.h"
#include "quarry/gc.h"
#include "quarry/memory_guard.h"
#include "server/background_thread.h"
#include "server/error_log.h"
#include "server/mariadb_compat.h"
#include "server/running_engine.h"
#include "server/variables.h"

namespace quarry {

namespace {

/// Not in the first minutes of a server, which have enough to do.
constexpr uint64_t kFirstRoundSeconds = 600;
constexpr std::chrono::seconds kNap{1};
/// Between two notes of where it is: each is a flush.
constexpr uint64_t kNoteSeconds = 3600;

struct Findings {
  std::mutex mutex;  // guards the rest
  ScrubState state;
  std::vector<Damage> damages;  // of the last whole round, and new ones
  std::vector<Damage> found;    // in this round
};
Findings scrub;

BackgroundThread thread("quarry_scrub");

uint64_t NowSeconds() { return static_cast<uint64_t>(time(nullptr)); }

uint64_t NowMicros() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

bool SamePlace(const Damage& damage, const Finding& finding) {
  return damage.finding.store == finding.store && damage.finding.segment == finding.segment &&
         damage.finding.offset_bytes == finding.offset_bytes && damage.finding.kind == finding.kind;
}

void Report(const Finding& finding) {
  const bool is_doubtful = finding.kind == FindingKind::kDoubtful;
  const std::string place = "table '" + finding.table_name + "' store " + std::to_string(finding.store.value) +
                            " segment " + std::to_string(finding.segment.value) + " offset " +
                            std::to_string(finding.offset_bytes) + " length " + std::to_string(finding.size_bytes);
  if (is_doubtful) {
    LogWarning("scrub: doubtful bytes, %s: %s (in %s). CHECK TABLE tells whether a row needs them", place.c_str(),
               finding.what.c_str(), finding.path.c_str());
  } else {
    LogError("scrub: %s, %s: %s (in %s). CHECK TABLE names the rows; check the drive", FindingKindName(finding.kind),
             place.c_str(), finding.what.c_str(), finding.path.c_str());
  }
}

/// A restart goes on there.
void NotePlace(const ScrubPlace& place) {
  const Status status = OrOutOfMemory([&] { return NoteScrubPlace(Directory(), place); });
  if (status.ok()) return;
  LogWarning("where the scrub is could not be noted: %s: %s", StatusCodeName(status.code()), status.message().c_str());
}

class Observer final : public VerifyObserver {
 public:
  /// `place` is where the scrub is; `noted_seconds`, when that was noted last.
  Observer(const ScrubPlace* place, uint64_t* noted_seconds) : place_(place), noted_seconds_(noted_seconds) {}

  void Found(const Finding& finding) override {
    if (finding.kind == FindingKind::kLeftover) return;
    bool is_new = false;
    {
      const std::lock_guard<std::mutex> guard(scrub.mutex);
      ++(finding.kind == FindingKind::kDoubtful ? scrub.state.doubtful : scrub.state.errors);
      const Damage damage{finding, NowSeconds()};
      const auto is_same = [&finding](const Damage& known) { return SamePlace(known, finding); };
      if (scrub.found.size() < kDamagesMax) scrub.found.push_back(damage);
      is_new = std::none_of(scrub.damages.begin(), scrub.damages.end(), is_same) && scrub.damages.size() < kDamagesMax;
      if (is_new) scrub.damages.push_back(damage);
    }
    // What was named before need not fill the log every week.
    if (is_new) Report(finding);
  }

  bool Progress(const VerifyProgress& progress) override {
    const uint64_t read = progress.bytes_done - std::min(before_, progress.bytes_done);
    before_ = progress.bytes_done;
    {
      const std::lock_guard<std::mutex> guard(scrub.mutex);
      scrub.state.bytes += read;
    }
    const uint64_t rate = ScrubRate();
    if (rate == 0) return false;
    if (rate != rate_now_) rate_.emplace(rate_now_ = rate);
    if (!thread.Wait(std::chrono::microseconds(rate_->WaitMicros(read, NowMicros())))) return false;
    while (HousekeepingIsPaused()) {
      if (!thread.Wait(kNap)) return false;
    }
    if (NowSeconds() >= *noted_seconds_ + kNoteSeconds) {
      *noted_seconds_ = NowSeconds();
      NotePlace(*place_);
    }
    return true;
  }

 private:
  const ScrubPlace* const place_;
  uint64_t* const noted_seconds_;
  uint64_t before_ = 0;
  uint64_t rate_now_ = 0;
  std::optional<GcRate> rate_;  ///< there from the first call on
};

void EndRound() {
  const std::lock_guard<std::mutex> guard(scrub.mutex);
  ++scrub.state.rounds;
  scrub.state.last_seconds = NowSeconds();
  scrub.damages = std::move(scrub.found);
  scrub.found.clear();
}

void SetRunning(bool is_running) {
  const std::lock_guard<std::mutex> guard(scrub.mutex);
  scrub.state.is_running = is_running;
}

/// True: a round is due. Looks once a second, for the variables may change.
bool IsDue(uint64_t last_began_seconds, bool is_first, uint64_t started_seconds) {
  if (ScrubRate() == 0 || HousekeepingIsPaused()) return false;
  const uint64_t since = is_first ? started_seconds : last_began_seconds;
  const uint64_t wait = is_first ? std::min(ScrubInterval(), kFirstRoundSeconds) : ScrubInterval();
  return NowSeconds() >= since + wait;
}

/// A round that takes longer than the interval between two: says so.
void NoteLength() {
  uint64_t bytes = 0;
  for (const StoreStats& store : Directory()->ListBindings()) {
    if (!store.discarded) bytes += store.live_bytes + store.dead_bytes;
  }
  const uint64_t rate = ScrubRate();
  const uint64_t interval = ScrubInterval();
  const uint64_t seconds = rate == 0 ? 0 : bytes / rate;
  {
    const std::lock_guard<std::mutex> guard(scrub.mutex);
    scrub.state.round_seconds = seconds;
  }
  if (seconds <= interval || interval == 0) return;
  LogWarning(
      "the scrub needs %llu s for its %llu bytes at quarry_scrub_rate=%llu, longer than "
      "quarry_scrub_interval=%llu s: damage is found that much later. For a round in time the rate must be "
      "at least %llu",
      static_cast<unsigned long long>(seconds), static_cast<unsigned long long>(bytes),
      static_cast<unsigned long long>(rate), static_cast<unsigned long long>(interval),
      static_cast<unsigned long long>(bytes / interval + 1));
}

void Run() {
  const uint64_t started = NowSeconds();
  uint64_t began = started;
  bool is_first = true;
  bool is_under_way = false;
  uint64_t noted = started;
  ScrubPlace place = LastScrubPlace(Directory());
  while (thread.Wait(kNap)) {
    if (!is_under_way && !IsDue(began, is_first, started)) continue;
    if (ScrubRate() == 0) continue;
    if (!is_under_way) {
      is_first = false;
      is_under_way = true;
      began = NowSeconds();
      (void)thread.TryPass([] { NoteLength(); });
    }
    Observer observer(&place, &noted);
    SetRunning(true);
    const VerifyTotals totals = ScrubStores(Directory(), &place, &observer);
    SetRunning(false);
    {
      const std::lock_guard<std::mutex> guard(scrub.mutex);
      scrub.state.segments += totals.segments - (totals.stopped && !totals.is_out_of_memory ? 1 : 0);
    }
    if (totals.is_out_of_memory) {
      thread.NoteOutOfMemory();
      (void)thread.Wait(BackgroundThread::kRest);
    }
    if (totals.stopped) continue;  // no memory, the end of the thread, or a rate of 0: it goes on from `place`
    is_under_way = false;
    place = {};
    EndRound();
    if (LastScrubPlace(Directory()).store != StoreId{}) NotePlace(place);
  }
  if (is_under_way) NotePlace(place);
}

void Reset() {
  const std::lock_guard<std::mutex> guard(scrub.mutex);
  scrub.state = ScrubState();
  scrub.damages.clear();
  scrub.found.clear();
}

}  // namespace

void StartScrub() { thread.Start(Reset, Run); }
void StopScrub() { thread.Stop(); }

ScrubState GetScrubState() {
  const std::lock_guard<std::mutex> guard(scrub.mutex);
  return scrub.state;
}

std::vector<Damage> GetDamages() {
  const std::lock_guard<std::mutex> guard(scrub.mutex);
  return scrub.damages;
}

}  // namespace quarry
