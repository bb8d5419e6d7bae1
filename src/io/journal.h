// Whether a file system commits a journal when it makes a file's new size or blocks durable.
// Thread-safety: a pure function of the system.
#pragma once

#include <string>

namespace quarry {

/// Of the file system of `directory`: XFS always, ext4 where it was made with one (`sysfs` says so, and is mounted at
/// /sys). No other: those that copy on write gain nothing from space that was written before.
[[nodiscard]] bool FileSystemHasJournal(const std::string& directory, const std::string& sysfs = "/sys");

}  // namespace quarry
