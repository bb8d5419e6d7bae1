// The scrub: a thread that verifies every segment of every store over time, at a low rate, with reads that go around
// the page cache (include/quarry/verify.h does the reading and the judging).
//
// Invariants: nothing is written and no lock is held while it reads; it stands still while housekeeping is paused.
// Thread-safety: internally synchronised.
#pragma once

#include <vector>

#include "quarry/verify.h"

namespace quarry {

void StartScrub();
/// Joins. Before the stores are closed.
void StopScrub();

struct ScrubState {
  uint64_t bytes = 0;          ///< read since the server started
  uint64_t segments = 0;       ///< verified to their end
  uint64_t rounds = 0;         ///< over all of them
  uint64_t errors = 0;         ///< findings: damaged, missing, unreadable
  uint64_t doubtful = 0;       ///< findings that CHECK TABLE must tell about
  uint64_t last_seconds = 0;   ///< when the last round ended, since 1970, UTC; 0: never
  uint64_t round_seconds = 0;  ///< that the present or last round takes at its rate, as estimated when it began
  bool is_running = false;
};
ScrubState GetScrubState();

struct Damage {
  Finding finding;
  uint64_t found_seconds = 0;  ///< since 1970, UTC
};
/// What the last whole round found and this one has found so far, at most kDamagesMax.
inline constexpr size_t kDamagesMax = 1000;
std::vector<Damage> GetDamages();

}  // namespace quarry
