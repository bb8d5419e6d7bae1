// Verification: reads files and compares them with their checksums and with each other. One code for quarry-verify
// (whole installations, no server) and the scrub of a running server (segments, step by step); both rest on the readers
// of src/format, as every SELECT and CHECK TABLE does.
//
// Promises:
//  - Nothing is changed. Reads go around the page cache where the file system lets them: it is the device that is
//    verified, and a server's cache is left alone.
//  - Memory is bounded: one window, the index of one extent, one part.
//  - A finding says in which file, store, table, segment, at which offset and for how many bytes.
//
// What the files alone cannot tell is whether a row needs an extent. Crashes, failed writes and GC leave extents that
// do not verify, with blocks or sectors of zeros in them or before them, which no row needs. What could be either is
// kDoubtful, unless it is no part of a known extent, and the catalogue counts every extent that was ever in the
// segment, and as much is there and sound: then it is kLeftover. CHECK TABLE, which starts from the rows, tells about
// kDoubtful, and names rows.
//
// Thread-safety: the functions may run beside anything that the store does; an observer is called on their thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "quarry/status.h"
#include "quarry/types.h"

namespace quarry {

class StoreDirectory;

enum class FindingKind : uint8_t {
  kDamaged,     ///< bytes that were written are not those that were written
  kMissing,     ///< a file that is recorded is not there, or is shorter than recorded
  kUnreadable,  ///< the operating system refused, or the data path is not mounted: nobody knows
  kDoubtful,    ///< what a crash, a failed write or GC leaves, or damage
  kForeign,     ///< a file or directory that is none of Quarry's
  kLeftover,    ///< explained, in nobody's way, and given back by GC or the next start
};
inline constexpr size_t kFindingKinds = static_cast<size_t>(FindingKind::kLeftover) + 1;
/// "damaged", "missing", "unreadable", "doubtful", "foreign", "leftover".
[[nodiscard]] const char* FindingKindName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kDamaged;
  std::string path;  ///< of the file or directory
  StoreId store;     ///< {0}: belongs to no store
  TableId table;     ///< that the store is bound to; {0}: not known
  std::string table_name;
  SegmentNumber segment;  ///< {0}: not in a segment
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  ///< that are concerned; 0: not a matter of bytes
  std::string what;         ///< one line, without the place
};

struct VerifyProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  ///< 0: not known
};

class VerifyObserver {
 public:
  virtual ~VerifyObserver() = default;
  virtual void Found(const Finding& finding) = 0;
  /// Called after each read (a MiB or so). May wait, which is how a rate is held. False: stop.
  [[nodiscard]] virtual bool Progress(const VerifyProgress& progress) = 0;
};

/// What was looked at.
struct VerifyTotals {
  uint64_t stores = 0;
  uint64_t segments = 0;
  uint64_t extents = 0;  ///< with a sound header and index
  uint64_t parts = 0;    ///< whose checksum holds
  uint64_t bytes = 0;    ///< read
  uint64_t other_files = 0;
  std::array<uint64_t, kFindingKinds> findings{};  ///< by kind
  bool stopped = false;                            ///< the observer wanted it, or memory ran out
  bool is_out_of_memory = false;                   ///< the latter; the segment that was being read is not counted
  [[nodiscard]] uint64_t Count(FindingKind kind) const { return findings[static_cast<size_t>(kind)]; }
};

struct VerifyOptions {
  std::string home_path;  ///< <datadir>/kHomeName
  /// Data paths that are mounted elsewhere than the catalogue says. Each tells its number by its marker.
  std::vector<std::string> data_paths;
};

/// Everything of an installation that no server runs on: catalogue, markers, segments, the trash, and what
/// lies between. Errors: kUnavailable: a server runs on it; kNotFound, kInvalidArgument: there is no installation, or a
/// data path is none. What is wrong with the files is a finding, not an error.
[[nodiscard]] Result<VerifyTotals> VerifyInstallation(const VerifyOptions& options, VerifyObserver* observer);

/// Where a scrub is: segments are visited by store, then by number.
struct ScrubPlace {
  StoreId store;
  SegmentNumber segment;  ///< the next one to be verified, or the first above it
};

/// Verifies the segments of a running directory from `place` on, which it moves forward after each segment; to the last
/// one, or until the observer stops it or memory runs out: then `place` is the segment that was being read, and true is
/// `stopped`. Of a segment that is appended to, what is complete, if nothing in it waits for a flush just then. No lock
/// is held while anything is read; a segment that GC or EmptyTrash unlinks meanwhile is passed over. Stores in the
/// trash are left out.
[[nodiscard]] VerifyTotals ScrubStores(StoreDirectory* directory, ScrubPlace* place, VerifyObserver* observer);

/// Where the last life of the process noted that its scrub was; the beginning when it did not.
[[nodiscard]] ScrubPlace LastScrubPlace(StoreDirectory* directory);
/// One record and one flush of the catalogue: seldom, for an idle server should write nothing.
[[nodiscard]] Status NoteScrubPlace(StoreDirectory* directory, const ScrubPlace& place);

}  // namespace quarry
