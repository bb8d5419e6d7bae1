#include "segment/segment_reader.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "base/split_mix.h"
#include "cache/locator_hash.h"
#include "codec/codec.h"
#include "context/layout.h"
#include "format/part_cipher.h"

namespace quarry {
namespace {

/// Header and index of an extent of some 300 parts: read to the stack.
constexpr uint64_t kSmallFrontBytes = 4096;

class SlotOwner final : public ValueBuffer::Owner {
 public:
  explicit SlotOwner(DirectBuffers::Slot slot) : slot_(std::move(slot)) {}
  [[nodiscard]] std::span<uint8_t> bytes() { return slot_.bytes(); }

 private:
  DirectBuffers::Slot slot_;
};

}  // namespace

SegmentReader::SegmentReader(StoreContext* context, SegmentLocator* files, Segment* segment, const Head& head,
                             const ReadOptions& options)
    : context_(context),
      files_(files),
      segment_(segment),
      head_(head),
      batch_bytes_(std::clamp<uint64_t>(options.read_batch_bytes, kBatchMinBytes, kBatchMaxBytes)),
      page_cache_use_(options.page_cache),
      report_(options.report) {}

Status SegmentReader::Corruption(const std::string& what) const {
  return Status::Corruption(locator_.store.value, locator_.segment.value, locator_.offset_bytes, what);
}

Status SegmentReader::Prepare() {
  if (place_) return Status::Ok();
  // The locator's own tag verified, yet nothing here may overflow or allocate on its word alone.
  if (locator_.offset_bytes < kSegmentHeaderSizeBytes || locator_.offset_bytes % kExtentAlignmentBytes != 0 ||
      locator_.offset_bytes > INT64_MAX / 2 || locator_.value_size_bytes > kValueSizeMaxBytes ||
      locator_.prefix_size_bytes > locator_.value_size_bytes || !IsExtentSizePossible(locator_)) {
    return Corruption("the locator points at no possible extent");
  }
  const Result<SegmentSalt> salt = segment_->Salt(files_);
  if (salt.status().code() == StatusCode::kIoError && segment_->salt() != SegmentSalt{}) {
    // One bad sector must not cost the segment. Nearly all extents stand at their own offsets, and say so.
    header_failure_ = salt.status();
    salt_ = segment_->salt();
    place_ = SegmentMap::Found{locator_.offset_bytes, locator_.extent_size_bytes, false};
    return Status::Ok();
  }
  QUARRY_TRY(salt.status());
  salt_ = *salt;
  QUARRY_TRY_ASSIGN(place_, segment_->PlaceOf(files_, locator_.offset_bytes, locator_.extent_size_bytes));
  return Status::Ok();
}

Result<ExtentHeader> SegmentReader::DecodeHeader(std::span<const uint8_t> front) const {
  Result<ExtentHeader> header = DecodeExtentHeader(front, locator_, salt_);
  if (header.status().code() == StatusCode::kCorruption && !header_failure_.ok()) return header_failure_;
  return header;
}

Status SegmentReader::BeginWhole() {
  QUARRY_TRY(Prepare());
  QUARRY_TRY_ASSIGN(const uint64_t prefix_checksum, CheckPrefix(head_));
  checksum_.emplace(locator_.value_size_bytes, prefix_checksum);
  return Status::Ok();
}

Status SegmentReader::EndWhole() {
  if (checksum_->value() == locator_.value_checksum) return Status::Ok();
  return Corruption("the value is not the one that its head was written for (checksum mismatch)");
}

bool SegmentReader::LooksRaw(uint64_t* front_bytes) const {
  if (place_->is_reencoded || segment_->holds_encrypted()) return false;
  const uint64_t raw_size = HeaderAndIndexSizeBytes(1, false) + locator_.content_size_bytes();
  if (locator_.content_size_bytes() == 0 || locator_.extent_size_bytes < raw_size) return false;
  // The index has whole entries; what is left fills the end up to a multiple of 8.
  const uint64_t padding = (locator_.extent_size_bytes - raw_size) % kIndexEntrySizeBytes;
  *front_bytes = locator_.extent_size_bytes - padding - locator_.content_size_bytes();
  return padding < kExtentAlignmentBytes && *front_bytes <= kSmallFrontBytes;
}

Status SegmentReader::Submit(std::span<const ReadRequest> requests) {
  bool recent = asks_memory_;
  uint64_t size = 0;
  for (const ReadRequest& request : requests) {
    size += request.out.size();
    recent = recent && segment_->chunks()->Copy(request.offset_bytes, request.out);
  }
  if (recent) return Status::Ok();
  QUARRY_TRY_ASSIGN(ReadableFile* const file, OpenFile());
  std::array<ReadRequest, 2> placed;
  assert(requests.size() <= placed.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    placed[i] = {requests[i].offset_bytes - locator_.offset_bytes + place_->place_bytes, requests[i].out};
  }
  context_->counters.Add(Counter::kReadSubmissions);
  context_->counters.Add(Counter::kFileBytesRead, size);
  Status status = ReadFile(file, {placed.data(), requests.size()});
  if (status.ok()) return status;
  const ReadRequest& last = placed[requests.size() - 1];
  return Explain(file, last.offset_bytes + last.out.size(), std::move(status));
}

Result<ReadableFile*> SegmentReader::OpenFile() {
  missed_recent_ = true;
  if (file_.empty()) {
    QUARRY_TRY_ASSIGN(file_, segment_->FileForRead(files_));
  }
  return file_.get();
}

Status SegmentReader::Explain(ReadableFile* file, uint64_t end_bytes, Status failure) const {
  const Result<uint64_t> file_size = file->SizeBytes();
  if (!file_size.ok() || *file_size >= end_bytes) return failure;
  if (!header_failure_.ok()) return header_failure_;
  return Corruption("the extent ends at " + std::to_string(end_bytes) + ", the segment at " +
                    std::to_string(*file_size));
}

Result<bool> SegmentReader::ReadBlocks(ReadableFile* file, uint64_t begin_bytes, uint64_t until_bytes,
                                       std::span<uint8_t> blocks) const {
  QUARRY_TRY_ASSIGN(const std::optional<size_t> read, file->ReadDirect(begin_bytes, blocks));
  if (!read) return false;
  if (begin_bytes + *read >= until_bytes) return true;
  return Status::FromErrno(EIO, "short read of " + std::to_string(*read) + " bytes at " + std::to_string(begin_bytes),
                           SegmentFileName(segment_->number()) + " of store " + std::to_string(locator_.store.value));
}

Status SegmentReader::ReadFile(ReadableFile* file, std::span<const ReadRequest> requests) {
  const uint64_t begin = requests.front().offset_bytes;
  const uint64_t end = requests.back().offset_bytes + requests.back().out.size();
  const std::optional<bool> chosen = std::exchange(goes_around_, std::nullopt);
  if (chosen ? *chosen : GoesAroundPageCache(begin, end - begin)) {
    QUARRY_TRY_ASSIGN(const bool was_read, ReadAroundPageCache(file, requests));
    if (was_read) {
      context_->counters.Add(Counter::kDirectReadSubmissions);
      return Status::Ok();
    }
  }
  used_page_cache_ = true;
  return file->ReadBatch(requests);
}

bool SegmentReader::GoesAroundPageCache(uint64_t begin_bytes, uint64_t size_bytes) {
  bool is_first = false;
  const bool goes_around = ChooseWay(begin_bytes, size_bytes, &is_first);
  if (report_ != nullptr && (goes_around || is_first)) report_->waited_for_device = true;
  return goes_around;
}

bool SegmentReader::ChooseWay(uint64_t begin_bytes, uint64_t size_bytes, bool* is_first) {
  switch (page_cache_use_) {
    case PageCacheUse::kNone:
      return true;
    case PageCacheUse::kAll:
      return false;
    case PageCacheUse::kSmallReads:
      return size_bytes >= PageCacheRule::kAroundMinBytes;
    case PageCacheUse::kByRule:
      break;
  }
  return context_->page_cache_rule.GoesAround(
      HashOf(locator_) ^ SplitMixWord((begin_bytes - place_->place_bytes) * kSplitMixStep), size_bytes,
      context_->env->MonotonicMicros(), is_first);
}

Result<bool> SegmentReader::ReadAroundPageCache(ReadableFile* file, std::span<const ReadRequest> requests) {
  const uint64_t end = requests.back().offset_bytes + requests.back().out.size();
  uint64_t from = requests.front().offset_bytes;  // what is still wanted
  DirectBuffers::Slot slot = context_->direct_buffers.Take();
  const std::span<uint8_t> bytes = slot.bytes();
  auto request = requests.begin();
  size_t filled = 0;  // of *request
  while (from < end) {
    const uint64_t begin = RoundDownToBlock(from);
    const uint64_t size = std::min<uint64_t>(bytes.size(), RoundUpToBlock(end - begin));
    const uint64_t until = std::min(end, begin + size);
    QUARRY_TRY_ASSIGN(const bool was_read, ReadBlocks(file, begin, until, bytes.first(static_cast<size_t>(size))));
    if (!was_read) return false;
    while (from < until) {
      const size_t part = static_cast<size_t>(std::min<uint64_t>(request->out.size() - filled, until - from));
      std::memcpy(request->out.data() + filled, bytes.data() + (from - begin), part);
      from += part;
      filled += part;
      if (filled == request->out.size()) {
        ++request;
        filled = 0;
      }
    }
  }
  return true;
}

Result<ValueBuffer> SegmentReader::ReadWholeInPlace() {
  QUARRY_TRY(Prepare());
  uint64_t front_bytes = 0;
  if (!LooksRaw(&front_bytes)) return ValueBuffer();
  const uint64_t size = front_bytes + locator_.content_size_bytes();
  const uint64_t begin = RoundDownToBlock(place_->place_bytes);
  const uint64_t end = place_->place_bytes + size;
  // The prefix goes right before the content, over header and index: room for it in front where these are shorter.
  const uint64_t before_content = place_->place_bytes - begin + front_bytes;
  const uint64_t room =
      RoundUpToBlock(locator_.prefix_size_bytes - std::min<uint64_t>(before_content, locator_.prefix_size_bytes));
  // In a read batch, too; and a byte is left behind the value.
  const bool suits = size <= batch_bytes_ && room + (end - begin) < DirectBuffers::kSlotBytes;
  if (!suits || segment_->chunks()->Holds(locator_.offset_bytes, size)) return ValueBuffer();
  QUARRY_TRY_ASSIGN(ReadableFile* const file, OpenFile());
  goes_around_ = GoesAroundPageCache(place_->place_bytes, size);
  if (!*goes_around_) return ValueBuffer();
  std::optional<DirectBuffers::Slot> slot = context_->direct_buffers.TakeToKeep();
  if (!slot) return ValueBuffer();
  auto owner = std::make_unique<SlotOwner>(std::move(*slot));
  const std::span<uint8_t> memory = owner->bytes().subspan(static_cast<size_t>(room));
  const Result<bool> was_read =
      ReadBlocks(file, begin, end, memory.first(static_cast<size_t>(RoundUpToBlock(end - begin))));
  if (was_read.ok() && !*was_read) return ValueBuffer();
  goes_around_.reset();
  context_->counters.Add(Counter::kReadSubmissions);
  context_->counters.Add(Counter::kDirectReadSubmissions);
  context_->counters.Add(Counter::kFileBytesRead, size);
  if (!was_read.ok()) return Explain(file, end, was_read.status());
  const std::span<const uint8_t> front =
      memory.subspan(static_cast<size_t>(place_->place_bytes - begin), static_cast<size_t>(front_bytes));
  QUARRY_TRY_ASSIGN(const bool is_raw, DecodeRawFront(front));
  if (!is_raw) return ValueBuffer();
  QUARRY_TRY(BeginWhole());
  uint8_t* const content = memory.data() + before_content;
  const auto content_size = static_cast<size_t>(locator_.content_size_bytes());
  uint32_t verified = 0;
  QUARRY_TRY(VerifyRaw({content, content_size}, content_size, &verified));
  QUARRY_TRY(EndWhole());
  std::copy(head_.prefix.begin(), head_.prefix.end(), content - head_.prefix.size());
  content[content_size] = 0;  // for who looks behind a string for its end
  return ValueBuffer(std::move(owner), {content - head_.prefix.size(), static_cast<size_t>(locator_.value_size_bytes)});
}

Status SegmentReader::ReadWhole(std::span<uint8_t> out) {
  QUARRY_TRY(BeginWhole());
  std::copy(head_.prefix.begin(), head_.prefix.end(), out.begin());
  const std::span<uint8_t> content = out.subspan(head_.prefix.size());
  bool done = false;
  if (uint64_t front_bytes = 0; LooksRaw(&front_bytes)) QUARRY_TRY(ReadRawWhole(front_bytes, content, &done));
  if (!done) QUARRY_TRY(ReadContent(0, content, true));
  return EndWhole();
}

Status SegmentReader::ReadRange(uint64_t offset_bytes, std::span<uint8_t> out) {
  const uint64_t prefix_size = locator_.prefix_size_bytes;
  if (offset_bytes < prefix_size) {
    QUARRY_TRY(CheckPrefix(head_).status());
    const std::span<const uint8_t> known = head_.prefix.subspan(static_cast<size_t>(offset_bytes));
    const size_t size = std::min(known.size(), out.size());
    std::copy_n(known.begin(), size, out.begin());
    out = out.subspan(size);
    offset_bytes += size;
  }
  if (out.empty()) return Status::Ok();
  QUARRY_TRY(Prepare());
  return ReadContent(offset_bytes - prefix_size, out, out.size() == locator_.content_size_bytes());
}

Status SegmentReader::Verify(const Canceller* canceller) {
  QUARRY_TRY(BeginWhole());
  QUARRY_TRY(ReadIndex(std::min(place_->size_bytes, batch_bytes_)));
  PooledBuffer buffer = context_->read_buffers.Take(
      static_cast<size_t>(std::min<uint64_t>(index_.header.part_size_bytes, locator_.content_size_bytes())));
  QUARRY_TRY(ReadParts({0, index_.header.part_count}, [&](uint32_t part, std::span<const uint8_t> stored) {
    if (canceller != nullptr && canceller->IsCancelled()) return Status::Cancelled("the rest of a value");
    return DeliverPart(part, stored, static_cast<uint64_t>(part) * index_.header.part_size_bytes,
                       {buffer.data(), PartSizeOf(index_.header, part)});
  }));
  return EndWhole();
}

Result<StoredShape> SegmentReader::ReadShape() {
  QUARRY_TRY(Prepare());
  alignas(8) std::array<uint8_t, kExtentHeaderSizeBytes> front;
  const ReadRequest request{locator_.offset_bytes, front};
  QUARRY_TRY(Submit({&request, 1}));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeHeader(front));
  return StoredShape{header.part_count, ExtentSpaceBytes(header)};
}

