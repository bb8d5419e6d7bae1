// What MemoryEnv's power cut keeps and drops.
#include "io/memory_env.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"

namespace quarry {
namespace {

constexpr uint64_t kDropAll = 0;
constexpr uint64_t kKeepAll = UINT64_MAX;

AlignedBuffer Filled(size_t size, uint8_t byte) {
  AlignedBuffer buffer(size);
  std::fill(buffer.span().begin(), buffer.span().end(), byte);
  return buffer;
}

// A durable, empty file.
std::unique_ptr<WritableFile> DurableFile(MemoryEnv* env, const std::string& path) {
  auto file = env->CreateFile(path).value();
  EXPECT_TRUE(env->SyncDirectory("/").ok());
  return file;
}

std::vector<uint8_t> Content(MemoryEnv* env, const std::string& path) {
  auto file = env->OpenForRead(path).value();
  std::vector<uint8_t> bytes(file->SizeBytes().value());
  EXPECT_EQ(file->ReadAt(0, bytes).value(), bytes.size());
  return bytes;
}

TEST(MemoryEnvTest, SyncedBytesSurviveAndUnsyncedMayNot) {
  MemoryEnv env;
  auto file = DurableFile(&env, "/f");
  ASSERT_TRUE(file->WriteAt(0, Filled(4096, 1).span()).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->WriteAt(0, Filled(8192, 2).span()).ok());
  env.PowerCut(kDropAll);
  EXPECT_EQ(Content(&env, "/f"), std::vector<uint8_t>(4096, 1));
  EXPECT_EQ(file->WriteAt(0, Filled(4096, 3).span()).system_errno(), EIO) << "a handle of before the cut is dead";
  EXPECT_EQ(file->Sync().system_errno(), EIO);

  file = env.OpenForWrite("/f").value();
  ASSERT_TRUE(file->WriteAt(0, Filled(8192, 2).span()).ok());
  env.PowerCut(kKeepAll);
  EXPECT_EQ(Content(&env, "/f"), std::vector<uint8_t>(8192, 2));
}

TEST(MemoryEnvTest, EverySectorIsOldOrNewAndBothOccur) {
  std::set<uint8_t> seen;
  bool torn_block = false;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    MemoryEnv env;
    auto file = DurableFile(&env, "/f");
    ASSERT_TRUE(file->WriteAt(0, Filled(16384, 1).span()).ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->WriteAt(0, Filled(16384, 2).span()).ok());
    ASSERT_TRUE(file->WriteAt(4096, Filled(4096, 3).span()).ok());
    env.PowerCut(seed);
    const std::vector<uint8_t> bytes = Content(&env, "/f");
    ASSERT_EQ(bytes.size(), 16384U);
    for (size_t sector = 0; sector < bytes.size(); sector += 512) {
      const uint8_t first = bytes[sector];
      ASSERT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(sector),
                              bytes.begin() + static_cast<ptrdiff_t>(sector) + 512,
                              [&](uint8_t byte) { return byte == first; }));
      const bool rewritten_twice = sector / 4096 == 1;
      ASSERT_TRUE(first == 1 || first == 2 || (first == 3 && rewritten_twice)) << int{first};
      seen.insert(first);
      torn_block = torn_block || (sector % 4096 != 0 && first != bytes[sector - 512]);
    }
  }
  EXPECT_EQ(seen, (std::set<uint8_t>{1, 2, 3}));
  EXPECT_TRUE(torn_block);
}

TEST(MemoryEnvTest, TheSizeMaySurviveWithoutTheBytes) {
  std::set<std::pair<uint64_t, uint8_t>> outcomes;  // size, and what the last byte of the first block says
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    MemoryEnv env;
    auto file = DurableFile(&env, "/f");
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->WriteAt(0, Filled(4096, 1).span()).ok());
    ASSERT_TRUE(file->WriteAt(4096, Filled(4096, 1).span()).ok());
    env.PowerCut(seed);
    const std::vector<uint8_t> bytes = Content(&env, "/f");
    outcomes.emplace(bytes.size(), bytes.empty() ? uint8_t{0} : bytes[4095]);
  }
  EXPECT_EQ(outcomes, (std::set<std::pair<uint64_t, uint8_t>>{{0, 0}, {4096, 0}, {4096, 1}, {8192, 0}, {8192, 1}}));
}

