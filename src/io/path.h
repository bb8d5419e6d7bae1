// Text operations on paths. Thread-safety: pure functions.
#pragma once

#include <string>

namespace quarry {

/// The directory that holds `path`: "/a/b" -> "/a", "/a" -> "/", "a" -> ".". Trailing slashes of `path` don't count.
[[nodiscard]] std::string ParentPath(const std::string& path);

/// `directory` + "/" + `name`, without doubling the slash.
[[nodiscard]] std::string JoinPath(const std::string& directory, const std::string& name);

}  // namespace quarry
