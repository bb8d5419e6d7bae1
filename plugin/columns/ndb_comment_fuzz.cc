// Any bytes as a column comment: no crash, and what is accepted is inside its range.
#include "columns/ndb_comment.h"

#include <cstdlib>

#include "columns/column_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view comment(reinterpret_cast<const char*>(data), size);
  const quarry::Result<quarry::NdbComment> parsed = quarry::ParseNdbComment(comment);
  if (parsed.ok() && parsed->inline_size_bytes &&
      (*parsed->inline_size_bytes < 1 || *parsed->inline_size_bytes > quarry::kNdbInlineSizeMaxBytes)) {
    abort();
  }
  quarry::ColumnSettingsInput input;
  input.comment = comment;
  const quarry::ColumnSettings settings = quarry::ResolveSettings(input);
  if (settings.prefix_size_bytes > settings.inline_size_bytes) abort();
  if (parsed.ok() != quarry::CheckSettings(input).ok()) abort();
  return 0;
}
