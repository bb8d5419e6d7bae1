#include "store/store_recovery.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "format/segment_header.h"
#include "format/small_file.h"
#include "io/path.h"
#include "store/layout.h"
#include "store/segment_scan.h"

namespace quarry {
namespace {

/// Path number of every segment file that there is, by segment number.
Result<std::map<uint32_t, uint32_t>> FindSegmentFiles(StoreContext* context, StoreImpl* store) {
  std::map<uint32_t, uint32_t> found;
  for (uint32_t number = 0; number < context->paths.size(); ++number) {
    const Result<std::string> directory = store->SegmentDirectory(number);
    if (!directory.ok()) continue;  // away: what lies there is in the manifest or comes back later
    const Result<std::vector<std::string>> names = context->env->ListDirectory(*directory);
    if (names.status().code() == StatusCode::kNotFound) continue;
    QUARRY_TRY(names.status());
    for (const std::string& name : *names) {
      if (const auto segment = ParseSegmentFileName(name); segment) found.emplace(segment->value, number);
      // The rewriting of a segment was cut off: its own file is whole.
      if (IsLeftover(name) && store->has_manifest() && context->CheckWritable(number).ok()) {
        QUARRY_TRY(context->env->RemoveFile(JoinPath(*directory, name)));
      }
    }
  }
  return found;
}

/// Seals a segment that may have grown since the manifest, as long as its file is: no byte of a value may decide what
/// stays. The scan is for the counters. False: there is nothing in the file.
Result<bool> SealRecovered(StoreImpl* store, Segment* segment, const ManifestSegment& known) {
  QUARRY_TRY_ASSIGN(ReadableFile* const file, segment->FileForRead(store));
  QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
  if (size <= kSegmentHeaderSizeBytes) {
    return false;  // the header is durable before the first extent: nothing was ever appended
  }
  const Result<std::shared_ptr<const SegmentMap>> map = segment->Map(store);
  // A map that is damaged, or of a newer version, is each read's to report. Any other failure says nothing of the file.
  const StatusCode code = map.status().code();
  if (!map.ok() && code != StatusCode::kCorruption && code != StatusCode::kNotSupported) return map.status();
  if (!map.ok() || *map != nullptr) {
    // Rewritten after the manifest that is here was written (it came from a copy, or is lost): the manifest's position
    // means nothing.
    SegmentScan scan;
    if (map.ok()) {
      QUARRY_TRY_ASSIGN(scan, ScanRewrittenSegment(file, store->id(), segment->number(), **map));
    }
    const bool is_all = map.ok() && !scan.passed_over;
    segment->RestoreCounters(scan.extents, scan.bytes, 0, size,
                             is_all ? CountedExtents::kAll : CountedExtents::kEstimated);
    segment->set_state(SegmentState::kSealed);
    return true;
  }
  QUARRY_TRY_ASSIGN(const SegmentScan scan,
                    ScanSegment(file, store->id(), segment->number(), known.checkpoint_position_bytes));
#ifdef QUARRY_PLANTED_BUG_RECOVERY_CUTS
  if (const uint64_t end = RoundUpToBlock(scan.end_bytes); end < size && end > kSegmentHeaderSizeBytes) {
    QUARRY_TRY_ASSIGN(const std::unique_ptr<WritableFile> writable,
                      store->OpenSegmentForWrite(segment->number(), segment->path_number()));
    QUARRY_TRY(writable->Truncate(end));
    QUARRY_TRY(writable->Sync());
  }
#endif
  segment->RestoreCounters(known.extents + scan.extents, known.live_bytes + scan.bytes, known.dead_bytes, size,
                           CountedExtents::kEstimated);
  segment->set_state(SegmentState::kSealed);
  return true;
}

Result<Manifest> ReadManifest(StoreContext* context, StoreId store, bool in_trash) {
  const std::string parent =
      JoinPath(context->options.home_path, in_trash ? kTrashDirectoryName : kStoresDirectoryName);
  const std::string path = JoinPath(JoinPath(parent, StoreDirectoryName(store)), kManifestFileName);
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, context->env->ReadSmallFile(path, kSmallFileMaxBytes));
  return DecodeManifest(bytes, store);
}

}  // namespace

