// The body of the codecs' fuzzers: arbitrary bytes are decompressed into any size, and compressed and back.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fuzz_check.h"
#include "codec/codec.h"

namespace quarry {

inline void FuzzCodec(Codec codec, std::span<const uint8_t> input) {
  if (input.size() < 4) return;
  // Memory of exactly the right sizes, so that the address sanitizer sees one byte too many.
  const size_t out_size = LoadLittleEndian<uint32_t>(input, 0) % (1U << 18);
  const std::vector<uint8_t> stored(input.begin() + 4, input.end());
  const auto out = std::make_unique<uint8_t[]>(out_size);
  (void)DecompressPart(codec, stored, {out.get(), out_size});

  std::vector<uint8_t> packed(stored.size());
  const CompressedPart part = CompressPart(codec, stored, packed);
  FuzzCheck(part.raw ? part.stored_size_bytes == stored.size() : part.stored_size_bytes < stored.size(),
            "a part is raw or smaller");
  if (part.raw) return;
  packed.resize(part.stored_size_bytes);
  std::vector<uint8_t> back(stored.size());
  FuzzCheck(DecompressPart(codec, packed, back) && back == stored, "what was compressed comes back");
  // The same with damage, close to what is valid.
  const size_t at = input[0] % packed.size();
  packed[at] = static_cast<uint8_t>(packed[at] ^ (input[1] | 1U));
  (void)DecompressPart(codec, packed, back);
}

}  // namespace quarry
