// Violation: a broken invariant, by its name (docs/internals/testing.md lists them) and with what was seen.
// Thread-safety: values.
#pragma once

#include <stdexcept>
#include <string>

namespace quarry::simulation {

inline constexpr const char* kDurableReadsBack = "durable-reads-back";
inline constexpr const char* kNeverOtherBytes = "never-other-bytes";
inline constexpr const char* kUnsyncedReads = "unsynced-reads";
inline constexpr const char* kFlushedBeforeCommit = "flushed-before-commit";
inline constexpr const char* kPreparedDecidedRight = "prepared-decided-right";
inline constexpr const char* kBlockWrittenOnce = "block-written-once";
inline constexpr const char* kNothingAfterFailure = "nothing-after-failure";
inline constexpr const char* kRecoveredNotAppended = "recovered-not-appended";
inline constexpr const char* kFlushedNotCut = "flushed-not-cut";
inline constexpr const char* kNoErrorWithoutCause = "no-error-without-cause";
inline constexpr const char* kOpensAgain = "opens-again";
inline constexpr const char* kStatsMatchFiles = "stats-match-files";
inline constexpr const char* kReopenTwiceSame = "reopen-twice-same";
inline constexpr const char* kBindingsKept = "bindings-kept";
inline constexpr const char* kStoreIdsRise = "store-ids-rise";
inline constexpr const char* kTrashRule = "trash-rule";
inline constexpr const char* kGcGivesBack = "gc-gives-back";
inline constexpr const char* kVerifyIsRight = "verify-is-right";
inline constexpr const char* kGcPacks = "gc-packs";
inline constexpr const char* kNoLeftovers = "no-leftovers";
inline constexpr const char* kRecordedBeforeUse = "recorded-before-use";
inline constexpr const char* kDamageTakesNothing = "damage-takes-nothing";
// With threads:
inline constexpr const char* kNobodyWaitsForEver = "nobody-waits-for-ever";
inline constexpr const char* kNobodyWaitsForOthers = "nobody-waits-for-others";
inline constexpr const char* kThreadsEnd = "threads-end";
inline constexpr const char* kCountersAgree = "counters-agree";
inline constexpr const char* kNoForgedExtent = "no-forged-extent";
inline constexpr const char* kPausedIsStill = "paused-is-still";
inline constexpr const char* kBackupHoldsAll = "backup-holds-all";
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
