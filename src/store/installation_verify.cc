// VerifyInstallation: all files of an installation, as they lie there.
//
// Invariants: nothing is written; while it runs the home is held, so that no server starts on it.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "format/path_marker.h"
#include "format/small_file.h"
#include "io/path.h"
#include "quarry/options.h"
#include "segment/segment_verify.h"
#include "store/installation_verify.h"

namespace quarry {
namespace {

/// Where the segments of one path number lie. Number 0: in the home.
struct Path {
  std::string directory;    ///< holds one folder per store
  std::string unavailable;  ///< why it cannot be looked at; empty: it can
};

struct SegmentOnDisk {
  uint32_t path_number = 0;
  std::string path;
};

struct StoreOnDisk {
  StoreId id;
  std::string home;  ///< its folder under stores/ or trash/; empty: there is none
  bool in_trash = false;
  std::optional<CatalogueStore> record;
  std::map<uint32_t, SegmentOnDisk> segments;
};

class InstallationVerifier {
 public:
  InstallationVerifier(Env* env, const VerifyOptions& options, VerifyObserver* observer)
      : env_(env), options_(options), observer_(observer) {}

  Result<VerifyTotals> Run() {
    QUARRY_TRY_ASSIGN(const std::unique_ptr<DirectoryLock> lock, Lock());
    QUARRY_TRY(ReadHome());
    QUARRY_TRY(FindPaths());
    for (const bool in_trash : {false, true}) ListHomes(in_trash);
    ListDataPaths();
    for (const auto& [id, store] : stores_) progress_.bytes_total += SizeOf(store);
    for (auto& [id, store] : stores_) {
      ++totals_.stores;
      VerifyStore(store);
      if (totals_.stopped) break;
    }
    return totals_;
  }

 private:
  Result<std::unique_ptr<DirectoryLock>> Lock() {
    const std::string& home = options_.home_path;
    auto lock = env_->LockDirectory(home, false);
    if (lock.status().code() == StatusCode::kUnavailable) {
      return Status::Unavailable("'" + home +
                                 "' is in use by a running server: stop it first, or verify a copy or snapshot; on "
                                 "the running server CHECK TABLE and the scrub do the same");
    }
    if (!lock.ok()) return lock.status().WithContext("'" + home + "' is no folder of stores");
    return lock;
  }

  void Add(Finding finding) {
    ++totals_.findings[static_cast<size_t>(finding.kind)];
    observer_->Found(finding);
  }

  void AddPlain(FindingKind kind, const std::string& path, const std::string& what) {
    Finding finding;
    finding.kind = kind;
    finding.path = path;
    finding.what = what;
    Add(std::move(finding));
  }

  void AddOfStore(FindingKind kind, const StoreOnDisk& store, const std::string& path, const std::string& what,
                  SegmentNumber segment = {}) {
    Add(Of(kind, store, path, what, segment));
  }

  static Finding Of(FindingKind kind, const StoreOnDisk& store, const std::string& path, const std::string& what,
                    SegmentNumber segment) {
    Finding finding;
    finding.kind = kind;
    finding.path = path;
    finding.store = store.id;
    finding.segment = segment;
    finding.what = what;
    if (store.record.has_value()) {
      finding.table_name = store.record->table_name;
      if (!store.record->tables.empty()) finding.table = store.record->tables.back();
    }
    return finding;
  }

  static FindingKind KindOf(const Status& status) {
    if (status.code() == StatusCode::kNotFound) return FindingKind::kMissing;
    return status.code() == StatusCode::kIoError ? FindingKind::kUnreadable : FindingKind::kDamaged;
  }

  // The bytes of a small file whose decoding is what verifies it.
  Result<std::vector<uint8_t>> ReadSmall(const std::string& path) {
    QUARRY_TRY_ASSIGN(std::vector<uint8_t> bytes, env_->ReadSmallFile(path, kSmallFileMaxBytes));
    ++totals_.other_files;
    totals_.bytes += bytes.size();
    return bytes;
  }

  // Damaged, it costs no value: the data path is only read until it is adopted.
  void VerifyOpenedRecord(const std::string& directory) {
    const std::string path = JoinPath(directory, kOpenedFileName);
    const Result<std::vector<uint8_t>> bytes = ReadSmall(path);
    const Status status = bytes.ok() ? DecodeOpenedRecord(*bytes).status() : bytes.status();
    if (!status.ok()) AddPlain(KindOf(status), path, status.ToString());
  }

