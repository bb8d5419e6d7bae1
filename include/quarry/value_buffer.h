// ValueBuffer: a value as StoreDirectory::ReadValue gives it, with the memory it stands in.
// Invariant: the bytes stay where they are, and unchanged, until Release, assignment or destruction.
// Thread-safety: a value; externally synchronised. Must not outlive the StoreDirectory that it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace quarry {

class ValueBuffer {
 public:
  /// Whatever owns the bytes, and knows where their memory goes afterwards.
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
  };

  ValueBuffer() = default;
  ValueBuffer(std::unique_ptr<Owner> owner, std::span<const uint8_t> bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  ValueBuffer(ValueBuffer&& other) noexcept
      : owner_(std::move(other.owner_)), bytes_(std::exchange(other.bytes_, {})) {}
  ValueBuffer& operator=(ValueBuffer&& other) noexcept {
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, {});
    return *this;
  }
  ~ValueBuffer() = default;

  [[nodiscard]] std::span<const uint8_t> bytes() const { return bytes_; }
  /// Holds nothing. (A value of no bytes held in memory is not empty in this sense.)
  [[nodiscard]] bool empty() const { return owner_ == nullptr; }
  void Release() { *this = ValueBuffer(); }

 private:
  std::unique_ptr<Owner> owner_;
  std::span<const uint8_t> bytes_;
};

}  // namespace quarry
