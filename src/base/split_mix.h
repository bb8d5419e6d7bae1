// SplitMix64: words that look random, from a counter. Reference: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014. Not for secrets. Thread-safety: values.
#pragma once

#include <cstdint>

namespace quarry {

inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15U;

/// The word of a state. States are multiples of kSplitMixStep apart.
[[nodiscard]] constexpr uint64_t SplitMixWord(uint64_t state) {
  state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27U)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31U);
}

}  // namespace quarry
