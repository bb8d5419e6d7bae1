// quarry-verify: verifies all files of an installation that no server runs on: every checksum of every header, index,
// part, the catalogue and markers, and that what is recorded is there. Or rebuilds its catalogue (verify_rebuild.h).
// Exit status: 0 all well, 1 something is damaged or missing, 2 it could not run, 3 nothing is damaged for certain, but
// something is doubtful, foreign or could not be looked at, 130 interrupted. verify_report.h prints.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <string>

#include "quarry/options.h"
#include "quarry/verify.h"
#include "verify_rebuild.h"
#include "verify_report.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

void Interrupt(int) { interrupted = 1; }

constexpr const char* kDescription =
    "Verifies every byte of Quarry's files while no server runs on them: all stores, segments, the catalogue and the "
    "markers of the data paths. Reads only, around the page cache.\n"
    "Which row a damaged value belongs to, CHECK TABLE says: the files alone do not tell.\n"
    "With --rebuild-catalogue it writes a new catalogue instead, when the old one has lost something: what verifies is "
    "kept, segments are found by their files, and the old catalogue stays beside it under another name.";

constexpr const char* kFooter =
    "Kinds of findings:\n"
    "  damaged     bytes are not those that were written\n"
    "  missing     a file that is recorded is not there, or is too short\n"
    "  unreadable  the operating system refused, or a data path is not mounted\n"
    "  doubtful    damage, or what a crash, a failed write or GC left: CHECK TABLE tells\n"
    "  foreign     a file that is none of Quarry's\n"
    "  leftover    harmless; listed with --all\n"
    "Exit status: 0 all well; 1 damaged or missing; 2 could not run; 3 unreadable, doubtful or foreign; 130 "
    "interrupted.\n"
    "Examples:\n"
    "  quarry-verify /var/lib/mysql\n"
    "  quarry-verify --json --rate 100M /var/lib/mysql > findings.json\n"
    "  quarry-verify --rebuild-catalogue --dry-run /var/lib/mysql";

}  // namespace

int main(int argc, char** argv) {
  using quarry::verify::Report;
  using quarry::verify::ReportOptions;
  CLI::App app(kDescription);
  app.footer(kFooter);
  std::string directory;
  quarry::VerifyOptions options;
  ReportOptions report_options;
  app.add_option("directory", directory, std::string("the data directory, or ") + quarry::kHomeName + " in it")
      ->required();
  app.add_option("--data-path", options.data_paths,
                 "a data path that is mounted elsewhere than when the server ran (may be repeated)");
  app.add_option("--rate", report_options.bytes_per_second,
                 "read at most so many bytes a second (K, M, G; 0: no limit)")
      ->transform(CLI::AsSizeValue(false));
  bool rebuilds = false;
  bool dry_run = false;
  CLI::Option* const rebuild =
      app.add_flag("--rebuild-catalogue", rebuilds, "say what a new catalogue would have, then write it");
  app.add_flag("--dry-run", dry_run, "with --rebuild-catalogue: write nothing")->needs(rebuild);
  app.add_flag("--json", report_options.json, "print one JSON object instead of lines")->excludes(rebuild);
  app.add_flag("--all", report_options.all, "list what is harmless as well");
  app.add_flag("--quiet", report_options.quiet, "no progress on standard error");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.home_path = quarry::verify::HomeOf(directory);
  if (rebuilds) {
    return quarry::verify::Rebuild({options.home_path, options.data_paths, dry_run}, &std::cout, &std::cerr);
  }
  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  Report report(
      report_options, [] { return interrupted != 0; }, &std::cout, &std::cerr);
  const quarry::Result<quarry::VerifyTotals> totals = quarry::VerifyInstallation(options, &report);
  return report.Finish(options.home_path, totals);
}
