// Append + sync of 4, 24, 64 and 448 KB by 1, 8 and 32 threads, and in the same run plain sequential direct writing of
// the same sizes without any flush: the ratio says what a store costs. And reads of hot values, through the page cache
// and from the value cache. On real files below QUARRY_BENCHMARK_DIRECTORY
// (default: a directory beside the build).
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/unique_fd.h"
#include "quarry/store.h"

namespace quarry {
namespace {

std::string BenchmarkDirectory() {
  const char* const chosen = std::getenv("QUARRY_BENCHMARK_DIRECTORY");
  return chosen != nullptr ? chosen : "store_benchmark.data";
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "store_benchmark: %s\n", why.c_str());
  std::exit(1);
}

std::vector<uint8_t> Payload(size_t size_bytes, int thread) {
  std::vector<uint8_t> payload(size_bytes);
  uint64_t state = static_cast<uint64_t>(thread) + 1;
  for (uint8_t& byte : payload) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<uint8_t>(state >> 56U);
  }
  return payload;
}

std::unique_ptr<StoreDirectory> shared_directory;

void AppendAndSync(benchmark::State& state) {
  const auto size_bytes = static_cast<size_t>(state.range(0)) << 10U;
  if (state.thread_index() == 0) {
    std::filesystem::remove_all(BenchmarkDirectory());
    DirectoryOptions options;
    options.home_path = BenchmarkDirectory();
    auto opened = StoreDirectory::Open(options);
    if (!opened.ok()) Die(opened.status().ToString());
    shared_directory = std::move(opened).value();
  }
  const std::vector<uint8_t> payload = Payload(size_bytes, state.thread_index());
  for (auto _ : state) {
    UnsyncedExtents unsynced;
    const auto store = shared_directory->OpenForAppend({1}, "bench/t");
    if (!store.ok()) Die(store.status().ToString());
    if (const auto locator = (*store)->Append(payload, {}, &unsynced); !locator.ok()) Die(locator.status().ToString());
    if (const Status status = shared_directory->Sync(unsynced); !status.ok()) Die(status.ToString());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(size_bytes));
  if (state.thread_index() == 0) {
    const Counters counters = shared_directory->GetCounters();
    const auto payload_bytes = static_cast<double>(counters.value_bytes_appended);
    state.counters["written/payload"] = static_cast<double>(counters.file_bytes_written) / payload_bytes;
    state.counters["zeros/payload"] = static_cast<double>(counters.zero_bytes_written) / payload_bytes;
    state.counters["committers/flush"] =
        static_cast<double>(counters.committers_flushed) / static_cast<double>(counters.flushes);
    shared_directory.reset();
    std::filesystem::remove_all(BenchmarkDirectory());
  }
}
BENCHMARK(AppendAndSync)->Arg(4)->Arg(24)->Arg(64)->Arg(448)->UseRealTime();
BENCHMARK(AppendAndSync)->Arg(4)->Arg(24)->Arg(64)->Arg(448)->Threads(8)->Threads(32)->UseRealTime();

/// A random one of range(2) values (a power of two), range(0) KB each; range(1): whether the value cache may hold them.
/// Of a look-up among many, what is told of each value comes from memory, not from the processor's caches.
void ReadHot(benchmark::State& state) {
  static std::vector<Locator> locators;
  const auto values = static_cast<size_t>(state.range(2));
  const auto size_bytes = static_cast<size_t>(state.range(0)) << 10U;
  if (state.thread_index() == 0) {
    std::filesystem::remove_all(BenchmarkDirectory());
    DirectoryOptions options;
    options.home_path = BenchmarkDirectory();
    options.recent_cache_bytes = 0;
    options.value_cache_bytes = state.range(1) == 0 ? 0 : 4 * values * size_bytes;
    auto opened = StoreDirectory::Open(options);
    if (!opened.ok()) Die(opened.status().ToString());
    shared_directory = std::move(opened).value();
    const auto store = shared_directory->OpenForAppend({1}, "bench/t");
    if (!store.ok()) Die(store.status().ToString());
    UnsyncedExtents unsynced;
    locators.clear();
    for (size_t i = 0; i < values; ++i) {
      const auto locator = (*store)->Append(Payload(size_bytes, static_cast<int>(i)), {}, &unsynced);
      if (!locator.ok()) Die(locator.status().ToString());
      locators.push_back(*locator);
    }
    if (const Status status = shared_directory->Sync(unsynced); !status.ok()) Die(status.ToString());
    for (int round = 0; round < 2; ++round) {
      for (const Locator& locator : locators) (void)shared_directory->ReadValue(locator, {});
    }
  }
  size_t next = static_cast<size_t>(state.thread_index()) * 31;
  for (auto _ : state) {
    next = next * 5 + 7;
    const auto value = shared_directory->ReadValue(locators[next % values], {});
    if (!value.ok()) Die(value.status().ToString());
    benchmark::DoNotOptimize(uint8_t{value->bytes().front()});
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(size_bytes));
  if (state.thread_index() == 0) {
    shared_directory.reset();
    std::filesystem::remove_all(BenchmarkDirectory());
  }
}
BENCHMARK(ReadHot)->ArgsProduct({{24, 64, 448}, {0, 1}, {64}})->ArgNames({"KB", "cached", "values"});
BENCHMARK(ReadHot)->ArgsProduct({{64}, {0, 1}, {64}})->ArgNames({"KB", "cached", "values"})->Threads(8);
BENCHMARK(ReadHot)->Args({4, 1, 1 << 17})->ArgNames({"KB", "cached", "values"});

/// One thread, one growing file, no flush.
void PlainSequentialWrite(benchmark::State& state) {
  const auto size_bytes = static_cast<size_t>(state.range(0)) << 10U;
  std::filesystem::create_directories(BenchmarkDirectory());
  const std::string path = BenchmarkDirectory() + "/plain";
  const unique_fd fd(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600));
  if (!fd.valid()) Die("cannot write '" + path + "' directly");
  AlignedBuffer buffer(size_bytes);
  buffer.FillZero();
  off_t at = 0;
  for (auto _ : state) {
    if (::pwrite(fd.get(), buffer.data(), size_bytes, at) != static_cast<ssize_t>(size_bytes)) Die("short write");
    at += static_cast<off_t>(size_bytes);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(size_bytes));
  std::filesystem::remove_all(BenchmarkDirectory());
}
BENCHMARK(PlainSequentialWrite)->Arg(4)->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();

}  // namespace
}  // namespace quarry
