#include "segment/segment_layout.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/aligned_buffer.h"
#include "context/store_context.h"

namespace quarry {

namespace {

/// What `decode` makes of [offset, offset + size) of the file: as the page cache has it and, when that is damaged, as
/// the device has it. `offset_bytes` is that of a block.
template <typename Decode>
auto ReadFront(ReadableFile* file, uint64_t offset_bytes, uint64_t size_bytes, CounterSet* counters,
               const Decode& decode) -> decltype(decode(std::span<const uint8_t>())) {
  AlignedBuffer buffer(static_cast<size_t>(RoundUpToBlock(size_bytes)));
  const auto decode_first = [&](size_t read) {
    return decode(std::span<const uint8_t>(buffer.data(), std::min(read, static_cast<size_t>(size_bytes))));
  };
  QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(offset_bytes, {buffer.data(), static_cast<size_t>(size_bytes)}));
  auto decoded = decode_first(read);
  if (decoded.status().code() != StatusCode::kCorruption) return decoded;
  const Result<std::optional<size_t>> again = file->ReadDirect(offset_bytes, {buffer.data(), buffer.size()});
  if (!again.ok() || !*again) return decoded;
  auto decoded_again = decode_first(**again);
  if (decoded_again.ok() && counters != nullptr) counters->Add(Counter::kPageCacheCorruptions);
  return decoded_again;
}

}  // namespace

Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment,
                                        CounterSet* counters) {
  return ReadFront(file, 0, kSegmentHeaderSizeBytes, counters,
                   [&](std::span<const uint8_t> block) { return DecodeSegmentHeader(block, store, segment); });
}

Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header,
                                                         CounterSet* counters) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  if (header.data_end_bytes > file_size || DataBeginBytes(header.run_count) > file_size) {
    return Status::Corruption(header.store.value, header.segment.value, 0,
                              "the rewritten segment was cut off at " + std::to_string(file_size) + " of " +
                                  std::to_string(header.data_end_bytes) + " bytes");
  }
  QUARRY_TRY_ASSIGN(SegmentMap map,
                    ReadFront(file, kSegmentHeaderSizeBytes, MapSizeBytes(header.run_count), counters,
                              [&](std::span<const uint8_t> bytes) { return SegmentMap::Decode(bytes, header); }));
  return std::make_shared<const SegmentMap>(std::move(map));
}

}  // namespace quarry
