// Maintenance: order, draining, and the pause in which nothing runs.
#include "store/maintenance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace quarry {
namespace {

TEST(Maintenance, RunsTasksInOrder) {
  Maintenance maintenance(true);
  std::vector<int> ran;  // by the one background thread
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(maintenance.Submit([&ran, i] { ran.push_back(i); }));
  maintenance.Drain();
  ASSERT_EQ(ran.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ran[static_cast<size_t>(i)], i);
}

TEST(Maintenance, PauseWaitsForTheRunningTask) {
  Maintenance maintenance(true);
  std::promise<void> started;
  std::promise<void> may_end;
  std::atomic<bool> ended{false};
  ASSERT_TRUE(maintenance.Submit([&] {
    started.set_value();
    may_end.get_future().wait();
    ended = true;
  }));
  started.get_future().wait();
  bool ended_when_paused = false;
  std::thread pauser([&] {
    maintenance.Pause();
    ended_when_paused = ended;
  });
  may_end.set_value();
  pauser.join();
  EXPECT_TRUE(ended_when_paused);
  maintenance.Resume();
}

TEST(Maintenance, NothingRunsBetweenPauseAndItsResume) {
  Maintenance maintenance(false);
  int ran = 0;
  maintenance.Pause();
  maintenance.Pause();
  EXPECT_FALSE(maintenance.Submit([&ran] { ++ran; }));
  maintenance.Resume();
  EXPECT_FALSE(maintenance.Submit([&ran] { ++ran; })) << "one pause is still on";
  maintenance.Resume();
  EXPECT_EQ(ran, 0) << "nothing is queued, however long a pause lasts";
  ASSERT_TRUE(maintenance.Submit([&ran] { ++ran; }));
  EXPECT_EQ(ran, 1);
}

TEST(Maintenance, WhatWasQueuedBeforeAPauseRunsBehindIt) {
  Maintenance maintenance(true);
  std::promise<void> started;
  std::promise<void> may_end;
  std::atomic<int> ran{0};
  ASSERT_TRUE(maintenance.Submit([&] {
    started.set_value();
    may_end.get_future().wait();
  }));
  started.get_future().wait();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(maintenance.Submit([&ran] { ++ran; }));
  std::thread pauser([&] { maintenance.Pause(); });
  while (maintenance.Submit([&ran] { ++ran; })) std::this_thread::yield();
  const int before = ran;
  EXPECT_EQ(before, 0);
  may_end.set_value();
  pauser.join();
  EXPECT_EQ(ran, 0);
  maintenance.Resume();
  maintenance.Drain();
  EXPECT_GE(ran, 5);
}

TEST(Maintenance, StopEndsAPause) {
  Maintenance maintenance(true);
  std::atomic<int> ran{0};
  maintenance.Pause();
  maintenance.Stop();
  maintenance.Resume();
  EXPECT_FALSE(maintenance.Submit([&ran] { ++ran; }));
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace quarry