  Status ReadHome() {
    QUARRY_TRY_ASSIGN(const std::vector<std::string> names, env_->ListDirectory(options_.home_path));
    const bool has_stores = std::find(names.begin(), names.end(), kStoresDirectoryName) != names.end();
    if (std::find(names.begin(), names.end(), kUnreleasedFileName) != names.end()) {
      return Status::NotSupported("'" + options_.home_path + "' was made by a build from before the first release");
    }
    const Result<CatalogueOnDisk> catalogue = ReadCatalogue(env_, options_.home_path);
    const bool has_catalogue = !catalogue.ok() || !catalogue->generations.empty();
    if (!has_catalogue && !has_stores) {
      return Status::NotFound("there is no Quarry in '" + options_.home_path + "' (wanted: the folder " + kHomeName +
                              " of a data directory, with a catalogue and stores/ in it)");
    }
    for (const std::string& name : names) {
      if (name == kStoresDirectoryName || name == kTrashDirectoryName || ParseCatalogueFileName(name)) continue;
      if (name == kOpenedFileName) {
        VerifyOpenedRecord(options_.home_path);
        continue;
      }
      AddUnknown(JoinPath(options_.home_path, name), name);
    }
    TakeCatalogue(catalogue);
    return Status::Ok();
  }

  void TakeCatalogue(const Result<CatalogueOnDisk>& catalogue) {
    const std::string home = options_.home_path;
    if (!catalogue.ok()) return AddPlain(KindOf(catalogue.status()), home, catalogue.status().ToString());
    if (catalogue->generations.empty()) return AddPlain(FindingKind::kMissing, home, "there is no catalogue");
    const std::string path = JoinPath(home, CatalogueFileName(catalogue->generation));
    for (const uint64_t generation : catalogue->generations) {
      if (generation == catalogue->generation) continue;
      AddPlain(FindingKind::kLeftover, JoinPath(home, CatalogueFileName(generation)),
               "a catalogue that does not count; the next start removes it");
    }
    ++totals_.other_files;
    totals_.bytes += catalogue->size_bytes;
    for (const CatalogueLoss& loss : catalogue->losses) {
      Finding finding;
      finding.path = path;
      finding.store = loss.store;
      finding.offset_bytes = loss.offset_bytes;
      finding.what = loss.what;
      Add(std::move(finding));
    }
    for (const CatalogueDamage& damage : catalogue->state.damage) {
      Finding finding;
      finding.path = path;
      finding.store = damage.store;
      finding.what = "an earlier start found damage (" + damage.what + "): nothing is given back";
      Add(std::move(finding));
    }
    state_ = catalogue->state;
    if (state_.installation.id != InstallationId{}) installation_ = state_.installation.id;
    for (const auto& [id, store] : state_.stores) {
      stores_[id].id = id;
      stores_[id].record = store.record;
    }
  }

  // What a crash leaves of a marker that was replaced is Quarry's own.
  void AddUnknown(const std::string& path, const std::string& name) {
    if (name == std::string(kPathMarkerFileName) + ".new" || name == std::string(kOpenedFileName) + ".new") {
      AddPlain(FindingKind::kLeftover, path, "a crash cut off the writing of this file; the next writing replaces it");
    } else if (ParseRebuiltFromName(name)) {
      AddPlain(FindingKind::kLeftover, path, "the catalogue was rebuilt from this one; it may be removed");
    } else {
      AddPlain(FindingKind::kForeign, path, "no file of Quarry's has this name here");
    }
  }

  Result<PathMarker> ReadMarker(const std::string& path) {
    QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes,
                      ReadSmall(JoinPath(JoinPath(path, kDataPathDirectoryName), kPathMarkerFileName)));
    return DecodePathMarker(bytes);
  }

