// TaskThreads: a task is run exactly when Submit said so, in order; the pause in which nothing runs; the bounds.
#include "context/task_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <vector>

namespace quarry {
namespace {

constexpr size_t kQueue = 1000;

/// A task that ends when it is told to.
class Gate {
 public:
  [[nodiscard]] std::function<void()> task() {
    return [this] {
      started_.set_value();
      opened_.get_future().wait();
      has_ended_ = true;
    };
  }
  void AwaitStart() { started_.get_future().wait(); }
  void Open() { opened_.set_value(); }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  std::promise<void> started_;
  std::promise<void> opened_;
  std::atomic<bool> has_ended_{false};
};

TEST(TaskThreadsTest, WithoutThreadsATaskRunsInsideTheCall) {
  TaskThreads threads("test", 0, 0);
  bool ran = false;
  EXPECT_TRUE(threads.Submit([&] { ran = true; }));
  EXPECT_TRUE(ran);
  threads.Stop();
  EXPECT_FALSE(threads.Submit([] { FAIL(); }));
}

TEST(TaskThreadsTest, ATaskThatFindsNoMemoryEndsAndTheNextOneRuns) {
  for (const size_t threads_max : {size_t{0}, size_t{1}}) {
    TaskThreads threads("test", threads_max, kQueue);
    bool ran = false;
    EXPECT_TRUE(threads.Submit([] { throw std::bad_alloc(); }));
    EXPECT_TRUE(threads.Submit([&ran] { ran = true; }));
    threads.Drain();
    EXPECT_TRUE(ran);
  }
}

/// There is no memory to take it along.
struct StarvingTask {
  StarvingTask() = default;
  StarvingTask(const StarvingTask&) { throw std::bad_alloc(); }
  void operator()() const { FAIL(); }
};

TEST(TaskThreadsTest, ATaskForWhichThereIsNoMemoryIsRefused) {
  for (const size_t threads_max : {size_t{0}, size_t{1}}) {
    TaskThreads threads("test", threads_max, kQueue);
    EXPECT_FALSE(threads.Submit(StarvingTask()));
    std::atomic<bool> ran{false};
    EXPECT_TRUE(threads.Submit([&ran] { ran = true; }));
    threads.Drain();
    EXPECT_TRUE(ran);
  }
}

TEST(TaskThreadsTest, OneThreadRunsTasksInOrder) {
  TaskThreads threads("test", 1, kQueue);
  std::vector<int> ran;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(threads.Submit([&ran, i] { ran.push_back(i); }));
  threads.Drain();
  ASSERT_EQ(ran.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ran[static_cast<size_t>(i)], i);
}

TEST(TaskThreadsTest, WithoutAQueueNoTaskIsTakenWhileAllThreadsAreAtWork) {
  TaskThreads threads("test", 2, 0);
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::atomic<int> ran{0};
  const auto task = [&] {
    ended.wait();
    ++ran;
  };
  EXPECT_TRUE(threads.Submit(task));
  EXPECT_TRUE(threads.Submit(task));
  EXPECT_FALSE(threads.Submit([] { FAIL(); }));
  end.set_value();
  // A thread comes round sooner or later.
  while (!threads.Submit([&] { ++ran; })) std::this_thread::yield();
  threads.Stop();
  EXPECT_EQ(ran, 3);
}

TEST(TaskThreadsTest, TheQueueIsBounded) {
  TaskThreads threads("test", 1, 3);
  Gate gate;
  std::atomic<int> ran{0};
  ASSERT_TRUE(threads.Submit(gate.task()));
  gate.AwaitStart();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(threads.Submit([&ran] { ++ran; }));
  EXPECT_FALSE(threads.Submit([] { FAIL(); }));
  gate.Open();
  threads.Drain();
  EXPECT_EQ(ran, 3);
}

TEST(TaskThreadsTest, WhatWasTakenIsRunBeforeStopReturns) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    int taken = 0;
    TaskThreads threads("test", 4, static_cast<size_t>(round % 2));
    for (int i = 0; i < 8; ++i) taken += threads.Submit([&] { ++ran; }) ? 1 : 0;
    threads.Stop();
    EXPECT_EQ(ran, taken);
    EXPECT_FALSE(threads.Submit([] { FAIL(); }));
  }
}

TEST(TaskThreadsTest, ManyCallersGetEachTaskRunOnce) {
  TaskThreads threads("test", 3, 0);
  std::atomic<uint64_t> ran{0};
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (threads.Submit([&] { ++ran; })) ++taken;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  threads.Stop();
  EXPECT_EQ(ran, taken);
  EXPECT_GT(taken, 0U);
}

TEST(TaskThreadsTest, PauseWaitsForTheRunningTask) {
  TaskThreads threads("test", 1, kQueue);
  Gate gate;
  ASSERT_TRUE(threads.Submit(gate.task()));
  gate.AwaitStart();
  bool had_ended_when_paused = false;
  std::thread pauser([&] {
    threads.Pause();
    had_ended_when_paused = gate.has_ended();
  });
  gate.Open();
  pauser.join();
  EXPECT_TRUE(had_ended_when_paused);
  threads.Resume();
}

TEST(TaskThreadsTest, NothingRunsBetweenPauseAndItsResume) {
  TaskThreads threads("test", 0, 0);
  int ran = 0;
  threads.Pause();
  threads.Pause();
  EXPECT_FALSE(threads.Submit([&ran] { ++ran; }));
  threads.Resume();
  EXPECT_FALSE(threads.Submit([&ran] { ++ran; })) << "one pause is still on";
  threads.Resume();
  EXPECT_EQ(ran, 0) << "nothing is queued, however long a pause lasts";
  ASSERT_TRUE(threads.Submit([&ran] { ++ran; }));
  EXPECT_EQ(ran, 1);
}

TEST(TaskThreadsTest, WhatWasQueuedBeforeAPauseRunsBehindIt) {
  TaskThreads threads("test", 1, kQueue * kQueue);
  Gate gate;
  std::atomic<int> ran{0};
  ASSERT_TRUE(threads.Submit(gate.task()));
  gate.AwaitStart();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(threads.Submit([&ran] { ++ran; }));
  std::thread pauser([&] { threads.Pause(); });
  while (threads.Submit([&ran] { ++ran; })) std::this_thread::yield();
  EXPECT_EQ(ran, 0);
  gate.Open();
  pauser.join();
  EXPECT_EQ(ran, 0);
  threads.Resume();
  threads.Drain();
  EXPECT_GE(ran, 5);
}

TEST(TaskThreadsTest, StopEndsAPause) {
  TaskThreads threads("test", 1, kQueue);
  std::atomic<int> ran{0};
  threads.Pause();
  threads.Stop();
  threads.Resume();
  EXPECT_FALSE(threads.Submit([&ran] { ++ran; }));
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace quarry
