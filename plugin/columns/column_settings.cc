// See column_settings.h.
#include "columns/column_settings.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "columns/ndb_comment.h"

namespace quarry {
namespace {

struct Range {
  const char* name;
  uint32_t min;
  uint32_t max;
};
constexpr Range kInlineRange{"INLINE_SIZE", 0, kInlineSizeMaxBytes};
constexpr Range kPrefixRange{"PREFIX_SIZE", 0, kPrefixSizeMaxBytes};
constexpr Range kPartRange{"PART_SIZE", kPartSizeMinBytes, kPartSizeMaxBytes};

struct ParsedSize {
  bool is_number = false;
  bool in_range = false;
  uint32_t nearest = 0;  ///< the value, or the end of the range that is nearest to it
};

ParsedSize ParseSize(std::string_view text, const Range& range) {
  ParsedSize parsed;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return parsed;
  parsed.is_number = true;
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) value = UINT64_MAX;
  parsed.in_range = value >= range.min && value <= range.max;
  parsed.nearest = static_cast<uint32_t>(std::clamp<uint64_t>(value, range.min, range.max));
  return parsed;
}

Status CheckSize(const char* text, const Range& range) {
  if (text == nullptr || ParseSize(text, range).in_range) return Status::Ok();
  return Status::InvalidArgument("Incorrect value '" + std::string(text) + "' for option '" + range.name +
                                 "' (allowed: a whole number of bytes from " + std::to_string(range.min) + " to " +
                                 std::to_string(range.max) + ")");
}

Status CheckCodec(const char* text) {
  if (text == nullptr || ParseCodec(text).ok()) return Status::Ok();
  return Status::InvalidArgument("Incorrect value '" + std::string(text) +
                                 "' for option 'CODEC' (allowed: none, lz4, zstd)");
}

Status CheckDefaults(const char* text) {
  if (text == nullptr || HasNdbDefaults(text) || strcasecmp(text, "quarry") == 0) return Status::Ok();
  return Status::InvalidArgument("Incorrect value '" + std::string(text) +
                                 "' for option 'DEFAULTS' (allowed: quarry, ndb)");
}

Status CheckTexts(const OptionTexts& texts) {
  QUARRY_TRY(CheckDefaults(texts.defaults));
  QUARRY_TRY(CheckSize(texts.inline_size, kInlineRange));
  QUARRY_TRY(CheckSize(texts.prefix_size, kPrefixRange));
  QUARRY_TRY(CheckSize(texts.part_size, kPartRange));
  return CheckCodec(texts.codec);
}

/// Overwrites `value` when `text` says something.
void Apply(const char* text, const Range& range, OptionSource level, uint32_t* value, OptionSource* source) {
  if (text == nullptr) return;
  const ParsedSize parsed = ParseSize(text, range);
  if (!parsed.is_number) return;
  *value = parsed.nearest;
  *source = level;
}

void ApplyTexts(const OptionTexts& texts, OptionSource level, ColumnSettings* settings) {
  Apply(texts.inline_size, kInlineRange, level, &settings->inline_size_bytes, &settings->inline_size_source);
  Apply(texts.prefix_size, kPrefixRange, level, &settings->prefix_size_bytes, &settings->prefix_size_source);
  Apply(texts.part_size, kPartRange, level, &settings->part_size_bytes, &settings->part_size_source);
  if (texts.codec == nullptr) return;
  if (const Result<Codec> codec = ParseCodec(texts.codec); codec.ok()) {
    settings->codec = *codec;
    settings->codec_source = level;
  }
}

void ApplyNdbDefaults(BlobKind kind, ColumnSettings* settings) {
  const NdbDefaults defaults = NdbDefaultsOf(kind);
  settings->inline_size_bytes = settings->prefix_size_bytes = defaults.inline_size_bytes;
  settings->part_size_bytes = defaults.part_size_bytes;
  settings->inline_size_source = settings->prefix_size_source = settings->part_size_source = OptionSource::kNdbDefault;
}

/// `part_size_is_fixed`: NDB takes MAX_BLOB_PART_SIZE without an error, and does nothing with it.
void ApplyComment(std::string_view text, bool part_size_is_fixed, ColumnSettings* settings) {
  const Result<NdbComment> comment = ParseNdbComment(text);
  if (!comment.ok()) return;
  if (comment->inline_size_bytes) {
    settings->inline_size_bytes = settings->prefix_size_bytes = *comment->inline_size_bytes;
    settings->inline_size_source = settings->prefix_size_source = OptionSource::kColumnComment;
  }
  if (comment->max_part_size && !part_size_is_fixed) {
    settings->part_size_bytes = kPartSizeNdbMaxBytes;
    settings->part_size_source = OptionSource::kColumnComment;
  }
}

/// What the levels say, before the index prefix and before the two sizes are made to agree.
ColumnSettings Layered(const ColumnSettingsInput& input) {
  ColumnSettings settings;
  const bool has_ndb_defaults = HasNdbDefaults(input.table.defaults);
  if (has_ndb_defaults) ApplyNdbDefaults(input.kind, &settings);
  ApplyTexts(input.table, OptionSource::kTableOption, &settings);
  ApplyComment(input.comment, has_ndb_defaults && input.kind == BlobKind::kJson, &settings);
  ApplyTexts(input.column, OptionSource::kColumnOption, &settings);
  return settings;
}

/// Two sizes of one level contradict each other; of two levels the stronger one wins.
Status CheckAgreement(const ColumnSettings& settings) {
  if (settings.prefix_size_bytes <= settings.inline_size_bytes) return Status::Ok();
  if (settings.prefix_size_source != settings.inline_size_source) return Status::Ok();
  const std::string origin = settings.prefix_size_source == OptionSource::kTableOption
                                 ? "; what CREATE TABLE does not say is taken from quarry_inline_size and "
                                   "quarry_prefix_size"
                                 : "";
  return Status::InvalidArgument("Incorrect value '" + std::to_string(settings.prefix_size_bytes) +
                                 "' for option 'PREFIX_SIZE' (allowed: up to INLINE_SIZE, which is " +
                                 std::to_string(settings.inline_size_bytes) + " here" + origin + ")");
}

}  // namespace

