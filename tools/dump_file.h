// Explains one file of a store, or one field of a row, to a person.
//
// Invariant: whatever the bytes say, what is printed is what verified; damage is named where it is met and makes the
// result an error, after everything else that can be said was said.
// Thread-safety: pure functions over their own files.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "quarry/status.h"

namespace quarry::dump {

struct Options {
  bool parts = false;        ///< list every part of every extent
  bool verify = false;       ///< read every part and compare its checksum
  uint64_t extents_max = 0;  ///< stop listing (not counting) after so many; 0: never
};

/// A segment, a catalogue, PATH, OPENED or a file that holds one field (raw value or head): told by its content,
/// a segment (*.qseg) by its name too.
[[nodiscard]] Status DumpFile(const std::string& path, const Options& options, std::ostream& out);

/// The bytes of one field of a row.
[[nodiscard]] Status DumpField(std::span<const uint8_t> field, std::ostream& out);

/// The same from hex digits, as SELECT HEX(column) prints them.
[[nodiscard]] Status DumpHexField(const std::string& hex, std::ostream& out);

}  // namespace quarry::dump
