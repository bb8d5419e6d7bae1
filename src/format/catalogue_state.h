// CatalogueState: what the records of a catalogue come to. Of each object the last record counts.
//
// Invariants: numbers that are given out next are above every number that a record ever named; a store without a
// record of its own (it was lost) is there when one of its segments has one. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/catalogue_record.h"

namespace quarry {

struct CatalogueState {
  struct Store {
    std::optional<CatalogueStore> record;
    std::map<uint32_t, CatalogueSegment> segments;
  };

  void Apply(const CatalogueRecord& record);
  /// All records but the end, as a snapshot has them.
  [[nodiscard]] std::vector<CatalogueRecord> Records() const;
  /// Those of `store`, and of stores behind it until there are `count_min`. Moves `store` behind them; {0}: no more.
  [[nodiscard]] std::vector<CatalogueRecord> SomeRecords(StoreId* store, size_t count_min) const;
  /// Those that belong to no store.
  [[nodiscard]] std::vector<CatalogueRecord> CommonRecords() const;
  [[nodiscard]] bool MayGiveBack(StoreId store) const;

  CatalogueInstallation installation;
  std::map<uint32_t, std::string> paths;
  std::map<StoreId, Store> stores;
  std::vector<CatalogueDamage> damage;
  CatalogueScrubPlace scrub;
  std::vector<CatalogueUnknown> kept;
};

/// Where records of a store may be lost, and files of it be where nobody can look now: a number behind those that such
/// files may have. `behind_known`: behind the segments of its records and files, so that the next start without a new
/// segment goes no further.
[[nodiscard]] constexpr uint32_t BehindLostSegments(uint32_t behind_known) {
  constexpr uint32_t kLostMax = 1U << 20;
  return behind_known > UINT32_MAX - kLostMax ? UINT32_MAX : behind_known + kLostMax;
}

}  // namespace quarry
