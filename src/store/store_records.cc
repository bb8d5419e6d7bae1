// What StoreImpl tells the catalogue: its binding, its segments, and which of them are gone.
#include <algorithm>

#include "context/layout.h"
#include "io/path.h"
#include "quarry/memory_guard.h"
#include "store/store_impl.h"

namespace quarry {

StoreImpl::Binding StoreImpl::GetBinding() const {
  MutexLock lock(binding_mutex_);
  return binding_;
}

CatalogueStore StoreImpl::Describe(const Binding& binding) const {
  CatalogueStore record;
  record.store = id_;
  record.created_micros = created_micros_;
  record.next_segment = SegmentNumber{next_segment_.load()};
  record.rebinding = binding.rebinding;
  record.discarded = binding.discarded;
  record.discarded_at_lsn = binding.discarded_at_lsn;
  record.prefix_limit_bytes = binding.prefix_limit_bytes;
  record.table_name = binding.table_name;
  record.tables = binding.tables;
  return record;
}

CatalogueSegment StoreImpl::Describe(const Segment& segment) const {
  CatalogueSegment record;
  record.store = id_;
  record.segment = segment.number();
  record.path_number = segment.path_number();
  record.state = segment.state();
  record.salt = segment.salt();
  if (record.state == SegmentState::kActive) return record;
  record.counted = segment.counted();
  record.size_bytes = segment.size_bytes();
  record.extents = segment.extents();
  const Segment::Content content = segment.content();
  record.plain_bytes = content.plain_bytes;
  record.encrypted_bytes = content.encrypted_bytes;
  record.oldest_key_version = content.oldest_key_version;
  const uint64_t counted_bytes = segment.counted_bytes();
  record.dead_bytes = std::min(counted_bytes, segment.dead_bytes());
  record.live_bytes = counted_bytes - record.dead_bytes;
  return record;
}

bool StoreImpl::MayBeCollected() const { return !GetBinding().tables.empty() && context_->CheckGiveBack(id_).ok(); }

Status StoreImpl::SetBinding(const Binding& binding) {
  Binding changed = binding;  // before it is durable: behind that nothing may fail
  Catalogue::Ticket ticket;
  {
    MutexLock lock(record_mutex_);
    if (!is_in_doubt_ && binding == GetBinding()) return Status::Ok();
    std::vector<CatalogueRecord> records = {Describe(binding)};
    if (!is_recorded_) {
      for (const std::shared_ptr<Segment>& segment : AllSegments()) records.emplace_back(Describe(*segment));
    }
    is_in_doubt_ = true;
    ticket = context_->catalogue->Append(std::move(records));
  }
  QUARRY_TRY(context_->catalogue->Sync(ticket));
  MutexLock lock(record_mutex_);
  is_in_doubt_ = false;
  is_recorded_ = true;
  MutexLock binding_lock(binding_mutex_);
  binding_ = std::move(changed);
  discarded_.store(binding.discarded, std::memory_order_release);
  return Status::Ok();
}

std::vector<CatalogueRecord> StoreImpl::TakeSealed() {
  std::vector<CatalogueRecord> records;
  std::erase_if(active_recorded_, [&](SegmentNumber number) {
    const std::shared_ptr<Segment> segment = FindSegment(number);
    if (segment == nullptr) return true;
    if (segment->state() == SegmentState::kActive) return false;
    records.emplace_back(Describe(*segment));
    return true;
  });
  return records;
}

// Segments that were sealed meanwhile go along: that takes no flush of its own.
Status StoreImpl::RecordNewSegment(const std::shared_ptr<Segment>& segment) {
  Catalogue::Ticket ticket;
  {
    MutexLock lock(record_mutex_);
    if (is_going()) return NotFound(segment->number());
    std::vector<CatalogueRecord> records = TakeSealed();
    records.emplace_back(Describe(*segment));
    ticket = context_->catalogue->Append(std::move(records));
    active_recorded_.push_back(segment->number());
  }
  return context_->catalogue->Sync(ticket);
}

// Segments that no record names stay so until a mark pass has found something needed in them.
Catalogue::Ticket StoreImpl::RecordChanges() {
  MutexLock lock(record_mutex_);
  if (is_going() || !is_recorded_) return nullptr;
  std::vector<CatalogueRecord> records;
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    CatalogueSegment record = Describe(*segment);
    if (context_->catalogue->IsOutdated(record)) records.emplace_back(std::move(record));
  }
  return context_->catalogue->Append(std::move(records));
}

Catalogue::Ticket StoreImpl::RecordSegments(std::span<const SegmentNumber> segments) {
  MutexLock lock(record_mutex_);
  if (is_going() || !is_recorded_) return nullptr;
  std::vector<CatalogueRecord> records;
  for (const SegmentNumber number : segments) {
    if (const std::shared_ptr<Segment> segment = FindSegment(number)) records.emplace_back(Describe(*segment));
  }
  return context_->catalogue->Append(std::move(records));
}

Status StoreImpl::UnlinkSegment(const std::shared_ptr<Segment>& segment) {
  QUARRY_TRY(context_->CheckWritable(segment->path_number()));
  QUARRY_TRY(context_->CheckGiveBack(id_));
  MutexLock swap_lock(swap_mutex_);
  Catalogue::Ticket ticket;
  {
    MutexLock lock(record_mutex_);
    if (is_going()) return Status::Ok();           // with all the others
    if (!IsCurrent(segment)) return Status::Ok();  // another pass was here
    // Before the file goes: a record of a file that is not there would be taken for a loss, and the number of a segment
    // that no record ever named would be given out again.
    ticket = context_->catalogue->Append({CatalogueSegmentGone{id_, segment->number()}});
    ExclusiveLock segments_lock(segments_mutex_);
    segments_.erase(segment->number().value);
  }
  if (Status status = context_->catalogue->Sync(ticket); !status.ok()) {
    RegisterSegment(segment);
    return status;
  }
  SharedLock lock(location_mutex_);
  Result<std::string> directory = SegmentDirectoryLocked(segment->path_number());
  Status status = directory.status();
  if (status.ok()) {
    status = OrOutOfMemory([&] {
      return IgnoreNotFound(context_->env->RemoveFile(JoinPath(*directory, SegmentFileName(segment->number()))));
    });
  }
  if (!status.ok()) {
    RegisterSegment(segment);  // still there: for the next pass
    return status;
  }
  return context_->env->SyncDirectory(*directory);
}

}  // namespace quarry
