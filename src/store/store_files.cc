// The file side of StoreImpl: where its files lie, new segments, the trash.
#include <algorithm>

#include "context/layout.h"
#include "format/extent.h"
#include "format/segment_header.h"
#include "io/path.h"
#include "quarry/memory_guard.h"
#include "store/store_impl.h"

namespace quarry {
namespace {

constexpr uint64_t kTriedSpaceBytes = 16ULL << 20;

}  // namespace

std::string StoreImpl::HomeDirectory(bool in_trash) const {
  const std::string parent =
      JoinPath(context_->options.home_path, in_trash ? kTrashDirectoryName : kStoresDirectoryName);
  return JoinPath(parent, StoreDirectoryName(id_));
}

Result<std::string> StoreImpl::SegmentDirectoryLocked(uint32_t path_number) const {
  if (path_number == 0) return HomeDirectory(in_trash_);
  if (path_number >= context_->paths.size()) {
    return Status::Unavailable("data path " + std::to_string(path_number) + " is not known to this installation");
  }
  const SegmentPath& path = context_->paths[path_number];
  if (!path.unavailable.empty()) return Status::Unavailable(path.unavailable);
  return JoinPath(path.directory, StoreDirectoryName(id_));
}

Result<std::string> StoreImpl::SegmentDirectory(uint32_t path_number) {
  SharedLock lock(location_mutex_);
  return SegmentDirectoryLocked(path_number);
}

// ---- segments ----

Result<std::shared_ptr<SegmentFile>> StoreImpl::CreateSegment(uint32_t path_number, std::weak_ptr<FileHolder> holder,
                                                              const Canceller* canceller) {
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.Take(1, canceller));
  // Else each try would leave a file without a record, as below, while the home's disk is full.
  QUARRY_TRY(context_->catalogue->BecomeWritable());
  SegmentHeader header;
  header.store = id_;
  QUARRY_TRY_ASSIGN(header.segment, TakeSegmentNumber());
  header.path_number = path_number;
  header.installation = context_->installation;
  header.created_micros = context_->env->NowMicros();
  QUARRY_TRY(context_->env->FillRandom(header.salt));
  if (const Binding binding = GetBinding(); !binding.tables.empty()) header.table = binding.tables.back();
  QUARRY_TRY(context_->CheckWritable(path_number));
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(path_number));
  uint64_t allocated_bytes = 0;
  Result<std::unique_ptr<WritableFile>> file = CreateSegmentFile(directory, header, &allocated_bytes);
  context_->NotePathFailure(path_number, file.status());
  if (!file.ok()) return file.status();
  auto segment = std::make_shared<Segment>(context_, id_, header.segment, path_number);
  segment->set_of_this_life();
  segment->set_salt(header.salt);
  // When this fails the file stays: its record may be there, and a file that is recorded must be there, too.
  QUARRY_TRY(RecordNewSegment(segment));
  RegisterSegment(segment);
  auto segment_file = std::make_shared<SegmentFile>(&context_->open_files, std::move(segment), kSegmentHeaderSizeBytes);
  segment_file->allocated_end_bytes = allocated_bytes;
  segment_file->pin = segment_file->slot.Put(std::move(lease), std::move(file).value(), std::move(holder));
  return segment_file;
}

Result<std::unique_ptr<WritableFile>> StoreImpl::CreateSegmentFile(const std::string& directory,
                                                                   const SegmentHeader& header,
                                                                   uint64_t* allocated_bytes) {
  Env* const env = context_->env;
  AlignedBuffer block(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(block.data(), kSegmentHeaderSizeBytes));
  if (header.path_number != 0) {
    Status made = env->CreateDirectory(directory);
    if (made.ok()) made = env->SyncDirectory(ParentPath(directory));
    if (!made.ok()) {
      GiveBackSegmentNumber(header.segment);
      return made;
    }
  }
  const std::string path = JoinPath(directory, SegmentFileName(header.segment));
  Result<std::unique_ptr<WritableFile>> created = env->CreateFile(path);
  if (!created.ok()) {
    if (created.status().code() != StatusCode::kAlreadyExists) GiveBackSegmentNumber(header.segment);
    return created.status();
  }
  std::unique_ptr<WritableFile> file = std::move(created).value();
  // Header and name are durable before the first extent, so a file without a header holds nothing committed.
  Status status = file->WriteAt(0, block.span());
  if (status.ok()) status = file->Sync();
  // Where others failed before, it takes more than a header to show that there is room again.
  if (status.ok() && context_->paths[header.path_number].health->has_failed()) {
    *allocated_bytes = RoundDownToBlock(std::min(kTriedSpaceBytes, context_->options.segment_size_bytes));
    status = file->Allocate(0, *allocated_bytes);
  }
  if (status.ok()) status = env->SyncDirectory(directory);
  if (!status.ok()) {
    file.reset();
    // What stays, or comes back when power goes, has no record and no extent: the next pass removes it.
    if (env->RemoveFile(path).ok() && env->SyncDirectory(directory).ok()) GiveBackSegmentNumber(header.segment);
    return status;
  }
  context_->counters.Add(Counter::kWriteCalls);
  context_->counters.Add(Counter::kFileBytesWritten, block.size());
  return file;
}

