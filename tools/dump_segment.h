// Lists the extents of a segment, and what lies between them, as a scan finds them (docs/internals/format.md).
// Thread-safety: pure functions over their own files.
#pragma once

#include <ostream>
#include <string>

#include "dump_file.h"
#include "quarry/status.h"

namespace quarry::dump {

/// Error: kCorruption for the first damage met (header, part); torn or foreign bytes between extents are no damage.
[[nodiscard]] Status DumpSegment(const std::string& path, const Options& options, std::ostream& out);

}  // namespace quarry::dump
