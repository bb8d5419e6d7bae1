// Canceller: lets a caller give up what it waits for.
//
// An append may wait for memory or for the making of a segment, a commit for a flush that another thread leads. A call
// that is inside the operating system is not given up.
// Thread-safety: IsCancelled is called by the thread that waits.
#pragma once

namespace quarry {

class Canceller {
 public:
  virtual ~Canceller() = default;
  /// Once true, always true. Whoever makes it so calls StoreDirectory::WakeWaiters afterwards.
  [[nodiscard]] virtual bool IsCancelled() const = 0;
};

}  // namespace quarry
