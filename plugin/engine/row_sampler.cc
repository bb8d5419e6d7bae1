// See row_sampler.h.
#include "engine/row_sampler.h"

#include <algorithm>
#include <chrono>

namespace quarry {
namespace {

constexpr std::chrono::seconds kTimeLimit{1};
constexpr const char* kSelect = "SET STATEMENT max_statement_time = 1 FOR SELECT SQL_NO_CACHE ";

bool IsInteger(const Field* field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      return true;
    default:
      return false;
  }
}

}  // namespace

RowSampler::RowSampler(const TABLE* definition, const TableName& name)
    : table_(Quoted(name)), history_(definition->versioned() ? " FOR SYSTEM_TIME ALL" : "") {
  if (definition->s->primary_key >= MAX_KEY) return;
  const KEY_PART_INFO& part = definition->key_info[definition->s->primary_key].key_part[0];
  // By a part of a column nothing can be ordered without sorting the table.
  if ((part.key_part_flag & HA_PART_KEY_SEG) != 0) return;
  key_ = Backticked({part.field->field_name.str, part.field->field_name.length});
  key_is_integer_ = IsInteger(part.field);
  key_is_unsigned_ = (part.field->flags & UNSIGNED_FLAG) != 0;
}

void RowSampler::Run(THD* thd) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
  const std::function<bool()> goes_on = [thd, deadline] {
    return thd->killed == NOT_KILLED && std::chrono::steady_clock::now() < deadline;
  };
  status_ = Status::Unavailable("no thread, or no memory, for a session of Quarry's own");
  (void)RunAside([this, &goes_on] {  // else the status says so already
    ServerSession session;
    status_ = session.Open();
    if (status_.ok()) status_ = RunIn(&session, goes_on);
  });
}

Status RowSampler::RunIn(ServerSession* session, const std::function<bool()>& goes_on) {
  QUARRY_TRY(Look(session, " USE INDEX ()", kSampleRowsMax));
  has_all_rows_ = sample_.rows < kSampleRowsMax;
  if (has_all_rows_ || key_.empty()) return Status::Ok();
  sample_ = {};  // the first rows are often the oldest ones
  if (key_is_integer_) return DiveIn(session, goes_on);
  const std::string by_key = " FORCE INDEX (PRIMARY) ORDER BY " + key_;
  QUARRY_TRY(Look(session, by_key, kSampleRowsMax / 2));
  return Look(session, by_key + " DESC", kSampleRowsMax / 2);
}

Status RowSampler::DiveIn(ServerSession* session, const std::function<bool()>& goes_on) {
  QUARRY_TRY_ASSIGN(const QueryRows ends,
                    session->Query(kSelect + ("MIN(" + key_ + "), MAX(" + key_ + ") FROM ") + table_ + history_));
  if (ends.size() != 1 || !ends[0][0] || !ends[0][1]) return Status::Ok();  // deleted meanwhile
  const auto number = [this](const std::string& text) {
    return key_is_unsigned_ ? strtoull(text.c_str(), nullptr, 10)
                            : static_cast<unsigned long long>(strtoll(text.c_str(), nullptr, 10));
  };
  const unsigned long long first = number(*ends[0][0]);
  const unsigned long long range = number(*ends[0][1]) - first;
  uint64_t dives = 1;
  for (uint64_t dive = 0; dive < dives && goes_on(); ++dive) {
    const unsigned long long at = first + dive * (range / dives);
    const std::string from = key_is_unsigned_ ? std::to_string(at) : std::to_string(static_cast<long long>(at));
    QUARRY_TRY(Look(session, " FORCE INDEX (PRIMARY) WHERE " + key_ + " >= " + from + " ORDER BY " + key_, kDiveRows));
    // The first one tells what a dive looks at: partitions make it more than it asks for.
    if (dive == 0) dives = std::max<uint64_t>(1, kSampleRowsMax / std::max<uint64_t>(sample_.rows, 1));
  }
  return Status::Ok();
}

Status RowSampler::Look(ServerSession* session, const std::string& clauses, unsigned rows) {
  const ValueSample looking(&sample_);
  return session->Query(kSelect + ("1 FROM " + table_) + history_ + clauses + " LIMIT " + std::to_string(rows))
      .status();
}

}  // namespace quarry
