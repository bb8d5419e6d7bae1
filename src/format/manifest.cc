#include "format/manifest.h"

#include <algorithm>
#include <string>

#include "base/coding.h"
#include "format/magic.h"
#include "format/small_file.h"

namespace quarry {

namespace {

/// Written when a segment has a flag, else 1: what an older Quarry can read it shall read.
constexpr uint16_t kManifestVersion = 2;
constexpr size_t kVersionOffset = 8;  ///< in the envelope
constexpr uint32_t kRebindingFlag = 1;
constexpr uint32_t kDiscardedFlag = 2;
constexpr uint32_t kPrefixLimitFlag = 4;
constexpr uint32_t kKnownFlags = kRebindingFlag | kDiscardedFlag | kPrefixLimitFlag;
constexpr uint32_t kPrefixLimitShift = 16;  ///< the u16 behind the flags
constexpr size_t kSegmentSize = 3 * 4 + 5 * 8;
constexpr uint32_t kHasUncountedFlag = 256;  ///< beside a segment's state

// `flags_max`: those that the file's version has.
ManifestSegment ReadSegment(ByteReader* reader, uint32_t flags_max, uint32_t* state) {
  ManifestSegment segment;
  segment.segment = SegmentNumber{reader->U32()};
  segment.path_number = reader->U32();
  *state = reader->U32();
  segment.has_uncounted = (*state & flags_max) != 0;
  *state &= ~flags_max;
  segment.size_bytes = reader->U64();
  segment.extents = reader->U64();
  segment.live_bytes = reader->U64();
  segment.dead_bytes = reader->U64();
  segment.checkpoint_position_bytes = reader->U64();
  return segment;
}

// Empty when the manifest is possible, else what is wrong with it.
std::string FindFault(const Manifest& manifest) {
  if (manifest.store.value == 0) return "names no store";
  if (manifest.discarded_at_lsn != 0 && !manifest.discarded) return "has a discard LSN but is not discarded";
  if (manifest.table_name.size() > kNameMaxBytes) return "has a table name that is too long";
  uint32_t previous = 0;
  for (const ManifestSegment& segment : manifest.segments) {
    if (segment.segment.value <= previous) return "lists segments out of order";
    previous = segment.segment.value;
    if (segment.state > SegmentState::kPoisoned) return "has a segment of unknown state";
    if (segment.state != SegmentState::kActive && segment.checkpoint_position_bytes > segment.size_bytes) {
      return "has segment " + std::to_string(previous) + " checkpointed beyond its size";
    }
  }
  if (previous >= manifest.next_segment.value) {
    return "lists segment " + std::to_string(previous) + ", the next would be " +
           std::to_string(manifest.next_segment.value);
  }
  return {};
}

uint32_t FlagsOf(const Manifest& manifest) {
  uint32_t flags = (manifest.rebinding ? kRebindingFlag : 0) | (manifest.discarded ? kDiscardedFlag : 0);
  if (manifest.prefix_limit_bytes) {
    flags |= kPrefixLimitFlag | (uint32_t{*manifest.prefix_limit_bytes} << kPrefixLimitShift);
  }
  return flags;
}

// False when there are bits that this version does not know.
bool TakeFlags(uint32_t flags, Manifest* manifest) {
  manifest->rebinding = (flags & kRebindingFlag) != 0;
  manifest->discarded = (flags & kDiscardedFlag) != 0;
  uint32_t unknown = flags & ~kKnownFlags;
  if ((flags & kPrefixLimitFlag) != 0) {
    manifest->prefix_limit_bytes = static_cast<uint16_t>(flags >> kPrefixLimitShift);
    unknown &= (uint32_t{1} << kPrefixLimitShift) - 1;
  }
  return unknown == 0;
}

bool HasFlag(const ManifestSegment& segment) { return segment.has_uncounted; }

uint16_t VersionOf(const Manifest& manifest) {
  return std::any_of(manifest.segments.begin(), manifest.segments.end(), HasFlag) ? kManifestVersion : 1;
}

}  // namespace

std::vector<uint8_t> EncodeManifest(const Manifest& manifest) {
  ByteWriter body;
  body.U64(manifest.store.value);
  body.U64(manifest.sequence);
  body.U64(manifest.created_micros);
  body.U64(manifest.discarded_at_lsn);
  body.U32(manifest.next_segment.value);
  body.U32(FlagsOf(manifest));
  body.String(manifest.table_name);
  body.U32(static_cast<uint32_t>(manifest.tables.size()));
  for (const TableId& table : manifest.tables) body.U64(table.value);
  body.U32(static_cast<uint32_t>(manifest.segments.size()));
  for (const ManifestSegment& segment : manifest.segments) {
    body.U32(segment.segment.value);
    body.U32(segment.path_number);
    body.U32(static_cast<uint32_t>(segment.state) | (segment.has_uncounted ? kHasUncountedFlag : 0));
    body.U64(segment.size_bytes);
    body.U64(segment.extents);
    body.U64(segment.live_bytes);
    body.U64(segment.dead_bytes);
    body.U64(segment.checkpoint_position_bytes);
  }
  return WrapSmallFile(kManifestMagic, VersionOf(manifest), body.bytes());
}

Result<std::vector<uint8_t>> EncodeManifestVerified(const Manifest& manifest) {
  std::vector<uint8_t> file = EncodeManifest(manifest);
  QUARRY_TRY(CheckSmallFileSize(file.size(), "MANIFEST", manifest.store.value));
  const Result<Manifest> read_back = DecodeManifest(file, manifest.store);
  if (!read_back.ok()) return read_back.status().WithContext("not written, the old one stays");
  if (*read_back != manifest) {
    return Status::Corruption(manifest.store.value, 0, 0, "MANIFEST not written: it reads back as another");
  }
  return file;
}

Result<Manifest> DecodeManifest(std::span<const uint8_t> file, StoreId expected) {
  const auto corruption = [&](const std::string& what) {
    return Status::Corruption(expected.value, 0, 0, "MANIFEST " + what);
  };
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> body,
                    UnwrapSmallFile(file, kManifestMagic, kManifestVersion, "MANIFEST", expected.value));
  const uint16_t version = LoadLittleEndian<uint16_t>(file, kVersionOffset);
  const uint32_t segment_flags = version < kManifestVersion ? 0 : kHasUncountedFlag;
  ByteReader reader(body);
  Manifest manifest;
  manifest.store = StoreId{reader.U64()};
  manifest.sequence = reader.U64();
  manifest.created_micros = reader.U64();
  manifest.discarded_at_lsn = reader.U64();
  manifest.next_segment = SegmentNumber{reader.U32()};
  const bool flags_known = TakeFlags(reader.U32(), &manifest);
  manifest.table_name = reader.String(kNameMaxBytes);
  const uint32_t table_count = reader.Count(sizeof(uint64_t));
  manifest.tables.reserve(table_count);
  for (uint32_t i = 0; i < table_count; ++i) manifest.tables.push_back(TableId{reader.U64()});
  const uint32_t segment_count = reader.Count(kSegmentSize);
  manifest.segments.reserve(segment_count);
  for (uint32_t i = 0; i < segment_count; ++i) {
    uint32_t state = 0;
    manifest.segments.push_back(ReadSegment(&reader, segment_flags, &state));
    if (state > static_cast<uint32_t>(SegmentState::kPoisoned)) return corruption("has a segment of unknown state");
    manifest.segments.back().state = static_cast<SegmentState>(state);
  }
  if (!reader.ok() || reader.remaining() != 0) return corruption("body has the wrong length");
  if (!flags_known) return corruption("has unknown flags");
  if (version != VersionOf(manifest)) return corruption("has nothing of its version");
  if (const std::string fault = FindFault(manifest); !fault.empty()) return corruption(fault);
  if (expected.value != 0 && manifest.store != expected) {
    return corruption("belongs to store " + std::to_string(manifest.store.value));
  }
  return manifest;
}

}  // namespace quarry
