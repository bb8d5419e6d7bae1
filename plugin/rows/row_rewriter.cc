#include "rows/row_rewriter.h"

#include <sys/mman.h>

#include "rows/gc_scan.h"
#include "rows/value_sample.h"
#include "rows/wanted_ranges.h"
#include "server/plugin_counters.h"
#include "server/running_engine.h"
#include "transaction/transaction.h"

namespace quarry {

namespace {

bool Reserve(std::unique_ptr<uint8_t[]>* buffer, size_t* capacity, size_t wanted) {
  if (*capacity >= wanted) return true;
  // Some slack, so that a scan over growing values does not allocate for each.
  const size_t rounded = wanted + wanted / 8 + 256;
  buffer->reset(new (std::nothrow) uint8_t[rounded]);
  *capacity = *buffer == nullptr ? 0 : rounded;
  return *buffer != nullptr;
}

std::string WhereIs(const Locator& locator) {
  return "store " + std::to_string(locator.store.value) + " segment " + std::to_string(locator.segment.value) +
         " offset " + std::to_string(locator.offset_bytes);
}

Status OutOfMemory(uint64_t size_bytes) {
  return Status::NotSupported("no memory for a value of " + std::to_string(size_bytes) + " bytes");
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
  Status status = DecodeColumns(buf, options);
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

Status RowRewriter::MarkRow(uchar* buf, GcScan* scan) {
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    const Bytes raw = column.Get(buf);
    if (raw.data == kNotFilledIn) return Status::Corruption(0, 0, 0, "InnoDB left out a column that was asked for");
    column.Set(buf, Bytes());
    if (raw.size < kTrailerSizeBytes) continue;
    QUARRY_TRY_ASSIGN(const DecodedField field, DecodeField(raw.span()));
    if (field.is_head) scan->Mark(field.locator, access_.IsOwn(field.locator.store));
  }
  return Status::Ok();
}

void RowRewriter::SampleRow(uchar* buf, ValueSample* sample) {
  sample->NoteRow();
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    const Bytes raw = column.Get(buf);
    column.Set(buf, Bytes());
    const Result<DecodedField> field = raw.data == kNotFilledIn
                                           ? Status::Corruption(0, 0, 0, "InnoDB left out a column that was asked for")
                                           : DecodeField(raw.span());
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

// The new value is what was read, by pointer or, when it was decoded and has the same length, by its bytes: comparing
// costs little beside writing it again.
bool RowRewriter::SameValue(const Column& column, const Bytes& value) {
  if (!column.known) return false;
  if (value == column.handed) return true;
  const bool decoded = !column.decoded.empty() && column.handed.data == column.decoded.bytes().data();
#ifdef QUARRY_PLANTED_BUG_STALE_HEAD  // a bug on purpose, never in a normal build: tests/twin/planted.py
  return decoded && value.size == column.handed.size;
#else
  return decoded && value.size == column.handed.size && memcmp(value.data, column.handed.data, value.size) == 0;
#endif
}

// The old value was not decoded but has the new one's length and checksum: read it, in steps, until a difference.
// (Where PART_SIZE has changed since, the checksum is of other parts, and the value counts as another. InnoDB reads the
// old value of every row it updates; here it is the rare case.) What cannot be read counts as different, so that a
// damaged value can be overwritten.
bool RowRewriter::SameBehindHead(const Column& column, const Bytes& value, const ReadOptions& options) {
  if (!column.known || column.raw.size < kTrailerSizeBytes || column.examined) return false;
  const Result<DecodedField> field = DecodeField(column.raw.span());
  if (!field.ok() || !field->is_head || field->locator.value_size_bytes != value.size) return false;
  if (!access_.IsOwn(field->locator.store)) return false;
  const size_t prefix_size = field->prefix.size();
  if (memcmp(field->prefix.data(), value.data, prefix_size) != 0) return false;
  if (field->locator.value_checksum !=
      ValueChecksumOf(value.span(), field->locator.prefix_size_bytes, column.plan->part_size_bytes)) {
    return false;
  }
  constexpr uint64_t kStepBytes = 1U << 20;
  uint64_t step = std::min<uint64_t>(column.plan->part_size_bytes, kStepBytes);
  const std::unique_ptr<uint8_t[]> buffer(new (std::nothrow) uint8_t[std::min<uint64_t>(value.size, kStepBytes)]);
  if (buffer == nullptr) return false;
  for (uint64_t offset = prefix_size; offset < value.size; offset += step, step = kStepBytes) {
    const std::span<uint8_t> piece(buffer.get(), std::min<uint64_t>(step, value.size - offset));
    if (!Directory()->ReadRange(field->head(), offset, options, piece).ok()) return false;
    if (memcmp(piece.data(), value.data + offset, piece.size()) != 0) return false;
  }
  return true;
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

Result<RowRewriter::Bytes> RowRewriter::EncodeValue(Column* column, const Bytes& value, AppendTarget* target,
                                                    uint32_t write_batch_bytes, Transaction* transaction) {
  const bool ambiguous = EndsLikeHead(value.span());
  uint32_t prefix = std::min(value.size, column->prefix_size);
  // A head that is no shorter than the value saves nothing; one that is longer than the column allows cannot be.
  const uint64_t head_size = uint64_t{prefix} + kTrailerSizeBytes;
  const bool fits = head_size <= column->value_size_max;
  if (!ambiguous && (value.size <= std::max<uint64_t>(column->inline_max, head_size) || !fits)) {
    plugin_counters.values_inline.fetch_add(1, std::memory_order_relaxed);
    return value;
  }
  const uint32_t raw_min = std::max(column->plan->index_prefix_bytes, column->plan->guaranteed_prefix_bytes);
  if (!fits) prefix = static_cast<uint32_t>(column->value_size_max - kTrailerSizeBytes);
  if (ambiguous && prefix < raw_min) {
    return Status::NotSupported("a value of " + std::to_string(value.size) +
                                " bytes ends in the bytes that mark a head; in a column with an index prefix of " +
                                std::to_string(raw_min) + " bytes such a value must be at least so long");
  }
  QUARRY_TRY_ASSIGN(Store * store, target->OpenStore());
  AppendOptions options = column->plan->append_options(write_batch_bytes);
  options.encryption_key_id = target->EncryptionKeyId();
  options.prefix_size_bytes = prefix;
  QUARRY_TRY_ASSIGN(const Locator locator, store->Append(value.span(), options, transaction->unsynced()));
  transaction->NoteAppended(locator);
  if (!Reserve(&column->head, &column->head_capacity, prefix + kTrailerSizeBytes)) return OutOfMemory(prefix);
  memcpy(column->head.get(), value.data, prefix);
  EncodeTrailer(locator, std::span<uint8_t, kTrailerSizeBytes>(column->head.get() + prefix, kTrailerSizeBytes));
  plugin_counters.values_out_of_line.fetch_add(1, std::memory_order_relaxed);
  return Bytes{column->head.get(), static_cast<uint32_t>(prefix + kTrailerSizeBytes)};
}

// A head that is about to stand in another row too.
Status RowRewriter::RequireOwn(const Column& column) {
  if (!EndsLikeHead(column.raw.span())) return Status::Ok();
  QUARRY_TRY_ASSIGN(const DecodedField field, DecodeField(column.raw.span()));
  return field.is_head ? access_.Require(field.locator.store, NameOf(column)) : Status::Ok();
}

Status RowRewriter::EncodeInsert(const uchar* buf, AppendTarget* target, uint32_t write_batch_bytes,
                                 Transaction* transaction) {
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    // Of the row of another partition every column is a value by now, or something was not foreseen.
    if (table_->part_info != nullptr && EndsLikeHead(column.Get(buf).span())) {
      QUARRY_TRY(target->ShowFromElsewhere(buf));
    }
    const Bytes value = column.Get(buf);
    // A history row of system versioning is written with the pointers of the row just read: it shares its extents.
    if (column.known && value == column.handed) {
      QUARRY_TRY(RequireOwn(column));
      if (column.raw != value) PatchField(column, buf, column.raw);
      continue;
    }
    QUARRY_TRY_ASSIGN(const Bytes encoded, EncodeValue(&column, value, target, write_batch_bytes, transaction));
    if (encoded != value) PatchField(column, buf, encoded);
  }
  return Status::Ok();
}

Status RowRewriter::EncodeUpdate(const uchar* old_data, const uchar* new_data, AppendTarget* target,
                                 uint32_t write_batch_bytes, const ReadOptions& read_options,
                                 Transaction* transaction) {
  static const uchar kOther[1] = {0};
  for (Column& column : columns_) {
    const bool old_null = column.IsNull(old_data);
    const bool new_null = column.IsNull(new_data);
    const Bytes old_value = old_null ? Bytes() : column.Get(old_data);
    const Bytes new_value = new_null ? Bytes() : column.Get(new_data);
    // InnoDB updates the row it read last; `old_data` is that row, wherever the server moved its bytes to.
    const bool old_known = column.known && !old_null;
    const bool unchanged =
        !old_null && !new_null &&
        (new_value == old_value || SameValue(column, new_value) || SameBehindHead(column, new_value, read_options));
    if (unchanged && !old_known && !bitmap_is_set(table_->read_set, column.plan->field_index)) {
      return Status::NotSupported("the row being updated was not read through this handler");
    }
    Bytes encoded;
    if (unchanged && old_known) {
      encoded = column.raw;
      if (EndsLikeHead(encoded.span())) plugin_counters.heads_kept.fetch_add(1, std::memory_order_relaxed);
    } else if (!new_null) {
      QUARRY_TRY_ASSIGN(encoded, EncodeValue(&column, new_value, target, write_batch_bytes, transaction));
      if (old_known) CarryInCache(column.raw, encoded, new_value);
    }
    if (!new_null && encoded != new_value) PatchField(column, new_data, encoded);
    if (old_null) continue;
    if (old_known) {
      if (column.raw != old_value) PatchField(column, old_data, column.raw);
    } else {
      // What InnoDB holds is not known: make it see a change in any case.
      PatchField(column, old_data, Bytes{kOther, encoded.size == 0 ? 1U : 0U});
    }
  }
  return Status::Ok();
}

// Else each update of a value that is read again and again would cost a read of the device: appends leave nothing in
// the page cache.
void RowRewriter::CarryInCache(const Bytes& old_raw, const Bytes& new_raw, const Bytes& value) {
  if (old_raw.size < kTrailerSizeBytes || new_raw.size < kTrailerSizeBytes) return;
  const Result<DecodedField> replaced = DecodeField(old_raw.span());
  if (!replaced.ok() || !replaced->is_head || !access_.IsOwn(replaced->locator.store)) return;
  const Result<DecodedField> by = DecodeField(new_raw.span());
  if (by.ok() && by->is_head) Directory()->CarryInCache(replaced->locator, by->locator, value.span());
}

void RowRewriter::NoteReplaced(const uchar* old_data, const uchar* new_data, Transaction* transaction) {
  if (table_->versioned()) return;
  for (const Column& column : columns_) {
    if (!column.known || column.IsNull(old_data)) continue;
    if (!column.IsNull(new_data) && column.Get(new_data) == column.raw) continue;
    NoteHead(column.raw, transaction);
  }
}

void RowRewriter::NoteDeleted(const uchar* buf, Transaction* transaction) {
  if (table_->versioned()) return;
  for (const Column& column : columns_) {
    if (column.known && !column.IsNull(buf)) NoteHead(column.raw, transaction);
  }
}

void RowRewriter::NoteHead(const Bytes& raw, Transaction* transaction) {
  if (raw.size < kTrailerSizeBytes) return;
  const Result<DecodedField> field = DecodeField(raw.span());
  if (!field.ok() || !field->is_head || !access_.IsOwn(field->locator.store)) return;
  transaction->Join(table_->in_use);
  transaction->NoteReplaced(field->locator);
}

}  // namespace quarry
