// See value_sample.h.
#include "rows/value_sample.h"

#include "quarry/store.h"
#include "server/running_engine.h"

namespace quarry {

namespace {
thread_local ValueSample* current_sample = nullptr;
}  // namespace

ValueSample::ValueSample(TableSample* sample) : sample_(sample) { current_sample = this; }

ValueSample::~ValueSample() { current_sample = nullptr; }

ValueSample* ValueSample::Current() { return current_sample; }

void ValueSample::NoteField(uint field_index, const DecodedField& field) {
  ColumnSample* const column = &sample_->columns[field_index];
  if (!field.is_head) {
    ++column->inline_values;
    column->inline_bytes += field.prefix.size();
    return;
  }
  const Result<StoredShape> shape = Directory()->ReadShape(field.locator, {});
  if (!shape.ok()) {
    NoteFailure(shape.status());
    return;
  }
  ++column->stored_values;
  column->prefix_bytes += field.locator.prefix_size_bytes;
  column->part_bytes += field.locator.content_size_bytes();
  column->parts += shape->parts;
  column->stored_bytes += shape->space_bytes;
}

void ValueSample::NoteFailure(const Status& status) {
  if (sample_->status.ok()) sample_->status = status;
}

}  // namespace quarry
