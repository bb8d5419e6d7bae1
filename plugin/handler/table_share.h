// QuarryShare: what all handlers of one table (or partition) share: its column layout, its reserved ids.
//
// Invariants:
//  - The layout never changes: a new definition is a new TABLE_SHARE, hence a new QuarryShare.
//  - An id taken from the reserved range is never given again; an explicit value moves the range past itself,
//    as MySQL Cluster's prefetch does.
// Thread-safety: internally synchronised.
#pragma once

#include "columns/column_options.h"
#include "server/mariadb_compat.h"

namespace quarry {

class QuarryShare final : public Handler_share {
 public:
  explicit QuarryShare(ColumnLayout layout) : layout_(std::move(layout)) {}

  [[nodiscard]] const ColumnLayout& layout() const { return layout_; }

  /// A range of ids [first, end) that InnoDB's counter has already moved past.
  struct IdRange {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  /// Takes `wanted` ids congruent to `offset` modulo `increment` from the range; 0 when it does not hold so many.
  uint64_t TakeIds(uint64_t offset, uint64_t increment, uint64_t wanted);
  /// Adds a freshly reserved range and takes `wanted` ids of it, before another session can. What was left of the one
  /// before is lost, never given twice. 0: the new one does not hold so many, and is not added.
  uint64_t AddIds(const IdRange& range, uint64_t offset, uint64_t increment, uint64_t wanted);
  /// An explicit id is about to be written: ids up to it are no longer given.
  void NoteExplicitId(uint64_t value);
  /// InnoDB gave this id by itself (a session that does not prefetch, a replicated statement).
  void NoteGivenId(uint64_t value);
  void ForgetIds();
  /// Cheap: whether any session ever took ids from here.
  [[nodiscard]] bool gives_ids() const { return gives_ids_.load(std::memory_order_acquire); }
  /// Held while a new range is reserved, so that waiting sessions share it. Not to be waited for without limit: its
  /// holder may wait for a lock of InnoDB's that the waiting session has.
  std::timed_mutex& reservation_mutex() { return reservation_mutex_; }

 private:
  /// With ids_mutex_.
  uint64_t TakeIdsLocked(uint64_t offset, uint64_t increment, uint64_t wanted);

  // Constant after construction.
  const ColumnLayout layout_;

  // Taken before ids_mutex_.
  std::timed_mutex reservation_mutex_;

  // Guarded by ids_mutex_.
  std::mutex ids_mutex_;
  IdRange ids_;
  uint64_t explicit_max_ = 0;  ///< the largest explicit id seen: it may lie in a range that is just being reserved

  std::atomic<bool> gives_ids_{false};
};

}  // namespace quarry
