// Who is waited for, and who is not.
#include "transaction/append_gate.h"

#include <gtest/gtest.h>

#include <optional>

namespace quarry {
namespace {

TEST(AppendGate, WaitsForWhoIsInside) {
  AppendGate gate;
  AppendGate::Member member(&gate);
  EXPECT_TRUE(gate.AllPast(gate.Ticket()));
  member.Enter();
  const uint64_t ticket = gate.Ticket();
  EXPECT_FALSE(gate.AllPast(ticket));
  member.Leave();
  EXPECT_TRUE(gate.AllPast(ticket));
}

TEST(AppendGate, NotForWhoEntersLater) {
  AppendGate gate;
  AppendGate::Member member(&gate);
  const uint64_t ticket = gate.Ticket();
  const AppendGate::Stay stay(&member);
  EXPECT_TRUE(gate.AllPast(ticket));
  EXPECT_FALSE(gate.AllPast(gate.Ticket()));
}

TEST(AppendGate, AStayInsideAStayDoesNotEndIt) {
  AppendGate gate;
  AppendGate::Member member(&gate);
  const AppendGate::Stay outer(&member);
  const uint64_t ticket = gate.Ticket();
  { const AppendGate::Stay inner(&member); }
  EXPECT_FALSE(gate.AllPast(ticket));
}

TEST(AppendGate, WhoIsGoneIsPast) {
  AppendGate gate;
  std::optional<AppendGate::Member> member(std::in_place, &gate);
  member->Enter();
  const uint64_t ticket = gate.Ticket();
  EXPECT_FALSE(gate.AllPast(ticket));
  member.reset();
  EXPECT_TRUE(gate.AllPast(ticket));
}

}  // namespace
}  // namespace quarry
