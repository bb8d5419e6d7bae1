// VerifySegment: one pass over a segment that compares every header, index and part with its checksum.
//
// What does not verify is told apart by what can have caused it (docs/operate/errors.md says it to people):
//  - Of a torn or failed write a whole sector, at least, was never written; of a punched extent a whole block is gone.
//    Both read as zeros. So a header or part that does not verify, and that holds no sector of zeros, is damage.
//  - Zeros that the file system keeps no block for were punched by GC or never written: leftover.
//  - Bytes behind such a hole that end, within their block, where a sound extent begins: leftover. They are the end of
//    an extent whose beginning was given back, for only blocks without a needed byte are. A live one that has lost its
//    header looks nearly like that; its mark, the rest of its header or its part, which the index describes, tells.
//  - Everything else may be either. It is leftover when the store counted every extent that it ever appended here,
//    those that verify are exactly as many bytes, and no header that verifies says that it is a part. Else it is
//    doubtful: after a mark pass the dead are not counted, and one of them may be as long as a live one that is lost.
//  - Nothing is leftover where fewer bytes verify than were counted, or where a scan did the counting.
// A damaged segment header hides nothing while the catalogue has the salt: extents are looked for at their own offsets,
// and those of a rewritten segment where the copy of its map says.
// What stands inside bytes that belong to no extent, or inside an extent that does not verify, may be a value that
// looks like extents: that is never called damaged, and hides nothing behind it.
// Nobody who forges a file, with its salt, makes the pass longer than the file: what a map leaves out is passed over,
// and extents that take more bytes than there are end it.
// Thread-safety: a pure function of the file, which may be appended to and punched meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/segment_header.h"
#include "io/env.h"
#include "quarry/status.h"
#include "quarry/types.h"
#include "quarry/verify.h"
#include "segment/segment.h"

namespace quarry {

/// What a segment is expected to be.
struct ExpectedSegment {
  StoreId store;
  SegmentNumber segment;
  std::optional<InstallationId> installation;  ///< none: not known
  SegmentSalt salt{};                          ///< as the catalogue has it; zeros: it has none
  uint64_t end_bytes = UINT64_MAX;             ///< not looked at from here on; the file may end before
  /// Bytes that extents take, as the store counted them in it, those released included. None: not known.
  std::optional<uint64_t> counted_bytes;
  CountedExtents counted = CountedExtents::kAll;
  bool gc_may_run = false;  ///< holes may come between the counting and the reading
};

struct VerifiedSegment {
  struct Piece {
    FindingKind kind = FindingKind::kDamaged;
    uint64_t offset_bytes = 0;
    uint64_t size_bytes = 0;
    std::string what;
    bool is_part = false;  ///< of an extent whose header and index verify, and within the file
  };
  uint64_t extents = 0;  ///< sound header and index
  uint64_t parts = 0;    ///< that verify
  uint64_t read_bytes = 0;
  bool stopped = false;
  bool is_rewritten = false;  ///< offsets are those of the extents, not of the file
  bool is_to_mend = false;    ///< a piece is of header, map or their copies, the rest of which tells where extents are
  bool is_short = false;      ///< the last piece says that fewer bytes are here than were counted
  std::vector<Piece> pieces;  ///< those of header, map and their copies; then the others by offset, at most kPiecesMax
};

/// More pieces than this are counted in a last one.
inline constexpr size_t kPiecesMax = 1000;

/// Called with the bytes of each read. False: stop.
using VerifyPace = std::function<bool(uint64_t bytes)>;

/// Errors: kIoError, when the file cannot be asked at all; what cannot be read of it is a piece. kCorruption: forged.
[[nodiscard]] Result<VerifiedSegment> VerifySegment(ReadableFile* file, const ExpectedSegment& expected,
                                                    const VerifyPace& pace);

}  // namespace quarry