TEST(MemoryEnvTest, AnAllocationMayOutliveWhatWasWrittenIntoIt) {
  std::set<std::pair<uint64_t, uint8_t>> outcomes;  // size, and the first byte
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    MemoryEnv env;
    auto file = DurableFile(&env, "/f");
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->Allocate(0, 16384).ok());
    ASSERT_TRUE(file->WriteAt(0, Filled(4096, 1).span()).ok());
    env.PowerCut(seed);
    const std::vector<uint8_t> bytes = Content(&env, "/f");
    ASSERT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(std::min<size_t>(bytes.size(), 4096)), bytes.end(),
                            [](uint8_t byte) { return byte == 0; }));
    outcomes.emplace(bytes.size(), bytes.empty() ? uint8_t{0} : bytes[0]);
  }
  EXPECT_EQ(outcomes, (std::set<std::pair<uint64_t, uint8_t>>{{0, 0}, {16384, 0}, {16384, 1}}));
  MemoryEnv env;
  auto file = DurableFile(&env, "/f");
  ASSERT_TRUE(file->Allocate(0, 16384).ok());
  ASSERT_TRUE(file->Sync().ok());
  env.PowerCut(kDropAll);
  EXPECT_EQ(Content(&env, "/f"), std::vector<uint8_t>(16384, 0)) << "a flush makes the size durable";
  EXPECT_EQ(env.OpenForRead("/f").value()->AllocatedBytes().value(), 16384U);
}

TEST(MemoryEnvTest, TheSameSeedGivesTheSameOutcome) {
  const auto outcome = [](uint64_t seed) {
    MemoryEnv env;
    auto file = DurableFile(&env, "/f");
    EXPECT_TRUE(file->WriteAt(0, Filled(65536, 1).span()).ok());
    env.PowerCut(seed);
    return Content(&env, "/f");
  };
  std::set<std::vector<uint8_t>> different;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(outcome(seed), outcome(seed));
    different.insert(outcome(seed));
  }
  EXPECT_GT(different.size(), 5U);
}

TEST(MemoryEnvTest, ANameIsDurableOnlyAfterSyncDirectory) {
  std::set<bool> outcomes;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    MemoryEnv env;
    auto file = env.CreateFile("/f").value();
    ASSERT_TRUE(file->WriteAt(0, Filled(4096, 1).span()).ok());
    ASSERT_TRUE(file->Sync().ok());
    env.PowerCut(seed);
    const bool exists = env.FileExists("/f").value();
    outcomes.insert(exists);
    if (exists) {
      EXPECT_EQ(Content(&env, "/f"), std::vector<uint8_t>(4096, 1)) << "its bytes were synced";
    }
  }
  EXPECT_EQ(outcomes, (std::set<bool>{false, true}));
  MemoryEnv env;
  ASSERT_TRUE(env.CreateFile("/f").ok());
  ASSERT_TRUE(env.SyncDirectory("/").ok());
  env.PowerCut(kDropAll);
  EXPECT_TRUE(env.FileExists("/f").value());
}

TEST(MemoryEnvTest, WhatStandsInALostDirectoryIsLost) {
  MemoryEnv env;
  ASSERT_TRUE(env.CreateDirectory("/d").ok());
  ASSERT_TRUE(env.CreateFile("/d/f").ok());
  ASSERT_TRUE(env.SyncDirectory("/d").ok());
  env.PowerCut(kDropAll);
  EXPECT_FALSE(env.FileExists("/d").value()) << "its parent was not synced";
}

TEST(MemoryEnvTest, ARemovedNameMayComeBack) {
  std::set<bool> outcomes;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    MemoryEnv env;
    auto file = DurableFile(&env, "/f");
    ASSERT_TRUE(file->WriteAt(0, Filled(4096, 1).span()).ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(env.RemoveFile("/f").ok());
    env.PowerCut(seed);
    const bool exists = env.FileExists("/f").value();
    outcomes.insert(exists);
    if (exists) {
      EXPECT_EQ(Content(&env, "/f"), std::vector<uint8_t>(4096, 1));
    }
  }
  EXPECT_EQ(outcomes, (std::set<bool>{false, true}));
}

