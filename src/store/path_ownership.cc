#include "store/path_ownership.h"

#include <array>
#include <utility>

#include "base/coding.h"
#include "base/zeros.h"
#include "context/layout.h"
#include "format/small_file.h"
#include "io/path.h"

namespace quarry {
namespace {

/// kNotFound: there is none.
Result<OpenedRecord> ReadRecord(Env* env, const std::string& directory) {
  QUARRY_TRY_ASSIGN(const std::vector<uint8_t> bytes,
                    env->ReadSmallFile(JoinPath(directory, kOpenedFileName), kSmallFileMaxBytes));
  return DecodeOpenedRecord(bytes);
}

Status WriteRecord(Env* env, const std::string& directory, const OpenedRecord& record) {
  return env->ReplaceFile(JoinPath(directory, kOpenedFileName), EncodeOpenedRecord(record));
}

Result<uint64_t> DrawNumber(Env* env) {
  std::array<uint8_t, sizeof(uint64_t)> bytes{};
  while (IsZero(bytes)) QUARRY_TRY(env->FillRandom(bytes));
  return LoadLittleEndian<uint64_t>(std::span<const uint8_t>(bytes), 0);
}

}  // namespace

Status PathOwnership::Identify() {
  QUARRY_TRY_ASSIGN(identity_, env_->IdentifyDirectory(home_));
  if (identity_.birth_nanos != 0) return Status::Ok();
  // A damaged one is as good as none: the paths then have to be adopted.
  if (const Result<OpenedRecord> record = ReadRecord(env_, home_); record.ok()) of_home_ = *record;
  return Status::Ok();
}

bool PathOwnership::IsOurs(const OpenedRecord& record) const {
  if (identity_.birth_nanos != 0) return identity_ == DirectoryIdentity{record.inode, record.birth_nanos};
  return record.number != 0 && (record.number == of_home_.number || record.number == of_home_.number_before);
}

Status PathOwnership::Claim(const std::string& directory) {
  const Result<OpenedRecord> record = ReadRecord(env_, directory);
  if (record.status().code() == StatusCode::kNotFound) {
    claimed_.push_back({directory, {}, false});
    return Status::Ok();
  }
  // Damaged, of a newer version, or not to be read: that takes the path's appends away, not the engine.
  if (!record.ok()) {
    return Status::Unavailable("does not tell which data directory opened it last (" + record.status().ToString() +
                               ")");
  }
  if (!IsOurs(*record)) return Status::Unavailable("was last opened by another data directory");
  claimed_.push_back({directory, *record, true});
  return Status::Ok();
}

void PathOwnership::Write(const OpenedRecord& record, std::vector<Failure>* failures) {
  std::vector<Claimed> marked;
  for (Claimed& claimed : claimed_) {
    if (!claimed.has_record || claimed.record != record) {
      if (Status status = WriteRecord(env_, claimed.directory, record); !status.ok()) {
        failures->push_back({claimed.directory, std::move(status)});
        continue;
      }
    }
    marked.push_back({claimed.directory, record, true});
  }
  claimed_ = std::move(marked);
}

std::vector<PathOwnership::Failure> PathOwnership::Mark() {
  if (identity_.birth_nanos == 0) return MarkWithNumber();
  std::vector<Failure> failures;
  OpenedRecord record;
  record.inode = identity_.inode;
  record.birth_nanos = identity_.birth_nanos;
  Write(record, &failures);
  return failures;
}

Status PathOwnership::RenewNumber() {
  OpenedRecord renewed;
  QUARRY_TRY_ASSIGN(renewed.number, DrawNumber(env_));
  renewed.number_before = of_home_.number;
  QUARRY_TRY(WriteRecord(env_, home_, renewed));
  of_home_ = renewed;
  return Status::Ok();
}

std::vector<PathOwnership::Failure> PathOwnership::MarkWithNumber() {
  std::vector<Failure> failures;
  if (claimed_.empty()) return failures;
  OpenedRecord record;
  // Whatever a crash left behind by one number catches up, before that number is forgotten.
  record.number = of_home_.number;
  if (record.number != 0) Write(record, &failures);
  if (const Status status = RenewNumber(); !status.ok()) {
    // The number of before still tells, where there is one.
    for (Claimed& claimed : claimed_) {
      if (!claimed.has_record) failures.push_back({claimed.directory, status});
    }
    return failures;
  }
  record.number = of_home_.number;
  std::vector<Failure> late;
  Write(record, &late);
  // Those have the number of before, which this home still takes for its own.
  for (Failure& failure : late) {
    if (of_home_.number_before == 0) failures.push_back(std::move(failure));
  }
  return failures;
}

}  // namespace quarry
