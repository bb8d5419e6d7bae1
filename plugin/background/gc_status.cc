#include "background/gc_status.h"

#include <ctime>

#include "background/gc_table_pass.h"
#include "server/error_log.h"

namespace quarry {

void GcBoard::Request() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++status_.requests;
}

GcStatus GcBoard::status() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return status_;
}

std::optional<GcStoreStatus> GcBoard::OfStore(StoreId store) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = stores_.find(store);
  return found == stores_.end() ? std::nullopt : std::optional<GcStoreStatus>(found->second);
}

void GcBoard::SetState(const std::string& state) {
  const std::lock_guard<std::mutex> guard(mutex_);
  status_.state = state;
}

void GcBoard::NoteLook() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++status_.looks;
}

void GcBoard::EndRound(std::optional<uint64_t> requests) {
  const std::lock_guard<std::mutex> guard(mutex_);
  status_.state = "idle";
  if (requests) status_.requests_done = *requests;
}

void GcBoard::NoteNeeded(const std::vector<StoreId>& stores, uint64_t needed_s) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const StoreId store : stores) stores_[store].needed_s = needed_s;
}

void GcBoard::NoteSkipped(const std::string& why, bool is_news) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    status_.last_error = why;
    ++status_.passes_skipped;
  }
  if (is_news) {
    LogWarning("no mark pass over table %s; nothing of it is given back until that is raised", why.c_str());
  }
}

void GcBoard::NotePass(const GcTableWork& work) {
  const GcOutcome& outcome = work.outcome;
  const std::lock_guard<std::mutex> guard(mutex_);
  ++(work.status.ok() ? status_.passes : status_.passes_dropped);
  status_.memory_bytes = std::max(status_.memory_bytes, outcome.report.memory_bytes);
  status_.rows_scanned += outcome.rows;
  status_.reclaimed_bytes += outcome.report.reclaimed_bytes;
  status_.segments_unlinked += outcome.report.segments_unlinked;
  status_.segments_rewritten += outcome.report.segments_rewritten;
  status_.rewritten_bytes += outcome.report.rewritten_bytes;
  status_.rewrites_refused += outcome.report.rewrites_refused;
  status_.segments_damaged += outcome.report.segments_damaged;
  if (!work.status.ok()) return;
  for (const StoreId store : work.target.stores) {
    const auto live = outcome.live_bytes.find(store);
    stores_[store] = {static_cast<uint64_t>(time(nullptr)), live == outcome.live_bytes.end() ? 0 : live->second, 0};
  }
}

void GcBoard::NoteDamage(const std::string& table, const GcReport& report) {
  bool news = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    news = status_.last_damage != report.damage;
    status_.last_damage = report.damage;
  }
  if (!news) return;
  LogError("GC leaves %llu damaged segments of table %s as they are; the first: %s",
           static_cast<unsigned long long>(report.segments_damaged), table.c_str(), report.damage.c_str());
}

void GcBoard::NoteError(const std::string& error, bool is_ending) {
  bool news = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    news = !is_ending && status_.last_error != error;
    status_.last_error = error;
  }
  if (news) LogWarning("a mark pass was dropped and will be tried again: %s", error.c_str());
}

}  // namespace quarry
