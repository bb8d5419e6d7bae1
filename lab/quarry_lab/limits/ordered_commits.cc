// How often a second the device alone can do what a commit needs that may not be found without its value: the value
// durable in one file, then, after it, a block durable in a second one. Nothing else is done: no server, no engine.
//
//   ordered_commits --directory D --threads N --value-bytes N --seconds S [--growing] [--gather] [--unordered |
//   --values-alone]
//
// Both are group commits: of the threads that have come one writes for all that have come until then, and flushes; who
// comes meanwhile waits for the next group. Direct writes and fdatasync. Without --growing the values go into space
// that was written and flushed before, round and round; with it their file grows, and its file system commits the new
// size with every flush. With --gather whoever writes first waits until all threads have come, so that every group has
// them all; without it groups of values and of the log run side by side. With --unordered a commit writes both at once
// and waits for both: what the order costs. With --values-alone a commit is the value alone, and no log is written.
//
// Prints one line of JSON: commits_per_second, and the mean number of commits of a group, of values and of the log. An
// error ends it with exit code 1 and a word on what failed. Its files have no name; nothing is left behind.
#include <getopt.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "direct_file.h"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "ordered_commits: error: %s: %s\n", what.c_str(), why.c_str());
  std::exit(1);
}

struct Options {
  std::string directory;
  size_t threads = 0, value_bytes = 0;
  double seconds = 0;
  bool growing = false, gather = false, unordered = false, values_alone = false;
};

/// Page-aligned memory of random bytes, as direct I/O demands. Never released.
const char* RandomBytes(size_t size) {
  void* const memory = TakePages(size);
  if (memory == nullptr) Fail("memory for the values", std::strerror(errno));
  std::mt19937_64 random(1);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(static_cast<char*>(memory) + at, &word, sizeof word);
  }
  return static_cast<const char*>(memory);
}

/// A file and the group commit in front of it. Thread-safe.
class Log {
 public:
  /// unit_bytes: of each commit of a group; 0: one block for the whole group.
  Log(const Options& options, const char* bytes, size_t unit_bytes, bool growing)
      : bytes_(bytes), unit_bytes_(unit_bytes), file_(growing) {
    if (!file_.Open(options.directory.c_str(), bytes)) FailFile("a file in " + options.directory);
  }

  /// Returns when the caller's bytes are durable. A group begins when `members_min` have come.
  void Commit(const std::atomic<size_t>& members_min) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t group = started_ + 1;
    ++waiting_;
    came_.notify_one();
    while (completed_ < group) {
      if (busy_) {
        done_.wait(lock);
        continue;
      }
      busy_ = true;
      came_.wait(lock, [&] { return waiting_ >= members_min; });
      const size_t members = waiting_;
      waiting_ = 0;
      ++started_;
      lock.unlock();
      const size_t bytes = unit_bytes_ == 0 ? kBlockBytes : unit_bytes_ * members;
      if (!file_.Append(bytes_, bytes)) FailFile("a write");
      lock.lock();
      busy_ = false;
      completed_ = started_;
      commits_ += members;
      done_.notify_all();
    }
  }

  /// Whoever waits for members looks again how many it needs.
  void Wake() {
    const std::lock_guard<std::mutex> lock(mutex_);
    came_.notify_all();
  }

  /// After the last commit.
  double MeanGroup() const {
    return completed_ == 0 ? 0 : static_cast<double>(commits_) / static_cast<double>(completed_);
  }

 private:
  [[noreturn]] void FailFile(const std::string& what) const {
    const int error = errno;
    Fail(what, std::string(file_.failed_call()) + ": " + std::strerror(error));
  }

  const char* const bytes_;
  const size_t unit_bytes_;
  DirectFile file_;  // of whoever leads
  std::mutex mutex_;
  std::condition_variable done_, came_;
  bool busy_ = false;
  size_t waiting_ = 0;
  uint64_t started_ = 0, completed_ = 0, commits_ = 0;
};

