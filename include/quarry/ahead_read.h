// AheadRead: a value that another thread reads while its reader is still busy with what comes before it.
//
// Invariant: an answer never changes what a read gives: who gets nothing reads the value by itself, errors included.
// Thread-safety: its holder is one thread. Must not outlive the StoreDirectory that it came from.
#pragma once

#include "quarry/value_buffer.h"

namespace quarry {

class AheadRead {
 public:
  AheadRead() = default;
  AheadRead(const AheadRead&) = delete;
  AheadRead& operator=(const AheadRead&) = delete;
  /// Gives it up. Waits for nothing: a read that has begun ends by itself.
  virtual ~AheadRead() = default;

  /// To be called once. The value, if it is read by now or its read has begun, which is waited for. Empty: no thread
  /// came to it, or the read failed.
  [[nodiscard]] virtual ValueBuffer Take() = 0;
};

}  // namespace quarry