Result<bool> SegmentReader::DecodeRawFront(std::span<const uint8_t> front) {
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeHeader(front));
  if (header.encrypted) segment_->NoteEncrypted();
  if (header.encrypted || HeaderAndIndexSizeBytes(header) != front.size()) return false;
  QUARRY_TRY_ASSIGN(index_, DecodeExtentIndex(front, locator_, salt_));
  return header.stored_total_bytes == header.content_size_bytes;
}

Status SegmentReader::ReadRawWhole(uint64_t front_bytes, std::span<uint8_t> out, bool* was_raw) {
  // Straight to the caller's buffer: the parts stand there as they are stored.
  alignas(8) std::array<uint8_t, kSmallFrontBytes> front;
  uint64_t filled = std::min<uint64_t>(out.size(), std::max(batch_bytes_, front_bytes + 1) - front_bytes);
  const std::array<ReadRequest, 2> first = {
      ReadRequest{locator_.offset_bytes, {front.data(), static_cast<size_t>(front_bytes)}},
      ReadRequest{locator_.offset_bytes + front_bytes, out.first(static_cast<size_t>(filled))}};
  QUARRY_TRY(Submit(first));
  QUARRY_TRY_ASSIGN(*was_raw, DecodeRawFront({front.data(), static_cast<size_t>(front_bytes)}));
  if (!*was_raw) return Status::Ok();
  uint32_t verified = 0;
  while (true) {
    QUARRY_TRY(VerifyRaw(out, filled, &verified));
    if (filled == out.size()) break;
    const uint64_t size = std::min<uint64_t>(out.size() - filled, batch_bytes_);
    const ReadRequest next{locator_.offset_bytes + front_bytes + filled,
                           out.subspan(static_cast<size_t>(filled), static_cast<size_t>(size))};
    QUARRY_TRY(Submit({&next, 1}));
    filled += size;
  }
  return Status::Ok();
}

