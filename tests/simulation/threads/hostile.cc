#include "simulation/threads/hostile.h"

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "format/extent.h"
#include "io/env.h"
#include "quarry/commit_record.h"

namespace quarry::simulation {
namespace {

constexpr uint64_t kForgedSizeMaxBytes = 104;
/// What is closer to each other compresses, and is not on the disk as it is here.
constexpr uint64_t kForgedStepSparseBytes = 1024;
constexpr uint32_t kForgedValueBytes = 3;

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Places at which the next extent may begin: right behind the last one, or at one of the next blocks.
std::vector<uint64_t> LikelyPlaces(const HostileFacts& facts) {
  const uint64_t end = std::max<uint64_t>(facts.end_bytes, kSegmentHeaderSizeBytes);
  std::vector<uint64_t> places = {RoundUp(end, kExtentAlignmentBytes)};
  for (uint64_t block = 0; block < 12; ++block)
    places.push_back(RoundUp(end, kBlockSizeBytes) + block * kBlockSizeBytes);
  return places;
}

/// A header and index, and perhaps the part, for an extent at `offset_bytes` of the segment.
void Forge(const HostileFacts& facts, uint64_t offset_bytes, bool with_part, Dice* dice, std::span<uint8_t> out) {
  ExtentHeader header;
  header.store = facts.store;
  header.segment = facts.segment;
  header.offset_bytes = offset_bytes;
  header.identity = facts.other.identity | 1;
  header.content_size_bytes = kForgedValueBytes;
  header.part_size_bytes = kPartSizeMinBytes;
  header.part_count = 1;
  SegmentSalt salt{};  // the segment's own is what nobody can know
  salt[0] = static_cast<uint8_t>(dice->Below(256));
  const size_t front = HeaderAndIndexSizeBytes(1, false);
  const std::array<uint8_t, kForgedValueBytes> value = {1, 2, 3};
  PartEntry part;
  part.stored_size_bytes = kForgedValueBytes;
  part.raw = true;
  part.checksum = Checksum64(value);
  EncodeExtentIndex(header, {&part, 1}, {}, salt, out.first(front));
  if (with_part) std::copy(value.begin(), value.end(), out.begin() + static_cast<ptrdiff_t>(front));
}

void FillWithExtents(std::vector<uint8_t>* value, const HostileFacts& facts, bool with_parts, Dice* dice) {
  const std::vector<uint64_t> places = LikelyPlaces(facts);
  const uint64_t front = HeaderAndIndexSizeBytes(PartCount(value->size(), facts.part_size_bytes), false);
  size_t guess = dice->Below(places.size());
  const uint64_t step = facts.is_compressed ? kForgedStepSparseBytes : kForgedSizeMaxBytes;
  for (uint64_t at = (8 - front % 8) % 8; at + kForgedSizeMaxBytes <= value->size(); at += step) {
    Forge(facts, places[guess++ % places.size()] + front + at, with_parts, dice, std::span(*value).subspan(at));
  }
}

void FillWithRecords(std::vector<uint8_t>* value, const HostileFacts& facts) {
  const auto tag = static_cast<uint32_t>(facts.other.identity);
  const CommitRecord record{facts.other.store, {{facts.other.segment, tag, facts.other.offset_bytes}}};
  for (size_t at = 0; at + kCommitRecordSizeBytes <= value->size(); at += kCommitRecordSizeBytes) {
    EncodeCommitRecord(record, std::span<uint8_t, kCommitRecordSizeBytes>(value->data() + at, kCommitRecordSizeBytes));
  }
}

void FillWithTrailers(std::vector<uint8_t>* value, const HostileFacts& facts) {
  for (size_t end = value->size(); end >= kTrailerSizeBytes; end -= kTrailerSizeBytes) {
    EncodeTrailer(facts.other,
                  std::span<uint8_t, kTrailerSizeBytes>(value->data() + end - kTrailerSizeBytes, kTrailerSizeBytes));
  }
}

}  // namespace

std::vector<uint8_t> MakeHostile(Hostile kind, size_t size_bytes, const HostileFacts& facts, Dice* dice) {
  const Content background = kind == Hostile::kZeros ? Content::kZeros : Content::kRandom;
  std::vector<uint8_t> value = MakeContent(background, size_bytes, dice->Word());
  switch (kind) {
    case Hostile::kHeaders:
    case Hostile::kExtents:
      FillWithExtents(&value, facts, kind == Hostile::kExtents, dice);
      break;
    case Hostile::kTrailers:
      FillWithTrailers(&value, facts);
      break;
    case Hostile::kRecords:
      FillWithRecords(&value, facts);
      break;
    case Hostile::kFile:
      if (!facts.file.empty())
        value.assign(facts.file.begin(), facts.file.begin() + static_cast<ptrdiff_t>(std::min(
                                                                  facts.file.size(), std::max<size_t>(size_bytes, 1))));
      break;
    case Hostile::kZeros:
      if (size_bytes > 4096) {
        std::vector<uint8_t> last(value.end() - 2048, value.end());
        FillWithExtents(&last, facts, true, dice);
        std::copy(last.begin(), last.end(), value.end() - 2048);
      }
      break;
  }
  return value;
}

}  // namespace quarry::simulation
