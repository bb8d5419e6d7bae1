// quarry-dump: explains a segment, the catalogue, PATH, OPENED or a head to a person.
// Exit status: 0 all of it verified, 1 damage or an unreadable file (said on standard error), 2 wrong usage.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "dump_file.h"
#include "quarry/printable.h"

int main(int argc, char** argv) {
  CLI::App app("Explains a segment, the catalogue, PATH, OPENED or a head of Quarry. Reads only.");
  app.footer(
      "Examples:\n  quarry-dump --verify 00000001.qseg\n  quarry-dump --hex-field FF00...  (as SELECT HEX() prints "
      "it)");
  std::string path;
  std::string hex;
  quarry::dump::Options options;
  auto* const path_option = app.add_option("file", path, "what to explain: told by its content or the name *.qseg");
  app.add_option("--hex-field", hex, "a field of a row, in hex digits, instead of a file")->excludes(path_option);
  app.add_flag("--parts", options.parts, "list every part of every extent");
  app.add_flag("--verify", options.verify, "read every part and compare its checksum");
  app.add_option("--max", options.extents_max, "list at most so many extents (all are counted)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (path.empty() && hex.empty()) {
    std::cerr << "quarry-dump: give a file or --hex-field (--help says more)\n";
    return 2;
  }
  const quarry::Status status =
      hex.empty() ? quarry::dump::DumpFile(path, options, std::cout) : quarry::dump::DumpHexField(hex, std::cout);
  std::cout.flush();
  if (status.ok() && std::cout) return 0;
  const std::string why = status.ok() ? "cannot write the output" : status.ToString();
  std::cerr << "quarry-dump: " << quarry::Printable(why) << "\n";
  return 1;
}
