// GcPassImpl: one pass: candidates and marks (gc_pass.cc), and what is done with each segment once the marks are
// complete (gc_reclaim.cc).
//
// Invariants:
//  - Space is given back only in segments that were sealed when the pass began, and only in blocks that hold no byte of
//    a marked extent. Header, map and their copies stay as long as the file.
//  - A segment leaves the catalogue before its file is unlinked. A file that a crash leaves is found again at the next
//    start as one that no record names, and unlinked by the next pass; its number is not used again.
//  - Holes are not flushed: one that power loss undoes brings back dead bytes, which the next pass punches again.
//  - The counters of what is needed are on disk before anything is given back, unless the disk has no room for them.
//  - A segment is rewritten (segment_rewrite.h) after its holes were punched, which makes the room, from exactly the
//    extents that were marked, and only when all of them are known.
// Thread-safety: externally synchronised; the stores are internally synchronised.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/segment_header.h"
#include "gc/block_marks.h"
#include "gc/segment_rewrite.h"
#include "quarry/gc.h"
#include "segment/segment_layout.h"
#include "store/store_impl.h"

namespace quarry {

/// A segment that was sealed when the pass began.
struct GcCandidate {
  GcCandidate(std::shared_ptr<StoreImpl> store_in, std::shared_ptr<Segment> segment_in, uint64_t size_bytes_in,
              std::shared_ptr<const SegmentMap> map_in)
      : store(std::move(store_in)),
        segment(std::move(segment_in)),
        size_bytes(size_bytes_in),
        map(std::move(map_in)),
        marks(RoundUpToBlock(map == nullptr ? size_bytes_in : map->data_end_bytes()) / kBlockSizeBytes) {
    if (map != nullptr) {
      front_blocks = DataBeginBytes(static_cast<uint32_t>(map->runs().size())) / kBlockSizeBytes;
      next_block = front_blocks;
      const uint64_t data_end = RoundUpToBlock(map->data_end_bytes());
      copy_blocks = (std::max(RoundUpToBlock(size_bytes), data_end) - data_end) / kBlockSizeBytes;
    }
  }

  /// Of extents that several rows share one is left. Sorts them.
  void DropDoubles() {
    std::sort(extents.begin(), extents.end());
    extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
  }

  std::shared_ptr<StoreImpl> store;
  std::shared_ptr<Segment> segment;
  uint64_t size_bytes;
  std::shared_ptr<const SegmentMap> map;                              ///< null: every extent stands at its own offset
  uint64_t front_blocks = kSegmentHeaderSizeBytes / kBlockSizeBytes;  ///< header and map: never punched
  uint64_t copy_blocks = 0;                                           ///< both once more, at the end: never punched
  BlockMarks marks;                                                   ///< of the file up to there
  std::vector<NeededExtent> extents;                                  ///< the marked ones, unless has_left_out
  bool has_left_out = false;    ///< there was no memory for some of `extents`, or no number for them
  bool waits_its_turn = false;  ///< there was none, but there will be in a later pass
  // When the view was opened.
  Segment::Released released;
  Segment::Released appended;
  uint64_t marked_extents = 0;  ///< of extents that are left out one counts for each mark
  uint64_t marked_bytes = 0;
  bool in_doubt = false;            ///< a mark of it is missing: it is kept whole
  bool has_unknown_places = false;  ///< its header or map is damaged or cannot be read, and so is the copy
  bool is_to_mend = false;          ///< one of header, map and their copies is damaged: it is rewritten
  /// A copy tells where its extents are. Nothing is punched, for only a rewriting reads, and so confirms, each of them
  /// there.
  bool is_by_copy = false;

  enum class Stage : uint8_t { kNew, kPunch, kRewrite };
  Stage stage = Stage::kNew;
  uint64_t allocated_before_bytes = 0;
  // While it is being punched.
  LeasedFile<WritableFile> file;
  uint64_t next_block = kSegmentHeaderSizeBytes / kBlockSizeBytes;
  // While it is being rewritten.
  std::unique_ptr<SegmentRewrite> rewrite;
};

[[nodiscard]] inline uint64_t Beyond(uint64_t amount, uint64_t limit) { return amount - std::min(amount, limit); }

class GcPassImpl final : public GcPass {
 public:
  explicit GcPassImpl(const GcOptions& options) : options_(options) {}

