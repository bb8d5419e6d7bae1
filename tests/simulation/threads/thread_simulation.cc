// quarry_thread_simulation: random histories of a store with threads, of which the seed says who goes on.
//
//   quarry_thread_simulation --seeds 10000 [--start 1]        run that many seeds
//   quarry_thread_simulation --seconds 3600 --start 5000000   as many as fit, from that one on
//   quarry_thread_simulation --seed 42 --trace                one seed, with its whole schedule
//   --twice                                                   each seed twice: both runs must be the same
// Exit code 0: every invariant held; 1: one did not, and how to see it again is printed; 2: bad arguments.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "simulation/threads/thread_world.h"

namespace quarry::simulation {
namespace {

struct Arguments {
  uint64_t start = 1;
  uint64_t seeds = UINT64_MAX;
  double seconds = 0;
  bool trace = false;
  bool twice = false;
  bool all = false;
  std::set<std::string> ignored;
  const char* program = "";
};

struct Outcome {
  std::optional<Violation> violation;
  uint64_t digest = 0;
};

Outcome RunOnce(const Arguments& arguments, uint64_t seed, ThreadTotals* totals) {
  auto world = std::make_unique<ThreadWorld>(seed, arguments.trace, arguments.ignored, totals);
  Outcome outcome;
  outcome.violation = world->Run();
  outcome.digest = world->digest();
  if (outcome.violation) (void)world.release();  // its threads stand in the middle of what they did
  return outcome;
}

[[nodiscard]] bool RunSeed(const Arguments& arguments, uint64_t seed, ThreadTotals* totals) {
  Outcome outcome = RunOnce(arguments, seed, totals);
  if (!outcome.violation && arguments.twice) {
    ThreadTotals unused;
    const Outcome again = RunOnce(arguments, seed, &unused);
    if (again.digest != outcome.digest) outcome.violation.emplace(kSameSeedSameRun, "two runs differ");
  }
  if (!outcome.violation) return true;
  std::printf("seed %llu broke %s\n", static_cast<unsigned long long>(seed), outcome.violation->what());
  std::printf("again: %s --seed %llu --trace\n", arguments.program, static_cast<unsigned long long>(seed));
  (void)std::fflush(stdout);
  return false;
}

void Print(const char* name, uint64_t count) {
  std::printf("  %-28s %14llu\n", name, static_cast<unsigned long long>(count));
}

void Report(const ThreadTotals& totals, uint64_t start, double seconds) {
  std::printf("%llu runs in %.1f s, %.0f a second, from seed %llu\n", static_cast<unsigned long long>(totals.seeds),
              seconds, static_cast<double>(totals.seeds) / seconds, static_cast<unsigned long long>(start));
  Print("scheduling points", totals.steps);
  Print("switches of threads", totals.switches);
  Print("calls of the disk", totals.disk_calls);
  Print("lives of the process", totals.lives);
  Print("client threads", totals.threads);
  Print("appends", totals.appends);
  Print("  of them hostile", totals.hostile_values);
  Print("forged extents refused", totals.forgeries_refused);
  Print("commits", totals.commits);
  Print("commits that failed", totals.failed_commits);
  Print("prepared transactions decided", totals.prepared_decided);
  Print("values compared", totals.values_compared);
  Print("counters compared", totals.counters_compared);
  Print("power cuts", totals.power_cuts);
  Print("kills", totals.kills);
  Print("clean closes", totals.clean_closes);
  Print("planned failures", totals.planned_failures);
  Print("lives with a slow path", totals.slow_paths);
  Print("renewals asked for", totals.renewals);
  Print("backups", totals.backups);
  Print("GC passes done", totals.gc_passes);
  Print("tables dropped", totals.tables_dropped);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.program = argv[0];
  CLI::App app("Random histories of a store with threads, of which the seed says who goes on.");
  auto* const seeds =
      app.add_option("--seeds", arguments.seeds, "so many seeds, from --start (1000 without --seconds)");
  auto* const seconds = app.add_option("--seconds", arguments.seconds, "no new seed after so many seconds");
  auto* const start = app.add_option("--start", arguments.start, "the first seed")->capture_default_str();
  auto* const one = app.add_option("--seed", arguments.start, "this seed alone")->excludes(start)->excludes(seeds);
  app.add_flag("--trace", arguments.trace, "print the schedule: step, time, thread, what it does and where");
  app.add_flag("--all", arguments.all, "go on after a violation: each seed that breaks something is printed");
  app.add_option("--ignore", arguments.ignored, "invariants that may be broken: what is known hides the rest");
  app.add_flag("--twice", arguments.twice, "each seed twice: both runs must be the same");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!one->empty()) arguments.seeds = 1;
  if (one->empty() && seeds->empty() && seconds->empty()) arguments.seeds = 1000;
  (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
  ThreadTotals totals;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  bool all_held = true;
  for (uint64_t run = 0; (all_held || arguments.all) && run < arguments.seeds; ++run) {
    if (arguments.seconds > 0 && elapsed() >= arguments.seconds) break;
    all_held = RunSeed(arguments, arguments.start + run, &totals) && all_held;
  }
  Report(totals, arguments.start, elapsed());
  std::printf(all_held ? "every invariant held\n" : "AN INVARIANT WAS BROKEN (see above)\n");
  return all_held ? 0 : 1;
}

}  // namespace
}  // namespace quarry::simulation

int main(int argc, char** argv) { return quarry::simulation::Main(argc, argv); }
