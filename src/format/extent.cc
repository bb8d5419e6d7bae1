#include "format/extent.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/magic.h"

namespace quarry {

namespace {

constexpr uint16_t kExtentVersionPlain = 1;
constexpr uint16_t kExtentVersion = 2;
constexpr uint8_t kEncryptedFlag = 1;
constexpr size_t kHeaderChecksumOffset = 64;

static_assert(kPartSizeMaxBytes + kPartCheckSizeBytes < kRawBit, "bit 31 of a stored size is the raw flag");
static_assert(kExtentHeaderSizeBytes == kHeaderChecksumOffset + 8);

/// Who an extent must be: what a scan knows.
struct Identity {
  StoreId store;
  SegmentNumber segment;
  uint64_t offset_bytes = 0;
};

Status ExtentCorruption(const Identity& identity, const std::string& what) {
  return Status::Corruption(identity.store.value, identity.segment.value, identity.offset_bytes, what);
}

Identity IdentityOf(const Locator& locator) { return {locator.store, locator.segment, locator.offset_bytes}; }
Identity IdentityOf(const ExtentHeader& header) { return {header.store, header.segment, header.offset_bytes}; }

const char* PlainOrNot(bool encrypted) { return encrypted ? " encrypted" : ""; }

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Every rule about the numbers of a header whose checksum holds.
Status CheckHeader(const ExtentHeader& header, const Identity& identity) {
  if (header.store != identity.store || header.segment != identity.segment ||
      header.offset_bytes != identity.offset_bytes) {
    return ExtentCorruption(identity, "extent header belongs to store " + std::to_string(header.store.value) +
                                          " segment " + std::to_string(header.segment.value) + " offset " +
                                          std::to_string(header.offset_bytes));
  }
  if (header.offset_bytes % kExtentAlignmentBytes != 0) return ExtentCorruption(identity, "extent is not aligned");
  if (header.part_size_bytes < kPartSizeMinBytes || header.part_size_bytes > kPartSizeMaxBytes) {
    return ExtentCorruption(identity, "extent has part size " + std::to_string(header.part_size_bytes) +
                                          ", allowed are " + std::to_string(kPartSizeMinBytes) + " to " +
                                          std::to_string(kPartSizeMaxBytes));
  }
  if (header.value_size_bytes > kValueSizeMaxBytes) {
    return ExtentCorruption(identity, "extent has value size " + std::to_string(header.value_size_bytes));
  }
  if (header.part_count != PartCount(header.value_size_bytes, header.part_size_bytes)) {
    return ExtentCorruption(identity, "extent has " + std::to_string(header.part_count) + " parts, its sizes make " +
                                          std::to_string(PartCount(header.value_size_bytes, header.part_size_bytes)));
  }
  const uint64_t overhead = uint64_t{header.part_count} * PartOverheadBytes(header.encrypted);
  if (header.stored_total_bytes < header.part_count + overhead ||
      header.stored_total_bytes > header.value_size_bytes + overhead) {
    return ExtentCorruption(identity, "extent has a stored total of " + std::to_string(header.stored_total_bytes) +
                                          " for a value of " + std::to_string(header.value_size_bytes));
  }
  if (header.reserved_size_bytes != 0 &&
      (header.reserved_size_bytes % kSegmentBlockSizeBytes != 0 ||
       header.reserved_size_bytes < ExtentSizeBytes(header) ||
       header.reserved_size_bytes > RoundUp(kValueSizeMaxBytes * 2, kSegmentBlockSizeBytes))) {
    return ExtentCorruption(identity, "extent has reserved size " + std::to_string(header.reserved_size_bytes) +
                                          " around " + std::to_string(ExtentSizeBytes(header)));
  }
  return Status::Ok();
}

Result<ExtentHeader> DecodeHeader(std::span<const uint8_t> bytes, const Identity& identity) {
  if (bytes.size() < kExtentHeaderSizeBytes) return ExtentCorruption(identity, "extent header is cut off");
  ByteReader reader(bytes.first(kExtentHeaderSizeBytes));
  if (reader.U64() != kExtentMagic) return ExtentCorruption(identity, "no extent here (magic mismatch)");
  const uint16_t version = reader.U16();
  const uint8_t codec = reader.U8();
  const uint8_t flags = reader.U8();
  ExtentHeader header;
  header.segment = SegmentNumber{reader.U32()};
  header.store = StoreId{reader.U64()};
  header.offset_bytes = reader.U64();
  header.value_size_bytes = reader.U64();
  header.stored_total_bytes = reader.U64();
  header.reserved_size_bytes = reader.U64();
  header.part_size_bytes = reader.U32();
  header.part_count = reader.U32();
  if (reader.U64() != Checksum64(bytes.first(kHeaderChecksumOffset))) {
    return ExtentCorruption(identity, "extent header checksum mismatch");
  }
  if (version > kExtentVersion || (version != 0 && codec > static_cast<uint8_t>(Codec::kZstd))) {
    return Status::NotSupported(
        "store " + std::to_string(identity.store.value) + " segment " + std::to_string(identity.segment.value) +
        " offset " + std::to_string(identity.offset_bytes) + ": extent of version " + std::to_string(version) +
        " codec " + std::to_string(codec) + " was written by a newer Quarry; this one reads version up to " +
        std::to_string(kExtentVersion) + " and codecs none, lz4 and zstd");
  }
  if (version == 0 || flags != (version == kExtentVersionPlain ? 0 : kEncryptedFlag)) {
    return ExtentCorruption(identity, "extent header has an impossible version or flags");
  }
  header.encrypted = version != kExtentVersionPlain;
  header.codec = static_cast<Codec>(codec);
  QUARRY_TRY(CheckHeader(header, identity));
  return header;
}

// What the extent was encrypted with.
Result<CipherParameters> DecodeCipher(ByteReader* reader, const Identity& identity) {
  CipherParameters cipher;
  cipher.scheme = reader->U32();
  cipher.key_id = reader->U32();
  cipher.key_version = reader->U32();
  const bool zero = reader->U32() == 0;
  for (uint8_t& byte : cipher.salt) byte = reader->U8();
  if (cipher.scheme == 0 || cipher.key_id == 0 || cipher.key_version == 0 || !zero) {
    return ExtentCorruption(identity, "extent names an impossible key");
  }
  return cipher;
}

// Fills in the entries and their offsets; every entry is checked against the geometry.
Status DecodeEntries(ByteReader* reader, const Identity& identity, ExtentIndex* index) {
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
      return ExtentCorruption(identity, "index entry " + std::to_string(part) + " has an impossible stored size of " +
                                            std::to_string(entry.stored_size_bytes));
    }
    offset += entry.stored_size_bytes;
    index->parts.push_back(entry);
  }
  if (offset != ExtentSizeBytes(header)) return ExtentCorruption(identity, "index does not add up to the stored total");
  return Status::Ok();
}

