#include "segment/segment_verify.h"

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/zeros.h"
#include "format/extent.h"
#include "format/magic.h"
#include "segment/extent_index.h"
#include "segment/rewritten_view.h"
#include "segment/segment_window.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 1ULL << 20;
/// The least that a device writes or loses.
constexpr uint64_t kSectorBytes = 512;
/// A device that refuses so much of one segment is not asked for the rest of it.
constexpr uint64_t kUnreadableMax = 64;

/// The text of a kCorruption without its place, which a finding has in fields of its own.
std::string WithoutPlace(const Status& status) {
  const std::string& message = status.message();
  const size_t offset = message.find(" offset ");
  const size_t colon = offset == std::string::npos ? std::string::npos : message.find(": ", offset);
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

class SegmentVerifier {
 public:
  /// `view`: null, or `file` itself when that is the view of a rewritten segment.
  SegmentVerifier(ReadableFile* file, uint64_t file_size_bytes, RewrittenView* view, const ExpectedSegment& expected,
                  const VerifyPace& pace)
      : file_(file),
        view_(view),
        expected_(expected),
        pace_(pace),
        window_(file, file_size_bytes, kWindowBytes),
        end_bytes_(std::min(file_size_bytes, expected.end_bytes)) {}

  Result<VerifiedSegment> Run() {
    QUARRY_TRY_ASSIGN(const bool has_header, Header());
    uint64_t at = has_header ? kSegmentHeaderSizeBytes : end_bytes_;
    while (at < end_bytes_ && !verified_.stopped) {
      QUARRY_TRY_ASSIGN(at, Step(at));
      at = BehindUnkept(at);
    }
    CloseStray();
    if (has_header) Judge();
    if (has_header && view_ != nullptr) QUARRY_TRY(Reencoded());
    verified_.read_bytes = window_.read_bytes();
    return std::move(verified_);
  }

 private:
  /// Bytes that are in no extent, without a whole block of zeros in them.
  struct Stray {
    uint64_t begin_bytes = 0;
    uint64_t end_bytes = 0;
    bool behind_header = false;  ///< goes on behind a header that does not verify
  };

  // Nothing: the device refused, and a piece says so.
  Result<std::optional<std::span<const uint8_t>>> Read(uint64_t offset, uint64_t size) {
    const uint64_t before = window_.read_bytes();
    auto bytes = window_.At(offset, size);
    if (const uint64_t read = window_.read_bytes() - before; read > 0 && !pace_(read)) verified_.stopped = true;
    if (bytes.ok()) return std::optional<std::span<const uint8_t>>(*bytes);
    if (bytes.status().code() != StatusCode::kIoError || ++unreadable_ > kUnreadableMax) return bytes.status();
    Add(FindingKind::kUnreadable, offset, size, bytes.status().message());
    return std::optional<std::span<const uint8_t>>();
  }

  Result<std::optional<std::span<const uint8_t>>> ReadFile(uint64_t place, uint64_t size) {
    if (view_ == nullptr) return Read(place, size);
    const auto bytes = view_->ReadFile(place, size);
    if (bytes.ok()) return std::optional<std::span<const uint8_t>>(*bytes);
    if (bytes.status().code() != StatusCode::kIoError) return bytes.status();
    return std::optional<std::span<const uint8_t>>();
  }

  // False: nobody knows the salt, and nothing of the segment can be told from anything else.
  Result<bool> Header() {
    QUARRY_TRY_ASSIGN(const auto block, Read(0, kSegmentHeaderSizeBytes));
    const bool has_salt = expected_.salt != SegmentSalt{};
    origin_ = {expected_.store, expected_.segment, expected_.salt};
    if (!block.has_value()) {
      if (has_salt) return true;
      Add(FindingKind::kUnreadable, kSegmentHeaderSizeBytes, SizeBehindHeader(),
          "without the segment header no extent of this segment can be read");
      return false;
    }
    const Result<SegmentHeader> header = DecodeSegmentHeader(*block, expected_.store, expected_.segment);
    if (!header.ok() && has_salt) {
      Add(FindingKind::kDamaged, 0, block->size(),
          WithoutPlace(header.status()) + ": the catalogue has what it takes to read the extents");
      return true;
    }
    if (!header.ok()) {
      Add(FindingKind::kDamaged, 0, end_bytes_,
          WithoutPlace(header.status()) + ": no extent of this segment can be read");
      return false;
    }
    if (has_salt && header->salt != expected_.salt) {
      Add(FindingKind::kDamaged, 0, end_bytes_,
          "this is not the segment that the catalogue means: no extent of it can be read");
      return false;
    }
    origin_ = header->origin();
    if (expected_.installation.has_value() && header->installation != *expected_.installation) {
      Add(FindingKind::kForeign, 0, block->size(), "the segment header is of another installation");
    }
    return true;
  }

  [[nodiscard]] uint64_t SizeBehindHeader() const {
    return end_bytes_ - std::min<uint64_t>(end_bytes_, kSegmentHeaderSizeBytes);
  }

  // Extents that were encoded anew, which the view leaves out.
  Status Reencoded() {
    SegmentWindow window(view_->file(), view_->file_size_bytes(), kWindowBytes);
    for (const SegmentRun& run : view_->map().runs()) {
      if (!run.is_reencoded || verified_.stopped) continue;
      const uint64_t before = window.read_bytes();
      const Status status = VerifyRun(&window, run);
      if (!pace_(window.read_bytes() - before)) verified_.stopped = true;
      if (status.ok()) continue;
      const bool is_damaged = status.code() == StatusCode::kCorruption;
      if (!is_damaged && (status.code() != StatusCode::kIoError || ++unreadable_ > kUnreadableMax)) return status;
      Add(is_damaged ? FindingKind::kDamaged : FindingKind::kUnreadable, run.original_bytes, run.size_bytes,
          WithoutPlace(status));
    }
    return Status::Ok();
  }

  Status VerifyRun(SegmentWindow* window, const SegmentRun& run) {
    QUARRY_TRY_ASSIGN(const std::span<const uint8_t> start, window->At(run.place_bytes, kExtentHeaderSizeBytes));
    QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(start, origin_, run.original_bytes));
    if (ExtentSpaceBytes(header) != run.size_bytes) {
      return Status::Corruption(expected_.store.value, expected_.segment.value, run.original_bytes,
                                "the extent takes " + std::to_string(ExtentSpaceBytes(header)) +
                                    " bytes, the map says " + std::to_string(run.size_bytes));
    }
    QUARRY_TRY_ASSIGN(const ExtentIndex index, ReadExtentIndex(window, origin_, run.place_bytes, run.original_bytes));
    ++verified_.extents;
    for (uint32_t part = 0; part < index.header.part_count; ++part) {
      const PartEntry& entry = index.parts[part];
      QUARRY_TRY_ASSIGN(const std::span<const uint8_t> stored,
                        window->At(run.place_bytes + entry.offset_in_extent_bytes, entry.stored_size_bytes));
      QUARRY_TRY(VerifyPart(index, part, stored));
      ++verified_.parts;
    }
    return Status::Ok();
  }

  // Over whole blocks that the file of a rewritten segment does not keep, which read as zeros: any number of them.
  uint64_t BehindUnkept(uint64_t at) {
    if (view_ == nullptr || at % kBlockSizeBytes != 0) return at;
    const uint64_t next = view_->NextKept(at) / kBlockSizeBytes * kBlockSizeBytes;
    if (next > at) CloseStray();
    return std::max(at, next);
  }

  // Looks at what stands at `at`; where to go on.
  Result<uint64_t> Step(uint64_t at) {
    const uint64_t block_end = (at / kBlockSizeBytes + 1) * kBlockSizeBytes;
    QUARRY_TRY_ASSIGN(const auto front, Read(at, kExtentHeaderSizeBytes));
    if (!front.has_value()) return block_end;
    if (front->empty()) return end_bytes_;  // the file became shorter
    std::array<uint8_t, kExtentHeaderSizeBytes> header_bytes{};
    const std::span<uint8_t> copy = std::span<uint8_t>(header_bytes).first(front->size());
    std::copy(front->begin(), front->end(), copy.begin());
    if (LooksLikeHeader(copy, at)) {
      const bool is_marked = StartsLikeExtent(copy);
      StoreLittleEndian(std::span<uint8_t>(header_bytes), 0, kExtentMagic);
      const auto header = DecodeExtentHeader(header_bytes, origin_, at);
      const bool is_inside = stray_.has_value() || at < inside_until_;
      if (header.ok() && copy.size() == header_bytes.size()) {
        CloseStray();
        return Extent(*header, is_marked, is_inside);
      }
      if (is_marked && !is_inside) QUARRY_TRY(BadHeader(at, copy.size(), header.status()));
    }
    return Between(at, block_end);
  }

  // An extent is looked for where its mark stands, and, as if the mark were there, where one must begin.
  [[nodiscard]] bool LooksLikeHeader(std::span<const uint8_t> bytes, uint64_t at) const {
    const bool may_begin = at == next_extent_bytes_ || at == behind_zeros_bytes_ || at % kBlockSizeBytes == 0;
    return StartsLikeExtent(bytes) || (may_begin && !IsZero(bytes));
  }

  Status BadHeader(uint64_t at, uint64_t size, const Status& status) {
    QUARRY_TRY_ASSIGN(const FindingKind kind, KindOf(at, kExtentHeaderSizeBytes));
    Add(kind, at, size, status.ok() ? "extent header is cut off" : WithoutPlace(status));
    explained_until_ = at + size;
    return Status::Ok();
  }

  /// `is_inside`: what stands here may as well be the content of a value.
  Result<uint64_t> Extent(const ExtentHeader& header, bool is_marked, bool is_inside) {
    const uint64_t at = header.offset_bytes;
    const uint64_t size = ExtentSizeBytes(header);
    QUARRY_TRY(Claim(at, size));
    next_extent_bytes_ = NextExtentOffsetBytes(header);
    const uint64_t front_bytes = HeaderAndIndexSizeBytes(header);
    if (!is_marked) {
      QUARRY_TRY_ASSIGN(const FindingKind kind, KindOf(at, kExtentHeaderSizeBytes, is_inside));
      Add(kind, at, size, "the mark of an extent (its first 8 bytes) is damaged");
      if (kind == FindingKind::kDamaged) damaged_bytes_ += ExtentSpaceBytes(header);
      return LookInside(at + kExtentHeaderSizeBytes, at + size);
    }
    QUARRY_TRY_ASSIGN(const auto front, Read(at, front_bytes));
    if (!front.has_value()) return next_extent_bytes_;
    const auto index = DecodeExtentIndex(*front, origin_, at);
    if (!index.ok()) {
      QUARRY_TRY_ASSIGN(const FindingKind kind, KindOf(at, front_bytes, is_inside));
      Add(kind, at, size, WithoutPlace(index.status()) + ": no part of this extent can be read");
      if (kind == FindingKind::kDamaged) damaged_bytes_ += ExtentSpaceBytes(header);
      return LookInside(at + kExtentHeaderSizeBytes, at + size);
    }
    QUARRY_TRY(ExplainTail(at));
    ++verified_.extents;
    QUARRY_TRY_ASSIGN(const bool has_mismatch, Parts(*index, is_inside));
    if (has_mismatch) return LookInside(at + front_bytes, at + size);
    QUARRY_TRY(Unused(at + size, std::min(next_extent_bytes_, end_bytes_)));
    return next_extent_bytes_;
  }

  // Extents lie side by side. Where their salted headers say otherwise, each could have the whole file read once more.
  Status Claim(uint64_t at, uint64_t size) {
    claimed_bytes_ += std::min(size, end_bytes_ - at);
    const uint64_t file_bytes = view_ == nullptr ? end_bytes_ : view_->file_size_bytes();
    if (claimed_bytes_ / 2 <= file_bytes) return Status::Ok();
    return Status::Corruption(expected_.store.value, expected_.segment.value, at,
                              "the extents up to here take " + std::to_string(claimed_bytes_) +
                                  " bytes of a segment of " + std::to_string(file_bytes) + ": it was forged");
  }

  // Of an extent that does not verify: it may hide others, if it is not one, but its bytes are explained.
  uint64_t LookInside(uint64_t begin, uint64_t end) {
    inside_until_ = std::max(inside_until_, end);
    return begin / kExtentAlignmentBytes * kExtentAlignmentBytes + kExtentAlignmentBytes;
  }

  // The stray bytes that ended at `at`, where an extent begins, may be the end of one that was given back.
  Status ExplainTail(uint64_t at) {
    if (verified_.pieces.empty() || verified_.pieces.size() - 1 != stray_piece_) return Status::Ok();
    VerifiedSegment::Piece& piece = verified_.pieces.back();
    // Holes and blocks are those of the file, in which the next extent may follow from another place.
    const std::optional<uint64_t> place = PlaceOf(piece.offset_bytes, piece.size_bytes);
    const std::optional<uint64_t> next = PlaceOf(at, kExtentHeaderSizeBytes);
    if (!place.has_value() || !next.has_value()) return Status::Ok();
    const uint64_t block = *place / kBlockSizeBytes * kBlockSizeBytes;
    // A sector of zeros in front may be one that was lost, with a header in it.
    if (*place - block >= kSectorBytes || *next <= *place || *next >= block + kBlockSizeBytes) return Status::Ok();
    if (block < 2 * kBlockSizeBytes) return Status::Ok();
    ReadableFile* const file = view_ == nullptr ? file_ : view_->file();
    QUARRY_TRY_ASSIGN(const bool is_behind_hole, file->HasHole(block - kBlockSizeBytes, kBlockSizeBytes));
    if (!is_behind_hole) return Status::Ok();
    const uint64_t begin = piece.offset_bytes / kExtentAlignmentBytes * kExtentAlignmentBytes;
    QUARRY_TRY_ASSIGN(const auto bytes, Read(begin, std::min(at - begin, kBlockSizeBytes)));
    if (!bytes.has_value() || HoldsExtent(*bytes, begin)) return Status::Ok();
    piece.kind = FindingKind::kLeftover;
    piece.what = "the end of an extent whose beginning GC gave back";
    return Status::Ok();
  }

  [[nodiscard]] std::optional<uint64_t> PlaceOf(uint64_t offset, uint64_t size) const {
    return view_ == nullptr ? offset : view_->PlaceOf(offset, size);
  }

  // Whether something in `bytes` may be an extent that was not recognised as one.
  [[nodiscard]] bool HoldsExtent(std::span<const uint8_t> bytes, uint64_t offset) const {
    for (size_t at = 0; at < bytes.size(); at += kExtentAlignmentBytes) {
      const std::span<const uint8_t> rest = bytes.subspan(at);
      if (StartsLikeExtent(rest) || HoldsPart(rest)) return true;
      if (rest.size() < kExtentHeaderSizeBytes) continue;
      std::array<uint8_t, kExtentHeaderSizeBytes> header{};
      std::copy_n(rest.begin(), header.size(), header.begin());
      StoreLittleEndian(std::span<uint8_t>(header), 0, kExtentMagic);
      if (DecodeExtentHeader(header, origin_, offset + at).ok()) return true;
    }
    return false;
  }

  // Whether a part stands where an index entry says, as in an extent whose header is damaged.
  static bool HoldsPart(std::span<const uint8_t> bytes) {
    for (const bool encrypted : {false, true}) {
      const size_t entry = kExtentHeaderSizeBytes + (encrypted ? kCipherBlockSizeBytes : 0);
      for (uint32_t parts = 1; HeaderAndIndexSizeBytes(parts, encrypted) < bytes.size(); ++parts) {
        const auto front = static_cast<size_t>(HeaderAndIndexSizeBytes(parts, encrypted));
        const size_t size = LoadLittleEndian<uint32_t>(bytes, entry) & ~kRawBit;
        if (size == 0 || size > bytes.size() - front) continue;
        if (Checksum64(bytes.subspan(front, size)) == LoadLittleEndian<uint64_t>(bytes, entry + 4)) return true;
      }
    }
    return false;
  }

  // What fills the end of an extent, up to the next multiple of 8.
  Status Unused(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end && !verified_.stopped;) {
      const uint64_t size = std::min(kWindowBytes - at % kWindowBytes, end - at);
      QUARRY_TRY_ASSIGN(const auto bytes, Read(at, size));
      if (bytes.has_value()) NoteStray(at, *bytes);
      at += size;
    }
    CloseStray();
    return Status::Ok();
  }

  // True: one does not verify.
  Result<bool> Parts(const ExtentIndex& index, bool is_inside) {
    bool is_sound = true;
    bool has_mismatch = false;
    bool is_damaged = false;
    for (uint32_t part = 0; part < index.header.part_count && !verified_.stopped; ++part) {
      const PartEntry& entry = index.parts[part];
      const uint64_t offset = index.header.offset_bytes + entry.offset_in_extent_bytes;
      QUARRY_TRY_ASSIGN(const auto stored, Read(offset, entry.stored_size_bytes));
      const Status status = stored.has_value() ? VerifyPart(index, part, *stored) : Status::Ok();
      if (stored.has_value() && status.ok()) {
        ++verified_.parts;
        continue;
      }
      is_sound = false;
      if (!stored.has_value()) continue;
      has_mismatch = true;
      QUARRY_TRY_ASSIGN(const FindingKind kind, KindOf(offset, entry.stored_size_bytes, is_inside));
      is_damaged |= kind == FindingKind::kDamaged;
      AddPart(kind, offset, entry.stored_size_bytes, WithoutPlace(status));
    }
    const uint64_t size = ExtentSpaceBytes(index.header);
    if (is_sound) sound_bytes_ += size;
    if (is_damaged) damaged_bytes_ += size;
    return has_mismatch;
  }

  // Damage, or what GC and torn writes leave: see the head of segment_verify.h.
  Result<FindingKind> KindOf(uint64_t offset, uint64_t size, bool is_inside = false) {
    if (offset + size > window_.file_size_bytes()) return FindingKind::kDoubtful;
    // Sectors and holes are those of the file, wherever it keeps these bytes now.
    const std::optional<uint64_t> place = PlaceOf(offset, size);
    if (!place.has_value()) return FindingKind::kDoubtful;
    const uint64_t file_end = view_ == nullptr ? end_bytes_ : view_->file_size_bytes();
    const uint64_t begin = *place / kSectorBytes * kSectorBytes;
    const uint64_t end = std::min((*place + size + kSectorBytes - 1) / kSectorBytes * kSectorBytes, file_end);
    bool has_zeros = false;
    for (uint64_t at = begin; at < end && !has_zeros; at += kWindowBytes) {
      QUARRY_TRY_ASSIGN(const auto bytes, ReadFile(at, std::min(kWindowBytes, end - at)));
      if (!bytes.has_value()) return FindingKind::kUnreadable;
      for (size_t sector = 0; sector < bytes->size() && !has_zeros; sector += kSectorBytes) {
        has_zeros = IsZero(bytes->subspan(sector, std::min<size_t>(kSectorBytes, bytes->size() - sector)));
      }
    }
    if (!has_zeros) return is_inside ? FindingKind::kDoubtful : FindingKind::kDamaged;
    ReadableFile* const file = view_ == nullptr ? file_ : view_->file();
    QUARRY_TRY_ASSIGN(const bool has_hole, file->HasHole(begin, end - begin));
    return has_hole ? FindingKind::kLeftover : FindingKind::kDoubtful;
  }

  // What follows `at` in its block, up to the next mark of an extent.
  Result<uint64_t> Between(uint64_t at, uint64_t block_end) {
    QUARRY_TRY_ASSIGN(const auto in_block, Read(at, std::min(block_end, end_bytes_) - at));
    if (!in_block.has_value()) return block_end;
    size_t size = std::min<size_t>(kExtentAlignmentBytes, in_block->size());
    while (size < in_block->size() && !StartsLikeExtent(in_block->subspan(size))) {
      size = std::min<size_t>(size + kExtentAlignmentBytes, in_block->size());
    }
    if (size == 0) return end_bytes_;
    const std::span<const uint8_t> bytes = in_block->first(size);
    if (bytes.size() == kBlockSizeBytes && IsZero(bytes)) {
      CloseStray();
    } else {
      const auto first = static_cast<uint64_t>(
          std::find_if(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte != 0; }) - bytes.begin());
      const uint64_t begin = at + first / kExtentAlignmentBytes * kExtentAlignmentBytes;
      if (!stray_.has_value() && first < bytes.size() && begin > at && at >= explained_until_) {
        behind_zeros_bytes_ = begin;  // to be looked at as what may be an extent without its mark
        return begin;
      }
      NoteStray(at, bytes);
    }
    return at + size;
  }

  void NoteStray(uint64_t at, std::span<const uint8_t> bytes) {
    if (at < inside_until_) {
      const uint64_t explained = std::min<uint64_t>(inside_until_ - at, bytes.size());
      bytes = bytes.subspan(static_cast<size_t>(explained));
      at += explained;
    }
    const auto is_set = [](uint8_t byte) { return byte != 0; };
    const auto first = std::find_if(bytes.begin(), bytes.end(), is_set);
    if (first == bytes.end()) return;
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(), is_set);
    if (!stray_.has_value()) {
      const auto begin = at + static_cast<uint64_t>(first - bytes.begin());
      stray_ = Stray{std::max(begin, explained_until_), 0, at < explained_until_};
    }
    stray_->end_bytes = at + static_cast<uint64_t>(bytes.rend() - last);
  }

  void CloseStray() {
    if (stray_.has_value() && stray_->end_bytes > stray_->begin_bytes) {
      const uint64_t size = stray_->end_bytes - stray_->begin_bytes;
      VerifiedSegment::Piece* const last = verified_.pieces.empty() ? nullptr : &verified_.pieces.back();
      if (stray_->behind_header && last != nullptr && last->offset_bytes + last->size_bytes == stray_->begin_bytes) {
        last->size_bytes += size;  // what that header told of
        stray_.reset();
        return;
      }
      Add(FindingKind::kDoubtful, stray_->begin_bytes, size,
          "bytes that belong to no extent: left by a crash, by a failed write or by GC, stray bytes in unused space, "
          "or "
          "an extent whose header is lost");
      stray_piece_ = verified_.pieces.size() - 1;
    }
    stray_.reset();
  }

  void AddPart(FindingKind kind, uint64_t offset, uint64_t size, const std::string& what) {
    if (!verified_.pieces.empty()) {
      VerifiedSegment::Piece& last = verified_.pieces.back();
      if (last.kind == kind && last.offset_bytes + last.size_bytes == offset && last.what.starts_with("part ")) {
        last.size_bytes += size;  // one line for all the parts that a hole or a lost block took
        if (last.what.find(" and behind") == std::string::npos) last.what += " and behind it";
        return;
      }
    }
    Add(kind, offset, size, what);
    verified_.pieces.back().is_part = offset + size <= window_.file_size_bytes();
  }

  void Add(FindingKind kind, uint64_t offset, uint64_t size, const std::string& what) {
    if (verified_.pieces.size() == kPiecesMax) {
      verified_.pieces.push_back({kind, offset, 0, ""});
    }
    if (verified_.pieces.size() > kPiecesMax) {
      VerifiedSegment::Piece& rest = verified_.pieces.back();
      rest.kind = std::min(rest.kind, kind);  // the worst of them
      rest.size_bytes += size;
      rest.what = std::to_string(++more_pieces_) + " more places from here on";
      return;
    }
    verified_.pieces.push_back({kind, offset, size, what});
  }

  // All that was counted is here and sound: what else there is, nobody counted.
  void Judge() {
    if (verified_.stopped || !expected_.counted_bytes.has_value()) return;
    const uint64_t known_bytes = sound_bytes_ + damaged_bytes_;
    // Else the dead that nobody counted might make up for a live extent that is lost.
    const bool is_exact = known_bytes == *expected_.counted_bytes && expected_.counted == CountedExtents::kAll;
    // A scan may have counted what is none, and missed what is one.
    const bool is_estimated = expected_.counted == CountedExtents::kEstimated;
    const bool is_enough = known_bytes >= *expected_.counted_bytes && !is_estimated;
    for (VerifiedSegment::Piece& piece : verified_.pieces) {
      if (is_exact && !piece.is_part && piece.kind == FindingKind::kDoubtful) piece.kind = FindingKind::kLeftover;
      if (!is_enough && !expected_.gc_may_run && piece.kind == FindingKind::kLeftover) {
        piece.kind = FindingKind::kDoubtful;
      }
    }
    const bool is_named = std::any_of(verified_.pieces.begin(), verified_.pieces.end(),
                                      [](const auto& piece) { return piece.kind != FindingKind::kForeign; });
    if (is_enough || is_estimated || is_named) return;
    verified_.is_short = true;
    Add(FindingKind::kDoubtful, kSegmentHeaderSizeBytes, SizeBehindHeader(),
        "the store counted " + std::to_string(*expected_.counted_bytes) + " bytes of extents here, " +
            std::to_string(known_bytes) + " are found and the rest of the segment is empty");
  }

  ReadableFile* const file_;
  RewrittenView* const view_;
  const ExpectedSegment& expected_;
  const VerifyPace& pace_;
  SegmentWindow window_;
  const uint64_t end_bytes_;
  SegmentOrigin origin_;
  VerifiedSegment verified_;
  std::optional<Stray> stray_;
  uint64_t next_extent_bytes_ = kSegmentHeaderSizeBytes;  ///< behind the last extent
  uint64_t behind_zeros_bytes_ = 0;                       ///< where bytes begin again
  uint64_t explained_until_ = 0;                          ///< a piece covers what lies before
  uint64_t inside_until_ = 0;                             ///< so does that of an extent that does not verify
  size_t stray_piece_ = SIZE_MAX;                         ///< the last one of bytes that belong to no extent
  uint64_t claimed_bytes_ = 0;                            ///< by headers that verify
  uint64_t sound_bytes_ = 0;
  uint64_t damaged_bytes_ = 0;
  uint64_t unreadable_ = 0;
  uint64_t more_pieces_ = 0;
};

