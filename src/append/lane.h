// Lane: appends and group commit of one store on one data path.
//
// Invariants:
//  - One segment is active at a time, and at most one chunk of it is open.
//  - A ticket is the number of a flush of this lane. An extent's ticket is that of the first flush that starts after
//    the extent is reserved (staged; the flush waits for its fillers) or written (private). When that flush has
//    completed and the segment did not fail at or before it, the extent is durable.
//  - One flush runs at a time. A run never spans the start of a flush.
//  - A flush that somebody waits for is led by somebody. So is one that StartFlush asked for, at the latest when who
//    asked comes to wait. Whoever has something else to do leads no flush of others behind his own.
//  - No lock is held while bytes are copied, compressed, written or flushed.
//  - A segment that failed gets no further write; later appends go to a new one.
//  - What is reserved is finished, and what is written is flushed or named as lost, also when memory runs out: a
//    function that is noexcept ends the process rather than leave that half done. It takes a few hundred bytes at most.
// Thread-safety: internally synchronised.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "append/segment_file.h"
#include "base/event_count.h"
#include "base/mutex.h"
#include "base/published_atomic.h"
#include "context/store_context.h"
#include "quarry/status.h"

namespace quarry {

class Lane : public ChunkHolder, public FileHolder, public std::enable_shared_from_this<Lane> {
 public:
  /// `factory` is the store that owns the lane: whoever appends holds it; background tasks may find it gone.
  Lane(std::shared_ptr<StoreContext> context, std::weak_ptr<SegmentFactory> factory, uint32_t path_number)
      : context_(std::move(context)), factory_(std::move(factory)), path_number_(path_number) {}

  [[nodiscard]] uint32_t path_number() const { return path_number_; }
  /// Whether a transaction that can go elsewhere may begin here.
  [[nodiscard]] bool AdmitsTransaction() const {
    return context_->paths[path_number_].health->Admits(this, context_->env->MonotonicMicros());
  }
  [[nodiscard]] bool has_failed() const { return context_->paths[path_number_].health->has_failed(); }

  // ---- appending (lane.cc) ----

  /// A range of the open chunk. The caller fills range.memory and then calls FinishStaged, whatever happens.
  [[nodiscard]] Result<StagedRange> ReserveStaged(uint64_t size_bytes, const Canceller* canceller)
      QUARRY_EXCLUDES(mutex_);
  void FinishStaged(const StagedRange& range) noexcept QUARRY_EXCLUDES(mutex_);

  /// A range of the file. The caller writes to range.file and then calls FinishPrivate, whatever happens.
  [[nodiscard]] Result<PrivateRange> ReservePrivate(uint64_t size_max_bytes, const Canceller* canceller)
      QUARRY_EXCLUDES(mutex_);
  /// Only `used_bytes` of the range are needed: gives the rest back when nobody reserved behind it.
  void ShrinkPrivate(PrivateRange* range, uint64_t used_bytes) QUARRY_EXCLUDES(mutex_);
  /// `written` says how the writing went. Returns the ticket, or why the extent is lost.
  [[nodiscard]] Result<uint64_t> FinishPrivate(const PrivateRange& range, uint64_t stored_bytes,
                                               const Status& written) noexcept QUARRY_EXCLUDES(mutex_);

  void GiveUpChunk() override QUARRY_EXCLUDES(mutex_);
  /// Has what keeps files pinned flushed, when a flush thread is free.
  void LetGoOfFiles() override QUARRY_EXCLUDES(mutex_);

  // ---- flushing (lane_flush.cc) ----

