// GC: gives back the space of dead extents. Which extents are dead is said by the caller's marks and by nothing else.
//
//   1. BeginGcPass seals the segments of the given stores: what was appended before is a candidate, what comes later
//      is not.
//   2. The caller waits until every transaction that was open then has ended (prepared ones included), and calls Mark
//      for every locator that one view of the tables' rows shows.
//   3. Once nothing that was open at the moment of that view can still need what was not marked, and its deletion
//      cannot be undone any more (InnoDB's flushed LSN), the caller calls ReclaimSome until it says done.
//
// Promises (tests/simulation checks each):
//  - No byte of a marked extent, nor of one that was appended after BeginGcPass, is ever changed.
//  - A pass can be dropped, or cut off by a crash, between and inside any two steps; the next one gives back the rest.
//  - When a pass is done without an error, its segments occupy the blocks of their header (a rewritten one: header and
//    map, twice) and of marked extents, and those without a mark are unlinked. What could not be looked at is counted,
//    not guessed at.
//  - Extents smaller than a block share blocks, so holes alone bound nothing. A segment that holds too many blocks for
//    the bytes of its marked extents is rewritten under its own number (docs/internals/durability.md): locators stay as
//    they are.
//
// Thread-safety: a GcPass is externally synchronised; appends, commits and reads go on beside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "quarry/locator.h"
#include "quarry/status.h"
#include "quarry/store.h"
#include "quarry/types.h"

namespace quarry {

/// What a pass found and did so far. Sizes in bytes.
struct GcReport {
  uint64_t segments = 0;           ///< candidates
  uint64_t marks = 0;              ///< in candidates
  uint64_t marks_elsewhere = 0;    ///< in newer segments or other stores
  uint64_t segments_done = 0;      ///< looked at by ReclaimSome, whatever came of it
  uint64_t segments_unlinked = 0;  ///< held nothing marked
  uint64_t segments_skipped = 0;   ///< out of reach, or no holes on that file system
  uint64_t segments_in_doubt = 0;  ///< a mark pointed at no possible place, or found no memory: kept whole
  uint64_t holes = 0;              ///< calls that punched
  uint64_t punched_bytes = 0;      ///< asked to be given back by holes
  uint64_t reclaimed_bytes = 0;    ///< blocks really given back, by holes, unlinked and rewritten files
  uint64_t segments_rewritten = 0;
  uint64_t rewritten_bytes = 0;     ///< of extents, copied to new files
  uint64_t rewrites_postponed = 0;  ///< segments worth rewriting, whose extents have room in memory in a later pass
  uint64_t rewrites_refused = 0;    ///< segments worth rewriting, but no room on disk or in memory, or no key
  uint64_t encrypted_extents = 0;   ///< of those copied: encrypted, or encrypted anew
  uint64_t memory_bytes = 0;        ///< of marks, maps (new ones, too) and extents: the most that it took so far
  uint64_t segments_damaged = 0;    ///< kept as they are: a marked extent does not verify, or can't be read
  std::string damage;               ///< the first of those: what, and where
};

/// How a pass is done.
struct GcOptions {
  /// A segment that, once its holes are punched, holds more than so many times the bytes of its marked extents is
  /// rewritten, if that gives back at least an eighth of it. The whole of the extents can be kept below this ratio,
  /// but for segments of a few blocks, extents of less than 200 bytes without neighbours (map and copy take 48 bytes
  /// for each), and what is still appended to. 0: nothing is rewritten. Below 1.01 gains nothing.
  double rewrite_above = 1.25;
  /// Memory of a pass: a bit for each block, 32 bytes for each run of extents in a rewritten segment, and, for
  /// rewriting, 12 for each extent. It goes to those segments first of which most can be given back. What does not fit
  /// is not rewritten, or not looked at, by this pass, and counted. The new map of the one segment that is being
  /// rewritten comes on top: 56 bytes for each run, of which there is one for each extent at most.
  uint64_t memory_max_bytes = 256ULL << 20;
};

/// What the values of a store are to be encrypted with, as InnoDB would its pages now.
struct GcEncryption {
  uint32_t key_id = 0;              ///< 0: what is plain may stay so, and what is encrypted stays as it is
  uint32_t oldest_key_version = 0;  ///< what an older version encrypted is encrypted anew; 0: no version is too old
};

struct GcStep {
  uint64_t bytes = 0;  ///< of dead space dealt with and of extents copied: what a rate limit counts
  bool done = false;
};

class GcPass {
 public:
  virtual ~GcPass() = default;

  /// The view whose rows will be marked has been opened: what is released from now on may be marked all the same, and
  /// counts as dead when the pass is done. Without this call that holds from the first Mark on.
  virtual void NoteView() = 0;

  /// The extent behind `locator` is needed. Not after the first ReclaimSome.
  virtual void Mark(const Locator& locator) = 0;

  /// From now on a segment of `store` that holds marked extents which are plain, or encrypted with another key or too
  /// old a version of it, is rewritten whatever that gives back, and these are encrypted. Before the first ReclaimSome.
  virtual void SetEncryption(StoreId store, const GcEncryption& encryption) = 0;

  /// Gives back, or copies, about `bytes_max` more, at least one block or part. Between two steps the caller may wait
  /// for as long as it likes. To be called only when the marks are complete; a caller whose scan failed drops the pass.
  /// Errors: kIoError, kNoSpace, kNotFound, kOutOfMemory: a segment cannot be changed. Nothing is lost, and the next
  /// call goes on with the next segment. kUnavailable: no descriptor is free; the next call tries the same segment
  /// again.
  [[nodiscard]] virtual Result<GcStep> ReclaimSome(uint64_t bytes_max) = 0;

  [[nodiscard]] virtual GcReport report() const = 0;
};

/// Begins a pass over `stores`, sealing what they append to. A store in the trash, or without a binding, or that damage
/// of the catalogue may concern, has no candidates. Error: kNotFound names a store that is not there. `directory` must
/// outlive the pass.
[[nodiscard]] Result<std::unique_ptr<GcPass>> BeginGcPass(StoreDirectory* directory, std::span<const StoreId> stores,
                                                          const GcOptions& options = {});

/// Holds the steps of a pass to a rate.
class GcRate {
 public:
  /// 0: no limit.
  explicit GcRate(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  /// After a step over `bytes` that ended at `now_micros`: how many microseconds to wait before the next.
  [[nodiscard]] uint64_t WaitMicros(uint64_t bytes, uint64_t now_micros) {
    if (bytes_per_second_ == 0) return 0;
    const double micros = static_cast<double>(bytes) * 1e6 / static_cast<double>(bytes_per_second_);
    next_micros_ = std::max(next_micros_, now_micros) + static_cast<uint64_t>(micros);
    return next_micros_ - now_micros;
  }

 private:
  const uint64_t bytes_per_second_;
  uint64_t next_micros_ = 0;
};

}  // namespace quarry
