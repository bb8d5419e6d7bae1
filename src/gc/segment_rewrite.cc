#include "gc/segment_rewrite.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "format/segment_header.h"
#include "quarry/memory_guard.h"
#include "segment/segment_layout.h"

namespace quarry {
namespace {

/// One read of the old file and one write of the new one, when extents are small.
constexpr uint64_t kCallBytes = 1ULL << 20;

uint64_t BytesOf(uint32_t units) { return units * kExtentAlignmentBytes; }

/// Neighbours are one run.
uint32_t CountRuns(std::span<const NeededExtent> extents) {
  uint32_t runs = 0;
  uint64_t end = 0;
  for (const NeededExtent& extent : extents) {
    if (runs == 0 || extent.offset_units != end) ++runs;
    end = static_cast<uint64_t>(extent.offset_units) + extent.size_units;
  }
  return runs;
}

bool HoldsReencoded(const SegmentMap* map) {
  return map != nullptr &&
         std::any_of(map->runs().begin(), map->runs().end(), [](const SegmentRun& run) { return run.is_reencoded; });
}

std::vector<SegmentRun> RunsOf(std::span<const NeededExtent> extents) {
  std::vector<SegmentRun> runs;
  runs.reserve(CountRuns(extents));
  for (const NeededExtent& extent : extents) {
    const uint64_t begin = BytesOf(extent.offset_units);
    if (runs.empty() || runs.back().original_bytes + runs.back().size_bytes != begin) {
      runs.emplace_back().original_bytes = begin;
    }
    runs.back().size_bytes += BytesOf(extent.size_units);
  }
  return runs;
}

}  // namespace

SegmentRewrite::SegmentRewrite(std::shared_ptr<StoreImpl> store, std::shared_ptr<Segment> segment,
                               std::vector<NeededExtent> extents, const GcEncryption& encryption)
    : store_(std::move(store)), segment_(std::move(segment)), extents_(std::move(extents)), encryption_(encryption) {}

SegmentRewrite::~SegmentRewrite() {
  target_.Release();
  if (!is_claimed_) return;
  if (!is_in_place_) {
    (void)OrOutOfMemory([this] { store_->RemoveRewritten(*segment_); });
  }
  segment_->EndRewriting();
}

uint64_t SegmentRewrite::SizeBytes(std::span<const NeededExtent> extents, const SegmentMap* old_map) {
  uint64_t size = 0;
  for (const NeededExtent& extent : extents) {
    const uint64_t own_size = BytesOf(extent.size_units);
    const auto found = old_map == nullptr ? std::nullopt : old_map->Find(BytesOf(extent.offset_units), own_size);
    size += found ? found->size_bytes : own_size;
  }
  const bool is_run_each = HoldsReencoded(old_map);
  const uint64_t front = DataBeginBytes(is_run_each ? static_cast<uint32_t>(extents.size()) : CountRuns(extents));
  return RoundUpToBlock(front + size) + front;
}

Status SegmentRewrite::Begin(std::string* damage) {
  if (!segment_->ClaimRewriting()) return Status::NotFound("another pass rewrites the segment");
  is_claimed_ = true;
  QUARRY_TRY_ASSIGN(source_, segment_->FileForRead(store_.get()));
  QUARRY_TRY_ASSIGN(source_size_bytes_, source_->SizeBytes());
  window_.emplace(source_.get(), source_size_bytes_, kCallBytes);
  QUARRY_TRY_ASSIGN(old_map_, segment_->Map(store_.get()));
  Status front_damage;  // not the new file's
  const Result<SegmentHeader> header =
      ReadHeaderOrCopy(source_.get(), segment_->store(), segment_->number(), segment_->salt(), &front_damage);
  if (!header.ok()) {
    *damage = header.status().ToString();
    return Status::Ok();
  }
  header_ = *header;
  ++header_.generation;
  QUARRY_TRY_ASSIGN(target_, store_->CreateRewritten(*segment_));
  is_run_each_ = encryption_.key_id != 0 || HoldsReencoded(old_map_.get());
  if (is_run_each_) {
    runs_.reserve(extents_.size());
  } else {
    runs_ = RunsOf(extents_);
  }
  memory_bytes_ = runs_.capacity() * sizeof(SegmentRun) + MapSizeBytes(static_cast<uint32_t>(runs_.capacity()));
  written_bytes_ = DataBeginBytes(static_cast<uint32_t>(is_run_each_ ? extents_.size() : runs_.size()));
  // Says early that there is no room, and keeps the file in one piece. What is encrypted now takes a little more.
  QUARRY_TRY(target_->Allocate(0, SizeBytes(extents_, old_map_.get())));
  buffer_ = AlignedBuffer(kCallBytes);
  return Status::Ok();
}

Result<SegmentRewrite::Step> SegmentRewrite::Copy(uint64_t bytes_max) {
  Step step;
  if (target_.empty()) QUARRY_TRY(Begin(&step.damage));
  if (!step.damage.empty()) return step;
  while (next_extent_ < extents_.size()) {
    if (step.bytes > 0 && step.bytes >= bytes_max) return step;
    QUARRY_TRY(CopyPiece(&step.bytes, &step.damage));
    if (!step.damage.empty()) return step;
  }
  QUARRY_TRY(Finish());
  step.is_done = true;
  return step;
}

Status SegmentRewrite::CopyPiece(uint64_t* copied, std::string* damage) {
  if (!index_) {
    QUARRY_TRY(BeginExtent(copied, damage));
    if (!damage->empty()) return Status::Ok();
  } else {
    const PartEntry& entry = index_->parts[next_part_];
    const Result<std::span<const uint8_t>> stored =
        Source(place_.place_bytes + entry.offset_in_extent_bytes, entry.stored_size_bytes);
    if (const Status status = stored.ok() ? VerifyPart(*index_, next_part_, *stored) : stored.status(); !status.ok()) {
      *damage = status.ToString();
      return Status::Ok();
    }
    QUARRY_TRY(TakePart(*stored, copied));
  }
  return is_front_written_ && next_part_ == index_->header.part_count ? FinishExtent(copied) : Status::Ok();
}

Status SegmentRewrite::BeginExtent(uint64_t* copied, std::string* damage) {
  const NeededExtent& extent = extents_[next_extent_];
  const uint64_t begin = BytesOf(extent.offset_units);
  const SegmentMap::Found own = {begin, BytesOf(extent.size_units), false};
  const std::optional<SegmentMap::Found> found =
      old_map_ == nullptr ? own : old_map_->Find(begin, BytesOf(extent.size_units));
  place_ = found.value_or(SegmentMap::Found{source_size_bytes_, 0, false});
  Result<ExtentIndex> index = ReadIndex(extent, place_.place_bytes, place_.size_bytes);
  if (!index.ok()) {
    *damage = index.status().ToString();
    return Status::Ok();
  }
  index_ = std::move(index).value();
  next_part_ = 0;
  recipher_.reset();
  is_front_written_ = false;
  if (IsToEncrypt(*index_)) {
    QUARRY_TRY_ASSIGN(recipher_, ExtentRecipher::Begin(store_->cipher_provider(), encryption_.key_id, &*index_));
    if (index_->header.part_count > 0) return Status::Ok();
    is_front_written_ = true;
    return Put(recipher_->Front(header_.salt));
  }
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> front,
                    Source(place_.place_bytes, HeaderAndIndexSizeBytes(index_->header)));
  *copied += front.size();
  is_front_written_ = true;
  return Put(front);
}

