#include "rows/value_range.h"

#include <algorithm>

namespace quarry {

namespace {

uint64_t UpTo(int64_t wanted, uint64_t limit) { return std::min(static_cast<uint64_t>(wanted), limit); }

// Where a character begins depends on all before it, and on nothing behind its own bytes. One that is not well-formed
// counts as one and is no longer than the longest.
ByteRange CharacterRange(const RangeRequest& request, uint64_t size_bytes, uint64_t character_bytes_max) {
  if (request.position < 0) return {0, size_bytes};  // counted from the end: all of them have to be counted
  const uint64_t characters = UpTo(request.position - 1, size_bytes) + UpTo(request.length, size_bytes);
  return {0, std::min(size_bytes, (characters + 1) * character_bytes_max)};
}

// The parts begin behind the prefix.
uint64_t BytesOfParts(const std::vector<ByteRange>& ranges, const ValueShape& value) {
  const uint64_t part_size_bytes = value.part_size_bytes;
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) {
    const uint64_t first_part = (range.begin - value.prefix_bytes) / part_size_bytes;
    const uint64_t end_part = (range.end - value.prefix_bytes + part_size_bytes - 1) / part_size_bytes;
    bytes += (end_part - first_part) * part_size_bytes;
  }
  return bytes;
}

// Also joins those that are less than a part apart: a part is read whole, and no part should be read twice.
void SortAndJoin(uint64_t part_size_bytes, std::vector<ByteRange>* ranges) {
  std::sort(ranges->begin(), ranges->end(), [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const ByteRange& range : *ranges) {
    if (kept > 0 && range.begin <= (*ranges)[kept - 1].end + part_size_bytes) {
      (*ranges)[kept - 1].end = std::max((*ranges)[kept - 1].end, range.end);
    } else {
      (*ranges)[kept++] = range;
    }
  }
  ranges->resize(kept);
}

}  // namespace

ByteRange RangeOf(const RangeRequest& request, uint64_t size_bytes, uint32_t character_bytes_max) {
  if (request.length <= 0 || request.position == 0) return {};
  if (character_bytes_max > 1) return CharacterRange(request, size_bytes, character_bytes_max);
  uint64_t begin = 0;
  if (request.position > 0) {
    begin = static_cast<uint64_t>(request.position) - 1;
  } else {
    // Before the first: SUBSTRING takes nothing, RIGHT all.
    begin = size_bytes - std::min(size_bytes, uint64_t{0} - static_cast<uint64_t>(request.position));
  }
  if (begin >= size_bytes) return {};
  return {begin, begin + UpTo(request.length, size_bytes - begin)};
}

bool ChooseRanges(const std::vector<RangeRequest>& requests, const ValueShape& value, std::vector<ByteRange>* ranges) {
  ranges->clear();
  for (const RangeRequest& request : requests) {
    ByteRange range = RangeOf(request, value.size_bytes, value.character_bytes_max);
    range.begin = std::max(range.begin, value.prefix_bytes);
    if (!range.empty()) ranges->push_back(range);
  }
  if (ranges->empty()) return true;  // the row has all of it
  if (value.size_bytes < kRangeValueMinBytes) return false;
  SortAndJoin(value.part_size_bytes, ranges);
  return 2 * BytesOfParts(*ranges, value) <= value.size_bytes - value.prefix_bytes;
}

}  // namespace quarry
