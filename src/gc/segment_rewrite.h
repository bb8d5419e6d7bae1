// SegmentRewrite: copies the needed extents of a segment to a file that then takes the segment's place: byte for byte,
// or encrypted with the key that is wanted now.
//
// Invariants:
//  - An extent is copied after header, index and every part verified; nothing is decompressed, and without a change of
//    its cipher no key is needed. One that does not verify, or cannot be read, ends the rewriting: the segment stays as
//    it is.
//  - Header and map stand in the new file twice, in front and at its end. All of it is flushed, and read once more,
//    before the file gets the name.
//  - A rewriting that is dropped leaves the segment as it was, and removes what it wrote.
//  - Beside its extents it holds one batch, one part and, of the new map, the runs and one copy as bytes.
// Thread-safety: externally synchronised.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/extent.h"
#include "format/segment_map.h"
#include "gc/extent_recipher.h"
#include "io/env.h"
#include "quarry/gc.h"
#include "segment/segment_window.h"
#include "store/store_impl.h"

namespace quarry {

/// A needed extent, in units of kExtentAlignmentBytes: offset in the segment as it was, and its space.
struct NeededExtent {
  uint32_t offset_units = 0;
  uint32_t size_units = 0;
  uint32_t identity_low = 0;  ///< the lower half of its identity, as its row says
  auto operator<=>(const NeededExtent&) const = default;
};

class SegmentRewrite {
 public:
  /// `extents` are sorted, without doubles, do not overlap, and all lie within the segment.
  SegmentRewrite(std::shared_ptr<StoreImpl> store, std::shared_ptr<Segment> segment, std::vector<NeededExtent> extents,
                 const GcEncryption& encryption = {});
  ~SegmentRewrite();
  SegmentRewrite(const SegmentRewrite&) = delete;
  SegmentRewrite& operator=(const SegmentRewrite&) = delete;

  /// The size of the new file when all extents are copied byte for byte from one with `old_map` (null: none).
  [[nodiscard]] static uint64_t SizeBytes(std::span<const NeededExtent> extents, const SegmentMap* old_map);

  /// Of the new file, when it is done.
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] uint64_t encrypted_extents() const { return encrypted_extents_; }
  /// Of the new map, from the first Copy on.
  [[nodiscard]] uint64_t memory_bytes() const { return memory_bytes_; }
  /// Gives the extents back. The rewriting is over.
  [[nodiscard]] std::vector<NeededExtent> TakeExtents() { return std::move(extents_); }

  struct Step {
    uint64_t bytes = 0;    ///< copied
    bool is_done = false;  ///< the new file has taken the place of the old
    std::string damage;    ///< not empty: an extent could not be copied, for this reason; the rewriting is over
  };
  /// Copies about `bytes_max` more, at least one part. Errors: kIoError, kNoSpace, kNotFound (another file is in the
  /// segment's place), kKeyUnavailable; then the rewriting is over. May throw std::bad_alloc; then it is over, too.
  [[nodiscard]] Result<Step> Copy(uint64_t bytes_max);

 private:
  [[nodiscard]] Status Begin(std::string* damage);
  /// Copies the front of the next extent, or its next part. Errors are those of writing and of keys; those of reading
  /// are damage.
  [[nodiscard]] Status CopyPiece(uint64_t* copied, std::string* damage);
  [[nodiscard]] Status BeginExtent(uint64_t* copied, std::string* damage);
  /// `stored` is the next part, verified.
  [[nodiscard]] Status TakePart(std::span<const uint8_t> stored, uint64_t* copied);
  [[nodiscard]] Status FinishExtent(uint64_t* copied);
  [[nodiscard]] bool IsToEncrypt(const ExtentIndex& index) const;
  /// `space_bytes`: what the file's map says of it.
  [[nodiscard]] Result<ExtentIndex> ReadIndex(const NeededExtent& extent, uint64_t place_bytes, uint64_t space_bytes);
  /// `size_bytes` of the old file. Valid until the next call.
  [[nodiscard]] Result<std::span<const uint8_t>> Source(uint64_t place_bytes, uint64_t size_bytes);
  [[nodiscard]] Status Put(std::span<const uint8_t> bytes);
  [[nodiscard]] Status PutZerosTo(uint64_t multiple);
  [[nodiscard]] Status WriteBuffer();
  [[nodiscard]] Status Finish();
  /// Map and header, behind the extents and in front of them. Gives up the runs.
  [[nodiscard]] Status WriteLayout();
  [[nodiscard]] Status WriteMap(uint64_t place_bytes, const std::vector<uint8_t>& map);
  [[nodiscard]] Status WriteHeader(uint64_t place_bytes);
  /// Reads the layout as every reader will.
  [[nodiscard]] Status Verify();

  const std::shared_ptr<StoreImpl> store_;
  const std::shared_ptr<Segment> segment_;
  std::vector<NeededExtent> extents_;
  const GcEncryption encryption_;

  // From Begin on.
  std::shared_ptr<const SegmentMap> old_map_;  ///< null: the extents stand at their own offsets
  ReadPin source_;                             ///< the segment's own file
  uint64_t source_size_bytes_ = 0;
  std::optional<SegmentWindow> window_;  ///< of that
  SegmentHeader header_;
  /// Each extent is a run of its own, for its size may become, or is, another than it was: neighbours are not joined.
  bool is_run_each_ = false;
  std::vector<SegmentRun> runs_;  ///< of the new file: all of them, or those that were copied
  uint64_t memory_bytes_ = 0;
  LeasedFile<WritableFile> target_;
  bool is_claimed_ = false;
  bool is_in_place_ = false;

  size_t next_extent_ = 0;
  uint32_t next_part_ = 0;
  std::optional<ExtentIndex> index_;          ///< of the extent that is being copied, once its front was read
  SegmentMap::Found place_;                   ///< of that extent in the old file
  std::unique_ptr<ExtentRecipher> recipher_;  ///< when it is encrypted
  bool is_front_written_ = false;
  Segment::Content content_;  ///< of what was copied
  uint64_t encrypted_extents_ = 0;

  AlignedBuffer buffer_;  ///< of the new file ...
  size_t buffered_ = 0;
  uint64_t written_bytes_ = 0;  ///< ... from here
  uint64_t size_bytes_ = 0;
};

}  // namespace quarry
