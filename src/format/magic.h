// The magic numbers of docs/format.md, as the little-endian integers that their bytes make.
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/coding.h"

namespace quarry {

inline constexpr uint64_t kSegmentMagic = 0x0a0d6d6765535851ULL;       // "QXSegm\r\n"
inline constexpr uint64_t kExtentMagic = 0x0a0d746e65745851ULL;        // "QXtent\r\n"
inline constexpr uint64_t kManifestMagic = 0x0a0d666e614d5851ULL;      // "QXManf\r\n"
inline constexpr uint64_t kDirectoryMagic = 0x0a0d746372445851ULL;     // "QXDrct\r\n"
inline constexpr uint64_t kCommitRecordMagic = 0x0a0d74696d435851ULL;  // "QXCmit\r\n"
inline constexpr uint64_t kPathMagic = 0x0a0d687461505851ULL;          // "QXPath\r\n"
inline constexpr uint64_t kOpenedMagic = 0x0a0d6e65704f5851ULL;        // "QXOpen\r\n"

/// The magic that `bytes` start with; 0 when they are too short.
[[nodiscard]] inline uint64_t MagicOf(std::span<const uint8_t> bytes) {
  return bytes.size() < sizeof(uint64_t) ? 0 : LoadLittleEndian<uint64_t>(bytes, 0);
}

}  // namespace quarry
