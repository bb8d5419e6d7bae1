// IsZero: reserved bytes, padding, holes.
// Thread-safety: a pure function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace quarry {

[[nodiscard]] inline bool IsZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace quarry
