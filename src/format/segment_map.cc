#include "format/segment_map.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"

namespace quarry {
namespace {

constexpr uint64_t kEntrySizeBytes = 24;
constexpr uint32_t kReencodedFlag = 1;

constexpr bool IsAligned(uint64_t bytes) { return bytes % kExtentAlignmentBytes == 0; }

constexpr uint64_t ToNextBlock(uint64_t bytes) {
  return (bytes + kSegmentBlockSizeBytes - 1) / kSegmentBlockSizeBytes * kSegmentBlockSizeBytes;
}

}  // namespace

uint64_t MapSizeBytes(uint32_t run_count) { return run_count * kEntrySizeBytes; }

uint64_t DataBeginBytes(uint32_t run_count) { return kSegmentHeaderSizeBytes + ToNextBlock(MapSizeBytes(run_count)); }

uint64_t CopyBeginBytes(const SegmentHeader& header) { return ToNextBlock(header.data_end_bytes); }

bool HasCopy(const SegmentHeader& header, uint64_t file_size_bytes) {
  return header.is_rewritten() && header.data_end_bytes <= file_size_bytes &&
         CopyBeginBytes(header) + DataBeginBytes(header.run_count) == file_size_bytes;
}

Result<SegmentHeader> DecodeHeaderCopy(std::span<const uint8_t> block, StoreId store, SegmentNumber segment,
                                       const SegmentSalt& salt, uint64_t file_size_bytes) {
  QUARRY_TRY_ASSIGN(SegmentHeader header, DecodeSegmentHeader(block, store, segment));
  if (salt != SegmentSalt{} && header.salt == salt && HasCopy(header, file_size_bytes)) return header;
  return Status::Corruption(store.value, segment.value, 0, "the end of the file is no copy of the segment header");
}

SegmentMap SegmentMap::Place(std::vector<SegmentRun> runs) {
  uint64_t place = DataBeginBytes(static_cast<uint32_t>(runs.size()));
  for (SegmentRun& run : runs) {
    assert(run.size_bytes > 0 && IsAligned(run.size_bytes));
    run.place_bytes = place;
    place += run.size_bytes;
  }
  return SegmentMap(std::move(runs));
}

Result<SegmentMap> SegmentMap::Decode(std::span<const uint8_t> map, const SegmentHeader& header) {
  const auto corruption = [&](const std::string& what) {
    return Status::Corruption(header.store.value, header.segment.value, kSegmentHeaderSizeBytes,
                              "the map of the rewritten segment " + what);
  };
  if (map.size() < MapSizeBytes(header.run_count)) return corruption("is cut off");
  map = map.first(static_cast<size_t>(MapSizeBytes(header.run_count)));
  if (Checksum64(map) != header.map_checksum) return corruption("has a checksum mismatch");
  if (header.run_count == 0) return corruption("is empty");
  std::vector<SegmentRun> runs;
  runs.reserve(header.run_count);
  ByteReader reader(map);
  uint64_t original_end = kSegmentHeaderSizeBytes;
  uint64_t place = DataBeginBytes(header.run_count);
  for (uint32_t i = 0; i < header.run_count; ++i) {
    SegmentRun run;
    run.original_bytes = reader.U64();
    run.place_bytes = reader.U64();
    run.size_bytes = reader.U32() * kExtentAlignmentBytes;
    const uint32_t flags = reader.U32();
    if (run.place_bytes != place || run.size_bytes == 0 || run.original_bytes < original_end ||
        run.original_bytes > INT64_MAX || !IsAligned(run.original_bytes) || (flags & ~kReencodedFlag) != 0) {
      return corruption("has an impossible entry " + std::to_string(i));
    }
    run.is_reencoded = flags == kReencodedFlag;
    place += run.size_bytes;
    // How long an extent was before it was encoded anew is not known.
    original_end = run.original_bytes + (run.is_reencoded ? kExtentAlignmentBytes : run.size_bytes);
    runs.push_back(run);
  }
  if (header.data_end_bytes != place) return corruption("ends at an impossible place");
  return SegmentMap(std::move(runs));
}

std::vector<uint8_t> SegmentMap::Encode() const {
  // It may have millions of entries: in one piece of memory from the beginning.
  std::vector<uint8_t> map(static_cast<size_t>(MapSizeBytes(static_cast<uint32_t>(runs_.size()))));
  const std::span<uint8_t> out(map);
  size_t at = 0;
  for (const SegmentRun& run : runs_) {
    StoreLittleEndian(out, at, run.original_bytes);
    StoreLittleEndian(out, at + 8, run.place_bytes);
    StoreLittleEndian(out, at + 16, static_cast<uint32_t>(run.size_bytes / kExtentAlignmentBytes));
    StoreLittleEndian(out, at + 20, run.is_reencoded ? kReencodedFlag : 0);
    at += kEntrySizeBytes;
  }
  return map;
}

std::optional<SegmentMap::Found> SegmentMap::Find(uint64_t original_bytes, uint64_t size_bytes) const {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), original_bytes,
                       [](uint64_t offset, const SegmentRun& run) { return offset < run.original_bytes; });
  if (behind == runs_.begin()) return std::nullopt;
  const SegmentRun& run = *(behind - 1);
  const uint64_t from_run = original_bytes - run.original_bytes;
  if (run.is_reencoded) {
    if (from_run != 0) return std::nullopt;
    return Found{run.place_bytes, run.size_bytes, true};
  }
  if (from_run >= run.size_bytes || size_bytes > run.size_bytes - from_run) return std::nullopt;
  return Found{run.place_bytes + from_run, size_bytes, false};
}

}  // namespace quarry
