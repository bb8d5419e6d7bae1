#include "store/page_cache_share.h"

#include <algorithm>
#include <cmath>

#include "base/split_mix.h"

namespace quarry {
namespace {

/// The bits of the hash that say nothing about its slot.
uint32_t FingerprintOf(uint64_t hash) { return std::max<uint32_t>(static_cast<uint32_t>(hash >> 32U), 1); }

}  // namespace

void PageCacheShare::NoteFound(uint64_t hash) {
  if (!IsWatched(hash) || SlotOf(hash).load(std::memory_order_relaxed) != FingerprintOf(hash)) return;
  const uint32_t steps = steps_.load(std::memory_order_relaxed);
  if (steps > 0) steps_.store(steps - 1, std::memory_order_relaxed);
}

void PageCacheShare::NotePut(uint64_t hash) {
  if (IsWatched(hash)) SlotOf(hash).store(FingerprintOf(hash), std::memory_order_relaxed);
}

bool PageCacheShare::NoteMissed(uint64_t hash) {
  if (!IsWatched(hash)) return false;
  uint32_t fingerprint = FingerprintOf(hash);
  if (!SlotOf(hash).compare_exchange_strong(fingerprint, 0, std::memory_order_relaxed)) return false;
  const uint32_t steps = steps_.load(std::memory_order_relaxed);
  steps_.store(std::min(steps + kGainsForLoss, kStepsMax), std::memory_order_relaxed);
  return true;
}

bool PageCacheShare::Draw(uint32_t pct) {
  const uint64_t word = SplitMixWord(draws_.fetch_add(1, std::memory_order_relaxed) * kSplitMixStep);
  return std::ldexp(static_cast<double>(word), -64) < pct / 100.0 * factor();
}

double PageCacheShare::factor() const {
  return std::exp2(-static_cast<double>(steps_.load(std::memory_order_relaxed)) / kStepsPerHalf);
}

}  // namespace quarry
