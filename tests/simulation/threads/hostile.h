// Values whose bytes pretend to be the store's own: what is inside a value must decide nothing.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/segment_header.h"
#include "quarry/locator.h"
#include "simulation/model.h"

namespace quarry::simulation {

/// What whoever may INSERT can know or guess.
struct HostileFacts {
  StoreId store;
  SegmentNumber segment;         ///< that is probably appended to
  uint64_t end_bytes = 0;        ///< where its last extent ends, as far as is known
  uint32_t part_size_bytes = 0;  ///< of the value to come
  bool is_compressed = false;    ///< it will be, if that pays
  Locator other;                 ///< of some value
  std::vector<uint8_t> file;     ///< bytes of some file of the store: a segment or the catalogue
};

enum class Hostile : uint8_t {
  kHeaders,   ///< an extent's header and index every few bytes, for each place at which the value may begin
  kExtents,   ///< the same, each with the part that it names
  kTrailers,  ///< trailers of heads, at the end too
  kRecords,   ///< commit records
  kFile,      ///< a whole segment or catalogue
  kZeros,     ///< zeros, with a header behind them
};
inline constexpr uint64_t kHostileKinds = 6;

[[nodiscard]] std::vector<uint8_t> MakeHostile(Hostile kind, size_t size_bytes, const HostileFacts& facts, Dice* dice);

}  // namespace quarry::simulation
