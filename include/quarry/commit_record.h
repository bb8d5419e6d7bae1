// CommitRecord: which extents must be whole for a prepared transaction to count as committed.
//
// A transaction whose values are flushed beside InnoDB's redo log, not before it, is prepared in InnoDB under this
// record as its XID. After a crash it is committed when every extent named is whole and durable, and rolled back
// otherwise (docs/internals/durability.md, 'Both flushes at once').
//
// Invariants:
//  - What is encoded fills the 128 bytes of an XID, and names 1 to kCommitRecordExtentsMax extents of one store.
//  - Locators are unique for ever (numbers of stores and segments are not used again, a place in a segment is written
//    once), so the record of one transaction never fits another one.
// The byte layout is normative in docs/internals/format.md. Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quarry/locator.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

inline constexpr size_t kCommitRecordSizeBytes = 128;
inline constexpr size_t kCommitRecordExtentsMax = 6;
/// The format id of the XID that holds one ("QXC1"); the global and the branch part are 64 bytes each.
inline constexpr int64_t kCommitRecordFormatId = 0x51584331;

struct CommitRecord {
  struct Extent {
    SegmentNumber segment;
    /// Made of the extent's identity and its segment's salt: what stands there must be this very extent. XA RECOVER
    /// shows it, so it tells neither of the two, and nothing of the content.
    uint32_t tag = 0;
    uint64_t offset_bytes = 0;
    bool operator==(const Extent&) const = default;
  };
  StoreId store;
  std::vector<Extent> extents;
  bool operator==(const CommitRecord&) const = default;
};

/// Whether one record can name all of `locators`: there are 1 to kCommitRecordExtentsMax of them, all of one store.
[[nodiscard]] bool FitsCommitRecord(std::span<const Locator> locators);

/// Writes `record`, of 1 to kCommitRecordExtentsMax extents, to `out`.
void EncodeCommitRecord(const CommitRecord& record, std::span<uint8_t, kCommitRecordSizeBytes> out);

/// Errors: kCorruption; kNotSupported: of a newer version.
[[nodiscard]] Result<CommitRecord> DecodeCommitRecord(std::span<const uint8_t> bytes);

}  // namespace quarry
