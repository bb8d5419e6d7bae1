// See printable.h.
#include "quarry/printable.h"

#include <cstdint>

namespace quarry {

namespace {

bool IsPlain(std::string_view character) {
  const auto byte = [&character](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 && byte(0) != 0x7f;
  if (character.size() == 2) {
    const bool is_control = byte(0) == 0xc2 && byte(1) < 0xa0;  // U+0080 to U+009F
    const bool is_mark = byte(0) == 0xd8 && byte(1) == 0x9c;    // U+061C
    return !is_control && !is_mark;
  }
  if (character.size() == 3 && byte(0) == 0xe2) {
    if (byte(1) == 0x80) return byte(2) < 0x8b || (byte(2) > 0x8f && byte(2) < 0xa8) || byte(2) > 0xae;  // U+200B, 2028
    if (byte(1) == 0x81) return byte(2) < 0xa0 || byte(2) > 0xaf;                                        // U+2060
  }
  return character != "\xef\xbb\xbf";  // U+FEFF
}

}  // namespace

size_t CharacterSize(std::string_view text, size_t at) {
  const auto byte = [&text](size_t i) { return static_cast<uint8_t>(i < text.size() ? text[i] : 0); };
  const auto follows = [&byte](size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const uint8_t first = byte(at);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool is_short = first == 0xe0 && byte(at + 1) < 0xa0;
    const bool is_surrogate = first == 0xed && byte(at + 1) >= 0xa0;
    return follows(at + 1) && follows(at + 2) && !is_short && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool is_outside = (first == 0xf0 && byte(at + 1) < 0x90) || (first == 0xf4 && byte(at + 1) >= 0x90);
    return follows(at + 1) && follows(at + 2) && follows(at + 3) && !is_outside ? 4 : 0;
  }
  return 0;
}

std::string Printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t size = CharacterSize(text, at);
    const std::string_view character = text.substr(at, size == 0 ? 1 : size);
    at += character.size();
    if (size > 0 && IsPlain(character)) {
      shown += character;
      continue;
    }
    for (const char c : character) {
      const auto byte = static_cast<uint8_t>(c);
      shown += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return shown;
}

}  // namespace quarry
