#include "rows/row_rewriter.h"

#include <sys/mman.h>

#include "quarry/memory_guard.h"
#include "rows/gc_scan.h"
#include "rows/value_sample.h"
#include "rows/wanted_ranges.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

std::string WhereIs(const Locator& locator) {
  return "store " + std::to_string(locator.store.value) + " segment " + std::to_string(locator.segment.value) +
         " offset " + std::to_string(locator.offset_bytes);
}

}  // namespace

Status CheckClaimedSize(const Locator& locator, uint64_t longest_bytes) {
  if (locator.value_size_bytes <= longest_bytes) return Status::Ok();
  return Status::Corruption(locator.store.value, locator.segment.value, locator.offset_bytes,
                            "the head claims a value of " + std::to_string(locator.value_size_bytes) +
                                " bytes, the column allows " + std::to_string(longest_bytes));
}

RowRewriter::Bytes RowRewriter::Column::Get(const uchar* record) const {
  Bytes bytes;
  const uchar* field = record + offset;
  switch (length_size) {
    case 2:
      bytes.size = uint2korr(field);
      break;
    case 3:
      bytes.size = uint3korr(field);
      break;
    default:
      bytes.size = uint4korr(field);
      break;
  }
  memcpy(&bytes.data, field + length_size, sizeof bytes.data);
  return bytes;
}

void RowRewriter::Column::Set(uchar* record, const Bytes& bytes) const {
  uchar* field = record + offset;
  switch (length_size) {
    case 2:
      int2store(field, bytes.size);
      break;
    case 3:
      int3store(field, bytes.size);
      break;
    default:
      int4store(field, bytes.size);
      break;
  }
  memcpy(field + length_size, &bytes.data, sizeof bytes.data);
}

void RowRewriter::Attach(TABLE* table, const ColumnLayout* layout, const handler* child) {
  table_ = table;
  lookers_.Attach(table);
  access_.Attach(child);
  is_outside_of_keys_ = true;
  columns_.clear();
  patches_.clear();
  for (const ColumnPlan& plan : layout->columns) {
    if (!plan.managed()) continue;
    const auto* field = static_cast<const Field_blob*>(table->field[plan.field_index]);
    Column column;
    column.plan = &plan;
    column.offset = static_cast<size_t>(field->ptr - table->record[0]);
    column.length_size = field->pack_length_no_ptr();
    if (field->null_ptr != nullptr) {
      column.null_offset = static_cast<size_t>(field->null_ptr - table->record[0]);
      column.null_bit = field->null_bit;
    }
    column.value_size_max = LongestValueBytes(column.length_size);
    // An index prefix must see raw bytes only, whatever the options say.
    const uint32_t raw_min = std::max(plan.index_prefix_bytes, plan.guaranteed_prefix_bytes);
    column.inline_max = std::max(plan.inline_size_bytes, raw_min);
    column.prefix_size = std::max(plan.prefix_size_bytes, raw_min);
#ifdef QUARRY_PLANTED_BUG_PREFIX_OVER_TRAILER  // a bug on purpose, never in a normal build: tests/twin/planted.py
    column.prefix_size = plan.asked_prefix_size_bytes;
    column.inline_max = plan.asked_inline_size_bytes;
#endif
    is_outside_of_keys_ &= plan.index_prefix_bytes == 0;
    columns_.push_back(std::move(column));
  }
  patches_.reserve(2 * columns_.size());
}

void RowRewriter::BeginStatement(THD* thd, bool locks_rows, bool whole_rows) {
  lookers_.BeginStatement(thd, locks_rows, whole_rows);
  access_.Forget();
  for (Column& column : columns_) column.wanted = Wanted::kUnknown;
}

namespace {
/// What a column points at that the child leaves alone.
const uchar kNotFilledIn[1] = {0};
}  // namespace

void RowRewriter::BeginRead(uchar* buf) {
  patches_.clear();
  lookers_.BeginRow();
  for (Column& column : columns_) {
    column.known = false;
    if (lookers_.LooksAtRead(column.plan->field_index)) PatchField(column, buf, Bytes{kNotFilledIn, 0});
  }
}

