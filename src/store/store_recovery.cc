#include "store/store_recovery.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>

#include "context/layout.h"
#include "format/segment_header.h"
#include "io/path.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

class Recovery {
 public:
  Recovery(const std::shared_ptr<StoreContext>& context, StoreId id, const CatalogueState::Store* known,
           std::vector<CatalogueRecord>* changes)
      : context_(context), env_(context->env), id_(id), known_(known), changes_(changes) {}

  Result<std::shared_ptr<StoreImpl>> Run(const FoundStore& found) {
    CatalogueStore record;
    record.store = id_;
    const bool is_recorded = known_ != nullptr && known_->record.has_value();
    if (is_recorded) record = *known_->record;
    const bool in_trash = found.has_home ? found.in_trash : record.discarded;
    store_ = StoreImpl::Make(context_, record, in_trash, is_recorded);
    QUARRY_TRY(FindFiles());
    if (IsGone(record, found)) {
      if (known_ != nullptr) changes_->emplace_back(CatalogueStoreGone{id_});
      // Not worth failing for: what stays is an empty folder, whose id is not used again.
      (void)env_->RemoveDirectory(store_->HomeDirectory(in_trash));
      return std::shared_ptr<StoreImpl>();
    }
    if (!found.has_home) {
      QUARRY_TRY(env_->CreateDirectory(store_->HomeDirectory(in_trash)));
      QUARRY_TRY(env_->SyncDirectory(ParentPath(store_->HomeDirectory(in_trash))));
    }
    uint32_t behind_known = files_.empty() ? 0 : files_.rbegin()->first + 1;
    if (known_ != nullptr) {
      for (const auto& [number, segment] : known_->segments) {
        behind_known = std::max(behind_known, number + 1);
        TakeKnown(segment);
        files_.erase(number);
      }
    }
    for (const auto& [number, path_number] : files_) QUARRY_TRY(TakeUnknown(SegmentNumber{number}, path_number));
    NoteUnknown();
    const bool may_lack_some = !context_->MayGiveBack(id_) && !context_->CheckAllPathsAreHere().ok();
    if (may_lack_some) behind_known = BehindLostSegments(behind_known);
    store_->RaiseNextSegment(SegmentNumber{std::max(record.next_segment.value, behind_known)});
    if (is_recorded) QUARRY_TRY(store_->MoveToWhereItBelongs());
    return store_;
  }

 private:
  // Path number of every segment file that there is, by segment number.
  Status FindFiles() {
    for (uint32_t number = 0; number < context_->paths.size(); ++number) {
      const Result<std::string> directory = store_->SegmentDirectory(number);
      if (!directory.ok()) continue;  // away: what lies there is in the catalogue or comes back later
      const Result<std::vector<std::string>> names = env_->ListDirectory(*directory);
      if (names.status().code() == StatusCode::kNotFound) continue;
      if (IsDamageOfFolder(names.status())) {
        SetAside(names.status());
        continue;
      }
      QUARRY_TRY(names.status());
      for (const std::string& name : *names) {
        if (const auto segment = ParseSegmentFileName(name)) files_.emplace(segment->value, number);
        // The rewriting of a segment was cut off: its own file is whole.
        if (IsLeftover(name) && MayRemoveFrom(number)) {
          QUARRY_TRY(env_->RemoveFile(JoinPath(*directory, name)));
        }
      }
    }
    return Status::Ok();
  }

  // The other stores go on. What this one has in the folder is not known, and may all be needed.
  void SetAside(const Status& status) {
    is_listed_ = false;
    context_->unlisted.try_emplace(
        id_, "store " + std::to_string(id_.value) + " is only read, because a folder of it cannot be listed: " +
                 status.message() + ". Nothing of it is given back. Check the drive and its file system, and restart");
  }

  [[nodiscard]] bool MayRemoveFrom(uint32_t path_number) const {
    return is_listed_ && context_->CheckWritable(path_number).ok() && context_->MayGiveBack(id_);
  }

  // Its creation was cut off before it had a record, or its unlinking before it lost its record; or nobody knew a table
  // that it belongs to, and somebody has removed it.
  [[nodiscard]] bool IsGone(const CatalogueStore& record, const FoundStore& found) const {
    if (!is_listed_ || !files_.empty()) return false;
    if (known_ == nullptr) return true;
    if (found.has_home || (!record.discarded && !record.tables.empty())) return false;
    return std::all_of(known_->segments.begin(), known_->segments.end(), [this](const auto& segment) {
      return store_->SegmentDirectory(segment.second.path_number).ok();
    });
  }

