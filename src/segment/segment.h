// Segment: one segment file as readers see it. The side that writes it is the lane's (segment_file.h).
//
// Invariants:
//  - Identity never changes; the file is opened for reading at need, and stays open at least while a ReadPin is held.
//  - What GC rewrites becomes another Segment of the same number: this one keeps its file, which has no name any more,
//    and its places for as long as a reader has it.
//  - Counters are hints: appended extents count when their appender returns, released ones when somebody says so.
// Thread-safety: internally synchronised. Pinned by shared_ptr.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.h"
#include "base/published_atomic.h"
#include "cache/chunk.h"
#include "context/open_files.h"
#include "format/catalogue_record.h"
#include "format/segment_map.h"
#include "io/env.h"
#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

struct StoreContext;

using ReadPin = FileSlot<ReadableFile>::Pin;

/// The older of two versions of keys, 0 being none.
[[nodiscard]] constexpr uint32_t OlderKeyVersion(uint32_t left, uint32_t right) {
  return left == 0 || right == 0 ? std::max(left, right) : std::min(left, right);
}

/// Tells where a store's segments lie now: the home's store directory moves to the trash and back.
class SegmentLocator {
 public:
  virtual ~SegmentLocator() = default;
  /// Opens the file of `segment`, wherever it is at this moment.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> OpenSegmentForRead(SegmentNumber segment,
                                                                                 uint32_t path_number) = 0;
};

