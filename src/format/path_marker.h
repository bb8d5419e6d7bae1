// PATH and OPENED (one per data path). Normative layout: docs/internals/format.md.
//
//   PATH body:      installation id 16 bytes | path number u32 | created micros u64
//   OPENED body:    inode u64 | birth nanos u64 | number u64 | number before u64
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/segment_header.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

struct PathMarker {
  InstallationId installation{};
  uint32_t path_number = 0;
  uint64_t created_micros = 0;
  bool operator==(const PathMarker&) const = default;
};

/// Which home opened a data path last. Where the home's file system keeps no birth times, inode and birth are 0 and the
/// number tells: it is renewed at each opening, and the home has an OPENED, too.
struct OpenedRecord {
  uint64_t inode = 0;
  uint64_t birth_nanos = 0;
  uint64_t number = 0;         ///< 0: none
  uint64_t number_before = 0;  ///< of a home: paths that a crash kept from being renewed still have it
  bool operator==(const OpenedRecord&) const = default;
};

[[nodiscard]] std::vector<uint8_t> EncodePathMarker(const PathMarker& marker);
[[nodiscard]] Result<PathMarker> DecodePathMarker(std::span<const uint8_t> file);

[[nodiscard]] std::vector<uint8_t> EncodeOpenedRecord(const OpenedRecord& record);
[[nodiscard]] Result<OpenedRecord> DecodeOpenedRecord(std::span<const uint8_t> file);

}  // namespace quarry
