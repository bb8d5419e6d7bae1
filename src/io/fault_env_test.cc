// FaultEnv: the n-th call fails as planned, counts are right, hooks see and block calls.
#include "io/fault_env.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "io/memory_env.h"

namespace quarry {
namespace {

class FaultEnvTest : public testing::Test {
 protected:
  MemoryEnv memory_;
  FaultEnv env_{&memory_};
  AlignedBuffer block_{4096};
};

TEST_F(FaultEnvTest, FailsTheNthCallOnce) {
  env_.FailCall(CallKind::kSync, 2, EIO);
  auto file = env_.CreateFile("/f").value();
  EXPECT_TRUE(file->Sync().ok());
  const Status status = file->Sync();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_EQ(status.system_errno(), EIO);
  EXPECT_NE(status.message().find("/f"), std::string::npos);
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(env_.CountOf(CallKind::kSync), 3U);
}

TEST_F(FaultEnvTest, FailsFromThenOnUntilCleared) {
  auto file = env_.CreateFile("/f").value();
  EXPECT_TRUE(file->WriteAt(0, block_.span()).ok());
  env_.FailCall(CallKind::kWrite, 1, ENOSPC, true);
  EXPECT_EQ(file->WriteAt(4096, block_.span()).code(), StatusCode::kNoSpace);
  EXPECT_EQ(file->WriteAt(4096, block_.span()).code(), StatusCode::kNoSpace);
  EXPECT_EQ(memory_.OpenForRead("/f").value()->SizeBytes().value(), 4096U) << "a failed write writes nothing";
  env_.ClearFailures();
  EXPECT_TRUE(file->WriteAt(4096, block_.span()).ok());
  EXPECT_EQ(env_.CountOf(CallKind::kWrite), 4U);
  EXPECT_EQ(env_.BytesOf(CallKind::kWrite), 4U * 4096);
}

TEST_F(FaultEnvTest, AShortWriteLeavesItsBeginning) {
  auto file = env_.CreateFile("/f").value();
  AlignedBuffer buffer(16384);
  std::fill(buffer.span().begin(), buffer.span().end(), uint8_t{7});
  env_.ShortWrite(1, 5000, EIO);
  EXPECT_EQ(file->WriteAt(0, buffer.span()).code(), StatusCode::kIoError);
  EXPECT_EQ(memory_.OpenForRead("/f").value()->SizeBytes().value(), 4096U) << "whole blocks only";
  EXPECT_TRUE(file->WriteAt(0, buffer.span()).ok());
}

TEST_F(FaultEnvTest, EveryKindOfCallCanFail) {
  ASSERT_TRUE(memory_.CreateDirectory("/d").ok());
  auto writer = env_.CreateFile("/f").value();
  auto reader = env_.OpenForRead("/f").value();
  const std::vector<std::pair<CallKind, std::function<Status()>>> calls = {
      {CallKind::kCreate, [&] { return env_.CreateFile("/g").status(); }},
      {CallKind::kOpen, [&] { return env_.OpenForRead("/f").status(); }},
      {CallKind::kOpen, [&] { return env_.OpenForWrite("/f").status(); }},
      {CallKind::kRead, [&] { return reader->ReadAt(0, block_.span()).status(); }},
      {CallKind::kRead, [&] { return reader->ReadBatch({}); }},
      {CallKind::kRead, [&] { return env_.ReadSmallFile("/f", 100).status(); }},
      {CallKind::kWrite, [&] { return writer->WriteAt(0, block_.span()); }},
      {CallKind::kSync, [&] { return writer->Sync(); }},
      {CallKind::kTruncate, [&] { return writer->Truncate(0); }},
      {CallKind::kAllocate, [&] { return writer->Allocate(0, 4096); }},
      {CallKind::kPunchHole, [&] { return writer->PunchHole(0, 4096); }},
      {CallKind::kReplace, [&] { return env_.ReplaceFile("/m", block_.span()); }},
      {CallKind::kCreateDirectory, [&] { return env_.CreateDirectory("/d"); }},
      {CallKind::kSyncDirectory, [&] { return env_.SyncDirectory("/d"); }},
      {CallKind::kList, [&] { return env_.ListDirectory("/d").status(); }},
      {CallKind::kList, [&] { return env_.FileExists("/d").status(); }},
      {CallKind::kList, [&] { return reader->SizeBytes().status(); }},
      {CallKind::kList, [&] { return reader->AllocatedBytes().status(); }},
      {CallKind::kRename, [&] { return env_.Rename("/d", "/e"); }},
      {CallKind::kRemove, [&] { return env_.RemoveFile("/f"); }},
      {CallKind::kRemove, [&] { return env_.RemoveDirectory("/e"); }},
      {CallKind::kClose, [&] { return writer->Close(); }},
  };
  for (const auto& [kind, call] : calls) {
    const uint64_t before = env_.CountOf(kind);
    env_.FailCall(kind, 1, EACCES);
    EXPECT_EQ(call().system_errno(), EACCES) << static_cast<int>(kind);
    const Status status = call();
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(env_.CountOf(kind), before + 2);
  }
}

TEST_F(FaultEnvTest, AReopenedFileFailsAsACreatedOneDoes) {
  ASSERT_TRUE(env_.CreateFile("/f").ok());
  auto writer = env_.OpenForWrite("/f").value();
  const std::vector<std::pair<CallKind, std::function<Status()>>> calls = {
      {CallKind::kWrite, [&] { return writer->WriteAt(0, block_.span()); }},
      {CallKind::kSync, [&] { return writer->Sync(); }},
      {CallKind::kTruncate, [&] { return writer->Truncate(8192); }},
      {CallKind::kAllocate, [&] { return writer->Allocate(0, 16384); }},
      {CallKind::kPunchHole, [&] { return writer->PunchHole(0, 4096); }},
      {CallKind::kClose, [&] { return writer->Close(); }},
  };
  for (const auto& [kind, call] : calls) {
    env_.FailCall(kind, 1, EIO);
    EXPECT_EQ(call().system_errno(), EIO) << static_cast<int>(kind);
    EXPECT_EQ(env_.CountOf(kind), 1U);
  }
  EXPECT_EQ(memory_.OpenForRead("/f").value()->SizeBytes().value(), 0U) << "a failed call does nothing";
}

TEST_F(FaultEnvTest, HooksSeeCallsAndMayRefuseThem) {
  std::vector<Call> seen;
  env_.SetHook([&](const Call& call) {
    seen.push_back(call);
    return call.offset_bytes == 8192 ? Status::Unavailable("refused by the hook") : Status::Ok();
  });
  auto file = env_.CreateFile("/f").value();
  EXPECT_TRUE(file->WriteAt(4096, block_.span()).ok());
  EXPECT_EQ(file->WriteAt(8192, block_.span()).code(), StatusCode::kUnavailable);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].kind, CallKind::kCreate);
  EXPECT_EQ(seen[1].path, "/f");
  EXPECT_EQ(seen[1].offset_bytes, 4096U);
  EXPECT_EQ(seen[1].size_bytes, 4096U);
  EXPECT_EQ(seen[2].number, 2U);
  env_.SetHook({});
  EXPECT_TRUE(file->WriteAt(8192, block_.span()).ok());
  EXPECT_EQ(seen.size(), 3U);
}

TEST_F(FaultEnvTest, AHookCanHoldOneCallWhileOthersRun) {
  Mutex mutex;
  CondVar changed;
  bool arrived = false;
  bool released = false;
  env_.SetHook([&](const Call& call) {
    if (call.kind != CallKind::kSync) return Status::Ok();
    MutexLock lock(mutex);
    arrived = true;
    changed.NotifyAll();
    while (!released) changed.Wait(mutex);
    return Status::Ok();
  });
  auto file = env_.CreateFile("/f").value();
  Status synced = Status::Unavailable("not yet");
  std::thread thread([&] { synced = file->Sync(); });
  {
    MutexLock lock(mutex);
    while (!arrived) changed.Wait(mutex);
  }
  EXPECT_TRUE(file->WriteAt(0, block_.span()).ok()) << "a write goes on while the flush is held";
  {
    MutexLock lock(mutex);
    released = true;
    changed.NotifyAll();
  }
  thread.join();
  EXPECT_TRUE(synced.ok());
}

}  // namespace
}  // namespace quarry