void RowRewriter::BeginReadAgain(uchar* buf) {
  patches_.clear();
  lookers_.BeginRow();
  for (Column& column : columns_) {
    if (!lookers_.whole_row() && !lookers_.LooksAtRead(column.plan->field_index)) continue;
    const bool was_null = column.IsNull(buf);
    PatchField(column, buf, Bytes{kNotFilledIn, 0});
    patches_.back().was_null = was_null;
    if (was_null) buf[column.null_offset] &= static_cast<uchar>(~column.null_bit);
  }
}

bool RowRewriter::IsSameRow(const uchar* buf) {
  if (patches_.empty()) ForgetRow();
  for (const Patch& patch : patches_) {
    if (patch.column->IsNull(buf) || patch.column->Get(buf).data != kNotFilledIn) return false;
  }
  Restore();
  return true;
}

void RowRewriter::AbandonRead() {
  Restore();
  ForgetRow();
}

void RowRewriter::DropRow(uchar* buf) {
  patches_.clear();
  ForgetRow();
  for (const Column& column : columns_) column.Set(buf, Bytes());
}

void RowRewriter::ForgetRow() {
  for (Column& column : columns_) column.known = false;
}

void RowRewriter::ReleaseValues() {
  for (Column& column : columns_) {
    column.known = false;
    column.wanted = Wanted::kUnknown;
    column.decoded.Release();
    column.pieces.EndUse();
  }
}

Status RowRewriter::DecodeRow(uchar* buf, const ReadOptions& options) {
  patches_.clear();
  Status status = OrOutOfMemory([&] { return DecodeColumns(buf, options); });
  if (!status.ok()) DropRow(buf);
  return status;
}

Status RowRewriter::DecodeColumns(uchar* buf, const ReadOptions& options) {
  // A whole row may be changed, and then all of it is written again.
  const bool ranges_allowed = !lookers_.all_columns() && !lookers_.whole_row();
  for (Column& column : columns_) {
    const bool looked_at = lookers_.LooksAtRead(column.plan->field_index);
    column.examined = false;
    // A NULL leaves nothing to know: `raw` and `handed` are still those of another row, whose memory may be another's
    // now.
    column.known = (looked_at || lookers_.whole_row()) && !column.IsNull(buf);
    if (!column.known) continue;
    column.raw = column.Get(buf);
    column.handed = column.raw;
    column.known = column.raw.data != kNotFilledIn;
    if (!column.known) continue;
    if (looked_at) {
      QUARRY_TRY(DecodeColumn(&column, ranges_allowed, options));
    } else {
      HideHead(&column);
    }
    if (column.handed != column.raw) column.Set(buf, column.handed);
  }
  return Status::Ok();
}

#ifdef QUARRY_GUARDED_ROWS
namespace {
/// Memory that no thread may read.
const uchar* ForbiddenBytes() {
  static const void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<const uchar*>(page);
}
}  // namespace

// Who looks at the bytes of a head dies, and who looks only at its length gets one that no test takes for right. (An
// index prefix is InnoDB's to read in value and head alike.)
void RowRewriter::HideHead(Column* column) {
  if (column->plan->index_prefix_bytes != 0 || !EndsLikeHead(column->raw.span())) return;
  column->handed = Bytes{ForbiddenBytes(), static_cast<uint32_t>(column->value_size_max - 1)};
}
#endif

// The row of before may be looked at by whoever has `record` now; `other_record` may share its fields.
Status RowRewriter::ExamineLate(Column* column, const uchar* record, const uchar* other_record, bool foreseen,
                                const ReadOptions& options) {
  const Bytes shown = column->handed;
  column->handed = column->raw;
  if (const Status status = DecodeColumn(column, false, options); !status.ok()) {
    column->handed = shown;
    return status;
  }
  if (!foreseen && column->handed != column->raw) {
    plugin_counters.heads_caught.fetch_add(1, std::memory_order_relaxed);
  }
  for (const uchar* shared : {record, other_record}) {
    if (shared == nullptr || column->IsNull(shared) || column->Get(shared) != shown) continue;
    column->Set(const_cast<uchar*>(shared), column->handed);
  }
  return Status::Ok();
}

