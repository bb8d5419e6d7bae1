// The magic numbers of docs/internals/format.md, as the little-endian integers that their bytes make.
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/coding.h"

namespace quarry {

inline constexpr uint64_t kSegmentMagic = 0x0a0d746d67535851ULL;       // "QXSgmt\r\n"
inline constexpr uint64_t kExtentMagic = 0x0a0d6e7478455851ULL;        // "QXExtn\r\n"
inline constexpr uint32_t kCatalogueMagic = 0x72635851U;               // "QXcr"
inline constexpr uint64_t kCommitRecordMagic = 0x0a0d74746d435851ULL;  // "QXCmtt\r\n"
inline constexpr uint64_t kPathMagic = 0x0a0d687461505851ULL;          // "QXPath\r\n"
inline constexpr uint64_t kOpenedMagic = 0x0a0d6e65704f5851ULL;        // "QXOpen\r\n"

/// Of segments that builds from before the first release wrote: "QXSegm\r\n". They are refused by name.
inline constexpr uint64_t kUnreleasedSegmentMagic = 0x0a0d6d6765535851ULL;

/// The magic that `bytes` start with; 0 when they are too short.
[[nodiscard]] inline uint64_t MagicOf(std::span<const uint8_t> bytes) {
  return bytes.size() < sizeof(uint64_t) ? 0 : LoadLittleEndian<uint64_t>(bytes, 0);
}

}  // namespace quarry