  Status FindPaths() {
    paths_[0] = {};
    for (const std::string& path : options_.data_paths) {
      const Result<PathMarker> marker = ReadMarker(path);
      if (!marker.ok()) {
        return Status::InvalidArgument("'" + path + "' is no data path of Quarry: " + marker.status().ToString());
      }
      if (installation_.has_value() && marker->installation != *installation_) {
        return Status::InvalidArgument("data path '" + path + "' belongs to another installation");
      }
      paths_[marker->path_number] = {JoinPath(path, kDataPathDirectoryName), ""};
    }
    for (const auto& [number, place] : state_.paths) {
      if (paths_.contains(number)) continue;
      const std::string directory = JoinPath(place, kDataPathDirectoryName);
      const Result<PathMarker> marker = ReadMarker(place);
      Path path{directory, ""};
      if (marker.ok() && marker->installation == installation_ && marker->path_number == number) {
        paths_[number] = path;
        continue;
      }
      const bool is_missing = marker.status().code() == StatusCode::kNotFound;
      path.unavailable = is_missing    ? "is missing or not mounted"
                         : marker.ok() ? "is another installation's, or another path of this one"
                                       : marker.status().ToString();
      // A marker that does not verify keeps nobody from looking at what lies beside it.
      if (!is_missing && !marker.ok()) {
        AddPlain(KindOf(marker.status()), JoinPath(directory, kPathMarkerFileName), path.unavailable);
        path.unavailable.clear();
      } else {
        AddPlain(FindingKind::kUnreadable, place,
                 "data path " + std::to_string(number) + " " + path.unavailable +
                     ": nothing on it was looked at (mount it, or say where it is)");
      }
      paths_[number] = path;
    }
    return Status::Ok();
  }

  void ListHomes(bool in_trash) {
    const std::string parent = JoinPath(options_.home_path, in_trash ? kTrashDirectoryName : kStoresDirectoryName);
    const Result<std::vector<std::string>> names = env_->ListDirectory(parent);
    if (!names.ok()) {
      AddPlain(KindOf(names.status()), parent, names.status().ToString());
      return;
    }
    for (const std::string& name : *names) {
      const std::optional<StoreId> id = ParseStoreDirectoryName(name);
      const std::string path = JoinPath(parent, name);
      if (!id.has_value()) {
        AddPlain(FindingKind::kForeign, path, "no folder of a store has this name");
        continue;
      }
      StoreOnDisk& store = stores_[*id];
      store.id = *id;
      if (!store.home.empty()) {
        AddOfStore(FindingKind::kForeign, store, path, "the store lies in stores/ as well");
        continue;
      }
      store.home = path;
      store.in_trash = in_trash;
      ListSegments(&store, path, 0);
    }
  }

  void ListDataPaths() {
    for (auto& [number, path] : paths_) {
      if (number == 0 || !path.unavailable.empty()) continue;
      const Result<std::vector<std::string>> names = env_->ListDirectory(path.directory);
      if (!names.ok()) {
        AddPlain(KindOf(names.status()), path.directory, names.status().ToString());
        path.unavailable = "cannot be listed";  // no segment there is missing
        continue;
      }
      for (const std::string& name : *names) {
        const std::string full = JoinPath(path.directory, name);
        const std::optional<StoreId> id = ParseStoreDirectoryName(name);
        if (id.has_value()) {
          StoreOnDisk& store = stores_[*id];
          store.id = *id;
          ListSegments(&store, full, number);
        } else if (name == kOpenedFileName) {
          VerifyOpenedRecord(path.directory);
        } else if (name != kPathMarkerFileName) {
          AddUnknown(full, name);
        }
      }
    }
  }

  void ListSegments(StoreOnDisk* store, const std::string& directory, uint32_t path_number) {
    const Result<std::vector<std::string>> names = env_->ListDirectory(directory);
    if (!names.ok()) {
      AddOfStore(KindOf(names.status()), *store, directory,
                 names.status().ToString() + ": in this folder only what the catalogue names is looked at");
      TakeListed(store, directory, path_number);
      return;
    }
    for (const std::string& name : *names) {
      const std::string path = JoinPath(directory, name);
      const std::optional<SegmentNumber> segment = ParseSegmentFileName(name);
      if (segment.has_value()) {
        const auto [found, is_new] = store->segments.try_emplace(segment->value, SegmentOnDisk{path_number, path});
        if (!is_new) AddOfStore(FindingKind::kForeign, *store, path, "the segment is there twice", *segment);
      } else if (IsLeftover(name)) {
        AddPlain(FindingKind::kLeftover, path, "GC was cut off while it rewrote a segment; the next start removes it");
      } else {
        AddUnknown(path, name);
      }
    }
  }