class Segment {
 public:
  Segment(std::shared_ptr<StoreContext> context, StoreId store, SegmentNumber number, uint32_t path_number);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] StoreId store() const { return store_; }
  [[nodiscard]] SegmentNumber number() const { return number_; }
  [[nodiscard]] uint32_t path_number() const { return path_number_; }
  [[nodiscard]] const std::shared_ptr<ChunkIndex>& chunks() const { return chunks_; }

  /// The handle for reads, opened at need. Errors: those of opening it; kUnavailable: OpenFiles has none to spare.
  [[nodiscard]] Result<ReadPin> FileForRead(SegmentLocator* locator);
  /// The same, or empty when it is closed.
  [[nodiscard]] ReadPin FileIfOpen() const { return file_.PinIfOpen(); }
  /// The file has lost its name: it stays open from now on.
  void KeepOpen(ReadPin file) QUARRY_EXCLUDES(open_mutex_);

  /// Where [offset, offset + size) of the segment stands in the file of FileForRead. Errors: those of opening it;
  /// kCorruption: nowhere, because it was not needed when the segment was rewritten, or the map is damaged.
  [[nodiscard]] Result<SegmentMap::Found> PlaceOf(SegmentLocator* locator, uint64_t offset_bytes, uint64_t size_bytes)
      QUARRY_EXCLUDES(open_mutex_);
  /// What the headers of its extents are told by, once it is known that this is the file that the catalogue means.
  /// Errors: those of opening the file; kCorruption: it is another's, or nobody knows the salt and the header is
  /// damaged.
  [[nodiscard]] Result<SegmentSalt> Salt(SegmentLocator* locator) QUARRY_EXCLUDES(open_mutex_);
  /// The map of a rewritten segment, read at the first need and when the cache let go of it; null: never rewritten.
  [[nodiscard]] Result<std::shared_ptr<const SegmentMap>> Map(SegmentLocator* locator) QUARRY_EXCLUDES(open_mutex_);
  /// Says once that the copy of header or map was read. `damage`: what is wrong with those in front; ok: nothing.
  void NoteCopyRead(const Status& damage);
  /// The scrub found damage of header, map or a copy of them, which a rewriting mends.
  [[nodiscard]] bool is_to_mend() const { return is_to_mend_.load(std::memory_order_relaxed); }
  void NoteToMend() { is_to_mend_.store(true, std::memory_order_relaxed); }
  /// Made in this life of the process: not rewritten, and perhaps still of interest to its lane.
  [[nodiscard]] bool is_of_this_life() const { return is_of_this_life_; }
  void set_of_this_life();
  /// A hint for readers: an extent in it was found encrypted, so others may be.
  [[nodiscard]] bool holds_encrypted() const { return holds_encrypted_.load(std::memory_order_relaxed); }
  void NoteEncrypted() { holds_encrypted_.store(true, std::memory_order_relaxed); }
  /// One rewriting at a time. False: somebody else is at it.
  [[nodiscard]] bool ClaimRewriting() { return !is_being_rewritten_.exchange(true, std::memory_order_acquire); }
  void EndRewriting() { is_being_rewritten_.store(false, std::memory_order_release); }

  [[nodiscard]] SegmentState state() const { return state_.load(std::memory_order_acquire); }
  void set_state(SegmentState state) { state_.store(state, std::memory_order_release); }
  /// As the catalogue has it and, unless that is damaged, the header; zeros: only the header may tell (Salt). To be set
  /// before anybody else knows the segment.
  [[nodiscard]] const SegmentSalt& salt() const { return salt_; }
  void set_salt(const SegmentSalt& salt) { salt_ = salt; }

  void CountAppended(uint64_t stored_bytes);
  /// What the extents that were appended hold; a hint, like the counters.
  struct Content {
    uint64_t plain_bytes = 0;
    uint64_t encrypted_bytes = 0;
    uint32_t oldest_key_version = 0;  ///< 0: none is encrypted
    /// Nothing was appended; or it was, by a process that died.
    [[nodiscard]] bool is_unknown() const { return plain_bytes == 0 && encrypted_bytes == 0; }
  };
  /// `key_version` 0: plain.
  void NoteContent(uint64_t stored_bytes, uint32_t key_version);
  [[nodiscard]] Content content() const;
  void RestoreContent(const Content& content);
  void CountReleased(uint64_t stored_bytes);
  /// What was released so far.
  struct Released {
    uint64_t extents = 0;
    uint64_t bytes = 0;
  };
  [[nodiscard]] Released released() const { return {released_extents(), dead_bytes()}; }
  /// A mark pass found these needed in its view, and gave back the rest. `before`: what had been released when the view
  /// was opened; what came after that is among the marked, and dead.
  void CountMarked(uint64_t extents, uint64_t bytes, const Released& before);
  /// Mark passes that counted it, in this life of the process.
  [[nodiscard]] uint32_t passes() const { return passes_.load(std::memory_order_relaxed); }
  /// What the counters stand for. To be asked after them.
  [[nodiscard]] CountedExtents counted() const { return counted_.load(std::memory_order_relaxed); }
  /// State and counters of the one that this one was rewritten from, but not its content.
  void TakeOver(const Segment& old, uint64_t size_bytes);
  /// Counters as the catalogue has them.
  void RestoreCounters(uint64_t extents, uint64_t live_bytes, uint64_t dead_bytes, uint64_t size_bytes,
                       CountedExtents counted);
  /// Nobody counted: all of a file of that size is taken for live until a mark pass has counted.
  void AssumeAllLive(uint64_t size_bytes);

  [[nodiscard]] uint64_t extents() const;
  [[nodiscard]] uint64_t live_bytes() const;
  /// Live and dead together. Whoever wants parts that add up takes this and dead_bytes(): a release may come between.
  [[nodiscard]] uint64_t counted_bytes() const { return appended_bytes_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t dead_bytes() const { return dead_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t released_extents() const { return released_extents_.load(std::memory_order_relaxed); }
  /// Of a segment that is not written any more.
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_relaxed); }
  void set_size_bytes(uint64_t size_bytes) { size_bytes_.store(size_bytes, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<StoreContext> context_;  ///< outlives the chunks' buffers
  const StoreId store_;
  const SegmentNumber number_;
  const uint32_t path_number_;
  const std::shared_ptr<ChunkIndex> chunks_ = std::make_shared<ChunkIndex>();

  PublishedAtomic<SegmentState> state_{SegmentState::kActive};
  PublishedAtomic<bool> is_being_rewritten_{false};
  PublishedAtomic<CountedExtents> counted_{CountedExtents::kAll};
  std::atomic<uint64_t> appended_extents_{0};
  PublishedAtomic<uint64_t> appended_bytes_{0};
  std::atomic<uint64_t> released_extents_{0};
  std::atomic<uint64_t> dead_bytes_{0};
  std::atomic<uint64_t> size_bytes_{0};
  std::atomic<uint64_t> plain_bytes_{0};
  std::atomic<uint64_t> encrypted_bytes_{0};
  std::atomic<uint32_t> oldest_key_version_{0};
  std::atomic<uint32_t> passes_{0};

  /// As far as it is known where the extents stand.
  enum class Layout : uint8_t { kUnknown, kOwnOffsets, kMapped };
  [[nodiscard]] Status LearnLayout(ReadableFile* file) QUARRY_REQUIRES(open_mutex_);
  [[nodiscard]] bool KnowsLayout() const { return layout_.load(std::memory_order_acquire) != Layout::kUnknown; }

  bool is_of_this_life_ = false;  ///< set before anybody else knows the segment
  std::atomic<bool> holds_encrypted_{false};
  std::atomic<bool> is_to_mend_{false};
  SegmentSalt salt_{};
  PublishedAtomic<Layout> layout_{Layout::kUnknown};

  Mutex open_mutex_;
  SegmentHeader header_ QUARRY_GUARDED_BY(open_mutex_);  ///< once the layout is known, unless it is damaged
  FileSlot<ReadableFile> file_;
  ReadPin kept_open_ QUARRY_GUARDED_BY(open_mutex_);
};

}  // namespace quarry
