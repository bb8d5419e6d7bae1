#include "format/extent.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/magic.h"

namespace quarry {

namespace {

constexpr uint16_t kExtentVersion = 1;
constexpr uint8_t kEncryptedFlag = 1;
constexpr size_t kTagOffset = 72;

static_assert(kPartSizeMaxBytes + kPartCheckSizeBytes < kRawBit, "bit 31 of a stored size is the raw flag");
static_assert(kExtentHeaderSizeBytes == kTagOffset + sizeof(uint64_t));

/// Where an extent must be: what a scan knows.
struct Place {
  StoreId store;
  SegmentNumber segment;
  uint64_t offset_bytes = 0;
};

Status ExtentCorruption(const Place& place, const std::string& what) {
  return Status::Corruption(place.store.value, place.segment.value, place.offset_bytes, what);
}

Place PlaceOf(const Locator& locator) { return {locator.store, locator.segment, locator.offset_bytes}; }
Place PlaceOf(const ExtentHeader& header) { return {header.store, header.segment, header.offset_bytes}; }

/// Of the bytes before the tag.
uint64_t TagOf(const SegmentSalt& salt, std::span<const uint8_t> header) {
  std::array<uint8_t, sizeof(SegmentSalt) + kTagOffset> salted;
  std::copy_n(header.begin(), kTagOffset, std::copy(salt.begin(), salt.end(), salted.begin()));
  return Checksum64(salted);
}

// Every rule about the numbers of a header whose tag holds.
Status CheckHeader(const ExtentHeader& header, const Place& place) {
  if (header.store != place.store || header.segment != place.segment || header.offset_bytes != place.offset_bytes) {
    return ExtentCorruption(place, "extent header belongs to store " + std::to_string(header.store.value) +
                                       " segment " + std::to_string(header.segment.value) + " offset " +
                                       std::to_string(header.offset_bytes));
  }
  if (header.offset_bytes % kExtentAlignmentBytes != 0) return ExtentCorruption(place, "extent is not aligned");
  if (header.identity == 0) return ExtentCorruption(place, "extent has no identity");
  if (header.part_size_bytes < kPartSizeMinBytes || header.part_size_bytes > kPartSizeMaxBytes) {
    return ExtentCorruption(place, "extent has part size " + std::to_string(header.part_size_bytes) + ", allowed are " +
                                       std::to_string(kPartSizeMinBytes) + " to " + std::to_string(kPartSizeMaxBytes));
  }
  if (header.prefix_size_bytes > kPrefixMaxBytes ||
      header.content_size_bytes + header.prefix_size_bytes > kValueSizeMaxBytes) {
    return ExtentCorruption(place, "extent has a content of " + std::to_string(header.content_size_bytes) +
                                       " bytes behind a prefix of " + std::to_string(header.prefix_size_bytes));
  }
  if (header.part_count != PartCount(header.content_size_bytes, header.part_size_bytes)) {
    return ExtentCorruption(place, "extent has " + std::to_string(header.part_count) + " parts, its sizes make " +
                                       std::to_string(PartCount(header.content_size_bytes, header.part_size_bytes)));
  }
  const uint64_t overhead = uint64_t{header.part_count} * PartOverheadBytes(header.encrypted);
  if (header.stored_total_bytes < header.part_count + overhead ||
      header.stored_total_bytes > header.content_size_bytes + overhead) {
    return ExtentCorruption(place, "extent has a stored total of " + std::to_string(header.stored_total_bytes) +
                                       " for a content of " + std::to_string(header.content_size_bytes));
  }
  return Status::Ok();
}

Result<ExtentHeader> DecodeHeader(std::span<const uint8_t> bytes, const Place& place, const SegmentSalt& salt) {
  if (bytes.size() < kExtentHeaderSizeBytes) return ExtentCorruption(place, "extent header is cut off");
  bytes = bytes.first(kExtentHeaderSizeBytes);
  ByteReader reader(bytes);
  if (reader.U64() != kExtentMagic) return ExtentCorruption(place, "no extent here (magic mismatch)");
  const uint16_t version = reader.U16();
  const uint8_t codec = reader.U8();
  const uint8_t flags = reader.U8();
  ExtentHeader header;
  header.segment = SegmentNumber{reader.U32()};
  header.store = StoreId{reader.U64()};
  header.offset_bytes = reader.U64();
  header.identity = reader.U64();
  header.content_size_bytes = reader.U32();
  header.prefix_size_bytes = reader.U32();
  header.stored_total_bytes = reader.U64();
  header.part_size_bytes = reader.U32();
  header.part_count = reader.U32();
  header.index_checksum = reader.U64();
  if (reader.U64() != TagOf(salt, bytes)) return ExtentCorruption(place, "extent header tag mismatch");
  if (version > kExtentVersion || (version != 0 && codec > static_cast<uint8_t>(Codec::kZstd))) {
    return Status::NotSupported("store " + std::to_string(place.store.value) + " segment " +
                                std::to_string(place.segment.value) + " offset " + std::to_string(place.offset_bytes) +
                                ": extent of version " + std::to_string(version) + " codec " + std::to_string(codec) +
                                " was written by a newer Quarry; this one reads version up to " +
                                std::to_string(kExtentVersion) + " and codecs none, lz4 and zstd");
  }
  if (version == 0 || (flags & ~kEncryptedFlag) != 0) {
    return ExtentCorruption(place, "extent header has an impossible version or flags");
  }
  header.encrypted = flags == kEncryptedFlag;
  header.codec = static_cast<Codec>(codec);
  QUARRY_TRY(CheckHeader(header, place));
  return header;
}

// The rest of what a head says of its extent.
Status CheckAgainst(const ExtentHeader& header, const Locator& locator) {
  if (header.identity != locator.identity) {
    return ExtentCorruption(PlaceOf(locator), "extent is not the one that the head was written for");
  }
  if (header.content_size_bytes == locator.content_size_bytes() &&
      header.prefix_size_bytes == locator.prefix_size_bytes) {
    return Status::Ok();
  }
  return ExtentCorruption(PlaceOf(locator), "extent holds " + std::to_string(header.content_size_bytes) +
                                                " bytes behind a prefix of " +
                                                std::to_string(header.prefix_size_bytes) + ", the head says " +
                                                std::to_string(locator.content_size_bytes()) + " behind " +
                                                std::to_string(locator.prefix_size_bytes));
}

// What the extent was encrypted with.
Result<CipherParameters> DecodeCipher(ByteReader* reader, const Place& place) {
  CipherParameters cipher;
  cipher.scheme = reader->U32();
  cipher.key_id = reader->U32();
  cipher.key_version = reader->U32();
  const bool zero = reader->U32() == 0;
  for (uint8_t& byte : cipher.salt) byte = reader->U8();
  if (cipher.scheme == 0 || cipher.key_id == 0 || cipher.key_version == 0 || !zero) {
    return ExtentCorruption(place, "extent names an impossible key");
  }
  return cipher;
}

// Fills in the entries and their offsets; every entry is checked against the geometry.
Status DecodeEntries(ByteReader* reader, const Place& place, ExtentIndex* index) {
  const ExtentHeader& header = index->header;
  uint64_t offset = HeaderAndIndexSizeBytes(header);
  index->parts.reserve(header.part_count);
  for (uint32_t part = 0; part < header.part_count; ++part) {
    const uint32_t size_and_flag = reader->U32();
    PartEntry entry;
    entry.checksum = reader->U64();
    entry.raw = (size_and_flag & kRawBit) != 0;
    entry.stored_size_bytes = size_and_flag & ~kRawBit;
    entry.offset_in_extent_bytes = offset;
    const uint32_t overhead = PartOverheadBytes(header.encrypted);
    const uint32_t raw_size = PartSizeOf(header, part) + overhead;
    const bool size_possible = entry.raw ? entry.stored_size_bytes == raw_size
                                         : entry.stored_size_bytes > overhead && entry.stored_size_bytes < raw_size;
    if (!size_possible || (!entry.raw && header.codec == Codec::kNone)) {
      return ExtentCorruption(place, "index entry " + std::to_string(part) + " has an impossible stored size of " +
                                         std::to_string(entry.stored_size_bytes));
    }
    offset += entry.stored_size_bytes;
    index->parts.push_back(entry);
  }
  if (offset != ExtentSizeBytes(header)) return ExtentCorruption(place, "index does not add up to the stored total");
  return Status::Ok();
}

Result<ExtentIndex> DecodeIndex(std::span<const uint8_t> bytes, const ExtentHeader& header) {
  const Place place = PlaceOf(header);
  const uint64_t size = HeaderAndIndexSizeBytes(header);
  if (bytes.size() < size) return ExtentCorruption(place, "extent index is cut off");
  const std::span<const uint8_t> checked = bytes.first(size).subspan(kExtentHeaderSizeBytes);
  if (Checksum64(checked) != header.index_checksum) return ExtentCorruption(place, "extent index checksum mismatch");
  ExtentIndex index;
  index.header = header;
  ByteReader reader(checked);
  if (header.encrypted) {
    QUARRY_TRY_ASSIGN(index.cipher, DecodeCipher(&reader, place));
  }
  QUARRY_TRY(DecodeEntries(&reader, place, &index));
  return index;
}

}  // namespace

uint32_t PartCount(uint64_t content_size_bytes, uint32_t part_size_bytes) {
  assert(part_size_bytes >= kPartSizeMinBytes && part_size_bytes <= kPartSizeMaxBytes);
  assert(content_size_bytes <= kValueSizeMaxBytes);
  return static_cast<uint32_t>((content_size_bytes + part_size_bytes - 1) / part_size_bytes);
}

uint64_t ExtentSizeMaxBytes(uint64_t content_size_bytes, uint32_t part_size_bytes, bool encrypted) {
  const uint32_t parts = PartCount(content_size_bytes, part_size_bytes);
  return HeaderAndIndexSizeBytes(parts, encrypted) + content_size_bytes +
         uint64_t{parts} * PartOverheadBytes(encrypted);
}

uint64_t ExtentSizeBytes(const ExtentHeader& header) {
  return HeaderAndIndexSizeBytes(header) + header.stored_total_bytes;
}

bool IsExtentSizePossible(const Locator& locator) {
  const uint64_t size_max = ExtentSizeMaxBytes(locator.content_size_bytes(), kPartSizeMinBytes, true);
  return locator.extent_size_bytes >= HeaderAndIndexSizeBytes(0, false) &&
         locator.extent_size_bytes <= RoundUpToExtent(size_max);
}

uint64_t NextExtentOffsetBytes(const ExtentHeader& header) { return header.offset_bytes + ExtentSpaceBytes(header); }

uint32_t PartSizeOf(const ExtentHeader& header, uint32_t part) {
  assert(part < header.part_count);
  const uint64_t begin = static_cast<uint64_t>(part) * header.part_size_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(header.part_size_bytes, header.content_size_bytes - begin));
}

