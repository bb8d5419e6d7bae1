// The extent: header, index, then the stored parts, back to back. Normative layout: docs/format.md.
//
//   | header, 72 bytes | index entry 0 | ... | index entry n-1 | index checksum | part 0 | part 1 | ... | part n-1 |
//   |                  |    12 bytes each                      |    8 bytes     |  stored bytes, no gaps         |
//
//   header   +0  magic            u64         index entry  +0  stored size  u32, bit 31: stored raw
//            +8  version          u16                      +4  checksum     u64  XXH3-64 of the stored bytes
//            +10 codec            u8
//            +11 flags            u8   0      index checksum: XXH3-64 of everything before it;
//            +12 segment number   u32         its low 32 bits are Locator::index_checksum
//            +16 store id         u64
//            +24 offset           u64  of this header in its segment
//            +32 value size       u64  uncompressed
//            +40 stored total     u64  sum of the stored sizes
//            +48 reserved size    u64  0, or the bytes this extent's range takes in the segment (a multiple of 4096)
//            +56 part size        u32  uncompressed; the last part may be shorter
//            +60 part count       u32
//            +64 header checksum  u64  XXH3-64 of bytes 0..63
//
// Version 2 is that of an encrypted extent: flags is 1, and behind the header, before the index, stands
//            +72 scheme u32, +76 key id u32, +80 key version u32, +84 zero u32, +88 salt 16 bytes.
// Its parts are encrypted with a check behind each (part_cipher.h), which counts as stored. Checksums are those of the
// bytes on disk, so that whoever verifies, scans or copies extents needs no key.
//
// Invariants (each verified before anything is allocated or believed):
//  - part count is exactly value size / part size, rounded up; the part size is within the options' limits.
//  - A raw part is stored in its uncompressed size, any other in fewer bytes and at least one; codec none is all raw.
//    In an encrypted extent each takes kPartCheckSizeBytes more.
//  - stored total is the sum of the index; header + index + stored total is Locator::extent_size_bytes.
//  - An extent starts at a multiple of kExtentAlignmentBytes.
// Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quarry/cipher.h"
#include "quarry/locator.h"
#include "quarry/options.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

inline constexpr size_t kExtentHeaderSizeBytes = 72;
/// Behind the header of an encrypted extent.
inline constexpr size_t kCipherBlockSizeBytes = 32;
/// Inside each encrypted part.
inline constexpr uint32_t kPartCheckSizeBytes = 8;
inline constexpr size_t kIndexEntrySizeBytes = 12;
inline constexpr size_t kIndexChecksumSizeBytes = 8;
/// Of a stored size in the index: the part is raw.
inline constexpr uint32_t kRawBit = 1U << 31;
inline constexpr uint64_t kExtentAlignmentBytes = 8;
/// Segments are written, padded and punched in blocks of this size (io/env.h has the same number for I/O).
inline constexpr uint64_t kSegmentBlockSizeBytes = 4096;
/// A LONGBLOB holds less than 4 GiB.
inline constexpr uint64_t kValueSizeMaxBytes = (1ULL << 32) - 1;

/// One entry of the index, with its place (which is not stored: the sum of the sizes before it).
struct PartEntry {
  uint64_t offset_in_extent_bytes = 0;  ///< ignored by the encoder
  uint64_t checksum = 0;
  uint32_t stored_size_bytes = 0;
  bool raw = true;
  bool operator==(const PartEntry&) const = default;
};

struct ExtentHeader {
  StoreId store;
  SegmentNumber segment;
  uint64_t offset_bytes = 0;
  uint64_t value_size_bytes = 0;
  uint64_t stored_total_bytes = 0;
  uint64_t reserved_size_bytes = 0;
  uint32_t part_size_bytes = 0;
  uint32_t part_count = 0;
  Codec codec = Codec::kNone;
  bool encrypted = false;
  bool operator==(const ExtentHeader&) const = default;
};

/// A decoded, verified header and index.
struct ExtentIndex {
  ExtentHeader header;
  uint32_t index_checksum = 0;
  CipherParameters cipher;       ///< only when header.encrypted
  std::vector<PartEntry> parts;  ///< offsets filled in
};

// ---- geometry ----

/// Parts of a value: value size / part size, rounded up; 0 for an empty value. `part_size_bytes` is not 0 and within
/// kPartSizeMinBytes..kPartSizeMaxBytes, the value at most kValueSizeMaxBytes, so it fits.
[[nodiscard]] uint32_t PartCount(uint64_t value_size_bytes, uint32_t part_size_bytes);