bool SegmentRewrite::IsToEncrypt(const ExtentIndex& index) const {
  if (encryption_.key_id == 0) return false;
  return !index.header.encrypted || index.cipher.key_id != encryption_.key_id ||
         index.cipher.key_version < encryption_.oldest_key_version;
}

Status SegmentRewrite::TakePart(std::span<const uint8_t> stored, uint64_t* copied) {
  *copied += stored.size();
  if (recipher_ == nullptr) {
    ++next_part_;
    return Put(stored);
  }
  if (!is_front_written_) {
    QUARRY_TRY(recipher_->Note(stored));
    ++next_part_;
    if (!recipher_->knows_all()) return Status::Ok();
    next_part_ = 0;
    is_front_written_ = true;
    return Put(recipher_->Front(header_.salt));
  }
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> made, recipher_->Make(next_part_, stored));
  ++next_part_;
  return Put(made);
}

Status SegmentRewrite::FinishExtent(uint64_t* copied) {
  const uint64_t space = recipher_ == nullptr ? ExtentSpaceBytes(index_->header) : recipher_->space_bytes();
  if (recipher_ == nullptr) *copied += space - ExtentSizeBytes(index_->header);
  if (is_run_each_) {
    const bool is_reencoded = recipher_ != nullptr || place_.is_reencoded;
    runs_.push_back({BytesOf(extents_[next_extent_].offset_units), 0, space, is_reencoded});
  }
  const bool is_encrypted = recipher_ != nullptr || index_->header.encrypted;
  if (is_encrypted) {
    const uint32_t version = recipher_ == nullptr ? index_->cipher.key_version : recipher_->key_version();
    content_.encrypted_bytes += space;
    content_.oldest_key_version = OlderKeyVersion(content_.oldest_key_version, version);
  } else {
    content_.plain_bytes += space;
  }
  if (recipher_ != nullptr) ++encrypted_extents_;
  recipher_.reset();
  index_.reset();
  ++next_extent_;
  return PutZerosTo(kExtentAlignmentBytes);
}

