#include "dump_segment.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dump_text.h"
#include "format/extent.h"
#include "format/segment_header.h"
#include "format/segment_map.h"
#include "quarry/options.h"
#include "quarry/printable.h"

namespace quarry::dump {

namespace {

/// Bytes of the file at any place.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path, std::ios::binary | std::ios::ate) {
    if (file_) size_bytes_ = static_cast<uint64_t>(std::max<std::streamoff>(0, file_.tellg()));
  }
  [[nodiscard]] bool ok() const { return file_.good(); }
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }

  /// What the file has of `size_bytes` at `offset_bytes`.
  Result<std::vector<uint8_t>> At(uint64_t offset_bytes, uint64_t size_bytes) {
    const uint64_t there = std::min(size_bytes, size_bytes_ - std::min(offset_bytes, size_bytes_));
    std::vector<uint8_t> bytes(static_cast<size_t>(there));
    if (there == 0) return bytes;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset_bytes));
    file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(there));
    if (!file_) return Status::FromErrno(EIO, "read", path_);
    return bytes;
  }

 private:
  const std::string path_;
  std::ifstream file_;
  uint64_t size_bytes_ = 0;
};

/// What stands between two extents.
struct Gap {
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  bool zero = true;
  std::string torn;  ///< why something that starts like an extent is none
};

/// What of a segment one version of one key encrypts.
struct KeyUse {
  uint64_t extents = 0;
  uint64_t stored_bytes = 0;
};

class SegmentDump {
 public:
  SegmentDump(Reader* reader, const SegmentHeader& header, const Options& options, std::ostream* out)
      : reader_(*reader), header_(header), options_(options), out_(*out) {}

  Status Run() {
    if (header_.is_rewritten()) {
      QUARRY_TRY(Runs());
    } else {
      QUARRY_TRY(Range(kSegmentHeaderSizeBytes, reader_.size_bytes(), kSegmentHeaderSizeBytes));
    }
    out_ << "  " << extents_ << " extents: stored " << Size(stored_bytes_) << " for values of " << Size(value_bytes_)
         << ", " << parts_ << " parts of which " << raw_parts_ << " raw\n";
    for (const auto& [key, use] : keys_) {
      out_ << "  key " << key.first << " version " << key.second << ": " << use.extents << " extents, stored "
           << Size(use.stored_bytes) << "\n";
    }
    return damage_;
  }

 private:
  /// What stands in the file from `at` on, where the segment's own offset is `offset`.
  Status Range(uint64_t at, uint64_t end, uint64_t offset) {
    shift_bytes_ = offset - at;
    while (at < end) {
      QUARRY_TRY_ASSIGN(const std::optional<ExtentIndex> index, ExtentAt(at));
      if (index.has_value()) {
        FlushGap();
        QUARRY_TRY(Extent(*index));
        at += ExtentSpaceBytes(index->header);
      } else {
        const uint64_t next = std::min(end, (at / kSegmentBlockSizeBytes + 1) * kSegmentBlockSizeBytes);
        QUARRY_TRY(AddToGap(at, next));
        at = next;
      }
    }
    FlushGap();
    return Status::Ok();
  }

  Status Runs() {
    Result<SegmentMap> found = MapAt(kSegmentHeaderSizeBytes);
    if (!found.ok() && HasCopy(header_, reader_.size_bytes())) {
      damage_ = found.status();
      out_ << "  " << Printable(damage_.ToString()) << ": what follows is by its copy at the end of the file\n";
      found = MapAt(CopyBeginBytes(header_));
    }
    QUARRY_TRY_ASSIGN(const SegmentMap map, std::move(found));
    for (size_t run = 0; run < map.runs().size(); ++run) {
      const SegmentRun& begin = map.runs()[run];
      if (Listing()) {
        out_ << "  run " << run << ": " << Size(begin.size_bytes) << " of offset " << begin.original_bytes
             << ", in the file at " << begin.place_bytes << (begin.is_reencoded ? ", encoded anew" : "") << "\n";
      }
      QUARRY_TRY(Range(begin.place_bytes, begin.place_bytes + begin.size_bytes, begin.original_bytes));
    }
    return Status::Ok();
  }

