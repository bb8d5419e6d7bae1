// Turns numbers and names of the format into text for people. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace quarry::dump {

/// "268435456 (256.0 MiB)"; plain below 10 KiB.
[[nodiscard]] std::string Size(uint64_t bytes);
/// "2023-11-14 22:13:20.000000 UTC", or "never" for 0.
[[nodiscard]] std::string Time(uint64_t micros);
/// Lower-case hex digits.
[[nodiscard]] std::string Hex(std::span<const uint8_t> bytes);
/// The id as folders are named after it, 16 digits.
[[nodiscard]] std::string Hex64(uint64_t value);
/// Printable ASCII as it is, the rest as \xNN; at most `limit` bytes, then how many more.
[[nodiscard]] std::string Quoted(std::span<const uint8_t> bytes, size_t limit);

}  // namespace quarry::dump
