// ValueChecksum: the 32 bits in a head that tell whether the whole value is the one that was written.
//
// Made of what is known anyway: the checksums of the prefix and of each part as it was before it was compressed and
// encrypted. Of a part that is stored as it is that is the one in the index, so that such a value costs no second pass.
// Invariant: normative in docs/internals/format.md, 'Value checksum'. Thread-safety: a value; externally synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {

class ValueChecksum {
 public:
  ValueChecksum(uint64_t value_size_bytes, uint64_t prefix_checksum)
      : running_(Fold(value_size_bytes, prefix_checksum)) {}

  /// The parts in order: Checksum64 of the bytes of each.
  void AddPart(uint64_t checksum) { running_ = Fold(running_, checksum); }
  [[nodiscard]] uint32_t value() const { return static_cast<uint32_t>(running_); }

 private:
  [[nodiscard]] static uint64_t Fold(uint64_t before, uint64_t checksum) {
    std::array<uint8_t, 2 * sizeof(uint64_t)> pair;
    StoreLittleEndian(std::span<uint8_t>(pair), 0, before);
    StoreLittleEndian(std::span<uint8_t>(pair), sizeof(uint64_t), checksum);
    return Checksum64(pair);
  }

  uint64_t running_;
};

}  // namespace quarry
