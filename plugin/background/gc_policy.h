// GcPolicy: when a mark pass over a table is worth it. Counters say so (how much of a store is probably dead); they may
// be wrong, for cascades and detached transactions escape them, so every table has its turn at long intervals anyway.
//
// Looks at the counters are some time apart, for they ask the file system; so that a table that is overwritten fast
// does not go far beyond its bound meanwhile, what was released since the last look says when the next one can't wait,
// and a pass begins as early as what will be overwritten until it ends demands.
//
// Invariant: a pass that gave nothing back is not repeated until the table has changed.
// Thread-safety: values; externally synchronised.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace quarry {

/// Of all stores of a table, in bytes.
struct GcFigures {
  uint64_t real_bytes = 0;
  uint64_t live_bytes = 0;       ///< by the counters, which a pass puts right
  uint64_t dead_bytes = 0;       ///< by the counters
  uint64_t uncounted_bytes = 0;  ///< of the live: nobody knows how much of them is dead
  uint64_t extents = 0;          ///< by the counters: at least so many rows
};

struct GcSettings {
  double space_amplification_max = 1.5;
  uint64_t full_interval_s = 86400;  ///< 0: never without a reason
};

/// Above which ratio of real to live bytes a pass rewrites a segment: never above what the whole table may have.
[[nodiscard]] double RewriteAbove(const GcSettings& settings);

/// What is remembered of a table's last pass.
struct GcMemory {
  /// What it left, without what was appended and what died while it ran: its turn is the next pass.
  GcFigures left;
  uint64_t ended_at_s = 0;  ///< on a steady clock
  /// It gave much space back, and there is more that is not live: in segments that were full but not flushed yet.
  bool left_some = false;
};

/// Whether a pass is to count what a crash left uncounted. `last`: one did, and what it left it could not count: that
/// is on a path that is away, or of a store of which nothing is given back.
[[nodiscard]] bool IsToCount(const GcFigures& now, const std::optional<GcMemory>& last);

/// What a crash left uncounted is counted by a pass over its table. Not all at once: the turns are spread over the full
/// interval, and the caller gives each to the table that has released most.
class CountingTurns {
 public:
  explicit CountingTurns(uint64_t started_s) : started_s_(started_s) {}
  /// Whether one more of the `tables` that are left has its turn.
  [[nodiscard]] bool IsDue(size_t tables, const GcSettings& settings, uint64_t now_s);

 private:
  const uint64_t started_s_;
  size_t tables_max_ = 0;
};

enum class GcVerdict : uint8_t { kNotYet, kAmplified, kDue };

/// Below so much dead space, a table is left alone until its turn comes.
inline constexpr uint64_t kGcWorthMinBytes = 4ULL << 20;

/// Of a pass that ended now. `before`, `after`: the table's figures when it began and ended; `reclaimed_bytes`: what it
/// gave back.
[[nodiscard]] GcMemory AfterPass(const GcFigures& before, const GcFigures& after, uint64_t reclaimed_bytes,
                                 uint64_t now_s);

/// How many more bytes must at least die before JudgeGc can say kAmplified, while nothing is appended. 0: now.
[[nodiscard]] uint64_t DeadUntilAmplified(const GcFigures& now, const std::optional<GcMemory>& last,
                                          const GcSettings& settings);

/// The figures when `bytes` more of what lives have been overwritten by as many. Not more than half of what the bound
/// allows: where that is overwritten while a pass runs, passes that begin still earlier would find little to give back,
/// and copy the more.
[[nodiscard]] GcFigures WhenOverwritten(const GcFigures& now, uint64_t bytes, const GcSettings& settings);

/// Whether another pass at once is worth it for the segments that had no room in the memory of this one. Counters that
/// the marks put right excuse one pass that rewrote nothing: behind two in a row, what kept them from it is still there
/// (a full disk, damage), and it would keep all that follow. `was_fruitless` is kept from pass to pass.
[[nodiscard]] bool GoesOnWithPostponed(uint64_t rewrites_postponed, uint64_t segments_rewritten, bool* was_fruitless);

/// How long a table whose last `drops` passes were dropped waits, beyond the next of the looks that are `interval_s`
/// apart: each pass that is dropped has sealed what its table appended to.
[[nodiscard]] uint64_t RetrySeconds(uint32_t drops, uint64_t interval_s);

/// How fast extents are released now: over about the last second.
class ReleaseRate {
 public:
  /// `released_bytes`: of all time. `now_s`: never falls. A few times a second.
  void Note(uint64_t released_bytes, double now_s);
  [[nodiscard]] double bytes_per_second() const { return bytes_per_second_; }

 private:
  struct Sample {
    uint64_t released_bytes = 0;
    double at_s = 0;
  };
  std::deque<Sample> samples_;  ///< oldest first
  double bytes_per_second_ = 0;
};

/// What the last scans of a table say of the next one.
struct ScanMemory {
  uint64_t rows = 0;               ///< that the last whole one saw
  double rows_per_second = 0;      ///< of the last one; 0: there was none
  uint64_t overran_timeout_s = 0;  ///< the last one did not end within so much; 0: it did
  uint64_t overran_extents = 0;    ///< of the table, then
};

/// A scan of `rows` took `seconds`. `whole`: it saw all of them; else it ran into `timeout_s`, of a table of `extents`.
void NoteScan(ScanMemory* scan, uint64_t rows, double seconds, bool whole, uint64_t timeout_s, uint64_t extents);

/// The seconds that the next scan needs, when they are more than `timeout_s`; else, or when nobody knows, 0.
/// `extents`: of the table now; many times as many as the last scan saw: nobody knows. `others_rows_per_second`: of the
/// last scan of any table; the faster of the two counts, so that one slow hour keeps no table from its passes for good.
/// It never forbids what the table's own scans allow: another table may be slow for reasons of its own.
[[nodiscard]] uint64_t ScanSecondsBeyond(const ScanMemory& scan, uint64_t extents, double others_rows_per_second,
                                         uint64_t timeout_s);

/// `known_since_s`: when the table was first seen by this server.
[[nodiscard]] GcVerdict JudgeGc(const GcFigures& now, const std::optional<GcMemory>& last, const GcSettings& settings,
                                uint64_t now_s, uint64_t known_since_s);

}  // namespace quarry
