#include "store/catalogue_rebuild.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "format/path_marker.h"
#include "format/small_file.h"
#include "io/path.h"
#include "quarry/options.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

class Rebuilder {
 public:
  Rebuilder(Env* env, const RebuildOptions& options) : env_(env), options_(options), home_(options.home_path) {}

  Result<RebuildReport> Run() {
    QUARRY_TRY_ASSIGN(const std::unique_ptr<DirectoryLock> lock, Lock());
    QUARRY_TRY(ReadOld());
    if (!report_.is_needed) return std::move(report_);
    QUARRY_TRY(FindPaths());
    for (const char* const parent : {kStoresDirectoryName, kTrashDirectoryName}) {
      QUARRY_TRY(FindStores(JoinPath(home_, parent), 0));
    }
    for (const auto& [number, directory] : paths_) {
      if (!directory.empty()) QUARRY_TRY(FindStores(directory, number));
    }
    for (const auto& [id, store] : old_.state.stores) found_.try_emplace(id);
    QUARRY_TRY(MakeState());
    QUARRY_TRY(Write());
    return std::move(report_);
  }

 private:
  struct FoundFile {
    uint32_t path_number = 0;
    std::string path;
  };
  struct FoundStore {
    bool has_home = false;
    std::map<uint32_t, FoundFile> segments;
  };

  Result<std::unique_ptr<DirectoryLock>> Lock() {
    auto lock = env_->LockDirectory(home_, true);
    if (lock.status().code() == StatusCode::kUnavailable) {
      return Status::Unavailable("'" + home_ + "' is in use by a running server, or being verified: stop that first");
    }
    if (!lock.ok()) return lock.status().WithContext("'" + home_ + "' is no folder of stores");
    return lock;
  }

  Status ReadOld() {
    QUARRY_TRY_ASSIGN(const std::vector<std::string> names, env_->ListDirectory(home_));
    const auto is_there = [&names](const char* name) { return std::count(names.begin(), names.end(), name) > 0; };
    if (is_there(kUnreleasedFileName)) {
      return Status::NotSupported("'" + home_ + "' was made by a build from before the first release");
    }
    if (!is_there(kStoresDirectoryName)) {
      return Status::NotFound("there is no Quarry in '" + home_ + "' (wanted: the folder " + kHomeName +
                              " of a data directory, with stores/ in it)");
    }
    for (const std::string& name : names) generation_ = std::max(generation_, ParseRebuiltFromName(name).value_or(0));
    QUARRY_TRY_ASSIGN(old_, ReadCatalogue(env_, home_));
    if (!old_.generations.empty()) generation_ = std::max(generation_, old_.generations.back());
    ++generation_;
    const std::vector<CatalogueDamage> noted_before = old_.state.damage;
    for (const CatalogueLoss& loss : old_.losses) NoteLoss(loss.store, loss.what);
    for (const CatalogueDamage& damage : noted_before) NoteLoss(damage.store, damage.what);
    if (old_.generations.empty()) NoteLoss({}, "there is no catalogue");
    report_.is_needed = !old_.state.damage.empty();
    installation_ = old_.state.installation;
    return Status::Ok();
  }

  void NoteLoss(StoreId store, const std::string& what) {
    report_.notes.push_back("lost, of " + WhatLossConcerns(store) + ": " + what);
    old_.state.Apply(CatalogueDamage{store, 0, what});
  }

