// Verification and scrub in World: they must see every damage that a read sees, and nothing where nothing is.
#include <algorithm>

#include "simulation/world.h"
#include "store/installation_verify.h"

namespace quarry::simulation {
namespace {

class Collector : public VerifyObserver {
 public:
  void Found(const Finding& finding) override { findings.push_back(finding); }
  [[nodiscard]] bool Progress(const VerifyProgress& progress) override {
    (void)progress;
    return true;
  }
  std::vector<Finding> findings;
};

bool Overlaps(const Finding& finding, const Locator& locator) {
  return finding.store == locator.store && finding.segment == locator.segment &&
         finding.offset_bytes < locator.offset_bytes + locator.extent_size_bytes &&
         locator.offset_bytes < finding.offset_bytes + finding.size_bytes;
}

std::string Describe(const Finding& finding) {
  return std::string(FindingKindName(finding.kind)) + " " + finding.path + " offset " +
         std::to_string(finding.offset_bytes) + " size " + std::to_string(finding.size_bytes) + ": " + finding.what;
}

}  // namespace

// A table was asked for again after EmptyTrash had begun to unlink its store: what is missing is missing.
bool World::IsHalfUnlinked(const Finding& finding) {
  const auto store = stores_.find(finding.store.value);
  return store != stores_.end() && store->second.may_vanish && finding.segment.value != 0 &&
         !SegmentFiles(finding.store).contains(finding.segment.value);
}

void World::CheckFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.kind == FindingKind::kDoubtful || finding.kind == FindingKind::kLeftover) continue;
    if (finding.kind == FindingKind::kMissing && IsHalfUnlinked(finding)) continue;
    const bool is_planted = std::any_of(values_.begin(), values_.end(), [&finding](const Value& value) {
      return value.is_damaged && Overlaps(finding, value.locator);
    });
    Check(is_planted, kVerifyIsRight, "nothing was damaged, and verification says: " + Describe(finding));
  }
  for (const Value& value : values_) {
    if (!value.is_damaged || value.state != Value::State::kLive || value.may_be_gone) continue;
    std::vector<uint8_t> out(value.bytes.size());
    if (directory_->Read(value.head(), {}, out).code() != StatusCode::kCorruption) continue;
    const bool is_found = std::any_of(findings.begin(), findings.end(), [&value](const Finding& finding) {
      return finding.kind != FindingKind::kLeftover && Overlaps(finding, value.locator);
    });
    std::string seen;
    for (const Finding& finding : findings) {
      if (Overlaps(finding, value.locator)) seen += "; it says: " + Describe(finding);
    }
    Check(is_found, kVerifyIsRight,
          "store " + std::to_string(value.locator.store.value) + " segment " +
              std::to_string(value.locator.segment.value) + " offset " + std::to_string(value.locator.offset_bytes) +
              " is damaged, and verification did not see it" + seen);
    ++totals_->damages_verified;
  }
}

// As the files lie there, which a recovery has just gone over.
void World::VerifyFiles() {
  ++totals_->verifications;
  Collector collector;
  VerifyOptions options;
  options.home_path = options_.home_path;
  const Result<VerifyTotals> totals = VerifyInstallationFiles(disk_.memory(), options, &collector);
  Check(totals.ok(), kVerifyIsRight, totals.ok() ? "" : totals.status().ToString());
  // A file that could not be removed, or a record that could not be written, when calls fail.
  if (disk_.failures() == 0 && !disk_.power_is_off()) CheckFindings(collector.findings);
}

void World::Scrub() {
  const uint64_t failures_before = disk_.failures();
  Collector collector;
  ScrubPlace place;
  (void)ScrubStores(directory_.get(), &place, &collector);
  CheckDisk();
  if (disk_.failures() == failures_before && !disk_.power_is_off()) {
    // In a segment that failed, and in one whose data was not flushed, verification says so and is right.
    std::erase_if(collector.findings,
                  [this](const Finding& finding) { return disk_.HasFailed(finding.store, finding.segment); });
    std::vector<Finding> seen = std::move(collector.findings);
    for (const Value& value : values_) {
      // What stands in an active segment, in one that failed or in the trash is not looked at, or not to its end.
      if (!value.is_damaged) continue;
      Finding assumed;
      assumed.kind = FindingKind::kDoubtful;
      assumed.store = value.locator.store;
      assumed.segment = value.locator.segment;
      assumed.offset_bytes = value.locator.offset_bytes;
      assumed.size_bytes = value.locator.extent_size_bytes;
      seen.push_back(assumed);
    }
    CheckFindings(seen);
  }
  ++totals_->scrubs;
}

}  // namespace quarry::simulation