Status RowRewriter::ShowToLog(const uchar* before, const uchar* after, const ReadOptions& options) {
  if (!lookers_.LogsRow()) return Status::Ok();
  for (Column& column : columns_) {
    if (!column.known || column.examined) continue;
    const uint field_index = column.plan->field_index;
    const bool in_before = column.IsHandedIn(before) && lookers_.LogsBefore(field_index);
    const bool in_after = column.IsHandedIn(after) && lookers_.LogsAfter(field_index);
    // The image of before the change holds what was to be read, so it was foreseen; that of after it need not.
    if (in_before || in_after) QUARRY_TRY(ExamineLate(&column, before, after, !in_before, options));
  }
  return Status::Ok();
}

Status RowRewriter::ShowToOther(const uchar* record, const ReadOptions& options) {
  for (Column& column : columns_) {
    if (column.examined || !column.IsHandedIn(record)) continue;
    QUARRY_TRY(ExamineLate(&column, record, nullptr, false, options));
  }
  return Status::Ok();
}

void RowRewriter::FetchAll() {
  for (const Column& column : columns_) bitmap_set_bit(table_->read_set, column.plan->field_index);
}

void RowRewriter::BeginMark(uchar* buf) {
  patches_.clear();
  for (Column& column : columns_) {
    column.known = false;
    PatchField(column, buf, Bytes{kNotFilledIn, sizeof kNotFilledIn});
    if (column.null_bit != 0) buf[column.null_offset] &= static_cast<uchar>(~column.null_bit);
  }
}

// Of a row that was read for its heads alone, behind BeginMark. Its value is empty from now on.
Result<DecodedField> RowRewriter::TakeField(const Column& column, uchar* buf) const {
  const Bytes raw = column.Get(buf);
  column.Set(buf, Bytes());
  if (raw.data == kNotFilledIn) return Status::Corruption(0, 0, 0, "InnoDB left out a column that was asked for");
  return DecodeField(raw.span());
}

Status RowRewriter::MarkRow(uchar* buf, GcScan* scan) {
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    QUARRY_TRY_ASSIGN(const DecodedField field, TakeField(column, buf));
    if (field.is_head) scan->Mark(field.locator, access_.IsOwn(field.locator.store));
  }
  return Status::Ok();
}

void RowRewriter::SampleRow(uchar* buf, ValueSample* sample) {
  sample->NoteRow();
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    const Result<DecodedField> field = TakeField(column, buf);
    Status status = field.status();
    if (status.ok() && field->is_head && !access_.IsOwn(field->locator.store)) {
      status = Status::Corruption(0, 0, 0, "a row refers to a value of another table");
    }
    if (status.ok()) {
      sample->NoteField(column.plan->field_index, *field);
    } else {
      sample->NoteFailure(status);
    }
  }
}

const LEX_CSTRING& RowRewriter::NameOf(const Column& column) const {
  return table_->field[column.plan->field_index]->field_name;
}

// Leaves the value in `handed`.
Status RowRewriter::DecodeColumn(Column* column, bool ranges_allowed, const ReadOptions& options) {
  column->examined = true;
  if (column->raw.size < kTrailerSizeBytes) return Status::Ok();
  column->examined = false;
  QUARRY_TRY_ASSIGN(const DecodedField field, DecodeField(column->raw.span()));
  column->examined = !field.is_head;
  if (!field.is_head) return Status::Ok();
  const Locator& locator = field.locator;
  QUARRY_TRY(access_.Require(locator.store, NameOf(*column)));
  QUARRY_TRY(CheckClaimedSize(locator, column->value_size_max));
  column->decoded.Release();  // its memory is the next one's
  const Status status = ReadColumn(column, field, ranges_allowed, options);
  if (!status.ok()) {
    // Corruption says where by itself.
    return status.code() == StatusCode::kCorruption ? status : status.WithContext(WhereIs(locator));
  }
  const uchar* const data = column->decoded.empty() ? column->pieces.data() : column->decoded.bytes().data();
  column->handed = {data, static_cast<uint32_t>(locator.value_size_bytes)};
  column->examined = true;
  return Status::Ok();
}