/// A log's commits in a thread of their own, one at a time: for a client that has something else to wait for meanwhile.
class Companion {
 public:
  Companion(Log* log, const std::atomic<size_t>& members_min)
      : thread_([this, log, &members_min] {
          for (wanted_.acquire(); !stop_; wanted_.acquire()) {
            log->Commit(members_min);
            done_.release();
          }
        }) {}
  ~Companion() {
    stop_ = true;
    wanted_.release();
    thread_.join();
  }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  void Begin() { wanted_.release(); }
  void Wait() { done_.acquire(); }

 private:
  std::binary_semaphore wanted_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void Measure(const Options& options) {
  const size_t largest = std::max(size_t{1} << 20, options.value_bytes * options.threads);
  if (static_cast<off_t>(largest) > DirectFile::kSpanBytes) Fail("threads times bytes of a value", "more than 64 MiB");
  const char* const bytes = RandomBytes(largest);
  Log values(options, bytes, options.value_bytes, options.growing), log(options, bytes, 0, false);
  std::atomic<size_t> gathered{options.gather ? options.threads : 1};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> commits{0};
  std::vector<std::thread> threads;
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&] {
      std::optional<Companion> companion;
      if (options.unordered) companion.emplace(&values, gathered);
      while (!stop) {
        if (companion) {
          companion->Begin();
        } else {
          values.Commit(gathered);
        }
        if (!options.values_alone) log.Commit(gathered);
        if (companion) companion->Wait();
        ++commits;
      }
    });
  }
  std::this_thread::sleep_until(begin + std::chrono::duration<double>(options.seconds));
  const uint64_t found = commits;
  const double interval = std::chrono::duration<double>(Clock::now() - begin).count();
  stop = true;
  gathered = 1;
  values.Wake();
  log.Wake();
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"commits_per_second\": %.3f, \"value_group\": %.2f, \"log_group\": %.2f}\n",
              static_cast<double>(found) / interval, values.MeanGroup(), log.MeanGroup());
}

double Number(const char* text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*text == '\0' || *end != '\0' || !(value >= least && value <= most)) {
    Fail(text, "not a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  const option known[] = {{"directory", required_argument, nullptr, 'd'},
                          {"threads", required_argument, nullptr, 't'},
                          {"value-bytes", required_argument, nullptr, 'v'},
                          {"seconds", required_argument, nullptr, 's'},
                          {"growing", no_argument, nullptr, 'g'},
                          {"gather", no_argument, nullptr, 'a'},
                          {"unordered", no_argument, nullptr, 'u'},
                          {"values-alone", no_argument, nullptr, 'o'},
                          {nullptr, 0, nullptr, 0}};
  for (int found; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (found) {
      case 'd':
        options.directory = optarg;
        break;
      case 't':
        options.threads = static_cast<size_t>(Number(optarg, 1, 1024));
        break;
      case 'v':
        options.value_bytes = static_cast<size_t>(Number(optarg, kBlockBytes, 64 << 20));
        break;
      case 's':
        options.seconds = Number(optarg, 0.01, 3600);
        break;
      case 'g':
        options.growing = true;
        break;
      case 'a':
        options.gather = true;
        break;
      case 'u':
        options.unordered = true;
        break;
      case 'o':
        options.values_alone = true;
        break;
      default:
        std::exit(1);  // getopt has said why
    }
  }
  if (options.directory.empty() || options.threads == 0 || options.value_bytes == 0 || options.seconds == 0) {
    Fail("arguments", "--directory, --threads, --value-bytes and --seconds are needed");
  }
  if (options.unordered && options.values_alone) Fail("--values-alone", "has no order that --unordered could drop");
  if (options.value_bytes % kBlockBytes != 0) Fail("--value-bytes", "not a multiple of 4096, as direct writes need");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Measure(ParseOptions(argc, argv));
  return 0;
}
