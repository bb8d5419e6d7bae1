// Transactions that a crash finds prepared in InnoDB, as the plugin decides them: by HoldsDurably, from the record that
// names their extents.
#include <algorithm>
#include <array>

#include "simulation/world.h"

namespace quarry::simulation {
namespace {

/// InnoDB's log is flushed at the latest by the commits that follow.
constexpr size_t kPreparedMax = 8;

}  // namespace

void World::NotePrepared(const std::vector<size_t>& values, bool is_acknowledged) {
  std::vector<Locator> locators;
  for (const size_t index : values) locators.push_back(values_[index].locator);
  if (!FitsCommitRecord(locators)) return;
  Result<CommitRecord> record = directory_->DescribeCommit(locators);
  if (!record.ok()) return;  // its store was dropped
  PreparedTransaction transaction{values, is_acknowledged, std::move(record).value()};
  prepared_.push_back(std::move(transaction));
  if (prepared_.size() > kPreparedMax) prepared_.erase(prepared_.begin());
}

void World::DecidePrepared() {
  while (!prepared_.empty() && !disk_.power_is_off()) {
    DecideOne(prepared_.back());
    // Power went meanwhile: the next start asks again.
    if (!disk_.power_is_off()) prepared_.pop_back();
  }
}

void World::DecideOne(const PreparedTransaction& transaction) {
  std::array<uint8_t, kCommitRecordSizeBytes> record{};
  EncodeCommitRecord(transaction.record, record);
  const Result<CommitRecord> decoded = DecodeCommitRecord(record);
  Check(decoded.ok(), kPreparedDecidedRight, decoded.status().ToString());
  const uint64_t failures_before = disk_.failures();
  const Result<bool> held = directory_->HoldsDurably(*decoded);
  if (!held.ok()) return ExpectCause(held.status(), failures_before, "holds durably");
  ++(*held ? totals_->prepared_committed : totals_->prepared_rolled_back);
  if (!*held) {
    const bool may_be_broken = std::any_of(transaction.values.begin(), transaction.values.end(), [&](size_t index) {
      return values_[index].is_damaged || values_[index].may_be_gone;
    });
    return Check(!transaction.is_acknowledged || may_be_broken, kPreparedDecidedRight,
                 "value " + std::to_string(transaction.values.front()) + " was committed, and is to be rolled back");
  }
  for (const size_t index : transaction.values) {
    Value& value = values_[index];
    Check(disk_.IsFlushed(value.locator), kPreparedDecidedRight,
          "value " + std::to_string(index) + " was taken for durable and is not");
    if (!transaction.is_acknowledged) value.state = Value::State::kLive;
    CompareValue(value);
  }
}

}  // namespace quarry::simulation
