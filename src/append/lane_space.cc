// The space half of Lane: blocks allocated ahead, tails cut off.
#include <algorithm>
#include <chrono>

#include "append/lane.h"

namespace quarry {
namespace {

constexpr uint64_t kAllocationMinBytes = 1ULL << 20;
constexpr uint64_t kAllocationMaxBytes = 16ULL << 20;
/// Of the file's size: bounds what allocating ahead can waste in a store that then falls silent.
constexpr uint64_t kAllocationShare = 8;
constexpr uint64_t kSealWaitMaxMicros = 10'000'000;
constexpr std::chrono::milliseconds kSealStep{1};

}  // namespace

Lane::ByteRange Lane::ClaimAllocation() {
  SegmentFile& file = *active_;
  // A lone writer gains nothing. Several would take the inode's lock one after the other to make the file grow: ext4
  // lets only writes into allocated blocks run side by side (store_benchmark.cc measures it).
  if (file.private_in_flight < 2 || file.position_bytes <= file.allocated_end_bytes) return {};
  const uint64_t begin = std::max({file.allocated_end_bytes, file.zeroing_end_bytes,
                                   active_->position_bytes - std::min(active_->position_bytes, kAllocationMinBytes)});
  const uint64_t ahead = std::clamp(file.position_bytes / kAllocationShare, kAllocationMinBytes, kAllocationMaxBytes);
  const uint64_t end = RoundDownToBlock(
      std::max(file.position_bytes, std::min(file.position_bytes + ahead, context_->options.segment_size_bytes)));
  if (end <= begin) return {};
  file.allocated_end_bytes = end;
  return {RoundDownToBlock(begin), end};
}

bool Lane::FinishSealed(SegmentFile* file) {
  file->segment->set_size_bytes(file->position_bytes);
  file->segment->set_state(SegmentState::kSealed);
  return std::max(file->allocated_end_bytes, file->zeroing_end_bytes) > file->position_bytes;
}

Status Lane::CutTail(const std::shared_ptr<SegmentFile>& file) {
  if (!context_->MayGiveBack(file->segment->store())) return Status::Ok();
  uint64_t position = 0;
  {
    MutexLock lock(mutex_);
    if (file->failed || file->zeroing || file->segment->state() != SegmentState::kSealed) return Status::Ok();
    position = file->position_bytes;
    if (std::max(file->allocated_end_bytes, file->zeroing_end_bytes) <= position) return Status::Ok();
  }
  // Never by name: GC may have put another file in its place. A tail that stays goes with the next pass.
  const WritePin pin = file->slot.PinIfOpen();
  return pin.empty() ? Status::Ok() : pin->Truncate(position);
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
  return CutTail(file);
}

void Lane::SealForGc() {
  PathHealth* const health = context_->paths[path_number_].health.get();
  Env* const env = context_->env;
  const uint64_t began_micros = env->MonotonicMicros();
  if (health->IsSlow(began_micros)) return;
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
  // Not AwaitFlush: a device that hangs would keep GC from all others.
  bool is_asked_for = false;
  for (uint64_t now = began_micros; flush_completed_.load(std::memory_order_acquire) < ticket;
       now = env->MonotonicMicros()) {
    if (health->IsSlow(now) || now - began_micros > kSealWaitMaxMicros) return;
    if (!is_asked_for) is_asked_for = AskForFlush();
    MutexLock lock(mutex_);
    if (flush_completed_.load(std::memory_order_relaxed) < ticket) (void)written_.WaitFor(mutex_, kSealStep);
  }
  if (file != nullptr) (void)CutTail(file);  // a tail that stays only costs space until the next pass
}

bool Lane::TakeWritten(SegmentNumber segment, uint64_t* end_bytes, uint64_t* counted_bytes) {
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    if (active_ == nullptr || active_->segment->number() != segment) return false;
    if (flush_completed_ < last_ticket_ || active_->private_in_flight > 0) return false;
    // The chunk's unused range goes back, so that nothing is written before the end any more.
    DetachChunk(&aftermath);
    *end_bytes = active_->position_bytes;
    *counted_bytes = active_->segment->counted_bytes();
  }
  Settle(std::move(aftermath));
  return true;
}

}  // namespace quarry
