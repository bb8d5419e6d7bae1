// RewrittenView: a rewritten segment as it was: every extent at its own offset, zeros where nothing was kept.
//
// Invariants: reads of the file are aligned as OpenForVerify wants them; nothing is believed that its checksum does
// not confirm. Thread-safety: externally synchronised.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "format/segment_header.h"
#include "format/segment_map.h"
#include "io/env.h"
#include "segment/segment_window.h"

namespace quarry {

class RewrittenView final : public ReadableFile {
 public:
  /// Null: the segment was never rewritten, or neither its header nor the copy of that tells. `salt` is the segment's
  /// by the catalogue. Errors: kIoError, kCorruption (of its map and the copy, or it ends before the map says). `file`
  /// must outlive the view.
  [[nodiscard]] static Result<std::unique_ptr<RewrittenView>> Open(ReadableFile* file, uint64_t file_size_bytes,
                                                                   StoreId store, SegmentNumber segment,
                                                                   const SegmentSalt& salt);

  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  /// What is wrong with header and map in front, for which the copies made up, and with the copies.
  struct Damage {
    Status header;
    Status map;
    Status copy;
  };
  [[nodiscard]] const Damage& damage() const { return damage_; }

  [[nodiscard]] Result<size_t> ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) override;
  [[nodiscard]] Status ReadBatch(std::span<const ReadRequest> requests) override;
  [[nodiscard]] Result<uint64_t> SizeBytes() override { return size_bytes_; }
  [[nodiscard]] Result<uint64_t> AllocatedBytes() override { return file_->AllocatedBytes(); }

  /// Of it, for extents that were encoded anew, which the view leaves out: they have another size than they had.
  [[nodiscard]] const SegmentMap& map() const { return *map_; }
  /// Where the file keeps these bytes, whose sectors and holes are the file's; nothing when not all of them together.
  [[nodiscard]] std::optional<uint64_t> PlaceOf(uint64_t offset_bytes, uint64_t size_bytes) const {
    const std::optional<SegmentMap::Found> found = map_->Find(offset_bytes, size_bytes);
    return found && !found->is_reencoded ? std::optional(found->place_bytes) : std::nullopt;
  }
  /// Where bytes that the view has begin, at or behind `offset_bytes`; behind the last of them size_bytes().
  [[nodiscard]] uint64_t NextKept(uint64_t offset_bytes) const;
  /// The file itself. Valid until the next read.
  [[nodiscard]] Result<std::span<const uint8_t>> ReadFile(uint64_t place_bytes, uint64_t size_bytes) {
    return window_.At(place_bytes, size_bytes);
  }
  [[nodiscard]] ReadableFile* file() const { return file_; }
  [[nodiscard]] uint64_t file_size_bytes() const { return window_.file_size_bytes(); }

 private:
  struct Piece {
    uint64_t offset_bytes = 0;
    uint64_t place_bytes = 0;
    uint64_t size_bytes = 0;
  };
  RewrittenView(ReadableFile* file, uint64_t file_size_bytes, const SegmentHeader& header,
                std::shared_ptr<const SegmentMap> map, Damage damage);
  /// The first run that may hold `offset_bytes`, or lies behind it.
  [[nodiscard]] size_t RunFrom(uint64_t offset_bytes) const;
  /// What of [begin, end) was kept.
  [[nodiscard]] std::vector<Piece> PiecesOf(uint64_t begin_bytes, uint64_t end_bytes) const;

  ReadableFile* const file_;
  const SegmentHeader header_;
  std::array<uint8_t, kSegmentHeaderSizeBytes> header_block_{};
  const std::shared_ptr<const SegmentMap> map_;
  const Damage damage_;
  SegmentWindow window_;
  uint64_t size_bytes_ = 0;
};

}  // namespace quarry