PartRange PartsOfRange(const ExtentHeader& header, uint64_t offset_bytes, uint64_t size_bytes) {
  assert(offset_bytes <= header.content_size_bytes && size_bytes <= header.content_size_bytes - offset_bytes);
  if (size_bytes == 0) return {};
  const auto first = static_cast<uint32_t>(offset_bytes / header.part_size_bytes);
  const auto last = static_cast<uint32_t>((offset_bytes + size_bytes - 1) / header.part_size_bytes);
  return {first, last - first + 1};
}

void EncodeExtentIndex(const ExtentHeader& header, std::span<const PartEntry> parts, const CipherParameters& cipher,
                       const SegmentSalt& salt, std::span<uint8_t> out) {
  assert(parts.size() == PartCount(header.content_size_bytes, header.part_size_bytes));
  assert(header.offset_bytes % kExtentAlignmentBytes == 0 && header.identity != 0);
  const auto part_count = static_cast<uint32_t>(parts.size());
  assert(out.size() == HeaderAndIndexSizeBytes(part_count, header.encrypted));
  uint64_t stored_total = 0;
  size_t position = kExtentHeaderSizeBytes;
  if (header.encrypted) {
    StoreLittleEndian(out, 80, cipher.scheme);
    StoreLittleEndian(out, 84, cipher.key_id);
    StoreLittleEndian(out, 88, cipher.key_version);
    StoreLittleEndian(out, 92, uint32_t{0});
    std::copy(cipher.salt.begin(), cipher.salt.end(), out.begin() + 96);
    position += kCipherBlockSizeBytes;
  }
  for (const PartEntry& part : parts) {
    assert(part.stored_size_bytes > PartOverheadBytes(header.encrypted));
    assert(part.stored_size_bytes <= header.part_size_bytes + PartOverheadBytes(header.encrypted));
    StoreLittleEndian(out, position, part.stored_size_bytes | (part.raw ? kRawBit : 0));
    StoreLittleEndian(out, position + 4, part.checksum);
    position += kIndexEntrySizeBytes;
    stored_total += part.stored_size_bytes;
  }
  StoreLittleEndian(out, 0, kExtentMagic);
  StoreLittleEndian(out, 8, kExtentVersion);
  StoreLittleEndian(out, 10, static_cast<uint8_t>(header.codec));
  StoreLittleEndian(out, 11, header.encrypted ? kEncryptedFlag : uint8_t{0});
  StoreLittleEndian(out, 12, header.segment.value);
  StoreLittleEndian(out, 16, header.store.value);
  StoreLittleEndian(out, 24, header.offset_bytes);
  StoreLittleEndian(out, 32, header.identity);
  StoreLittleEndian(out, 40, static_cast<uint32_t>(header.content_size_bytes));
  StoreLittleEndian(out, 44, header.prefix_size_bytes);
  StoreLittleEndian(out, 48, stored_total);
  StoreLittleEndian(out, 56, header.part_size_bytes);
  StoreLittleEndian(out, 60, part_count);
  StoreLittleEndian(out, 64, Checksum64(out.subspan(kExtentHeaderSizeBytes)));
  StoreLittleEndian(out, kTagOffset, TagOf(salt, out));
}

