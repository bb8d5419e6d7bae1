// The flushing half of Lane: group commit and failures.
#include <algorithm>
#include <optional>

#include "append/lane.h"

namespace quarry {

bool Lane::StartFlush(uint64_t ticket) { return RequestFlush(ticket, true); }

bool Lane::RequestFlush(uint64_t ticket, bool for_committer) {
  if (ticket == 0) ticket = LastTicket();
  if (flush_completed_.load(std::memory_order_acquire) >= ticket) return false;
  mutex_.Lock();
  ticket = std::min(ticket, flush_started_ + 1);  // none is handed out beyond the next flush
  if (flush_completed_.load(std::memory_order_relaxed) >= ticket) {
    mutex_.Unlock();
    return false;
  }
  if (for_committer) CountCommitter(ticket);
  flush_wanted_ = std::max(flush_wanted_, ticket);
  const bool is_led = std::exchange(flush_active_, true);
  mutex_.Unlock();
  if (is_led || HandOver()) return true;
  mutex_.Lock();
  LeadFlushes(false);
  return true;
}

bool Lane::AskForFlush() {
  return context_->flush_threads.Submit([lane = shared_from_this()] { (void)lane->RequestFlush(0, false); });
}

bool Lane::HandOver() {
  return context_->flush_threads.Submit([lane = shared_from_this()] {
    lane->mutex_.Lock();
    lane->LeadFlushes(true);
  });
}

void Lane::CountCommitter(uint64_t ticket) { ++(ticket > flush_started_ ? committers_next_ : committers_current_); }

Status Lane::Sync(SegmentNumber segment, uint64_t ticket, bool counted, const Canceller* canceller) {
  if (ticket == 0) ticket = LastTicket();
  if (ticket == 0) return Status::Ok();  // nothing was ever appended here
  ticket = AwaitFlush(ticket, counted, canceller);
  if (ticket == 0) return Status::Cancelled("a flush");
  // A failure that concerns this ticket was there when its flush completed; a later one concerns later tickets only.
  if (!has_failures_.load(std::memory_order_relaxed)) return Status::Ok();
  MutexLock lock(mutex_);
  return FailureOf(segment, ticket);
}

Status Lane::SyncAll() {
  AwaitFlush(LastTicket());
  MutexLock lock(mutex_);
  return std::exchange(unreported_loss_, Status::Ok());
}

uint64_t Lane::LastTicket() {
  MutexLock lock(mutex_);
  return last_ticket_;
}

void Lane::WakeWaiters() {
  // Whoever looked at its canceller under the mutex, and found nothing, waits by now.
  { const MutexLock lock(mutex_); }
  rolled_.NotifyAll();
  for (EventCount& turn : turn_) turn.NotifyAll();
}

uint64_t Lane::AwaitFlush(uint64_t ticket, bool counted, const Canceller* canceller) {
  // Who was served leaves without the mutex: all of a group would else wake only to wait for it, one after the other.
  while (flush_completed_.load(std::memory_order_acquire) < ticket) {
    mutex_.Lock();
    ticket = std::min(ticket, flush_started_ + 1);  // none is handed out beyond the next flush
    if (flush_completed_.load(std::memory_order_relaxed) >= ticket) {
      mutex_.Unlock();
      break;
    }
    if (!std::exchange(counted, true)) CountCommitter(ticket);
    if (flush_active_) {
      // Who was woken to lead finds that nobody does, and leads: only followers give up.
      if (canceller != nullptr && canceller->IsCancelled()) {
        mutex_.Unlock();
        return 0;
      }
      EventCount& turn = turn_[ticket & 1U];
      const uint32_t seen = turn.Current();
      mutex_.Unlock();
      turn.AwaitChange(seen);
    } else {
      LeadFlushes(false);
    }
  }
  return ticket;
}

void Lane::LeadFlushes(bool is_flush_thread) {
  while (LeadFlush()) {
    if (!is_flush_thread && HandOver()) return;
    mutex_.Lock();
    if (is_flush_thread || committers_next_ == 0) continue;
    // To lead for those who come meanwhile would take as long as they keep coming. One of them leads: he waits already,
    // or finds nobody who does when he comes to wait.
    flush_active_ = false;
    EventCount& turn = turn_[(flush_started_ + 1) & 1U];
    mutex_.Unlock();
    turn.NotifyOne();
    return;
  }
}

bool Lane::HasUnwritten(uint64_t ticket) const {
  return std::any_of(unwritten_.begin(), unwritten_.end(),
                     [ticket](const std::shared_ptr<Run>& run) { return run->ticket <= ticket; });
}

bool Lane::LeadFlush() noexcept {
  flush_active_ = true;
  const uint64_t number = ++flush_started_;
  std::optional<PathHealth::Call> call;
  if (context_->HasAlternativePaths())
    call.emplace(context_->paths[path_number_].health.get(), context_->env->MonotonicMicros());
  committers_current_ = std::exchange(committers_next_, 0);
  Aftermath aftermath;
  CloseRun(&aftermath);
  mutex_.Unlock();
  Settle(std::move(aftermath));
  mutex_.Lock();
  // Fillers of this run, and of runs that a full chunk closed before, only copy and write: this ends.
  while (HasUnwritten(number)) written_.Wait(mutex_);

  std::vector<std::shared_ptr<SegmentFile>> files;
  files.swap(dirty_);
  const uint64_t flushed_bytes = std::exchange(unflushed_bytes_, 0);
  bool zeroed_only = true;
  for (const std::shared_ptr<SegmentFile>& file : files) {
    file->dirty = false;
    if (std::exchange(file->grew, false)) zeroed_only = false;
  }
  files.erase(std::remove_if(files.begin(), files.end(), [](const auto& file) { return file->failed; }), files.end());
  std::vector<Status> statuses(files.size());
  mutex_.Unlock();
  for (size_t i = 0; i < files.size(); ++i) {
    // One that is not pinned was flushed before, and sealed since.
    if (!files[i]->pin.empty()) statuses[i] = files[i]->file()->Sync();
  }
  mutex_.Lock();

  Aftermath losses;
  std::vector<std::shared_ptr<SegmentFile>> with_tail;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!statuses[i].ok()) {
      context_->counters.Add(Counter::kFlushErrors);
      // Whatever was written since the flush before this one may be gone, and later flushes would not say so.
      Fail(files[i], number, statuses[i], &losses);
    } else if (files[i]->sealed && !files[i]->failed && !IsAtWork(*files[i])) {
      if (FinishSealed(files[i].get())) with_tail.push_back(files[i]);
    }
  }
  for (const std::shared_ptr<SegmentFile>& file : files) UnpinIdle(file.get());
  call.reset();
  const auto failed = std::find_if(statuses.begin(), statuses.end(), [](const Status& status) { return !status.ok(); });
  if (failed != statuses.end()) {
    context_->NotePathFailure(path_number_, *failed);
  } else if (!files.empty()) {
    context_->paths[path_number_].health->NoteSuccess(this);
  }
  context_->counters.Add(Counter::kFlushes, files.size());
  if (zeroed_only && !files.empty()) context_->counters.Add(Counter::kFlushesZeroed, files.size());
  context_->counters.Add(Counter::kCommittersFlushed, committers_current_);
  committers_current_ = 0;
  flush_completed_.store(number, std::memory_order_release);
  const bool next_is_wanted = flush_wanted_ > number;
  flush_active_ = next_is_wanted;
  const bool wants_zeros = WantsZeros(flushed_bytes);
  mutex_.Unlock();

  // Without the mutex, which those who are woken may want. First one of those who came meanwhile, to lead: the next
  // flush is what everybody waits for.
  if (!next_is_wanted) turn_[(number + 1) & 1U].NotifyOne();
  turn_[number & 1U].NotifyAll();
  Settle(std::move(losses));
  for (const std::shared_ptr<SegmentFile>& file : with_tail) {
    // A tail that stays, because that fails or is refused, only costs space until a GC pass gives it back.
    context_->paths[path_number_].tasks->Submit([lane = shared_from_this(), file] { (void)lane->CutTail(file); });
  }
  if (wants_zeros) RequestZeros();
  return next_is_wanted;
}

