#include "format/segment_map.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/extent.h"

namespace quarry {
namespace {

constexpr uint64_t kEntrySizeBytes = 16;

}  // namespace

uint64_t MapSizeBytes(uint32_t run_count) { return run_count * kEntrySizeBytes; }

uint64_t DataBeginBytes(uint32_t run_count) {
  const uint64_t blocks = (MapSizeBytes(run_count) + kSegmentBlockSizeBytes - 1) / kSegmentBlockSizeBytes;
  return kSegmentHeaderSizeBytes + blocks * kSegmentBlockSizeBytes;
}

SegmentMap SegmentMap::Place(std::span<const Piece> pieces) {
  std::vector<SegmentRun> runs;
  runs.reserve(pieces.size());
  uint64_t place = DataBeginBytes(static_cast<uint32_t>(pieces.size()));
  for (const Piece& piece : pieces) {
    assert(piece.size_bytes > 0 && piece.size_bytes % kExtentAlignmentBytes == 0);
    runs.push_back({piece.original_bytes, place});
    place += piece.size_bytes;
  }
  return {std::move(runs), place};
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
  if (header.data_end_bytes > INT64_MAX || header.data_end_bytes % kExtentAlignmentBytes != 0) {
    return corruption("ends at an impossible place");
  }
  std::vector<SegmentRun> runs;
  runs.reserve(header.run_count);
  ByteReader reader(map);
  uint64_t original_end = kSegmentHeaderSizeBytes;
  for (uint32_t i = 0; i < header.run_count; ++i) {
    const SegmentRun run{reader.U64(), reader.U64()};
    if (!runs.empty()) original_end = runs.back().original_bytes + (run.place_bytes - runs.back().place_bytes);
    const bool is_placed =
        runs.empty() ? run.place_bytes == DataBeginBytes(header.run_count) : run.place_bytes > runs.back().place_bytes;
    if (!is_placed || run.place_bytes >= header.data_end_bytes || run.original_bytes < original_end ||
        run.original_bytes > INT64_MAX || run.original_bytes % kExtentAlignmentBytes != 0 ||
        run.place_bytes % kExtentAlignmentBytes != 0) {
      return corruption("has an impossible entry " + std::to_string(i));
    }
    runs.push_back(run);
  }
  return SegmentMap(std::move(runs), header.data_end_bytes);
}

std::vector<uint8_t> SegmentMap::Encode() const {
  ByteWriter writer;
  for (const SegmentRun& run : runs_) {
    writer.U64(run.original_bytes);
    writer.U64(run.place_bytes);
  }
  return std::move(writer).Take();
}

std::optional<uint64_t> SegmentMap::Find(uint64_t original_bytes, uint64_t size_bytes) const {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), original_bytes,
                       [](uint64_t offset, const SegmentRun& run) { return offset < run.original_bytes; });
  if (behind == runs_.begin()) return std::nullopt;
  const auto run = static_cast<size_t>(behind - runs_.begin()) - 1;
  const uint64_t from_run = original_bytes - runs_[run].original_bytes;
  const uint64_t run_size = EndOf(run) - runs_[run].place_bytes;
  if (from_run >= run_size || size_bytes > run_size - from_run) return std::nullopt;
  return runs_[run].place_bytes + from_run;
}

std::optional<uint64_t> SegmentMap::OriginalOf(uint64_t place_bytes) const {
  const auto behind = std::upper_bound(runs_.begin(), runs_.end(), place_bytes,
                                       [](uint64_t place, const SegmentRun& run) { return place < run.place_bytes; });
  if (behind == runs_.begin() || place_bytes >= data_end_bytes_) return std::nullopt;
  const SegmentRun& run = *(behind - 1);
  return run.original_bytes + (place_bytes - run.place_bytes);
}

}  // namespace quarry
