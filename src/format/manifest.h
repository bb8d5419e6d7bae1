// MANIFEST of one store: what it is bound to and which segments it has. Normative layout: docs/format.md.
//
//   body:    store id u64 | sequence u64 | created micros u64 | discarded at LSN u64 | next segment number u32
//            | flags u16 (1 rebinding, 2 discarded, 4 prefix limit stated) | prefix limit u16
//            | table name (u32 size, bytes) | table count u32 | table id u64 ...
//            | segment count u32 | segment ...
//   segment: number u32 | path number u32 | state u32 (and flag 256 uncounted) | size u64 | extents u64 | live bytes
//   u64
//            | dead bytes u64 | checkpoint position u64
//
// Invariants: segment numbers rise strictly and stay below the next segment number; counters are hints; the checkpoint
// position of a segment that is not active lies within its size.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/catalogue_record.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

struct ManifestSegment {
  SegmentNumber segment;
  uint32_t path_number = 0;
  SegmentState state = SegmentState::kActive;
  uint64_t size_bytes = 0;  ///< of the file when the manifest was written; of an active one a lower bound
  uint64_t extents = 0;     ///< appended below the checkpoint position and not released (a hint)
  uint64_t live_bytes = 0;  ///< a hint
  uint64_t dead_bytes = 0;  ///< a hint
  uint64_t checkpoint_position_bytes = 0;  ///< the counters cover everything below; recovery scans from here
  /// It may hold extents that the counters leave out: dead ones, which a mark pass did not count, or what a scan could
  /// not read.
  bool has_uncounted = false;
  /// Of one that is not active: a scan after a crash counted what lies behind the position, and may be wrong.
  [[nodiscard]] bool is_estimated() const { return has_uncounted && checkpoint_position_bytes < size_bytes; }
  bool operator==(const ManifestSegment&) const = default;
};

struct Manifest {
  StoreId store;
  uint64_t sequence = 0;  ///< one higher at each rewrite
  uint64_t created_micros = 0;
  SegmentNumber next_segment{1};
  bool rebinding = false;         ///< a rebuild began and neither committed nor rolled back
  bool discarded = false;         ///< in the trash
  uint64_t discarded_at_lsn = 0;  ///< InnoDB's LSN of the discard; 0 unless discarded
  /// No head in the tables is to be taken to hold more raw bytes than this, whatever their definitions say.
  std::optional<uint16_t> prefix_limit_bytes;
  std::string table_name;       ///< at the last binding; for people only; at most kNameMaxBytes
  std::vector<TableId> tables;  ///< InnoDB table ids that the store is bound to; the last is the newest
  std::vector<ManifestSegment> segments;
  bool operator==(const Manifest&) const = default;
};

/// Encodes whatever `manifest` says; one that breaks the invariants above gives a file that is refused when it is read.
[[nodiscard]] std::vector<uint8_t> EncodeManifest(const Manifest& manifest);

/// The same for writing: kCorruption unless the file was read back and is `manifest` again, so that what could not be
/// read after a restart never replaces what can.
[[nodiscard]] Result<std::vector<uint8_t>> EncodeManifestVerified(const Manifest& manifest);

/// `expected` is the store that the folder's name says; a manifest of another one is kCorruption. {0}: any.
/// Errors: kCorruption, kNotSupported (newer version).
[[nodiscard]] Result<Manifest> DecodeManifest(std::span<const uint8_t> file, StoreId expected);

}  // namespace quarry
