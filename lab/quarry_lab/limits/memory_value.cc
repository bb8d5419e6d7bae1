// A function of the server: memory_value(bytes, of_bytes), that many bytes at a random page of memory of of_bytes,
// where they stand. It is what an engine must do at least for a value that it has in memory with as many others: nobody
// looks for the place, checks the bytes or copies them, but they are no warmer in the processors' caches than any value
// of such a dataset. For measurements; the lab loads it into servers of its own only.
//
//   CREATE FUNCTION memory_value RETURNS STRING SONAME 'memory_value.so'
//   CREATE FUNCTION memory_value_end RETURNS INTEGER SONAME 'memory_value.so'
//
// The memory is that of the first call until SELECT memory_value_end(), which gives it back and returns its size; no
// connection may be reading then. Errors: a statement fails that asks for no bytes, for more than there are, or for
// another size of the memory. Thread-safety: any number of connections.
#include <mysql.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>

#include "direct_file.h"
#include "server_function.h"

namespace {

struct Unmap {
  size_t bytes = 0;
  void operator()(char* memory) const { (void)munmap(memory, bytes); }
};
using Memory = std::unique_ptr<char, Unmap>;

std::mutex open_mutex;
Memory memory;  // null until the first statement, and after an end

bool Open(size_t bytes) {
  memory = Memory(static_cast<char*>(TakePages(bytes)), Unmap{bytes});
  if (memory == nullptr) return false;
  std::memset(memory.get(), 1, bytes);
  return true;
}

}  // namespace

extern "C" my_bool memory_value_init(UDF_INIT* init, UDF_ARGS* args, char* message) {
  if (args->arg_count != 2 || args->arg_type[0] != INT_RESULT || args->arg_type[1] != INT_RESULT ||
      args->args[0] == nullptr || NumberArgument(args, 0) == 0 || NumberArgument(args, 0) > NumberArgument(args, 1)) {
    std::strcpy(message, "memory_value(bytes, of_bytes): two constant numbers are needed, the first not the larger");
    return 1;
  }
  const std::lock_guard<std::mutex> lock(open_mutex);
  if (memory == nullptr && !Open(NumberArgument(args, 1))) {
    std::strcpy(message, "memory_value: there is not so much memory");
    return 1;
  }
  if (memory.get_deleter().bytes != NumberArgument(args, 1)) {
    std::strcpy(message, "memory_value: the memory has another size; SELECT memory_value_end() first");
    return 1;
  }
  init->max_length = NumberArgument(args, 0);
  init->const_item = 0;
  return 0;
}

extern "C" char* memory_value(UDF_INIT* init, UDF_ARGS* /*args*/, char* /*result*/, unsigned long* length,
                              char* /*is_null*/, char* /*error*/) {
  thread_local std::minstd_rand random(std::random_device{}());
  const size_t pages = (memory.get_deleter().bytes - init->max_length) / kBlockBytes + 1;
  *length = init->max_length;
  return memory.get() + random() % pages * kBlockBytes;
}

extern "C" void memory_value_deinit(UDF_INIT* /*init*/) {}

extern "C" my_bool memory_value_end_init(UDF_INIT* init, UDF_ARGS* args, char* message) {
  return PrepareWithoutArguments(init, args, message, "memory_value_end");
}

extern "C" long long memory_value_end(UDF_INIT* /*init*/, UDF_ARGS* /*args*/, char* /*is_null*/, char* /*error*/) {
  const std::lock_guard<std::mutex> lock(open_mutex);
  const size_t bytes = memory == nullptr ? 0 : memory.get_deleter().bytes;
  memory.reset();
  return static_cast<long long>(bytes);
}

extern "C" void memory_value_end_deinit(UDF_INIT* /*init*/) {}