  Result<PathMarker> ReadMarker(const std::string& path) {
    const std::string file = JoinPath(JoinPath(path, kDataPathDirectoryName), kPathMarkerFileName);
    QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, env_->ReadSmallFile(file, kSmallFileMaxBytes));
    QUARRY_TRY_ASSIGN(const PathMarker marker, DecodePathMarker(bytes));
    if (!IsOurs(marker.installation)) return Status::InvalidArgument("it belongs to another installation");
    return marker;
  }

  // The first id that is met is ours, when the catalogue does not say.
  bool IsOurs(const InstallationId& id) {
    if (installation_.id == InstallationId{}) installation_.id = id;
    return installation_.id == id;
  }

  Status FindPaths() {
    for (const std::string& path : options_.data_paths) {
      const Result<PathMarker> marker = ReadMarker(path);
      if (!marker.ok()) {
        return Status::InvalidArgument("'" + path + "' is no data path of this home: " + marker.status().message());
      }
      paths_[marker->path_number] = JoinPath(path, kDataPathDirectoryName);
      places_[marker->path_number] = path;
    }
    for (const auto& [number, place] : old_.state.paths) {
      if (paths_.contains(number)) continue;
      const Result<PathMarker> marker = ReadMarker(place);
      const bool is_there = marker.ok() && marker->path_number == number;
      paths_[number] = is_there ? JoinPath(place, kDataPathDirectoryName) : "";
      places_[number] = place;
      if (!is_there) {
        report_.notes.push_back("data path '" + place +
                                "' is missing: what is recorded of it is kept, and nothing on it was looked at");
      }
    }
    return Status::Ok();
  }

  Status FindStores(const std::string& parent, uint32_t path_number) {
    const Result<std::vector<std::string>> names = env_->ListDirectory(parent);
    if (names.status().code() == StatusCode::kNotFound) return Status::Ok();
    QUARRY_TRY(names.status());
    for (const std::string& name : *names) {
      const auto id = ParseStoreDirectoryName(name);
      if (!id) continue;
      FoundStore& store = found_[*id];
      store.has_home = store.has_home || path_number == 0;
      const std::string directory = JoinPath(parent, name);
      QUARRY_TRY_ASSIGN(const std::vector<std::string> files, env_->ListDirectory(directory));
      for (const std::string& file : files) {
        const auto segment = ParseSegmentFileName(file);
        if (segment) store.segments.try_emplace(segment->value, FoundFile{path_number, JoinPath(directory, file)});
      }
    }
    return Status::Ok();
  }

  Status MakeState() {
    for (auto& [id, store] : found_) {
      const auto known = old_.state.stores.find(id);
      const CatalogueState::Store none;
      const CatalogueState::Store& before = known == old_.state.stores.end() ? none : known->second;
      if (old_.state.MayGiveBack(id)) {
        KeepStore(before);
      } else {
        QUARRY_TRY(RebuildStore(id, store, before));
      }
    }
    // The segments have told whose they are by now.
    if (installation_.id == InstallationId{}) QUARRY_TRY(env_->FillRandom(installation_.id));
    if (installation_.created_micros == 0) installation_.created_micros = env_->NowMicros();
    new_.Apply(installation_);
    for (const auto& [number, place] : places_) new_.Apply(DataPath{number, place});
    for (const CatalogueUnknown& kept : old_.state.kept) new_.Apply(kept);
    new_.Apply(old_.state.scrub);
    return Status::Ok();
  }

  void KeepStore(const CatalogueState::Store& before) {
    if (!before.record) return;  // an empty folder, or files that the next start takes in
    new_.Apply(*before.record);
    for (const auto& [number, segment] : before.segments) new_.Apply(segment);
    ++report_.stores;
    report_.segments += before.segments.size();
  }

  Status RebuildStore(StoreId id, const FoundStore& found, const CatalogueState::Store& before) {
    std::vector<CatalogueSegment> segments;
    for (const auto& [number, file] : found.segments) {
      const auto known = before.segments.find(number);
      QUARRY_TRY_ASSIGN(const auto segment, RebuildSegment(id, SegmentNumber{number}, file,
                                                           known == before.segments.end() ? nullptr : &known->second));
      if (segment) segments.push_back(*segment);
    }
    for (const auto& [number, segment] : before.segments) {
      if (!found.segments.contains(number) && IsAway(segment)) segments.push_back(segment);
    }
    if (segments.empty() && !found.has_home) return Status::Ok();  // its end was not recorded any more
    CatalogueStore record = before.record.value_or(CatalogueStore{});
    record.store = id;
    if (record.created_micros == 0) record.created_micros = env_->NowMicros();
    // What was lost may be a later one than what is left.
    record.tables.clear();
    record.rebinding = false;
    record.discarded = false;
    record.discarded_at_lsn = 0;
    uint32_t behind_known = before.segments.empty() ? 0 : before.segments.rbegin()->first + 1;
    if (!found.segments.empty()) behind_known = std::max(behind_known, found.segments.rbegin()->first + 1);
    // One whose record is lost may lie on a path that is not here.
    record.next_segment.value = std::max(record.next_segment.value, BehindLostSegments(behind_known));
    new_.Apply(record);
    for (const CatalogueSegment& segment : segments) new_.Apply(segment);
    ++report_.stores;
    ++report_.unbound_stores;
    report_.segments += segments.size();
    return Status::Ok();
  }

  // Its file is where nobody could look; else it is lost, or its unlinking was not recorded any more.
  bool IsAway(const CatalogueSegment& segment) {
    const auto path = paths_.find(segment.path_number);
    const bool was_looked_at = segment.path_number == 0 || (path != paths_.end() && !path->second.empty());
    if (was_looked_at) {
      report_.notes.push_back("segment " + std::to_string(segment.segment.value) + " of store " +
                              std::to_string(segment.store.value) + " was recorded, and there is no such file");
    }
    return !was_looked_at;
  }

  // Nothing: what the next start makes of the file without a record is as good.
  Result<std::optional<CatalogueSegment>> RebuildSegment(StoreId store, SegmentNumber number, const FoundFile& file,
                                                         const CatalogueSegment* known) {
    const auto opened = env_->OpenForRead(file.path);
    const Result<uint64_t> size = opened.ok() ? (*opened)->SizeBytes() : opened.status();
    const Result<SegmentHeader> header =
        size.ok() ? ReadSegmentHeader(opened->get(), store, number) : Result<SegmentHeader>(size.status());
    if (!header.ok()) report_.notes.push_back(file.path + ": " + header.status().message());
    if (header.ok() && !IsOurs(header->installation)) {
      report_.notes.push_back(file.path + ": its header names another installation");
    }
    if (!header.ok() && (!size.ok() || known == nullptr)) {
      return known == nullptr ? std::optional<CatalogueSegment>() : *known;
    }
    CatalogueSegment record = known == nullptr ? CatalogueSegment{} : *known;
    record.store = store;
    record.segment = number;
    record.path_number = file.path_number;
    if (record.state == SegmentState::kActive) record.state = SegmentState::kSealed;
    if (header.ok()) record.salt = header->salt;
    record.counted = CountedExtents::kEstimated;
    record.size_bytes = *size;
    record.extents = 0;
    record.live_bytes = *size - std::min<uint64_t>(*size, kSegmentHeaderSizeBytes);
    record.dead_bytes = 0;
    installation_.next_path_number = std::max(installation_.next_path_number, file.path_number + 1);
    return std::optional<CatalogueSegment>(record);
  }

  // The old files go aside when the new one counts: a crash between the two leaves both, and the new one wins.
  Status Write() {
    report_.written = CatalogueFileName(generation_);
    for (const uint64_t old : old_.generations) report_.kept.push_back(CatalogueFileName(old) + kRebuiltFromSuffix);
    if (options_.dry_run) return Status::Ok();
    std::vector<CatalogueRecord> records = new_.Records();
    records.emplace_back(CatalogueEnd{new_.installation});
    if (const Status status = WriteNew(records); !status.ok()) {
      const bool is_gone = IgnoreNotFound(env_->RemoveFile(JoinPath(home_, report_.written))).ok();
      return status.WithContext(is_gone ? "the old catalogue still counts" : report_.written + " may count already");
    }
    if (const Status status = SetOldAside(); !status.ok()) {
      return status.WithContext(report_.written + " is written and counts, but an old catalogue is not kept for sure");
    }
    return Status::Ok();
  }

  // The next start removes what keeps its name.
  Status SetOldAside() {
    for (const uint64_t old : old_.generations) {
      const std::string path = JoinPath(home_, CatalogueFileName(old));
      QUARRY_TRY(env_->Rename(path, path + kRebuiltFromSuffix));
    }
    return env_->SyncDirectory(home_);
  }

  Status WriteNew(const std::vector<CatalogueRecord>& records) {
    QUARRY_TRY_ASSIGN(const std::unique_ptr<CatalogueWriter> writer, CatalogueWriter::Create(env_, home_, generation_));
    QUARRY_TRY(writer->Add(records, true));
    QUARRY_TRY(writer->Flush());
    return env_->SyncDirectory(home_);
  }

  Env* const env_;
  const RebuildOptions& options_;
  const std::string home_;
  CatalogueOnDisk old_;  ///< all that was lost is damage in its state
  CatalogueInstallation installation_;
  CatalogueState new_;
  std::map<uint32_t, std::string> paths_;   ///< where their stores lie; empty: it is not there
  std::map<uint32_t, std::string> places_;  ///< the paths as they are configured
  std::map<StoreId, FoundStore> found_;
  uint64_t generation_ = 0;
  RebuildReport report_;
};

}  // namespace

Result<RebuildReport> RebuildCatalogueFiles(Env* env, const RebuildOptions& options) {
  return Rebuilder(env, options).Run();
}

Result<RebuildReport> RebuildCatalogue(const RebuildOptions& options) {
  return RebuildCatalogueFiles(Env::Posix(), options);
}

}  // namespace quarry
