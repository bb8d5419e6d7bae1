#include "format/segment_header.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/zeros.h"
#include "format/magic.h"

namespace quarry {

namespace {

constexpr uint16_t kVersion = 1;
/// Run count and what follows it, which only a rewritten segment has.
constexpr size_t kMapFieldsOffset = 84;
constexpr size_t kUsedSize = 112;
constexpr size_t kChecksumOffset = kSegmentHeaderSizeBytes - 8;

Result<SegmentHeader> Decode(std::span<const uint8_t> block, StoreId store, SegmentNumber segment) {
  const auto corruption = [&](const std::string& what) {
    return Status::Corruption(store.value, segment.value, 0, "segment header " + what);
  };
  if (block.size() < kSegmentHeaderSizeBytes) return corruption("is cut off");
  block = block.first(kSegmentHeaderSizeBytes);
  ByteReader reader(block);
  const uint64_t magic = reader.U64();
  if (magic == kUnreleasedSegmentMagic) {
    return Status::NotSupported(
        "segment " + std::to_string(LoadLittleEndian<uint32_t>(block, 12)) + " of store " +
        std::to_string(LoadLittleEndian<uint64_t>(block, 16)) +
        " was written by a build of Quarry from before its first release, whose format is not read any more");
  }
  if (magic != kSegmentMagic) return corruption("magic mismatch: not a segment");
  const uint16_t version = reader.U16();
  const uint16_t zero_after_version = reader.U16();
  SegmentHeader header;
  header.segment = SegmentNumber{reader.U32()};
  header.store = StoreId{reader.U64()};
  header.path_number = reader.U32();
  const uint32_t zero_after_path = reader.U32();
  const std::span<const uint8_t> installation = reader.Bytes(header.installation.size());
  std::copy(installation.begin(), installation.end(), header.installation.begin());
  header.table = TableId{reader.U64()};
  header.created_micros = reader.U64();
  const std::span<const uint8_t> salt = reader.Bytes(header.salt.size());
  std::copy(salt.begin(), salt.end(), header.salt.begin());
  if (LoadLittleEndian<uint64_t>(block, kChecksumOffset) != Checksum64(block.first(kChecksumOffset))) {
    return corruption("checksum mismatch");
  }
  if (version > kVersion) {
    return Status::NotSupported("segment " + std::to_string(header.segment.value) + " of store " +
                                std::to_string(header.store.value) + " has version " + std::to_string(version) +
                                ", written by a newer Quarry; this one reads up to " + std::to_string(kVersion));
  }
  header.generation = reader.U32();
  header.run_count = reader.U32();
  header.data_end_bytes = reader.U64();
  header.map_checksum = reader.U64();
  header.rewritten_micros = reader.U64();
  const std::span<const uint8_t> map_fields = block.subspan(kMapFieldsOffset, kUsedSize - kMapFieldsOffset);
  if (version == 0 || zero_after_version != 0 || zero_after_path != 0 ||
      (!header.is_rewritten() && !IsZero(map_fields)) ||
      !IsZero(block.subspan(kUsedSize, kChecksumOffset - kUsedSize))) {
    return corruption("has an impossible version or reserved bytes");
  }
  if (header.store.value == 0 || header.segment.value == 0) return corruption("names no segment");
  return header;
}

}  // namespace

void EncodeSegmentHeader(const SegmentHeader& header, std::span<uint8_t, kSegmentHeaderSizeBytes> out) {
  assert(header.store.value != 0 && header.segment.value != 0);
  std::fill(out.begin(), out.end(), uint8_t{0});
  StoreLittleEndian(out, 0, kSegmentMagic);
  StoreLittleEndian(out, 8, kVersion);
  StoreLittleEndian(out, 12, header.segment.value);
  StoreLittleEndian(out, 16, header.store.value);
  StoreLittleEndian(out, 24, header.path_number);
  std::copy(header.installation.begin(), header.installation.end(), out.begin() + 32);
  StoreLittleEndian(out, 48, header.table.value);
  StoreLittleEndian(out, 56, header.created_micros);
  std::copy(header.salt.begin(), header.salt.end(), out.begin() + 64);
  StoreLittleEndian(out, 80, header.generation);
  StoreLittleEndian(out, 84, header.run_count);
  StoreLittleEndian(out, 88, header.data_end_bytes);
  StoreLittleEndian(out, 96, header.map_checksum);
  StoreLittleEndian(out, 104, header.rewritten_micros);
  StoreLittleEndian(out, kChecksumOffset, Checksum64(out.first(kChecksumOffset)));
}

Result<SegmentHeader> DecodeSegmentHeader(std::span<const uint8_t> block) { return Decode(block, {}, {}); }

Result<SegmentHeader> DecodeSegmentHeader(std::span<const uint8_t> block, StoreId store, SegmentNumber segment) {
  QUARRY_TRY_ASSIGN(SegmentHeader header, Decode(block, store, segment));
  if (header.store != store || header.segment != segment) {
    return Status::Corruption(store.value, segment.value, 0,
                              "segment header belongs to segment " + std::to_string(header.segment.value) +
                                  " of store " + std::to_string(header.store.value));
  }
  return header;
}

}  // namespace quarry
