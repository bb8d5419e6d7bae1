// RebuildCatalogue: makes a new catalogue from what lies in the directories, after the old one was damaged or lost.
//
// Promises:
//  - Nothing is changed but the catalogue; its old files stay beside it, under another name.
//  - Every record of the old one that verifies, and that nothing lost may concern, is kept as it is.
//  - Of every other store all segments are found again, and no binding: its values are read, and nothing of it is given
//    back until a scan of heads has bound it.
//  - No id and no number of what is found, or was ever named, is given out again.
// Thread-safety: a function of the files, which nobody else has open: it holds the home's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quarry/status.h"

namespace quarry {

struct RebuildOptions {
  std::string home_path;  ///< <datadir>/kHomeName
  /// Data paths that the old catalogue does not tell of any more, or that are mounted elsewhere.
  std::vector<std::string> data_paths;
  bool dry_run = false;  ///< only tells
};

struct RebuildReport {
  bool is_needed = false;  ///< else nothing is done: the catalogue has lost nothing
  uint64_t stores = 0;
  uint64_t segments = 0;
  uint64_t unbound_stores = 0;     ///< of these stores, for something lost may concern them
  std::string written;             ///< the new catalogue's file; what it would be in a dry run
  std::vector<std::string> kept;   ///< what the old files are called now
  std::vector<std::string> notes;  ///< what was lost, and what could not be looked at: one line each
};

/// Errors: kUnavailable: a server has it open; kNotFound: there is no installation; kInvalidArgument: one of
/// `data_paths` is none of its; kNotSupported: another version wrote the catalogue; those of writing, after which the
/// old catalogue still counts.
[[nodiscard]] Result<RebuildReport> RebuildCatalogue(const RebuildOptions& options);

}  // namespace quarry
