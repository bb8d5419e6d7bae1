// See engine_status.h. What a person wants to see at a glance; each number alone is a status variable too.
#include "engine/engine_status.h"

#include <string>

#include "background/file_steps.h"
#include "background/gc_thread.h"
#include "background/scrub.h"
#include "server/ha_error.h"
#include "server/running_engine.h"
#include "server/session_time.h"
#include "server/variables.h"

namespace quarry {

namespace {

constexpr const char* kRule = "---\n";

class Text {
 public:
  void Section(const char* name) { text_ += std::string(kRule) + name + "\n" + kRule; }
  template <typename... Pieces>
  void Line(const Pieces&... pieces) {
    (Add(pieces), ...);
    text_ += '\n';
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void Add(uint64_t number) { text_ += std::to_string(number); }
  void Add(const std::string& text) { text_ += text; }
  void Add(const char* text) { text_ += text; }
  std::string text_;
};

/// "1.25", of two counters.
std::string Ratio(uint64_t amount, uint64_t by) {
  if (by == 0) return "-";
  char text[32];
  snprintf(text, sizeof(text), "%.2f", static_cast<double>(amount) / static_cast<double>(by));
  return text;
}

void AddStores(Text* text) {
  uint64_t stores = 0;
  uint64_t trash = 0;
  StoreStats sum;
  uint64_t trash_bytes = 0;
  for (const StoreStats& stats : Directory()->ListStores()) {
    if (stats.discarded) {
      ++trash;
      trash_bytes += stats.real_bytes;
      continue;
    }
    ++stores;
    sum.segments += stats.segments;
    sum.extents += stats.extents;
    sum.live_bytes += stats.live_bytes;
    sum.dead_bytes += stats.dead_bytes;
    sum.real_bytes += stats.real_bytes;
  }
  text->Section("STORES");
  text->Line(stores, " stores, ", uint64_t{sum.segments}, " segments, ", sum.extents, " extents");
  text->Line("live bytes ", sum.live_bytes, ", dead bytes ", sum.dead_bytes, ", bytes on disk ", sum.real_bytes,
             " (live and dead by counters)");
  text->Line("bytes on disk / live bytes ", Ratio(sum.real_bytes, sum.live_bytes));
  text->Line("dropped, waiting to be given back: ", trash, " stores, ", trash_bytes, " bytes");
}

void AddWork(Text* text, const Counters& counters) {
  text->Section("APPENDS AND READS");
  text->Line("extents appended ", counters.extents_appended, ", value bytes ", counters.value_bytes_appended,
             ", stored bytes ", counters.stored_bytes_appended, ", bytes written ", counters.file_bytes_written);
  text->Line("bytes written per stored byte ", Ratio(counters.file_bytes_written, counters.stored_bytes_appended));
  text->Line("extents read ", counters.extents_read, ", value bytes ", counters.value_bytes_read, ", bytes read ",
             counters.file_bytes_read, " in ", counters.read_submissions, " submissions");
  text->Line("recent cache: ", counters.recent_cache_hits, " hits, ", counters.recent_cache_misses, " misses, ",
             counters.recent_cache_bytes, " bytes");
  text->Section("GROUP COMMIT");
  text->Line("flushes ", counters.flushes, " for ", counters.committers_flushed, " committers (",
             Ratio(counters.committers_flushed, counters.flushes), " a flush), ", counters.flushes_zeroed,
             " of them into zeroed space");
  text->Line("flush errors ", counters.flush_errors, ", segments poisoned ", counters.segments_poisoned,
             ", catalogue flushes ", counters.catalogue_flushes);
}

void AddGc(Text* text) {
  const GcStatus gc = GetGcStatus();
  text->Section("GC");
  text->Line(gc.state, GcIsOn() ? "" : " (quarry_gc = OFF)");
  text->Line("passes ", gc.passes, ", dropped ", gc.passes_dropped, ", rows scanned ", gc.rows_scanned);
  text->Line("bytes given back ", gc.reclaimed_bytes, ", segments unlinked ", gc.segments_unlinked);
  text->Line("segments rewritten ", gc.segments_rewritten, ", bytes copied ", gc.rewritten_bytes,
             ", not rewritten for want of room ", gc.rewrites_refused);
  text->Line("segments left as they are, for they are damaged ", gc.segments_damaged);
  if (!gc.last_damage.empty()) text->Line("last damage: ", gc.last_damage);
  if (!gc.last_error.empty()) text->Line("last dropped for: ", gc.last_error);
}

void AddHealth(Text* text, THD* thd, const Counters& counters) {
  const ScrubState scrub = GetScrubState();
  text->Section("SCRUB");
  text->Line(ScrubRate() == 0   ? "off (quarry_scrub_rate = 0)"
             : scrub.is_running ? "running"
                                : "waiting for its next round",
             ", last round ended ", scrub.last_seconds == 0 ? "never" : SessionTimeText(thd, scrub.last_seconds));
  text->Line("segments verified ", scrub.segments, ", bytes read ", scrub.bytes, ", whole rounds ", scrub.rounds);
  text->Line("errors ", scrub.errors, ", doubtful ", scrub.doubtful, " (INFORMATION_SCHEMA.QUARRY_DAMAGE)");
  text->Section("HEALTH");
  for (const std::string& reason : Directory()->PathTroubles()) text->Line(reason);
  text->Line("reads refused by a checksum ", counters.corruptions);
  text->Line("background work ", HousekeepingIsPaused() ? "paused, for a backup or a state transfer" : "not paused");
}

bool PrintStatus(THD* thd, stat_print_fn* print) {
  const Counters counters = Directory()->GetCounters();
  Text text;
  text.Line("QUARRY, counted since the server started");
  AddStores(&text);
  AddWork(&text, counters);
  AddGc(&text);
  AddHealth(&text, thd, counters);
  constexpr std::string_view kName = "QUARRY";
  return print(thd, kName.data(), kName.size(), "", 0, text.text().data(), text.text().size());
}

}  // namespace

bool ShowEngineStatus(handlerton*, THD* thd, stat_print_fn* print, enum ha_stat_type type) {
  if (type != HA_ENGINE_STATUS || Directory() == nullptr) return false;
  return Guarded(true, [&] { return PrintStatus(thd, print); });
}

}  // namespace quarry