  /// For a committer that has something else to do before it calls Sync: another thread flushes meanwhile. When there
  /// is none, the flush has completed when this returns. True: the committer was counted among those of the flush.
  [[nodiscard]] bool StartFlush(uint64_t ticket) QUARRY_EXCLUDES(mutex_);
  /// Group commit: returns when the flush `ticket` has completed. Errors: the segment failed at or before it.
  /// `counted`: what StartFlush said.
  [[nodiscard]] Status Sync(SegmentNumber segment, uint64_t ticket, bool counted = false,
                            const Canceller* canceller = nullptr) QUARRY_EXCLUDES(mutex_);
  /// So that those who wait for others ask their cancellers.
  void WakeWaiters() QUARRY_EXCLUDES(mutex_);
  /// Everything whose append returned. Also reports, once, bytes lost since the last call.
  [[nodiscard]] Status SyncAll() QUARRY_EXCLUDES(mutex_);

  // ---- space ahead, sealing (lane_space.cc) ----

  /// Seals the active segment, makes it durable and cuts off its unused tail.
  [[nodiscard]] Status Seal() QUARRY_EXCLUDES(mutex_);
  /// The same for GC, beside appenders and committers: a loss that shows here is left for those whom it concerns.
  /// What can't be sealed now (somebody still writes in it, or the device takes long) is no candidate.
  void SealForGc() QUARRY_EXCLUDES(mutex_);
  /// Where what is written of the active segment ends, and the bytes of the extents before, when all of it is flushed.
  /// False: it is not, or the lane does not write `segment` any more.
  [[nodiscard]] bool TakeWritten(SegmentNumber segment, uint64_t* end_bytes, uint64_t* counted_bytes)
      QUARRY_EXCLUDES(mutex_);

 private:
  /// What must happen after the mutex was released.
  struct Aftermath {
    std::vector<std::shared_ptr<Run>> to_write;   ///< the last reference was dropped
    std::vector<std::shared_ptr<Chunk>> to_keep;  ///< written and detached
    std::vector<std::shared_ptr<Chunk>> to_drop;  ///< detached, of a failed segment
    std::shared_ptr<SegmentFile> file;            ///< of the chunks
  };
  struct Failure {
    uint64_t first_lost_ticket = 0;
    Status status;
  };

  void Settle(Aftermath aftermath) noexcept QUARRY_EXCLUDES(mutex_);
  void WriteRun(const std::shared_ptr<Run>& run) noexcept QUARRY_EXCLUDES(mutex_);

  [[nodiscard]] bool RoomInChunk(uint64_t size_bytes) const QUARRY_REQUIRES(mutex_);
  [[nodiscard]] bool RoomInFile(uint64_t size_bytes) const QUARRY_REQUIRES(mutex_);
  /// Moves behind the zeros that are being written, when `size_bytes` would meet them: nobody waits for zeros. False:
  /// they would not.
  [[nodiscard]] bool StepOverZeros(uint64_t size_bytes) QUARRY_REQUIRES(mutex_);
  /// Rolls when there is no active segment or no room in it, opens its file when that is closed, and pins it; may
  /// release the mutex meanwhile.
  [[nodiscard]] Status EnsureActive(uint64_t size_bytes, bool staged, const Canceller* canceller)
      QUARRY_REQUIRES(mutex_);
  /// Rolls or opens the file again, for all who wait for it. Releases the mutex meanwhile, as do the next two.
  [[nodiscard]] Status MakeActive(bool has_room, const Canceller* canceller) QUARRY_REQUIRES(mutex_);
  [[nodiscard]] Status Roll(const Canceller* canceller) QUARRY_REQUIRES(mutex_);
  [[nodiscard]] Status Reopen(const Canceller* canceller) QUARRY_REQUIRES(mutex_);
  [[nodiscard]] StagedRange TakeFromChunk(uint64_t size_bytes) QUARRY_REQUIRES(mutex_);
  void OpenChunk(PooledBuffer buffer, uint64_t size_min_bytes) QUARRY_REQUIRES(mutex_);
  void CloseRun(Aftermath* aftermath) noexcept QUARRY_REQUIRES(mutex_);
  void DetachChunk(Aftermath* aftermath) noexcept QUARRY_REQUIRES(mutex_);
  void SealActive(Aftermath* aftermath) noexcept QUARRY_REQUIRES(mutex_);
  void MarkDirty(const std::shared_ptr<SegmentFile>& file, uint64_t begin_bytes, uint64_t end_bytes) noexcept
      QUARRY_REQUIRES(mutex_);
  /// The next flush covers it.
  void AddToFlush(const std::shared_ptr<SegmentFile>& file) noexcept QUARRY_REQUIRES(mutex_);