Status SegmentReader::VerifyRaw(std::span<const uint8_t> out, uint64_t filled_bytes, uint32_t* verified) {
  for (; *verified < index_.parts.size(); ++*verified) {
    const uint64_t begin = static_cast<uint64_t>(*verified) * index_.header.part_size_bytes;
    const uint64_t size = index_.parts[*verified].stored_size_bytes;
    if (begin + size > filled_bytes) break;
    QUARRY_TRY(VerifyPart(index_, *verified, out.subspan(static_cast<size_t>(begin), static_cast<size_t>(size))));
    checksum_->AddPart(index_.parts[*verified].checksum);
  }
  return Status::Ok();
}

Status SegmentReader::ReadIndex(uint64_t first_read_bytes) {
  buffer_ = context_->read_buffers.Take(static_cast<size_t>(first_read_bytes));
  buffer_end_bytes_ = first_read_bytes;
  const ReadRequest first{locator_.offset_bytes, {buffer_.data(), static_cast<size_t>(first_read_bytes)}};
  QUARRY_TRY(Submit({&first, 1}));
  QUARRY_TRY_ASSIGN(const ExtentHeader header, DecodeHeader(first.out));
  if (header.encrypted) segment_->NoteEncrypted();
  const uint64_t front_bytes = HeaderAndIndexSizeBytes(header);
  if (front_bytes > first_read_bytes) {
    PooledBuffer longer = context_->read_buffers.Take(static_cast<size_t>(front_bytes));
    std::memcpy(longer.data(), buffer_.data(), static_cast<size_t>(first_read_bytes));
    const ReadRequest rest{locator_.offset_bytes + first_read_bytes,
                           {longer.data() + first_read_bytes, static_cast<size_t>(front_bytes - first_read_bytes)}};
    QUARRY_TRY(Submit({&rest, 1}));
    buffer_ = std::move(longer);
    buffer_end_bytes_ = front_bytes;
  }
  QUARRY_TRY_ASSIGN(index_, DecodeExtentIndex({buffer_.data(), static_cast<size_t>(front_bytes)}, locator_, salt_));
  return Status::Ok();
}

