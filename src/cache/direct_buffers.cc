#include "cache/direct_buffers.h"

#include <cstring>

#include <sys/mman.h>
#include <sys/prctl.h>

namespace quarry {
namespace {

constexpr size_t kHugePageBytes = 2U << 20;
constexpr size_t kSlotsOfHugePage = kHugePageBytes / DirectBuffers::kSlotBytes;

/// Touches what was advised to be a huge page. A process may have none by its own wish (MariaDB does so, for malloc's
/// sake): then they are allowed for the moment that this takes.
void TouchHugePage(uint8_t* page) {
  const int disabled = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
  if (disabled > 0) (void)::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  *static_cast<volatile uint8_t*>(page) = 0;
  // What is given back is the answer of above: a flag, and in later kernels its own flags beside it.
  if (disabled > 0) (void)::prctl(PR_SET_THP_DISABLE, 1, disabled & ~1, 0, 0);
}

}  // namespace

DirectBuffers::Slot::~Slot() {
  if (owner_ != nullptr) owner_->GiveBack(number_);
}

std::span<uint8_t> DirectBuffers::Slot::bytes() {
  return owner_ == nullptr ? own_.span() : std::span<uint8_t>(owner_->arena_ + number_ * kSlotBytes, kSlotBytes);
}

DirectBuffers::DirectBuffers(size_t slots) : slots_(slots) {
  mapping_bytes_ = slots * kSlotBytes + kHugePageBytes;
  void* const mapping =
      ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = static_cast<uint8_t*>(mapping);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapping_);
  (void)::madvise(mapping, mapping_bytes_, MADV_DONTDUMP);  // nobody's values stand in core files
  arena_ = mapping_ + (kHugePageBytes - begin % kHugePageBytes) % kHugePageBytes;
#ifndef QUARRY_SIMULATED_THREADS  // where a process lives for a millisecond, to clear one takes a part of that
  // Advice only: without huge pages it is as much memory in more pieces.
  (void)::madvise(arena_, slots * kSlotBytes, MADV_HUGEPAGE);
#endif
  for (size_t number = 0; number < slots; ++number) free_.push(number);
}

DirectBuffers::~DirectBuffers() {
  if (mapping_ != nullptr) (void)::munmap(mapping_, mapping_bytes_);
}

DirectBuffers::Slot DirectBuffers::Take() {
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) return TakeLowest();
  }
  return Slot(AlignedBuffer(kSlotBytes));
}

std::optional<DirectBuffers::Slot> DirectBuffers::TakeToKeep() {
  MutexLock lock(mutex_);
  if (free_.size() * 2 <= slots_) return std::nullopt;
  return TakeLowest();
}

DirectBuffers::Slot DirectBuffers::TakeLowest() {
  const size_t number = free_.top();
  free_.pop();
  if (number >= touched_) {
    if (number % kSlotsOfHugePage == 0) TouchHugePage(arena_ + number * kSlotBytes);
    touched_ = number + 1;
  }
  return {this, number};
}

void DirectBuffers::GiveBack(size_t number) {
#ifdef QUARRY_GUARDED_CACHE
  std::memset(arena_ + number * kSlotBytes, 0xdb, kSlotBytes);  // who still looks at a value that is over sees it
#endif
  MutexLock lock(mutex_);
  free_.push(number);
}

uint64_t DirectBuffers::held_bytes() const {
  MutexLock lock(mutex_);
  return (touched_ + kSlotsOfHugePage - 1) / kSlotsOfHugePage * kHugePageBytes;
}

}  // namespace quarry