/// Bytes of header, index and index checksum: what stands before the first part.
[[nodiscard]] constexpr uint64_t HeaderAndIndexSizeBytes(uint32_t part_count, bool encrypted) {
  return kExtentHeaderSizeBytes + (encrypted ? kCipherBlockSizeBytes : 0) +
         static_cast<uint64_t>(part_count) * kIndexEntrySizeBytes + kIndexChecksumSizeBytes;
}
[[nodiscard]] constexpr uint64_t HeaderAndIndexSizeBytes(const ExtentHeader& header) {
  return HeaderAndIndexSizeBytes(header.part_count, header.encrypted);
}

/// What encrypting adds to a stored part.
[[nodiscard]] constexpr uint32_t PartOverheadBytes(bool encrypted) { return encrypted ? kPartCheckSizeBytes : 0; }

/// The largest an extent of such a value can get (every part raw).
[[nodiscard]] uint64_t ExtentSizeMaxBytes(uint64_t value_size_bytes, uint32_t part_size_bytes, bool encrypted);

/// Header + index + stored parts, as in Locator::extent_size_bytes.
[[nodiscard]] uint64_t ExtentSizeBytes(const ExtentHeader& header);

/// Where a scan looks for the next extent: behind this one, aligned. The reserved size is not believed: a header that
/// stands inside a value whose own header was never written may say anything.
[[nodiscard]] uint64_t NextExtentOffsetBytes(const ExtentHeader& header);

/// Uncompressed size of part `part` (the last may be shorter).
[[nodiscard]] uint32_t PartSizeOf(const ExtentHeader& header, uint32_t part);

/// The parts that hold a byte range of the value.
struct PartRange {
  uint32_t first = 0;
  uint32_t count = 0;
};
/// For an empty range the count is 0. The range must lie in the value (a programming error otherwise).
[[nodiscard]] PartRange PartsOfRange(const ExtentHeader& header, uint64_t offset_bytes, uint64_t size_bytes);

// ---- encoding ----

/// Writes header, index and index checksum to `out`, whose size is HeaderAndIndexSizeBytes(header), and returns the
/// checksum for the locator. stored_total_bytes and part_count are taken from `parts`, not from `header`; `cipher`
/// counts when the extent is encrypted.
[[nodiscard]] uint32_t EncodeExtentIndex(const ExtentHeader& header, std::span<const PartEntry> parts,
                                         const CipherParameters& cipher, std::span<uint8_t> out);

/// The locator of an extent just encoded (`header` with stored_total_bytes and part_count set), all but the value
/// sample, which only one who has the value can tell.
[[nodiscard]] Locator LocatorOf(const ExtentHeader& header, uint32_t index_checksum);

// ---- decoding ----

/// How many bytes of the extent a reader asks for first, from its start: `batch_bytes`, but at least enough for the
/// header and the index of parts of the default size, and one block; never beyond the extent. So a small extent comes
/// in one go, a long one starts with its index and first parts, and a range read (batch_bytes 0) asks for the index
/// alone.
[[nodiscard]] uint64_t FirstReadSizeBytes(const Locator& locator, uint64_t batch_bytes);

/// Verifies the header alone, at the front of `bytes` (at least kExtentHeaderSizeBytes of them), and that it is the one
/// that `locator` means. What it says of sizes can be believed afterwards. Errors: kCorruption, kNotSupported.
[[nodiscard]] Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const Locator& locator);

/// The same for a scan, which has no locator: the header must be the one of `store`, `segment` and `offset_bytes`.
/// Padding, holes and torn writes come back as kCorruption here, and mean nothing to a scan.
[[nodiscard]] Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, StoreId store,
                                                      SegmentNumber segment, uint64_t offset_bytes);

/// True when `bytes` start with an extent's magic: a scan tells padding from a torn extent by it.
[[nodiscard]] bool StartsLikeExtent(std::span<const uint8_t> bytes);

/// Verifies and decodes header and index at the front of `bytes`, which must hold
/// HeaderAndIndexSizeBytes(header) bytes (fewer are kCorruption); what follows is ignored.
[[nodiscard]] Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const Locator& locator);

/// The same for a scan.
[[nodiscard]] Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, StoreId store,
                                                    SegmentNumber segment, uint64_t offset_bytes);

/// Compares the stored bytes of part `part` with the index. Error: kCorruption with the part's place.
[[nodiscard]] Status VerifyPart(const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored);

/// The kCorruption of a part whose stored bytes verify but do not decompress to their size.
[[nodiscard]] Status PartCorruption(const ExtentIndex& index, uint32_t part, const std::string& what);

}  // namespace quarry
