// Findings: what they are called, and those of one segment as a verification tells them.
#include "store/installation_verify.h"

namespace quarry {

const char* FindingKindName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDamaged:
      return "damaged";
    case FindingKind::kMissing:
      return "missing";
    case FindingKind::kUnreadable:
      return "unreadable";
    case FindingKind::kDoubtful:
      return "doubtful";
    case FindingKind::kForeign:
      return "foreign";
    case FindingKind::kLeftover:
      return "leftover";
  }
  return "unknown";
}

void AddSegmentFindings(const Finding& place, const VerifiedSegment& verified, VerifyTotals* totals,
                        VerifyObserver* observer) {
  totals->extents += verified.extents;
  totals->parts += verified.parts;
  totals->bytes += verified.read_bytes;
  totals->stopped = totals->stopped || verified.stopped;
  if (verified.stopped) return;  // it will be looked at again, whole
  for (const VerifiedSegment::Piece& piece : verified.pieces) {
    Finding finding = place;
    finding.kind = piece.kind;
    finding.offset_bytes = piece.offset_bytes;
    finding.size_bytes = piece.size_bytes;
    finding.what = piece.what;
    ++totals->findings[static_cast<size_t>(piece.kind)];
    observer->Found(finding);
  }
}

}  // namespace quarry
