#include "simulation/threads/fiber_scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace quarry::simulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kGuardBytes = 4096;
/// A history has some thousand points; one with this many goes round in circles.
constexpr uint64_t kStepsMax = 100'000;
/// A wait of at most this long may end at any moment: nobody knows how long the others take.
constexpr uint64_t kShortWaitMicros = 10'000;

/// Stacks are used again: to map one costs more than all else that a thread does.
std::vector<void*>& FreeStacks() {
  static std::vector<void*> free;
  return free;
}

void* TakeStack() {
  std::vector<void*>& free = FreeStacks();
  if (!free.empty()) {
    void* const stack = free.back();
    free.pop_back();
    return stack;
  }
  void* const stack =
      ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || ::mprotect(stack, kGuardBytes, PROT_NONE) != 0) {
    std::perror("stack of a simulated thread");
    std::abort();
  }
  return stack;
}

std::string PlaceName(const CodePlace& place) {
  const char* const slash = std::strrchr(place.file_name(), '/');
  return std::string(slash == nullptr ? place.file_name() : slash + 1) + ":" + std::to_string(place.line());
}

}  // namespace

FiberScheduler::FiberScheduler(uint64_t seed, bool trace) : dice_(seed), trace_(trace) {
  const uint64_t drawn = dice_.Below(100);
  if (drawn < 25) return;
  if (drawn < 65) {
    way_ = Way::kSticky;
    switch_percent_ = dice_.OneOf<unsigned>({3, 10, 30});
  } else {
    way_ = Way::kPriorities;
    change_one_in_ = dice_.OneOf<uint64_t>({20, 100, 400});
  }
}

FiberScheduler::~FiberScheduler() { Scheduler::current = nullptr; }

std::optional<Violation> FiberScheduler::Run(std::function<void()> body) {
  Scheduler::current = this;
  (void)Start("main", std::move(body));
  running_ = 0;
  if (_setjmp(outside_) == 0) Enter(&threads_[0]);
  Scheduler::current = nullptr;
  return failure_;
}

void FiberScheduler::Fail(const Violation& violation) {
  failure_ = violation;
  if (trace_) std::printf("%s", Describe().c_str());
  _longjmp(outside_, 1);
}

// ---- threads ----

size_t FiberScheduler::Start(const char* name, std::function<void()> body) {
  const size_t number = threads_.size();
  Fiber& fiber = threads_.emplace_back();
  fiber.name = std::string(name) + (number == 0 ? "" : " " + std::to_string(number));
  fiber.body = std::move(body);
  fiber.priority = UINT64_MAX / 2 + dice_.Below(1 << 20);
  fiber.stack = TakeStack();
  (void)::getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = static_cast<uint8_t*>(fiber.stack) + kGuardBytes;
  fiber.entry.uc_stack.ss_size = kStackBytes - kGuardBytes;
  fiber.entry.uc_link = nullptr;
  ::makecontext(&fiber.entry, &FiberScheduler::EnterBody, 0);
  live_.push_back(number);
  return number;
}

void FiberScheduler::EnterBody() {
  auto* const self = static_cast<FiberScheduler*>(Scheduler::current);
  {
    const std::function<void()> body = std::move(self->threads_[self->running_].body);
    body();
  }
  self->End();
}

void FiberScheduler::End() {
  Fiber& fiber = threads_[running_];
  Say("ends");
  fiber.scratch.clear();
  fiber.state = Fiber::State::kEnded;
  // Its stack is in use until the next thread runs, and nobody takes it before.
  FreeStacks().push_back(fiber.stack);
  std::erase(live_, running_);
  Wake(&fiber, true);
  if (running_ == 0) {
    if (!live_.empty()) failure_.emplace(kThreadsEnd, "the process ended, and not all of its threads\n" + Describe());
    _longjmp(outside_, 1);
  }
  running_ = Choose();
  Enter(&threads_[running_]);
}

void FiberScheduler::Join(size_t thread) {
  while (threads_[thread].state != Fiber::State::kEnded) Wait(&threads_[thread], "join", CodePlace::current());
}

std::shared_ptr<void>& FiberScheduler::Scratch(const void* key) { return threads_[running_].scratch[key]; }

void FiberScheduler::Enter(Fiber* fiber) {
  if (std::exchange(fiber->is_entered, true)) _longjmp(fiber->context, 1);
  (void)::setcontext(&fiber->entry);
  std::abort();
}

void FiberScheduler::SwitchTo(size_t next) {
  if (next == running_) return;
  ++switches_;
  Mix(next + (steps_ << 8U));
  Fiber* const from = &threads_[running_];
  running_ = next;
  if (_setjmp(from->context) == 0) Enter(&threads_[next]);
}

// ---- points ----

void FiberScheduler::Pass(const char* what, const CodePlace& place) {
  if (alone_ > 0) return;
  if (++steps_ > kStepsMax) Fail(Violation(kNobodyWaitsForEver, "no end after so many steps\n" + Describe()));
  Fiber& fiber = threads_[running_];
  fiber.what = what;
  fiber.place = place;
  const size_t next = Choose();
  if (next != running_ && trace_) Say(std::string("before ") + what + " at " + PlaceName(place));
  SwitchTo(next);
  if (trace_) Say(std::string(what) + " at " + PlaceName(place));
}

