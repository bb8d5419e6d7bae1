// See gc_policy.h.
#include "gc_policy.h"

#include <algorithm>

#include "quarry/gc.h"

namespace quarry {

namespace {
uint64_t Growth(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }
}  // namespace

double RewriteAbove(const GcSettings& settings) {
  return std::min(GcOptions().rewrite_above, settings.space_amplification_max);
}

GcVerdict JudgeGc(const GcFigures& now, const std::optional<GcMemory>& last, const GcSettings& settings, uint64_t now_s,
                  uint64_t known_since_s) {
  const uint64_t since_s = last ? last->ended_at_s : known_since_s;
  if (settings.full_interval_s != 0 && now_s >= since_s + settings.full_interval_s && now.real_bytes > 0) {
    return GcVerdict::kDue;
  }
  const uint64_t excess = Growth(now.real_bytes, now.live_bytes);
  const bool amplified =
      excess >= kGcWorthMinBytes &&
      static_cast<double>(now.real_bytes) > settings.space_amplification_max * static_cast<double>(now.live_bytes);
  if (!amplified) return GcVerdict::kNotYet;
  if (!last || last->left_some) return GcVerdict::kAmplified;
  // What the last pass left (extents that share a block with live ones) only counts again when there is more.
  const uint64_t changed =
      std::max({Growth(now.real_bytes, last->after.real_bytes), Growth(now.dead_bytes, last->after.dead_bytes),
                Growth(last->after.live_bytes, now.live_bytes)});
  const uint64_t enough = std::max(kGcWorthMinBytes, last->after.real_bytes / 20);
  return changed >= enough ? GcVerdict::kAmplified : GcVerdict::kNotYet;
}

}  // namespace quarry
