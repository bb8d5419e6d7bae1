#include "quarry/printable.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace quarry {

namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

/// Unicode's control and format characters (Cc, Cf, Zl, Zp), by rising numbers.
constexpr Range kHostile[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},
    {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x180e, 0x180e},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
    {0x110bd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
};

std::string Escape(const char* format, uint32_t code) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), format, code);
  return text.data();
}

}  // namespace

Character CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&text, at](size_t i) {
    return static_cast<uint32_t>(at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0);
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xc2 && first < 0xe0   ? 2
                      : first >= 0xe0 && first < 0xf0 ? 3
                      : first >= 0xf0 && first < 0xf5 ? 4
                                                      : 0;
  if (size == 0) return {};
  uint32_t code = first & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  const bool is_short = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return is_short || is_surrogate || code > 0x10ffff ? Character{} : Character{code, size};
}

bool IsHostile(uint32_t code) {
  return std::any_of(std::begin(kHostile), std::end(kHostile),
                     [code](const Range& range) { return range.first <= code && code <= range.last; });
}

std::string Printable(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.size == 0) {
      shown += Escape("\\x%02x", static_cast<uint8_t>(text[at]));
    } else if (!IsHostile(character.code)) {
      shown += text.substr(at, character.size);
    } else {
      shown += Escape(character.code < 0x80      ? "\\x%02x"
                      : character.code < 0x10000 ? "\\u%04x"
                                                 : "\\U%08x",
                      character.code);
    }
    at += std::max<size_t>(character.size, 1);
  }
  return shown;
}

}  // namespace quarry
