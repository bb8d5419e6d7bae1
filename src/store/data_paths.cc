#include "store/data_paths.h"

#include <algorithm>
#include <set>

#include "context/layout.h"
#include "format/path_marker.h"
#include "format/small_file.h"
#include "io/path.h"
#include "quarry/memory_guard.h"
#include "store/path_ownership.h"
#include "store/store_recovery.h"

namespace quarry {
namespace {

constexpr uint64_t kSegmentSizeMinBytes = 64ULL << 10;

Status CheckOptions(const DirectoryOptions& options) {
  if (options.home_path.empty()) return Status::InvalidArgument("the home path is empty");
  if (options.segment_size_bytes < kSegmentSizeMinBytes || options.segment_size_bytes > INT64_MAX / 4) {
    return Status::InvalidArgument("segment size " + std::to_string(options.segment_size_bytes) + " is less than " +
                                   std::to_string(kSegmentSizeMinBytes) + " or absurd");
  }
  std::set<std::string> seen;
  for (const std::string& path : options.data_paths) {
    if (path.empty()) return Status::InvalidArgument("a data path is empty");
    if (path.size() > kNameMaxBytes) {
      return Status::InvalidArgument("data path '" + path.substr(0, 40) + "...' is longer than " +
                                     std::to_string(kNameMaxBytes) + " bytes");
    }
    if (!seen.insert(path).second) return Status::InvalidArgument("data path '" + path + "' is given twice");
  }
  return Status::Ok();
}

/// Opens one directory; what it makes is undone unless Keep is called.
class Opener {
 public:
  explicit Opener(StoreContext* context)
      : context_(context), env_(context->env), ownership_(context->env, context->options.home_path) {}
  ~Opener() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
      (void)OrOutOfMemory(
          [&] { return made->is_directory ? env_->RemoveDirectory(made->path) : env_->RemoveFile(made->path); });
    }
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  Status Open() {
    QUARRY_TRY(CheckOptions(context_->options));
    QUARRY_TRY(OpenHome());
    QUARRY_TRY(ownership_.Identify());
    QUARRY_TRY(OpenPaths());
    QUARRY_TRY(MarkPaths());
    made_.clear();
    return Status::Ok();
  }

 private:
  struct Made {
    std::string path;
    bool is_directory = false;
  };

  Status MakeDirectory(const std::string& path) {
    QUARRY_TRY_ASSIGN(const bool exists, env_->FileExists(path));
    if (exists) return Status::Ok();
    QUARRY_TRY(env_->CreateDirectory(path));
    made_.push_back({path, true});
    return env_->SyncDirectory(ParentPath(path));
  }

  Status Write(const std::string& path, const std::vector<uint8_t>& contents) {
    QUARRY_TRY_ASSIGN(const bool exists, env_->FileExists(path));
    if (!exists) made_.push_back({path, false});
    return env_->ReplaceFile(path, contents);
  }

  Status OpenHome() {
    const std::string& home = context_->options.home_path;
    QUARRY_TRY(MakeDirectory(home));
    auto lock = env_->LockDirectory(home, true);
    if (lock.status().code() == StatusCode::kUnavailable) {
      return Status::Unavailable("'" + home + "' is in use by another server, or being verified: stop that first");
    }
    QUARRY_TRY_ASSIGN(context_->home_lock, std::move(lock));
    QUARRY_TRY(MakeDirectory(JoinPath(home, kStoresDirectoryName)));
    QUARRY_TRY(MakeDirectory(JoinPath(home, kTrashDirectoryName)));
    QUARRY_TRY_ASSIGN(const bool has_old, env_->FileExists(JoinPath(home, kUnreleasedFileName)));
    if (has_old) {
      return Status::NotSupported("'" + home + "' was made by a build from before the first release (it holds " +
                                  kUnreleasedFileName + "): this one does not read it; set it aside");
    }
    QUARRY_TRY_ASSIGN(CatalogueOnDisk found, ReadCatalogue(env_, home));
    state_ = std::move(found.state);
    // Its making was cut off when it names no store, and none is there.
    bool is_new = false;
    if (!found.is_whole) {
      QUARRY_TRY_ASSIGN(is_new, HasNoStores());
      if (is_new) found.losses.clear();
    }
    if (state_.installation.id == InstallationId{}) {
      if (!is_new) return NoCatalogue();
      QUARRY_TRY(env_->FillRandom(state_.installation.id));
      state_.installation.created_micros = env_->NowMicros();
    }
    const uint64_t first_generation = found.generations.empty() ? 1 : found.generations.back() + 1;
    for (const CatalogueLoss& loss : found.losses) NoteLoss(found.generation, loss);
    context_->catalogue = std::make_unique<Catalogue>(env_, home, state_, std::move(found.generations),
                                                      context_->options.catalogue_renewal_bytes, &context_->counters);
    context_->catalogue->SetRenewer(
        [context = context_] { context->catalogue_tasks.Submit([context] { (void)context->catalogue->Renew(); }); });
    context_->installation = state_.installation.id;
    AddPath({0, "", ""});
    // Before any path marker bears the id: a crash between leaves markers that are known as ours.
    if (is_new) {
      // A start that was killed may have made the home, and not come to this.
      QUARRY_TRY(env_->SyncDirectory(ParentPath(home)));
      has_made_catalogue_ = true;
      made_.push_back({JoinPath(home, CatalogueFileName(first_generation)), false});
      QUARRY_TRY(context_->catalogue->Begin({}));
    }
    return Status::Ok();
  }

