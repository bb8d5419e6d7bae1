// The rewriting half of StoreImpl: the file that GC writes beside a segment's own, and how it takes its place.
//
// Invariants:
//  - The segment's own file stays as it is until one rename replaces it, by one whose content was flushed before.
//    So every crash leaves the one or the other, each whole. No record has to agree: the file tells its layout.
//  - A Segment never sees two files: its own was opened before the rename, and another Segment is made for the new one.
#include "context/layout.h"
#include "io/path.h"
#include "store/store_impl.h"

namespace quarry {

bool StoreImpl::IsCurrent(const std::shared_ptr<Segment>& segment) const {
  return FindSegment(segment->number()) == segment;
}

bool StoreImpl::IsOnSlowPath(const Segment& segment) const {
  const uint32_t path = segment.path_number();
  return path < context_->paths.size() && context_->paths[path].health->IsSlow(context_->env->MonotonicMicros());
}

Result<StoreImpl::Look> StoreImpl::OpenForLook(const Segment& segment) {
  Look look{segment.FileIfOpen(), {}};
  if (!look.pin.empty()) return look;
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.TakeNow());
  QUARRY_TRY_ASSIGN(std::unique_ptr<ReadableFile> file, OpenSegmentForRead(segment.number(), segment.path_number()));
  look.opened = LeasedFile<ReadableFile>(std::move(lease), std::move(file));
  return look;
}

Result<FileSpace> StoreImpl::SpaceOf(const Segment& segment) {
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(segment.path_number()));
  return context_->env->GetFileSpace(JoinPath(directory, SegmentFileName(segment.number())));
}

Result<LeasedFile<WritableFile>> StoreImpl::OpenForHoles(const std::shared_ptr<Segment>& segment) {
  QUARRY_TRY(context_->CheckWritable(segment->path_number()));
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.Take());
  MutexLock swap_lock(swap_mutex_);
  SharedLock lock(location_mutex_);
  if (!IsCurrent(segment)) return NotFound(segment->number());
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(segment->path_number()));
  QUARRY_TRY_ASSIGN(std::unique_ptr<WritableFile> file,
                    context_->env->OpenForWrite(JoinPath(directory, SegmentFileName(segment->number()))));
  return LeasedFile<WritableFile>(std::move(lease), std::move(file));
}

Result<std::string> StoreImpl::RewrittenPathLocked(const Segment& segment) const {
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(segment.path_number()));
  return JoinPath(directory, RewrittenSegmentFileName(segment.number()));
}

Result<LeasedFile<WritableFile>> StoreImpl::CreateRewritten(const Segment& segment) {
  QUARRY_TRY(context_->CheckWritable(segment.path_number()));
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.Take());
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string path, RewrittenPathLocked(segment));
  // What an earlier try left is in nobody's use.
  if (const Status status = context_->env->RemoveFile(path); !status.ok() && status.code() != StatusCode::kNotFound) {
    return status;
  }
  QUARRY_TRY_ASSIGN(std::unique_ptr<WritableFile> file, context_->env->CreateFile(path));
  return LeasedFile<WritableFile>(std::move(lease), std::move(file));
}

Result<LeasedFile<ReadableFile>> StoreImpl::OpenRewritten(const Segment& segment) {
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.Take());
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string path, RewrittenPathLocked(segment));
  QUARRY_TRY_ASSIGN(std::unique_ptr<ReadableFile> file, context_->env->OpenForRead(path));
  return LeasedFile<ReadableFile>(std::move(lease), std::move(file));
}

void StoreImpl::RemoveRewritten(const Segment& segment) {
  if (!context_->CheckWritable(segment.path_number()).ok()) return;
  SharedLock lock(location_mutex_);
  const Result<std::string> path = RewrittenPathLocked(segment);
  // What stays is removed by the next try, or by the next start.
  if (path.ok()) (void)context_->env->RemoveFile(*path);
}

Status StoreImpl::PublishRewritten(const std::shared_ptr<Segment>& segment, uint64_t size_bytes,
                                   const Segment::Content& content, bool* is_in_place) {
  // Whoever holds the old one reads the old file, also if it is for the first time.
  QUARRY_TRY_ASSIGN(ReadPin old_file, segment->FileForRead(this));
  auto rewritten = std::make_shared<Segment>(context_, id_, segment->number(), segment->path_number());
  rewritten->TakeOver(*segment, size_bytes);
  rewritten->RestoreContent(content);
  // Appenders and readers go on meanwhile, on whatever path this file lies.
  MutexLock swap_lock(swap_mutex_);
  SharedLock lock(location_mutex_);
  if (is_going() || !IsCurrent(segment)) return NotFound(segment->number());
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(segment->path_number()));
  QUARRY_TRY(context_->env->Rename(JoinPath(directory, RewrittenSegmentFileName(segment->number())),
                                   JoinPath(directory, SegmentFileName(segment->number()))));
  segment->KeepOpen(std::move(old_file));
  RegisterSegment(rewritten);
  *is_in_place = true;
  context_->counters.Add(Counter::kFileBytesWritten, size_bytes);
  return context_->env->SyncDirectory(directory);
}

}  // namespace quarry