  [[nodiscard]] uint64_t LastTicket() QUARRY_EXCLUDES(mutex_);
  /// Returns when the flush `ticket`, or the next one if there is no such ticket yet, has completed: its number. 0:
  /// `canceller` gave up.
  uint64_t AwaitFlush(uint64_t ticket, bool counted = false, const Canceller* canceller = nullptr)
      QUARRY_EXCLUDES(mutex_);
  /// One flush. Called with the mutex, returns without it. True: somebody who does not lead wants the next one, so the
  /// caller must see to it (flush_active_ stays).
  [[nodiscard]] bool LeadFlush() noexcept QUARRY_RELEASE(mutex_);
  /// The same, and then the flushes that are wanted: here in a flush thread. Another caller leaves them to one, or,
  /// when none is free, to the committers whom they are for.
  void LeadFlushes(bool is_flush_thread) QUARRY_RELEASE(mutex_);
  /// To a flush thread: the next flush, which is marked as led, and those that are wanted behind it. False: none is
  /// free.
  [[nodiscard]] bool HandOver() QUARRY_EXCLUDES(mutex_);
  /// StartFlush, for a committer (who is counted) or for nobody.
  bool RequestFlush(uint64_t ticket, bool for_committer) QUARRY_EXCLUDES(mutex_);
  /// The same for who must not wait for a device. False: no flush thread is free; to be asked for again.
  bool AskForFlush() QUARRY_EXCLUDES(mutex_);
  void CountCommitter(uint64_t ticket) QUARRY_REQUIRES(mutex_);
  /// After a flush of `file`.
  void UnpinIdle(SegmentFile* file) QUARRY_REQUIRES(mutex_);
  /// Something in it is reserved, or waits to be written or for the next flush.
  [[nodiscard]] bool IsAtWork(const SegmentFile& file) const QUARRY_REQUIRES(mutex_);
  [[nodiscard]] bool HasUnwritten(uint64_t ticket) const QUARRY_REQUIRES(mutex_);
  void Fail(const std::shared_ptr<SegmentFile>& file, uint64_t first_lost_ticket, const Status& status,
            Aftermath* aftermath) noexcept QUARRY_REQUIRES(mutex_);
  [[nodiscard]] Status FailureOf(SegmentNumber segment, uint64_t ticket) const QUARRY_REQUIRES(mutex_);

  /// The range to allocate ahead, claimed for the caller, who does it without the mutex; empty: none.
  struct ByteRange {
    uint64_t begin_bytes = 0;
    uint64_t end_bytes = 0;
  };
  [[nodiscard]] ByteRange ClaimAllocation() QUARRY_REQUIRES(mutex_);
  // ---- zeros ahead (lane_zeros.cc) ----