Result<SegmentNumber> StoreImpl::TakeSegmentNumber() {
  uint32_t number = next_segment_.load();
  do {
    if (number == UINT32_MAX) {
      return Status::NotSupported("store " + std::to_string(id_.value) +
                                  " has used all of its 4294967294 segment numbers: rebuild the table (ALTER TABLE ... "
                                  "FORCE), which gives it a new store");
    }
  } while (!next_segment_.compare_exchange_strong(number, number + 1));
  return SegmentNumber{number};
}

void StoreImpl::GiveBackSegmentNumber(SegmentNumber number) {
  uint32_t next = number.value + 1;
  (void)next_segment_.compare_exchange_strong(next, number.value);  // unless a later one was taken
}

Result<std::unique_ptr<WritableFile>> StoreImpl::OpenSegmentForWrite(SegmentNumber segment, uint32_t path_number) {
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(path_number));
  return context_->env->OpenForWrite(JoinPath(directory, SegmentFileName(segment)));
}

Result<std::unique_ptr<ReadableFile>> StoreImpl::OpenSegmentForRead(SegmentNumber segment, uint32_t path_number) {
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(path_number));
  return context_->env->OpenForRead(JoinPath(directory, SegmentFileName(segment)));
}

// ---- sealing ----

Status StoreImpl::Seal() {
  Status first;
  for (const std::shared_ptr<Lane>& lane : lanes_) {
    if (Status status = lane->Seal(); !status.ok() && first.ok()) first = status;
  }
  return first;
}

void StoreImpl::SealForGc() {
  for (const std::shared_ptr<Lane>& lane : lanes_) lane->SealForGc();
}

std::vector<std::shared_ptr<Segment>> StoreImpl::SealedSegments() const {
  std::vector<std::shared_ptr<Segment>> segments = AllSegments();
  std::erase_if(segments, [](const auto& segment) { return segment->state() == SegmentState::kActive; });
  return segments;
}

// ---- scrub ----

std::optional<ExpectedSegment> StoreImpl::ExpectOnDisk(const Segment& segment) {
  // Its creation was cut off, and nothing was ever appended.
  if (segment.counted() == CountedExtents::kEstimated && segment.size_bytes() <= kSegmentHeaderSizeBytes) {
    return std::nullopt;
  }
  ExpectedSegment expected;
  expected.store = id_;
  expected.segment = segment.number();
  expected.installation = context_->installation;
  expected.salt = segment.salt();
  expected.gc_may_run = true;
  if (segment.state() == SegmentState::kActive) {
    Lane* const lane = LaneOfPath(segment.path_number());
    uint64_t counted_bytes = 0;
    if (lane == nullptr || !lane->TakeWritten(segment.number(), &expected.end_bytes, &counted_bytes)) {
      return std::nullopt;
    }
    expected.counted_bytes = counted_bytes;
  } else if (segment.state() == SegmentState::kSealed) {
    expected.counted_bytes = segment.counted_bytes();
    expected.counted = segment.counted();
  }
  return expected;
}

Result<LeasedFile<ReadableFile>> StoreImpl::OpenSegmentForVerify(const Segment& segment, std::string* path) {
  QUARRY_TRY_ASSIGN(OpenFiles::Lease lease, context_->open_files.Take());
  SharedLock lock(location_mutex_);
  QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(segment.path_number()));
  *path = JoinPath(directory, SegmentFileName(segment.number()));
  QUARRY_TRY_ASSIGN(std::unique_ptr<ReadableFile> file, context_->env->OpenForVerify(*path));
  return LeasedFile<ReadableFile>(std::move(lease), std::move(file));
}

// ---- trash ----

Status StoreImpl::MoveToWhereItBelongs() {
  Env* const env = context_->env;
  const bool to_trash = GetBinding().discarded;
  ExclusiveLock lock(location_mutex_);
  if (in_trash_ == to_trash) return Status::Ok();
  const std::string from = HomeDirectory(in_trash_);
  const std::string to = HomeDirectory(to_trash);
  QUARRY_TRY(env->Rename(from, to));
  in_trash_ = to_trash;
  QUARRY_TRY(env->SyncDirectory(ParentPath(to)));
  return env->SyncDirectory(ParentPath(from));
}

