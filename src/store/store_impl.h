// StoreImpl: one store, its segments and its lanes.
//
// Invariants:
//  - A segment's record in the catalogue was durable before the first append to it.
//  - Segment numbers rise; a segment is registered before anything is appended to it, and stays until EmptyTrash, or
//    until GC found it all dead. Its number is not used again.
//  - The catalogue decides whether the store is in the trash; the directory it lies in follows.
//  - A store that the catalogue does not name (its record is lost) is read, and bound by a scan of heads; until then
//    nothing is written for it or given back.
// Thread-safety: internally synchronised. Lock order: docs/internals/concurrency.md.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "append/lane.h"
#include "base/mutex.h"
#include "base/published_atomic.h"
#include "base/shared_mutex.h"
#include "context/store_context.h"
#include "format/catalogue_record.h"
#include "quarry/store.h"
#include "segment/segment.h"
#include "segment/segment_verify.h"

namespace quarry {

struct AppendedExtent;

class StoreImpl final : public Store, public SegmentFactory, public SegmentLocator {
 public:
  /// `record` gives the bindings and the numbers; its segments are registered by the caller. `is_recorded`: the
  /// catalogue names the store.
  [[nodiscard]] static std::shared_ptr<StoreImpl> Make(std::shared_ptr<StoreContext> context,
                                                       const CatalogueStore& record, bool in_trash, bool is_recorded);

  // Store
  [[nodiscard]] StoreId id() const override { return id_; }
  [[nodiscard]] Result<Locator> Append(std::span<const uint8_t> value, const AppendOptions& options,
                                       UnsyncedExtents* unsynced) override;
  [[nodiscard]] Status SyncAll() override;
  void Release(const Locator& locator) override;
  [[nodiscard]] StoreStats GetStats() const override;
  /// Without real_bytes, which ask each file.
  [[nodiscard]] StoreStats GetStatsWithoutFiles() const;

  // What the directory asks for.
  /// What the value cache holds of it.
  [[nodiscard]] const ValueCache::Tally& cached_bytes() const { return cached_bytes_; }
  [[nodiscard]] Status Sync(SegmentNumber segment, uint64_t flush_ticket, bool counted, const Canceller* canceller);
  void WakeWaiters();
  /// Lane::StartFlush; what it said is for Sync.
  [[nodiscard]] bool StartSync(SegmentNumber segment, uint64_t flush_ticket);
  /// Adds what a commit record says of the extent, which is of this life of the process.
  [[nodiscard]] Status Describe(const Locator& locator, CommitRecord* record);
  /// StoreDirectory::HoldsDurably (commit_check.cc).
  [[nodiscard]] Result<bool> HoldsDurably(std::span<const CommitRecord::Extent> extents);
  /// Seals, flushes and trims the active segments: a clean shutdown.
  [[nodiscard]] Status Seal();
  /// Appends to the catalogue what has changed of the segments that it names, counters too. Null: nothing.
  [[nodiscard]] Catalogue::Ticket RecordChanges() QUARRY_EXCLUDES(record_mutex_);
  /// The same for these segments, as far as they are in use.
  [[nodiscard]] Catalogue::Ticket RecordSegments(std::span<const SegmentNumber> segments)
      QUARRY_EXCLUDES(record_mutex_);
  void RegisterSegment(const std::shared_ptr<Segment>& segment);

  [[nodiscard]] Status SyncRecords(const Catalogue::Ticket& ticket) { return context_->catalogue->Sync(ticket); }

  // What GC asks for.
  /// Bound to some table, and untouched by damage of the catalogue: else none of its segments is collected.
  [[nodiscard]] bool MayBeCollected() const;
  /// Whatever was appended so far lies in segments that are not active, as far as they could be sealed now.
  void SealForGc();
  /// Those that nobody writes any more, by number.
  [[nodiscard]] std::vector<std::shared_ptr<Segment>> SealedSegments() const;
  /// Takes a segment that holds nothing needed out of the catalogue, then unlinks its file. On error it is still there,
  /// at the latest after the next start.
  [[nodiscard]] Status UnlinkSegment(const std::shared_ptr<Segment>& segment)
      QUARRY_EXCLUDES(swap_mutex_, record_mutex_);