TEST(MemoryEnvTest, ARenameIsNeverHalfDone) {
  for (const int synced : {0, 1, 2, 3}) {  // bit 0: source directory, bit 1: target directory
    std::set<bool> moved;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      MemoryEnv env;
      for (const char* directory : {"/a", "/b"}) ASSERT_TRUE(env.CreateDirectory(directory).ok());
      ASSERT_TRUE(env.CreateDirectory("/a/d").ok());
      ASSERT_TRUE(env.CreateFile("/a/d/f").ok());
      for (const char* directory : {"/", "/a", "/a/d"}) ASSERT_TRUE(env.SyncDirectory(directory).ok());
      ASSERT_TRUE(env.Rename("/a/d", "/b/d").ok());
      if ((synced & 1) != 0) {
        ASSERT_TRUE(env.SyncDirectory("/a").ok());
      }
      if ((synced & 2) != 0) {
        ASSERT_TRUE(env.SyncDirectory("/b").ok());
      }
      env.PowerCut(seed);
      const bool at_source = env.FileExists("/a/d/f").value();
      const bool at_target = env.FileExists("/b/d/f").value();
      ASSERT_NE(at_source, at_target) << "seed " << seed;
      moved.insert(at_target);
    }
    EXPECT_EQ(moved, synced == 3 ? std::set<bool>{true} : (std::set<bool>{false, true})) << synced;
  }
}

TEST(MemoryEnvTest, ReplaceFileIsDurableWhenItReturns) {
  MemoryEnv env;
  const std::vector<uint8_t> first(100, 1);
  const std::vector<uint8_t> second(5000, 2);
  ASSERT_TRUE(env.ReplaceFile("/m", first).ok());
  env.PowerCut(kDropAll);
  EXPECT_EQ(Content(&env, "/m"), first);
  ASSERT_TRUE(env.ReplaceFile("/m", second).ok());
  env.PowerCut(kDropAll);
  EXPECT_EQ(Content(&env, "/m"), second);
}

TEST(MemoryEnvTest, UnalignedWritesAreRefused) {
  MemoryEnv env;
  auto file = env.CreateFile("/f").value();
  const AlignedBuffer buffer = Filled(8192, 1);
  EXPECT_EQ(file->WriteAt(512, buffer.span()).system_errno(), EINVAL);
  EXPECT_EQ(file->WriteAt(0, buffer.span().first(100)).system_errno(), EINVAL);
  EXPECT_EQ(file->WriteAt(0, buffer.span().subspan(512, 4096)).system_errno(), EINVAL);
  EXPECT_EQ(file->PunchHole(0, 100).system_errno(), EINVAL);
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(file->WriteAt(0, buffer.span()).system_errno(), EBADF);
}

TEST(MemoryEnvTest, CapacityIsEnforcedAndComesBack) {
  MemoryEnv env;
  env.SetCapacityBytes(16384);
  auto file = DurableFile(&env, "/f");
  EXPECT_TRUE(file->WriteAt(0, Filled(16384, 1).span()).ok());
  EXPECT_TRUE(file->WriteAt(0, Filled(16384, 2).span()).ok()) << "writing over takes no more";
  EXPECT_EQ(file->WriteAt(16384, Filled(4096, 1).span()).code(), StatusCode::kNoSpace);
  const std::vector<uint8_t> one(1);
  EXPECT_EQ(env.ReplaceFile("/m", one).code(), StatusCode::kNoSpace);
  EXPECT_EQ(env.OpenForRead("/f").value()->SizeBytes().value(), 16384U) << "a refused write leaves no trace";
  EXPECT_EQ(file->Allocate(16384, 4096).code(), StatusCode::kNoSpace);
  EXPECT_EQ(env.OpenForRead("/f").value()->SizeBytes().value(), 16384U) << "nor does a refused allocation";
  EXPECT_TRUE(file->PunchHole(0, 8192).ok());
  EXPECT_TRUE(file->WriteAt(16384, Filled(4096, 1).span()).ok());
  EXPECT_TRUE(env.ReplaceFile("/m", one).ok());
}

TEST(MemoryEnvTest, FlippedBitsStay) {
  MemoryEnv env;
  auto file = DurableFile(&env, "/f");
  ASSERT_TRUE(file->WriteAt(0, Filled(4096, 0).span()).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(env.FlipBit("/f", 100, 3));
  EXPECT_FALSE(env.FlipBit("/f", 4096, 0));
  EXPECT_FALSE(env.FlipBit("/g", 0, 0));
  EXPECT_EQ(Content(&env, "/f")[100], 8);
  env.PowerCut(kDropAll);
  EXPECT_EQ(Content(&env, "/f")[100], 8);
}

TEST(MemoryEnvTest, TimeMovesOnlyByHand) {
  MemoryEnv env;
  const uint64_t before = env.NowMicros();
  EXPECT_EQ(env.NowMicros(), before);
  env.AdvanceMicros(1000);
  EXPECT_EQ(env.NowMicros(), before + 1000);
}

}  // namespace
}  // namespace quarry
