// See ndb_comment.h. A hand-written scanner: the text is short, and the errors must quote it.
#include "columns/ndb_comment.h"

#include <charconv>
#include <string>

namespace quarry {
namespace {

constexpr std::string_view kPrefix = "NDB_COLUMN=";
constexpr std::string_view kInlineSize = "BLOB_INLINE_SIZE";
constexpr std::string_view kMaxPartSize = "MAX_BLOB_PART_SIZE";
constexpr std::string_view kAllowed =
    "allowed: NDB_COLUMN= followed by BLOB_INLINE_SIZE=n (n up to 29980; under 1: the default) and "
    "MAX_BLOB_PART_SIZE[=0|1], each at most once, separated by a comma without blanks";

char UpperAscii(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (UpperAscii(a[i]) != UpperAscii(b[i])) return false;
  }
  return true;
}

Status Malformed(const std::string& what) {
  return Status::InvalidArgument("column comment: " + what + " (" + std::string(kAllowed) + ")");
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  return quoted.append(text).append("'");
}

/// `value` without the '='. Any number of digits: what does not fit counts as too large or too small by its sign.
Status ParseInlineSize(std::string_view value, NdbComment* comment) {
  std::string_view digits = value;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative || (!digits.empty() && digits[0] == '+')) digits.remove_prefix(1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return Malformed("invalid value " + Quoted(value) + " for BLOB_INLINE_SIZE");
  }
  uint64_t size = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (parsed.ec != std::errc()) size = UINT64_MAX;
  if (negative || size < 1) return Status::Ok();
  if (size > kNdbInlineSizeMaxBytes) return Malformed("BLOB_INLINE_SIZE=" + std::string(value) + " is too large");
  comment->inline_size_bytes = static_cast<uint32_t>(size);
  return Status::Ok();
}

Status ParseMaxPartSize(std::string_view value, bool has_value, NdbComment* comment) {
  if (has_value && value != "0" && value != "1") {
    return Malformed("invalid value " + Quoted(value) + " for MAX_BLOB_PART_SIZE");
  }
  comment->max_part_size = !has_value || value == "1";
  return Status::Ok();
}

}  // namespace

Result<NdbComment> ParseNdbComment(std::string_view comment) {
  // NDB reads a C string: what follows a NUL does not exist for it.
  comment = comment.substr(0, comment.find('\0'));
  NdbComment parsed;
  const size_t start = comment.find(kPrefix);
  if (start == std::string_view::npos) return parsed;
  std::string_view list = comment.substr(start + kPrefix.size());
  list = list.substr(0, list.find(' '));
  if (list.empty()) return Malformed("no modifier after 'NDB_COLUMN='");

  bool inline_size_seen = false;
  bool max_part_size_seen = false;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view modifier = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const size_t equals = modifier.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::string_view name = modifier.substr(0, equals);
    const std::string_view value = has_value ? modifier.substr(equals + 1) : std::string_view();
    const bool is_inline_size = EqualsIgnoringCase(name, kInlineSize);
    if (!is_inline_size && !EqualsIgnoringCase(name, kMaxPartSize)) {
      return Malformed("unknown modifier " + Quoted(modifier));
    }
    bool& seen = is_inline_size ? inline_size_seen : max_part_size_seen;
    if (seen) return Malformed("modifier " + std::string(name) + " specified twice");
    seen = true;
    if (is_inline_size) {
      QUARRY_TRY(ParseInlineSize(value, &parsed));
    } else {
      QUARRY_TRY(ParseMaxPartSize(value, has_value, &parsed));
    }
  }
  return parsed;
}

}  // namespace quarry
