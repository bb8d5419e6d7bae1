// The trailer: how a locator is written at the end of a head. Normative layout: docs/internals/format.md.
//
//   +0  store id    u64        +28 segment number  u32        +44 value checksum  u32
//   +8  offset      u64        +32 extent size     u32        +48 tag             u64  XXH3-64 of bytes 0..47
//   +16 identity    u64        +36 prefix tag      u32        +56 magic           8 bytes
//   +24 value size  u32        +40 version         u16
//                              +42 prefix size     u16
//
// Invariant: version, tag and magic stand at the same distance from the end in every version, so that a newer trailer
// is told from a damaged one.
#include "quarry/locator.h"
#include "quarry/options.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"
#include "format/value_checksum.h"

namespace quarry {

namespace {

// Two bytes that are never together in text of any character set, and a NUL, so that text hardly ever ends so.
constexpr std::array<uint8_t, 8> kTrailerMagic = {0xff, 0x00, 'q', 'H', 'e', 'a', 'd', 0xfd};
constexpr uint16_t kTrailerVersion = 1;
constexpr size_t kTagOffset = 48;
constexpr size_t kMagicOffset = 56;

Status TrailerCorruption(const Locator& locator, const std::string& what) {
  return Status::Corruption(locator.store.value, locator.segment.value, locator.offset_bytes, "head " + what);
}

// A tag that holds proves that the trailer is whole, not that its writer was sane: what is impossible is refused here,
// once.
Status CheckLocator(const Locator& locator, size_t prefix_size_bytes) {
  if (locator.store.value == 0 || locator.segment.value == 0 || locator.identity == 0) {
    return TrailerCorruption(locator, "names no extent");
  }
  if (locator.offset_bytes % kExtentAlignmentBytes != 0) return TrailerCorruption(locator, "has an unaligned offset");
  if (locator.offset_bytes > UINT64_MAX / 2) return TrailerCorruption(locator, "has an impossible offset");
  if (locator.prefix_size_bytes != prefix_size_bytes) {
    return TrailerCorruption(locator, "stands behind " + std::to_string(prefix_size_bytes) + " bytes, its prefix has " +
                                          std::to_string(locator.prefix_size_bytes));
  }
  if (locator.prefix_size_bytes > locator.value_size_bytes) {
    return TrailerCorruption(locator, "has a prefix of " + std::to_string(locator.prefix_size_bytes) +
                                          " bytes of a value of " + std::to_string(locator.value_size_bytes));
  }
  if (!IsExtentSizePossible(locator)) {
    return TrailerCorruption(locator, "has extent size " + std::to_string(locator.extent_size_bytes) +
                                          ", impossible for " + std::to_string(locator.content_size_bytes()) +
                                          " bytes");
  }
  return Status::Ok();
}

}  // namespace

Result<uint64_t> CheckPrefix(const Head& head) {
  const uint64_t checksum = Checksum64(head.prefix);
  if (head.prefix.size() != head.locator.prefix_size_bytes ||
      static_cast<uint32_t>(checksum) != head.locator.prefix_tag) {
    return TrailerCorruption(head.locator, "does not fit its prefix, the first " +
                                               std::to_string(head.locator.prefix_size_bytes) +
                                               " bytes of the value, which stand in the row");
  }
  return checksum;
}

uint32_t ValueChecksumOf(std::span<const uint8_t> value, uint32_t prefix_size_bytes, uint32_t part_size_bytes) {
  assert(prefix_size_bytes <= value.size() && part_size_bytes > 0);
  part_size_bytes = PartSizeFor(value.size() - prefix_size_bytes, part_size_bytes);
  ValueChecksum checksum(value.size(), Checksum64(value.first(prefix_size_bytes)));
  for (std::span<const uint8_t> rest = value.subspan(prefix_size_bytes); !rest.empty();) {
    const size_t size = std::min<size_t>(rest.size(), part_size_bytes);
    checksum.AddPart(Checksum64(rest.first(size)));
    rest = rest.subspan(size);
  }
  return checksum.value();
}

bool EndsLikeHead(std::span<const uint8_t> raw) {
  return raw.size() >= kTrailerSizeBytes &&
         std::equal(kTrailerMagic.begin(), kTrailerMagic.end(), raw.end() - kTrailerMagic.size());
}

void EncodeTrailer(const Locator& locator, std::span<uint8_t, kTrailerSizeBytes> out) {
  StoreLittleEndian(out, 0, locator.store.value);
  StoreLittleEndian(out, 8, locator.offset_bytes);
  StoreLittleEndian(out, 16, locator.identity);
  StoreLittleEndian(out, 24, static_cast<uint32_t>(locator.value_size_bytes));
  StoreLittleEndian(out, 28, locator.segment.value);
  StoreLittleEndian(out, 32, static_cast<uint32_t>(locator.extent_size_bytes / kExtentAlignmentBytes));
  StoreLittleEndian(out, 36, locator.prefix_tag);
  StoreLittleEndian(out, 40, kTrailerVersion);
  StoreLittleEndian(out, 42, locator.prefix_size_bytes);
  StoreLittleEndian(out, 44, locator.value_checksum);
  StoreLittleEndian(out, kTagOffset, Checksum64(out.first(kTagOffset)));
  std::copy(kTrailerMagic.begin(), kTrailerMagic.end(), out.begin() + kMagicOffset);
}

Result<DecodedField> DecodeField(std::span<const uint8_t> field) {
  DecodedField decoded;
  if (!EndsLikeHead(field)) {
    decoded.prefix = field;
    return decoded;
  }
  const std::span<const uint8_t> trailer = field.last(kTrailerSizeBytes);
  ByteReader reader(trailer);
  Locator& locator = decoded.locator;
  locator.store = StoreId{reader.U64()};
  locator.offset_bytes = reader.U64();
  locator.identity = reader.U64();
  locator.value_size_bytes = reader.U32();
  locator.segment = SegmentNumber{reader.U32()};
  locator.extent_size_bytes = reader.U32() * kExtentAlignmentBytes;
  locator.prefix_tag = reader.U32();
  const uint16_t version = reader.U16();
  locator.prefix_size_bytes = reader.U16();
  locator.value_checksum = reader.U32();
  if (reader.U64() != Checksum64(trailer.first(kTagOffset))) {
    return TrailerCorruption(locator, "tag mismatch (the place is as damaged as the head)");
  }
  if (version > kTrailerVersion) {
    return Status::NotSupported("head of version " + std::to_string(version) + " was written by a newer Quarry; " +
                                "this one reads up to " + std::to_string(kTrailerVersion));
  }
  if (version == 0) return TrailerCorruption(locator, "has version 0");
  QUARRY_TRY(CheckLocator(locator, field.size() - kTrailerSizeBytes));
  decoded.is_head = true;
  decoded.prefix = field.first(field.size() - kTrailerSizeBytes);
  return decoded;
}

}  // namespace quarry