Result<std::shared_ptr<StoreImpl>> RecoverStore(const std::shared_ptr<StoreContext>& context, StoreId store_id,
                                                bool in_trash) {
  Result<Manifest> read = ReadManifest(context.get(), store_id, in_trash);
  const bool has_manifest = read.ok();
  if (!has_manifest && read.status().code() != StatusCode::kNotFound) return read.status();
  Manifest manifest;
  manifest.store = store_id;
  if (has_manifest) manifest = std::move(read).value();
  std::shared_ptr<StoreImpl> store = StoreImpl::Make(context, manifest, in_trash, has_manifest);
  QUARRY_TRY_ASSIGN(auto files, FindSegmentFiles(context.get(), store.get()));
  if (!has_manifest && files.empty()) {
    // The manifest was to be durable before the first append, so this store never was.
    const std::string parent =
        JoinPath(context->options.home_path, in_trash ? kTrashDirectoryName : kStoresDirectoryName);
    // Not worth failing for: what stays is an empty directory, whose id is not used again.
    (void)context->env->RemoveDirectory(JoinPath(parent, StoreDirectoryName(store_id)));
    return std::shared_ptr<StoreImpl>();
  }
  bool changed = false;
  uint32_t next_segment = manifest.next_segment.value;
  std::map<uint32_t, ManifestSegment> known;
  for (const ManifestSegment& segment : manifest.segments) known.emplace(segment.segment.value, segment);
  for (const auto& [number, path_number] : files) {
    if (known.contains(number)) continue;
    ManifestSegment unknown;  // made after the last checkpoint
    unknown.segment = SegmentNumber{number};
    unknown.path_number = path_number;
    unknown.checkpoint_position_bytes = kSegmentHeaderSizeBytes;
    known.emplace(number, unknown);
    next_segment = std::max(next_segment, number + 1);
  }
  store->RaiseNextSegment(SegmentNumber{next_segment});
  std::vector<std::string> empty_files;
  for (const auto& [number, described] : known) {
    auto segment = std::make_shared<Segment>(context, store_id, described.segment, described.path_number);
    segment->set_state(described.state);
    if (described.state != SegmentState::kActive) segment->set_sealed_on_disk();
    // A file that is away keeps its place: only reads of it fail. One that was active is scanned from its beginning
    // when it comes back, and counts for nothing until then.
    if (described.state != SegmentState::kActive) {
      segment->RestoreCounters(described.extents, described.live_bytes, described.dead_bytes, described.size_bytes,
                               CountedOf(described));
    }
    bool keep = true;
    if (described.state == SegmentState::kActive && files.contains(number)) {
      QUARRY_TRY_ASSIGN(keep, SealRecovered(store.get(), segment.get(), described));
      changed = true;
    }
    if (keep) {
      store->RegisterSegment(segment);
    } else if (store->MayWriteTo(*segment)) {
      QUARRY_TRY_ASSIGN(const std::string directory, store->SegmentDirectory(described.path_number));
      empty_files.push_back(JoinPath(directory, SegmentFileName(described.segment)));
    }
  }
  if (changed) {
    // Saves the next start the same scan. A full disk must not keep anybody from reading.
    const Status status = store->Checkpoint();
    if (!status.ok() && status.code() != StatusCode::kNoSpace) return status;
    // Not before the manifest forgot them: a crash in between would leave segments listed that are nowhere.
    for (const std::string& path : empty_files) {
      if (status.ok()) QUARRY_TRY(context->env->RemoveFile(path));
    }
  }
  QUARRY_TRY(store->MoveToWhereItBelongs());
  return store;
}

}  // namespace quarry
