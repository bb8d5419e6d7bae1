// The zeros that Lane has written ahead of small flushes, on file systems with a journal.
//
// A flush of a file that grew has to commit the journal, several times what the flush itself takes. One of bytes that
// lie in space written before has not. So the background thread keeps zeros ahead of the lane's position, a step at a
// time, through a file handle of its own.
// Invariants: only the step that is being written is closed to appenders, and one that reaches it moves behind it:
// nobody waits for zeros. What they fail to be costs nothing but speed: the file grows there.
#include <algorithm>

#include "append/lane.h"
#include "quarry/memory_guard.h"

namespace quarry {
namespace {

/// The most that a flush may write for zeros ahead of it to be wanted: what they save is the same for one of any size,
/// and what they cost is a second write of every byte.
constexpr uint64_t kFlushMaxBytes = 256ULL << 10;
/// So many such flushes in a row, before zeros are written: one says nothing.
constexpr uint32_t kSmallFlushesMin = 4;
/// One write, and the most that is skipped by an appender who reaches it.
constexpr uint64_t kStepBytes = 512ULL << 10;
/// How far ahead of the position zeros begin, so that appenders seldom reach a step.
constexpr uint64_t kLeadBytes = 512ULL << 10;

}  // namespace

Lane::ByteRange Lane::ZerosWanted() const {
  if (active_ == nullptr || active_->zeroing_failed) return {};
  const uint64_t pool = RoundDownToBlock(context_->options.zeroed_pool_bytes);
  const uint64_t position = active_->position_bytes;
  const uint64_t begin =
      std::max(active_->zeroed_end_bytes, position + RoundDownToBlock(std::min(kLeadBytes, pool / 4)));
  const uint64_t end = std::min(position + pool, RoundDownToBlock(context_->options.segment_size_bytes));
  if (end <= begin || begin - position > pool / 2) return {};
  return {begin, end};
}

bool Lane::WantsZeros(uint64_t flushed_bytes) {
  small_flushes_ = flushed_bytes <= kFlushMaxBytes ? small_flushes_ + 1 : 0;
  if (!context_->paths[path_number_].has_journal || small_flushes_ < kSmallFlushesMin || zeros_requested_) return false;
  zeros_requested_ = ZerosWanted().end_bytes > 0;
#ifdef QUARRY_PLANTED_BUG_WAIT_FOR_ZEROS  // claimed when the task is asked for, not when it runs
  if (zeros_requested_) {
    active_->zeroing = true;
    active_->zeroing_begin_bytes = ZerosWanted().begin_bytes;
    active_->zeroing_end_bytes = ZerosWanted().end_bytes;
  }
#endif
  return zeros_requested_;
}

void Lane::RequestZeros() {
  if (context_->paths[path_number_].tasks->Submit([lane = shared_from_this()] { lane->ZeroAhead(); })) return;
  MutexLock lock(mutex_);
  zeros_requested_ = false;  // not now; a later flush asks again
}

void Lane::ZeroAhead() {
  std::shared_ptr<SegmentFile> file;
  ByteRange range;
  {
    MutexLock lock(mutex_);
    file = active_;
    range = ZerosWanted();
    if (range.end_bytes == 0) zeros_requested_ = false;
  }
  if (range.end_bytes == 0) return;
  const Result<ByteRange> zeroed = OrOutOfMemory([&] { return WriteZeros(file, range); });
  {
    MutexLock lock(mutex_);
    file->zeroing = false;
    if (!zeroed.ok()) {
      file->zeroing_failed = true;  // not tried again in this segment
    } else if (zeroed->end_bytes > zeroed->begin_bytes) {
      if (file->zeroed_end_bytes != zeroed->begin_bytes) file->zeroed_begin_bytes = zeroed->begin_bytes;
      file->zeroed_end_bytes = zeroed->end_bytes;
    }
    zeros_requested_ = false;
#ifdef QUARRY_PLANTED_BUG_WAIT_FOR_ZEROS
    zeroed_.NotifyAll();
#endif
  }
  (void)CutTail(file);  // if it was finished meanwhile
}

Lane::ByteRange Lane::BeginZeros(const std::shared_ptr<SegmentFile>& file, const ByteRange& range, uint64_t at_bytes) {
  MutexLock lock(mutex_);
  file->zeroing = false;
  const uint64_t begin = std::max(at_bytes, file->position_bytes);
  if (file != active_ || begin >= range.end_bytes) return {};
  file->zeroing = true;
  file->zeroing_begin_bytes = begin;
  file->zeroing_end_bytes = std::min(begin + kStepBytes, range.end_bytes);
  return {begin, file->zeroing_end_bytes};
}

Result<Lane::ByteRange> Lane::WriteZeros(const std::shared_ptr<SegmentFile>& file, const ByteRange& range) {
  // Through a handle of its own: the kernel tells each handle of a lost write only once, and a flush here must not
  // take the word that is meant for a committer.
  const std::shared_ptr<SegmentFactory> factory = factory_.lock();
  if (factory == nullptr) return Status::NotFound("the store was dropped");
  QUARRY_TRY_ASSIGN(const OpenFiles::Lease lease, context_->open_files.Take());
  QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> handle,
                    factory->OpenSegmentForWrite(file->segment->number(), path_number_));
  AlignedBuffer zeros(static_cast<size_t>(std::min(kStepBytes, range.end_bytes - range.begin_bytes)));
  zeros.FillZero();
  ByteRange written{range.begin_bytes, range.begin_bytes};
  while (true) {
    const ByteRange step = BeginZeros(file, range, written.end_bytes);
    if (step.end_bytes == 0) break;
    const uint64_t size = step.end_bytes - step.begin_bytes;
    QUARRY_TRY(handle->WriteAt(step.begin_bytes, {zeros.data(), static_cast<size_t>(size)}));
    context_->counters.Add(Counter::kZeroBytesWritten, size);
    context_->counters.Add(Counter::kFileBytesWritten, size);
    context_->counters.Add(Counter::kWriteCalls);
    if (step.begin_bytes != written.end_bytes) written.begin_bytes = step.begin_bytes;  // overtaken
    written.end_bytes = step.end_bytes;
  }
  QUARRY_TRY(handle->Sync());
  return written;
}

}  // namespace quarry
