// Records of the catalogue: what the stores of one home are bound to, which segments they have, and where.
// Normative layout: docs/internals/format.md, 'Catalogue'.
//
//   frame, at a multiple of 8:
//   +0   magic        u32   "QXcr"
//   +4   body size    u32
//   +8   type         u16
//   +10  flags        u16   1 optional, 2 of the snapshot
//   +12  generation   u32   the low 32 bits of the file's
//   +16  sequence     u64   from 1, rising by 1
//   +24  flush begin  u64   sequence of the first record of the flush that wrote this one
//   +32  store id     u64   0: the record concerns no store
//   +40  checksum     u64   of bytes 0..39
//   +48  body, zeros up to a multiple of 8, checksum u64 of everything from +40 up to here
//
// Invariants: the store is known from the frame alone; a record that stands at another place, in another generation or
// under another sequence does not verify. Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format/segment_header.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

enum class SegmentState : uint8_t {
  kActive = 0,    ///< may be appended to; the next start seals it
  kSealed = 1,    ///< never written again
  kPoisoned = 2,  ///< sealed after a failed flush: bytes that no flush vouched for may be wrong
};
/// "active", "sealed", "poisoned".
[[nodiscard]] const char* SegmentStateName(SegmentState state);

/// Which extents the counters of a segment count.
enum class CountedExtents : uint8_t {
  kAll = 0,        ///< every one that was ever appended
  kNeeded = 1,     ///< at least those that a mark pass found needed
  kEstimated = 2,  ///< nobody counted: all of the file is taken for live until a mark pass has counted
};

struct CatalogueInstallation {
  InstallationId id{};
  uint64_t created_micros = 0;
  StoreId next_store{1};  ///< no id below is given out (again)
  uint32_t next_path_number = 1;
  bool operator==(const CatalogueInstallation&) const = default;
};

/// Path number 0 is the home itself and is not listed; a number is never given to another path.
struct DataPath {
  uint32_t number = 0;
  std::string path;  ///< as configured; at most kNameMaxBytes
  bool operator==(const DataPath&) const = default;
};

struct CatalogueStore {
  StoreId store;
  uint64_t created_micros = 0;
  SegmentNumber next_segment{1};
  bool rebinding = false;         ///< a rebuild began and neither committed nor rolled back
  bool discarded = false;         ///< in the trash
  uint64_t discarded_at_lsn = 0;  ///< InnoDB's LSN of the discard; 0 unless discarded
  /// No head in the tables is to be taken to hold more raw bytes than this, whatever their definitions say.
  std::optional<uint16_t> prefix_limit_bytes;
  std::string table_name;       ///< at the last binding; for people only; at most kNameMaxBytes
  std::vector<TableId> tables;  ///< InnoDB table ids that the store is bound to; the last is the newest; empty: unbound
  bool operator==(const CatalogueStore&) const = default;
};

struct CatalogueStoreGone {
  StoreId store;
  bool operator==(const CatalogueStoreGone&) const = default;
};

struct CatalogueSegment {
  StoreId store;
  SegmentNumber segment;
  uint32_t path_number = 0;
  SegmentState state = SegmentState::kActive;
  CountedExtents counted = CountedExtents::kAll;
  SegmentSalt salt{};  ///< as in the segment's header
  uint64_t size_bytes = 0;
  // Hints, all of them; 0 of an active segment.
  uint64_t extents = 0;
  uint64_t live_bytes = 0;
  uint64_t dead_bytes = 0;
  // Of all extents that were ever appended, unless nobody counted.
  uint64_t plain_bytes = 0;
  uint64_t encrypted_bytes = 0;
  uint32_t oldest_key_version = 0;  ///< 0: none is encrypted
  bool operator==(const CatalogueSegment&) const = default;
};

struct CatalogueSegmentGone {
  StoreId store;
  SegmentNumber segment;
  bool operator==(const CatalogueSegmentGone&) const = default;
};

/// Something was lost: nothing is given back in `store` ({0}: in any) until quarry-verify wrote a new catalogue.
struct CatalogueDamage {
  StoreId store;
  uint64_t noted_micros = 0;
  std::string what;
  bool operator==(const CatalogueDamage&) const = default;
};

/// Closes the snapshot that a generation begins with. It repeats what must not be lost.
struct CatalogueEnd {
  CatalogueInstallation installation;
  bool operator==(const CatalogueEnd&) const = default;
};

/// Where the scrub goes on after a start. What is lost of it costs nothing but time.
struct CatalogueScrubPlace {
  StoreId next_store;  ///< {0}: a round begins
  SegmentNumber next_segment;
  uint64_t noted_micros = 0;
  bool operator==(const CatalogueScrubPlace&) const = default;
};

/// Of a type that this version does not know, and need not: kept as it is.
struct CatalogueUnknown {
  uint16_t type = 0;
  StoreId store;
  std::vector<uint8_t> body;
  bool operator==(const CatalogueUnknown&) const = default;
};

using CatalogueRecord =
    std::variant<CatalogueInstallation, DataPath, CatalogueStore, CatalogueStoreGone, CatalogueSegment,
                 CatalogueSegmentGone, CatalogueDamage, CatalogueEnd, CatalogueScrubPlace, CatalogueUnknown>;

inline constexpr size_t kCatalogueFrameSizeBytes = 48;
inline constexpr uint16_t kCatalogueOptionalFlag = 1;
inline constexpr uint16_t kCatalogueSnapshotFlag = 2;
inline constexpr uint16_t kCatalogueEndType = 8;
inline constexpr uint16_t kCatalogueScrubType = 9;
/// The least type number that this version does not know.
inline constexpr uint16_t kCatalogueUnknownTypeMin = 10;

struct CatalogueFrame {
  uint32_t body_size_bytes = 0;
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t generation = 0;
  uint64_t sequence = 0;
  uint64_t flush_begin = 0;
  StoreId store;
  /// Frame, body and its checksum.
  [[nodiscard]] uint64_t RecordSizeBytes() const;
  bool operator==(const CatalogueFrame&) const = default;
};

/// "store", "segment", ...
[[nodiscard]] std::string CatalogueTypeName(uint16_t type);

/// Where a record stands in its file.
struct CataloguePlace {
  uint32_t generation = 0;
  uint64_t sequence = 0;
  uint64_t flush_begin = 0;
  bool in_snapshot = false;
};

void AppendCatalogueRecord(const CatalogueRecord& record, const CataloguePlace& place, std::vector<uint8_t>* out);

/// The frame that `bytes` begin with. Errors: kCorruption: there is none.
[[nodiscard]] Result<CatalogueFrame> DecodeCatalogueFrame(std::span<const uint8_t> bytes);

/// Whether the body behind `frame`, with which `bytes` begin, is there and verifies.
[[nodiscard]] bool VerifiesCatalogueBody(const CatalogueFrame& frame, std::span<const uint8_t> bytes);

/// The record of a frame whose body verifies. Errors: kCorruption: it says what is impossible; kNotSupported: a type
/// or flag of a newer version that is not optional.
[[nodiscard]] Result<CatalogueRecord> DecodeCatalogueBody(const CatalogueFrame& frame, std::span<const uint8_t> bytes);

}  // namespace quarry
