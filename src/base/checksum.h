// Checksums of everything on disk: XXH3 with 64 bits, seed 0 (docs/internals/format.md).
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace quarry {

[[nodiscard]] uint64_t Checksum64(std::span<const uint8_t> data);

/// The low 32 bits of Checksum64.
[[nodiscard]] inline uint32_t Checksum32(std::span<const uint8_t> data) {
  return static_cast<uint32_t>(Checksum64(data));
}

}  // namespace quarry