Result<ExtentIndex> DecodeIndex(std::span<const uint8_t> bytes, const Identity& identity, const ExtentHeader& header) {
  const uint64_t size = HeaderAndIndexSizeBytes(header);
  if (bytes.size() < size) return ExtentCorruption(identity, "extent index is cut off");
  const std::span<const uint8_t> checked = bytes.first(size - kIndexChecksumSizeBytes);
  const uint64_t checksum = Checksum64(checked);
  if (LoadLittleEndian<uint64_t>(bytes, checked.size()) != checksum) {
    return ExtentCorruption(identity, "extent index checksum mismatch");
  }
  ExtentIndex index;
  index.header = header;
  index.index_checksum = static_cast<uint32_t>(checksum);
  ByteReader reader(checked.subspan(kExtentHeaderSizeBytes));
  if (header.encrypted) {
    QUARRY_TRY_ASSIGN(index.cipher, DecodeCipher(&reader, identity));
  }
  QUARRY_TRY(DecodeEntries(&reader, identity, &index));
  return index;
}

}  // namespace

uint32_t PartCount(uint64_t value_size_bytes, uint32_t part_size_bytes) {
  assert(part_size_bytes >= kPartSizeMinBytes && part_size_bytes <= kPartSizeMaxBytes);
  assert(value_size_bytes <= kValueSizeMaxBytes);
  return static_cast<uint32_t>((value_size_bytes + part_size_bytes - 1) / part_size_bytes);
}

uint64_t ExtentSizeMaxBytes(uint64_t value_size_bytes, uint32_t part_size_bytes, bool encrypted) {
  const uint32_t parts = PartCount(value_size_bytes, part_size_bytes);
  return HeaderAndIndexSizeBytes(parts, encrypted) + value_size_bytes + uint64_t{parts} * PartOverheadBytes(encrypted);
}

uint64_t ExtentSizeBytes(const ExtentHeader& header) {
  return HeaderAndIndexSizeBytes(header) + header.stored_total_bytes;
}

uint64_t NextExtentOffsetBytes(const ExtentHeader& header) {
  return RoundUp(header.offset_bytes + ExtentSizeBytes(header), kExtentAlignmentBytes);
}

uint32_t PartSizeOf(const ExtentHeader& header, uint32_t part) {
  assert(part < header.part_count);
  const uint64_t begin = static_cast<uint64_t>(part) * header.part_size_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(header.part_size_bytes, header.value_size_bytes - begin));
}

PartRange PartsOfRange(const ExtentHeader& header, uint64_t offset_bytes, uint64_t size_bytes) {
  assert(offset_bytes <= header.value_size_bytes && size_bytes <= header.value_size_bytes - offset_bytes);
  if (size_bytes == 0) return {};
  const auto first = static_cast<uint32_t>(offset_bytes / header.part_size_bytes);
  const auto last = static_cast<uint32_t>((offset_bytes + size_bytes - 1) / header.part_size_bytes);
  return {first, last - first + 1};
}