  /// Adds where the segments are.
  [[nodiscard]] Status AddToBackup(BackupSnapshot* snapshot) QUARRY_EXCLUDES(location_mutex_);

  /// Null: there is none.
  [[nodiscard]] std::shared_ptr<Segment> FindSegment(SegmentNumber segment) const;
  /// The same, or kNotFound.
  [[nodiscard]] Result<std::shared_ptr<Segment>> RequireSegment(SegmentNumber segment) const;

  // What a scrub asks for.
  /// By number.
  [[nodiscard]] std::vector<std::shared_ptr<Segment>> AllSegments() const;
  /// What `segment` must be on disk, as far as it is complete. Nothing: it is busy, or failed.
  [[nodiscard]] std::optional<ExpectedSegment> ExpectOnDisk(const Segment& segment);
  /// The segment's file, to be read from the device itself, and its path.
  [[nodiscard]] Result<LeasedFile<ReadableFile>> OpenSegmentForVerify(const Segment& segment, std::string* path)
      QUARRY_EXCLUDES(location_mutex_);

  // What GC's rewriting asks for (store_rewrite.cc).
  /// Its device has kept a flush waiting for long: whoever has something else to do stays away.
  [[nodiscard]] bool IsOnSlowPath(const Segment& segment) const;
  [[nodiscard]] uint64_t NowMicros() const { return context_->env->NowMicros(); }
  /// nullptr: nothing can be encrypted or decrypted.
  [[nodiscard]] CipherProvider* cipher_provider() const { return context_->options.cipher_provider.get(); }
  /// The segment's file, for a look that leaves it as it was: its own when that is open, else one of the caller's. So
  /// who looks at many segments keeps none of them open, and waits for no descriptor.
  struct Look {
    ReadPin pin;
    LeasedFile<ReadableFile> opened;
    [[nodiscard]] ReadableFile* file() const { return pin.empty() ? opened.get() : pin.get(); }
  };
  [[nodiscard]] Result<Look> OpenForLook(const Segment& segment) QUARRY_EXCLUDES(location_mutex_);
  /// Opens nothing.
  [[nodiscard]] Result<FileSpace> SpaceOf(const Segment& segment) QUARRY_EXCLUDES(location_mutex_);
  /// No other took its place, and it was not unlinked.
  [[nodiscard]] bool IsCurrent(const std::shared_ptr<Segment>& segment) const;
  /// A handle on the file of `segment`, never on one that took its place: then kNotFound.
  [[nodiscard]] Result<LeasedFile<WritableFile>> OpenForHoles(const std::shared_ptr<Segment>& segment)
      QUARRY_EXCLUDES(swap_mutex_, location_mutex_);
  /// The file beside a segment's own that is to take its place.
  [[nodiscard]] Result<LeasedFile<WritableFile>> CreateRewritten(const Segment& segment)
      QUARRY_EXCLUDES(location_mutex_);
  [[nodiscard]] Result<LeasedFile<ReadableFile>> OpenRewritten(const Segment& segment) QUARRY_EXCLUDES(location_mutex_);
  void RemoveRewritten(const Segment& segment) QUARRY_EXCLUDES(location_mutex_);
  /// Puts it in the place of `segment`'s, by name and for reads. Its content is flushed. Readers of `segment` keep the
  /// old file. Errors: kNotFound when another one is in its place, or none; after kIoError `is_in_place` tells which
  /// is, and a crash may leave the one or the other: both are whole.
  [[nodiscard]] Status PublishRewritten(const std::shared_ptr<Segment>& segment, uint64_t size_bytes,
                                        const Segment::Content& content, bool* is_in_place)
      QUARRY_EXCLUDES(swap_mutex_, location_mutex_);

