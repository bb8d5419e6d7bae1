// What a directory of many stores, many segments, many small values or one huge transaction costs: time, memory,
// descriptors, flushes. One measurement a run, printed as JSON; run.py runs them all.
//
// What is measured is the store on real files. While files are made that only stand there afterwards, flushes are left
// out, which is most of the time that making them takes.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "quarry/gc.h"
#include "quarry/store.h"

namespace {

std::atomic<uint64_t> syncs{0};
std::atomic<bool> leaves_out_syncs{false};

int CountedSync(long call, int fd) {
  if (leaves_out_syncs) return 0;
  ++syncs;
  return static_cast<int>(::syscall(call, fd));
}

}  // namespace

// In the place of the C library's.
extern "C" int fdatasync(int fd) { return CountedSync(SYS_fdatasync, fd); }
extern "C" int fsync(int fd) { return CountedSync(SYS_fsync, fd); }

namespace quarry {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::cerr << result.status().ToString() << "\n";
    std::exit(1);
  }
  return std::move(result).value();
}

void Must(const Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << "\n";
  std::exit(1);
}

/// A field of /proc/self/status, in bytes; 0: there is none.
uint64_t StatusBytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1)) << 10U;
  }
  return 0;
}

/// Bytes that this process had read from the device and by calls.
uint64_t ReadBytes() {
  std::ifstream file("/proc/self/io");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("rchar:", 0) == 0) return std::stoull(line.substr(6));
  }
  return 0;
}

size_t Descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

void Print(const std::string& name, double value) { std::printf("  \"%s\": %.15g,\n", name.c_str(), value); }

/// Opens what is there, stands still, closes; each with what it costs.
void MeasureLife(const DirectoryOptions& options, int idle_seconds) {
  const uint64_t resident = StatusBytes("VmRSS");
  const uint64_t read = ReadBytes();
  syncs = 0;
  auto begin = Clock::now();
  std::unique_ptr<StoreDirectory> directory = Must(StoreDirectory::Open(options));
  Print("start_seconds", SecondsSince(begin));
  Print("start_syncs", static_cast<double>(syncs));
  Print("start_read_bytes", static_cast<double>(ReadBytes() - read));
  Print("start_memory_bytes", static_cast<double>(StatusBytes("VmRSS") - std::min(StatusBytes("VmRSS"), resident)));
  Print("descriptors", static_cast<double>(Descriptors()));
  begin = Clock::now();
  Print("stores", static_cast<double>(directory->ListBindings().size()));
  Print("list_bindings_seconds", SecondsSince(begin));
  syncs = 0;
  const clock_t cpu = std::clock();
  ::sleep(static_cast<unsigned>(idle_seconds));
  Print("idle_seconds", idle_seconds);
  Print("idle_cpu_seconds", static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
  Print("idle_syncs", static_cast<double>(syncs));
  syncs = 0;
  begin = Clock::now();
  directory.reset();
  Print("shutdown_seconds", SecondsSince(begin));
  Print("shutdown_syncs", static_cast<double>(syncs));
}

std::vector<uint8_t> RandomBytes(size_t size_bytes) {
  static std::mt19937_64 random(1);
  std::vector<uint8_t> bytes(size_bytes);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, bytes.size() - i));
  }
  return bytes;
}

/// So many tables with one value of 500 bytes each.
void MeasureStores(DirectoryOptions options, uint64_t count, int idle_seconds) {
  leaves_out_syncs = true;
  {
    const auto directory = Must(StoreDirectory::Open(options));
    const std::vector<uint8_t> value = RandomBytes(500);
    for (uint64_t table = 1; table <= count; ++table) {
      UnsyncedExtents unsynced;
      (void)Must(Must(directory->OpenForAppend({table}, "db/t" + std::to_string(table)))->Append(value, {}, &unsynced));
      Must(directory->Sync(unsynced));
    }
    Print("descriptors_while_appending", static_cast<double>(Descriptors()));
  }
  leaves_out_syncs = false;
  MeasureLife(options, idle_seconds);
}

/// One table of so many segments of 64 KiB.
void MeasureSegments(DirectoryOptions options, uint64_t count, int idle_seconds) {
  options.segment_size_bytes = 64 << 10;
  leaves_out_syncs = true;
  {
    const auto directory = Must(StoreDirectory::Open(options));
    const auto store = Must(directory->OpenForAppend({1}, "db/t"));
    const std::vector<uint8_t> value = RandomBytes(40000);
    for (uint64_t i = 0; i < count; ++i) {
      UnsyncedExtents unsynced;
      (void)Must(store->Append(value, {}, &unsynced));
      Must(directory->Sync(unsynced));
    }
  }
  leaves_out_syncs = false;
  MeasureLife(options, idle_seconds);
  // And a pass that gives back all of it.
  const auto directory = Must(StoreDirectory::Open(options));
  const std::vector<StoreId> stores = {directory->ListBindings().front().store};
  const auto begin = Clock::now();
  const auto pass = Must(BeginGcPass(directory.get(), stores, {}));
  pass->NoteView();
  syncs = 0;
  while (!Must(pass->ReclaimSome(64 << 20)).done) {
  }
  Print("unlink_all_seconds", SecondsSince(begin));
  Print("unlink_all_syncs", static_cast<double>(syncs));
  Print("unlinked", static_cast<double>(pass->report().segments_unlinked));
}

