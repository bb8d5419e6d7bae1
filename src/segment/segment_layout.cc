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
  AlignedBuffer buffer(static_cast<size_t>(size_bytes));  // whole blocks
  const auto decode_first = [&](size_t read) {
    return decode(std::span<const uint8_t>(buffer.data(), std::min(read, static_cast<size_t>(size_bytes))));
  };
  QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(offset_bytes, buffer.span()));
  auto decoded = decode_first(read);
  if (decoded.status().code() != StatusCode::kCorruption) return decoded;
  const Result<std::optional<size_t>> again = file->ReadDirect(offset_bytes, {buffer.data(), buffer.size()});
  if (!again.ok() || !*again) return decoded;
  auto decoded_again = decode_first(**again);
  if (decoded_again.ok() && counters != nullptr) counters->Add(Counter::kPageCacheCorruptions);
  return decoded_again;
}

bool IsLost(const Status& status) {
  return status.code() == StatusCode::kCorruption || status.code() == StatusCode::kIoError;
}

Result<SegmentMap> ReadMapAt(ReadableFile* file, uint64_t offset_bytes, const SegmentHeader& header,
                             CounterSet* counters) {
  return ReadFront(file, offset_bytes, MapSizeBytes(header.run_count), counters,
                   [&](std::span<const uint8_t> bytes) { return SegmentMap::Decode(bytes, header); });
}

Result<SegmentHeader> ReadHeaderCopy(ReadableFile* file, StoreId store, SegmentNumber segment, const SegmentSalt& salt,
                                     CounterSet* counters) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  if (file_size < kSegmentHeaderSizeBytes || file_size % kSegmentHeaderSizeBytes != 0) {
    return Status::Corruption(store.value, segment.value, 0, "the file does not end with a copy of the segment header");
  }
  return ReadFront(
      file, file_size - kSegmentHeaderSizeBytes, kSegmentHeaderSizeBytes, counters,
      [&](std::span<const uint8_t> block) { return DecodeHeaderCopy(block, store, segment, salt, file_size); });
}

}  // namespace

Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment,
                                        CounterSet* counters) {
  return ReadFront(file, 0, kSegmentHeaderSizeBytes, counters,
                   [&](std::span<const uint8_t> block) { return DecodeSegmentHeader(block, store, segment); });
}

Result<SegmentHeader> ReadHeaderOrCopy(ReadableFile* file, StoreId store, SegmentNumber segment,
                                       const SegmentSalt& salt, Status* damage, CounterSet* counters) {
  Result<SegmentHeader> header = ReadSegmentHeader(file, store, segment, counters);
  if (!IsLost(header.status()) || salt == SegmentSalt{}) return header;
  Result<SegmentHeader> copy = ReadHeaderCopy(file, store, segment, salt, counters);
  if (copy.ok()) *damage = header.status();
  // While the device refuses it, nobody knows whether it is one: that is no damage, which a reader may remember.
  return copy.ok() || copy.status().code() == StatusCode::kIoError ? copy : header;
}

Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header,
                                                         Status* damage, CounterSet* counters) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  if (header.data_end_bytes > file_size || DataBeginBytes(header.run_count) > file_size) {
    return Status::Corruption(header.store.value, header.segment.value, 0,
                              "the rewritten segment was cut off at " + std::to_string(file_size) + " of " +
                                  std::to_string(header.data_end_bytes) + " bytes");
  }
  Result<SegmentMap> map = ReadMapAt(file, kSegmentHeaderSizeBytes, header, counters);
  if (IsLost(map.status()) && HasCopy(header, file_size)) {
    Result<SegmentMap> copy = ReadMapAt(file, CopyBeginBytes(header), header, counters);
    if (copy.ok()) *damage = map.status();
    if (copy.ok()) map = std::move(copy);
  }
  QUARRY_TRY(map.status());
  return std::make_shared<const SegmentMap>(std::move(map).value());
}

Status CheckCopy(ReadableFile* file, const SegmentHeader& header) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  if (file_size <= CopyBeginBytes(header)) return Status::Ok();
  QUARRY_TRY_ASSIGN(const SegmentHeader copy, ReadHeaderCopy(file, header.store, header.segment, header.salt, nullptr));
  if (!(copy == header)) {
    return Status::Corruption(header.store.value, header.segment.value, 0,
                              "the copy of the segment header is not that of the header in front");
  }
  return ReadMapAt(file, CopyBeginBytes(header), header, nullptr).status();
}

}  // namespace quarry
