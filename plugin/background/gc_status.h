// GcBoard: what GC's thread tells of itself: counts, the last error and damage, each store's last pass. News of these
// goes to the error log too, once.
//
// Thread-safety: internally synchronised: GC's thread writes, anybody reads.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "quarry/gc.h"
#include "quarry/types.h"

namespace quarry {

struct GcTableWork;

struct GcCounts {
  uint64_t passes = 0;          ///< that ended as they should
  uint64_t passes_dropped = 0;  ///< that gave up
  uint64_t passes_skipped = 0;  ///< that were not begun, because they would take too long
  uint64_t reclaimed_bytes = 0;
  uint64_t segments_unlinked = 0;
  uint64_t segments_rewritten = 0;
  uint64_t rewritten_bytes = 0;   ///< of extents, copied
  uint64_t rewrites_refused = 0;  ///< for want of room; counted by every pass that meets the segment
  uint64_t segments_damaged = 0;  ///< left as they are; likewise
  uint64_t memory_bytes = 0;      ///< the most that a pass took over one table
  uint64_t rows_scanned = 0;
  uint64_t looks = 0;  ///< at whether those that a pass waits for have ended
  uint64_t requests = 0;
  uint64_t requests_done = 0;  ///< as many of them have seen every table's pass end, one way or the other
};

struct GcStatus : GcCounts {
  std::string state;        ///< what it does just now
  std::string last_error;   ///< why the last pass that was dropped was; empty: none was
  std::string last_damage;  ///< the first damage that the last pass met which met any; empty: none did
};

/// What the last pass over a store's table found. ended_at 0: none ended yet.
struct GcStoreStatus {
  uint64_t ended_at = 0;  ///< seconds since 1970, UTC
  uint64_t live_bytes = 0;
  uint64_t needed_s = 0;  ///< by a scan, which is not begun because quarry_gc_timeout is less; 0: it may be
};
class GcBoard {
 public:
  /// One more pass over each table is asked for.
  void Request();
  [[nodiscard]] GcStatus status() const;
  [[nodiscard]] std::optional<GcStoreStatus> OfStore(StoreId store) const;

  void SetState(const std::string& state);
  void NoteLook();
  /// Every table had its look, and `requests` are answered; nothing: the look ended early.
  void EndRound(std::optional<uint64_t> requests);
  void NotePass(const GcTableWork& work);
  /// A scan of their table needs `needed_s`, more than it may take; 0: it does not.
  void NoteNeeded(const std::vector<StoreId>& stores, uint64_t needed_s);
  void NoteSkipped(const std::string& why, bool is_news);
  void NoteDamage(const std::string& table, const GcReport& report);
  void NoteError(const std::string& error, bool is_ending);

 private:
  mutable std::mutex mutex_;  // guards the next two
  GcStatus status_;
  std::map<StoreId, GcStoreStatus> stores_;
};

}  // namespace quarry
