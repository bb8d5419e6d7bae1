// Which bytes of a value a statement looks at, when it only asks for pieces of it: SUBSTRING, LEFT, LENGTH.
//
// Invariant: what RangeOf gives holds every byte that the server's function reads to make its result; more does no
// harm, less would be wrong bytes.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace quarry {

/// Bytes [begin, end) of a value.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] uint64_t size() const { return empty() ? 0 : end - begin; }
  bool operator==(const ByteRange&) const = default;
};

/// SUBSTRING(value, position, length), in characters: the first is 1, -1 the last; RIGHT(value, n) with -n, n.
struct RangeRequest {
  static constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  int64_t position = 1;
  int64_t length = kToTheEnd;
  bool operator==(const RangeRequest&) const = default;
};

/// Of a value of `size_bytes` in a character set whose characters take up to `character_bytes_max` bytes.
[[nodiscard]] ByteRange RangeOf(const RangeRequest& request, uint64_t size_bytes, uint32_t character_bytes_max);

/// A shorter value is read whole, in one go, unless the prefix in its row serves what is asked for.
inline constexpr uint64_t kRangeValueMinBytes = 32U << 10;

/// Up to this size a value of which a range is asked for again may be read whole, once, into the value cache, from
/// where it costs less than a range.
inline constexpr uint64_t kCachedForRangeMaxBytes = 1U << 20;

/// What is known of a value before it is read.
struct ValueShape {
  uint64_t size_bytes = 0;
  uint64_t prefix_bytes = 0;  ///< so many are in the row
  uint32_t character_bytes_max = 1;
  uint32_t part_size_bytes = 1;  ///< as its column has it now: the value may have been cut in another way
};

/// The ranges to be read to serve all `requests`: in order, apart, beyond the prefix alone. False: reading the whole
/// value is no worse (it is short, or the parts that hold the ranges are more than half of it).
[[nodiscard]] bool ChooseRanges(const std::vector<RangeRequest>& requests, const ValueShape& value,
                                std::vector<ByteRange>* ranges);

}  // namespace quarry
