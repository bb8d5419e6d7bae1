// quarry_simulation: random histories of a store, on a disk in memory that fails and loses power, against a model.
//
//   quarry_simulation --seeds 10000 [--start 1] [--ops 50]   run that many seeds
//   quarry_simulation --seed 42 [--trace]                    one seed, with everything that happens
//   quarry_simulation --every-call --seeds 20                each seed again and again, power going after every call
//   --twice                                                  each seed twice: both runs must make the same calls
// Exit code 0: every invariant held; 1: one did not, and how to see it again is printed; 2: bad arguments.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "simulation/world.h"

namespace quarry::simulation {
namespace {

struct Arguments {
  uint64_t start = 1;
  uint64_t seeds = 1000;
  uint64_t operations = 50;
  bool trace = false;
  bool every_call = false;
  bool twice = false;
  uint64_t cut_at_call = 0;
  const char* program = "";
};

[[nodiscard]] bool Fail(const Arguments& arguments, uint64_t seed, uint64_t cut_at_call, const Violation& violation) {
  std::printf("seed %llu broke %s\n", static_cast<unsigned long long>(seed), violation.what());
  std::printf("again: %s --seed %llu --ops %llu", arguments.program, static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(arguments.operations));
  if (cut_at_call != 0) std::printf(" --cut-at %llu", static_cast<unsigned long long>(cut_at_call));
  std::printf(" --trace\n");
  return false;
}

struct Outcome {
  std::optional<Violation> violation;
  uint64_t digest = 0;
  uint64_t changing_calls = 0;
};

Outcome RunOnce(const Arguments& arguments, uint64_t seed, uint64_t cut_at_call, Totals* totals) {
  World world(seed, {arguments.operations, cut_at_call, arguments.trace}, totals);
  Outcome outcome;
  outcome.violation = world.Run();
  outcome.digest = world.digest();
  outcome.changing_calls = world.changing_calls();
  return outcome;
}

[[nodiscard]] bool RunSeed(const Arguments& arguments, uint64_t seed, Totals* totals) {
  // A cut that never comes counts the calls of the undisturbed run.
  const uint64_t first_cut = arguments.every_call ? UINT64_MAX : arguments.cut_at_call;
  const Outcome first = RunOnce(arguments, seed, first_cut, totals);
  if (first.violation) return Fail(arguments, seed, first_cut, *first.violation);
  if (arguments.twice) {
    Totals unused;
    if (RunOnce(arguments, seed, first_cut, &unused).digest != first.digest) {
      return Fail(arguments, seed, first_cut, Violation(kSameSeedSameRun, "two runs made different calls"));
    }
  }
  for (uint64_t call = 1; arguments.every_call && call <= first.changing_calls; ++call) {
    const Outcome outcome = RunOnce(arguments, seed, call, totals);
    if (outcome.violation) return Fail(arguments, seed, call, *outcome.violation);
  }
  return true;
}

void Print(const char* name, uint64_t count) {
  std::printf("  %-28s %14llu\n", name, static_cast<unsigned long long>(count));
}

void Report(const Totals& totals, double seconds) {
  std::printf("%llu runs in %.1f s, %.0f a second\n", static_cast<unsigned long long>(totals.seeds), seconds,
              static_cast<double>(totals.seeds) / seconds);
  Print("operations", totals.operations);
  Print("calls of the disk", totals.disk_calls);
  Print("appends", totals.appends);
  Print("  of them encrypted", totals.appends_encrypted);
  Print("commits", totals.commits);
  Print("commits that failed", totals.failed_commits);
  Print("prepared transactions committed after a crash", totals.prepared_committed);
  Print("  and rolled back", totals.prepared_rolled_back);
  Print("values compared", totals.values_compared);
  Print("values from the cache", totals.values_from_cache);
  Print("power cuts between operations", totals.power_cuts);
  Print("power cuts inside operations", totals.cuts_inside_operations);
  Print("kills", totals.kills);
  Print("clean closes", totals.clean_closes);
  Print("planned failures", totals.planned_failures);
  Print("operations that failed", totals.failed_operations);
  Print("bits flipped", totals.bits_flipped);
  Print("catalogues damaged", totals.catalogues_damaged);
  Print("verifications", totals.verifications);
  Print("scrubs", totals.scrubs);
  Print("damages verified", totals.damages_verified);
  Print("tables dropped", totals.stores_dropped);
  Print("stores unlinked", totals.stores_unlinked);
  Print("rebinds", totals.rebinds);
  Print("GC passes begun", totals.gc_passes_begun);
  Print("GC passes done", totals.gc_passes_done);
  Print("GC holes", totals.gc_holes);
  Print("GC segments unlinked", totals.gc_segments_unlinked);
  Print("GC bytes reclaimed", totals.gc_bytes_reclaimed);
  Print("GC segments rewritten", totals.gc_segments_rewritten);
  Print("GC bytes rewritten", totals.gc_bytes_rewritten);
  Print("GC segments with damage", totals.gc_segments_damaged);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.program = argv[0];
  CLI::App app("Random histories of a store, on a disk in memory that fails and loses power, against a model.");
  app.add_option("--seeds", arguments.seeds, "so many seeds, from --start")->capture_default_str();
  auto* const start = app.add_option("--start", arguments.start, "the first seed")->capture_default_str();
  auto* const one_seed =
      app.add_option("--seed", arguments.start, "this seed alone")->excludes(start)->excludes("--seeds");
  app.add_option("--ops", arguments.operations, "operations of each seed")->capture_default_str();
  app.add_flag("--trace", arguments.trace, "print everything that happens");
  app.add_flag("--twice", arguments.twice, "each seed twice: both runs must make the same calls");
  app.add_flag("--every-call", arguments.every_call, "each seed again and again, power going after every call");
  app.add_option("--cut-at", arguments.cut_at_call, "power goes after this changing call and at no other");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!one_seed->empty()) arguments.seeds = 1;
  // Chunk buffers of 1 MiB come and go with every life of the process: let malloc keep them.
  (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
  Totals totals;
  const auto begin = std::chrono::steady_clock::now();
  bool all_held = true;
  for (uint64_t seed = arguments.start; all_held && seed < arguments.start + arguments.seeds; ++seed) {
    all_held = RunSeed(arguments, seed, &totals);
  }
  Report(totals, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::printf(all_held ? "every invariant held\n" : "AN INVARIANT WAS BROKEN (see above)\n");
  return all_held ? 0 : 1;
}

}  // namespace
}  // namespace quarry::simulation

int main(int argc, char** argv) { return quarry::simulation::Main(argc, argv); }
