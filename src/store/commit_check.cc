// What a commit record says of extents (StoreImpl::Describe), and whether what it names is there (HoldsDurably).
//
// Invariants: nothing is believed that was not read from the device and verified, and nothing is read before the file
// was flushed: what the process that died had written may still be in the operating system's memory alone. A segment
// that is nowhere, although all data paths are here and the store's folders were listed, was never durable, and so was
// nothing in it.
#include <optional>

#include "format/extent.h"
#include "segment/extent_index.h"
#include "store/store_impl.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 256ULL << 10;

/// Whether the extent that `expected` means stands, whole, at `place_bytes` of the file. What was never written, or is
/// torn, shows as damage; any other failure is no answer.
Result<bool> IsWhole(SegmentWindow* window, const SegmentOrigin& origin, const CommitRecord::Extent& expected,
                     uint64_t place_bytes) {
  const auto index = ReadExtentIndex(window, origin, place_bytes, expected.offset_bytes);
  if (index.status().code() == StatusCode::kCorruption) return false;
  QUARRY_TRY(index.status());
  if (CommitTagOf(origin.salt, index->header.identity) != expected.tag) return false;
  for (uint32_t part = 0; part < index->header.part_count; ++part) {
    const PartEntry& entry = index->parts[part];
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> stored,
                      window->At(place_bytes + entry.offset_in_extent_bytes, entry.stored_size_bytes));
    if (stored.size() < entry.stored_size_bytes || !VerifyPart(*index, part, stored).ok()) return false;
  }
  return true;
}

}  // namespace

Status StoreImpl::Describe(const Locator& locator, CommitRecord* record) {
  const std::shared_ptr<Segment> segment = FindSegment(locator.segment);
  if (segment == nullptr) return NotFound(locator.segment);
  QUARRY_TRY_ASSIGN(const SegmentSalt salt, segment->Salt(this));
  record->extents.push_back({locator.segment, CommitTagOf(salt, locator.identity), locator.offset_bytes});
  return Status::Ok();
}

Result<bool> StoreImpl::HoldsDurably(std::span<const CommitRecord::Extent> extents) {
  std::shared_ptr<Segment> segment;  // that of the extent before, flushed and open
  LeasedFile<ReadableFile> file;
  std::optional<SegmentWindow> window;
  for (const CommitRecord::Extent& extent : extents) {
    if (segment == nullptr || segment->number() != extent.segment) {
      segment = FindSegment(extent.segment);
      if (segment == nullptr) {
        QUARRY_TRY(context_->CheckListed(id_));
        QUARRY_TRY(context_->CheckAllPathsAreHere());
        return false;
      }
      file.Release();
      {
        QUARRY_TRY_ASSIGN(const OpenFiles::Lease lease, context_->open_files.Take());
        QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> writable,
                          OpenSegmentForWrite(segment->number(), segment->path_number()));
        QUARRY_TRY(writable->Sync());
      }
      std::string path;
      QUARRY_TRY_ASSIGN(file, OpenSegmentForVerify(*segment, &path));
      QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
      window.emplace(file.get(), size, kWindowBytes);
    }
    QUARRY_TRY_ASSIGN(const SegmentSalt salt, segment->Salt(this));
    QUARRY_TRY_ASSIGN(const SegmentMap::Found place,
                      segment->PlaceOf(this, extent.offset_bytes, kExtentHeaderSizeBytes));
    QUARRY_TRY_ASSIGN(const bool is_whole, IsWhole(&*window, {id_, extent.segment, salt}, extent, place.place_bytes));
    if (!is_whole) {
      // Without its header it may have been rewritten, and the extent be elsewhere.
      QUARRY_TRY_ASSIGN(const std::span<const uint8_t> block, window->At(0, kSegmentHeaderSizeBytes));
      QUARRY_TRY(DecodeSegmentHeader(block, id_, extent.segment).status());
      return false;
    }
  }
  return true;
}

}  // namespace quarry
