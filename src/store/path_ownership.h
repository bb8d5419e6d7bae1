// PathOwnership: which data paths this home opened last, and the record (OPENED) that it leaves on those it may write
// to.
//
// A data directory can be copied, and with it the catalogue, which names data paths. The copy may read them; if it
// appended, collected or unlinked there, the source would lose values. What tells a home from its copies is its inode
// and the time of its birth. Where the file system keeps none, a number does that is renewed at each opening: it finds
// out a copy once the source was opened after it was made.
//
// Invariant: a path is written to only when its record, durably, is that of this home. A crash at any point leaves
// every path with a record that this home still takes for its own. Thread-safety: externally synchronised; used by Open
// alone.
#pragma once

#include <string>
#include <vector>

#include "format/path_marker.h"
#include "io/env.h"
#include "quarry/status.h"

namespace quarry {

class PathOwnership {
 public:
  PathOwnership(Env* env, std::string home) : env_(env), home_(std::move(home)) {}

  /// Who this home is. To be called first.
  [[nodiscard]] Status Identify();

  /// Ok: this home opened `directory` (of a data path) last, or nobody did; it is noted to be marked. kUnavailable: it
  /// was another, or nobody can tell.
  [[nodiscard]] Status Claim(const std::string& directory);
  /// Notes `directory` to be marked, whoever opened it last.
  void Adopt(const std::string& directory) { claimed_.push_back({directory, {}, false}); }

  struct Failure {
    std::string directory;
    Status status;
  };
  /// Marks, durably, what was claimed and adopted. Returns what could not be marked: it must not be written to.
  [[nodiscard]] std::vector<Failure> Mark();

 private:
  struct Claimed {
    std::string directory;
    OpenedRecord record;
    bool has_record = false;
  };

  [[nodiscard]] bool IsOurs(const OpenedRecord& record) const;
  /// Claimed paths get `record`; who has it keeps it. Those that fail leave claimed_ for `failures`.
  void Write(const OpenedRecord& record, std::vector<Failure>* failures);
  [[nodiscard]] std::vector<Failure> MarkWithNumber();
  /// The home gets a new number, durably. On error it has the one of before.
  [[nodiscard]] Status RenewNumber();

  Env* const env_;
  const std::string home_;
  DirectoryIdentity identity_;
  OpenedRecord of_home_;  ///< where there is no birth time
  std::vector<Claimed> claimed_;
};

}  // namespace quarry
