// How RowRewriter puts heads into rows that are written, and what it notes of those that go.
#include "quarry/memory_guard.h"
#include "rows/row_appender.h"
#include "rows/row_rewriter.h"
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

}  // namespace

Result<RowRewriter::Bytes> RowRewriter::EncodeValue(Column* column, const Bytes& value, RowAppender* appender) {
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
  QUARRY_TRY_ASSIGN(const Locator locator, appender->Append(value.span(), *column->plan, prefix));
  if (!Reserve(&column->head, &column->head_capacity, prefix + kTrailerSizeBytes)) return OutOfMemoryFor(prefix);
  memcpy(column->head.get(), value.data, prefix);
  EncodeTrailer(locator, std::span<uint8_t, kTrailerSizeBytes>(column->head.get() + prefix, kTrailerSizeBytes));
  plugin_counters.values_out_of_line.fetch_add(1, std::memory_order_relaxed);
  return Bytes{column->head.get(), static_cast<uint32_t>(prefix + kTrailerSizeBytes)};
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

// A head that is about to stand in another row too.
Status RowRewriter::RequireOwn(const Column& column) {
  if (!EndsLikeHead(column.raw.span())) return Status::Ok();
  QUARRY_TRY_ASSIGN(const DecodedField field, DecodeField(column.raw.span()));
  return field.is_head ? access_.Require(field.locator.store, NameOf(column)) : Status::Ok();
}

bool RowRewriter::HoldsHead(const uchar* record) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column& column) {
    return !column.IsNull(record) && EndsLikeHead(column.Get(record).span());
  });
}

Status RowRewriter::EncodeInsert(const uchar* buf, RowAppender* appender) {
  for (Column& column : columns_) {
    if (column.IsNull(buf)) continue;
    const Bytes value = column.Get(buf);
    // A history row of system versioning is written with the pointers of the row just read: it shares its extents.
    if (column.known && value == column.handed) {
      QUARRY_TRY(RequireOwn(column));
      if (column.raw != value) PatchField(column, buf, column.raw);
      continue;
    }
    QUARRY_TRY_ASSIGN(const Bytes encoded, EncodeValue(&column, value, appender));
    if (encoded != value) PatchField(column, buf, encoded);
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

Status RowRewriter::EncodeUpdate(const uchar* old_data, const uchar* new_data, RowAppender* appender,
                                 const ReadOptions& options) {
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
        (new_value == old_value || SameValue(column, new_value) || SameBehindHead(column, new_value, options));
    if (unchanged && !old_known && !bitmap_is_set(table_->read_set, column.plan->field_index)) {
      return Status::NotSupported("the row being updated was not read through this handler");
    }
    Bytes encoded;
    if (unchanged && old_known) {
      encoded = column.raw;
      if (EndsLikeHead(encoded.span())) plugin_counters.heads_kept.fetch_add(1, std::memory_order_relaxed);
    } else if (!new_null) {
      QUARRY_TRY_ASSIGN(encoded, EncodeValue(&column, new_value, appender));
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
