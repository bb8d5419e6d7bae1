#include "handler/table_share.h"

namespace quarry {

uint64_t QuarryShare::TakeIds(uint64_t offset, uint64_t increment, uint64_t wanted) {
  gives_ids_.store(true, std::memory_order_release);
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  return TakeIdsLocked(offset, increment, wanted);
}

uint64_t QuarryShare::TakeIdsLocked(uint64_t offset, uint64_t increment, uint64_t wanted) {
  if (ids_.first >= ids_.end || wanted == 0) return 0;
  uint64_t first = ids_.first;
  // As the server's compute_next_insert_id: an offset above the increment is ignored.
  const uint64_t base = offset > increment ? 1 : offset;
  if (increment > 1) first = first <= base ? base : base + (first - base + increment - 1) / increment * increment;
  if (first < ids_.first || first >= ids_.end) return 0;
  if ((wanted - 1) > (ids_.end - 1 - first) / increment) return 0;
  ids_.first = first + (wanted - 1) * increment + 1;
  return first;
}

// An explicit id may be in the range: it was named a moment ago, or InnoDB refused its row. The session that asked for
// the range gets that id too, as it would from InnoDB; the others get what is behind it.
uint64_t QuarryShare::AddIds(const IdRange& range, uint64_t offset, uint64_t increment, uint64_t wanted) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  const IdRange before = std::exchange(ids_, range);
  const uint64_t first = TakeIdsLocked(offset, increment, wanted);
  if (first == 0) ids_ = before;
  if (explicit_max_ >= ids_.first && explicit_max_ < ids_.end) ids_.first = explicit_max_ + 1;
  return first;
}

void QuarryShare::NoteExplicitId(uint64_t value) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  explicit_max_ = std::max(explicit_max_, value);
  if (value >= ids_.first) ids_.first = value >= ids_.end ? ids_.end : value + 1;
}

void QuarryShare::NoteGivenId(uint64_t value) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  if (value >= ids_.first && value < ids_.end) ids_.first = value + 1;
}

void QuarryShare::ForgetIds() {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  ids_ = IdRange();
  explicit_max_ = 0;
}

}  // namespace quarry
