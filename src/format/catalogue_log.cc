#include "format/catalogue_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/zeros.h"

namespace quarry {
namespace {

constexpr uint64_t kBlockBytes = 4096;
/// What a device writes whole or not at all.
constexpr uint64_t kSectorBytes = 512;

uint64_t RoundUpTo(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

class LogReader {
 public:
  LogReader(std::span<const uint8_t> file, uint64_t generation)
      : file_(file), generation_(static_cast<uint32_t>(generation)) {}

  Result<CatalogueLog> Read() {
    for (uint64_t at = 0; at < file_.size();) {
      const uint64_t block_end = std::min<uint64_t>((at / kBlockBytes + 1) * kBlockBytes, file_.size());
      if (IsZero(file_.subspan(at, block_end - at))) {
        at = block_end;
      } else if (const std::optional<CatalogueFrame> frame = FrameAt(at)) {
        QUARRY_TRY(TakeRecord(*frame, at));
        at += frame->RecordSizeBytes();
      } else {
        has_garbage_ = has_garbage_ || MayBeRecord(at, block_end);
        at += sizeof(uint64_t);
      }
    }
    if (has_garbage_) NoteTail();
    DropTornTail();
    return std::move(log_);
  }

 private:
  struct Taken {
    uint64_t sequence = 0;
    bool ends_snapshot = false;             ///< it, or what must be before it
    std::optional<CatalogueRecord> record;  ///< none: its body is lost
  };
  /// Something that should be a record and is none.
  struct Hole {
    uint64_t offset_bytes = 0;
    uint64_t first_sequence = 0;
    bool is_torn = true;  ///< a sector of it was never written, as a power cut leaves it
    StoreId store;
    std::string what;
  };

  [[nodiscard]] std::optional<CatalogueFrame> FrameAt(uint64_t at) const {
    const Result<CatalogueFrame> frame = DecodeCatalogueFrame(file_.subspan(at));
    if (!frame.ok() || frame->generation != generation_ || frame->sequence < next_sequence_) return std::nullopt;
    return *frame;
  }

  // Whether a sector of what should stand in [begin, end), or the end of the file, was never written.
  [[nodiscard]] bool IsTorn(uint64_t begin, uint64_t end) const {
    if (end > file_.size()) return true;
    for (uint64_t at = begin / kSectorBytes * kSectorBytes; at < end; at += kSectorBytes) {
      if (IsZero(file_.subspan(at, std::min(kSectorBytes, file_.size() - at)))) return true;
    }
    return false;
  }

  Status TakeRecord(const CatalogueFrame& frame, uint64_t at) {
    const std::span<const uint8_t> bytes = file_.subspan(at);
    const uint64_t end = at + frame.RecordSizeBytes();
    if (frame.sequence > next_sequence_) NoteGap(frame, at);
    has_garbage_ = false;
    records_end_ = end;
    next_sequence_ = frame.sequence + 1;
    last_flush_begin_ = std::max(last_flush_begin_, frame.flush_begin);
    Taken taken;
    taken.sequence = frame.sequence;
    taken.ends_snapshot = (frame.flags & kCatalogueSnapshotFlag) == 0 || frame.type == kCatalogueEndType;
    std::string fault;
    if (VerifiesCatalogueBody(frame, bytes)) {
      Result<CatalogueRecord> record = DecodeCatalogueBody(frame, bytes);
      if (record.status().code() == StatusCode::kNotSupported) return record.status();
      if (record.ok()) {
        taken.record = std::move(record).value();
      } else {
        fault = record.status().message();
      }
    } else {
      fault = "record " + std::to_string(frame.sequence) + " (" + CatalogueTypeName(frame.type) + ") does not verify";
    }
    const bool is_torn = !fault.empty() && IsTorn(at, end);
    const bool is_missed = is_torn || frame.type != kCatalogueScrubType;
    if (!fault.empty() && is_missed) holes_.push_back({at, frame.sequence, is_torn, frame.store, fault});
    taken_.push_back(std::move(taken));
    return Status::Ok();
  }

  // Of a record more bytes than these are not zero, however damaged: a bit flipped in what fills a block.
  [[nodiscard]] bool MayBeRecord(uint64_t begin, uint64_t end) const {
    const std::span<const uint8_t> rest = file_.subspan(begin, end - begin);
    return std::count(rest.begin(), rest.end(), uint8_t{0}) + 8 <= static_cast<ptrdiff_t>(rest.size());
  }

  // Records are missing before `frame`. They stood right behind the one before, or at the start of a flush.
  void NoteGap(const CatalogueFrame& frame, uint64_t at) {
    const bool is_start = next_sequence_ == frame.flush_begin;
    const uint64_t begin = is_start ? RoundUpTo(records_end_, kBlockBytes) : records_end_;
    holes_.push_back(
        {begin,
         next_sequence_,
         IsTorn(begin, at),
         {},
         "records " + std::to_string(next_sequence_) + " to " + std::to_string(frame.sequence - 1) + " are not there"});
  }

  // Something stands behind the last record, and no record verifies there. When it does not even look like the first
  // of a flush it is the end of one whose beginning was never written.
  void NoteTail() {
    uint64_t begin = records_end_;
    uint64_t end = file_.size();
    while (end > begin && file_[end - 1] == 0) --end;
    const uint64_t block_end = std::min<uint64_t>(RoundUpTo(begin, kBlockBytes), file_.size());
    bool is_torn = false;
    if (IsZero(file_.subspan(begin, block_end - begin))) {
      begin = block_end;
      while (begin + kBlockBytes < end && IsZero(file_.subspan(begin, kBlockBytes))) begin += kBlockBytes;
      is_torn = !LooksLikeFirstFrame(file_.subspan(begin));
    }
    end = std::max(end, begin + kCatalogueFrameSizeBytes);
    holes_.push_back({begin, next_sequence_, is_torn || IsTorn(begin, end), {}, "the last record does not verify"});
  }

  [[nodiscard]] bool LooksLikeFirstFrame(std::span<const uint8_t> bytes) const {
    std::vector<uint8_t> expected;
    AppendCatalogueRecord(CatalogueUnknown{}, {generation_, next_sequence_, next_sequence_, false}, &expected);
    int parts_alike = 0;
    for (const auto& [offset, size] : {std::pair<size_t, size_t>{0, 4}, {12, 4}, {16, 8}, {24, 8}}) {
      if (bytes.size() < offset + size) return false;
      parts_alike += std::equal(expected.begin() + static_cast<ptrdiff_t>(offset),
                                expected.begin() + static_cast<ptrdiff_t>(offset + size),
                                bytes.begin() + static_cast<ptrdiff_t>(offset));
    }
    return parts_alike >= 3;
  }

  void DropTornTail() {
    uint64_t end_sequence = UINT64_MAX;
    for (const Hole& hole : holes_) {
      if (hole.is_torn && hole.first_sequence >= last_flush_begin_) {
        end_sequence = std::min(end_sequence, hole.first_sequence);
        log_.has_torn_tail = true;
      }
    }
    for (const Hole& hole : holes_) {
      if (hole.first_sequence < end_sequence) log_.losses.push_back({hole.store, hole.offset_bytes, hole.what});
    }
    for (Taken& taken : taken_) {
      if (taken.sequence >= end_sequence) break;
      log_.has_snapshot = log_.has_snapshot || taken.ends_snapshot;
      if (taken.record) log_.records.push_back(std::move(*taken.record));
    }
  }

  const std::span<const uint8_t> file_;
  const uint32_t generation_;
  uint64_t next_sequence_ = 1;
  uint64_t last_flush_begin_ = 1;
  uint64_t records_end_ = 0;  ///< of the last frame that verified
  bool has_garbage_ = false;  ///< behind that
  std::vector<Taken> taken_;
  std::vector<Hole> holes_;
  CatalogueLog log_;
};

}  // namespace

void CatalogueEncoder::Add(const CatalogueRecord& record, bool in_snapshot) {
  ++sequence_;
  AppendCatalogueRecord(record, {static_cast<uint32_t>(generation_), sequence_, flush_begin_, in_snapshot}, &bytes_);
}

void CatalogueEncoder::EndFlush() {
  bytes_.resize(RoundUpTo(bytes_.size(), kBlockBytes));
  flush_begin_ = sequence_ + 1;
}

std::vector<uint8_t> CatalogueEncoder::TakeBlocks() {
  const auto whole = static_cast<ptrdiff_t>(bytes_.size() / kBlockBytes * kBlockBytes);
  std::vector<uint8_t> rest(bytes_.begin() + whole, bytes_.end());
  bytes_.resize(static_cast<size_t>(whole));
  return std::exchange(bytes_, std::move(rest));
}

std::vector<uint8_t> EncodeCatalogue(const std::vector<CatalogueRecord>& records, uint64_t generation) {
  CatalogueEncoder encoder(generation);
  for (const CatalogueRecord& record : records) encoder.Add(record, true);
  encoder.EndFlush();
  return encoder.TakeBlocks();
}

std::string WhatLossConcerns(StoreId store) {
  return store.value == 0 ? "any store" : "store " + std::to_string(store.value);
}

Result<CatalogueLog> ReadCatalogueLog(std::span<const uint8_t> file, uint64_t generation) {
  return LogReader(file, generation).Read();
}

}  // namespace quarry