  Result<SegmentMap> MapAt(uint64_t place) {
    QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, reader_.At(place, MapSizeBytes(header_.run_count)));
    return SegmentMap::Decode(bytes, header_);
  }

  Result<std::optional<ExtentIndex>> ExtentAt(uint64_t place) {
    torn_.clear();
    const uint64_t offset = place + shift_bytes_;
    QUARRY_TRY_ASSIGN(const std::vector<uint8_t> front, reader_.At(place, kExtentHeaderSizeBytes));
    if (!StartsLikeExtent(front)) return std::optional<ExtentIndex>();
    const auto header = DecodeExtentHeader(front, header_.origin(), offset);
    if (header.ok()) {
      QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, reader_.At(place, HeaderAndIndexSizeBytes(*header)));
      auto index = DecodeExtentIndex(bytes, header_.origin(), offset);
      if (index.ok()) return std::optional<ExtentIndex>(std::move(index).value());
      torn_ = index.status().ToString();
    } else {
      torn_ = header.status().ToString();
    }
    return std::optional<ExtentIndex>();
  }

  Status AddToGap(uint64_t from, uint64_t to) {
    QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes, reader_.At(from, to - from));
    const bool zero = std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
    if (gap_.has_value() && (gap_->zero != zero || !torn_.empty())) FlushGap();
    if (!gap_.has_value()) gap_ = Gap{from + shift_bytes_, 0, zero, torn_};
    gap_->size_bytes += bytes.size();
    return Status::Ok();
  }

  void FlushGap() {
    if (!gap_.has_value()) return;
    if (Listing()) {
      out_ << "  offset " << gap_->offset_bytes << ": " << Size(gap_->size_bytes)
           << (gap_->zero ? " bytes of zeros (padding, unused or punched)" : " bytes that are no extent") << "\n";
      if (!gap_->torn.empty()) out_ << "    " << Printable(gap_->torn) << "\n";
    }
    gap_.reset();
  }

  Status Extent(const ExtentIndex& index) {
    const ExtentHeader& header = index.header;
    const auto raw = std::count_if(index.parts.begin(), index.parts.end(), [](const PartEntry& p) { return p.raw; });
    if (Listing()) {
      out_ << "  offset " << header.offset_bytes << ": extent of " << Size(ExtentSizeBytes(header)) << ", value "
           << Size(header.content_size_bytes + header.prefix_size_bytes) << ", codec " << CodecName(header.codec)
           << ", " << header.part_count << " parts of " << header.part_size_bytes << " (" << raw << " raw)";
      if (header.encrypted) {
        out_ << ", encrypted with key " << index.cipher.key_id << " version " << index.cipher.key_version;
      }
      if (header.prefix_size_bytes != 0) out_ << ", its first " << header.prefix_size_bytes << " bytes in the row";
      out_ << "\n";
    }
    ++extents_;
    stored_bytes_ += ExtentSizeBytes(header);
    value_bytes_ += header.content_size_bytes + header.prefix_size_bytes;
    if (header.encrypted) {
      KeyUse& use = keys_[{index.cipher.key_id, index.cipher.key_version}];
      ++use.extents;
      use.stored_bytes += ExtentSizeBytes(header);
    }
    parts_ += header.part_count;
    raw_parts_ += static_cast<uint64_t>(raw);
    if (options_.parts || options_.verify) QUARRY_TRY(Parts(index, options_.parts && Listing(false)));
    return Status::Ok();
  }

  Status Parts(const ExtentIndex& index, bool list) {
    for (uint32_t part = 0; part < index.header.part_count; ++part) {
      const PartEntry& entry = index.parts[part];
      const uint64_t offset = index.header.offset_bytes + entry.offset_in_extent_bytes;
      if (list) {
        out_ << "    part " << part << " at " << offset << ": " << entry.stored_size_bytes << " stored"
             << (entry.raw ? " raw" : "") << " of " << PartSizeOf(index.header, part) << ", checksum "
             << Hex64(entry.checksum) << "\n";
      }
      if (!options_.verify) continue;
      QUARRY_TRY_ASSIGN(const std::vector<uint8_t> stored, reader_.At(offset - shift_bytes_, entry.stored_size_bytes));
      const Status status = VerifyPart(index, part, stored);
      if (status.ok()) continue;
      out_ << "    " << Printable(status.ToString()) << "\n";
      if (damage_.ok()) damage_ = status;
    }
    return Status::Ok();
  }

  /// `next`: asked before the extent in hand was counted.
  [[nodiscard]] bool Listing(bool next = true) const {
    return options_.extents_max == 0 || extents_ < options_.extents_max + (next ? 0 : 1);
  }

  Reader& reader_;
  const SegmentHeader& header_;
  const Options& options_;
  std::ostream& out_;
  std::optional<Gap> gap_;
  std::string torn_;          ///< of the last ExtentAt
  uint64_t shift_bytes_ = 0;  ///< from a place in the file to the segment's own offset; wraps
  uint64_t extents_ = 0;
  uint64_t stored_bytes_ = 0;
  uint64_t value_bytes_ = 0;
  uint64_t parts_ = 0;
  uint64_t raw_parts_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, KeyUse> keys_;  ///< by id and version: what is encrypted
  Status damage_;
};

