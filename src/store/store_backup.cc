// What a backup of a running server is told (quarry/backup.h).
#include <algorithm>

#include "format/small_file.h"
#include "io/path.h"
#include "store/layout.h"
#include "store/store_directory_impl.h"

namespace quarry {
namespace {

/// Makes of a recorded data path one that exists nowhere, and that tells a person what to do.
std::string PlaceToBeNamed(const std::string& path) {
  static constexpr char kSuffix[] = " (as backed up; quarry_data_paths must name where it is now)";
  return path.substr(0, kNameMaxBytes - (sizeof(kSuffix) - 1)) + kSuffix;
}

}  // namespace

Status StoreImpl::AddToBackup(BackupSnapshot* snapshot) {
  MutexLock lock(manifest_mutex_);
  if (is_going()) return Status::Ok();
  const Manifest manifest = BuildManifest(GetBinding());
  SharedLock location_lock(location_mutex_);
  const std::string directory =
      JoinPath(in_trash_ ? kTrashDirectoryName : kStoresDirectoryName, StoreDirectoryName(id_));
  if (has_manifest_) {
    QUARRY_TRY_ASSIGN(std::vector<uint8_t> contents, EncodeManifestVerified(manifest));
    snapshot->small_files.push_back({JoinPath(directory, kManifestFileName), std::move(contents)});
  }
  for (const ManifestSegment& segment : manifest.segments) {
    QUARRY_TRY_ASSIGN(const std::string place, SegmentDirectoryLocked(segment.path_number));
    const std::string file = SegmentFileName(segment.segment);
    snapshot->segments.push_back({JoinPath(segment.path_number == 0 ? directory : StoreDirectoryName(id_), file),
                                  JoinPath(place, file), segment.path_number});
  }
  return Status::Ok();
}

Result<BackupSnapshot> StoreDirectoryImpl::TakeBackupSnapshot() {
  MutexLock lock(admin_mutex_);
  BackupSnapshot snapshot;
  DirectoryFile directory = directory_;
  for (DataPath& known : directory.paths) {
    const SegmentPath& path = context_->paths[known.number];
    if (path.unavailable.empty()) {
      snapshot.data_paths.push_back({known.number, known.path, JoinPath(path.directory, kPathMarkerFileName)});
    }
    known.path = PlaceToBeNamed(known.path);
  }
  QUARRY_TRY_ASSIGN(std::vector<uint8_t> contents, EncodeDirectoryFileVerified(directory));
  snapshot.small_files.push_back({kDirectoryFileName, std::move(contents)});
  std::vector<std::shared_ptr<StoreImpl>> stores = AllStores();
  // What a store still holds in memory is written for it, on however slow a path: no table may wait for that to be
  // made.
  lock.Unlock();
  std::sort(stores.begin(), stores.end(), [](const auto& a, const auto& b) { return a->id() < b->id(); });
  for (const std::shared_ptr<StoreImpl>& store : stores) QUARRY_TRY(store->AddToBackup(&snapshot));
  return snapshot;
}

}  // namespace quarry
