// SparseBuffer: memory as long as a value of which only ranges are read. What was never filled costs address space
// alone.
//
// Invariants:
//  - After Prepare every byte is zero (or kUnreadByte, see there): no byte of a value before can be seen.
//  - Filled memory that is no longer needed does not pile up: at most kKeptBytes of it stay from value to value.
// Thread-safety: a value; externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/value_range.h"

namespace quarry {

class SparseBuffer {
 public:
  static constexpr size_t kKeptBytes = 256U << 10;
  static constexpr size_t kKeptAddressBytes = 1U << 20;
  /// For tests: with QUARRY_TEST_FILL_UNREAD in the environment of the process, what was not filled holds this byte
  /// instead of zeros, so that whoever looks at it is found out.
  static constexpr uint8_t kUnreadByte = 0xAA;

  SparseBuffer() = default;
  SparseBuffer(SparseBuffer&& other) noexcept { swap(other); }
  SparseBuffer& operator=(SparseBuffer&& other) noexcept {
    SparseBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~SparseBuffer() { Unmap(); }

  /// `size_bytes` of memory, with nothing in it. False: there is none; then nothing is held.
  [[nodiscard]] bool Prepare(size_t size_bytes);
  /// Where to put the bytes of `range`, which is within the size.
  [[nodiscard]] std::span<uint8_t> Fill(const ByteRange& range);
  [[nodiscard]] const uint8_t* data() const { return memory_; }
  /// The memory is not looked at any more, and not soon needed again: gives it back, unless it is a little address
  /// space and nothing else.
  void EndUse();

 private:
  bool Map(size_t size_bytes);
  void Unmap();
  void Clear();
  void swap(SparseBuffer& other) noexcept;

  uint8_t* memory_ = nullptr;
  size_t mapped_bytes_ = 0;
  size_t touched_bytes_ = 0;  ///< filled since the mapping was last all untouched, those of earlier values too
  std::vector<ByteRange> filled_;
};

}  // namespace quarry
