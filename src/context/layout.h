// Names of Quarry's files and directories (docs/internals/architecture.md, 'Files on disk').
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "quarry/types.h"

namespace quarry {

/// What every home of a build from before the first release holds: it is refused by that.
inline constexpr const char* kUnreleasedFileName = "DIRECTORY";
inline constexpr const char* kPathMarkerFileName = "PATH";
inline constexpr const char* kOpenedFileName = "OPENED";
inline constexpr const char* kStoresDirectoryName = "stores";
inline constexpr const char* kTrashDirectoryName = "trash";
inline constexpr const char* kDataPathDirectoryName = "quarry";

/// 16 lower-case hexadecimal digits.
[[nodiscard]] std::string StoreDirectoryName(StoreId store);
/// 8 lower-case hexadecimal digits and ".qseg".
[[nodiscard]] std::string SegmentFileName(SegmentNumber segment);
/// What GC rewrites that segment into, until it takes its place: SegmentFileName and ".new".
[[nodiscard]] std::string RewrittenSegmentFileName(SegmentNumber segment);
/// `name` is that of a file that was to replace another and did not: a crash left it.
[[nodiscard]] bool IsLeftover(const std::string& name);
/// The inverse; nothing for a name that is none of ours.
[[nodiscard]] std::optional<StoreId> ParseStoreDirectoryName(const std::string& name);
[[nodiscard]] std::optional<SegmentNumber> ParseSegmentFileName(const std::string& name);

}  // namespace quarry