  // As a start reads what lies in a folder that cannot be listed.
  void TakeListed(StoreOnDisk* store, const std::string& directory, uint32_t path_number) {
    const auto known = state_.stores.find(store->id);
    if (known == state_.stores.end()) return;
    for (const auto& [number, listed] : known->second.segments) {
      if (listed.path_number != path_number) continue;
      const std::string path = JoinPath(directory, SegmentFileName(listed.segment));
      const Result<bool> is_there = env_->FileExists(path);
      if (!is_there.ok() || *is_there) store->segments.try_emplace(number, SegmentOnDisk{path_number, path});
    }
  }

  uint64_t SizeOf(const StoreOnDisk& store) {
    uint64_t size = 0;
    for (const auto& [number, segment] : store.segments) {
      const auto file = env_->OpenForRead(segment.path);
      const Result<uint64_t> bytes = file.ok() ? (*file)->SizeBytes() : file.status();
      if (bytes.ok()) size += *bytes;
    }
    return size;
  }

  void VerifyStore(const StoreOnDisk& store) {
    const auto known = state_.stores.find(store.id);
    const std::map<uint32_t, CatalogueSegment> none;
    const std::map<uint32_t, CatalogueSegment>& listed = known == state_.stores.end() ? none : known->second.segments;
    CheckHome(store);
    for (const auto& [number, segment] : listed) CheckListed(store, segment);
    for (const auto& [number, segment] : store.segments) {
      const auto found = listed.find(number);
      VerifyOne(store, SegmentNumber{number}, segment, found == listed.end() ? nullptr : &found->second);
      if (totals_.stopped) return;
    }
  }

  void CheckHome(const StoreOnDisk& store) {
    const std::string home = store.home.empty() ? StoreDirectoryName(store.id) : store.home;
    if (!store.record.has_value()) {
      AddOfStore(store.segments.empty() ? FindingKind::kLeftover : FindingKind::kMissing, store, home,
                 store.segments.empty() ? "an empty folder of a store, which the next start removes"
                                        : "the catalogue has no record of this store: values stay readable, nothing is "
                                          "given back until a mark pass finds which table it belongs to");
    } else if (store.home.empty() && store.record->discarded) {
      AddOfStore(FindingKind::kLeftover, store, home, "the table was dropped; giving back its space has begun");
    } else if (store.home.empty()) {
      AddOfStore(FindingKind::kLeftover, store, home, "there is no folder of the store; the next start makes it");
    } else if (store.record->discarded != store.in_trash) {
      AddOfStore(FindingKind::kLeftover, store, home, "a crash cut off its move; the next start ends it");
    }
  }

  // What the catalogue lists must be there.
  void CheckListed(const StoreOnDisk& store, const CatalogueSegment& segment) {
    if (store.segments.contains(segment.segment.value)) return;
    const auto path = paths_.find(segment.path_number);
    const std::string directory = segment.path_number == 0 || path == paths_.end()
                                      ? store.home
                                      : JoinPath(path->second.directory, StoreDirectoryName(store.id));
    const std::string file = JoinPath(directory, SegmentFileName(segment.segment));
    if (path == paths_.end() || !path->second.unavailable.empty()) {
      AddOfStore(FindingKind::kUnreadable, store, file, "its data path is missing, not mounted or cannot be listed",
                 segment.segment);
    } else if (store.record && store.record->discarded) {
      AddOfStore(FindingKind::kLeftover, store, file, "the table was dropped; giving back its space has begun",
                 segment.segment);
    } else {
      AddOfStore(FindingKind::kMissing, store, file, "the catalogue lists this segment, and there is no such file",
                 segment.segment);
    }
  }

