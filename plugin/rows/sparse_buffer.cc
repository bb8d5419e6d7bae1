#include "rows/sparse_buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace quarry {

namespace {

constexpr size_t kHugePageBytes = 2U << 20;

bool FillsUnread() {
  static const bool fills = std::getenv("QUARRY_TEST_FILL_UNREAD") != nullptr;
  return fills;
}

}  // namespace

bool SparseBuffer::Prepare(size_t size_bytes) {
  if (size_bytes <= mapped_bytes_) {
    Clear();
  } else {
    Unmap();
    if (!Map(size_bytes)) return false;
  }
  if (FillsUnread()) std::memset(Fill({0, size_bytes}).data(), kUnreadByte, size_bytes);
  return true;
}

bool SparseBuffer::Map(size_t size_bytes) {
  void* const memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // A huge page would be cleared whole for the first byte of it. That it cannot be told is no reason to fail.
  if (size_bytes >= kHugePageBytes) madvise(memory, size_bytes, MADV_NOHUGEPAGE);
  memory_ = static_cast<uint8_t*>(memory);
  mapped_bytes_ = size_bytes;
  return true;
}

std::span<uint8_t> SparseBuffer::Fill(const ByteRange& range) {
  if (range.empty()) return {};
  filled_.push_back(range);
  touched_bytes_ += range.size();
  return {memory_ + range.begin, range.size()};
}

// A few bytes are cleared where they stand, which is cheaper than new pages. (Locked memory cannot be dropped.)
void SparseBuffer::Clear() {
  if (touched_bytes_ > kKeptBytes && madvise(memory_, mapped_bytes_, MADV_DONTNEED) == 0) {
    touched_bytes_ = 0;
  } else {
    for (const ByteRange& range : filled_) std::memset(memory_ + range.begin, 0, range.size());
  }
  filled_.clear();
}

void SparseBuffer::EndUse() {
  if (touched_bytes_ > 0 || mapped_bytes_ > kKeptAddressBytes) Unmap();
}

void SparseBuffer::Unmap() {
  if (memory_ != nullptr) munmap(memory_, mapped_bytes_);
  memory_ = nullptr;
  mapped_bytes_ = 0;
  touched_bytes_ = 0;
  filled_.clear();
}

void SparseBuffer::swap(SparseBuffer& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(touched_bytes_, other.touched_bytes_);
  filled_.swap(other.filled_);
}

}  // namespace quarry
