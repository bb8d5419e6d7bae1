// The envelope of the small files (PATH, OPENED), which are replaced whole. Layout: docs/internals/format.md.
//
//   +0 magic u64 | +8 version u16, then u16 0 | +12 body size u32 | +16 body | +16+n checksum u64 of all before it
//
// Invariant: magic, version, size and checksum stand at the same places in every version, so that a file of a newer
// version (kNotSupported) is told from a damaged one (kCorruption).
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quarry/status.h"

namespace quarry {

/// Limit for Env::ReadSmallFile: more than any of these files can grow to.
inline constexpr uint64_t kSmallFileMaxBytes = 64ULL << 20;

/// Longest table name or path that is written ("db/table", quoted and partitioned, is far shorter).
inline constexpr size_t kNameMaxBytes = 4096;

/// kCorruption when a file of `size_bytes` would be refused by a reader for its size.
[[nodiscard]] Status CheckSmallFileSize(uint64_t size_bytes, const std::string& kind, uint64_t store);

[[nodiscard]] std::vector<uint8_t> WrapSmallFile(uint64_t magic, uint16_t version, std::span<const uint8_t> body);

/// The body; points into `file`. `kind` ("PATH") starts the error messages; `store` is 0 where there is none.
[[nodiscard]] Result<std::span<const uint8_t>> UnwrapSmallFile(std::span<const uint8_t> file, uint64_t magic,
                                                               uint16_t version, const std::string& kind,
                                                               uint64_t store);

}  // namespace quarry