Result<ExtentIndex> SegmentRewrite::ReadIndex(const NeededExtent& extent, uint64_t place_bytes, uint64_t space_bytes) {
  const uint64_t offset = BytesOf(extent.offset_units);
  QUARRY_TRY_ASSIGN(std::span<const uint8_t> front, Source(place_bytes, kExtentHeaderSizeBytes));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeExtentHeader(front, header_.origin(), offset));
  // What the file says must be what the row said, or the map: else the one or the other is damaged.
  if (ExtentSpaceBytes(header) != space_bytes) {
    return Status::Corruption(segment_->store().value, segment_->number().value, offset,
                              "the extent takes " + std::to_string(ExtentSpaceBytes(header)) + " bytes, its row says " +
                                  std::to_string(space_bytes));
  }
  if (static_cast<uint32_t>(header.identity) != extent.identity_low) {
    return Status::Corruption(segment_->store().value, segment_->number().value, offset,
                              "extent is not the one that the head was written for");
  }
  QUARRY_TRY_ASSIGN(front, Source(place_bytes, HeaderAndIndexSizeBytes(header)));
  return DecodeExtentIndex(front, header_.origin(), offset);
}

Result<std::span<const uint8_t>> SegmentRewrite::Source(uint64_t place_bytes, uint64_t size_bytes) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> bytes, window_->At(place_bytes, size_bytes));
  if (bytes.size() == size_bytes) return bytes;
  return Status::Corruption(segment_->store().value, segment_->number().value, place_bytes,
                            "the segment ends at " + std::to_string(source_size_bytes_) + ", within an extent");
}

// ---- the new file ----

Status SegmentRewrite::Put(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), buffer_.size() - buffered_);
    std::memcpy(buffer_.data() + buffered_, bytes.data(), size);
    buffered_ += size;
    bytes = bytes.subspan(size);
    if (buffered_ == buffer_.size()) QUARRY_TRY(WriteBuffer());
  }
  return Status::Ok();
}

Status SegmentRewrite::PutZerosTo(uint64_t multiple) {
  static constexpr std::array<uint8_t, kBlockSizeBytes> kZeros{};
  const uint64_t rest = buffered_ % multiple;  // the buffer begins at a block
  return rest == 0 ? Status::Ok() : Put(std::span<const uint8_t>(kZeros).first(static_cast<size_t>(multiple - rest)));
}

Status SegmentRewrite::WriteBuffer() {
  if (buffered_ == 0) return Status::Ok();
  QUARRY_TRY(target_->WriteAt(written_bytes_, {buffer_.data(), buffered_}));
  written_bytes_ += buffered_;
  buffered_ = 0;
  return Status::Ok();
}

Status SegmentRewrite::Finish() {
  QUARRY_TRY(PutZerosTo(kBlockSizeBytes));
  QUARRY_TRY(WriteBuffer());
  QUARRY_TRY(WriteLayout());
  QUARRY_TRY(target_->Sync());
  QUARRY_TRY(target_->Close());
  target_.Release();
  QUARRY_TRY(Verify());
  return store_->PublishRewritten(segment_, size_bytes_, content_, &is_in_place_);
}

Status SegmentRewrite::WriteLayout() {
  const SegmentMap new_map = SegmentMap::Place(std::move(runs_));
  assert(written_bytes_ == RoundUpToBlock(new_map.data_end_bytes()));
  const std::vector<uint8_t> map = new_map.Encode();
  header_.run_count = static_cast<uint32_t>(new_map.runs().size());
  header_.data_end_bytes = new_map.data_end_bytes();
  header_.map_checksum = Checksum64(map);
  header_.rewritten_micros = store_->NowMicros();
  QUARRY_TRY(WriteMap(written_bytes_, map));
  QUARRY_TRY(WriteHeader(written_bytes_));
  size_bytes_ = written_bytes_ + kSegmentHeaderSizeBytes;
  QUARRY_TRY(WriteMap(kSegmentHeaderSizeBytes, map));
  return WriteHeader(0);
}

Status SegmentRewrite::WriteMap(uint64_t place_bytes, const std::vector<uint8_t>& map) {
  written_bytes_ = place_bytes;
  QUARRY_TRY(Put(map));
  QUARRY_TRY(PutZerosTo(kBlockSizeBytes));
  return WriteBuffer();
}

Status SegmentRewrite::WriteHeader(uint64_t place_bytes) {
  EncodeSegmentHeader(header_, std::span<uint8_t, kSegmentHeaderSizeBytes>(buffer_.data(), kSegmentHeaderSizeBytes));
  return target_->WriteAt(place_bytes, {buffer_.data(), kSegmentHeaderSizeBytes});
}

Status SegmentRewrite::Verify() {
  QUARRY_TRY_ASSIGN(const LeasedFile<ReadableFile> file, store_->OpenRewritten(*segment_));
  QUARRY_TRY_ASSIGN(const SegmentHeader header, ReadSegmentHeader(file.get(), segment_->store(), segment_->number()));
  if (!(header == header_)) return Status::FromErrno(EIO, "what was written does not read back:", "segment header");
  Status damage;
  // Which has the map's checksum.
  QUARRY_TRY(ReadSegmentMap(file.get(), header, &damage).status());
  QUARRY_TRY(damage);
  return CheckCopy(file.get(), header);
}

}  // namespace quarry
