#include "store/zeroing_policy.h"

#include <algorithm>

namespace quarry {
namespace {

constexpr uint32_t kMeanOver = 32;
/// A sample counts as so many times the mean at most.
constexpr double kSampleMax = 4;
/// What takes as long, or less than nothing, is a clock that somebody set.
constexpr uint64_t kFlushMicrosMax = 60'000'000;
constexpr uint64_t kZeroingMicrosMax = 600'000'000;

}  // namespace

void ZeroingPolicy::Mean::Add(double sample) {
  if (samples_ >= kSamplesMin) sample = std::min(sample, value_ * kSampleMax);
  samples_ = std::min(samples_ + 1, kMeanOver);
  value_ += (sample - value_) / samples_;
}

void ZeroingPolicy::NoteFlush(bool zeroed, uint64_t micros) {
  if (micros >= kFlushMicrosMax) return;
  MutexLock lock(mutex_);
  (zeroed ? zeroed_micros_ : grown_micros_).Add(static_cast<double>(micros));
  grown_since_ = zeroed ? 0 : grown_since_ + 1;
  if (grown_since_ < kForgottenAfter) return;
  grown_since_ = 0;
  zeroed_micros_.Forget();
}

void ZeroingPolicy::NoteZeroing(uint64_t size_bytes, uint64_t micros) {
  if (size_bytes == 0 || micros >= kZeroingMicrosMax) return;
  MutexLock lock(mutex_);
  micros_per_byte_.Add(static_cast<double>(micros) / static_cast<double>(size_bytes));
}

ZeroingPolicy::Advice ZeroingPolicy::Advise(uint64_t flush_bytes) const {
  if (flush_bytes > kFlushMaxBytes) return Advice::kGrow;
  MutexLock lock(mutex_);
  const bool known = std::min(grown_micros_.samples(), zeroed_micros_.samples()) >= kSamplesMin;
  if (!known || micros_per_byte_.samples() == 0) return Advice::kZeros;
  const double cost_micros = static_cast<double>(flush_bytes) * micros_per_byte_.value();
  if (grown_micros_.value() - zeroed_micros_.value() < kWorthMin * cost_micros) return Advice::kGrow;
  return grown_micros_.value() >= kUnlimitedMin * zeroed_micros_.value() ? Advice::kZeros : Advice::kZerosWithinBudget;
}

}  // namespace quarry
