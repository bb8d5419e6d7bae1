#include "verify_rebuild.h"

#include <string>

#include "quarry/printable.h"

namespace quarry::verify {
namespace {

constexpr int kFailed = 2;

void PrintPlan(const RebuildReport& plan, std::ostream& out) {
  for (const std::string& note : plan.notes) out << Printable(note) << '\n';
  out << "the new catalogue " << Printable(plan.written) << " names " << plan.stores << " stores with " << plan.segments
      << " segments\n";
  if (plan.unbound_stores > 0) {
    out << plan.unbound_stores
        << " of the stores lose their table: they are read, and nothing of them is given back until GC has scanned the "
           "table that they belong to (SET GLOBAL quarry_gc_now=ON)\n";
  }
  for (const std::string& name : plan.kept) out << "the old one is kept as " << Printable(name) << '\n';
}

}  // namespace

int Rebuild(const RebuildOptions& options, std::ostream* out, std::ostream* error) {
  RebuildOptions dry = options;
  dry.dry_run = true;
  const Result<RebuildReport> plan = RebuildCatalogue(dry);
  if (!plan.ok()) {
    *error << "quarry-verify: " << Printable(plan.status().ToString()) << '\n';
    return kFailed;
  }
  if (!plan->is_needed) {
    *out << "the catalogue has lost nothing: nothing is to be done\n";
    return 0;
  }
  PrintPlan(*plan, *out);
  if (options.dry_run) {
    *out << "nothing was changed\n";
    return 0;
  }
  out->flush();
  const Result<RebuildReport> done = RebuildCatalogue(options);
  if (!done.ok()) {
    *error << "quarry-verify: " << Printable(done.status().ToString()) << "; the old catalogue still counts\n";
    return kFailed;
  }
  *out << "done\n";
  return 0;
}

}  // namespace quarry::verify
