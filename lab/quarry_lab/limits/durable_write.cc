// A function of the server: durable_write(directory, kind, value, kept), which hands a value to a thread that writes it
// to a file in that directory and flushes it, and returns its first `kept` bytes at once. Nobody waits for the value
// but the next one of the same connection: a value is durable before the connection's next is taken. It is what an
// engine must do at least that keeps values beside InnoDB's rows, and less than one may: a commit has to wait for its
// value. For measurements; the lab loads it into servers of its own only.
//
//   CREATE FUNCTION durable_write RETURNS STRING SONAME 'durable_write.so'
//   CREATE FUNCTION durable_write_end RETURNS INTEGER SONAME 'durable_write.so'
//
// kind 'growing': the file grows with every group of values; 'written': a group goes into space that was written and
// flushed before, round and round; 'headed': as growing, but each value stands behind a header of 64 bytes, as it must
// where a file is to say by itself what is in it, and only a group is padded to whole blocks; 'compressed': as headed,
// each value compressed by lz4 (its default) in its connection's thread. As in ordered_commits.cc a group
// is all that came while the one before it was written: one direct write and one fdatasync. Other values take whole
// blocks of 4 KiB. The file has no name, so nothing is left behind. directory and kind are those of the first call
// until SELECT durable_write_end(), which waits for what is under way, closes the file and returns how many bytes of
// values were made durable, before they were compressed; no connection may be writing then. Errors: a statement fails
// whose value could not be written, or that comes after such a one. Thread-safety: any number of connections.
#include <lz4.h>
#include <mysql.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "direct_file.h"
#include "server_function.h"

namespace {

constexpr size_t kGroupBytesMax = 32U << 20;
constexpr size_t kHeaderBytes = 64;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

struct Kind {
  bool growing = false, headed = false, compressed = false;
  // Of a group, for a value.
  [[nodiscard]] size_t BytesFor(size_t value_bytes) const {
    return headed ? RoundUp(kHeaderBytes + value_bytes, kHeaderBytes) : RoundUp(value_bytes, kBlockBytes);
  }
};

// False: there is none of that name.
bool KindOf(const std::string& name, Kind* kind) {
  const bool compressed = name == "compressed";
  *kind = {name != "written", compressed || name == "headed", compressed};
  return name == "growing" || name == "written" || kind->headed;
}

struct Unmap {
  void operator()(uint8_t* memory) const { (void)munmap(memory, kGroupBytesMax); }
};
using Memory = std::unique_ptr<uint8_t, Unmap>;

// A group of values: space in it is given out under Values::mutex_, and filled without.
struct Group {
  Memory memory;
  size_t bytes = 0, payload_bytes = 0;
  std::atomic<uint32_t> copying{0};
};

class Values {
 public:
  // Null: there is no such file, or no memory.
  static std::unique_ptr<Values> Open(const std::string& directory, const Kind& kind) {
    auto made = std::unique_ptr<Values>(new Values(kind));
    for (Group& group : made->groups_) {
      group.memory = Memory(static_cast<uint8_t*>(TakePages(kGroupBytesMax)));
      if (group.memory == nullptr) return nullptr;
      std::memset(group.memory.get(), 1, kGroupBytesMax);
    }
    if (!made->file_.Open(directory.c_str(), made->groups_[0].memory.get())) return nullptr;
    made->writer_ = std::thread([values = made.get()] { values->Run(); });
    return made;
  }

