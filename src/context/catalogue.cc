#include "context/catalogue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "io/path.h"
#include "quarry/memory_guard.h"

namespace quarry {
namespace {

/// Of a snapshot, taken under the lock at a time.
constexpr size_t kRecordsAtOnce = 1000;
/// A log is renewed when it has so many times the size that it had as a snapshot.
constexpr uint64_t kGrowth = 4;

}  // namespace

struct Catalogue::Batch {
  std::vector<CatalogueRecord> records;
  bool is_done = false;
  Status status;
};

Catalogue::Catalogue(Env* env, std::string home, CatalogueState state, std::vector<uint64_t> generations,
                     uint64_t renewal_min_bytes, CounterSet* counters)
    : env_(env),
      home_(std::move(home)),
      renewal_min_bytes_(renewal_min_bytes),
      counters_(counters),
      state_(std::move(state)),
      last_generation_(generations.empty() ? 0 : generations.back()),
      to_remove_(std::move(generations)) {}

Status Catalogue::Begin(std::vector<CatalogueRecord> changes) {
  bool has_begun = false;
  {
    MutexLock lock(mutex_);
    has_begun = log_ != nullptr;
    if (!has_begun) {
      for (const CatalogueRecord& record : changes) state_.Apply(record);
    }
  }
  return has_begun ? Commit(std::move(changes)) : Renew();
}

// ---- changes ----

Catalogue::Ticket Catalogue::Append(std::vector<CatalogueRecord> records) {
  if (records.empty()) return nullptr;
  MutexLock lock(mutex_);
  if (open_ == nullptr) open_ = std::make_shared<Batch>();
  open_->records.insert(open_->records.end(), std::make_move_iterator(records.begin()),
                        std::make_move_iterator(records.end()));  // all of them, or, without memory, none
  return open_;
}

Status Catalogue::Sync(const Ticket& ticket) {
  if (ticket == nullptr) return Status::Ok();
  bool is_too_long = false;
  {
    MutexLock lock(mutex_);
    while (!ticket->is_done) {
      if (is_flushing_ || (is_broken_ && is_renewing_)) {
        changed_.Wait(mutex_);
      } else if (!is_broken_) {
        LeadFlush();
      } else {
        lock.Unlock();
        Status status = Renew();
        lock.Lock();
        if (!status.ok() && ticket == open_) Finish(std::exchange(open_, nullptr), std::move(status));
      }
    }
    is_too_long = IsTooLong();
    // When it is not done, or fails: not again before the log has grown as much once more.
    if (is_too_long) renew_at_bytes_ = log_size_bytes_ + renewal_min_bytes_;
  }
  if (is_too_long && request_renewal_) request_renewal_();
  return ticket->status;  // constant once it is done
}

Status Catalogue::BecomeWritable() {
  MutexLock lock(mutex_);
  while (is_broken_) {
    if (is_flushing_ || is_renewing_) {
      changed_.Wait(mutex_);
      continue;
    }
    lock.Unlock();
    const Status status = Renew();
    lock.Lock();
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

void Catalogue::Finish(const Ticket& batch, Status status) {
  batch->status = std::move(status);
  batch->is_done = true;
  changed_.NotifyAll();
}

void Catalogue::LeadFlush() {
  const Ticket batch = std::exchange(open_, nullptr);
  CatalogueWriter* const log = log_.get();
  is_flushing_ = true;
  mutex_.Unlock();
  Status status = OrOutOfMemory([&]() -> Status {
    QUARRY_TRY(log->Add(batch->records, false));
    return log->Flush();
  });
  counters_->Add(Counter::kCatalogueFlushes);
  mutex_.Lock();
  is_flushing_ = false;
  log_size_bytes_ = log->size_bytes();
  if (status.ok()) {
    NoteDurable(batch->records);
  } else {
    is_broken_ = true;
  }
  Finish(batch, std::move(status));
}

void Catalogue::NoteDurable(const std::vector<CatalogueRecord>& records) noexcept {
  for (const CatalogueRecord& record : records) state_.Apply(record);
  if (is_renewing_) meanwhile_.insert(meanwhile_.end(), records.begin(), records.end());
}

bool Catalogue::IsTooLong() const { return !is_broken_ && !is_renewing_ && log_size_bytes_ >= renew_at_bytes_; }

// ---- generations ----

Status Catalogue::Renew() {
  uint64_t generation = 0;
  {
    MutexLock lock(mutex_);
    if (is_renewing_) return Status::Ok();
    is_renewing_ = true;
    generation = ++last_generation_;
  }
  std::unique_ptr<CatalogueWriter> writer;
  // No error is copied outside of the guard: others wait for is_renewing_.
  Status status = OrOutOfMemory([&]() -> Status {
    QUARRY_TRY_ASSIGN(writer, WriteSnapshot(generation));
    return Status::Ok();
  });
  std::vector<uint64_t> to_remove;
  {
    MutexLock lock(mutex_);
    if (status.ok()) {
      while (is_flushing_) changed_.Wait(mutex_);
      is_flushing_ = true;
      lock.Unlock();
      status = OrOutOfMemory([&] { return TakeOver(std::move(writer)); });
      lock.Lock();
      is_flushing_ = false;
    }
    // Until another one counts, that of before is all that there is.
    if (!is_broken_) to_remove = std::exchange(to_remove_, {});
    is_renewing_ = false;
    meanwhile_.clear();
    changed_.NotifyAll();
  }
  if (!status.ok()) to_remove.push_back(generation);
  // What stays is in nobody's way, and goes at the next start.
  for (const uint64_t number : to_remove) (void)env_->RemoveFile(JoinPath(home_, CatalogueFileName(number)));
  return status;
}

// What changes meanwhile is written behind it, so it need not be of one moment.
Result<std::unique_ptr<CatalogueWriter>> Catalogue::WriteSnapshot(uint64_t generation) {
  QUARRY_TRY_ASSIGN(std::unique_ptr<CatalogueWriter> writer, CatalogueWriter::Create(env_, home_, generation));
  StoreId next;
  std::vector<CatalogueRecord> records;
  {
    MutexLock lock(mutex_);
    records = state_.CommonRecords();
  }
  do {
    QUARRY_TRY(writer->Add(records, true));
    MutexLock lock(mutex_);
    records = state_.SomeRecords(&next, kRecordsAtOnce);
  } while (next.value != 0);
  QUARRY_TRY(writer->Add(records, true));
  QUARRY_TRY(writer->Flush());
  return writer;
}

Status Catalogue::TakeOver(std::unique_ptr<CatalogueWriter> writer) {
  std::vector<CatalogueRecord> records;
  {
    MutexLock lock(mutex_);
    to_remove_.reserve(to_remove_.size() + 1);  // behind the flush nothing may fail
    records = std::exchange(meanwhile_, {});
    records.emplace_back(CatalogueEnd{state_.installation});
  }
  Status status = OrOutOfMemory([&]() -> Status {
    QUARRY_TRY(writer->Add(records, true));
    QUARRY_TRY(writer->Flush());
    return env_->SyncDirectory(home_);
  });
  counters_->Add(Counter::kCatalogueFlushes);
  if (!status.ok()) {
    // It may count all the same. While it is there, nothing that it lacks may become durable in another one.
    const Status removed = OrOutOfMemory([&]() -> Status {
      QUARRY_TRY(env_->RemoveFile(JoinPath(home_, CatalogueFileName(writer->generation()))));
      return env_->SyncDirectory(home_);
    });
    MutexLock lock(mutex_);
    is_broken_ = is_broken_ || !removed.ok();
    return status;
  }
  MutexLock lock(mutex_);
  if (log_ != nullptr) to_remove_.push_back(log_->generation());
  log_size_bytes_ = writer->size_bytes();
  renew_at_bytes_ = std::max(renewal_min_bytes_, kGrowth * log_size_bytes_);
  log_ = std::move(writer);
  is_broken_ = false;
  return status;
}

// ---- what is known ----

CatalogueState Catalogue::state() const {
  MutexLock lock(mutex_);
  return state_;
}

std::vector<CatalogueDamage> Catalogue::damage() const {
  MutexLock lock(mutex_);
  return state_.damage;
}

CatalogueScrubPlace Catalogue::scrub() const {
  MutexLock lock(mutex_);
  return state_.scrub;
}

bool Catalogue::IsOutdated(const CatalogueSegment& segment) const {
  MutexLock lock(mutex_);
  const auto store = state_.stores.find(segment.store);
  if (store == state_.stores.end()) return false;
  const auto found = store->second.segments.find(segment.segment.value);
  return found != store->second.segments.end() && found->second != segment;
}

bool Catalogue::MayGiveBack(StoreId store) const {
  MutexLock lock(mutex_);
  return state_.MayGiveBack(store);
}

StoreId Catalogue::TakeStoreId() {
  MutexLock lock(mutex_);
  return StoreId{state_.installation.next_store.value++};
}

void Catalogue::RaiseStoreId(StoreId found) {
  MutexLock lock(mutex_);
  StoreId& next = state_.installation.next_store;
  next = std::max(next, StoreId{found.value + 1});
}

}  // namespace quarry
