#include "append/extent_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "base/thread.h"
#include "format/part_cipher.h"

namespace quarry {
namespace {

/// An index of more parts than this is not kept allocated by its thread.
constexpr size_t kPartsKeptMax = 4096;

std::vector<PartEntry>& ThreadParts() {
  std::vector<PartEntry>& parts = ThreadScratch<std::vector<PartEntry>>();
  if (parts.capacity() > kPartsKeptMax) parts = {};
  parts.clear();
  return parts;
}

uint64_t BatchOf(const AppendOptions& options) {
  const uint64_t batch = std::clamp<uint64_t>(options.write_batch_bytes, kBatchMinBytes, kWriteCallMaxBytes);
  return RoundDownToBlock(batch);
}

}  // namespace

ExtentWriter::ExtentWriter(StoreContext* context, Lane* lane, StoreId store, const AppendOptions& options,
                           const Canceller* canceller)
    : context_(context),
      lane_(lane),
      options_(options),
      canceller_(canceller),
      batch_bytes_(BatchOf(options)),
      staged_max_bytes_(std::min(batch_bytes_, kChunkSizeBytes)),
      parts_(ThreadParts()) {
  header_.store = store;
  header_.codec = options.codec;
}

ExtentWriter::~ExtentWriter() {
  if (range_.file != nullptr) (void)lane_->FinishPrivate(range_, 0, Status::OutOfMemory());
}

Result<AppendedExtent> ExtentWriter::Append(std::span<const uint8_t> value) {
  QUARRY_TRY_ASSIGN(header_.identity, context_->identities.Take());
  header_.prefix_size_bytes = options_.prefix_size_bytes;
  const uint64_t prefix_checksum = Checksum64(value.first(options_.prefix_size_bytes));
  prefix_tag_ = static_cast<uint32_t>(prefix_checksum);
  checksum_ = ValueChecksum(value.size(), prefix_checksum);
  if (options_.encryption_key_id != 0) QUARRY_TRY(OpenCipher());
  return AppendContent(value.subspan(options_.prefix_size_bytes));
}

Status ExtentWriter::OpenCipher() {
  CipherProvider* const provider = context_->options.cipher_provider.get();
  if (provider == nullptr) return Status::KeyUnavailable("nothing here can encrypt (no key management is at hand)");
  QUARRY_TRY_ASSIGN(cipher_parameters_, provider->NewExtent(options_.encryption_key_id));
  QUARRY_TRY_ASSIGN(cipher_, provider->Open(cipher_parameters_));
  header_.encrypted = true;
  return Status::Ok();
}

Result<AppendedExtent> ExtentWriter::AppendContent(std::span<const uint8_t> content) {
  header_.content_size_bytes = content.size();
  header_.part_size_bytes = PartSizeFor(content.size(), options_.part_size_bytes);
  header_.part_count = PartCount(content.size(), header_.part_size_bytes);
  front_bytes_ = HeaderAndIndexSizeBytes(header_);
  extent_max_bytes_ = ExtentSizeMaxBytes(content.size(), header_.part_size_bytes, header_.encrypted);
  if ((options_.codec != Codec::kNone || header_.encrypted) && !content.empty()) return AppendCompressed(content);
  return extent_max_bytes_ <= staged_max_bytes_ ? StageRaw(content) : StreamRaw(content);
}

std::span<const uint8_t> ExtentWriter::PartOf(std::span<const uint8_t> content, uint32_t part) const {
  return content.subspan(static_cast<size_t>(part) * header_.part_size_bytes, PartSizeOf(header_, part));
}

void ExtentWriter::NotePart(std::span<const uint8_t> part, std::span<const uint8_t> stored, bool raw) {
  PartEntry entry;
  entry.checksum = Checksum64(stored);
  entry.stored_size_bytes = static_cast<uint32_t>(stored.size());
  entry.raw = raw;
  parts_.push_back(entry);
  checksum_.AddPart(raw && !header_.encrypted ? entry.checksum : Checksum64(part));
}

AppendedExtent ExtentWriter::Encode(Segment& segment, uint64_t offset_bytes, std::span<uint8_t> front) {
  header_.segment = segment.number();
  header_.offset_bytes = offset_bytes;
  header_.stored_total_bytes = 0;
  for (const PartEntry& part : parts_) header_.stored_total_bytes += part.stored_size_bytes;
  EncodeExtentIndex(header_, parts_, cipher_parameters_, segment.salt(), front);
  AppendedExtent extent;
  extent.locator = LocatorOf(header_);
  extent.locator.prefix_tag = prefix_tag_;
  extent.locator.value_checksum = checksum_.value();
  segment.NoteContent(extent.locator.extent_size_bytes, header_.encrypted ? cipher_parameters_.key_version : 0);
  return extent;
}

Result<AppendedExtent> ExtentWriter::StageRaw(std::span<const uint8_t> content) {
  parts_.reserve(header_.part_count);  // nothing is to fail between reserving and finishing
  QUARRY_TRY_ASSIGN(const StagedRange range, lane_->ReserveStaged(extent_max_bytes_, canceller_));
  uint8_t* at = range.memory + front_bytes_;
  for (uint32_t part = 0; part < header_.part_count; ++part) {
    const std::span<const uint8_t> bytes = PartOf(content, part);
    std::memcpy(at, bytes.data(), bytes.size());
    NotePart(bytes, {at, bytes.size()}, true);
    at += bytes.size();
  }
  AppendedExtent extent =
      Encode(*range.run->file->segment, range.offset_bytes, {range.memory, static_cast<size_t>(front_bytes_)});
  extent.flush_ticket = range.ticket;
  lane_->FinishStaged(range);
  return extent;
}

Result<AppendedExtent> ExtentWriter::StreamRaw(std::span<const uint8_t> content) {
  // The checksums first, in a pass of their own: header and index then go out with the first batch.
  for (uint32_t part = 0; part < header_.part_count; ++part)
    NotePart(PartOf(content, part), PartOf(content, part), true);
  ExtentStream stream(context_, batch_bytes_, 0, 0, 0, KeepRecent(extent_max_bytes_));
  QUARRY_TRY(stream.Open(write_buffers(), canceller_));
  std::vector<uint8_t> front(static_cast<size_t>(front_bytes_));
  QUARRY_TRY_ASSIGN(range_, lane_->ReservePrivate(extent_max_bytes_, canceller_));
  AppendedExtent extent = Encode(*range_.file->segment, range_.offset_bytes, front);
  Status written = stream.Append(range_, front);
  if (written.ok()) written = stream.Append(range_, content);
  if (written.ok()) written = stream.Finish(range_);
  return FinishPrivate(std::move(extent), written);
}

CompressedPart ExtentWriter::MakePart(std::span<const uint8_t> part, std::span<uint8_t> out) {
  const CompressedPart made = CompressPart(options_.codec, part, out);
  if (made.raw) std::memcpy(out.data(), part.data(), part.size());
  if (options_.codec != Codec::kNone) {
    context_->counters.Add(made.raw ? Counter::kPartsStoredRaw : Counter::kPartsCompressed);
  }
  return made;
}

Status ExtentWriter::StorePart(std::span<const uint8_t> part, ExtentStream* stream) {
  const uint32_t overhead = PartOverheadBytes(header_.encrypted);
  const std::span<uint8_t> room = stream->Room(part.size() + overhead);
  CompressedPart made;
  size_t stored_size = 0;
  if (cipher_ == nullptr) {
    made = MakePart(part, room);
    stored_size = made.stored_size_bytes;
  } else {
    // Plain bytes stay out of the stream's buffer: it is written, and its successors are handed on.
    if (plain_.empty()) plain_ = context_->read_buffers.Take(part.size() + overhead);
    made = MakePart(part, {plain_.data(), part.size()});
    stored_size = made.stored_size_bytes + overhead;
    const auto number = static_cast<uint32_t>(parts_.size());
    QUARRY_TRY(SealPart(cipher_.get(), number, {plain_.data(), stored_size}, room.first(stored_size)));
    context_->counters.Add(Counter::kPartsEncrypted);
  }
  NotePart(part, room.first(stored_size), made.raw);
  stream->Advance(stored_size);
  return Status::Ok();
}

Result<AppendedExtent> ExtentWriter::AppendCompressed(std::span<const uint8_t> content) {
  // Parts are gathered behind a place for header and index. Mostly they fit in one batch and the extent takes exactly
  // what it needs; only then is anything reserved.
  const bool front_fits = front_bytes_ <= batch_bytes_ / 2;
  const bool all_fits = RoundUpToBlock(extent_max_bytes_) <= batch_bytes_;
  ExtentStream stream(context_, all_fits ? RoundUpToBlock(extent_max_bytes_) : batch_bytes_,
                      all_fits ? 0
                               : RoundUpToBlock(std::min<uint64_t>(header_.part_size_bytes, content.size()) +
                                                PartOverheadBytes(header_.encrypted)),
                      front_fits ? 0 : RoundDownToBlock(front_bytes_), front_bytes_, false);
  QUARRY_TRY(stream.Open(write_buffers(), canceller_));
  if (!front_fits) return StreamCompressed(content, &stream);
  while (parts_.size() < header_.part_count && !stream.full()) {
    QUARRY_TRY(StorePart(PartOf(content, static_cast<uint32_t>(parts_.size())), &stream));
  }
  if (parts_.size() < header_.part_count) return StreamCompressed(content, &stream);
  if (stream.position_bytes() <= staged_max_bytes_) return StageGathered(stream.gathered());
  return WriteGathered(&stream);
}

Result<AppendedExtent> ExtentWriter::StageGathered(std::span<const uint8_t> gathered) {
  QUARRY_TRY_ASSIGN(const StagedRange range, lane_->ReserveStaged(gathered.size(), canceller_));
  std::memcpy(range.memory + front_bytes_, gathered.data() + front_bytes_, gathered.size() - front_bytes_);
  AppendedExtent extent =
      Encode(*range.run->file->segment, range.offset_bytes, {range.memory, static_cast<size_t>(front_bytes_)});
  extent.flush_ticket = range.ticket;
  lane_->FinishStaged(range);
  return extent;
}

Result<AppendedExtent> ExtentWriter::WriteGathered(ExtentStream* stream) {
  const uint64_t size = stream->position_bytes();
  QUARRY_TRY_ASSIGN(range_, lane_->ReservePrivate(size, canceller_));
  AppendedExtent extent =
      Encode(*range_.file->segment, range_.offset_bytes, stream->gathered().first(static_cast<size_t>(front_bytes_)));
  stream->IncludeFront();
  return FinishPrivate(std::move(extent), stream->Finish(range_));
}

Result<AppendedExtent> ExtentWriter::StreamCompressed(std::span<const uint8_t> content, ExtentStream* stream) {
  // Nobody knows yet how small the rest gets: the range is for the worst case.
  uint64_t size_max = stream->position_bytes();
  for (uint32_t part = static_cast<uint32_t>(parts_.size()); part < header_.part_count; ++part) {
    size_max += PartSizeOf(header_, part) + PartOverheadBytes(header_.encrypted);
  }
  QUARRY_TRY_ASSIGN(range_, lane_->ReservePrivate(size_max, canceller_));
  Status written = stream->WriteFull(range_);
  while (written.ok() && parts_.size() < header_.part_count) {
    written = StorePart(PartOf(content, static_cast<uint32_t>(parts_.size())), stream);
    if (written.ok()) written = stream->WriteFull(range_);
  }
  AppendedExtent extent;
  if (written.ok()) {
    const uint64_t size = stream->position_bytes();
    written = stream->Finish(range_);
    lane_->ShrinkPrivate(&range_, size);
    std::vector<uint8_t> front(static_cast<size_t>(front_bytes_));
    extent = Encode(*range_.file->segment, range_.offset_bytes, front);
    if (written.ok()) written = stream->WriteFront(range_, front);
  }
  return FinishPrivate(std::move(extent), written);
}

Result<AppendedExtent> ExtentWriter::FinishPrivate(AppendedExtent extent, const Status& written) {
  const PrivateRange range = std::exchange(range_, {});
  QUARRY_TRY_ASSIGN(extent.flush_ticket, lane_->FinishPrivate(range, extent.locator.extent_size_bytes, written));
  return extent;
}

}  // namespace quarry
