// Locator and head: what stands for a value inside the InnoDB row.
//
//   head of a long value:  | the value's first n bytes: the prefix | trailer (kTrailerSizeBytes) |
//   a short value:         | the raw value itself                                               |
//
// Invariants:
//  - The trailer stands at the END of the head and ends in a magic of 8 bytes.
//  - A value is the prefix of its head and, behind it, the content of its extent: no byte is in both.
//  - A raw value of kTrailerSizeBytes or more that ends in that magic is never left raw (see EndsLikeHead), so decoding
//    is never ambiguous: shorter, or magic absent -> raw; magic present and tag right -> head; magic present and
//    tag wrong -> kCorruption.
//  - What names the extent is what stays when it is encoded anew: its place, its identity, the sizes of the value.
// The byte layout is normative in docs/internals/format.md. Thread-safety: pure functions and values.
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
  uint64_t offset_bytes = 0;  ///< of the extent's header inside the segment
  uint64_t identity = 0;      ///< of the extent, drawn at random: binds the row to it. Never shown to anybody
  /// Header, index and stored parts when the extent was written, rounded up to 8: what it takes of its segment.
  uint64_t extent_size_bytes = 0;
  uint64_t value_size_bytes = 0;   ///< of the whole value, uncompressed
  uint32_t prefix_tag = 0;         ///< low 32 bits of the checksum of the head's prefix
  uint32_t value_checksum = 0;     ///< of the whole value (format/value_checksum.h)
  uint16_t prefix_size_bytes = 0;  ///< of the value's first bytes, which the head holds and the extent does not
  bool operator==(const Locator&) const = default;

  /// What the extent holds of the value.
  [[nodiscard]] uint64_t content_size_bytes() const { return value_size_bytes - prefix_size_bytes; }
};

inline constexpr size_t kTrailerSizeBytes = 64;
/// A prefix has at most so many bytes.
inline constexpr uint32_t kPrefixMaxBytes = 65535;

/// A locator with the value's first bytes, which a reader needs to give out the whole.
struct Head {
  Head() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): without a prefix the locator is all of a head
  Head(const Locator& locator_in, std::span<const uint8_t> prefix_in = {}) : locator(locator_in), prefix(prefix_in) {}

  Locator locator;
  std::span<const uint8_t> prefix;
};

/// The checksum (64 bits) of the prefix, once its size and the tag in the locator say that it is the right one. To be
/// called by whoever uses the prefix. Error: kCorruption.
[[nodiscard]] Result<uint64_t> CheckPrefix(const Head& head);

/// Locator::value_checksum of `value` with a prefix of `prefix_size_bytes` in the row and a PART_SIZE of
/// `part_size_bytes`. Values of different checksums differ, so that a writer who wants to know whether a new value
/// equals the old one need not read the old one. Equal ones prove nothing.
[[nodiscard]] uint32_t ValueChecksumOf(std::span<const uint8_t> value, uint32_t prefix_size_bytes,
                                       uint32_t part_size_bytes);

/// True when `raw` has room for a trailer and ends in its magic, so that it must be sent out of line.
[[nodiscard]] bool EndsLikeHead(std::span<const uint8_t> raw);

/// Writes the trailer of `locator` to `out`.
void EncodeTrailer(const Locator& locator, std::span<uint8_t, kTrailerSizeBytes> out);

/// What a field of an InnoDB row holds.
struct DecodedField {
  bool is_head = false;  ///< false: the field is the value itself
  std::span<const uint8_t>
      prefix;       ///< of a head, not checked yet (CheckPrefix); or the raw value. Points into the input
  Locator locator;  ///< only when is_head
  [[nodiscard]] Head head() const { return {locator, prefix}; }
};

/// Decodes the bytes of one field. Errors: kCorruption (magic there, tag wrong), kNotSupported (newer version).
[[nodiscard]] Result<DecodedField> DecodeField(std::span<const uint8_t> field);

}  // namespace quarry