  Result<bool> HasNoStores() {
    QUARRY_TRY_ASSIGN(const auto stores,
                      env_->ListDirectory(JoinPath(context_->options.home_path, kStoresDirectoryName)));
    return stores.empty() && state_.stores.empty();
  }

  // Without one ids could be given out twice, and foreign data paths taken for ours.
  Status NoCatalogue() {
    return Status::Corruption(0, 0, 0,
                              "'" + context_->options.home_path +
                                  "' has stores, and no catalogue that says whose they are; quarry-verify "
                                  "--rebuild-catalogue makes one of their files");
  }

  // It is kept through all generations that follow.
  void NoteLoss(uint64_t generation, const CatalogueLoss& loss) {
    CatalogueDamage damage;
    damage.store = loss.store;
    damage.noted_micros = env_->NowMicros();
    damage.what = CatalogueFileName(generation) + " offset " + std::to_string(loss.offset_bytes) + ": " + loss.what;
    state_.Apply(damage);
  }

  /// The number that the marker at `path` bears; 0 when there is no marker.
  Result<uint32_t> ReadMarker(const std::string& path) {
    const std::string marker_path = JoinPath(JoinPath(path, kDataPathDirectoryName), kPathMarkerFileName);
    const Result<std::vector<uint8_t>> bytes = env_->ReadSmallFile(marker_path, kSmallFileMaxBytes);
    if (bytes.status().code() == StatusCode::kNotFound) return 0U;
    QUARRY_TRY(bytes.status());
    QUARRY_TRY_ASSIGN(const PathMarker marker, DecodePathMarker(*bytes));
    if (marker.installation != state_.installation.id) {
      return Status::Unavailable("data path '" + path + "' belongs to another installation");
    }
    return marker.path_number;
  }

  [[nodiscard]] bool IsRecorded(const std::string& path) const {
    return std::any_of(state_.paths.begin(), state_.paths.end(),
                       [&path](const auto& known) { return known.second == path; });
  }

  static Status Missing(const std::string& path) {
    return Status::Unavailable("data path '" + path +
                               "' is missing (allowed in quarry_data_paths: absolute paths of existing, writable "
                               "directories, separated by ';')");
  }

  /// Whether `path` is one of ours that is not there now: not mounted, or not readable. Its values are away with it,
  /// and nothing is made in its place. A path that was never ours must be there, and whose marker names another
  /// installation is a mistake of the setting.
  Result<bool> IsAway(const std::string& path) {
    const bool is_recorded = IsRecorded(path);
    if (const Status status = env_->ListDirectory(path).status(); !status.ok()) {
      if (is_recorded) return true;
      return status.code() == StatusCode::kNotFound ? Missing(path) : status;
    }
    const Result<uint32_t> number = ReadMarker(path);
    if (!number.ok() && (!is_recorded || number.status().code() == StatusCode::kUnavailable)) return number.status();
    if (number.status().code() == StatusCode::kCorruption && context_->options.adopt_data_paths) {
      QUARRY_TRY(RemakeMarker(path));
      return IsUnlisted(path);
    }
    return is_recorded && (!number.ok() || *number == 0 || IsUnlisted(path));
  }

  /// Nobody can tell which stores have a folder there.
  bool IsUnlisted(const std::string& path) {
    return IsDamageOfFolder(env_->ListDirectory(JoinPath(path, kDataPathDirectoryName)).status());
  }

