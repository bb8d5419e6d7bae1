// The golden files as tests read them. Thread-safety: functions of the files.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace quarry {

inline std::vector<uint8_t> ReadGolden(const std::string& name) {
  std::ifstream file(std::string(QUARRY_SOURCE_DIR) + "/tests/golden/v1/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name << " is missing";
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace quarry
