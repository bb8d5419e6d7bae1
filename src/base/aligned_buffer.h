// AlignedBuffer: memory fit for direct I/O.
// Invariants: data() is a multiple of 4096 and capacity too; the content is not initialised unless asked for.
// Thread-safety: a value; externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace quarry {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignmentBytes = 4096;

  AlignedBuffer() = default;
  /// At least `size_bytes`, rounded up to the alignment, not initialised. Throws std::bad_alloc as operator new does.
  explicit AlignedBuffer(size_t size_bytes)
      : size_bytes_((size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes) {
    if (size_bytes_ < size_bytes) throw std::bad_alloc();
    if (size_bytes_ == 0) return;
    memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignmentBytes, size_bytes_)));
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer(std::move(other)).swap(*this);
    return *this;
  }

  [[nodiscard]] uint8_t* data() { return memory_.get(); }
  [[nodiscard]] const uint8_t* data() const { return memory_.get(); }
  [[nodiscard]] size_t size() const { return size_bytes_; }
  [[nodiscard]] bool empty() const { return size_bytes_ == 0; }
  [[nodiscard]] std::span<uint8_t> span() { return {memory_.get(), size_bytes_}; }
  [[nodiscard]] std::span<const uint8_t> span() const { return {memory_.get(), size_bytes_}; }
  void FillZero() {
    if (size_bytes_ != 0) std::memset(memory_.get(), 0, size_bytes_);
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  void swap(AlignedBuffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  std::unique_ptr<uint8_t, Free> memory_;
  size_t size_bytes_ = 0;
};

}  // namespace quarry
