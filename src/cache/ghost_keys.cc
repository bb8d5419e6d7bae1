#include "cache/ghost_keys.h"

#include <algorithm>

namespace quarry {

uint64_t GhostKeys::SlotsFor(uint64_t window_bytes) const {
  return window_bytes == 0 ? 0 : (window_bytes / (slot_bytes_ * kGroupSlots) + 1) * kGroupSlots;
}

void GhostKeys::Resize(uint64_t window_bytes) {
  std::vector<Slot>(static_cast<size_t>(SlotsFor(window_bytes))).swap(slots_);
  window_kib_ = static_cast<uint32_t>(std::min<uint64_t>(window_bytes >> 10U, UINT32_MAX / 2));
}

bool GhostKeys::SeenBefore(uint64_t hash, uint64_t value_size_bytes) {
  Slot* const seen = FindOrNote(hash, value_size_bytes);
  if (seen != nullptr) seen->fingerprint = 0;
  return seen != nullptr;
}

bool GhostKeys::Note(uint64_t hash, uint64_t value_size_bytes) {
  Slot* const seen = FindOrNote(hash, value_size_bytes);
  if (seen != nullptr) seen->noted_kib = clock_kib();
  return seen != nullptr;
}

GhostKeys::Slot* GhostKeys::FindOrNote(uint64_t hash, uint64_t value_size_bytes) {
  if (slots_.empty()) return nullptr;
  const auto fingerprint = static_cast<uint32_t>(std::max<uint64_t>(hash & UINT32_MAX, 1));
  Slot* const group = &slots_[static_cast<size_t>((hash >> 32U) % (slots_.size() / kGroupSlots)) * kGroupSlots];
  Slot* oldest = group;
  for (Slot* slot = group; slot != group + kGroupSlots; ++slot) {
    if (slot->fingerprint == fingerprint) {
      if (AgeKib(*slot) <= window_kib_) return slot;
      oldest = slot;
      break;
    }
    if (oldest->fingerprint != 0 && (slot->fingerprint == 0 || AgeKib(*slot) > AgeKib(*oldest))) oldest = slot;
  }
  clock_bytes_ += value_size_bytes;
  oldest->fingerprint = fingerprint;
  oldest->noted_kib = clock_kib();
  return nullptr;
}

}  // namespace quarry