void FiberScheduler::Block(const void* key, uint64_t deadline_micros, const char* what, const CodePlace& place) {
  if (alone_ > 0) Fail(Violation(kNobodyWaitsForEver, "waits inside a call of the disk"));
  if (++steps_ > kStepsMax) Fail(Violation(kNobodyWaitsForEver, "no end after so many steps\n" + Describe()));
  Fiber& fiber = threads_[running_];
  fiber.state = Fiber::State::kWaiting;
  fiber.key = key;
  fiber.deadline_micros = deadline_micros;
  fiber.was_woken = false;
  fiber.what = what;
  fiber.place = place;
  if (trace_) Say(std::string("waits: ") + what + " at " + PlaceName(place));
  SwitchTo(Choose());
  if (trace_) Say(std::string("goes on: ") + what + " at " + PlaceName(place));
}

void FiberScheduler::Wait(const void* key, const char* what, const CodePlace& place) { Block(key, 0, what, place); }

bool FiberScheduler::WaitFor(const void* key, uint64_t micros, const char* what, const CodePlace& place) {
  Block(key, now_micros_ + micros, what, place);
  return threads_[running_].was_woken;
}

void FiberScheduler::Sleep(uint64_t micros, const char* what) {
  const uint64_t until = now_micros_ + micros;
  while (now_micros_ < until) Block(nullptr, until, what, CodePlace::current());
}

void FiberScheduler::Wake(const void* key, bool all) {
  const auto wakes = [&](size_t number) {
    return threads_[number].state == Fiber::State::kWaiting && threads_[number].key == key;
  };
  const auto wake = [&](size_t number) {
    threads_[number].state = Fiber::State::kReady;
    threads_[number].was_woken = true;
  };
  if (all) {
    for (const size_t number : live_) {
      if (wakes(number)) wake(number);
    }
    return;
  }
  const auto count = std::count_if(live_.begin(), live_.end(), wakes);
  if (count == 0) return;
  uint64_t drawn = dice_.Below(static_cast<uint64_t>(count));
  for (const size_t number : live_) {
    if (wakes(number) && drawn-- == 0) return wake(number);
  }
}

// ---- who goes on ----

bool FiberScheduler::ReachDeadline(uint64_t at_most_micros) {
  Fiber* first = nullptr;
  for (const size_t number : live_) {
    Fiber& fiber = threads_[number];
    if (fiber.state != Fiber::State::kWaiting || fiber.deadline_micros == 0) continue;
    if (first == nullptr || fiber.deadline_micros < first->deadline_micros) first = &fiber;
  }
  if (first == nullptr || first->deadline_micros > at_most_micros) return false;
  now_micros_ = std::max(now_micros_, first->deadline_micros);
  first->state = Fiber::State::kReady;
  return true;
}

size_t FiberScheduler::Draw() {
  ready_.clear();
  bool has_running = false;
  for (const size_t number : live_) {
    if (threads_[number].state != Fiber::State::kReady) continue;
    ready_.push_back(number);
    has_running = has_running || number == running_;
  }
  if (ready_.empty()) return SIZE_MAX;
  if (way_ == Way::kPriorities) {
    if (dice_.Below(change_one_in_) == 0) threads_[running_].priority = --lowest_priority_;
    return *std::max_element(ready_.begin(), ready_.end(),
                             [&](size_t a, size_t b) { return threads_[a].priority < threads_[b].priority; });
  }
  if (has_running && way_ == Way::kSticky && !dice_.Percent(switch_percent_)) return running_;
  return ready_[dice_.Below(ready_.size())];
}

size_t FiberScheduler::Choose() {
  while (ReachDeadline(now_micros_)) {
  }
  if (dice_.Below(200) == 0) (void)ReachDeadline(now_micros_ + kShortWaitMicros);
  size_t next = Draw();
  while (next == SIZE_MAX) {
    if (!ReachDeadline(UINT64_MAX)) Fail(Violation(kNobodyWaitsForEver, "nobody can go on\n" + Describe()));
    next = Draw();
  }
  return next;
}

// ---- what a person reads ----

void FiberScheduler::Say(const std::string& line) {
  if (!trace_) return;
  std::printf("%7llu %10.3f  %*s%-16s %s\n", static_cast<unsigned long long>(steps_),
              static_cast<double>(now_micros_) / 1e6, static_cast<int>(running_ % 12) * 3, "", name().c_str(),
              line.c_str());
}

std::string FiberScheduler::Describe() const {
  std::string text;
  for (const size_t number : live_) {
    const Fiber& fiber = threads_[number];
    text += "  " + fiber.name + (fiber.state == Fiber::State::kReady ? " is at " : " waits in ") +
            PlaceName(fiber.place) + " (" + fiber.what + ")\n";
  }
  return text;
}

}  // namespace quarry::simulation