bool StoreImpl::BeginUnlink() {
  return presence_.exchange(Presence::kGoing, std::memory_order_acq_rel) != Presence::kGoing;
}

// No lock is held that keeps others from their stores: nobody changes the binding or the place of one that is going.
Status StoreImpl::Unlink() {
  { const MutexLock lock(record_mutex_); }  // whoever was recording something has ended; nobody begins
  bool is_gone = false;
  const Status status = OrOutOfMemory([&] { return UnlinkFiles(&is_gone); });
  if (!status.ok()) presence_.store(is_gone ? Presence::kGone : Presence::kThere, std::memory_order_release);
  return status;
}

Status StoreImpl::CheckUnlinkable() const {
  QUARRY_TRY(context_->CheckGiveBack(id_));
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    QUARRY_TRY(context_->CheckUsable(segment->path_number()));
  }
  return Status::Ok();
}

bool StoreImpl::HasWellPaths(uint64_t now_micros) const {
  const std::vector<std::shared_ptr<Segment>> segments = AllSegments();
  return std::all_of(segments.begin(), segments.end(), [&](const std::shared_ptr<Segment>& segment) {
    const uint32_t path = segment->path_number();
    return path >= context_->paths.size() || context_->paths[path].health->IsWell(now_micros);
  });
}

uint64_t StoreImpl::UnlinkWhatIsThere() {
  uint64_t given_back = 0;
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    if (!context_->CheckUsable(segment->path_number()).ok()) continue;
    const Result<FileSpace> space = SpaceOf(*segment);
    if (space.ok() && UnlinkSegment(segment).ok()) given_back += space->allocated_bytes;
  }
  return given_back;
}

// Its marker is looked for at each start, but a path can be unmounted later.
Status StoreImpl::CheckNotVanished(uint32_t path_number) const {
  if (path_number == 0) return Status::Ok();
  const std::vector<std::shared_ptr<Segment>> segments = AllSegments();
  const bool has_some = std::any_of(segments.begin(), segments.end(), [path_number](const auto& segment) {
    return segment->path_number() == path_number;
  });
  if (!has_some) return Status::Ok();
  const std::string& directory = context_->paths[path_number].directory;
  QUARRY_TRY_ASSIGN(const bool is_there, context_->env->FileExists(JoinPath(directory, kPathMarkerFileName)));
  if (is_there) return Status::Ok();
  return Status::Unavailable("data path '" + ParentPath(directory) + "' has lost its marker '" +
                             kDataPathDirectoryName + "/" + kPathMarkerFileName +
                             "' since the start, and what a dropped table has there cannot be removed: is it mounted?");
}

Status StoreImpl::UnlinkFiles(bool* is_gone) {
  QUARRY_TRY(CheckUnlinkable());
  Env* const env = context_->env;
  SharedLock lock(location_mutex_);
  // The home's folder goes last: while it is there, the next try finds the rest.
  for (uint32_t number = static_cast<uint32_t>(context_->paths.size()); number-- > 0;) {
    if (number != 0 && context_->paths[number].directory.empty()) continue;
    // Nothing of this store lies there, as far as its segments tell.
    if (!context_->paths[number].unavailable.empty() || !context_->CheckWritable(number).ok()) continue;
    QUARRY_TRY_ASSIGN(const std::string directory, SegmentDirectoryLocked(number));
    const Result<std::vector<std::string>> names = env->ListDirectory(directory);
    if (names.status().code() == StatusCode::kNotFound) {
      QUARRY_TRY(CheckNotVanished(number));
      continue;
    }
    QUARRY_TRY(names.status());
    for (const std::string& name : *names) {
      QUARRY_TRY(env->RemoveFile(JoinPath(directory, name)));
    }
    QUARRY_TRY(env->SyncDirectory(directory));
    if (number != 0) {
      QUARRY_TRY(IgnoreNotFound(env->RemoveDirectory(directory)));
      QUARRY_TRY(env->SyncDirectory(ParentPath(directory)));
    }
  }
  const std::string home = HomeDirectory(in_trash_);
  QUARRY_TRY(IgnoreNotFound(env->RemoveDirectory(home)));
  // Until this is durable too, the store stays listed: a crash may bring it back.
  *is_gone = true;
  return env->SyncDirectory(ParentPath(home));
}

}  // namespace quarry
