// ExtentWriter: turns one value, but for the prefix that its head holds, into one extent of a lane.
//
// Two ways (docs/internals/architecture.md, 'Append'): staged into the lane's open chunk, or private, a write batch at
// a time. A value that is to be encrypted goes the way of those that are compressed: its parts are made in a buffer.
// Invariants: a raw value is copied once, into the buffer that is written; its checksums are taken part by part while
// the part is in the cache; whatever fails, the range that was reserved is finished;
// of a value that is to be encrypted no plain byte gets into memory that is written.
// Thread-safety: one per append; externally synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "append/extent_stream.h"
#include "append/lane.h"
#include "codec/codec.h"
#include "context/store_context.h"
#include "format/extent.h"
#include "format/value_checksum.h"
#include "quarry/cipher.h"
#include "quarry/options.h"

namespace quarry {

/// What an append leaves behind.
struct AppendedExtent {
  Locator locator;
  uint64_t flush_ticket = 0;
};

class ExtentWriter {
 public:
  /// `options` are within their limits.
  ExtentWriter(StoreContext* context, Lane* lane, StoreId store, const AppendOptions& options,
               const Canceller* canceller);
  /// Gives back what was reserved when there was no memory to fill it.
  ~ExtentWriter();
  ExtentWriter(const ExtentWriter&) = delete;
  ExtentWriter& operator=(const ExtentWriter&) = delete;

  /// All of the value: options.prefix_size_bytes of it are not written.
  [[nodiscard]] Result<AppendedExtent> Append(std::span<const uint8_t> value);

 private:
  /// Draws key version and salt when the value is to be encrypted.
  [[nodiscard]] Status OpenCipher();
  [[nodiscard]] Result<AppendedExtent> AppendContent(std::span<const uint8_t> content);
  [[nodiscard]] Result<AppendedExtent> StageRaw(std::span<const uint8_t> content);
  [[nodiscard]] Result<AppendedExtent> StreamRaw(std::span<const uint8_t> content);
  [[nodiscard]] Result<AppendedExtent> AppendCompressed(std::span<const uint8_t> content);
  [[nodiscard]] Result<AppendedExtent> StageGathered(std::span<const uint8_t> gathered);
  [[nodiscard]] Result<AppendedExtent> WriteGathered(ExtentStream* stream);
  [[nodiscard]] Result<AppendedExtent> StreamCompressed(std::span<const uint8_t> content, ExtentStream* stream);

  [[nodiscard]] std::span<const uint8_t> PartOf(std::span<const uint8_t> content, uint32_t part) const;
  /// Compresses the next part into the stream, or stores it raw there when that does not pay; encrypts it, if asked to.
  [[nodiscard]] Status StorePart(std::span<const uint8_t> part, ExtentStream* stream);
  [[nodiscard]] CompressedPart MakePart(std::span<const uint8_t> part, std::span<uint8_t> out);
  /// `part` is stored as `stored`.
  void NotePart(std::span<const uint8_t> part, std::span<const uint8_t> stored, bool raw);
  /// Encodes header and index to `front`. The extent's locator is in the result.
  [[nodiscard]] AppendedExtent Encode(Segment& segment, uint64_t offset_bytes, std::span<uint8_t> front);
  [[nodiscard]] Result<AppendedExtent> FinishPrivate(AppendedExtent extent, const Status& written);
  [[nodiscard]] BufferPool* write_buffers() const {
    return &context_->paths[lane_->path_number()].staging->write_buffers;
  }
  [[nodiscard]] bool KeepRecent(uint64_t extent_size_bytes) const {
    return context_->recent.Worthwhile(extent_size_bytes);
  }

  StoreContext* const context_;
  Lane* const lane_;
  const AppendOptions options_;
  const Canceller* const canceller_;
  const uint64_t batch_bytes_;       ///< of one write call; a multiple of a block
  const uint64_t staged_max_bytes_;  ///< a larger extent is private

  ExtentHeader header_;
  uint32_t prefix_tag_ = 0;
  ValueChecksum checksum_{0, 0};  ///< of the value, so far
  CipherParameters cipher_parameters_;
  std::unique_ptr<Cipher> cipher_;  ///< nullptr: plain
  PooledBuffer plain_;              ///< one part before it is encrypted
  PrivateRange range_;              ///< reserved and not finished; without a file: none
  uint64_t front_bytes_ = 0;        ///< header and index
  uint64_t extent_max_bytes_ = 0;   ///< with every part raw
  std::vector<PartEntry>& parts_;   ///< the thread's own, so that a small append allocates nothing
};

}  // namespace quarry