  ~Values() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    came_.notify_one();
    if (writer_.joinable()) writer_.join();
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // Waits for the group `before` (0: none) and takes the value. The group that it is in, or 0: it cannot be written.
  uint64_t Add(std::string_view value, uint64_t before) {
    const std::string_view stored = kind_.compressed ? Compressed(value) : value;
    const size_t taken = kind_.BytesFor(stored.size());
    if (stored.empty() && !value.empty()) return 0;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return completed_ >= before || failed_; });
    Group& group = groups_[active_];
    if (failed_ || group.bytes + taken > kGroupBytesMax) return 0;
    uint8_t* const to = group.memory.get() + group.bytes + (kind_.headed ? kHeaderBytes : 0);
    group.bytes += taken;
    group.payload_bytes += value.size();
    group.copying.fetch_add(1, std::memory_order_relaxed);
    const uint64_t number = started_ + 1;
    lock.unlock();
    came_.notify_one();
    std::memcpy(to, stored.data(), stored.size());
    group.copying.fetch_sub(1, std::memory_order_release);
    return number;
  }

  // Waits for all that was taken. Bytes of values that are durable; -1: some are not.
  int64_t End() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t last = started_ + (groups_[active_].bytes == 0 ? 0 : 1);
    done_.wait(lock, [&] { return completed_ >= last || failed_; });
    return failed_ ? -1 : static_cast<int64_t>(durable_bytes_);
  }

 private:
  explicit Values(const Kind& kind) : kind_(kind), file_(kind.growing) {}

  // Until the thread's next; empty: it is too long.
  static std::string_view Compressed(std::string_view value) {
    if (value.size() > LZ4_MAX_INPUT_SIZE) return {};
    thread_local std::vector<char> room;
    const auto bytes = static_cast<int>(value.size());
    const auto bound = static_cast<size_t>(LZ4_compressBound(bytes));
    if (room.size() < bound) room.resize(bound);
    const int stored = LZ4_compress_default(value.data(), room.data(), bytes, static_cast<int>(bound));
    return {room.data(), static_cast<size_t>(stored)};
  }

  bool MakeDurable(const Group& group) {
    while (group.copying.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    return file_.Append(group.memory.get(), RoundUp(group.bytes, kBlockBytes));
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      came_.wait(lock, [this] { return stopping_ || groups_[active_].bytes != 0; });
      Group& group = groups_[active_];
      if (failed_ || group.bytes == 0) return;
      active_ = 1 - active_;
      ++started_;
      lock.unlock();
      const bool durable = MakeDurable(group);
      lock.lock();
      if (durable) {
        completed_ = started_;
        durable_bytes_ += group.payload_bytes;
      } else {
        failed_ = true;
      }
      group.bytes = group.payload_bytes = 0;
      done_.notify_all();
    }
  }

  const Kind kind_;
  DirectFile file_;  // of the writer
  std::thread writer_;
  std::mutex mutex_;
  std::condition_variable came_, done_;
  std::array<Group, 2> groups_;  // one is filled while the other is written
  size_t active_ = 0;
  uint64_t started_ = 0, completed_ = 0, durable_bytes_ = 0;
  bool failed_ = false, stopping_ = false;
};

std::mutex open_mutex;
std::unique_ptr<Values> values;  // null until the first statement, and after an end
std::atomic<uint64_t> openings{0};

// What a connection's thread wrote last, and in which of the files that were open one after the other.
struct Last {
  uint64_t opening = 0, group = 0;
};
thread_local Last last;

bool Text(const UDF_ARGS* args, unsigned index) {
  return args->arg_type[index] == STRING_RESULT && args->args[index] != nullptr;
}

}  // namespace

extern "C" my_bool durable_write_init(UDF_INIT* init, UDF_ARGS* args, char* message) {
  if (args->arg_count != 4 || !Text(args, 0) || !Text(args, 1) || args->arg_type[3] != INT_RESULT) {
    std::strcpy(message, "durable_write(directory, kind, value, kept) has other arguments");
    return 1;
  }
  args->arg_type[2] = STRING_RESULT;  // a parameter of a prepared statement has no type yet
  const std::string directory(args->args[0], args->lengths[0]), kind(args->args[1], args->lengths[1]);
  Kind found;
  if (!KindOf(kind, &found)) {
    std::strcpy(message, "durable_write: the kind of its file is growing, written, headed or compressed");
    return 1;
  }
  const std::lock_guard<std::mutex> lock(open_mutex);
  if (values == nullptr) {
    values = Values::Open(directory, found);
    if (values == nullptr) {
      std::strcpy(message, "durable_write: no file for direct writes in this directory, or no memory");
      return 1;
    }
    ++openings;
  }
  init->max_length = 1U << 20;
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}

extern "C" char* durable_write(UDF_INIT* /*init*/, UDF_ARGS* args, char* /*result*/, unsigned long* length,
                               char* is_null, char* error) {
  if (last.opening != openings) last = {openings, 0};
  const bool asked = args->args[2] != nullptr && args->args[3] != nullptr && values != nullptr;
  last.group = asked ? values->Add({args->args[2], args->lengths[2]}, last.group) : 0;
  if (last.group == 0) {
    *is_null = *error = 1;
    return nullptr;
  }
  const auto kept = NumberArgument(args, 3);
  *length = kept < args->lengths[2] ? kept : args->lengths[2];
  return args->args[2];
}

extern "C" void durable_write_deinit(UDF_INIT* /*init*/) {}

extern "C" my_bool durable_write_end_init(UDF_INIT* init, UDF_ARGS* args, char* message) {
  return PrepareWithoutArguments(init, args, message, "durable_write_end");
}

extern "C" long long durable_write_end(UDF_INIT* /*init*/, UDF_ARGS* /*args*/, char* is_null, char* error) {
  const std::lock_guard<std::mutex> lock(open_mutex);
  const int64_t bytes = values == nullptr ? 0 : values->End();
  values.reset();
  if (bytes < 0) *is_null = *error = 1;
  return bytes;
}

extern "C" void durable_write_end_deinit(UDF_INIT* /*init*/) {}
