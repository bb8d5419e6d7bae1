// FiberScheduler: the threads of a simulated process, as fibres of one thread of the system. One runs until it comes to
// a scheduling point (a lock, a wait, a call of the disk, an atomic that publishes); then the seed says who goes on.
//
// Three ways to draw, by seed: anybody at any point; mostly the one that runs already; or by priorities that are drawn
// at the start and fall at a few points (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of
// finding bugs", ASPLOS 2010). Time stands still while anybody can go on, but for what the disk takes.
// Invariants: the same seed and the same code make the same schedule. When nobody can go on, now or later, it is a
// hang. After a failure the fibres are left as they are: nothing of theirs is destroyed. Thread-safety: one thread of
// the system.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/scheduling.h"
#include "simulation/model.h"
#include "simulation/violation.h"

namespace quarry::simulation {

class FiberScheduler final : public Scheduler {
 public:
  FiberScheduler(uint64_t seed, bool trace);
  ~FiberScheduler() override;
  FiberScheduler(const FiberScheduler&) = delete;
  FiberScheduler& operator=(const FiberScheduler&) = delete;

  /// Runs `body` as the first thread. What it starts must have ended when it ends. Nothing when all went well.
  [[nodiscard]] std::optional<Violation> Run(std::function<void()> body);
  /// Ends Run with `violation`; to be called by a thread.
  [[noreturn]] void Fail(const Violation& violation);

  // Scheduler
  void Pass(const char* what, const CodePlace& place) override;
  void Wait(const void* key, const char* what, const CodePlace& place) override;
  [[nodiscard]] bool WaitFor(const void* key, uint64_t micros, const char* what, const CodePlace& place) override;
  void Wake(const void* key, bool all) override;
  size_t Start(const char* name, std::function<void()> body) override;
  void Join(size_t thread) override;
  std::shared_ptr<void>& Scratch(const void* key) override;

  void Sleep(uint64_t micros, const char* what);
  /// The disk took so long; nobody waits for it by that alone.
  void Advance(uint64_t micros) { now_micros_ += micros; }
  [[nodiscard]] uint64_t now_micros() const { return now_micros_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] uint64_t switches() const { return switches_; }
  [[nodiscard]] uint64_t digest() const { return digest_; }
  [[nodiscard]] const std::string& name() const { return threads_[running_].name; }
  /// A line of the schedule, when it is printed.
  void Say(const std::string& line);
  [[nodiscard]] bool trace() const { return trace_; }

  /// Until LeaveCall the thread that runs goes on at every point.
  void EnterCall() { ++alone_; }
  void LeaveCall() { --alone_; }
  /// The same: while one lives, the thread that runs goes on at every point.
  class Alone {
   public:
    explicit Alone(FiberScheduler* scheduler) : scheduler_(scheduler) { ++scheduler_->alone_; }
    ~Alone() { --scheduler_->alone_; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    FiberScheduler* const scheduler_;
  };

 private:
  struct Fiber {
    std::string name;
    std::function<void()> body;
    enum class State : uint8_t { kReady, kWaiting, kEnded } state = State::kReady;
    const void* key = nullptr;     ///< of what it waits for
    uint64_t deadline_micros = 0;  ///< 0: none
    bool was_woken = false;        ///< not by its deadline
    bool is_entered = false;
    uint64_t priority = 0;
    const char* what = "";
    CodePlace place;
    void* stack = nullptr;
    ucontext_t entry{};
    jmp_buf context;
    std::map<const void*, std::shared_ptr<void>> scratch;
  };

  void Block(const void* key, uint64_t deadline_micros, const char* what, const CodePlace& place);
  /// The next to run; the running one too, if it is ready. Advances the time when nobody is.
  [[nodiscard]] size_t Choose();
  [[nodiscard]] size_t Draw();
  /// Somebody whose time has come is ready. False: there is nobody with a deadline.
  [[nodiscard]] bool ReachDeadline(uint64_t at_most_micros);
  void SwitchTo(size_t next);
  [[noreturn]] void Enter(Fiber* fiber);
  [[noreturn]] void End();
  static void EnterBody();
  [[nodiscard]] std::string Describe() const;
  void Mix(uint64_t word) { digest_ = (digest_ ^ word) * 0x100000001b3; }

  Dice dice_;
  const bool trace_;
  enum class Way : uint8_t { kAnybody, kSticky, kPriorities } way_ = Way::kAnybody;
  unsigned switch_percent_ = 100;  ///< kSticky: at a point, somebody else so often
  uint64_t change_one_in_ = 0;     ///< kPriorities: at a point, the running one falls behind all others so often

  std::deque<Fiber> threads_;
  std::vector<size_t> live_;
  size_t running_ = 0;
  uint64_t lowest_priority_ = UINT64_MAX / 2;
  uint64_t alone_ = 0;
  uint64_t now_micros_ = 1;
  uint64_t steps_ = 0;
  uint64_t switches_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325;
  std::vector<size_t> ready_;  ///< scratch of Draw
  jmp_buf outside_;
  std::optional<Violation> failure_;
};

}  // namespace quarry::simulation
