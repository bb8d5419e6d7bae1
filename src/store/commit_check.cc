// StoreImpl::HoldsDurably: whether what a commit record names is there.
//
// Invariants: nothing is believed that was not read from the device and verified, and nothing is read before the file
// was flushed: what the process that died had written may still be in the operating system's memory alone. A segment
// that is nowhere although all data paths are here was never durable, and so was nothing in it.
#include <algorithm>

#include "format/extent.h"
#include "store/segment_window.h"
#include "store/store_impl.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 256ULL << 10;

/// What was never written, or torn, shows as damage; anything else is no answer.
Result<bool> Answer(const Status& status) {
  if (status.ok()) return true;
  return status.code() == StatusCode::kCorruption ? Result<bool>(false) : Result<bool>(status);
}

/// Whether the extent that `expected` means stands, whole, at `place_bytes` of the file.
Result<bool> IsWhole(SegmentWindow* window, StoreId store, const CommitRecord::Extent& expected, uint64_t place_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(place_bytes, kExtentHeaderSizeBytes));
  if (start.size() < kExtentHeaderSizeBytes || !StartsLikeExtent(start)) return false;
  const auto header = DecodeExtentHeader(start, store, expected.segment, expected.offset_bytes);
  if (!header.ok()) return Answer(header.status());
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front, window->At(place_bytes, HeaderAndIndexSizeBytes(*header)));
  const auto index = DecodeExtentIndex(front, store, expected.segment, expected.offset_bytes);
  if (!index.ok()) return Answer(index.status());
  if (index->index_checksum != expected.index_checksum) return false;
  for (uint32_t part = 0; part < index->header.part_count; ++part) {
    const PartEntry& entry = index->parts[part];
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> stored,
                      window->At(place_bytes + entry.offset_in_extent_bytes, entry.stored_size_bytes));
    if (stored.size() < entry.stored_size_bytes || !VerifyPart(*index, part, stored).ok()) return false;
  }
  return true;
}

}  // namespace

Result<bool> StoreImpl::HoldsDurably(std::span<const CommitRecord::Extent> extents) {
  for (const CommitRecord::Extent& extent : extents) {
    const std::shared_ptr<Segment> segment = FindSegment(extent.segment);
    if (segment == nullptr) {
      for (const SegmentPath& path : context_->paths) {
        if (!path.unavailable.empty()) return Status::Unavailable(path.unavailable);
      }
      return false;
    }
    QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> writable,
                      OpenSegmentForWrite(segment->number(), segment->path_number()));
    QUARRY_TRY(writable->Sync());
    // A header that is damaged is no answer either: it was durable before the first extent.
    QUARRY_TRY_ASSIGN(const uint64_t place, segment->PlaceOf(this, extent.offset_bytes, kExtentHeaderSizeBytes));
    std::string path;
    QUARRY_TRY_ASSIGN(const std::unique_ptr<ReadableFile> file, OpenSegmentForVerify(*segment, &path));
    QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
    SegmentWindow window(file.get(), size, kWindowBytes);
    QUARRY_TRY_ASSIGN(const bool is_whole, IsWhole(&window, id_, extent, place));
    if (!is_whole) return false;
  }
  return true;
}

}  // namespace quarry
