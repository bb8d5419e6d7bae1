#include "base/checksum.h"

#include <xxhash.h>

// The library's own choice among SSE2, AVX2 and AVX-512 at run time; the compiler's would be SSE2 for every x86-64.
// Every value read is hashed, so this is the reader's processor time. The results are the same.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#define QUARRY_XXH3_DISPATCH
#endif

namespace quarry {

#ifdef QUARRY_XXH3_DISPATCH
namespace {

/// The library chooses at its first long input, without a lock: let that happen before there are threads.
const bool dispatch_chosen = [] {
  static constexpr uint8_t kLong[512] = {};
  return XXH3_64bits_dispatch(kLong, sizeof kLong) == XXH3_64bits(kLong, sizeof kLong);
}();

}  // namespace

uint64_t Checksum64(std::span<const uint8_t> data) {
  return dispatch_chosen ? XXH3_64bits_dispatch(data.data(), data.size()) : XXH3_64bits(data.data(), data.size());
}
#else
uint64_t Checksum64(std::span<const uint8_t> data) { return XXH3_64bits(data.data(), data.size()); }
#endif

}  // namespace quarry
