#include "io/system_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "quarry/options.h"

namespace quarry {
namespace {

/// Where a hierarchy is mounted, and what its files are called.
struct Hierarchy {
  const char* mount;
  std::array<const char*, 2> limits;
  const char* usage;
};
constexpr Hierarchy kVersion1{"/sys/fs/cgroup/memory", {"memory.limit_in_bytes", nullptr}, "memory.usage_in_bytes"};
/// Beyond memory.high a process is slowed down until it takes less.
constexpr Hierarchy kVersion2{"/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current"};

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? ParseNumber(word) : std::nullopt;  // version 2 says "max" for no limit
}

SystemMemory ReadMachine(const std::string& root) {
  SystemMemory machine;
  std::ifstream file(root + "/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "MemTotal:") machine.usable_bytes = kib << 10U;
    if (name != "MemFree:") continue;
    machine.free_bytes = kib << 10U;
    break;  // the kernel writes it behind the total, and dozens of lines follow
  }
  return machine;
}

/// From a group up to the root of its hierarchy: each has to hold.
void Restrict(const std::string& root, const Hierarchy& hierarchy, std::string group, SystemMemory* memory) {
  while (true) {
    const std::string directory = root + hierarchy.mount + group + "/";
    const std::optional<uint64_t> usage = ReadNumber(directory + hierarchy.usage);
    for (const char* const name : hierarchy.limits) {
      const std::optional<uint64_t> limit = name == nullptr ? std::nullopt : ReadNumber(directory + name);
      if (!limit || !usage) continue;
      memory->usable_bytes = std::min(memory->usable_bytes, *limit);
      memory->free_bytes = std::min(memory->free_bytes, *limit - std::min(*limit, *usage));
    }
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

SystemMemory ReadSystemMemory(const std::string& root) {
  SystemMemory memory = ReadMachine(root);
  // <number>:<controllers>:<group>; version 2 has neither number nor controllers. In a container the group may be named
  // as the host sees it, and not be there: its root, which is the container's own group, is looked at in any case.
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") Restrict(root, kVersion2, group, &memory);
    if (controllers.find(",memory,") != std::string::npos) Restrict(root, kVersion1, group, &memory);
  }
  return memory;
}

uint64_t UsableMemoryBytes() { return ReadSystemMemory().usable_bytes; }

}  // namespace quarry
