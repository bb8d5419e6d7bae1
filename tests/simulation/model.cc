#include "simulation/model.h"

#include <algorithm>
#include <cstring>

#include "base/split_mix.h"

namespace quarry::simulation {
namespace {

uint64_t NextWord(uint64_t* state) { return SplitMixWord(*state += kSplitMixStep); }

}  // namespace

std::vector<uint8_t> MakeContent(Content content, size_t size_bytes, uint64_t seed) {
  std::vector<uint8_t> bytes(size_bytes);
  uint64_t state = seed;
  for (size_t at = 0; content != Content::kZeros && at < size_bytes; at += sizeof(uint64_t)) {
    uint64_t word = NextWord(&state);
    if (content == Content::kText) word = 0x6172717561727175 + (word & 0x0300000000030000);
    if (content == Content::kSparse && word % 512 != 0) continue;
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), size_bytes - at));
  }
  return bytes;
}

}  // namespace quarry::simulation