Status SegmentReader::OpenCipher() {
  const std::string where = "store " + std::to_string(locator_.store.value) + " segment " +
                            std::to_string(locator_.segment.value) + " offset " + std::to_string(locator_.offset_bytes);
  CipherProvider* const provider = context_->options.cipher_provider.get();
  if (provider == nullptr) {
    return Status::KeyUnavailable(where + ": encrypted, and nothing here can decrypt (no key management is at hand)");
  }
  Result<std::unique_ptr<Cipher>> opened = provider->Open(index_.cipher);
  if (!opened.ok()) return opened.status().WithContext(where);
  cipher_ = std::move(opened).value();
  return Status::Ok();
}

Result<std::span<const uint8_t>> SegmentReader::Decrypt(uint32_t part, std::span<const uint8_t> stored) {
  if (!index_.header.encrypted) return stored;
  if (cipher_ == nullptr) QUARRY_TRY(OpenCipher());
  if (plain_.size() < stored.size()) plain_ = context_->read_buffers.Take(stored.size());
  const std::span<uint8_t> plain(plain_.data(), stored.size());
  QUARRY_TRY(OpenPart(cipher_.get(), index_, part, stored, plain));
  context_->counters.Add(Counter::kPartsDecrypted);
  return std::span<const uint8_t>(plain).first(plain.size() - kPartCheckSizeBytes);
}