  /// Whether zeros are to be written ahead, after a flush of `flushed_bytes`: whoever is told so calls RequestZeros.
  [[nodiscard]] bool WantsZeros(uint64_t flushed_bytes) QUARRY_REQUIRES(mutex_);
  void RequestZeros() QUARRY_EXCLUDES(mutex_);
  [[nodiscard]] ByteRange ZerosWanted() const QUARRY_REQUIRES(mutex_);
  /// The next step of the zeros of `range`, from `at_bytes` on, which nobody else may write to until it is ended.
  [[nodiscard]] ByteRange BeginZeros(const std::shared_ptr<SegmentFile>& file, const ByteRange& range,
                                     uint64_t at_bytes) QUARRY_EXCLUDES(mutex_);
  /// Writes zeros ahead: a task of the background thread.
  void ZeroAhead() QUARRY_EXCLUDES(mutex_);
  /// What of `range` was zeroed, durably.
  [[nodiscard]] Result<ByteRange> WriteZeros(const std::shared_ptr<SegmentFile>& file, const ByteRange& range)
      QUARRY_EXCLUDES(mutex_);
  /// Nothing is written any more to what is reserved in `file`, and all of it is durable. True: it has a tail.
  [[nodiscard]] bool FinishSealed(SegmentFile* file) QUARRY_REQUIRES(mutex_);
  /// Cuts off what was allocated or zeroed ahead in a file that is finished. While zeros are written there, whoever
  /// writes them does it.
  [[nodiscard]] Status CutTail(const std::shared_ptr<SegmentFile>& file) QUARRY_EXCLUDES(mutex_);

  const std::shared_ptr<StoreContext> context_;
  const std::weak_ptr<SegmentFactory> factory_;
  const uint32_t path_number_;

  Mutex mutex_;
  CondVar rolled_;                        ///< a new segment is there, or making it failed
  CondVar written_;                       ///< a run left unwritten_
#ifdef QUARRY_PLANTED_BUG_WAIT_FOR_ZEROS  // a bug on purpose, never in a normal build
  CondVar zeroed_;
#endif

  // Internally synchronised.
  std::array<EventCount, 2> turn_;                ///< by parity of the flush waited for
  PublishedAtomic<uint64_t> flush_completed_{0};  ///< changes under mutex_
  PublishedAtomic<bool> has_failures_{false};     ///< failures_ is not empty; changes under mutex_

  std::shared_ptr<SegmentFile> active_ QUARRY_GUARDED_BY(mutex_);
  bool rolling_ QUARRY_GUARDED_BY(mutex_) = false;  ///< others wait for rolled_
  uint64_t rolls_failed_ QUARRY_GUARDED_BY(mutex_) = 0;
  Status roll_failure_ QUARRY_GUARDED_BY(mutex_);           ///< the last one
  std::shared_ptr<Chunk> chunk_ QUARRY_GUARDED_BY(mutex_);  ///< of active_
  uint64_t chunk_capacity_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Run> run_ QUARRY_GUARDED_BY(mutex_);  ///< open, in chunk_
  bool known_to_supply_ QUARRY_GUARDED_BY(mutex_) = false;

  std::vector<std::shared_ptr<Run>> unwritten_ QUARRY_GUARDED_BY(mutex_);      ///< closed
  std::vector<std::shared_ptr<SegmentFile>> dirty_ QUARRY_GUARDED_BY(mutex_);  ///< for the next flush
  std::map<uint32_t, Failure> failures_ QUARRY_GUARDED_BY(mutex_);             ///< by segment number
  Status unreported_loss_ QUARRY_GUARDED_BY(mutex_);                           ///< for SyncAll

  uint64_t flush_started_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t flush_wanted_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< the furthest that StartFlush asked for
  bool flush_active_ QUARRY_GUARDED_BY(mutex_) = false;  ///< somebody leads one, or is about to
  uint64_t last_ticket_ QUARRY_GUARDED_BY(mutex_) = 0;   ///< of whatever was appended so far
  uint64_t committers_current_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t committers_next_ QUARRY_GUARDED_BY(mutex_) = 0;
  uint64_t unflushed_bytes_ QUARRY_GUARDED_BY(mutex_) = 0;  ///< written, for the next flush
  uint32_t small_flushes_ QUARRY_GUARDED_BY(mutex_) = 0;    ///< in a row, in which zeros ahead pay
  bool zeros_requested_ QUARRY_GUARDED_BY(mutex_) = false;  ///< a task that will write them is queued or running
};

}  // namespace quarry
