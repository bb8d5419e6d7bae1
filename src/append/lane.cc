#include "append/lane.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "format/extent.h"
#include "quarry/memory_guard.h"

namespace quarry {

bool Lane::RoomInChunk(uint64_t size_bytes) const {
  if (chunk_ == nullptr) return false;
  const uint64_t used = chunk_->used_bytes.load(std::memory_order_relaxed);
  return used <= chunk_capacity_bytes_ && chunk_capacity_bytes_ - used >= size_bytes;
}

bool Lane::RoomInFile(uint64_t size_bytes) const {
  // A value larger than a segment gets a segment of its own.
  return active_->position_bytes + RoundUpToBlock(size_bytes) <= context_->options.segment_size_bytes ||
         active_->position_bytes == kSegmentHeaderSizeBytes;
}

bool Lane::StepOverZeros(uint64_t size_bytes) {
  SegmentFile& file = *active_;
  if (!file.zeroing || file.position_bytes >= file.zeroing_end_bytes ||
      file.position_bytes + size_bytes <= file.zeroing_begin_bytes) {
    return false;
  }
#ifdef QUARRY_PLANTED_BUG_WAIT_FOR_ZEROS
  zeroed_.Wait(mutex_);
#else
  file.position_bytes = file.zeroing_end_bytes;
#endif
  return true;
}

Status Lane::EnsureActive(uint64_t size_bytes, bool staged, const Canceller* canceller) {
  while (true) {
    if (rolling_) {
      if (canceller != nullptr && canceller->IsCancelled()) return Status::Cancelled("a new segment");
      const uint64_t failed_before = rolls_failed_;
      rolled_.Wait(mutex_);
      // One after the other they would wait as long for the same.
      if (rolls_failed_ != failed_before) return roll_failure_;
      continue;
    }
    const bool has_room = active_ != nullptr && ((staged && RoomInChunk(size_bytes)) || RoomInFile(size_bytes));
    if (has_room) {
      if (active_->pin.empty()) active_->pin = active_->slot.PinIfOpen();
      if (!active_->pin.empty()) return Status::Ok();
    }
    QUARRY_TRY(MakeActive(has_room, canceller));
  }
}

// Roll and Reopen throw nothing, and copy no error outside of a guard: others wait for rolling_.
Status Lane::MakeActive(bool has_room, const Canceller* canceller) {
  rolling_ = true;
  Status status = has_room ? Reopen(canceller) : Roll(canceller);
  // A file that cannot be opened again, or is gone, does not stop the lane: the next segment takes its place.
  const bool is_lost = status.code() == StatusCode::kIoError || status.system_errno() == ENOENT;
  if (has_room && is_lost) status = Roll(canceller);
  rolling_ = false;
  rolled_.NotifyAll();
  if (!status.ok() && status.code() != StatusCode::kCancelled) {
    roll_failure_ = status;
    ++rolls_failed_;
  }
  return status;
}

Status Lane::Roll(const Canceller* canceller) {
  Aftermath aftermath;
  const bool is_first = active_ == nullptr;
  if (!is_first) SealActive(&aftermath);
  mutex_.Unlock();
  Settle(std::move(aftermath));
  const std::shared_ptr<SegmentFactory> factory = factory_.lock();
  assert(factory != nullptr);
  // A transaction fills any number of segments: each is flushed when the next one begins, and its file can go.
  if (!is_first) RequestFlush(0, false);
  std::shared_ptr<SegmentFile> made;
  Status status = OrOutOfMemory([&]() -> Status {
    QUARRY_TRY_ASSIGN(made, factory->CreateSegment(path_number_, weak_from_this(), canceller));
    return Status::Ok();
  });
  mutex_.Lock();
  if (status.ok()) active_ = std::move(made);
  return status;
}

Status Lane::Reopen(const Canceller* canceller) {
  const std::shared_ptr<SegmentFile> file = active_;
  mutex_.Unlock();
  const std::shared_ptr<SegmentFactory> factory = factory_.lock();
  assert(factory != nullptr);
  WritePin pin;
  Status status = OrOutOfMemory([&]() -> Status {
    Result<WritePin> opened =
        file->slot.PinOrOpen([&] { return factory->OpenSegmentForWrite(file->segment->number(), path_number_); },
                             canceller, weak_from_this());
    // Of one that is gone nobody knows whether its path is: who makes the next one will see.
    if (opened.status().system_errno() != ENOENT) context_->NotePathFailure(path_number_, opened.status());
    QUARRY_TRY_ASSIGN(pin, std::move(opened));
    return Status::Ok();
  });
  mutex_.Lock();
  if (status.ok() && file == active_) file->pin = std::move(pin);  // else it was sealed meanwhile
  return status;
}

Result<StagedRange> Lane::ReserveStaged(uint64_t size_bytes, const Canceller* canceller) {
  assert(size_bytes <= kChunkSizeBytes);
  ChunkSupply& supply = context_->paths[path_number_].staging->chunk_supply;
  const uint64_t size = RoundUpToExtent(size_bytes);
  PooledBuffer spare;
  StagedRange range;
  {
    MutexLock lock(mutex_);
    while (true) {
      QUARRY_TRY(EnsureActive(size, true, canceller));
      if (RoomInChunk(size)) break;
      if (chunk_ != nullptr || spare.empty()) {
        Aftermath aftermath;
        DetachChunk(&aftermath);
        lock.Unlock();
        Settle(std::move(aftermath));
        // No lock and no reservation is held here: the chunks in use can all be written meanwhile.
        if (spare.empty()) spare = supply.Acquire(kChunkSizeBytes, canceller);
        if (spare.empty()) return Status::Cancelled("memory to write with");
        lock.Lock();
        continue;
      }
      if (StepOverZeros(RoundUpToBlock(size))) continue;
      // While nothing is reserved yet: this may find no memory.
      if (!known_to_supply_) supply.Opened(weak_from_this());
      known_to_supply_ = true;
      OpenChunk(std::move(spare), size);
    }
    range = TakeFromChunk(size);
    // The chunk was used before: what stands between this extent and the next must not carry old bytes to the disk.
    std::memset(range.memory + size_bytes, 0, static_cast<size_t>(size - size_bytes));
    // Nothing can go wrong any more but the write of the whole run, so it counts now.
    active_->segment->CountAppended(size);
  }
  return range;
}

void Lane::OpenChunk(PooledBuffer buffer, uint64_t size_min_bytes) {
  uint64_t end = active_->position_bytes + kChunkSizeBytes;
  end = std::min(end, std::max(RoundDownToBlock(context_->options.segment_size_bytes),
                               active_->position_bytes + RoundUpToBlock(size_min_bytes)));
  if (active_->zeroing && active_->position_bytes < active_->zeroing_begin_bytes) {
    end = std::min(end, active_->zeroing_begin_bytes);
  }
  const uint64_t capacity = std::min<uint64_t>(end - active_->position_bytes, buffer.size());
  auto chunk = std::make_shared<Chunk>(std::move(buffer), active_->position_bytes);
  active_->segment->chunks()->Insert(chunk);  // first: what is staged in a chunk must be found by its readers
  chunk_ = std::move(chunk);
  chunk_capacity_bytes_ = capacity;
  active_->position_bytes += capacity;
}

StagedRange Lane::TakeFromChunk(uint64_t size_bytes) {
  const uint64_t used = chunk_->used_bytes.load(std::memory_order_relaxed);
  if (run_ == nullptr) {
    run_ = std::make_shared<Run>();
    run_->file = active_;
    run_->chunk = chunk_;
    run_->begin_bytes = used;
    run_->ticket = flush_started_ + 1;
  }
  run_->references.fetch_add(1, std::memory_order_relaxed);
  run_->end_bytes = used + size_bytes;
  chunk_->used_bytes.store(used + size_bytes, std::memory_order_release);
  last_ticket_ = std::max(last_ticket_, run_->ticket);
  return {run_, chunk_->buffer.data() + used, chunk_->file_offset_bytes + used, run_->ticket};
}

void Lane::FinishStaged(const StagedRange& range) noexcept {
  if (range.run->references.fetch_sub(1, std::memory_order_acq_rel) == 1) WriteRun(range.run);
}

void Lane::CloseRun(Aftermath* aftermath) noexcept {
  if (run_ == nullptr) return;
  // The next extent starts in the next block, so that a block that was flushed is never written again.
  chunk_->used_bytes.store(RoundUpToBlock(run_->end_bytes), std::memory_order_release);
  ++chunk_->unwritten_runs;
  unwritten_.push_back(run_);
  if (run_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) aftermath->to_write.push_back(run_);
  run_.reset();
}

void Lane::DetachChunk(Aftermath* aftermath) noexcept {
  if (chunk_ == nullptr) return;
  CloseRun(aftermath);
  chunk_->detached = true;
  const uint64_t used = chunk_->used_bytes.load(std::memory_order_relaxed);
  if (active_->position_bytes == chunk_->file_offset_bytes + chunk_capacity_bytes_) {
    active_->position_bytes = chunk_->file_offset_bytes + used;
  }
  if (chunk_->unwritten_runs == 0) {
    aftermath->file = active_;
    (active_->failed ? aftermath->to_drop : aftermath->to_keep).push_back(chunk_);
  }
  chunk_.reset();
}

void Lane::SealActive(Aftermath* aftermath) noexcept {
  DetachChunk(aftermath);
  active_->sealed = true;
  AddToFlush(active_);  // in any case, and then its tail is cut off
  active_.reset();
}

void Lane::AddToFlush(const std::shared_ptr<SegmentFile>& file) noexcept {
  if (!std::exchange(file->dirty, true)) dirty_.push_back(file);
}

void Lane::Settle(Aftermath aftermath) noexcept {
  for (const std::shared_ptr<Chunk>& chunk : aftermath.to_keep) {
    context_->recent.Keep(aftermath.file->segment->chunks(), chunk);
  }
  for (const std::shared_ptr<Chunk>& chunk : aftermath.to_drop) {
    aftermath.file->segment->chunks()->Erase(chunk->file_offset_bytes);
  }
  for (const std::shared_ptr<Run>& run : aftermath.to_write) WriteRun(run);
}

void Lane::WriteRun(const std::shared_ptr<Run>& run) noexcept {
  SegmentFile& file = *run->file;
  Chunk& chunk = *run->chunk;
  const uint64_t size = RoundUpToBlock(run->end_bytes) - run->begin_bytes;
  const uint64_t padding = run->begin_bytes + size - run->end_bytes;
  bool failed = false;
  {
    MutexLock lock(mutex_);
    failed = file.failed;
  }
  Status status;
  if (!failed) {
    std::memset(chunk.buffer.data() + run->end_bytes, 0, padding);
    status = file.file()->WriteAt(chunk.file_offset_bytes + run->begin_bytes,
                                  {chunk.buffer.data() + run->begin_bytes, size});
    context_->counters.Add(Counter::kWriteCalls);
    context_->counters.Add(Counter::kFileBytesWritten, size);
    context_->counters.Add(Counter::kPaddingBytesWritten, padding);
  }
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    unwritten_.erase(std::find(unwritten_.begin(), unwritten_.end(), run));
    --chunk.unwritten_runs;
    if (!status.ok()) {
      context_->NotePathFailure(path_number_, status);
      Fail(run->file, run->ticket, status, &aftermath);
    } else if (!failed) {
      MarkDirty(run->file, chunk.file_offset_bytes + run->begin_bytes,
                chunk.file_offset_bytes + run->begin_bytes + size);
    }
    if (chunk.detached && chunk.unwritten_runs == 0) {
      aftermath.file = run->file;
      (file.failed ? aftermath.to_drop : aftermath.to_keep).push_back(run->chunk);
    }
    written_.NotifyAll();
  }
  Settle(std::move(aftermath));
}