  /// The configured paths that are there.
  Result<std::vector<std::string>> FindPaths() {
    std::vector<std::string> found;
    for (const std::string& path : context_->options.data_paths) {
      QUARRY_TRY_ASSIGN(const bool is_away, IsAway(path));
      if (!is_away) found.push_back(path);
    }
    return found;
  }

  /// kUnavailable for a path whose files are now on another one of those that were found.
  Status CheckAwayPaths(const std::vector<std::string>& found) {
    for (const std::string& path : context_->options.data_paths) {
      const bool is_away = std::find(found.begin(), found.end(), path) == found.end();
      if (is_away && !IsRecorded(path)) return Missing(path);
    }
    return Status::Ok();
  }

  Status OpenPaths() {
    const auto before = state_.paths;
    QUARRY_TRY_ASSIGN(const std::vector<std::string> found, FindPaths());
    for (const std::string& path : found) {
      // Not as it was found: two names may lead to one directory, which bears a marker by now.
      QUARRY_TRY_ASSIGN(uint32_t number, ReadMarker(path));
      if (number == 0) {
        QUARRY_TRY_ASSIGN(number, AdoptPath(path));
      }
      QUARRY_TRY(Record(number, path));
      AddPath({number, JoinPath(path, kDataPathDirectoryName), ""});
      context_->append_paths.push_back(number);
      QUARRY_TRY(TakePath(number, path, context_->options.adopt_data_paths));
    }
    QUARRY_TRY(CheckAwayPaths(found));
    // Were all of them away, the data directory would not be what the setting asks for.
    if (context_->options.data_paths.empty()) context_->append_paths.push_back(0);
    for (const uint32_t number : context_->append_paths) {
      SegmentPath& path = context_->paths[number];
      path.has_journal = env_->HasJournal(number == 0 ? context_->options.home_path : path.directory);
    }
    // Paths that are away, or no longer configured: these are readable while they are there.
    for (const auto& [known, place] : state_.paths) {
      if (std::find(context_->append_paths.begin(), context_->append_paths.end(), known) !=
          context_->append_paths.end()) {
        continue;
      }
      const Result<uint32_t> number = ReadMarker(place);
      const bool there = number.ok() && *number == known && !IsUnlisted(place);
      AddPath({known, JoinPath(place, kDataPathDirectoryName), there ? "" : WhyAway(place, number)});
      if (!there) continue;
      if (const Status status = TakePath(known, place, false); !status.ok()) {
        context_->paths[known].unavailable = status.message();
      }
    }
    if (state_.paths == before) return Status::Ok();
    std::vector<CatalogueRecord> changes;
    for (const auto& [number, place] : state_.paths) changes.emplace_back(DataPath{number, place});
    // Whatever comes of the writing, the catalogue may name the new paths from here on: unless it was made just now and
    // goes too, their markers stay.
    if (!has_made_catalogue_) made_.clear();
    return context_->catalogue->Begin(std::move(changes));
  }

  /// `marker`: what ReadMarker said of it.
  std::string WhyAway(const std::string& place, const Result<uint32_t>& marker) {
    const std::string path = "data path '" + place + "'";
    if (!env_->ListDirectory(place).ok()) return path + " is missing";
    const std::string name = std::string("'") + kDataPathDirectoryName + "/" + kPathMarkerFileName + "'";
    if (marker.ok() && *marker == 0) return path + " is missing: it has lost its marker " + name + ": is it mounted?";
    if (marker.ok() && IsUnlisted(place)) {
      return path + " is not used, because its folder '" + kDataPathDirectoryName +
             "' cannot be listed: check the drive and its file system, and restart";
    }
    const std::string unused = path + " is not used, because of its marker " + name + ": ";
    if (marker.ok()) return unused + "it is that of data path " + std::to_string(*marker);
    if (marker.status().code() != StatusCode::kCorruption) return unused + marker.status().message();
    return unused + marker.status().message() +
           ". Where the path is this server's, name it in quarry_data_paths and start once with "
           "quarry_adopt_data_paths=ON";
  }

  /// Locks the path, which is in context_->paths, and claims it: else it is only read, and not locked, so that whose it
  /// is can open it. kUnavailable: another server has it open.
  Status TakePath(uint32_t number, const std::string& path, bool adopts) {
    SegmentPath& taken = context_->paths[number];
    auto lock = env_->LockDirectory(taken.directory, true);
    if (lock.status().code() == StatusCode::kUnavailable) {
      return Status::Unavailable(
          "data path '" + path +
          "' is in use by another server: one of the two data directories is a copy, and needs data paths of its own");
    }
    QUARRY_TRY(lock.status());
    if (adopts) {
      ownership_.Adopt(taken.directory);
    } else if (const Status status = ownership_.Claim(taken.directory); !status.ok()) {
      taken.read_only = WhyReadOnly(path, status.message());
      return Status::Ok();
    }
    context_->path_locks.push_back(std::move(*lock));
    return Status::Ok();
  }

