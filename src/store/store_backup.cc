// What a backup of a running server is told (quarry/backup.h).
#include <algorithm>

#include "context/layout.h"
#include "format/small_file.h"
#include "io/path.h"
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
  if (is_going()) return Status::Ok();
  // Without damage the catalogue names every segment with a value in it.
  if (!context_->MayGiveBack(id_)) QUARRY_TRY(context_->CheckListed(id_));
  SharedLock location_lock(location_mutex_);
  const std::string directory =
      JoinPath(in_trash_ ? kTrashDirectoryName : kStoresDirectoryName, StoreDirectoryName(id_));
  for (const std::shared_ptr<Segment>& segment : AllSegments()) {
    QUARRY_TRY_ASSIGN(const std::string place, SegmentDirectoryLocked(segment->path_number()));
    const std::string file = SegmentFileName(segment->number());
    snapshot->segments.push_back({JoinPath(segment->path_number() == 0 ? directory : StoreDirectoryName(id_), file),
                                  JoinPath(place, file), segment->path_number()});
  }
  return Status::Ok();
}

Result<BackupSnapshot> StoreDirectoryImpl::TakeBackupSnapshot() {
  MutexLock lock(admin_mutex_);
  BackupSnapshot snapshot;
  CatalogueState state = context_->catalogue->state();
  for (auto& [number, place] : state.paths) {
    const SegmentPath& path = context_->paths[number];
    if (path.unavailable.empty()) {
      snapshot.data_paths.push_back({number, place, JoinPath(path.directory, kPathMarkerFileName)});
    }
    place = PlaceToBeNamed(place);
  }
  std::vector<std::shared_ptr<StoreImpl>> stores = AllStores();
  lock.Unlock();
  std::sort(stores.begin(), stores.end(), [](const auto& a, const auto& b) { return a->id() < b->id(); });
  for (const std::shared_ptr<StoreImpl>& store : stores) {
    if (store->is_going()) state.Apply(CatalogueStoreGone{store->id()});
    QUARRY_TRY(store->AddToBackup(&snapshot));
  }
  std::vector<CatalogueRecord> records = state.Records();
  records.emplace_back(CatalogueEnd{state.installation});
  snapshot.small_files.push_back({CatalogueFileName(1), EncodeCatalogue(records, 1)});
  return snapshot;
}

}  // namespace quarry
