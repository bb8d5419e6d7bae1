#include "reader.h"

#include <getopt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace quarry_lab {

void Fail(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "reader: error: %s: %s\n", what.c_str(), why.c_str());
  std::exit(1);
}

void CheckLength(const Options& options, uint64_t length) {
  if (length != options.value_bytes) {
    Fail("a value of " + std::to_string(options.value_bytes) + " bytes", "came back with " + std::to_string(length));
  }
}

namespace {

using Clock = std::chrono::steady_clock;

/// Milliseconds of each read that began between `begin` and `end`.
void ReadLoop(const Options& options, const Program& program, int number, Clock::time_point begin,
              Clock::time_point end, std::vector<double>* latencies_ms) {
  program.thread_begin();
  {
    const std::unique_ptr<Path> path = program.make_path(options);
    std::mt19937_64 random(static_cast<uint64_t>(number));
    for (Clock::time_point started = Clock::now(); started < end;) {
      path->Read(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(options.rows)));
      const Clock::time_point done = Clock::now();
      if (started >= begin) latencies_ms->push_back(std::chrono::duration<double, std::milli>(done - started).count());
      started = done;
    }
  }
  program.thread_end();
}

}  // namespace

void Measure(const Options& options, const Program& program) {
  std::vector<std::vector<double>> latencies(static_cast<size_t>(options.threads));
  const Clock::time_point begin = Clock::now() + std::chrono::seconds(options.warmup_seconds);
  const Clock::time_point end = begin + std::chrono::seconds(options.seconds);
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i)
    threads.emplace_back(ReadLoop, std::cref(options), std::cref(program), i, begin, end,
                         &latencies[static_cast<size_t>(i)]);
  for (std::thread& thread : threads) thread.join();
  const double interval = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> all;
  double sum = 0;
  for (const auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
  if (all.empty()) Fail("the measured interval", "no read began in it");
  std::sort(all.begin(), all.end());
  for (const double one : all) sum += one;
  std::printf(
      "{\"events\": %zu, \"interval_seconds\": %.6f, \"events_per_second\": %.3f, \"latency_avg_ms\": %.4f, "
      "\"latency_p95_ms\": %.4f, \"latency_max_ms\": %.4f}\n",
      all.size(), interval, static_cast<double>(all.size()) / interval, sum / static_cast<double>(all.size()),
      all[(all.size() * 95 + 99) / 100 - 1], all.back());
}

namespace {

int64_t Number(const char* text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < 0) Fail(text, "not a number");
  return value;
}

/// The option's letter stands for its name; the long form alone is documented.
void SetOption(Options* options, int letter, const char* value) {
  switch (letter) {
    case 'p':
      options->path = value;
      return;
    case 'c':
      options->compress = true;
      return;
    case 'f':
      options->fill = true;
      return;
    case 'h':
      options->host = value;
      return;
    case 'P':
      options->port = static_cast<unsigned>(Number(value));
      return;
    case 'S':
      options->socket = value;
      return;
    case 'u':
      options->user = value;
      return;
    case 'D':
      options->database = value;
      return;
    case 't':
      options->table = value;
      return;
    case 'v':
      options->value_bytes = static_cast<size_t>(Number(value));
      return;
    case 'r':
      options->rows = Number(value);
      return;
    case 'n':
      options->threads = static_cast<int>(Number(value));
      return;
    case 'w':
      options->warmup_seconds = static_cast<int>(Number(value));
      return;
    case 's':
      options->seconds = static_cast<int>(Number(value));
      return;
    case '1':
      options->first = value;
      return;
    case 'F':
      options->payload_path = value;
      return;
    case 'B':
      options->payload_bytes = static_cast<size_t>(Number(value));
      return;
    default:
      std::exit(2);  // getopt has said why
  }
}

}  // namespace

Options ParseOptions(int argc, char** argv) {
  static const option kNames[] = {
      {"path", 1, nullptr, 'p'},          {"compress", 0, nullptr, 'c'}, {"fill", 0, nullptr, 'f'},
      {"host", 1, nullptr, 'h'},          {"port", 1, nullptr, 'P'},     {"socket", 1, nullptr, 'S'},
      {"user", 1, nullptr, 'u'},          {"database", 1, nullptr, 'D'}, {"table", 1, nullptr, 't'},
      {"value-bytes", 1, nullptr, 'v'},   {"rows", 1, nullptr, 'r'},     {"threads", 1, nullptr, 'n'},
      {"warmup", 1, nullptr, 'w'},        {"seconds", 1, nullptr, 's'},  {"payload-path", 1, nullptr, 'F'},
      {"payload-bytes", 1, nullptr, 'B'}, {"first", 1, nullptr, '1'},    {nullptr, 0, nullptr, 0}};
  Options options;
  for (int letter; (letter = getopt_long(argc, argv, "", kNames, nullptr)) != -1;) SetOption(&options, letter, optarg);
  if (options.rows < 1 || options.threads < 1) Fail("--rows and --threads", "at least 1");
  return options;
}

}  // namespace quarry_lab