void Lane::MarkDirty(const std::shared_ptr<SegmentFile>& file, uint64_t begin_bytes, uint64_t end_bytes) noexcept {
  assert(!file->pin.empty());
  if (begin_bytes < file->zeroed_begin_bytes || end_bytes > file->zeroed_end_bytes) file->grew = true;
  unflushed_bytes_ += end_bytes - begin_bytes;
  AddToFlush(file);
}

Result<PrivateRange> Lane::ReservePrivate(uint64_t size_max_bytes, const Canceller* canceller) {
  const uint64_t size = RoundUpToBlock(size_max_bytes);
  PrivateRange range;
  ByteRange allocation;
  {
    MutexLock lock(mutex_);
    do {
      QUARRY_TRY(EnsureActive(size, false, canceller));
    } while (StepOverZeros(size));
    range.file = active_;
    range.offset_bytes = active_->position_bytes;
    range.size_bytes = size;
    active_->position_bytes += size;
    ++active_->private_in_flight;
    allocation = ClaimAllocation();
  }
  if (allocation.end_bytes > allocation.begin_bytes) {
    // Only a hint: without it parallel writes queue on the inode, and a full disk shows at the write itself.
    const Status status = OrOutOfMemory([&] {
      return range.file->file()->Allocate(allocation.begin_bytes, allocation.end_bytes - allocation.begin_bytes);
    });
    if (!status.ok() && status.code() != StatusCode::kNoSpace && status.code() != StatusCode::kOutOfMemory) {
      return FinishPrivate(range, 0, status).status();
    }
  }
  return range;
}