// Into `decoded`, or else into `pieces`.
Status RowRewriter::ReadColumn(Column* column, const DecodedField& field, bool ranges_allowed,
                               const ReadOptions& options) {
  const Locator& locator = field.locator;
  if (ranges_allowed && WantsPieces(column, field)) {
    if (!ranges_.empty() && locator.value_size_bytes <= kCachedForRangeMaxBytes) {
      QUARRY_TRY_ASSIGN(column->decoded, Directory()->ReadIfCached(field.head(), options));
      if (!column->decoded.empty()) return Status::Ok();
    }
    if (column->pieces.Prepare(locator.value_size_bytes)) return ReadPieces(column, field, options);
  }
  if (ahead_ != nullptr) column->decoded = ahead_->Take(locator);
  if (!column->decoded.empty()) return Status::Ok();
  QUARRY_TRY_ASSIGN(column->decoded, Directory()->ReadValue(field.head(), options));
  return Status::Ok();
}

void RowRewriter::PrepareAhead(uchar* row) const {
  for (const Column& column : columns_) column.Set(row, Bytes{kNotFilledIn, 0});
}

bool RowRewriter::FindHeadsAhead(const uchar* row, std::vector<DecodedField>* heads) {
  heads->clear();
  for (const Column& column : columns_) {
    if (!lookers_.LooksAtRead(column.plan->field_index) || column.IsNull(row)) continue;
    if (column.wanted == Wanted::kRanges && column.wanted_by == table_->in_use->query_id) continue;
    const Bytes raw = column.Get(row);
    if (raw.size < kTrailerSizeBytes) continue;
    const Result<DecodedField> field = DecodeField(raw.span());
    if (!field.ok()) return false;
    if (!field->is_head) continue;
    if (!access_.IsOwn(field->locator.store) || !CheckClaimedSize(field->locator, column.value_size_max).ok()) {
      return false;
    }
    heads->push_back(*field);
  }
  return true;
}

bool RowRewriter::WantsPieces(Column* column, const DecodedField& field) {
  // Only what the row has can serve a short value's ranges.
  if (field.locator.value_size_bytes < kRangeValueMinBytes && field.prefix.empty()) return false;
  const Field* const server_field = table_->field[column->plan->field_index];
  if (column->wanted == Wanted::kUnknown || column->wanted_by != table_->in_use->query_id) {
    const bool found = FindWantedRanges(table_, server_field, &column->requests);
    column->wanted = found ? Wanted::kRanges : Wanted::kWhole;
    column->wanted_by = table_->in_use->query_id;
  }
  if (column->wanted != Wanted::kRanges) return false;
  const ValueShape shape = {field.locator.value_size_bytes, field.prefix.size(), server_field->charset()->mbmaxlen,
                            column->plan->part_size_bytes};
  return ChooseRanges(column->requests, shape, &ranges_);
}

// The prefix too, whatever is wanted: InnoDB takes the key of a row from it, and the server compares by it.
Status RowRewriter::ReadPieces(Column* column, const DecodedField& field, const ReadOptions& options) {
  QUARRY_TRY(CheckPrefix(field.head()).status());
  std::copy(field.prefix.begin(), field.prefix.end(), column->pieces.Fill({0, field.prefix.size()}).begin());
  for (const ByteRange& range : ranges_) {
    QUARRY_TRY(Directory()->ReadRange(field.head(), range.begin, options, column->pieces.Fill(range)));
  }
  plugin_counters.range_reads.fetch_add(1, std::memory_order_relaxed);
  return Status::Ok();
}

void RowRewriter::PatchField(const Column& column, const uchar* record, const Bytes& bytes) {
  // The server hands its own record buffers as const; what is exchanged here is put back by Restore.
  auto* writable = const_cast<uchar*>(record);
  patches_.push_back({&column, writable, column.Get(record)});
  column.Set(writable, bytes);
}

void RowRewriter::Restore() {
  for (const Patch& patch : patches_) {
    patch.column->Set(patch.record, patch.original);
    if (patch.was_null) patch.record[patch.column->null_offset] |= patch.column->null_bit;
  }
  patches_.clear();
}

}  // namespace quarry