  // Where no list tells, the file itself is asked.
  [[nodiscard]] bool IsThere(const Segment& segment) const {
    return is_listed_ ? files_.contains(segment.number().value) : store_->SpaceOf(segment).ok();
  }

  void TakeKnown(CatalogueSegment record) {
    auto segment = std::make_shared<Segment>(context_, id_, record.segment, record.path_number);
    segment->set_salt(record.salt);
    // A file that is away keeps its place: only reads of it fail, and it is sealed when it is back.
    if (record.state == SegmentState::kActive && IsThere(*segment)) {
      const Result<FileSpace> space = store_->SpaceOf(*segment);
      segment->AssumeAllLive(space.ok() ? space->size_bytes : record.size_bytes);
      segment->set_state(SegmentState::kSealed);
      record.state = SegmentState::kSealed;
      record.counted = segment->counted();
      record.size_bytes = segment->size_bytes();
      record.live_bytes = segment->live_bytes();
      if (space.ok()) changes_->emplace_back(record);  // else the next start tries again
    } else {
      segment->set_state(record.state);
      segment->RestoreCounters(record.extents, record.live_bytes, record.dead_bytes, record.size_bytes, record.counted);
      segment->RestoreContent({record.plain_bytes, record.encrypted_bytes, record.oldest_key_version});
    }
    store_->RegisterSegment(segment);
  }

  // Its record is lost, or its creation was cut off before it had one.
  Status TakeUnknown(SegmentNumber number, uint32_t path_number) {
    auto segment = std::make_shared<Segment>(context_, id_, number, path_number);
    const Result<FileSpace> space = store_->SpaceOf(*segment);
    if (space.ok() && space->size_bytes < kSegmentHeaderSizeBytes) {
      if (!MayRemoveFrom(path_number)) return Status::Ok();
      QUARRY_TRY_ASSIGN(const std::string directory, store_->SegmentDirectory(path_number));
      return env_->RemoveFile(JoinPath(directory, SegmentFileName(number)));
    }
    segment->AssumeAllLive(space.ok() ? space->size_bytes : 0);
    segment->set_state(SegmentState::kSealed);
    if (const auto file = segment->FileForRead(store_.get()); file.ok()) {
      if (const auto header = ReadSegmentHeader(file->get(), id_, number); header.ok()) segment->set_salt(header->salt);
    }
    store_->RegisterSegment(segment);
    if (!space.ok() || space->size_bytes > kSegmentHeaderSizeBytes) unknown_.push_back(number);
    return Status::Ok();
  }

  void NoteUnknown() {
    if (unknown_.empty()) return;
    std::string what = "store " + std::to_string(id_.value) + " has " + std::to_string(unknown_.size()) +
                       " segments that the catalogue does not name, the first is segment " +
                       std::to_string(unknown_.front().value);
    what += known_ != nullptr && known_->record ? ": they are kept until a mark pass finds that no row needs them"
                                                : ": its record is lost; it is read, and nothing of it is given back, "
                                                  "until a mark pass finds which table it belongs to";
    context_->notices.AddOnce(what);
  }

  const std::shared_ptr<StoreContext> context_;
  Env* const env_;
  const StoreId id_;
  const CatalogueState::Store* const known_;
  std::vector<CatalogueRecord>* const changes_;
  std::shared_ptr<StoreImpl> store_;
  std::map<uint32_t, uint32_t> files_;
  bool is_listed_ = true;  ///< files_ has all that is there
  std::vector<SegmentNumber> unknown_;
};

}  // namespace

bool IsDamageOfFolder(const Status& status) {
  const int system_errno = status.system_errno();
  return system_errno == EIO || system_errno == EUCLEAN || system_errno == EBADMSG;
}

Result<std::shared_ptr<StoreImpl>> RecoverStore(const std::shared_ptr<StoreContext>& context, StoreId store,
                                                const CatalogueState::Store* known, const FoundStore& found,
                                                std::vector<CatalogueRecord>* changes) {
  return Recovery(context, store, known, changes).Run(found);
}

}  // namespace quarry
