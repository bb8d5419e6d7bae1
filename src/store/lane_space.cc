// The space half of Lane: blocks allocated ahead, zeros written ahead, tails cut off, checkpoints.
#include <algorithm>

#include "store/lane.h"

namespace quarry {
namespace {

constexpr uint64_t kAllocationMinBytes = 1ULL << 20;
constexpr uint64_t kAllocationMaxBytes = 16ULL << 20;
/// Of the file's size: bounds what allocating ahead can waste in a store that then falls silent.
constexpr uint64_t kAllocationShare = 8;
constexpr uint64_t kZeroCallBytes = 512ULL << 10;
/// So many flushes in a row for which zeros pay, before they are written ahead: one says nothing.
constexpr uint32_t kServedFlushesMin = 4;
/// So many bytes of lone flushes allow for a byte of zeros, where those are bound to a budget: 24 KB, which takes 28 KB
/// of blocks and 5 of InnoDB's, then is written 1.96 times.
constexpr uint64_t kFlushedPerZero = 2;

}  // namespace

Lane::ByteRange Lane::ClaimAllocation() {
  SegmentFile& file = *active_;
  // A lone writer gains nothing. Several would take the inode's lock one after the other to make the file grow: ext4
  // lets only writes into allocated blocks run side by side (store_benchmark.cc measures it).
  if (file.private_in_flight < 2 || file.position_bytes <= file.allocated_end_bytes) return {};
  const uint64_t begin = std::max({file.allocated_end_bytes, file.zeroed_end_bytes, file.zeroing_end_bytes,
                                   active_->position_bytes - std::min(active_->position_bytes, kAllocationMinBytes)});
  const uint64_t ahead = std::clamp(file.position_bytes / kAllocationShare, kAllocationMinBytes, kAllocationMaxBytes);
  const uint64_t end = RoundDownToBlock(
      std::max(file.position_bytes, std::min(file.position_bytes + ahead, context_->options.segment_size_bytes)));
  if (end <= begin) return {};
  file.allocated_end_bytes = end;
  return {RoundDownToBlock(begin), end};
}

ZeroingPolicy::Advice Lane::LearnZeroing(const Flushed& flushed) {
  using Advice = ZeroingPolicy::Advice;
  if (flushed.alone && flushed.size_bytes <= ZeroingPolicy::kFlushMaxBytes) {  // larger ones get none either
    zeros_budget_bytes_ =
        std::min(zeros_budget_bytes_ + flushed.size_bytes / kFlushedPerZero, context_->options.zeroed_pool_bytes);
  }
  ZeroingPolicy& zeroing = *context_->paths[path_number_].zeroing;
  const bool is_compared = flushed.alone || context_->options.zeroed_groups;
  // Beside the writing of zeros every flush takes longer: what that costs those in zeroed space counts, the rest not.
  const bool is_comparable = flushed.zeroed || active_ == nullptr || !active_->zeroing;
  if (is_compared && is_comparable && flushed.tells) zeroing.NoteFlush(flushed.zeroed, flushed.took_micros);
  const Advice advice = is_compared ? zeroing.Advise(flushed.size_bytes) : Advice::kGrow;
  const bool is_served = advice == Advice::kZeros || (flushed.alone && advice == Advice::kZerosWithinBudget);
  served_flushes_ = is_served ? served_flushes_ + 1 : 0;
  return advice;
}

std::shared_ptr<SegmentFile> Lane::ClaimZeroing(ZeroingPolicy::Advice advice) {
  const uint64_t pool = RoundDownToBlock(context_->options.zeroed_pool_bytes);
  if (pool == 0 || served_flushes_ < kServedFlushesMin || active_ == nullptr || active_->zeroing ||
      active_->zeroing_failed)
    return nullptr;
  SegmentFile& file = *active_;
  const uint64_t position = file.position_bytes;
  const bool inside = file.zeroed_begin_bytes <= position && position < file.zeroed_end_bytes;
  const uint64_t begin = inside ? file.zeroed_end_bytes : position;
  const uint64_t end = std::min(position + pool, RoundDownToBlock(context_->options.segment_size_bytes));
  if (end <= begin || begin - position > pool / 2) return nullptr;
  if (advice == ZeroingPolicy::Advice::kZerosWithinBudget && zeros_budget_bytes_ < end - begin) return nullptr;
  zeros_budget_bytes_ -= std::min(zeros_budget_bytes_, end - begin);
  file.zeroing = true;
  file.zeroing_begin_bytes = begin;
  file.zeroing_end_bytes = end;
  return active_;
}

void Lane::SubmitZeroing(const std::shared_ptr<SegmentFile>& file) {
  if (context_->maintenance.Submit([lane = shared_from_this(), file] { lane->ZeroAhead(file); })) return;
  // The directory is closed: nobody may wait for zeros that will never come.
  MutexLock lock(mutex_);
  file->zeroing = false;
  file->zeroing_failed = true;
  zeroed_.NotifyAll();
}

Status Lane::WriteZeros(const SegmentFile& file, uint64_t begin_bytes, uint64_t end_bytes) {
  // Through a handle of its own: the kernel tells each handle of a lost write only once, and a flush here must not
  // take the word that is meant for a committer.
  const std::shared_ptr<SegmentFactory> factory = factory_.lock();
  if (factory == nullptr) return Status::NotFound("the store was dropped");
  QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> handle,
                    factory->OpenSegmentForWrite(file.segment->number(), path_number_));
  AlignedBuffer zeros(static_cast<size_t>(std::min(kZeroCallBytes, end_bytes - begin_bytes)));
  zeros.FillZero();
  for (uint64_t at = begin_bytes; at < end_bytes;) {
    const uint64_t size = std::min<uint64_t>(zeros.size(), end_bytes - at);
    QUARRY_TRY(handle->WriteAt(at, {zeros.data(), static_cast<size_t>(size)}));
    context_->counters.Add(Counter::kZeroBytesWritten, size);
    context_->counters.Add(Counter::kFileBytesWritten, size);
    context_->counters.Add(Counter::kWriteCalls);
    at += size;
  }
  return handle->Sync();
}

