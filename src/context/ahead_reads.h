// AheadReads: the threads that read values which somebody will ask for soon (StoreDirectory::ReadAhead).
//
// A value is read as its reader would read it: into the value cache or a buffer, through the page cache or around it,
// verified and decoded. The kernel's own read-ahead would fill the page cache only, which most first reads of large
// values go around (page_cache_rule.h), and would leave checksums and codecs to the reader.
//
// Invariants: a read is begun by a thread or taken back by its holder, never both; nobody waits for one that has not
// begun. Thread-safety: internally synchronised.
#pragma once

#include <functional>
#include <memory>

#include "cache/counter_set.h"
#include "context/task_threads.h"
#include "quarry/ahead_read.h"
#include "quarry/options.h"
#include "quarry/status.h"

namespace quarry {

class AheadReads {
 public:
  /// A device gives the most at about as many requests at once; one that gives more is fast enough.
  static constexpr size_t kThreadsMax = 8;
  /// So many values may wait for a thread.
  static constexpr size_t kQueueMax = 256;

  AheadReads(CounterSet* counters, bool has_threads, ThreadHooks hooks)
      : counters_(counters), threads_("quarry_ahead", has_threads ? kThreadsMax : 0, kQueueMax, std::move(hooks)) {}

  /// `read` of a value of `size_bytes` on another thread. Null: none will do it.
  [[nodiscard]] std::unique_ptr<AheadRead> Start(uint64_t size_bytes, std::function<Result<ValueBuffer>()> read);
  void Drain() { threads_.Drain(); }
  /// Waits for what has begun.
  void Stop() { threads_.Stop(); }

 private:
  CounterSet* const counters_;
  TaskThreads threads_;
};

}  // namespace quarry
