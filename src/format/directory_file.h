// DIRECTORY (one per home), PATH and OPENED (one per data path). Normative layout: docs/format.md.
//
//   DIRECTORY body: installation id 16 bytes | created micros u64 | next store id u64 | next path number u32
//                   | path count u32 | { path number u32, path (u32 size, bytes) } ...
//   PATH body:      installation id 16 bytes | path number u32 | created micros u64
//   OPENED body:    inode u64 | birth nanos u64 | number u64 | number before u64
//
// Invariants: path number 0 is the home itself and is not listed; listed numbers rise strictly, start at 1, and are
// never given to another path again. Every store id below the next store id may be in use; none at or above it is.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/catalogue_record.h"
#include "format/segment_header.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

struct DirectoryFile {
  InstallationId installation{};
  uint64_t created_micros = 0;
  StoreId next_store{1};  ///< high-water mark: ids are handed out only below what is durable here
  uint32_t next_path_number = 1;
  std::vector<DataPath> paths;
  bool operator==(const DirectoryFile&) const = default;
};

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

/// Encodes whatever `directory` says; an impossible one gives a file that is refused when it is read.
[[nodiscard]] std::vector<uint8_t> EncodeDirectoryFile(const DirectoryFile& directory);
/// The same for writing: kCorruption unless the file was read back and is `directory` again.
[[nodiscard]] Result<std::vector<uint8_t>> EncodeDirectoryFileVerified(const DirectoryFile& directory);
[[nodiscard]] Result<DirectoryFile> DecodeDirectoryFile(std::span<const uint8_t> file);

[[nodiscard]] std::vector<uint8_t> EncodePathMarker(const PathMarker& marker);
[[nodiscard]] Result<PathMarker> DecodePathMarker(std::span<const uint8_t> file);

[[nodiscard]] std::vector<uint8_t> EncodeOpenedRecord(const OpenedRecord& record);
[[nodiscard]] Result<OpenedRecord> DecodeOpenedRecord(std::span<const uint8_t> file);

}  // namespace quarry
