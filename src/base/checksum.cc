#include "base/checksum.h"

#include <xxhash.h>

namespace quarry {

uint64_t Checksum64(std::span<const uint8_t> data) { return XXH3_64bits(data.data(), data.size()); }

}  // namespace quarry
