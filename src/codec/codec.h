// Codecs of parts: none, lz4, zstd. A part is compressed and decompressed on its own.
//
// Invariants:
//  - A part whose compressed form would save less than 1/16 of it is stored raw.
//  - Decompression writes exactly out.size() bytes or fails; it never reads or writes outside its spans.
// Thread-safety: pure functions over thread-local, reused contexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quarry/options.h"

namespace quarry {

/// How a part came out of CompressPart.
struct CompressedPart {
  size_t stored_size_bytes = 0;
  bool raw = true;  ///< compressing does not pay (or codec none): store the input itself, `out` holds nothing of use
};

/// Compresses `in` to the front of `out`, which must be at least as long as `in`. An input that does not shrink is
/// not an error: it comes back raw, with stored_size_bytes == in.size() and nothing of use in `out`.
/// Throws std::bad_alloc when a context cannot be made.
[[nodiscard]] CompressedPart CompressPart(Codec codec, std::span<const uint8_t> in, std::span<uint8_t> out);

/// Decompresses `stored` (as CompressPart left it; not a raw part) so that it fills `out` exactly. False when it
/// does not: the bytes are not such a part.
[[nodiscard]] bool DecompressPart(Codec codec, std::span<const uint8_t> stored, std::span<uint8_t> out);

}  // namespace quarry
