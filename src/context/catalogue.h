// Catalogue: the one log of everything that must be known of stores, segments and data paths.
//
// Who changes something describes it in records and waits until they are durable; the change counts in memory after
// that. One flush serves everyone who came meanwhile. Nothing here grows with the number of stores but a snapshot,
// which the background thread writes when the log has become too long.
//
// Invariants:
//  - Records of one Append stand together and in order; those of a later Append behind them.
//  - A flush that failed is not repeated: what it held is refused, and the next change begins a new generation, for
//    the tail of the old one is not trusted any more.
//  - A generation takes over only when it holds all that was durable before, and before anything else is.
//  - state() is what a crash now would leave, but for the flush that is under way.
// Thread-safety: internally synchronised. No lock is held over I/O; who waits holds what he likes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cache/counter_set.h"
#include "context/catalogue_file.h"
#include "quarry/status.h"

namespace quarry {

class Catalogue {
 public:
  /// `state`: what is known; nothing of this life is on disk before Begin. `generations`: of the files that there are,
  /// rising. `renewal_min_bytes`: a log that is smaller is never renewed.
  Catalogue(Env* env, std::string home, CatalogueState state, std::vector<uint64_t> generations,
            uint64_t renewal_min_bytes, CounterSet* counters);

  /// So that somebody calls Renew(), soon and in another thread. To be set before Begin.
  void SetRenewer(std::function<void()> request) { request_renewal_ = std::move(request); }

  /// Begins the first generation of this life, with `changes` in it; once it has begun, commits them. Other files of
  /// the catalogue go. After an error the old ones are there, and the next Commit tries again.
  [[nodiscard]] Status Begin(std::vector<CatalogueRecord> changes) QUARRY_EXCLUDES(mutex_);

  /// What was appended together.
  struct Batch;
  using Ticket = std::shared_ptr<Batch>;
  /// For the next flush, whoever asks for it. Does no I/O.
  Ticket Append(std::vector<CatalogueRecord> records) QUARRY_EXCLUDES(mutex_);
  /// Returns when the records of `ticket` are durable, or will not be.
  [[nodiscard]] Status Sync(const Ticket& ticket) QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] Status Commit(std::vector<CatalogueRecord> records) { return Sync(Append(std::move(records))); }
  /// For who makes something that has to stay when its record fails. Ok: the last flush did not fail, or another
  /// generation has begun since.
  [[nodiscard]] Status BecomeWritable() QUARRY_EXCLUDES(mutex_);

  /// Writes the next generation beside this one, while changes go on, and lets it take over. On error the old one
  /// stays. Nothing is done while another call is at it.
  [[nodiscard]] Status Renew() QUARRY_EXCLUDES(mutex_);

  [[nodiscard]] CatalogueState state() const QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<CatalogueDamage> damage() const QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] CatalogueScrubPlace scrub() const QUARRY_EXCLUDES(mutex_);
  /// It names the segment, and says something else of it.
  [[nodiscard]] bool IsOutdated(const CatalogueSegment& segment) const QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] bool MayGiveBack(StoreId store) const QUARRY_EXCLUDES(mutex_);
  /// The next store id, which is never given out again in this life; a record of it must be durable before it is used.
  [[nodiscard]] StoreId TakeStoreId() QUARRY_EXCLUDES(mutex_);
  /// A folder of that store was found: its id is not given out.
  void RaiseStoreId(StoreId found) QUARRY_EXCLUDES(mutex_);

 private:
  void LeadFlush() QUARRY_REQUIRES(mutex_);
  /// What is durable must be known, or the next generation would leave it out: without memory the process ends.
  void NoteDurable(const std::vector<CatalogueRecord>& records) noexcept QUARRY_REQUIRES(mutex_);
  /// Everyone who waits for `batch` goes on with `status`.
  void Finish(const Ticket& batch, Status status) QUARRY_REQUIRES(mutex_);
  [[nodiscard]] bool IsTooLong() const QUARRY_REQUIRES(mutex_);
  [[nodiscard]] Result<std::unique_ptr<CatalogueWriter>> WriteSnapshot(uint64_t generation) QUARRY_EXCLUDES(mutex_);
  /// The log that is written changes. Called by who flushes.
  [[nodiscard]] Status TakeOver(std::unique_ptr<CatalogueWriter> writer) QUARRY_EXCLUDES(mutex_);

  Env* const env_;
  const std::string home_;
  const uint64_t renewal_min_bytes_;
  CounterSet* const counters_;
  std::function<void()> request_renewal_;

  mutable Mutex mutex_;
  CondVar changed_;  ///< a flush or a renewal ended
  CatalogueState state_ QUARRY_GUARDED_BY(mutex_);
  Ticket open_ QUARRY_GUARDED_BY(mutex_);  ///< for the next flush
  bool is_flushing_ QUARRY_GUARDED_BY(mutex_) = false;
  bool is_renewing_ QUARRY_GUARDED_BY(mutex_) = false;
  bool is_broken_ QUARRY_GUARDED_BY(mutex_) = true;                 ///< nothing may be appended to log_
  std::unique_ptr<CatalogueWriter> log_ QUARRY_GUARDED_BY(mutex_);  ///< written by who is_flushing_, without the mutex
  std::vector<CatalogueRecord> meanwhile_ QUARRY_GUARDED_BY(mutex_);  ///< durable since the renewal began
  uint64_t last_generation_ QUARRY_GUARDED_BY(mutex_);
  uint64_t log_size_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< of log_, but for the flush that is under way
  uint64_t renew_at_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> to_remove_ QUARRY_GUARDED_BY(mutex_);  ///< files of generations that do not count any more
};

}  // namespace quarry
