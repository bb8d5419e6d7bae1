// See gc_policy.h.
#include "background/gc_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "quarry/gc.h"

namespace quarry {

namespace {

constexpr double kRateWindowS = 1;
constexpr double kTellingScanS = 0.1;
/// A scan tells nothing of one of more than so many times its rows: what it took may have been for the partitions that
/// it opened, or for rows that were deleted.
constexpr uint64_t kTellingTimes = 10;
/// Between two tries of a table whose passes are dropped, at the most.
constexpr uint64_t kRetryMaxS = 3600;
constexpr uint32_t kDoublingsMax = 16;
/// A table without so large a part of what it had may be scanned in time again.
constexpr uint64_t kShrunkShare = 10;

uint64_t Growth(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

/// What the last pass left (extents that share a block with live ones) only counts again when there is so much more. A
/// share of the table, without a least number of bytes: by so much it may be beyond its bound, and small tables have
/// one, too.
uint64_t EnoughOf(uint64_t real_bytes) { return real_bytes / 20; }

uint64_t EnoughChange(const GcMemory& last) { return EnoughOf(last.left.real_bytes); }

uint64_t Change(const GcFigures& now, const GcMemory& last) {
  return std::max({Growth(now.real_bytes, last.left.real_bytes), Growth(now.dead_bytes, last.left.dead_bytes),
                   Growth(last.left.live_bytes, now.live_bytes)});
}

}  // namespace

double RewriteAbove(const GcSettings& settings) {
  return std::min(GcOptions().rewrite_above, settings.space_amplification_max);
}

bool IsToCount(const GcFigures& now, const std::optional<GcMemory>& last) {
  return now.uncounted_bytes > 0 && !last.has_value();
}

bool CountingTurns::IsDue(size_t tables, const GcSettings& settings, uint64_t now_s) {
  tables_max_ = std::max(tables_max_, tables);
  if (tables == 0 || settings.full_interval_s == 0) return false;
  const uint64_t turn = tables_max_ - tables + 1;
  return now_s >= started_s_ + settings.full_interval_s * turn / (tables_max_ + 1);
}

GcVerdict JudgeGc(const GcFigures& now, const std::optional<GcMemory>& last, const GcSettings& settings, uint64_t now_s,
                  uint64_t known_since_s) {
  const uint64_t since_s = last ? last->ended_at_s : known_since_s;
  if (settings.full_interval_s != 0 && now_s >= since_s + settings.full_interval_s && now.real_bytes > 0) {
    return GcVerdict::kDue;
  }
  const uint64_t excess = Growth(now.real_bytes, now.live_bytes);
  const bool amplified =
      excess >= kGcWorthMinBytes &&
      static_cast<double>(now.real_bytes) > settings.space_amplification_max * static_cast<double>(now.live_bytes);
  if (!amplified) return GcVerdict::kNotYet;
  if (!last || last->left_some) return GcVerdict::kAmplified;
  return Change(now, *last) >= EnoughChange(*last) ? GcVerdict::kAmplified : GcVerdict::kNotYet;
}

GcMemory AfterPass(const GcFigures& before, const GcFigures& after, uint64_t reclaimed_bytes, uint64_t now_s) {
  // What is real and neither live nor dead is room that a segment has been given and not used yet.
  // A little that comes back each time promises nothing: the rest may lie where nothing can be given back.
  const bool gave_much = reclaimed_bytes > 0 && reclaimed_bytes >= EnoughOf(before.real_bytes);
  const bool left_some = gave_much && Growth(after.real_bytes, after.live_bytes) >= kGcWorthMinBytes;
  const GcFigures left = {Growth(before.real_bytes, reclaimed_bytes), std::max(before.live_bytes, after.live_bytes),
                          std::min(before.dead_bytes, after.dead_bytes)};
  return {left, now_s, left_some};
}

uint64_t DeadUntilAmplified(const GcFigures& now, const std::optional<GcMemory>& last, const GcSettings& settings) {
  // What dies is live no more; that nothing is written in its place is the least favourable.
  const auto live_allowed =
      static_cast<uint64_t>(static_cast<double>(now.real_bytes) / settings.space_amplification_max);
  uint64_t missing =
      std::max(Growth(now.live_bytes, live_allowed), Growth(now.live_bytes + kGcWorthMinBytes, now.real_bytes));
  if (last && !last->left_some) missing = std::max(missing, Growth(EnoughChange(*last), Change(now, *last)));
  return missing;
}

GcFigures WhenOverwritten(const GcFigures& now, uint64_t bytes, const GcSettings& settings) {
  const double half = (settings.space_amplification_max - 1) / 2 * static_cast<double>(now.live_bytes);
  bytes = std::min(bytes, static_cast<uint64_t>(half));
  return {now.real_bytes + bytes, now.live_bytes, now.dead_bytes + bytes};
}

bool GoesOnWithPostponed(uint64_t rewrites_postponed, uint64_t segments_rewritten, bool* was_fruitless) {
  const bool is_fruitless = rewrites_postponed > 0 && segments_rewritten == 0;
  const bool both_were = std::exchange(*was_fruitless, is_fruitless) && is_fruitless;
  return rewrites_postponed > 0 && !both_were;
}

uint64_t RetrySeconds(uint32_t drops, uint64_t interval_s) {
  if (drops <= 1) return 0;
  return std::min(interval_s << std::min(drops - 1, kDoublingsMax), std::max(interval_s, kRetryMaxS));
}

void ReleaseRate::Note(uint64_t released_bytes, double now_s) {
  samples_.push_back({released_bytes, now_s});
  while (samples_.size() > 2 && samples_[1].at_s <= now_s - kRateWindowS) samples_.pop_front();
  const Sample& first = samples_.front();
  const double passed_s = now_s - first.at_s;
  bytes_per_second_ = passed_s > 0 ? static_cast<double>(released_bytes - first.released_bytes) / passed_s : 0;
}

void NoteScan(ScanMemory* scan, uint64_t rows, double seconds, bool whole, uint64_t timeout_s, uint64_t extents) {
  // One that is over at once tells the time of a look, not of a row.
  if (seconds >= kTellingScanS) scan->rows_per_second = static_cast<double>(rows) / seconds;
  scan->rows = whole ? rows : std::max(scan->rows, rows);
  scan->overran_timeout_s = whole ? 0 : timeout_s;
  scan->overran_extents = extents;
}

uint64_t ScanSecondsBeyond(const ScanMemory& scan, uint64_t extents, double others_rows_per_second,
                           uint64_t timeout_s) {
  const uint64_t rows_wanted = std::max(scan.rows, extents);
  const bool tells = scan.rows_per_second > 0 && rows_wanted / kTellingTimes <= scan.rows;
  const double rate = tells ? std::max(scan.rows_per_second, others_rows_per_second) : 0;
  const auto rows = static_cast<double>(rows_wanted);
  uint64_t seconds = rate > 0 ? static_cast<uint64_t>(std::ceil(rows / rate)) : 0;
  const bool has_shrunk = extents < scan.overran_extents - scan.overran_extents / kShrunkShare;
  if (scan.overran_timeout_s >= timeout_s && scan.overran_timeout_s > 0 && !has_shrunk) {
    const double own = scan.rows_per_second > 0 ? std::ceil(rows / scan.rows_per_second) : 0;
    seconds = std::max(static_cast<uint64_t>(own), scan.overran_timeout_s + 1);
  }
  return seconds > timeout_s ? seconds : 0;
}

}  // namespace quarry
