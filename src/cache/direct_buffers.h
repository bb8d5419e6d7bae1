// DirectBuffers: memory into which values are read around the page cache: on their way to where they are wanted, or to
// stay there until whoever asked is done with them (TakeToKeep).
//
// It comes from huge pages where the system has them. A device is given a request as a list of stretches of physical
// memory, and pays for each of them: 448 KB in one piece were read 2.6 times as fast as in 112
// (docs/internals/experiments.md).
//
// Invariants: of the arena's slots each belongs to one holder at most; the lowest free one is given out first, so that
// no more of the arena is ever touched than was in use at once. The arena goes back to the system with this object
// only. Thread-safety: internally synchronised. A Slot is a value and must not outlive its DirectBuffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"

namespace quarry {

class DirectBuffers {
 public:
  static constexpr size_t kSlotBytes = 512U << 10;

  /// kSlotBytes, aligned to a block. Goes back when it dies.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), number_(other.number_), own_(std::move(other.own_)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot();
    [[nodiscard]] std::span<uint8_t> bytes();

   private:
    friend class DirectBuffers;
    Slot(DirectBuffers* owner, size_t number) : owner_(owner), number_(number) {}
    explicit Slot(AlignedBuffer own) : own_(std::move(own)) {}

    DirectBuffers* owner_ = nullptr;  ///< null: the memory is its own
    size_t number_ = 0;
    AlignedBuffer own_;
  };

  /// An arena of `slots`, not touched before they are.
  explicit DirectBuffers(size_t slots);
  ~DirectBuffers();
  DirectBuffers(const DirectBuffers&) = delete;
  DirectBuffers& operator=(const DirectBuffers&) = delete;

  /// Never waits: when all slots are out, it has memory of its own, which is freed with it. Throws std::bad_alloc.
  [[nodiscard]] Slot Take();
  /// For whoever keeps it longer than a read takes. Nothing when half of the slots are out.
  [[nodiscard]] std::optional<Slot> TakeToKeep();
  /// Of the arena, as far as it was ever touched.
  [[nodiscard]] uint64_t held_bytes() const;

 private:
  /// One is free.
  [[nodiscard]] Slot TakeLowest() QUARRY_REQUIRES(mutex_);
  void GiveBack(size_t number);

  const size_t slots_;
  uint8_t* mapping_ = nullptr;  ///< null: there was none to be had
  size_t mapping_bytes_ = 0;
  uint8_t* arena_ = nullptr;  ///< begins with a huge page
  mutable Mutex mutex_;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> free_ QUARRY_GUARDED_BY(mutex_);  ///< lowest first
  size_t touched_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< slots below it were in use
};

}  // namespace quarry