void Lane::UnpinIdle(SegmentFile* file) {
  if (!IsAtWork(*file)) file->pin.Release();
}

bool Lane::IsAtWork(const SegmentFile& file) const {
  const auto is_its = [&file](const std::shared_ptr<Run>& run) { return run != nullptr && run->file.get() == &file; };
  return file.dirty || file.private_in_flight > 0 || is_its(run_) ||
         std::any_of(unwritten_.begin(), unwritten_.end(), is_its);
}

void Lane::Fail(const std::shared_ptr<SegmentFile>& file, uint64_t first_lost_ticket, const Status& status,
                Aftermath* aftermath) noexcept {
  // What no flush has covered yet is lost too, whoever wrote it: nothing is flushed in this file any more, not even by
  // a flush that has begun and not come to it.
  first_lost_ticket = std::min(first_lost_ticket, flush_completed_ + 1);
  if (!file->failed) {
    file->failed = true;
    file->segment->set_state(SegmentState::kPoisoned);
    context_->counters.Add(Counter::kSegmentsPoisoned);
  }
  const auto [failure, inserted] =
      failures_.try_emplace(file->segment->number().value, Failure{first_lost_ticket, status});
  if (!inserted) failure->second.first_lost_ticket = std::min(failure->second.first_lost_ticket, first_lost_ticket);
  has_failures_.store(true, std::memory_order_relaxed);  // published by the flush that completes
  unreported_loss_ = status;
  if (active_ != file) return;
  DetachChunk(aftermath);
  active_->sealed = true;
  active_.reset();
}

Status Lane::FailureOf(SegmentNumber segment, uint64_t ticket) const {
  const auto found = failures_.find(segment.value);
  if (found == failures_.end() || ticket < found->second.first_lost_ticket) return Status::Ok();
  // Those who waited for the very flush hear the system's own word, and whoever comes later that it is over.
  if (ticket == found->second.first_lost_ticket) return found->second.status;
  return Status::Poisoned("segment " + std::to_string(segment.value) +
                          " failed before: " + found->second.status.ToString());
}

}  // namespace quarry