/// One table of so many values of 200 bytes, of which one in five is still needed: packed by passes within the memory
/// that a pass may take.
void MeasureGc(const DirectoryOptions& options, uint64_t count) {
  const auto directory = Must(StoreDirectory::Open(options));
  const auto store = Must(directory->OpenForAppend({1}, "db/t"));
  struct Kept {
    uint32_t segment = 0;
    uint32_t offset_units = 0;
    uint64_t identity = 0;
  };
  std::vector<Kept> kept;
  kept.reserve(count / 5 + 1);
  Locator shape;
  leaves_out_syncs = true;
  {
    std::vector<uint8_t> value = RandomBytes(200);
    UnsyncedExtents unsynced;
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(value.data(), &i, sizeof(i));
      const Locator locator = Must(store->Append(value, {}, &unsynced));
      if (i % 5 != 0) {
        store->Release(locator);
        continue;
      }
      shape = locator;
      kept.push_back({locator.segment.value, static_cast<uint32_t>(locator.offset_bytes / 8), locator.identity});
      if (i % 1'000'000 == 0) {
        Must(directory->Sync(unsynced));
        unsynced = UnsyncedExtents();
        std::cerr << i << " of " << count << " values\n";
      }
    }
    Must(directory->Sync(unsynced));
  }
  leaves_out_syncs = false;
  const GcOptions gc;
  const std::vector<StoreId> stores = {store->id()};
  const uint64_t before = store->GetStats().real_bytes;
  const uint64_t resident = StatusBytes("VmRSS");
  uint64_t most = 0;
  const auto begin = Clock::now();
  uint64_t passes = 0;
  for (bool is_done = false; !is_done && passes < 1000; ++passes) {
    const auto pass = Must(BeginGcPass(directory.get(), stores, gc));
    pass->NoteView();
    Locator locator = shape;
    for (const Kept& one : kept) {
      locator.segment = SegmentNumber{one.segment};
      locator.offset_bytes = one.offset_units * 8ULL;
      locator.identity = one.identity;
      pass->Mark(locator);
    }
    most = std::max(most, StatusBytes("VmRSS") - std::min(StatusBytes("VmRSS"), resident));
    while (!Must(pass->ReclaimSome(64 << 20)).done) {
      most = std::max(most, StatusBytes("VmRSS") - std::min(StatusBytes("VmRSS"), resident));
    }
    const GcReport report = pass->report();
    is_done = report.rewrites_postponed == 0 && report.segments_skipped == 0;
    std::cerr << "pass " << passes + 1 << ": rewrote " << report.segments_rewritten << " of " << report.segments
              << " segments, " << report.rewrites_postponed << " wait\n";
  }
  Print("values", static_cast<double>(count));
  Print("needed", static_cast<double>(kept.size()));
  Print("passes", static_cast<double>(passes));
  Print("seconds", SecondsSince(begin));
  Print("memory_max_bytes", static_cast<double>(gc.memory_max_bytes));
  Print("memory_bytes", static_cast<double>(most));
  Print("real_bytes_before", static_cast<double>(before));
  Print("real_bytes_after", static_cast<double>(store->GetStats().real_bytes));
  Print("needed_bytes", static_cast<double>(kept.size() * shape.extent_size_bytes));
}

/// kill -9 in a transaction of so many bytes, and the start after it.
void MeasureKill(const DirectoryOptions& options, uint64_t bytes) {
  int done[2];
  if (::pipe(done) != 0) std::exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto directory = Must(StoreDirectory::Open(options));
    const auto store = Must(directory->OpenForAppend({1}, "db/t"));
    const std::vector<uint8_t> value = RandomBytes(4 << 20);
    UnsyncedExtents unsynced;
    size_t descriptors = 0;
    for (uint64_t written = 0; written < bytes; written += value.size()) {
      (void)Must(store->Append(value, {}, &unsynced));
      descriptors = std::max(descriptors, Descriptors());
    }
    (void)!::write(done[1], &descriptors, sizeof(descriptors));
    ::pause();
  }
  size_t descriptors = 0;
  (void)!::read(done[0], &descriptors, sizeof(descriptors));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Print("bytes", static_cast<double>(bytes));
  Print("descriptors_while_appending", static_cast<double>(descriptors));
  MeasureLife(options, 0);
}

int Main(int argc, char** argv) {
  CLI::App app("What a directory of an unusual size costs");
  std::string what;
  std::string directory;
  uint64_t count = 0;
  int idle_seconds = 60;
  app.add_option("what", what)->required()->check(CLI::IsMember({"stores", "segments", "gc", "kill"}));
  app.add_option("--directory", directory, "an empty one")->required();
  app.add_option("--count", count, "stores, segments, values; kill: bytes")->required();
  app.add_option("--idle", idle_seconds, "seconds to stand still");
  CLI11_PARSE(app, argc, argv);
  DirectoryOptions options;
  options.home_path = directory + "/home";
  options.value_cache_bytes = 0;
  options.open_files_max = 256;
  std::printf("{\n");
  if (what == "stores") MeasureStores(options, count, idle_seconds);
  if (what == "segments") MeasureSegments(options, count, idle_seconds);
  if (what == "gc") MeasureGc(options, count);
  if (what == "kill") MeasureKill(options, count);
  std::printf("  \"what\": \"%s\"\n}\n", what.c_str());
  return 0;
}

}  // namespace
}  // namespace quarry

int main(int argc, char** argv) { return quarry::Main(argc, argv); }