  /// Recovery found files beyond the catalogue's numbers.
  void RaiseNextSegment(SegmentNumber next) { next_segment_.store(next.value); }

  /// Its folder in the home, when it lies there.
  [[nodiscard]] std::string HomeDirectory(bool in_trash) const;

  /// What the store is bound to. Changes are durable when they return; on error nothing changed in memory.
  struct Binding {
    std::vector<TableId> tables;  ///< while rebinding: the old one, then, if it was recorded, the new one
    std::string table_name;
    bool rebinding = false;
    bool discarded = false;
    uint64_t discarded_at_lsn = 0;
    std::optional<uint16_t> prefix_limit_bytes;
    friend bool operator==(const Binding&, const Binding&) = default;
    /// While rebinding.
    [[nodiscard]] RebindPair pair() const;
  };
  [[nodiscard]] Binding GetBinding() const;
  /// Its files are being unlinked, or are gone by name: only a crash could bring it back, as one that is discarded.
  [[nodiscard]] bool is_going() const { return presence_.load(std::memory_order_acquire) != Presence::kThere; }
  /// A rebuild of its table is under way in this process: only who began it may decide it.
  [[nodiscard]] bool rebuilding() const { return rebuilding_.load(std::memory_order_acquire); }
  void set_rebuilding(bool rebuilding) { rebuilding_.store(rebuilding, std::memory_order_release); }
  /// GetBinding().discarded, without a lock.
  [[nodiscard]] bool discarded() const { return discarded_.load(std::memory_order_acquire); }
  [[nodiscard]] Status SetBinding(const Binding& binding) QUARRY_EXCLUDES(record_mutex_);
  /// Moves the home's store directory to where the binding says that it belongs.
  [[nodiscard]] Status MoveToWhereItBelongs();
  /// From now on it is_going. False: another call unlinks it already. One call at a time; no binding may be changed
  /// meanwhile.
  [[nodiscard]] bool BeginUnlink();
  /// Unlinks everything. On error it is there again, or gone by name alone: to be repeated, from BeginUnlink on.
  [[nodiscard]] Status Unlink();
  /// None of its segments lies on a path that fails or is slow.
  [[nodiscard]] bool HasWellPaths(uint64_t now_micros) const;
  /// Of a store that goes, and waits for a data path: what lies on the others. The bytes that this gave back.
  [[nodiscard]] uint64_t UnlinkWhatIsThere();
  /// Its record in the catalogue could not be removed.
  void FailUnlink() { presence_.store(Presence::kGone, std::memory_order_release); }
  /// kUnavailable while a segment lies on a data path that is away or only read, or damage may concern the store.
  [[nodiscard]] Status CheckUnlinkable() const;
  [[nodiscard]] bool MayGiveBack() const { return context_->CheckGiveBack(id_).ok(); }
  [[nodiscard]] bool MayWriteTo(const Segment& segment) const {
    return context_->CheckWritable(segment.path_number()).ok();
  }

  // SegmentFactory, SegmentLocator
  [[nodiscard]] Result<std::shared_ptr<SegmentFile>> CreateSegment(uint32_t path_number,
                                                                   std::weak_ptr<FileHolder> holder,
                                                                   const Canceller* canceller) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> OpenSegmentForWrite(SegmentNumber segment,
                                                                          uint32_t path_number) override;
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> OpenSegmentForRead(SegmentNumber segment,
                                                                         uint32_t path_number) override;
  /// The directory of this store's segments on a path. Error: kUnavailable.
  [[nodiscard]] Result<std::string> SegmentDirectory(uint32_t path_number) QUARRY_EXCLUDES(location_mutex_);