/// What is damaged of header, map and their copies, where the ones made up for the others.
std::vector<VerifiedSegment::Piece> LayoutPieces(const RewrittenView& view) {
  std::vector<VerifiedSegment::Piece> pieces;
  const auto add = [&](const Status& damage, uint64_t offset, uint64_t size, const char* consequence) {
    if (damage.ok()) return;
    const bool is_unreadable = damage.code() == StatusCode::kIoError;
    pieces.push_back({is_unreadable ? FindingKind::kUnreadable : FindingKind::kDamaged, offset, size,
                      WithoutPlace(damage) + consequence});
  };
  const RewrittenView::Damage& damage = view.damage();
  const SegmentHeader& header = view.header();
  add(damage.header, 0, kSegmentHeaderSizeBytes, ": its copy has what it takes to read the extents");
  add(damage.map, kSegmentHeaderSizeBytes, MapSizeBytes(header.run_count),
      ": its copy has what it takes to read the extents");
  const uint64_t copy_begin = std::min(CopyBeginBytes(header), view.file_size_bytes());
  add(damage.copy, copy_begin, view.file_size_bytes() - copy_begin,
      ", in the copy at the end of the file: the extents are found without it");
  return pieces;
}

}  // namespace

Result<VerifiedSegment> VerifySegment(ReadableFile* file, const ExpectedSegment& expected, const VerifyPace& pace) {
  QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
  Result<std::unique_ptr<RewrittenView>> view =
      RewrittenView::Open(file, size, expected.store, expected.segment, expected.salt);
  if (!view.ok()) {
    if (view.status().code() != StatusCode::kCorruption) return view.status();
    VerifiedSegment damaged;
    damaged.is_rewritten = true;
    damaged.pieces.push_back({FindingKind::kDamaged, kSegmentHeaderSizeBytes, size - kSegmentHeaderSizeBytes,
                              WithoutPlace(view.status()) + ": no extent of this segment can be read"});
    return damaged;
  }
  if (*view == nullptr) return SegmentVerifier(file, size, nullptr, expected, pace).Run();
  // What the store counted, and where the file ended, may be from before the rewriting.
  ExpectedSegment rewritten = expected;
  rewritten.end_bytes = UINT64_MAX;
  rewritten.counted_bytes.reset();
  QUARRY_TRY_ASSIGN(VerifiedSegment verified,
                    SegmentVerifier(view->get(), (*view)->size_bytes(), view->get(), rewritten, pace).Run());
  verified.is_rewritten = true;
  const std::vector<VerifiedSegment::Piece> pieces = LayoutPieces(**view);
  verified.is_to_mend = !pieces.empty();
  verified.pieces.insert(verified.pieces.begin(), pieces.begin(), pieces.end());
  return verified;
}

}  // namespace quarry