/// The copy of the header at the end of a rewritten segment. Nobody knows the salt here, so a value may pass for one:
/// it explains the file to a person, and reads no value.
Result<SegmentHeader> HeaderCopy(Reader* reader) {
  const uint64_t size = reader->size_bytes();
  const uint64_t place = size - std::min<uint64_t>(size, kSegmentHeaderSizeBytes);
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> block, reader->At(place, kSegmentHeaderSizeBytes));
  QUARRY_TRY_ASSIGN(SegmentHeader header, DecodeSegmentHeader(block));
  if (HasCopy(header, size)) return header;
  return Status::Corruption(header.store.value, header.segment.value, 0, "the file has no copy of its header");
}

}  // namespace

Status DumpSegment(const std::string& path, const Options& options, std::ostream& out) {
  Reader reader(path);
  if (!reader.ok()) return Status::NotFound("cannot open " + path);
  const Result<std::vector<uint8_t>> block = reader.At(0, kSegmentHeaderSizeBytes);
  Result<SegmentHeader> found = block.ok() ? DecodeSegmentHeader(*block) : Result<SegmentHeader>(block.status());
  const Status damage = found.status();
  if (damage.code() == StatusCode::kCorruption || damage.code() == StatusCode::kIoError) {
    if (Result<SegmentHeader> copy = HeaderCopy(&reader); copy.ok()) {
      out << Printable(damage.ToString()) << ": what follows is by its copy at the end of the file\n";
      found = std::move(copy);
    }
  }
  QUARRY_TRY_ASSIGN(const SegmentHeader header, std::move(found));
  out << "segment " << header.segment.value << " of store " << header.store.value << " (" << Hex64(header.store.value)
      << ")\n"
      << "  file size        " << Size(reader.size_bytes()) << "\n"
      << "  created          " << Time(header.created_micros) << " for InnoDB table " << header.table.value
      << " on path " << header.path_number << "\n"
      << "  installation     " << Hex(header.installation) << "\n";
  if (header.is_rewritten()) {
    out << "  rewritten        " << Time(header.rewritten_micros) << ", generation " << header.generation << ", "
        << header.run_count << " runs of extents up to " << Size(header.data_end_bytes) << "\n";
  }
  const Status status = SegmentDump(&reader, header, options, &out).Run();
  return damage.ok() ? status : damage;
}

}  // namespace quarry::dump
