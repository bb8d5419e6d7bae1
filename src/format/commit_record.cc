// The commit record. Normative layout: docs/internals/format.md.
//
//   +0  magic     u64              +24 + 16 i  segment number  u32
//   +8  version   u16              +28 + 16 i  tag             u32
//   +10 extents   u16, 1 to 6      +32 + 16 i  offset          u64   of extent i, 0 to 5; zeros where there is none
//   +12 zeros     4 bytes          +120 checksum  u64  XXH3-64 of bytes 0..119
//   +16 store id  u64
#include "quarry/commit_record.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/zeros.h"
#include "format/extent.h"
#include "format/magic.h"
#include "format/segment_header.h"

namespace quarry {
namespace {

constexpr uint16_t kCommitRecordVersion = 1;
constexpr size_t kExtentsOffset = 24;
constexpr size_t kExtentEntrySizeBytes = 16;
constexpr size_t kChecksumOffset = 120;
static_assert(kExtentsOffset + kCommitRecordExtentsMax * kExtentEntrySizeBytes == kChecksumOffset);

Status RecordCorruption(const std::string& what) { return Status::Corruption(0, 0, 0, "commit record " + what); }

}  // namespace

bool FitsCommitRecord(std::span<const Locator> locators) {
  return !locators.empty() && locators.size() <= kCommitRecordExtentsMax &&
         std::all_of(locators.begin(), locators.end(),
                     [&](const Locator& locator) { return locator.store == locators.front().store; });
}

void EncodeCommitRecord(const CommitRecord& record, std::span<uint8_t, kCommitRecordSizeBytes> out) {
  assert(!record.extents.empty() && record.extents.size() <= kCommitRecordExtentsMax);
  std::fill(out.begin(), out.end(), uint8_t{0});
  StoreLittleEndian<uint64_t>(out, 0, kCommitRecordMagic);
  StoreLittleEndian<uint16_t>(out, 8, kCommitRecordVersion);
  StoreLittleEndian<uint16_t>(out, 10, static_cast<uint16_t>(record.extents.size()));
  StoreLittleEndian<uint64_t>(out, 16, record.store.value);
  size_t at = kExtentsOffset;
  for (const CommitRecord::Extent& extent : record.extents) {
    StoreLittleEndian<uint32_t>(out, at, extent.segment.value);
    StoreLittleEndian<uint32_t>(out, at + 4, extent.tag);
    StoreLittleEndian<uint64_t>(out, at + 8, extent.offset_bytes);
    at += kExtentEntrySizeBytes;
  }
  StoreLittleEndian<uint64_t>(out, kChecksumOffset, Checksum64(out.first(kChecksumOffset)));
}

Result<CommitRecord> DecodeCommitRecord(std::span<const uint8_t> bytes) {
  if (bytes.size() != kCommitRecordSizeBytes || MagicOf(bytes) != kCommitRecordMagic) {
    return RecordCorruption("has no magic, or not its size");
  }
  if (LoadLittleEndian<uint64_t>(bytes, kChecksumOffset) != Checksum64(bytes.first(kChecksumOffset))) {
    return RecordCorruption("does not match its checksum");
  }
  const uint16_t version = LoadLittleEndian<uint16_t>(bytes, 8);
  if (version > kCommitRecordVersion) {
    return Status::NotSupported("commit record has version " + std::to_string(version) + ", this build reads up to " +
                                std::to_string(kCommitRecordVersion));
  }
  const size_t count = LoadLittleEndian<uint16_t>(bytes, 10);
  CommitRecord record;
  record.store = StoreId{LoadLittleEndian<uint64_t>(bytes, 16)};
  if (version == 0 || count == 0 || count > kCommitRecordExtentsMax || record.store.value == 0 ||
      !IsZero(bytes.subspan(12, 4))) {
    return RecordCorruption("holds what none can hold");
  }
  for (size_t i = 0; i < kCommitRecordExtentsMax; ++i) {
    const size_t at = kExtentsOffset + i * kExtentEntrySizeBytes;
    if (i >= count) {
      if (!IsZero(bytes.subspan(at, kExtentEntrySizeBytes))) return RecordCorruption("has bytes where none belong");
      continue;
    }
    CommitRecord::Extent extent;
    extent.segment = SegmentNumber{LoadLittleEndian<uint32_t>(bytes, at)};
    extent.tag = LoadLittleEndian<uint32_t>(bytes, at + 4);
    extent.offset_bytes = LoadLittleEndian<uint64_t>(bytes, at + 8);
    if (extent.segment.value == 0 || extent.offset_bytes < kSegmentHeaderSizeBytes ||
        extent.offset_bytes % kExtentAlignmentBytes != 0 || extent.offset_bytes > INT64_MAX / 2) {
      return RecordCorruption("names an impossible extent");
    }
    record.extents.push_back(extent);
  }
  return record;
}

}  // namespace quarry
