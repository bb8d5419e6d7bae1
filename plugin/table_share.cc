#include "table_share.h"

#include "hton.h"

namespace quarry {

Result<std::shared_ptr<Store>> QuarryShare::OpenStore(TableId table, const std::string& table_name) {
  const std::lock_guard<std::mutex> guard(store_mutex_);
  if (store_ != nullptr && store_table_ == table) return store_;
  QUARRY_TRY_ASSIGN(store_, Directory()->OpenForAppend(table, table_name));
  store_table_ = table;
  return store_;
}

void QuarryShare::ForgetStore() {
  const std::lock_guard<std::mutex> guard(store_mutex_);
  store_.reset();
  store_table_ = TableId();
}

uint64_t QuarryShare::TakeIds(uint64_t offset, uint64_t increment, uint64_t wanted) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
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

void QuarryShare::AddIds(const IdRange& range) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  ids_ = range;
}

void QuarryShare::NoteId(uint64_t value) {
  const std::lock_guard<std::mutex> guard(ids_mutex_);
  if (value < ids_.first) return;
  ids_.first = value >= ids_.end ? ids_.end : value + 1;
}

void QuarryShare::ForgetIds() { AddIds(IdRange()); }

}  // namespace quarry