  void VerifyOne(const StoreOnDisk& store, SegmentNumber number, const SegmentOnDisk& on_disk,
                 const CatalogueSegment* listed) {
    ++totals_.segments;
    const auto file = env_->OpenForVerify(on_disk.path);
    const Result<uint64_t> size = file.ok() ? (*file)->SizeBytes() : file.status();
    if (!size.ok()) {
      AddOfStore(KindOf(size.status()), store, on_disk.path, size.status().message(), number);
      return;
    }
    if (*size <= kSegmentHeaderSizeBytes &&
        (listed == nullptr || listed->counted != CountedExtents::kAll || listed->state == SegmentState::kActive)) {
      AddOfStore(FindingKind::kLeftover, store, on_disk.path,
                 "nothing was ever appended to it; the next mark pass removes it", number);
      progress_.bytes_done += *size;
      return;
    }
    ExpectedSegment expected;
    expected.store = store.id;
    expected.segment = number;
    expected.installation = installation_;
    if (listed != nullptr) {
      expected.salt = listed->salt;
      if (on_disk.path_number != listed->path_number) {
        AddOfStore(FindingKind::kForeign, store, on_disk.path,
                   "the catalogue says that this segment lies on data path " + std::to_string(listed->path_number),
                   number);
      }
      // Of an active segment nothing was counted, of a poisoned one also what was lost.
      if (listed->state == SegmentState::kSealed) expected.counted_bytes = listed->live_bytes + listed->dead_bytes;
      expected.counted = listed->counted;
    } else if (store.record) {
      AddOfStore(FindingKind::kLeftover, store, on_disk.path,
                 "the catalogue does not name this segment: it is kept until a mark pass finds that no row needs it",
                 number);
    }
    const uint64_t before = progress_.bytes_done;
    const Result<VerifiedSegment> verified =
        VerifySegment(file->get(), expected, [this, before, &size](uint64_t bytes) {
          // An index or a part is read anew when it does not lie in one window: not more than the file has counts as
          // done.
          progress_.bytes_done = std::min(progress_.bytes_done + bytes, before + *size);
          return observer_->Progress(progress_);
        });
    progress_.bytes_done = before + *size;
    if (!verified.ok()) {
      AddOfStore(KindOf(verified.status()), store, on_disk.path, "given up: " + verified.status().message(), number);
      return;
    }
    // The size of a rewritten one is in its own header, and was compared.
    if (listed != nullptr && !verified->is_rewritten) CheckSize(store, on_disk, *listed, *size);
    AddSegmentFindings(Of(FindingKind::kDamaged, store, on_disk.path, "", number), *verified, &totals_, observer_);
  }

  void CheckSize(const StoreOnDisk& store, const SegmentOnDisk& on_disk, const CatalogueSegment& listed,
                 uint64_t size) {
    if (listed.state == SegmentState::kActive || size >= listed.size_bytes) return;
    // A range that was reserved, and whose writing failed, may be missing at the end. It was not counted; but neither
    // are the dead after a mark pass, and so bytes that are there need not be those that were counted. Of a poisoned
    // segment what was lost was counted too, and of one that a start sealed nothing was.
    const uint64_t counted_bytes = listed.live_bytes + listed.dead_bytes;
    const bool is_too_small = kSegmentHeaderSizeBytes + counted_bytes > size;
    const bool is_counted = listed.state == SegmentState::kSealed && listed.counted != CountedExtents::kEstimated;
    const bool is_lost = is_counted && is_too_small;
    Finding finding =
        Of(is_lost ? FindingKind::kMissing : FindingKind::kDoubtful, store, on_disk.path,
           "the file has " + std::to_string(size) + " bytes, the catalogue says " + std::to_string(listed.size_bytes),
           listed.segment);
    finding.offset_bytes = size;
    finding.size_bytes = listed.size_bytes - size;
    Add(std::move(finding));
  }

  Env* const env_;
  const VerifyOptions& options_;
  VerifyObserver* const observer_;
  std::optional<InstallationId> installation_;  ///< none: the catalogue does not say
  CatalogueState state_;
  std::map<uint32_t, Path> paths_;
  std::map<StoreId, StoreOnDisk> stores_;
  VerifyProgress progress_;
  VerifyTotals totals_;
};

}  // namespace

Result<VerifyTotals> VerifyInstallationFiles(Env* env, const VerifyOptions& options, VerifyObserver* observer) {
  return InstallationVerifier(env, options, observer).Run();
}

Result<VerifyTotals> VerifyInstallation(const VerifyOptions& options, VerifyObserver* observer) {
  return VerifyInstallationFiles(Env::Posix(), options, observer);
}

}  // namespace quarry
