// GhostKeys: remembers which keys were asked for lately, so that a cache can take in what is asked for a second time.
//
// Invariants:
//  - Memory is fixed by Resize: 8 bytes for each key that can be remembered.
//  - A key is forgotten when values of more than the window were noted after it, or (never sooner than the window, when
//    keys are spread evenly and values are as long as a slot stands for) when its group of slots is full.
//  - An answer may be wrongly 'yes' for 1 key in some 500 million: a cache then takes a value in one read too early.
// Thread-safety: externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry {

class GhostKeys {
 public:
  static constexpr uint64_t kSlotBytes = 4096;

  /// One key is remembered for each `slot_bytes` of the window.
  explicit GhostKeys(uint64_t slot_bytes = kSlotBytes) : slot_bytes_(slot_bytes) {}

  /// Forgets everything. Throws std::bad_alloc.
  void Resize(uint64_t window_bytes);
  /// True when the key with this hash was noted and not forgotten since: it is now. Else it is noted.
  [[nodiscard]] bool SeenBefore(uint64_t hash, uint64_t value_size_bytes);
  /// The same, but a key that was noted is noted again.
  [[nodiscard]] bool Note(uint64_t hash, uint64_t value_size_bytes);
  [[nodiscard]] uint64_t MemoryFor(uint64_t window_bytes) const { return SlotsFor(window_bytes) * sizeof(Slot); }

 private:
  /// A cache line: the slots in which one key can stand.
  static constexpr size_t kGroupSlots = 8;

  struct Slot {
    uint32_t fingerprint = 0;  ///< 0: free
    uint32_t noted_kib = 0;    ///< the clock then
  };

  [[nodiscard]] uint64_t SlotsFor(uint64_t window_bytes) const;
  /// The slot of a key that is remembered, or null when that is another's, free or too old: then it is the key's now.
  [[nodiscard]] Slot* FindOrNote(uint64_t hash, uint64_t value_size_bytes);
  [[nodiscard]] uint32_t clock_kib() const { return static_cast<uint32_t>(clock_bytes_ >> 10U); }
  /// Wraps after 4 TiB: a key that old may be taken for a new one.
  [[nodiscard]] uint32_t AgeKib(const Slot& slot) const { return clock_kib() - slot.noted_kib; }

  uint64_t slot_bytes_;
  std::vector<Slot> slots_;
  uint32_t window_kib_ = 0;
  uint64_t clock_bytes_ = 0;  ///< of all values noted so far
};

}  // namespace quarry
