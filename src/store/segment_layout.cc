#include "store/segment_layout.h"

#include <vector>

namespace quarry {

Result<SegmentHeader> ReadSegmentHeader(ReadableFile* file, StoreId store, SegmentNumber segment) {
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes);
  QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(0, block));
  block.resize(read);
  return DecodeSegmentHeader(block, store, segment);
}

Result<std::shared_ptr<const SegmentMap>> ReadSegmentMap(ReadableFile* file, const SegmentHeader& header) {
  QUARRY_TRY_ASSIGN(const uint64_t file_size, file->SizeBytes());
  if (header.data_end_bytes > file_size || DataBeginBytes(header.run_count) > file_size) {
    return Status::Corruption(header.store.value, header.segment.value, 0,
                              "the rewritten segment was cut off at " + std::to_string(file_size) + " of " +
                                  std::to_string(header.data_end_bytes) + " bytes");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(MapSizeBytes(header.run_count)));
  QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(kSegmentHeaderSizeBytes, bytes));
  bytes.resize(read);
  QUARRY_TRY_ASSIGN(SegmentMap map, SegmentMap::Decode(bytes, header));
  return std::make_shared<const SegmentMap>(std::move(map));
}

}  // namespace quarry
