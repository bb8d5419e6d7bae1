// Names and messages on their way to a log or a terminal: a table's or a file's name may hold anything.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quarry {

/// One character of `text` at `at`. `size` 0: no well-formed UTF-8 starts there.
struct Character {
  uint32_t code = 0;
  size_t size = 0;
};
[[nodiscard]] Character CharacterAt(std::string_view text, size_t at);

/// Whether a terminal obeys the character, or shows other characters elsewhere because of it: controls, ends of lines
/// and paragraphs, marks of direction, marks without a width.
[[nodiscard]] bool IsHostile(uint32_t code);

/// `text` in one line: hostile characters and bytes that are no UTF-8 become \xNN, \uNNNN or \UNNNNNNNN.
[[nodiscard]] std::string Printable(std::string_view text);

}  // namespace quarry
