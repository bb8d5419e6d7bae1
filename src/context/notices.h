// Notices: what somebody should read in a log, once, however often it happens.
// Thread-safety: internally synchronised.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace quarry {

class Notices {
 public:
  void AddOnce(const std::string& what) QUARRY_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (known_.insert(what).second) fresh_.push_back(what);
  }
  [[nodiscard]] std::vector<std::string> Take() QUARRY_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(fresh_, {});
  }

 private:
  Mutex mutex_;
  std::set<std::string> known_ QUARRY_GUARDED_BY(mutex_);
  std::vector<std::string> fresh_ QUARRY_GUARDED_BY(mutex_);
};

}  // namespace quarry