  static std::string WhyReadOnly(const std::string& path, const std::string& why) {
    return "data path '" + path + "' " + why +
           ": it is read, and nothing there is written, given back or removed. Give a copied data directory data paths "
           "of its own; where this one, or its file system, was moved or restored, and no other server uses the path, "
           "start once with quarry_adopt_data_paths=ON";
  }

  /// A record that is not there yet goes again when the opening fails; the home's, to which the others refer, last.
  Status NoteNewRecord(const std::string& directory) {
    const std::string path = JoinPath(directory, kOpenedFileName);
    QUARRY_TRY_ASSIGN(const bool exists, env_->FileExists(path));
    if (!exists) made_.push_back({path, false});
    return Status::Ok();
  }

  /// Last: the catalogue names the paths, and none of them is taken back. What cannot be marked, and bears no record,
  /// is no place to append to; a path of before is still read.
  Status MarkPaths() {
    QUARRY_TRY(NoteNewRecord(context_->options.home_path));
    for (const SegmentPath& path : context_->paths) {
      if (!path.directory.empty() && path.unavailable.empty()) QUARRY_TRY(NoteNewRecord(path.directory));
    }
    for (const PathOwnership::Failure& failure : ownership_.Mark()) {
      for (SegmentPath& path : context_->paths) {
        if (path.directory != failure.directory) continue;
        if (std::count(context_->append_paths.begin(), context_->append_paths.end(), path.number) > 0) {
          return failure.status;
        }
        path.read_only =
            "data path '" + ParentPath(path.directory) +
            "' is only read, for it cannot be marked as this data directory's own: " + failure.status.ToString();
      }
    }
    std::erase_if(context_->append_paths, [this](uint32_t number) { return !context_->CheckWritable(number).ok(); });
    return Status::Ok();
  }

  /// Makes `path`, which bears no marker, one of ours.
  Result<uint32_t> AdoptPath(const std::string& path) {
    const std::string directory = JoinPath(path, kDataPathDirectoryName);
    QUARRY_TRY(MakeDirectory(directory));
    QUARRY_TRY(env_->SyncDirectory(path));  // a start that was killed may have made it
    const uint32_t number = state_.installation.next_path_number;
    QUARRY_TRY(WriteMarker(number, directory));
    return number;
  }

  Status WriteMarker(uint32_t number, const std::string& directory) {
    PathMarker marker;
    marker.installation = state_.installation.id;
    marker.path_number = number;
    marker.created_micros = env_->NowMicros();
    return Write(JoinPath(directory, kPathMarkerFileName), EncodePathMarker(marker));
  }

  /// That of a recorded path is damaged, and somebody says that the path is ours. Else a bit would take all of its
  /// values away for good.
  Status RemakeMarker(const std::string& path) {
    const std::string directory = JoinPath(path, kDataPathDirectoryName);
    const auto lock = env_->LockDirectory(directory, true);  // a server that has it open holds it
    QUARRY_TRY(lock.status());
    for (const auto& [number, place] : state_.paths) {
      if (place == path) return WriteMarker(number, directory);
    }
    return Missing(path);
  }

  /// A marker of ours is believed, wherever the path is mounted now.
  Status Record(uint32_t number, const std::string& path) {
    if (std::find(context_->append_paths.begin(), context_->append_paths.end(), number) !=
        context_->append_paths.end()) {
      return Status::InvalidArgument("data path '" + path + "' is the same as another one given");
    }
    state_.Apply(DataPath{number, path});
    return Status::Ok();
  }

  void AddPath(SegmentPath path) {
    while (context_->paths.size() <= path.number) {
      const auto number = static_cast<uint32_t>(context_->paths.size());
      context_->paths.push_back({number, "", "data path " + std::to_string(number) + " is not known"});
      context_->paths.back().tasks = context_->MakePathTasks();
    }
    path.tasks = context_->paths[path.number].tasks;
    context_->paths[path.number] = std::move(path);
  }

  StoreContext* const context_;
  Env* const env_;
  PathOwnership ownership_;
  CatalogueState state_;
  std::vector<Made> made_;
  bool has_made_catalogue_ = false;
};

}  // namespace

Status OpenDataPaths(StoreContext* context) { return Opener(context).Open(); }

}  // namespace quarry
