#include "context/layout.h"

#include <cstdint>

namespace quarry {
namespace {

constexpr const char* kSegmentSuffix = ".qseg";
constexpr const char* kTemporarySuffix = ".new";
constexpr size_t kStoreDigits = 16;
constexpr size_t kSegmentDigits = 8;

std::string Hex(uint64_t value, size_t digits) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string text(digits, '0');
  for (size_t i = digits; i > 0; --i, value >>= 4U) text[i - 1] = kDigits[value & 15U];
  return text;
}

std::optional<uint64_t> ParseHex(const std::string& text) {
  uint64_t value = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = value << 4U | static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4U | static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

std::string StoreDirectoryName(StoreId store) { return Hex(store.value, kStoreDigits); }

std::string SegmentFileName(SegmentNumber segment) { return Hex(segment.value, kSegmentDigits) + kSegmentSuffix; }

std::string RewrittenSegmentFileName(SegmentNumber segment) { return SegmentFileName(segment) + kTemporarySuffix; }

bool IsLeftover(const std::string& name) {
  const std::string suffix = kTemporarySuffix;
  return name.ends_with(suffix) && ParseSegmentFileName(name.substr(0, name.size() - suffix.size())).has_value();
}

std::optional<StoreId> ParseStoreDirectoryName(const std::string& name) {
  if (name.size() != kStoreDigits) return std::nullopt;
  const std::optional<uint64_t> value = ParseHex(name);
  if (!value || *value == 0) return std::nullopt;
  return StoreId{*value};
}

std::optional<SegmentNumber> ParseSegmentFileName(const std::string& name) {
  const std::string suffix = kSegmentSuffix;
  if (name.size() != kSegmentDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  const std::optional<uint64_t> value = ParseHex(name.substr(0, kSegmentDigits));
  if (!value || *value == 0) return std::nullopt;
  return SegmentNumber{static_cast<uint32_t>(*value)};
}

}  // namespace quarry
