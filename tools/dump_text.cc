#include "dump_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace quarry::dump {

std::string Size(uint64_t bytes) {
  std::string text = std::to_string(bytes);
  if (bytes < 10240) return text;
  static constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> rounded{};
  (void)std::snprintf(rounded.data(), rounded.size(), " (%.1f %s)", value, kUnits[unit]);
  return text + rounded.data();
}

std::string Time(uint64_t micros) {
  if (micros == 0) return "never";
  const auto seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(micros) + " microseconds";
  std::array<char, 64> date{};
  const size_t size = std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::array<char, 16> fraction{};
  (void)std::snprintf(fraction.data(), fraction.size(), ".%06u", static_cast<unsigned>(micros % 1'000'000));
  return std::string(date.data(), size) + fraction.data() + " UTC";
}

std::string Hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string Hex64(uint64_t value) {
  std::array<uint8_t, 8> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
  return Hex(bytes);
}

std::string Quoted(std::span<const uint8_t> bytes, size_t limit) {
  std::string text = "\"";
  for (const uint8_t byte : bytes.first(std::min(limit, bytes.size()))) {
    if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
      text += static_cast<char>(byte);
    } else {
      text += "\\x" + Hex({&byte, 1});
    }
  }
  text += '"';
  if (bytes.size() > limit) text += " and " + std::to_string(bytes.size() - limit) + " more bytes";
  return text;
}

}  // namespace quarry::dump