Status SegmentReader::DeliverPart(uint32_t part, std::span<const uint8_t> stored, uint64_t begin_bytes,
                                  std::span<uint8_t> out) {
  QUARRY_TRY(VerifyPart(index_, part, stored));
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> bytes, Decrypt(part, stored));
  const uint64_t part_begin = static_cast<uint64_t>(part) * index_.header.part_size_bytes;
  const uint64_t part_size = PartSizeOf(index_.header, part);
  const uint64_t from = std::max(begin_bytes, part_begin);
  const uint64_t to = std::min(begin_bytes + out.size(), part_begin + part_size);
  const std::span<uint8_t> target =
      out.subspan(static_cast<size_t>(from - begin_bytes), static_cast<size_t>(to - from));
  if (index_.parts[part].raw) {
    std::memcpy(target.data(), bytes.data() + (from - part_begin), target.size());
    if (checksum_) checksum_->AddPart(index_.header.encrypted ? Checksum64(bytes) : index_.parts[part].checksum);
    return Status::Ok();
  }
  bool fits = false;
  if (target.size() == part_size) {
    fits = DecompressPart(index_.header.codec, bytes, target);
    if (fits && checksum_) checksum_->AddPart(Checksum64(target));
  } else {
    PooledBuffer whole = context_->read_buffers.Take(static_cast<size_t>(part_size));
    fits = DecompressPart(index_.header.codec, bytes, {whole.data(), static_cast<size_t>(part_size)});
    if (fits) std::memcpy(target.data(), whole.data() + (from - part_begin), target.size());
  }
  return fits ? Status::Ok() : PartCorruption(index_, part, "does not decompress to its size");
}

