// The extent: header, index, then the stored parts, back to back. Normative layout: docs/internals/format.md.
//
//   | header, 80 bytes | index entry 0 | ... | index entry n-1 | part 0 | part 1 | ... | part n-1 |
//   |                  |    12 bytes each                      |  stored bytes, no gaps         |
//
//   header   +0  magic            u64         index entry  +0  stored size  u32, bit 31: stored raw
//            +8  version          u16                      +4  checksum     u64  XXH3-64 of the stored bytes
//            +10 codec            u8
//            +11 flags            u8   1: encrypted
//            +12 segment number   u32
//            +16 store id         u64
//            +24 offset           u64  of this header in its segment, as it was when the extent was first written
//            +32 identity         u64  drawn at random, never 0; the head in the row has it too
//            +40 content size     u32  uncompressed: the value without the prefix that its head holds
//            +44 prefix size      u32  of that prefix
//            +48 stored total     u64  sum of the stored sizes
//            +56 part size        u32  uncompressed; the last part may be shorter
//            +60 part count       u32
//            +64 index checksum   u64  XXH3-64 of cipher block and index entries
//            +72 tag              u64  XXH3-64 of the segment's salt and bytes 0..71
//
// Behind the header of an encrypted extent, before the index, stands the cipher block:
//            +80 scheme u32, +84 key id u32, +88 key version u32, +92 zero u32, +96 salt 16 bytes.
// Its parts are encrypted with a check behind each (part_cipher.h), which counts as stored. Checksums are those of the
// bytes on disk, so that whoever verifies, scans or copies extents needs no key.
//
// Invariants (each verified before anything is allocated or believed):
//  - part count is exactly content size / part size, rounded up; the part size is within the options' limits.
//  - A raw part is stored in its uncompressed size, any other in fewer bytes and at least one; codec none is all raw.
//    In an encrypted extent each takes kPartCheckSizeBytes more.
//  - stored total is the sum of the index.
//  - An extent starts at a multiple of kExtentAlignmentBytes.
//  - Nobody who cannot read the segment knows its salt: no bytes of a value make a header whose tag holds.
// Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/segment_header.h"
#include "quarry/cipher.h"
#include "quarry/locator.h"
#include "quarry/options.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

inline constexpr size_t kExtentHeaderSizeBytes = 80;
/// Behind the header of an encrypted extent.
inline constexpr size_t kCipherBlockSizeBytes = 32;
/// Inside each encrypted part.
inline constexpr uint32_t kPartCheckSizeBytes = 8;
inline constexpr size_t kIndexEntrySizeBytes = 12;
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
  uint64_t identity = 0;
  uint64_t content_size_bytes = 0;
  uint64_t stored_total_bytes = 0;
  uint64_t index_checksum = 0;  ///< filled in by the encoder
  uint32_t prefix_size_bytes = 0;
  uint32_t part_size_bytes = 0;
  uint32_t part_count = 0;
  Codec codec = Codec::kNone;
  bool encrypted = false;
  bool operator==(const ExtentHeader&) const = default;
};

/// A decoded, verified header and index.
struct ExtentIndex {
  ExtentHeader header;
  CipherParameters cipher;       ///< only when header.encrypted
  std::vector<PartEntry> parts;  ///< offsets filled in
};

// ---- geometry ----

/// Parts of a content: content size / part size, rounded up; 0 for an empty one. `part_size_bytes` is not 0 and within
/// kPartSizeMinBytes..kPartSizeMaxBytes, the content at most kValueSizeMaxBytes, so it fits.
[[nodiscard]] uint32_t PartCount(uint64_t content_size_bytes, uint32_t part_size_bytes);

/// Bytes of header, cipher block and index: what stands before the first part.
[[nodiscard]] constexpr uint64_t HeaderAndIndexSizeBytes(uint32_t part_count, bool encrypted) {
  return kExtentHeaderSizeBytes + (encrypted ? kCipherBlockSizeBytes : 0) +
         static_cast<uint64_t>(part_count) * kIndexEntrySizeBytes;
}
[[nodiscard]] constexpr uint64_t HeaderAndIndexSizeBytes(const ExtentHeader& header) {
  return HeaderAndIndexSizeBytes(header.part_count, header.encrypted);
}

/// What encrypting adds to a stored part.
[[nodiscard]] constexpr uint32_t PartOverheadBytes(bool encrypted) { return encrypted ? kPartCheckSizeBytes : 0; }

/// The largest an extent of such a content can get (every part raw).
[[nodiscard]] uint64_t ExtentSizeMaxBytes(uint64_t content_size_bytes, uint32_t part_size_bytes, bool encrypted);

