#include "segment/rewritten_view.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "segment/segment_layout.h"

namespace quarry {
namespace {

constexpr uint64_t kWindowBytes = 1ULL << 20;

}  // namespace

RewrittenView::RewrittenView(ReadableFile* file, uint64_t file_size_bytes, const SegmentHeader& header,
                             std::shared_ptr<const SegmentMap> map, Damage damage)
    : file_(file),
      header_(header),
      map_(std::move(map)),
      damage_(std::move(damage)),
      window_(file, file_size_bytes, kWindowBytes) {
  EncodeSegmentHeader(header_, header_block_);
  const SegmentRun& last = map_->runs().back();
  size_bytes_ = last.original_bytes + last.size_bytes;
}

Result<std::unique_ptr<RewrittenView>> RewrittenView::Open(ReadableFile* file, uint64_t file_size_bytes, StoreId store,
                                                           SegmentNumber segment, const SegmentSalt& salt) {
  Damage damage;
  // The caller reads the header too, and says what is wrong with it.
  const Result<SegmentHeader> header = ReadHeaderOrCopy(file, store, segment, salt, &damage.header);
  if (!header.ok() || !header->is_rewritten()) return std::unique_ptr<RewrittenView>();
  QUARRY_TRY_ASSIGN(std::shared_ptr<const SegmentMap> map, ReadSegmentMap(file, *header, &damage.map));
  damage.copy = CheckCopy(file, *header);
  return std::unique_ptr<RewrittenView>(
      new RewrittenView(file, file_size_bytes, *header, std::move(map), std::move(damage)));
}

size_t RewrittenView::RunFrom(uint64_t offset_bytes) const {
  const std::span<const SegmentRun> runs = map_->runs();
  const auto behind =
      std::upper_bound(runs.begin(), runs.end(), offset_bytes,
                       [](uint64_t offset, const SegmentRun& run) { return offset < run.original_bytes; });
  return static_cast<size_t>(behind - runs.begin()) - (behind == runs.begin() ? 0 : 1);
}

uint64_t RewrittenView::NextKept(uint64_t offset_bytes) const {
  const std::span<const SegmentRun> runs = map_->runs();
  for (size_t run = RunFrom(offset_bytes); run < runs.size(); ++run) {
    const bool is_before = runs[run].original_bytes + runs[run].size_bytes <= offset_bytes;
    if (!is_before && !runs[run].is_reencoded) return std::max(offset_bytes, runs[run].original_bytes);
  }
  return size_bytes_;
}

std::vector<RewrittenView::Piece> RewrittenView::PiecesOf(uint64_t begin_bytes, uint64_t end_bytes) const {
  std::vector<Piece> pieces;
  const std::span<const SegmentRun> runs = map_->runs();
  for (size_t run = RunFrom(begin_bytes); run < runs.size() && runs[run].original_bytes < end_bytes; ++run) {
    if (runs[run].is_reencoded) continue;
    const uint64_t from = std::max(begin_bytes, runs[run].original_bytes);
    const uint64_t to = std::min(end_bytes, runs[run].original_bytes + runs[run].size_bytes);
    if (from < to) pieces.push_back({from, runs[run].place_bytes + (from - runs[run].original_bytes), to - from});
  }
  return pieces;
}

Result<size_t> RewrittenView::ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) {
  out =
      out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size_bytes_ - std::min(size_bytes_, offset_bytes))));
  std::fill(out.begin(), out.end(), uint8_t{0});
  if (offset_bytes < header_block_.size()) {
    const size_t size = std::min<size_t>(out.size(), header_block_.size() - static_cast<size_t>(offset_bytes));
    std::copy_n(header_block_.begin() + static_cast<ptrdiff_t>(offset_bytes), size, out.begin());
  }
  for (const Piece& piece : PiecesOf(offset_bytes, offset_bytes + out.size())) {
    for (uint64_t done = 0; done < piece.size_bytes;) {
      const uint64_t size = std::min(piece.size_bytes - done, kWindowBytes);
      QUARRY_TRY_ASSIGN(const std::span<const uint8_t> bytes, window_.At(piece.place_bytes + done, size));
      if (bytes.empty()) return Status::FromErrno(EIO, "short read", "a rewritten segment");
      std::copy(bytes.begin(), bytes.end(),
                out.begin() + static_cast<ptrdiff_t>(piece.offset_bytes + done - offset_bytes));
      done += bytes.size();
    }
  }
  return out.size();
}

Status RewrittenView::ReadBatch(std::span<const ReadRequest> requests) {
  for (const ReadRequest& request : requests) {
    QUARRY_TRY_ASSIGN(const size_t read, ReadAt(request.offset_bytes, request.out));
    if (read < request.out.size()) return Status::FromErrno(EIO, "short read", "a rewritten segment");
  }
  return Status::Ok();
}

}  // namespace quarry