Status SegmentReader::ReadContent(uint64_t offset_bytes, std::span<uint8_t> out, bool whole) {
  // A range wants the index first; a whole value wants as much behind it as a batch may ask for.
  const uint64_t first_read = whole ? batch_bytes_ : FirstReadSizeBytes(locator_, kSmallFrontBytes);
  QUARRY_TRY(ReadIndex(std::min(place_->size_bytes, first_read)));
  return ReadParts(
      PartsOfRange(index_.header, offset_bytes, out.size()),
      [&](uint32_t part, std::span<const uint8_t> stored) { return DeliverPart(part, stored, offset_bytes, out); });
}

template <typename Deliver>
Status SegmentReader::ReadParts(const PartRange& range, const Deliver& deliver) {
  const uint32_t end = range.first + range.count;
  for (uint32_t part = range.first; part < end; ++part) {
    const PartEntry& entry = index_.parts[part];
    const uint64_t begin_in_extent = entry.offset_in_extent_bytes;
    if (begin_in_extent < buffer_begin_bytes_ || begin_in_extent + entry.stored_size_bytes > buffer_end_bytes_) {
      uint64_t size = entry.stored_size_bytes;
      for (uint32_t next = part + 1; next < end && size + index_.parts[next].stored_size_bytes <= batch_bytes_;
           ++next) {
        size += index_.parts[next].stored_size_bytes;
      }
      if (buffer_.size() < size) buffer_ = context_->read_buffers.Take(static_cast<size_t>(size));
      buffer_begin_bytes_ = begin_in_extent;
      buffer_end_bytes_ = begin_in_extent + size;
      const ReadRequest batch{locator_.offset_bytes + begin_in_extent, {buffer_.data(), static_cast<size_t>(size)}};
      QUARRY_TRY(Submit({&batch, 1}));
    }
    QUARRY_TRY(deliver(part, std::span<const uint8_t>(buffer_.data() + (begin_in_extent - buffer_begin_bytes_),
                                                      entry.stored_size_bytes)));
  }
  return Status::Ok();
}

}  // namespace quarry
