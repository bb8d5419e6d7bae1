// How a part is encrypted, and how a wrong key is noticed. Normative layout: docs/internals/format.md, 'Encrypted
// parts'.
//
//   | stored bytes of the part, compressed or raw | check, 8 bytes: XXH3-64 of them |   encrypted as one
//
// Invariant: what OpenPart gives is what SealPart was given, or an error: the check is inside what is encrypted, so a
// wrong key makes a wrong check (but once in 2^64), and nobody without the key can compare it with a guess.
// Thread-safety: pure functions; the cipher is externally synchronised.
#pragma once

#include <cstdint>
#include <span>

#include "format/extent.h"
#include "quarry/cipher.h"

namespace quarry {

/// `plain` holds the part and kPartCheckSizeBytes of room for the check behind it; `out` is as long as `plain`.
/// Errors: those of the cipher.
[[nodiscard]] Status SealPart(Cipher* cipher, uint32_t part, std::span<uint8_t> plain, std::span<uint8_t> out);

/// Decrypts `stored` (all of part `part` of `index`, verified) to `plain`, which is as long; the part is what stands
/// before the check. Errors: those of the cipher; kKeyUnavailable when the key is not the one that encrypted it.
[[nodiscard]] Status OpenPart(Cipher* cipher, const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored,
                              std::span<uint8_t> plain);

}  // namespace quarry