  /// Seals what `store` appends to; its segments can be candidates.
  void Add(const std::shared_ptr<StoreImpl>& store);
  /// When all are there: shares out the memory.
  void ChooseCandidates();

  void NoteView() override;
  void Mark(const Locator& locator) override;
  void SetEncryption(StoreId store, const GcEncryption& encryption) override { encryption_[store] = encryption; }
  [[nodiscard]] Result<GcStep> ReclaimSome(uint64_t bytes_max) override;
  [[nodiscard]] GcReport report() const override { return report_; }

 private:
  struct Sealed {
    std::shared_ptr<StoreImpl> store;
    std::shared_ptr<Segment> segment;
    FileSpace space;
    uint64_t gain_bytes = 0;
    uint32_t passes = 0;
  };
  /// For the extents that will be marked, as many as the counters say.
  void MakeRoomForExtents(GcCandidate* candidate);
  /// Null: it is in none.
  [[nodiscard]] GcCandidate* Find(const Locator& locator);
  /// `damage` becomes what is wrong with header or map in front, where a copy made up for it.
  [[nodiscard]] Result<std::shared_ptr<const SegmentMap>> MapOf(StoreImpl* store, Segment* segment, Status* damage);
  void Remember(const Locator& locator, GcCandidate* candidate);
  /// For one more extent. False: there is no memory.
  [[nodiscard]] bool MakeRoom(GcCandidate* candidate);
  /// One more piece of the candidate's work. False: it is done with.
  [[nodiscard]] Result<bool> Advance(GcCandidate* candidate, uint64_t bytes_max, GcStep* step);
  /// Looks at the next candidate. False: nothing is to be done in it.
  [[nodiscard]] Result<bool> Start(GcCandidate* candidate, GcStep* step);
  /// Unlinks it. False: there is no room to note that.
  [[nodiscard]] Result<bool> Unlink(GcCandidate* candidate, GcStep* step);
  [[nodiscard]] Result<bool> Punch(GcCandidate* candidate, uint64_t bytes_max, GcStep* step);
  [[nodiscard]] Result<bool> FinishPunching(GcCandidate* candidate, bool has_holes);
  [[nodiscard]] GcEncryption EncryptionOf(const GcCandidate& candidate) const;
  /// Something in it is plain, or encrypted with too old a key, as far as its counters tell.
  [[nodiscard]] bool IsToEncrypt(const GcCandidate& candidate) const;
  /// False: rewriting does not pay, or can't be done.
  [[nodiscard]] bool Pays(GcCandidate* candidate, uint64_t allocated_bytes);
  [[nodiscard]] Result<bool> Rewrite(GcCandidate* candidate, uint64_t bytes_max, GcStep* step);
  void CountDamage(const std::string& damage);
  void Done(GcCandidate* candidate);
  /// What the marks say is needed, in memory and on disk.
  void CountMarked();
  /// However many rows share an extent. Sorts what is to be copied.
  static void CountOnce(GcCandidate* candidate);
  static void CountMarkedIn(const GcCandidate& candidate);
  /// Its counters changed: for SaveCounters.
  void NoteCounted(const GcCandidate& candidate);
  void SaveCounters();

  const GcOptions options_;
  uint64_t memory_bytes_ = 0;   ///< of marks, maps and extents
  std::vector<Sealed> sealed_;  ///< until the candidates are chosen
  std::vector<GcCandidate> candidates_;
  std::unordered_map<StoreId, std::unordered_map<uint32_t, size_t>> places_;  ///< in candidates_, by segment
  std::unordered_map<StoreId, GcEncryption> encryption_;
  bool has_counted_ = false;  ///< CountMarked
  bool has_view_ = false;
  size_t next_ = 0;                                                                         ///< of candidates_
  std::vector<std::pair<std::shared_ptr<StoreImpl>, std::vector<SegmentNumber>>> counted_;  ///< since SaveCounters
  GcReport report_;
};

}  // namespace quarry
