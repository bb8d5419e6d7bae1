// What the fuzzers share. An input that is refused is fine; one that is accepted must keep the format's promises.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {

/// assert that release builds keep: a violation is a finding.
inline void FuzzCheck(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzzer: %s\n", what);
  std::abort();
}

/// Puts a right checksum of everything before it at `offset`, so that mutations get past it.
inline void Reseal(std::span<uint8_t> bytes, size_t offset) {
  StoreLittleEndian(bytes, offset, Checksum64(bytes.first(offset)));
}

}  // namespace quarry