NdbDefaults NdbDefaultsOf(BlobKind kind) {
  switch (kind) {
    case BlobKind::kBlob:
      return {256, 2000};
    case BlobKind::kMediumBlob:
      return {256, 4000};
    case BlobKind::kLongBlob:
      return {256, kPartSizeNdbMaxBytes};
    case BlobKind::kJson:
      return {4000, 8100};
  }
  return {};
}

bool HasNdbDefaults(const char* text) { return text != nullptr && strcasecmp(text, "ndb") == 0; }

const char* OptionSourceName(OptionSource source) {
  switch (source) {
    case OptionSource::kDefault:
      return "default";
    case OptionSource::kNdbDefault:
      return "DEFAULTS=NDB";
    case OptionSource::kTableOption:
      return "table option";
    case OptionSource::kColumnComment:
      return "column comment";
    case OptionSource::kColumnOption:
      return "column option";
  }
  return "unknown";
}

ColumnSettings ResolveSettings(const ColumnSettingsInput& input) {
  ColumnSettings settings = Layered(input);
  if (settings.prefix_size_bytes > settings.inline_size_bytes) {
    if (settings.prefix_size_source > settings.inline_size_source) {
      settings.inline_size_bytes = settings.prefix_size_bytes;
    } else {
      settings.prefix_size_bytes = settings.inline_size_bytes;
    }
  }
  settings.asked_inline_size_bytes = settings.inline_size_bytes;
  settings.asked_prefix_size_bytes = settings.prefix_size_bytes;
  settings.prefix_size_bytes = std::max(settings.prefix_size_bytes, input.index_prefix_bytes);
  settings.inline_size_bytes = std::max(settings.inline_size_bytes, settings.prefix_size_bytes);
  return settings;
}

Status CheckSettings(const ColumnSettingsInput& input) {
  QUARRY_TRY(CheckTexts(input.column));
  if (const Result<NdbComment> comment = ParseNdbComment(input.comment); !comment.ok()) return comment.status();
  QUARRY_TRY(CheckTexts(input.table));
  return CheckAgreement(Layered(input));
}

uint32_t GuaranteedPrefixBytes(const PrefixSizes& sizes, uint32_t limit_bytes) {
  // An index that is there was found to be within the guaranteed prefix when it was made.
  return std::max(sizes.index_prefix_bytes, std::min(sizes.prefix_size_bytes, limit_bytes));
}

std::optional<uint32_t> PrefixLimitForChange(const PrefixSizes& before, uint32_t guaranteed_bytes,
                                             const PrefixSizes& after) {
  if (after.index_prefix_bytes > guaranteed_bytes) return std::nullopt;
  if (after.asked_prefix_size_bytes == before.asked_prefix_size_bytes) return kNoPrefixLimit;
  return std::min(guaranteed_bytes, after.prefix_size_bytes);
}

Status CheckTableSettings(const OptionTexts& table) {
  QUARRY_TRY(CheckTexts(table));
  ColumnSettingsInput input;
  input.table = table;
  return CheckAgreement(Layered(input));
}

}  // namespace quarry