Locator LocatorOf(const ExtentHeader& header) {
  Locator locator;
  locator.store = header.store;
  locator.segment = header.segment;
  locator.offset_bytes = header.offset_bytes;
  locator.identity = header.identity;
  locator.extent_size_bytes = ExtentSpaceBytes(header);
  locator.value_size_bytes = header.content_size_bytes + header.prefix_size_bytes;
  locator.prefix_size_bytes = static_cast<uint16_t>(header.prefix_size_bytes);
  return locator;
}

uint32_t CommitTagOf(const SegmentSalt& salt, uint64_t identity) {
  std::array<uint8_t, sizeof(SegmentSalt) + sizeof identity> salted;
  std::copy(salt.begin(), salt.end(), salted.begin());
  StoreLittleEndian(std::span<uint8_t>(salted), sizeof(SegmentSalt), identity);
  return Checksum32(salted);
}

uint64_t FirstReadSizeBytes(const Locator& locator, uint64_t batch_bytes) {
  const uint64_t index_size =
      HeaderAndIndexSizeBytes(PartCount(locator.content_size_bytes(), kPartSizeDefaultBytes), false);
  return std::min(locator.extent_size_bytes, std::max({index_size, kSegmentBlockSizeBytes, batch_bytes}));
}

bool StartsLikeExtent(std::span<const uint8_t> bytes) { return MagicOf(bytes) == kExtentMagic; }

Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const SegmentOrigin& origin,
                                        uint64_t offset_bytes) {
  return DecodeHeader(bytes, {origin.store, origin.segment, offset_bytes}, origin.salt);
}

Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const Locator& locator,
                                        const SegmentSalt& salt) {
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeHeader(bytes, PlaceOf(locator), salt));
  QUARRY_TRY(CheckAgainst(header, locator));
  return header;
}

Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const SegmentOrigin& origin,
                                      uint64_t offset_bytes) {
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(bytes, origin, offset_bytes));
  return DecodeIndex(bytes, header);
}

Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const Locator& locator, const SegmentSalt& salt) {
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(bytes, locator, salt));
  return DecodeIndex(bytes, header);
}

Status VerifyPart(const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored) {
  const PartEntry& entry = index.parts[part];
  if (stored.size() != entry.stored_size_bytes) return PartCorruption(index, part, "is cut off");
  if (Checksum64(stored) != entry.checksum) return PartCorruption(index, part, "checksum mismatch");
  return Status::Ok();
}

Status PartCorruption(const ExtentIndex& index, uint32_t part, const std::string& what) {
  Place place = PlaceOf(index.header);
  place.offset_bytes += index.parts[part].offset_in_extent_bytes;
  return ExtentCorruption(place, "part " + std::to_string(part) + " " + what);
}

}  // namespace quarry
