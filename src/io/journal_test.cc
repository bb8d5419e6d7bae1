#include "io/journal.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace quarry {
namespace {

namespace fs = std::filesystem;

TEST(JournalTest, Ext4SaysInSysfsWhetherItHasOne) {
  std::string pattern = testing::TempDir() + "/journal_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path sysfs = pattern;
  struct statfs system {};
  ASSERT_EQ(statfs(pattern.c_str(), &system), 0);
  if (system.f_type != EXT4_SUPER_MAGIC) {
    fs::remove_all(sysfs);
    GTEST_SKIP() << pattern << " is not on ext4";
  }
  struct stat status {};
  ASSERT_EQ(stat(pattern.c_str(), &status), 0);
  fs::create_directories(sysfs / "dev/block");
  fs::create_directories(sysfs / "fs/ext4/vdx9");
  fs::create_symlink(
      "../../devices/vdx/vdx9",
      sysfs / "dev/block" / (std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev))));
  const fs::path task = sysfs / "fs/ext4/vdx9/journal_task";
  EXPECT_TRUE(FileSystemHasJournal(pattern, sysfs)) << "it does not say: as it comes";
  std::ofstream(task) << "<none>\n";
  EXPECT_FALSE(FileSystemHasJournal(pattern, sysfs));
  std::ofstream(task) << "812\n";
  EXPECT_TRUE(FileSystemHasJournal(pattern, sysfs));
  fs::remove_all(sysfs);
}

TEST(JournalTest, OthersHaveNone) {
  EXPECT_FALSE(FileSystemHasJournal("/proc"));
  EXPECT_FALSE(FileSystemHasJournal("/nowhere"));
}

}  // namespace
}  // namespace quarry
