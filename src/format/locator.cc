// The trailer: how a locator is written at the end of a head. Normative layout: docs/format.md.
//
//   +0  store id        u64        +32 segment number  u32        +48 checksum  u64  XXH3-64 of bytes 0..47
//   +8  offset          u64        +36 index checksum  u32        +56 magic     8 bytes
//   +16 extent size     u64        +40 version         u16
//   +24 value size      u64        +42 zeros           2 bytes
//                                  +44 value sample    u32
//
// Version 2: the extent is encrypted, and +42 holds flags u16, 1. Of a plain one version 1 is written, +42 zeros.
//
// Invariant: version, checksum and magic stand at the same distance from the end in every version, so that a newer
// trailer is told from a damaged one.
#include "quarry/locator.h"

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"

namespace quarry {

namespace {

// Two bytes that are never together in text of any character set, and a NUL, so that text hardly ever ends so.
constexpr std::array<uint8_t, 8> kTrailerMagic = {0xff, 0x00, 'q', 'H', 'e', 'a', 'd', 0xfe};
constexpr uint16_t kTrailerVersionPlain = 1;
constexpr uint16_t kTrailerVersion = 2;
constexpr uint16_t kEncryptedFlag = 1;
constexpr size_t kChecksumOffset = 48;
constexpr size_t kMagicOffset = 56;

Status TrailerCorruption(const Locator& locator, const std::string& what) {
  return Status::Corruption(locator.store.value, locator.segment.value, locator.offset_bytes, "head " + what);
}

// A checksum that holds proves who wrote it, not that the writer was sane: what is impossible is refused here, once.
Status CheckLocator(const Locator& locator) {
  if (locator.store.value == 0 || locator.segment.value == 0) return TrailerCorruption(locator, "names no segment");
  if (locator.offset_bytes % kExtentAlignmentBytes != 0) return TrailerCorruption(locator, "has an unaligned offset");
  if (locator.value_size_bytes > kValueSizeMaxBytes) {
    return TrailerCorruption(locator, "has value size " + std::to_string(locator.value_size_bytes) + ", at most " +
                                          std::to_string(kValueSizeMaxBytes) + " is possible");
  }
  const uint64_t extent_size_max = ExtentSizeMaxBytes(locator.value_size_bytes, kPartSizeMinBytes, locator.encrypted);
  if (locator.extent_size_bytes < HeaderAndIndexSizeBytes(0, locator.encrypted) ||
      locator.extent_size_bytes > extent_size_max) {
    return TrailerCorruption(locator, "has extent size " + std::to_string(locator.extent_size_bytes) +
                                          ", impossible for a value of " + std::to_string(locator.value_size_bytes));
  }
  if (locator.offset_bytes > UINT64_MAX / 2) return TrailerCorruption(locator, "has an impossible offset");
  return Status::Ok();
}

}  // namespace

uint32_t SampleValue(std::span<const uint8_t> value) {
  // The size first: two values of zeros of different lengths have the same ends.
  std::array<uint8_t, sizeof(uint64_t) + 2 * kSampleEndBytes> sampled;
  const size_t end_bytes = std::min(value.size(), kSampleEndBytes);
  StoreLittleEndian(std::span<uint8_t>(sampled), 0, uint64_t{value.size()});
  auto at = sampled.begin() + sizeof(uint64_t);
  at = std::copy_n(value.begin(), end_bytes, at);
  at = std::copy_n(value.end() - static_cast<ptrdiff_t>(end_bytes), end_bytes, at);
  return Checksum32({sampled.begin(), at});
}

bool EndsLikeHead(std::span<const uint8_t> raw) {
  return raw.size() >= kTrailerSizeBytes &&
         std::equal(kTrailerMagic.begin(), kTrailerMagic.end(), raw.end() - kTrailerMagic.size());
}

void EncodeTrailer(const Locator& locator, std::span<uint8_t, kTrailerSizeBytes> out) {
  StoreLittleEndian(out, 0, locator.store.value);
  StoreLittleEndian(out, 8, locator.offset_bytes);
  StoreLittleEndian(out, 16, locator.extent_size_bytes);
  StoreLittleEndian(out, 24, locator.value_size_bytes);
  StoreLittleEndian(out, 32, locator.segment.value);
  StoreLittleEndian(out, 36, locator.index_checksum);
  StoreLittleEndian(out, 40, locator.encrypted ? kTrailerVersion : kTrailerVersionPlain);
  StoreLittleEndian(out, 42, locator.encrypted ? kEncryptedFlag : uint16_t{0});
  StoreLittleEndian(out, 44, locator.value_sample);
  StoreLittleEndian(out, kChecksumOffset, Checksum64(out.first(kChecksumOffset)));
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
  locator.extent_size_bytes = reader.U64();
  locator.value_size_bytes = reader.U64();
  locator.segment = SegmentNumber{reader.U32()};
  locator.index_checksum = reader.U32();
  const uint16_t version = reader.U16();
  const uint16_t flags = reader.U16();
  locator.value_sample = reader.U32();
  if (reader.U64() != Checksum64(trailer.first(kChecksumOffset))) {
    return TrailerCorruption(locator, "checksum mismatch (the place is as damaged as the head)");
  }
  if (version > kTrailerVersion) {
    return Status::NotSupported("head of version " + std::to_string(version) + " was written by a newer Quarry; " +
                                "this one reads up to " + std::to_string(kTrailerVersion));
  }
  if (version == 0 || flags != (version == kTrailerVersionPlain ? 0 : kEncryptedFlag)) {
    return TrailerCorruption(locator, "has an impossible version or reserved bytes");
  }
  locator.encrypted = version != kTrailerVersionPlain;
  QUARRY_TRY(CheckLocator(locator));
  decoded.is_head = true;
  decoded.prefix = field.first(field.size() - kTrailerSizeBytes);
  return decoded;
}

}  // namespace quarry
