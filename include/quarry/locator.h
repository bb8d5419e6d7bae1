// Locator and head: what stands for a value inside the InnoDB row.
//
//   head of a long value:  | raw prefix (0..n bytes) | trailer (kTrailerSizeBytes) |
//   a short value:         | the raw value itself                                 |
//
// Invariants:
//  - The trailer stands at the END of the head and ends in a magic of 8 bytes.
//  - A raw value of kTrailerSizeBytes or more that ends in that magic is never left raw (see EndsLikeHead), so decoding
//    is never ambiguous: shorter, or magic absent -> raw; magic present and checksum right -> head; magic present and
//    checksum wrong -> kCorruption.
// The byte layout is normative in docs/format.md. Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

/// Where an extent lies and what it must look like. The plugin moves locators and never looks inside.
struct Locator {
  StoreId store;
  SegmentNumber segment;
  uint64_t offset_bytes = 0;       ///< of the extent's header inside the segment
  uint64_t extent_size_bytes = 0;  ///< header + index + stored parts, without padding
  uint64_t value_size_bytes = 0;   ///< of the whole value, uncompressed
  uint32_t index_checksum = 0;     ///< of the extent's header and index: binds the row to this very extent
  uint32_t value_sample = 0;       ///< SampleValue() of the value: a hint for a writer, never checked by a reader
  bool encrypted = false;          ///< the extent's parts are: it is longer than a plain one, and reading needs a key
  bool operator==(const Locator&) const = default;
};

inline constexpr size_t kTrailerSizeBytes = 64;

/// So many bytes at each end of a value are in its sample.
inline constexpr size_t kSampleEndBytes = 4096;

/// A cheap fingerprint: two values of different samples differ, so that a writer who wants to know whether a new value
/// equals the old one need not read the old one. Equal samples prove nothing: the middle of a long value is not in it.
[[nodiscard]] uint32_t SampleValue(std::span<const uint8_t> value);

/// True when `raw` has room for a trailer and ends in its magic, so that it must be sent out of line.
[[nodiscard]] bool EndsLikeHead(std::span<const uint8_t> raw);

/// Writes the trailer of `locator` to `out`.
void EncodeTrailer(const Locator& locator, std::span<uint8_t, kTrailerSizeBytes> out);

/// What a field of an InnoDB row holds.
struct DecodedField {
  bool is_head = false;             ///< false: the field is the value itself
  std::span<const uint8_t> prefix;  ///< the raw prefix of a head, or the whole raw value; points into the input
  Locator locator;                  ///< only when is_head
};

/// Decodes the bytes of one field. Errors: kCorruption (magic there, checksum wrong), kNotSupported (newer version).
[[nodiscard]] Result<DecodedField> DecodeField(std::span<const uint8_t> field);

}  // namespace quarry
