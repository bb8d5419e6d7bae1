// Violation: a broken invariant, by its name and with what was seen. Each name says what holds;
// docs/internals/testing.md says what happens to the stores meanwhile, and docs/internals/durability.md names the
// promises that they guard. Thread-safety: values.
#pragma once

#include <stdexcept>
#include <string>

namespace quarry::simulation {

/// Committed values read back exactly after any crash, until they are given back by right (a pass without their mark,
/// or EmptyTrash).
inline constexpr const char* kDurableReadsBack = "durable-reads-back";
/// A read gives the appended bytes or an error.
inline constexpr const char* kNeverOtherBytes = "never-other-bytes";
/// Uncommitted values read back in the same life, unless their segment failed.
inline constexpr const char* kUnsyncedReads = "unsynced-reads";
/// When a commit or SyncAll returns ok, every block of its extents was flushed after it was last written.
inline constexpr const char* kFlushedBeforeCommit = "flushed-before-commit";
/// After a crash HoldsDurably calls every acknowledged commit whole. What it calls whole is flushed and reads back from
/// then on.
inline constexpr const char* kPreparedDecidedRight = "prepared-decided-right";
/// A block that holds data and was flushed is never written again.
inline constexpr const char* kBlockWrittenOnce = "block-written-once";
/// After a failed flush, or a failed write other than for want of space, the segment gets no write and no flush.
inline constexpr const char* kNothingAfterFailure = "nothing-after-failure";
/// No segment of an earlier life is written.
inline constexpr const char* kRecoveredNotAppended = "recovered-not-appended";
/// A block that holds data and was flushed is neither cut off by a truncation nor punched outside GC.
inline constexpr const char* kFlushedNotCut = "flushed-not-cut";
/// An operation fails only when a call of its own failed, or (a commit) its segment did before.
inline constexpr const char* kNoErrorWithoutCause = "no-error-without-cause";
/// Open succeeds after any crash unless a call fails in it; an unmounted data path is kUnavailable and comes back.
inline constexpr const char* kOpensAgain = "opens-again";
/// Segments and real bytes are those of the files.
inline constexpr const char* kStatsMatchFiles = "stats-match-files";
/// Opening once more changes no figure.
inline constexpr const char* kReopenTwiceSame = "reopen-twice-same";
/// A store has the table and state of the last successful change; a change that was cut off took effect or did not.
inline constexpr const char* kBindingsKept = "bindings-kept";
/// No id is given out twice.
inline constexpr const char* kStoreIdsRise = "store-ids-rise";
/// Exactly the discarded stores whose LSN is flushed are unlinked.
inline constexpr const char* kTrashRule = "trash-rule";
/// After an undisturbed pass its segments occupy header, map and the blocks of marked extents; those without a mark are
/// gone.
inline constexpr const char* kGcGivesBack = "gc-gives-back";
/// Verification and scrub see each flipped bit that a read sees, and call nothing else damaged or missing.
inline constexpr const char* kVerifyIsRight = "verify-is-right";
/// After an undisturbed pass no segment is left that was worth rewriting.
inline constexpr const char* kGcPacks = "gc-packs";
/// After a start no file of a rewriting is left that was cut off.
inline constexpr const char* kNoLeftovers = "no-leftovers";
/// When a commit returns ok, the catalogue names the segments of its extents, durably.
inline constexpr const char* kRecordedBeforeUse = "recorded-before-use";
/// A flipped bit of the catalogue is seen and reported, and every committed value outside dropped stores reads back.
inline constexpr const char* kDamageTakesNothing = "damage-takes-nothing";
// With threads:
/// Some thread can always go on, now or when its time comes, and every history ends.
inline constexpr const char* kNobodyWaitsForEver = "nobody-waits-for-ever";
/// An append, a commit or a table's first append takes less than five simulated seconds, whatever is paused, unlinked
/// or slow on another path.
inline constexpr const char* kNobodyWaitsForOthers = "nobody-waits-for-others";
/// The store's threads end before its directory does.
inline constexpr const char* kThreadsEnd = "threads-end";
/// The counters of a segment are what was appended there, or it is marked as uncounted.
inline constexpr const char* kCountersAgree = "counters-agree";
/// A scan takes only appended extents for extents, and no bytes inside a value.
inline constexpr const char* kNoForgedExtent = "no-forged-extent";
/// While maintenance is paused its thread changes nothing on disk.
inline constexpr const char* kPausedIsStill = "paused-is-still";
/// The snapshot of a backup names the segment of every committed value.
inline constexpr const char* kBackupHoldsAll = "backup-holds-all";
/// A seed makes the same calls each time.
inline constexpr const char* kSameSeedSameRun = "same-seed-same-run";

class Violation : public std::runtime_error {
 public:
  Violation(const char* invariant, const std::string& detail)
      : std::runtime_error(std::string(invariant) + ": " + detail), invariant_(invariant) {}
  [[nodiscard]] const char* invariant() const { return invariant_; }

 private:
  const char* invariant_;
};

}  // namespace quarry::simulation
