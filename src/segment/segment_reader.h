// SegmentReader: reads one value, whole or a range: the prefix from its head, the rest out of a pinned segment.
//
// Invariants: out is filled with the bytes that were appended, or the read fails; every part that is touched is
// verified where it is given out, and decrypted where the extent says so; a whole value is compared with the checksum
// in its head; no more than one read batch (or one part,
// when that is larger) is asked for in one submission. Thread-safety: one per read; externally synchronised. The
// segment is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "context/store_context.h"
#include "format/extent.h"
#include "format/value_checksum.h"
#include "quarry/canceller.h"
#include "quarry/cipher.h"
#include "quarry/options.h"
#include "quarry/stats.h"
#include "quarry/value_buffer.h"
#include "segment/segment.h"

namespace quarry {

class SegmentReader {
 public:
  SegmentReader(StoreContext* context, SegmentLocator* files, Segment* segment, const Head& head,
                const ReadOptions& options);

  /// From now on memory that has what was written last is not asked.
  void AskFileAlone() { asks_memory_ = false; }
  /// The whole value where the device put it, without a copy: when it is stored as it is, is to be read around the page
  /// cache, fits a direct buffer, and one can be spared. Else an empty buffer: ask ReadWhole, of the same reader.
  [[nodiscard]] Result<ValueBuffer> ReadWholeInPlace();
  /// `out` is as long as the value.
  [[nodiscard]] Status ReadWhole(std::span<uint8_t> out);
  /// The range lies in the value.
  [[nodiscard]] Status ReadRange(uint64_t offset_bytes, std::span<uint8_t> out);
  /// Reads all of the value, a batch or a part at a time, and gives out nothing. Error: kCancelled.
  [[nodiscard]] Status Verify(const Canceller* canceller);
  /// From the header alone.
  [[nodiscard]] Result<StoredShape> ReadShape();
  /// Some of it had to be read from the file.
  [[nodiscard]] bool missed_recent() const { return missed_recent_; }
  /// Some of it came through the page cache.
  [[nodiscard]] bool used_page_cache() const { return used_page_cache_; }

 private:
  /// Checks the locator; finds out where the extent stands, and by what its header is told.
  [[nodiscard]] Status Prepare();
  /// The extent's header, at the front of `front`.
  [[nodiscard]] Result<ExtentHeader> DecodeHeader(std::span<const uint8_t> front) const;
  /// Checks the prefix; the checksums of the parts that follow, in order, make that of the value.
  [[nodiscard]] Status BeginWhole();
  /// All parts were read.
  [[nodiscard]] Status EndWhole();
  /// True when the sizes allow an extent whose parts are all raw, header and index being `front_bytes` long.
  [[nodiscard]] bool LooksRaw(uint64_t* front_bytes) const;
  /// Fills index_ from header and index. False: there are other parts than raw ones after all.
  [[nodiscard]] Result<bool> DecodeRawFront(std::span<const uint8_t> front);
  [[nodiscard]] Status ReadRawWhole(uint64_t front_bytes, std::span<uint8_t> out, bool* was_raw);
  /// Verifies, of the parts not yet verified, those that `filled_bytes` of `out` complete.
  [[nodiscard]] Status VerifyRaw(std::span<const uint8_t> out, uint64_t filled_bytes, uint32_t* verified);
  /// `out.size()` bytes of the extent's content; `whole`: all of them are wanted.
  [[nodiscard]] Status ReadContent(uint64_t offset_bytes, std::span<uint8_t> out, bool whole);
  /// Calls `deliver(part, stored)` for each of `range`, in order, once the index was read.
  template <typename Deliver>
  [[nodiscard]] Status ReadParts(const PartRange& range, const Deliver& deliver);
  [[nodiscard]] Status ReadIndex(uint64_t first_read_bytes);
  [[nodiscard]] Status OpenCipher();
  /// The part as it was before it was encrypted: `stored` itself, or in plain_.
  [[nodiscard]] Result<std::span<const uint8_t>> Decrypt(uint32_t part, std::span<const uint8_t> stored);
  /// Decrypts and decompresses (or copies) what [begin, begin + out.size()) of the content has of `part`.
  [[nodiscard]] Status DeliverPart(uint32_t part, std::span<const uint8_t> stored, uint64_t begin_bytes,
                                   std::span<uint8_t> out);
  /// Open until the reader goes.
  [[nodiscard]] Result<ReadableFile*> OpenFile();
  /// Why a read of the file up to `end_bytes` failed: an extent that the file is too short for is damage.
  [[nodiscard]] Status Explain(ReadableFile* file, uint64_t end_bytes, Status failure) const;
  /// `blocks` of the file from `begin_bytes` on, around the page cache; what lies before `until_bytes` must be there.
  /// False: this file has no such reads, and nothing was read.
  [[nodiscard]] Result<bool> ReadBlocks(ReadableFile* file, uint64_t begin_bytes, uint64_t until_bytes,
                                        std::span<uint8_t> blocks) const;
  /// One submission: all of `requests`, at most two, which lie back to back in the extent.
  [[nodiscard]] Status Submit(std::span<const ReadRequest> requests);
  /// The same, `requests` standing where they do in the file.
  [[nodiscard]] Status ReadFile(ReadableFile* file, std::span<const ReadRequest> requests);
  /// The way for these bytes of the file, chosen once for each read of it, and told to report_.
  [[nodiscard]] bool GoesAroundPageCache(uint64_t begin_bytes, uint64_t size_bytes);
  [[nodiscard]] bool ChooseWay(uint64_t begin_bytes, uint64_t size_bytes, bool* is_first);
  /// False: this file has no such reads, and nothing was read.
  [[nodiscard]] Result<bool> ReadAroundPageCache(ReadableFile* file, std::span<const ReadRequest> requests);
  [[nodiscard]] Status Corruption(const std::string& what) const;

  StoreContext* const context_;
  SegmentLocator* const files_;
  Segment* const segment_;
  const Head head_;
  const Locator& locator_ = head_.locator;
  const uint64_t batch_bytes_;
  const PageCacheUse page_cache_use_;
  ReadReport* const report_;
  std::optional<bool> goes_around_;  ///< the next submission, when that is chosen already
  bool asks_memory_ = true;
  bool used_page_cache_ = false;
  bool missed_recent_ = false;
  std::optional<SegmentMap::Found> place_;  ///< of the extent in the file, once prepared
  SegmentSalt salt_{};
  Status header_failure_;  ///< the segment's header could not be read: whether it was rewritten is not known
  ReadPin file_;
  std::optional<ValueChecksum> checksum_;  ///< of a whole value, so far

  ExtentIndex index_;
  std::unique_ptr<Cipher> cipher_;   ///< of an encrypted extent, once the index was read
  PooledBuffer plain_;               ///< one part, decrypted
  PooledBuffer buffer_;              ///< stored bytes of the extent ...
  uint64_t buffer_begin_bytes_ = 0;  ///< ... from here ...
  uint64_t buffer_end_bytes_ = 0;    ///< ... to here
};

}  // namespace quarry