uint32_t EncodeExtentIndex(const ExtentHeader& header, std::span<const PartEntry> parts, const CipherParameters& cipher,
                           std::span<uint8_t> out) {
  assert(parts.size() == PartCount(header.value_size_bytes, header.part_size_bytes));
  assert(header.offset_bytes % kExtentAlignmentBytes == 0);
  const auto part_count = static_cast<uint32_t>(parts.size());
  assert(out.size() == HeaderAndIndexSizeBytes(part_count, header.encrypted));
  uint64_t stored_total = 0;
  size_t position = kExtentHeaderSizeBytes;
  if (header.encrypted) {
    StoreLittleEndian(out, 72, cipher.scheme);
    StoreLittleEndian(out, 76, cipher.key_id);
    StoreLittleEndian(out, 80, cipher.key_version);
    StoreLittleEndian(out, 84, uint32_t{0});
    std::copy(cipher.salt.begin(), cipher.salt.end(), out.begin() + 88);
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
  StoreLittleEndian(out, 8, header.encrypted ? kExtentVersion : kExtentVersionPlain);
  StoreLittleEndian(out, 10, static_cast<uint8_t>(header.codec));
  StoreLittleEndian(out, 11, header.encrypted ? kEncryptedFlag : uint8_t{0});
  StoreLittleEndian(out, 12, header.segment.value);
  StoreLittleEndian(out, 16, header.store.value);
  StoreLittleEndian(out, 24, header.offset_bytes);
  StoreLittleEndian(out, 32, header.value_size_bytes);
  StoreLittleEndian(out, 40, stored_total);
  StoreLittleEndian(out, 48, header.reserved_size_bytes);
  StoreLittleEndian(out, 56, header.part_size_bytes);
  StoreLittleEndian(out, 60, part_count);
  StoreLittleEndian(out, kHeaderChecksumOffset, Checksum64(out.first(kHeaderChecksumOffset)));
  const uint64_t checksum = Checksum64(out.first(position));
  StoreLittleEndian(out, position, checksum);
  return static_cast<uint32_t>(checksum);
}

Locator LocatorOf(const ExtentHeader& header, uint32_t index_checksum) {
  Locator locator;
  locator.store = header.store;
  locator.segment = header.segment;
  locator.offset_bytes = header.offset_bytes;
  locator.extent_size_bytes = ExtentSizeBytes(header);
  locator.value_size_bytes = header.value_size_bytes;
  locator.index_checksum = index_checksum;
  locator.encrypted = header.encrypted;
  return locator;
}

uint64_t FirstReadSizeBytes(const Locator& locator, uint64_t batch_bytes) {
  const uint64_t value_size = std::min(locator.value_size_bytes, kValueSizeMaxBytes);
  const uint64_t index_size = HeaderAndIndexSizeBytes(PartCount(value_size, kPartSizeDefaultBytes), locator.encrypted);
  return std::min(locator.extent_size_bytes, std::max({index_size, kSegmentBlockSizeBytes, batch_bytes}));
}

bool StartsLikeExtent(std::span<const uint8_t> bytes) { return MagicOf(bytes) == kExtentMagic; }

Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, StoreId store, SegmentNumber segment,
                                        uint64_t offset_bytes) {
  return DecodeHeader(bytes, {store, segment, offset_bytes});
}

Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const Locator& locator) {
  const Identity identity = IdentityOf(locator);
  QUARRY_TRY_ASSIGN(ExtentHeader header, DecodeHeader(bytes, identity));
  if (header.value_size_bytes != locator.value_size_bytes || ExtentSizeBytes(header) != locator.extent_size_bytes ||
      header.encrypted != locator.encrypted) {
    return ExtentCorruption(identity, "extent holds " + std::to_string(header.value_size_bytes) + " bytes in " +
                                          std::to_string(ExtentSizeBytes(header)) + PlainOrNot(header.encrypted) +
                                          ", the head says " + std::to_string(locator.value_size_bytes) + " in " +
                                          std::to_string(locator.extent_size_bytes) + PlainOrNot(locator.encrypted));
  }
  return header;
}

Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, StoreId store, SegmentNumber segment,
                                      uint64_t offset_bytes) {
  const Identity identity{store, segment, offset_bytes};
  QUARRY_TRY_ASSIGN(ExtentHeader header, DecodeHeader(bytes, identity));
  return DecodeIndex(bytes, identity, header);
}

Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const Locator& locator) {
  QUARRY_TRY_ASSIGN(ExtentHeader header, DecodeExtentHeader(bytes, locator));
  QUARRY_TRY_ASSIGN(ExtentIndex index, DecodeIndex(bytes, IdentityOf(locator), header));
  if (index.index_checksum != locator.index_checksum) {
    return ExtentCorruption(IdentityOf(locator), "extent is not the one that the head was written for");
  }
  return index;
}

Status VerifyPart(const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored) {
  const PartEntry& entry = index.parts[part];
  if (stored.size() != entry.stored_size_bytes) return PartCorruption(index, part, "is cut off");
  if (Checksum64(stored) != entry.checksum) return PartCorruption(index, part, "checksum mismatch");
  return Status::Ok();
}

Status PartCorruption(const ExtentIndex& index, uint32_t part, const std::string& what) {
  Identity identity = IdentityOf(index.header);
  identity.offset_bytes += index.parts[part].offset_in_extent_bytes;
  return ExtentCorruption(identity, "part " + std::to_string(part) + " " + what);
}

}  // namespace quarry
