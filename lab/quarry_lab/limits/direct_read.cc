// A function of the server: direct_read(path, bytes), that many bytes of a file, at a random place of it, by one read
// past the page cache in the thread of the statement. It is what an engine must do at least for a value that is not in
// memory: nobody looks at the bytes, copies them or keeps them. For measurements; the lab loads it into servers of its
// own only.
//
//   CREATE FUNCTION direct_read RETURNS STRING SONAME 'direct_read.so'
//
// path, a constant, is the same in all calls of a server's life. bytes: up to 2 MiB; they are read in whole blocks of 4
// KiB. Thread-safety: each thread has memory of its own, from huge pages where the system has them.
#include <fcntl.h>
#include <mysql.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <string>

#include "server_function.h"

namespace {

constexpr size_t kHugePageBytes = 2U << 20, kBlockBytes = 4096;

std::once_flag opened;
int file = -1;
uint64_t file_bytes = 0;

void Open(const std::string& path) {
  struct stat found = {};
  file = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file >= 0 && fstat(file, &found) == 0) file_bytes = static_cast<uint64_t>(found.st_size);
}

// A device is given a request as a list of stretches of memory and pays for each. MariaDB has no huge pages by its own
// wish: they are allowed while the one is touched.
uint8_t* TakeHugePage() {
  void* const mapping = mmap(nullptr, 2 * kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  uint8_t* const begin = static_cast<uint8_t*>(mapping);
  uint8_t* const page = begin + (kHugePageBytes - reinterpret_cast<uintptr_t>(begin) % kHugePageBytes) % kHugePageBytes;
  (void)madvise(page, kHugePageBytes, MADV_HUGEPAGE);
  const int disabled = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
  if (disabled > 0) (void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  *static_cast<volatile uint8_t*>(page) = 0;
  if (disabled > 0) (void)prctl(PR_SET_THP_DISABLE, 1, disabled & ~1, 0, 0);
  return page;
}

// One for each thread that ever read: the lab has few, and its servers live for minutes.
uint8_t* BufferOfThread() {
  thread_local uint8_t* const buffer = TakeHugePage();
  return buffer;
}

}  // namespace

extern "C" my_bool direct_read_init(UDF_INIT* init, UDF_ARGS* args, char* message) {
  if (args->arg_count != 2 || args->arg_type[0] != STRING_RESULT || args->arg_type[1] != INT_RESULT ||
      args->args[0] == nullptr) {
    std::strcpy(message, "direct_read(path, bytes): a constant path and a number are needed");
    return 1;
  }
  std::call_once(opened, [args] { Open({args->args[0], args->lengths[0]}); });
  if (file_bytes < kHugePageBytes || BufferOfThread() == nullptr) {
    std::strcpy(message, "direct_read: no direct reads of this file, it is shorter than 2 MiB, or there is no memory");
    return 1;
  }
  init->max_length = kHugePageBytes;
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}

extern "C" char* direct_read(UDF_INIT* /*init*/, UDF_ARGS* args, char* /*result*/, unsigned long* length, char* is_null,
                             char* error) {
  thread_local std::minstd_rand random(std::random_device{}());
  const uint64_t wanted = NumberArgument(args, 1);
  const uint64_t size = (wanted + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  uint8_t* const buffer = BufferOfThread();
  if (wanted == 0 || wanted > kHugePageBytes ||
      pread(file, buffer, size, static_cast<off_t>(random() % (file_bytes / size) * size)) !=
          static_cast<ssize_t>(size)) {
    *is_null = *error = 1;
    return nullptr;
  }
  *length = wanted;
  return reinterpret_cast<char*>(buffer);
}

extern "C" void direct_read_deinit(UDF_INIT* /*init*/) {}
