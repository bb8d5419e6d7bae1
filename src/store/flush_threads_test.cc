// FlushThreads: a task is run exactly when TryRun said so, and none after Stop.
#include "store/flush_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace quarry {
namespace {

TEST(FlushThreadsTest, WithoutThreadsATaskRunsInsideTheCall) {
  FlushThreads threads(false, 4);
  bool ran = false;
  EXPECT_TRUE(threads.TryRun([&] { ran = true; }));
  EXPECT_TRUE(ran);
  threads.Stop();
  EXPECT_FALSE(threads.TryRun([] { FAIL(); }));
}

TEST(FlushThreadsTest, NoTaskIsTakenWhileAllThreadsAreAtWork) {
  FlushThreads threads(true, 2);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> ran{0};
  const auto task = [&] {
    ended.wait();
    ++ran;
  };
  EXPECT_TRUE(threads.TryRun(task));
  EXPECT_TRUE(threads.TryRun(task));
  EXPECT_FALSE(threads.TryRun([] { FAIL(); }));
  end.set_value();
  // A thread comes round sooner or later.
  while (!threads.TryRun([&] { ++ran; })) std::this_thread::yield();
  threads.Stop();
  EXPECT_EQ(ran, 3);
}

TEST(FlushThreadsTest, WhatWasTakenIsRunBeforeStopReturns) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    int taken = 0;
    FlushThreads threads(true, 4);
    for (int i = 0; i < 8; ++i) taken += threads.TryRun([&] { ++ran; }) ? 1 : 0;
    threads.Stop();
    EXPECT_EQ(ran, taken);
    EXPECT_FALSE(threads.TryRun([] { FAIL(); }));
  }
}

TEST(FlushThreadsTest, ManyCallersGetEachTaskRunOnce) {
  FlushThreads threads(true, 3);
  std::atomic<uint64_t> ran{0};
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (threads.TryRun([&] { ++ran; })) ++taken;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  threads.Stop();
  EXPECT_EQ(ran, taken);
  EXPECT_GT(taken, 0U);
}

}  // namespace
}  // namespace quarry