 private:
  StoreImpl(std::shared_ptr<StoreContext> context, const CatalogueStore& record, bool in_trash, bool is_recorded);
  [[nodiscard]] Result<std::string> SegmentDirectoryLocked(uint32_t path_number) const
      QUARRY_THREAD_ANNOTATION(requires_shared_capability(location_mutex_));
  [[nodiscard]] Result<std::string> RewrittenPathLocked(const Segment& segment) const
      QUARRY_THREAD_ANNOTATION(requires_shared_capability(location_mutex_));
  [[nodiscard]] Result<AppendedExtent> AppendTo(Lane* lane, std::span<const uint8_t> value,
                                                const AppendOptions& options, const Canceller* canceller);
  [[nodiscard]] Lane* ChooseLane(const UnsyncedExtents& unsynced);
  [[nodiscard]] Lane* LaneOfPath(uint32_t path_number) const;
  [[nodiscard]] Status WhyThereIsNoLane() const;
  [[nodiscard]] CatalogueStore Describe(const Binding& binding) const;
  [[nodiscard]] CatalogueSegment Describe(const Segment& segment) const;
  /// Of segments that were sealed since they were recorded as active.
  [[nodiscard]] std::vector<CatalogueRecord> TakeSealed() QUARRY_REQUIRES(record_mutex_);
  [[nodiscard]] Status RecordNewSegment(const std::shared_ptr<Segment>& segment) QUARRY_EXCLUDES(record_mutex_);
  /// The segment's file with `header`, durable as its name is, while the store stays where it is. When it fails nothing
  /// is left, if that was possible.
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> CreateSegmentFile(const std::string& directory,
                                                                        const SegmentHeader& header,
                                                                        uint64_t* allocated_bytes);
  /// Error: kNotSupported: there is none left.
  [[nodiscard]] Result<SegmentNumber> TakeSegmentNumber();
  /// Nothing has it.
  void GiveBackSegmentNumber(SegmentNumber number);
  [[nodiscard]] Status UnlinkFiles(bool* is_gone) QUARRY_EXCLUDES(location_mutex_);
  /// kUnavailable when segments of this store lie on the path, and the path is not there any more.
  [[nodiscard]] Status CheckNotVanished(uint32_t path_number) const;
  [[nodiscard]] Status NotFound(SegmentNumber segment) const;

  const std::shared_ptr<StoreContext> context_;
  const StoreId id_;
  const uint64_t created_micros_;
  const ValueCache::Tally cached_bytes_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::vector<std::shared_ptr<Lane>> lanes_;  ///< constant after Make
  std::atomic<uint64_t> next_lane_{0};
  PublishedAtomic<uint32_t> next_segment_;

  enum class Presence : uint8_t { kThere, kGoing, kGone };
  std::atomic<Presence> presence_{Presence::kThere};

  mutable Mutex swap_mutex_;  ///< GC's alone: which file has a segment's name; held while that changes
  /// Held while records are appended to the catalogue, which does no I/O: they stand there in the order of the changes.
  mutable Mutex record_mutex_ QUARRY_ACQUIRED_AFTER(swap_mutex_);
  bool is_recorded_ QUARRY_GUARDED_BY(record_mutex_);
  bool is_in_doubt_ QUARRY_GUARDED_BY(record_mutex_);  ///< the last record of the binding failed, or none was written
  std::vector<SegmentNumber> active_recorded_ QUARRY_GUARDED_BY(record_mutex_);  ///< and not recorded as sealed yet

  mutable Mutex binding_mutex_ QUARRY_ACQUIRED_AFTER(record_mutex_);
  Binding binding_ QUARRY_GUARDED_BY(binding_mutex_);
  PublishedAtomic<bool> discarded_;  ///< binding_.discarded
  std::atomic<bool> rebuilding_{false};

  mutable SharedMutex location_mutex_;  ///< held shared while a file is opened or created by its path
  bool in_trash_ QUARRY_GUARDED_BY(location_mutex_);

  mutable SharedMutex segments_mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Segment>> segments_ QUARRY_GUARDED_BY(segments_mutex_);
};

}  // namespace quarry
