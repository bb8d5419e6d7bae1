// IdentitySource: the identities of new extents, 64 random bits each (docs/internals/format.md, 'Extent').
//
// Invariants: they come from the system's generator, so that whoever knows some of them cannot tell another; none is 0.
// Drawn in batches, since each draw is a system call. Thread-safety: internally synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "io/env.h"
#include "quarry/status.h"

namespace quarry {

class IdentitySource {
 public:
  explicit IdentitySource(Env* env) : env_(env) {}

  /// Error: kIoError, the system has no random bytes.
  [[nodiscard]] Result<uint64_t> Take() QUARRY_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    uint64_t identity = 0;
    while (identity == 0) {
      if (left_ == 0) {
        QUARRY_TRY(env_->FillRandom({reinterpret_cast<uint8_t*>(batch_.data()), sizeof batch_}));
        left_ = batch_.size();
      }
      identity = batch_[--left_];
    }
    return identity;
  }

 private:
  Env* const env_;
  Mutex mutex_;  ///< a leaf
  std::array<uint64_t, 64> batch_ QUARRY_GUARDED_BY(mutex_){};
  size_t left_ QUARRY_GUARDED_BY(mutex_) = 0;
};

}  // namespace quarry