/// Header + index + stored parts.
[[nodiscard]] uint64_t ExtentSizeBytes(const ExtentHeader& header);

/// `bytes` up to where the next extent may begin.
[[nodiscard]] constexpr uint64_t RoundUpToExtent(uint64_t bytes) {
  return (bytes + kExtentAlignmentBytes - 1) / kExtentAlignmentBytes * kExtentAlignmentBytes;
}
/// What the extent takes of its segment, as in Locator::extent_size_bytes: ExtentSizeBytes, rounded up.
[[nodiscard]] inline uint64_t ExtentSpaceBytes(const ExtentHeader& header) {
  return RoundUpToExtent(ExtentSizeBytes(header));
}

/// Whether an extent of the locator's content, in whatever encoding, can be as large as the locator says.
[[nodiscard]] bool IsExtentSizePossible(const Locator& locator);

/// Where a scan looks for the next extent: behind this one, aligned.
[[nodiscard]] uint64_t NextExtentOffsetBytes(const ExtentHeader& header);

/// Uncompressed size of part `part` (the last may be shorter).
[[nodiscard]] uint32_t PartSizeOf(const ExtentHeader& header, uint32_t part);

/// The parts that hold a byte range of the content.
struct PartRange {
  uint32_t first = 0;
  uint32_t count = 0;
};
/// For an empty range the count is 0. The range must lie in the content (a programming error otherwise).
[[nodiscard]] PartRange PartsOfRange(const ExtentHeader& header, uint64_t offset_bytes, uint64_t size_bytes);

// ---- encoding ----

/// Writes header, cipher block and index to `out`, whose size is HeaderAndIndexSizeBytes(header).
/// stored_total_bytes, part_count and index_checksum are taken from `parts`, not from `header`; `cipher` counts when
/// the extent is encrypted; `salt` is the segment's.
void EncodeExtentIndex(const ExtentHeader& header, std::span<const PartEntry> parts, const CipherParameters& cipher,
                       const SegmentSalt& salt, std::span<uint8_t> out);

/// The locator of an extent (`header` with stored_total_bytes and part_count set), all but prefix tag and value
/// checksum, which only one who has the value can tell.
[[nodiscard]] Locator LocatorOf(const ExtentHeader& header);

/// What a commit record says of an extent: which one it is, without telling its identity (quarry/commit_record.h).
[[nodiscard]] uint32_t CommitTagOf(const SegmentSalt& salt, uint64_t identity);

// ---- decoding ----

/// How many bytes of the extent a reader asks for first, from its start: `batch_bytes`, but at least enough for the
/// header and the index of parts of the default size, and one block; never beyond the extent. So a small extent comes
/// in one go, a long one starts with its index and first parts, and a range read (batch_bytes 0) asks for the index
/// alone.
[[nodiscard]] uint64_t FirstReadSizeBytes(const Locator& locator, uint64_t batch_bytes);

/// Verifies the header alone, at the front of `bytes` (at least kExtentHeaderSizeBytes of them), and that it is the one
/// that `locator` means; `salt` is the segment's. What it says of sizes can be believed afterwards. Errors:
/// kCorruption, kNotSupported.
[[nodiscard]] Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const Locator& locator,
                                                      const SegmentSalt& salt);

/// The same for a scan, which has no locator: the header must be one of `origin`, at `offset_bytes`.
/// Padding, holes, torn writes and the bytes of values come back as kCorruption here, and mean nothing to a scan.
[[nodiscard]] Result<ExtentHeader> DecodeExtentHeader(std::span<const uint8_t> bytes, const SegmentOrigin& origin,
                                                      uint64_t offset_bytes);

/// True when `bytes` start with an extent's magic: a scan tells padding from a torn extent by it.
[[nodiscard]] bool StartsLikeExtent(std::span<const uint8_t> bytes);

/// Verifies and decodes header and index at the front of `bytes`, which must hold
/// HeaderAndIndexSizeBytes(header) bytes (fewer are kCorruption); what follows is ignored.
[[nodiscard]] Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const Locator& locator,
                                                    const SegmentSalt& salt);

/// The same for a scan.
[[nodiscard]] Result<ExtentIndex> DecodeExtentIndex(std::span<const uint8_t> bytes, const SegmentOrigin& origin,
                                                    uint64_t offset_bytes);

/// Compares the stored bytes of part `part` with the index. Error: kCorruption with the part's place.
[[nodiscard]] Status VerifyPart(const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored);

/// The kCorruption of a part whose stored bytes verify but do not decompress to their size.
[[nodiscard]] Status PartCorruption(const ExtentIndex& index, uint32_t part, const std::string& what);

}  // namespace quarry
