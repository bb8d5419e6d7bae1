#include "store/ghost_keys.h"

#include <algorithm>

namespace quarry {

uint64_t GhostKeys::SlotsFor(uint64_t window_bytes) {
  return window_bytes == 0 ? 0 : (window_bytes / (kSlotBytes * kGroupSlots) + 1) * kGroupSlots;
}

void GhostKeys::Resize(uint64_t window_bytes) {
  std::vector<Slot>(static_cast<size_t>(SlotsFor(window_bytes))).swap(slots_);
  window_kib_ = static_cast<uint32_t>(std::min<uint64_t>(window_bytes >> 10U, UINT32_MAX / 2));
}

bool GhostKeys::SeenBefore(uint64_t hash, uint64_t value_size_bytes) {
  if (slots_.empty()) return false;
  const auto fingerprint = static_cast<uint32_t>(std::max<uint64_t>(hash & UINT32_MAX, 1));
  Slot* const group = &slots_[static_cast<size_t>((hash >> 32U) % (slots_.size() / kGroupSlots)) * kGroupSlots];
  Slot* oldest = group;
  for (Slot* slot = group; slot != group + kGroupSlots; ++slot) {
    if (slot->fingerprint == fingerprint) {
      const bool fresh = AgeKib(*slot) <= window_kib_;
      if (fresh) {
        slot->fingerprint = 0;
        return true;
      }
      oldest = slot;
      break;
    }
    if (oldest->fingerprint != 0 && (slot->fingerprint == 0 || AgeKib(*slot) > AgeKib(*oldest))) oldest = slot;
  }
  clock_bytes_ += value_size_bytes;
  oldest->fingerprint = fingerprint;
  oldest->noted_kib = clock_kib();
  return false;
}

}  // namespace quarry
