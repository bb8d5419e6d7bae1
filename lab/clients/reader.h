// What the clients of the lab that read values have in common: their options, the paths, the load and its report.
//
// One thread per connection; nothing is shared while measuring but the clock. An error ends the program with exit code
// 1 and a word on what failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace quarry_lab {

struct Options {
  std::string path = "prepared", host = "127.0.0.1", socket, user = "root", database = "lab", table = "sbtest1",
              payload_path, first;
  unsigned port = 0;
  bool compress = false, fill = false;
  size_t value_bytes = 4096, payload_bytes = 0;
  int64_t rows = 1000;
  int threads = 1, warmup_seconds = 1, seconds = 10;
};

/// Prints both and ends the program.
[[noreturn]] void Fail(const std::string& what, const std::string& why);

/// Fails unless a value came back with all of its bytes.
void CheckLength(const Options& options, uint64_t length);

/// A way to a value. Used by one thread.
class Path {
 public:
  virtual ~Path() = default;
  virtual void Read(int64_t id) = 0;
};

/// What a program brings. thread_begin and thread_end are called in each thread, around all that its path does.
struct Program {
  std::unique_ptr<Path> (*make_path)(const Options& options);
  void (*thread_begin)();
  void (*thread_end)();
};

/// The command line; says what is wrong with it and ends the program. Stops at `--`: getopt's optind is the next.
Options ParseOptions(int argc, char** argv);

/// Reads at random for warmup_seconds, then for seconds, and prints one line of JSON with what was read in the latter.
void Measure(const Options& options, const Program& program);

}  // namespace quarry_lab