void Lane::ZeroAhead(const std::shared_ptr<SegmentFile>& file) {
  uint64_t begin = 0;
  uint64_t end = 0;
  {
    MutexLock lock(mutex_);
    begin = file->zeroing_begin_bytes;
    end = file->zeroing_end_bytes;
  }
  const uint64_t began_micros = context_->env->NowMicros();
  const Status zeroed = WriteZeros(*file, begin, end);
  const uint64_t took_micros = context_->env->NowMicros() - began_micros;
  if (zeroed.ok()) context_->paths[path_number_].zeroing->NoteZeroing(end - begin, took_micros);
  bool finish = false;
  {
    MutexLock lock(mutex_);
    file->zeroing = false;
    if (zeroed.ok()) {
      if (file->zeroed_end_bytes != begin) file->zeroed_begin_bytes = begin;
      file->zeroed_end_bytes = end;
    } else {
      // Zeros that were not written harm nobody: the file just grows there. Not tried again in this segment.
      file->zeroing_failed = true;
    }
    finish = std::exchange(file->finish_wanted, false);
    zeroed_.NotifyAll();
  }
  if (finish) (void)FinishSealed(file);  // a tail that stays only costs space until the next start
}

Status Lane::FinishSealed(const std::shared_ptr<SegmentFile>& file) {
  uint64_t position = 0;
  bool has_tail = false;
  {
    MutexLock lock(mutex_);
    if (file->failed) return Status::Ok();
    if (file->private_in_flight > 0) return Status::Ok();  // the flush after the last of them comes back here
    if (file->zeroing) {
      file->finish_wanted = true;  // whoever zeroes does it; waiting could wait for a task behind this one
      return Status::Ok();
    }
    position = file->position_bytes;
    has_tail = std::max({file->allocated_end_bytes, file->zeroed_end_bytes, file->zeroing_end_bytes}) > position;
  }
  if (has_tail) QUARRY_TRY(file->file->Truncate(position));
  file->segment->set_size_bytes(position);
  file->segment->set_state(SegmentState::kSealed);
  return Status::Ok();
}

Status Lane::Seal() {
  std::shared_ptr<SegmentFile> file;
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    if (active_ == nullptr) return Status::Ok();
    file = active_;
    SealActive(&aftermath);
    last_ticket_ = std::max(last_ticket_, flush_started_ + 1);
  }
  Settle(std::move(aftermath));
  QUARRY_TRY(SyncAll());
  return FinishSealed(file);
}

void Lane::SealForGc() {
  std::shared_ptr<SegmentFile> file;
  Aftermath aftermath;
  uint64_t ticket = 0;
  {
    MutexLock lock(mutex_);
    file = active_;
    if (active_ != nullptr) SealActive(&aftermath);
    if (!dirty_.empty()) last_ticket_ = std::max(last_ticket_, flush_started_ + 1);
    ticket = last_ticket_;
  }
  Settle(std::move(aftermath));
  AwaitFlush(ticket);
  {
    MutexLock lock(mutex_);
    if (file == nullptr || file->segment->state() != SegmentState::kActive || file->dirty) return;
  }
  (void)FinishSealed(file);  // a tail that stays, and keeps the segment active, only costs space until the next start
}

bool Lane::TakeSnapshot(SegmentNumber segment, SegmentFile::Snapshot* snapshot, uint64_t* size_bytes) {
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    if (active_ == nullptr || active_->segment->number() != segment) return false;
    // The chunk's unused range goes back, so that everything counted so far lies below the position.
    DetachChunk(&aftermath);
    SegmentFile& file = *active_;
    const auto publish = [&file] {
      if (file.in_flight_below == 0) file.snapshot = {file.cut_bytes, file.below};
    };
    publish();
    if (file.in_flight_below == 0) {
      const SegmentFile::Tally above = std::exchange(file.above, {});
      file.below.extents += above.extents;
      file.below.bytes += above.bytes;
      file.cut_bytes = file.position_bytes;
      file.in_flight_below = file.private_in_flight;
      publish();
    }
    *snapshot = file.snapshot;
    *size_bytes = file.position_bytes;
  }
  Settle(std::move(aftermath));
  return true;
}

bool Lane::TakeWrittenSnapshot(SegmentNumber segment, SegmentFile::Snapshot* snapshot) {
  {
    MutexLock lock(mutex_);
    if (flush_completed_ < last_ticket_) return false;
  }
  uint64_t size_bytes = 0;
  if (!TakeSnapshot(segment, snapshot, &size_bytes)) return false;
  MutexLock lock(mutex_);
  return flush_completed_ >= last_ticket_ && active_ != nullptr && active_->segment->number() == segment &&
         !active_->failed;
}

}  // namespace quarry
