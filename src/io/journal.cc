#include "io/journal.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace quarry {
namespace {

/// The name of the device of `directory`: vda1, dm-0. Empty where that is not known.
std::string DeviceName(const std::string& directory, const std::string& sysfs) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return {};
  const std::string numbers = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::error_code error;
  return std::filesystem::read_symlink(sysfs + "/dev/block/" + numbers, error).filename().string();
}

}  // namespace

bool FileSystemHasJournal(const std::string& directory, const std::string& sysfs) {
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return false;
  if (status.f_type == XFS_SUPER_MAGIC) return true;
  if (status.f_type != EXT4_SUPER_MAGIC) return false;
  const std::string device = DeviceName(directory, sysfs);
  std::ifstream file(sysfs + "/fs/ext4/" + device + "/journal_task");
  std::string task;  // the number of the journal's thread, or <none>
  // An old kernel, or a container, does not say: ext4 comes with one.
  return device.empty() || !std::getline(file, task) || !task.starts_with('<');
}

}  // namespace quarry
