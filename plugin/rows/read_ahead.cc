#include "rows/read_ahead.h"

#include <unordered_map>

#include "server/running_engine.h"
#include "server/variables.h"

namespace quarry {
namespace {

/// What is read ahead of tables that this thread scans. Partitions have handlers of their own and one TABLE. A
/// statement stays on its thread.
thread_local std::unordered_map<const TABLE*, uint64_t> bytes_ahead_of_tables;

}  // namespace

void ReadAhead::Attach(const handler* outer, TABLE* table, handler* child, RowRewriter* rewriter) {
  outer_ = outer;
  table_ = table;
  child_ = child;
  rewriter_ = rewriter;
  rewriter->UseAhead(this);
}

// ---------------------------------------------------------------- statement

void ReadAhead::BeginStatement(THD* thd, bool locks_nothing, const ReadOptions& options) {
  EndScan();
  limit_bytes_ = BatchSize(thd);
  options_ = options;
  // Under SERIALIZABLE InnoDB makes of a plain read one that locks, unless it is a transaction by itself.
  is_allowed_ = locks_nothing && limit_bytes_ > 0 && rewriter_->active() && thd->lex->sql_command == SQLCOM_SELECT &&
                thd->tx_isolation != ISO_SERIALIZABLE && table_->s->tmp_table == NO_TMP_TABLE;
}

void ReadAhead::CloseCursor() {
  EndScan();
  cursor_.reset();
}

void ReadAhead::Close() {
  CloseCursor();
  is_allowed_ = false;
}

// ---------------------------------------------------------------- scan

void ReadAhead::BeginIndex(uint index, bool sorted) {
  EndScan();
  start_.index = index;
  start_.sorted = sorted;
}

void ReadAhead::BeginFrom(ScanStart::From from) {
  if (!is_allowed_) return;
  EndScan();
  start_.from = from;
  step_ = ScanStep::kNone;
  rows_ = 0;
  WatchAnew();
}

void ReadAhead::BeginKey(ScanStart::From from, const uchar* key, key_part_map keypart_map, ha_rkey_function flag) {
  if (!is_allowed_) return;
  BeginFrom(from);
  const uint size = key == nullptr ? 0 : calculate_key_len(table_, start_.index, key, keypart_map);
  start_.key.assign(key, key + size);
  start_.keypart_map = keypart_map;
  start_.flag = flag;
}

void ReadAhead::EndScan() {
  if (state_ == State::kOff) return;
  const bool was_ahead = state_ == State::kAhead;
  state_ = State::kOff;
  expected_.clear();
  TakeOff(bytes_ahead_);
  if (was_ahead) cursor_->End();
}

void ReadAhead::WatchAnew() {
  EndScan();
  state_ = State::kWatching;
  waits_ = 0;
  pressure_ = 0;
  has_value_ = false;
  report_ = {};
}

void ReadAhead::NoteRow(ScanStep step) {
  if (state_ == State::kOff) return;
  if (step_ == ScanStep::kNone) step_ = step;
  if (step != step_) return EndScan();  // it turned round: a cursor of the server's own
  ++rows_;
  if (state_ == State::kWatching) {
    Watch();
  } else if (expected_.empty()) {
    ReadOn();
  }
  has_value_ = false;
  report_ = {};
}

void ReadAhead::Watch() {
  if (!has_value_) return;
  if (!report_.waited_for_device) {
    if (pressure_ > 0) --pressure_;
    return;
  }
  ++waits_;
  pressure_ += kPressureOfWait;
  if (pressure_ < kPressureToBegin || step_ == ScanStep::kNone || rows_ > kReplayedPerWait * waits_) return;
  if (cursor_ == nullptr) cursor_ = ChildCursor::Open(child_);
  if (cursor_ == nullptr) return EndScan();
  state_ = State::kAhead;
  values_ahead_ = kValuesAheadFirst;
  last_size_bytes_ = 0;
  in_memory_ = 0;
  used_ = passed_by_ = 0;
  is_at_end_ = false;
  if (CatchUp()) {
    ReadOn();
  } else {
    EndScan();
  }
}

// ---------------------------------------------------------------- ahead

bool ReadAhead::CatchUp() {
  const TABLE_SHARE* const share = table_->s;
  row_.resize(share->rec_buff_length);
  memcpy(row_.data(), share->default_values, share->reclength);
  // The child may have passed rows by that its condition on the index, or a filter, did not let through.
  uint64_t left = kReplayedPerWait * waits_ + rows_;
  for (bool is_first = true; left > 0 && ReadHeads(is_first); is_first = false, --left) {
    if (!heads_.empty() && heads_.back().locator == *last_) return true;
  }
  return false;
}

// Reads the next row's heads. False: there is none, or none that can be told.
bool ReadAhead::ReadHeads(bool is_first) {
  rewriter_->PrepareAhead(row_.data());
  const bool has_row = is_first ? cursor_->Begin(start_, row_.data()) : cursor_->Next(start_, step_, row_.data());
  return has_row && rewriter_->FindHeadsAhead(row_.data(), &heads_);
}

void ReadAhead::ReadOn() {
  for (uint32_t rows = 0; rows < kRowsAtOnce && !is_at_end_; ++rows) {
    // One row at least, so that the scan is not lost while other partitions have all the room.
    if (expected_.size() >= values_ahead_ || (!expected_.empty() && !HasRoomFor(last_size_bytes_))) return;
    if (!ReadHeads(false) || IsBeyondRange()) {
      is_at_end_ = true;
      return;
    }
    for (const DecodedField& field : heads_) Expect(field);
    if (in_memory_ > kInMemoryMax) return WatchAnew();
  }
}

void ReadAhead::Expect(const DecodedField& field) {
  Expected& expected = expected_.emplace_back(Expected{field.locator, nullptr, 0});
  const uint64_t size_bytes = field.locator.value_size_bytes;
  if (size_bytes > limit_bytes_) return;
  last_size_bytes_ = size_bytes;
  if (!HasRoomFor(size_bytes)) return;
  expected.read = Directory()->ReadAhead(field.head(), options_);
  if (expected.read == nullptr) {
    ++in_memory_;
    return;
  }
  in_memory_ = 0;
  bytes_ahead_of_tables[table_] += size_bytes;  // first: without memory nothing is counted
  expected.size_bytes = size_bytes;
  bytes_ahead_ += size_bytes;
}

bool ReadAhead::HasRoomFor(uint64_t size_bytes) const {
  const auto found = bytes_ahead_of_tables.find(table_);
  return (found == bytes_ahead_of_tables.end() ? 0 : found->second) + size_bytes <= limit_bytes_;
}

void ReadAhead::TakeOff(uint64_t size_bytes) {
  bytes_ahead_ -= size_bytes;
  const auto found = bytes_ahead_of_tables.find(table_);
  if (found != bytes_ahead_of_tables.end() && (found->second -= size_bytes) == 0) bytes_ahead_of_tables.erase(found);
}

void ReadAhead::DropFirst() {
  TakeOff(expected_.front().size_bytes);
  expected_.pop_front();
}

ValueBuffer ReadAhead::Take(const Locator& locator) {
  if (state_ == State::kOff) return {};
  has_value_ = true;
  last_ = locator;
  if (state_ != State::kAhead) return {};
  const auto found = std::find_if(expected_.begin(), expected_.end(),
                                  [&](const Expected& expected) { return expected.locator == locator; });
  if (found == expected_.end()) {
    WatchAnew();
    has_value_ = true;
    return {};
  }
  for (auto passed = found - expected_.begin(); passed > 0; --passed) {
    if (expected_.front().read != nullptr) ++passed_by_;
    DropFirst();
  }
  const std::unique_ptr<AheadRead> read = std::move(expected_.front().read);
  DropFirst();
  ++used_;
  if (passed_by_ > used_ + kPassedByMax) {
    EndScan();
  } else {
    values_ahead_ = std::min(2 * values_ahead_, kValuesAheadMax);
    ReadOn();
  }
  return read == nullptr ? ValueBuffer() : read->Take();
}

// The server compares a row with the end of its range in its own record, so the fields are moved for the comparison.
bool ReadAhead::IsBeyondRange() {
  const key_range* const end = outer_->end_range;
  if (end == nullptr || start_.from == ScanStart::From::kTable || step_ == ScanStep::kPrev) return false;
  KEY_PART_INFO* const parts = outer_->range_key_part;
  size_t count = 0;
  for (uint size = 0; size < end->length; size += parts[count++].store_length) {
    // Computed by the server, when it has the row.
    if (parts[count].field->vcol_info != nullptr) return false;
  }
  const my_ptrdiff_t offset = row_.data() - table_->record[0];
  for (size_t i = 0; i < count; ++i) parts[i].field->move_field_offset(offset);
  int compared = key_cmp(parts, end->key, end->length);
  for (size_t i = 0; i < count; ++i) parts[i].field->move_field_offset(-offset);
  if (compared == 0) compared = outer_->key_compare_result_on_equal;
  return compared > 0;
}

}  // namespace quarry
