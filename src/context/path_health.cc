#include "context/path_health.h"

#include <algorithm>

namespace quarry {

bool PathHealth::Admits(const void* who, uint64_t now_micros) {
  if (IsSlow(now_micros)) return false;
  if (!has_failed()) return true;
  const MutexLock lock(mutex_);
  if (!has_failed() || now_micros < tried_from_micros_) return !has_failed();
  // The next one tries when this one has not come back by then.
  tried_from_micros_ = now_micros + pause_micros_;
  who_tries_ = who;
  return true;
}

void PathHealth::NoteFailure(uint64_t now_micros) {
  const MutexLock lock(mutex_);
  // Those who fail together, or were here before, are one failure.
  if (has_failed() && who_tries_ == nullptr && now_micros < tried_from_micros_) return;
  pause_micros_ = std::clamp(2 * pause_micros_, kPauseMinMicros, kPauseMaxMicros);
  tried_from_micros_ = now_micros + pause_micros_;
  who_tries_ = nullptr;
  has_failed_.store(true, std::memory_order_relaxed);
}

void PathHealth::EndFailure(const void* who) {
  const MutexLock lock(mutex_);
  if (who != who_tries_) return;  // begun before the failure
  who_tries_ = nullptr;
  pause_micros_ = 0;
  has_failed_.store(false, std::memory_order_relaxed);
}

PathHealth::Call::Call(PathHealth* health, uint64_t now_micros) : health_(health) {
  const MutexLock lock(health_->mutex_);
  begun_ = health_->calls_.insert(health_->calls_.end(), now_micros);
  health_->oldest_call_micros_.store(health_->calls_.front(), std::memory_order_relaxed);
}

PathHealth::Call::~Call() {
  const MutexLock lock(health_->mutex_);
  health_->calls_.erase(begun_);
  health_->oldest_call_micros_.store(health_->calls_.empty() ? UINT64_MAX : health_->calls_.front(),
                                     std::memory_order_relaxed);
}

}  // namespace quarry