void Lane::ShrinkPrivate(PrivateRange* range, uint64_t used_bytes) {
  MutexLock lock(mutex_);
  if (active_ != range->file || active_->position_bytes != range->offset_bytes + range->size_bytes) return;
  range->size_bytes = RoundUpToBlock(used_bytes);
  active_->position_bytes = range->offset_bytes + range->size_bytes;
}

Result<uint64_t> Lane::FinishPrivate(const PrivateRange& range, uint64_t stored_bytes, const Status& written) noexcept {
  SegmentFile& file = *range.file;
  const uint64_t used_end = range.offset_bytes + RoundUpToBlock(stored_bytes);
  const uint64_t range_end = range.offset_bytes + range.size_bytes;
  Aftermath aftermath;
  Status status = written;
  context_->NotePathFailure(path_number_, status);
  uint64_t ticket = 0;
  bool punch = false;
  {
    MutexLock lock(mutex_);
    --file.private_in_flight;
    ticket = flush_started_ + 1;
    if (status.ok()) {
      status = FailureOf(file.segment->number(), ticket);
    } else if (status.code() != StatusCode::kNoSpace && status.code() != StatusCode::kKeyUnavailable &&
               status.code() != StatusCode::kCancelled && status.code() != StatusCode::kOutOfMemory) {
      Fail(range.file, ticket, status, &aftermath);
    }
    // Even a failed attempt may have written: a sealed file waits for one more flush before its tail is cut off.
    if (!file.failed) MarkDirty(range.file, range.offset_bytes, range_end);
    if (status.ok()) {
      last_ticket_ = std::max(last_ticket_, ticket);
      file.segment->CountAppended(stored_bytes);
      punch = used_end < std::min(range_end, std::max(file.allocated_end_bytes, file.zeroing_end_bytes));
    }
  }
  Settle(std::move(aftermath));
  if (!status.ok()) return status;
  if (punch && context_->MayGiveBack(file.segment->store())) {
    context_->paths[path_number_].tasks->Submit([keep = range.file, used_end, range_end] {
      // Only space is at stake: what stays allocated shows in real_bytes, and goes with the next GC. Never by name:
      // GC may have put another file in its place.
      if (const WritePin pin = keep->slot.PinIfOpen(); !pin.empty()) {
        (void)pin->PunchHole(used_end, range_end - used_end);
      }
    });
  }
  return ticket;
}

void Lane::GiveUpChunk() {
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    known_to_supply_ = false;
    DetachChunk(&aftermath);
  }
  Settle(std::move(aftermath));
}

void Lane::LetGoOfFiles() {
  {
    MutexLock lock(mutex_);
    // Pinned and not dirty: an append that was given up.
    if (active_ != nullptr && !active_->pin.empty()) AddToFlush(active_);
    if (!dirty_.empty()) last_ticket_ = std::max(last_ticket_, flush_started_ + 1);
  }
  (void)AskForFlush();  // who needs a descriptor asks again
}

}  // namespace quarry
