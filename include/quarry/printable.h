// Names and messages on their way to a log or a terminal: a table's or a file's name may hold anything.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quarry {

/// How many bytes of a well-formed UTF-8 character begin at `at`; 0: none does.
[[nodiscard]] size_t CharacterSize(std::string_view text, size_t at);

/// `text` without what would begin a line of its own, or be a command to a terminal: control characters (C1, too),
/// Unicode's separators of lines and paragraphs, its marks of direction, and bytes that are no UTF-8, each byte of
/// these as \xNN.
[[nodiscard]] std::string Printable(std::string_view text);

}  // namespace quarry
