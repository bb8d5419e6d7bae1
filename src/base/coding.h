// Little-endian coding of on-disk structs.
//
// Invariants:
//  - ByteReader never touches a byte outside its span: a read past the end returns zero and makes ok() false for good.
//  - No length read from a span leads to an allocation before it was compared with the bytes that are there.
// Thread-safety: values; externally synchronised.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace quarry {

static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big);

namespace internal {
template <typename T>
T SwapOnBigEndian(T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) return value;
  T swapped = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    swapped = static_cast<T>(static_cast<T>(swapped << 8U) | static_cast<T>(value & 0xffU));
    value = static_cast<T>(value >> 8U);
  }
  return swapped;
}
}  // namespace internal

/// Reads the little-endian T at `offset` of `in`, which must hold it (a programming error otherwise).
template <typename T>
[[nodiscard]] T LoadLittleEndian(std::span<const uint8_t> in, size_t offset) {
  assert(offset <= in.size() && sizeof(T) <= in.size() - offset);
  T value;
  std::memcpy(&value, in.data() + offset, sizeof(T));
  return internal::SwapOnBigEndian(value);
}

/// Writes `value` at `offset` of `out`, which must have room (a programming error otherwise).
template <typename T>
void StoreLittleEndian(std::span<uint8_t> out, size_t offset, T value) {
  assert(offset <= out.size() && sizeof(T) <= out.size() - offset);
  value = internal::SwapOnBigEndian(value);
  std::memcpy(out.data() + offset, &value, sizeof(T));
}

/// Reads a span from front to back. Check ok() once, after the last read and before using what was read.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> in) : in_(in) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t position() const { return position_; }
  [[nodiscard]] size_t remaining() const { return in_.size() - position_; }

  uint8_t U8() { return Read<uint8_t>(); }
  uint16_t U16() { return Read<uint16_t>(); }
  uint32_t U32() { return Read<uint32_t>(); }
  uint64_t U64() { return Read<uint64_t>(); }
  /// Points into the input; empty when there are fewer than `size` bytes left.
  std::span<const uint8_t> Bytes(size_t size) {
    if (!ok_ || size > remaining()) {
      ok_ = false;
      return {};
    }
    const std::span<const uint8_t> bytes = in_.subspan(position_, size);
    position_ += size;
    return bytes;
  }
  /// A u32 length, then that many bytes; fails when the length is above `limit` or above what is left.
  std::string String(size_t limit) {
    const uint32_t size = U32();
    if (size > limit) ok_ = false;
    const std::span<const uint8_t> bytes = Bytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A u32 count of items that take at least `item_size_min` bytes each; fails when so many cannot be left.
  uint32_t Count(size_t item_size_min) {
    const uint32_t count = U32();
    if (!ok_ || count > remaining() / item_size_min) {
      ok_ = false;
      return 0;
    }
    return count;
  }

 private:
  template <typename T>
  T Read() {
    if (!ok_ || sizeof(T) > remaining()) {
      ok_ = false;
      return 0;
    }
    const T value = LoadLittleEndian<T>(in_, position_);
    position_ += sizeof(T);
    return value;
  }

  std::span<const uint8_t> in_;
  size_t position_ = 0;
  bool ok_ = true;
};

/// Appends to a vector that it owns.
class ByteWriter {
 public:
  void U8(uint8_t value) { Append(value); }
  void U16(uint16_t value) { Append(value); }
  void U32(uint32_t value) { Append(value); }
  void U64(uint64_t value) { Append(value); }
  void Bytes(std::span<const uint8_t> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void String(std::string_view text) {
    assert(text.size() <= UINT32_MAX);
    U32(static_cast<uint32_t>(text.size()));
    Bytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  [[nodiscard]] size_t size() const { return out_.size(); }
  [[nodiscard]] std::span<const uint8_t> bytes() const { return out_; }
  [[nodiscard]] std::vector<uint8_t> Take() && { return std::move(out_); }

 private:
  template <typename T>
  void Append(T value) {
    const size_t offset = out_.size();
    out_.resize(offset + sizeof(T));
    StoreLittleEndian(std::span<uint8_t>(out_), offset, value);
  }

  std::vector<uint8_t> out_;
};

}  // namespace quarry
