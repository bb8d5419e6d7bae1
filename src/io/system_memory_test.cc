#include "io/system_memory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace quarry {
namespace {

class SystemMemoryTest : public testing::Test {
 protected:
  SystemMemoryTest() {
    Write("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree:         524288 kB\nMemAvailable:    786432 kB\n");
  }
  ~SystemMemoryTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void WriteGroup(const std::string& group, const std::string& limit, const std::string& usage) {
    Write("/sys/fs/cgroup" + group + "/memory.max", limit + "\n");
    Write("/sys/fs/cgroup" + group + "/memory.current", usage + "\n");
  }
  void Expect(uint64_t usable_bytes, uint64_t free_bytes) {
    const SystemMemory memory = ReadSystemMemory(root_);
    EXPECT_EQ(memory.usable_bytes, usable_bytes);
    EXPECT_EQ(memory.free_bytes, free_bytes);
  }

  static constexpr uint64_t kMiB = 1 << 20;
  const std::string root_ =
      testing::TempDir() + "system_memory_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(SystemMemoryTest, WithoutAGroupItIsTheMachines) { Expect(1024 * kMiB, 512 * kMiB); }

TEST_F(SystemMemoryTest, EachGroupAboveTheProcessHolds) {
  Write("/proc/self/cgroup", "0::/system.slice/mariadb.service\n");
  WriteGroup("", "max", "1");
  WriteGroup("/system.slice", std::to_string(256 * kMiB), std::to_string(200 * kMiB));
  WriteGroup("/system.slice/mariadb.service", std::to_string(512 * kMiB), std::to_string(100 * kMiB));
  Expect(256 * kMiB, 56 * kMiB);
}

TEST_F(SystemMemoryTest, WhereAGroupIsSlowedDownItHasNoMore) {
  Write("/proc/self/cgroup", "0::/a\n");
  WriteGroup("/a", "max", std::to_string(40 * kMiB));
  Write("/sys/fs/cgroup/a/memory.high", std::to_string(96 * kMiB));
  Expect(96 * kMiB, 56 * kMiB);
}

TEST_F(SystemMemoryTest, TheFirstVersionOfTheHierarchyHolds) {
  Write("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/database\n1:name=systemd:/init.scope\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  Write("/sys/fs/cgroup/memory/database/memory.limit_in_bytes", std::to_string(128 * kMiB));
  Write("/sys/fs/cgroup/memory/database/memory.usage_in_bytes", std::to_string(130 * kMiB));
  Expect(128 * kMiB, 0);
}

TEST_F(SystemMemoryTest, AContainersOwnGroupIsTheRootOfWhatItSees) {
  Write("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
  WriteGroup("", std::to_string(64 * kMiB), std::to_string(16 * kMiB));
  Expect(64 * kMiB, 48 * kMiB);
}

TEST_F(SystemMemoryTest, WhatMakesNoSenseIsNoLimit) {
  Write("/proc/self/cgroup", "0::/a\nnonsense\n:\n");
  WriteGroup("/a", "much", "-3");
  Expect(1024 * kMiB, 512 * kMiB);
}

TEST_F(SystemMemoryTest, ThisMachineHasMemory) {
  const SystemMemory memory = ReadSystemMemory();
  EXPECT_GT(memory.usable_bytes, 64 * kMiB);
  EXPECT_LE(memory.free_bytes, memory.usable_bytes);
}

}  // namespace
}  // namespace quarry
