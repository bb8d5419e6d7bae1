// Strong types for the identities that the store hands out. A bare integer never names a thing.
// Thread-safety: values; immutable.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace quarry {

/// Which store: never reused inside one installation; not derived from any table name. 0 is 'none'.
struct StoreId {
  uint64_t value = 0;
  auto operator<=>(const StoreId&) const = default;
};

/// Which segment inside its store; counts from 1. 0 is 'none'.
struct SegmentNumber {
  uint32_t value = 0;
  auto operator<=>(const SegmentNumber&) const = default;
};

/// InnoDB's own id of a table or partition: what a store is bound to. 0 is 'none'.
struct TableId {
  uint64_t value = 0;
  auto operator<=>(const TableId&) const = default;
};

}  // namespace quarry

template <>
struct std::hash<quarry::StoreId> {
  size_t operator()(const quarry::StoreId& id) const noexcept { return std::hash<uint64_t>()(id.value); }
};
template <>
struct std::hash<quarry::TableId> {
  size_t operator()(const quarry::TableId& id) const noexcept { return std::hash<uint64_t>()(id.value); }
};
