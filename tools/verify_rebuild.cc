#include "verify_rebuild.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "quarry/printable.h"

namespace quarry::verify {
namespace {

constexpr int kFailed = 2;

// The server, which is no more than that account, has to read what is written; and what the account put into the home
// must lead root nowhere.
Status BecomeOwner(const std::string& home_path) {
  struct stat info {};
  if (::geteuid() != 0 || ::lstat(home_path.c_str(), &info) != 0 || info.st_uid == 0) return Status::Ok();
  if (::setgroups(0, nullptr) == 0 && ::setegid(info.st_gid) == 0 && ::seteuid(info.st_uid) == 0) return Status::Ok();
  return Status::FromErrno(errno, "become the owner of", home_path);
}

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
  if (const Status status = BecomeOwner(options.home_path); !status.ok()) {
    *error << "quarry-verify: " << Printable(status.ToString()) << '\n';
    return kFailed;
  }
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
    *error << "quarry-verify: " << Printable(done.status().ToString()) << '\n';
    return kFailed;
  }
  *out << "done\n";
  return 0;
}

}  // namespace quarry::verify
