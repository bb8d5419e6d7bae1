#include "io/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <utility>

namespace quarry {

namespace {

constexpr size_t kVectorMax = 64;  // pieces of one preadv; below IOV_MAX, small enough for the stack

bool IsBlockAligned(uint64_t value) { return value % kBlockSizeBytes == 0; }

bool SetDirect(int fd, bool direct) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

enum class Reading : uint8_t { kThroughPageCache, kDirect };

// Reads until `out` is full or the file ends. Returns an errno, or 0; `done` is the count read either way.
int ReadUntilEnd(int fd, uint64_t offset_bytes, std::span<uint8_t> out, Reading way, size_t* done) {
  *done = 0;
  while (*done < out.size()) {
    const ssize_t result =
        ::pread(fd, out.data() + *done, out.size() - *done, static_cast<off_t>(offset_bytes + *done));
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return errno;
    *done += static_cast<size_t>(result);
    // A direct read goes on at a block only; one that ends elsewhere has met the end of the file.
    if (result == 0 || (way == Reading::kDirect && !IsBlockAligned(*done))) break;
  }
  return 0;
}

// Why a write stopped before `rest`: only the next try says so.
int ErrnoOfRest(int fd, uint64_t offset_bytes, std::span<const uint8_t> rest) {
  while (true) {
    const ssize_t result = ::pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(offset_bytes));
    if (result >= 0) return EIO;
    if (errno != EINTR) return errno;
  }
}

// True when each request continues the one before it in the file, as the parts of an extent do.
bool IsContiguous(std::span<const ReadRequest> requests) {
  for (size_t i = 1; i < requests.size(); ++i) {
    if (requests[i - 1].offset_bytes + requests[i - 1].out.size() != requests[i].offset_bytes) return false;
  }
  return true;
}

}  // namespace

PosixWritableFile::PosixWritableFile(std::string path, unique_fd fd) : path_(std::move(path)), fd_(std::move(fd)) {
  // Not at open: a file system without O_DIRECT would refuse the open after it had created the file.
  direct_.store(SetDirect(fd_.get(), true), std::memory_order_relaxed);
}

// Some file systems take O_DIRECT and refuse the write.
bool PosixWritableFile::LeaveDirect() {
  direct_.store(false, std::memory_order_relaxed);
  return SetDirect(fd_.get(), false);
}

Status PosixWritableFile::WriteAt(uint64_t offset_bytes, std::span<const uint8_t> data) {
  assert(IsBlockAligned(offset_bytes) && IsBlockAligned(data.size()));
  assert(IsBlockAligned(reinterpret_cast<uintptr_t>(data.data())));
  bool may_leave_direct = true;
  while (!data.empty()) {
    const ssize_t result = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset_bytes));
    if (result < 0 && errno == EINTR) continue;
    if (result < 0 && errno == EINVAL && std::exchange(may_leave_direct, false) && LeaveDirect()) continue;
    if (result < 0) return Status::FromErrno(errno, "write", path_);
    // A short direct write may end inside a block; what is written twice is the same bytes.
    const uint64_t written = static_cast<uint64_t>(result) / kBlockSizeBytes * kBlockSizeBytes;
    // A file system with smaller blocks may be full inside of one of ours.
    if (written == 0) {
      const auto done = static_cast<size_t>(result);
      const std::span<const uint8_t> rest = data.subspan(done, kBlockSizeBytes - done);
      return Status::FromErrno(ErrnoOfRest(fd_.get(), offset_bytes + done, rest), "write (nothing written)", path_);
    }
    data = data.subspan(written);
    offset_bytes += written;
  }
  return Status::Ok();
}

Status PosixWritableFile::Sync() {
  if (::fdatasync(fd_.get()) != 0) return Status::FromErrno(errno, "fdatasync", path_);
  return Status::Ok();
}

Status PosixWritableFile::Truncate(uint64_t size_bytes) {
  while (::ftruncate(fd_.get(), static_cast<off_t>(size_bytes)) != 0) {
    if (errno != EINTR) return Status::FromErrno(errno, "truncate", path_);
  }
  return Status::Ok();
}

Status PosixWritableFile::Allocate(uint64_t offset_bytes, uint64_t size_bytes) {
  if (size_bytes == 0) return Status::Ok();
  while (::fallocate(fd_.get(), 0, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes)) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) return Status::Ok();  // a hint
    if (errno != EINTR) return Status::FromErrno(errno, "allocate", path_);
  }
  return Status::Ok();
}

Status PosixWritableFile::PunchHole(uint64_t offset_bytes, uint64_t size_bytes) {
  assert(IsBlockAligned(offset_bytes) && IsBlockAligned(size_bytes));
  if (size_bytes == 0) return Status::Ok();
  while (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_bytes),
                     static_cast<off_t>(size_bytes)) != 0) {
    if (errno != EINTR) return Status::FromErrno(errno, "punch hole", path_);
  }
  return Status::Ok();
}

Status PosixWritableFile::Close() {
  if (const int system_errno = fd_.Close(); system_errno != 0) return Status::FromErrno(system_errno, "close", path_);
  return Status::Ok();
}

PosixReadableFile::PosixReadableFile(std::string path, unique_fd fd) : path_(std::move(path)), fd_(std::move(fd)) {
  // Advice only: values are read whole at random places, so the kernel's read-ahead would fetch what nobody asked for.
  (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);
}

Result<size_t> PosixReadableFile::ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) {
  size_t done = 0;
  const int error = ReadUntilEnd(fd_.get(), offset_bytes, out, Reading::kThroughPageCache, &done);
  if (error != 0) return Status::FromErrno(error, "read", path_);
  return done;
}

// The rest of a request of which the first `done_bytes` are there.
Status PosixReadableFile::ReadWhole(const ReadRequest& request, size_t done_bytes) {
  QUARRY_TRY_ASSIGN(const size_t size, ReadAt(request.offset_bytes + done_bytes, request.out.subspan(done_bytes)));
  if (size + done_bytes == request.out.size()) return Status::Ok();
  return Status::FromErrno(EIO,
                           "short read of " + std::to_string(size + done_bytes) + " of " +
                               std::to_string(request.out.size()) + " bytes at " +
                               std::to_string(request.offset_bytes) + " of",
                           path_);
}

// One preadv; whatever it left out is read on its own.
Status PosixReadableFile::ReadContiguous(std::span<const ReadRequest> requests) {
  assert(requests.size() <= kVectorMax);
  std::array<iovec, kVectorMax> pieces{};
  std::transform(requests.begin(), requests.end(), pieces.begin(), [](const ReadRequest& request) {
    return iovec{request.out.data(), request.out.size()};
  });
  const ssize_t result = ::preadv(fd_.get(), pieces.data(), static_cast<int>(requests.size()),
                                  static_cast<off_t>(requests.front().offset_bytes));
  if (result < 0 && errno != EINTR) return Status::FromErrno(errno, "read", path_);
  size_t left = result < 0 ? 0 : static_cast<size_t>(result);
  for (const ReadRequest& request : requests) {
    const size_t done = std::min(left, request.out.size());
    left -= done;
    if (done < request.out.size()) QUARRY_TRY(ReadWhole(request, done));
  }
  return Status::Ok();
}

Status PosixReadableFile::ReadBatch(std::span<const ReadRequest> requests) {
  while (!requests.empty()) {
    const auto group = requests.first(std::min(requests.size(), kVectorMax));
    requests = requests.subspan(group.size());
    if (IsContiguous(group)) {
      QUARRY_TRY(ReadContiguous(group));
      continue;
    }
    for (const ReadRequest& request : group) QUARRY_TRY(ReadWhole(request, 0));
  }
  return Status::Ok();
}

// By way of the descriptor, for the file may have another name by now, or none. A want of descriptors passes.
int PosixReadableFile::DirectDescriptor() {
  if (direct_.load(std::memory_order_acquire) == Direct::kUnknown) {
    const std::lock_guard<std::mutex> lock(direct_mutex_);
    if (direct_.load(std::memory_order_relaxed) == Direct::kUnknown) {
      const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
      direct_fd_ = unique_fd(::open(self.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
      if (!direct_fd_.valid() && (errno == EMFILE || errno == ENFILE)) return -1;
      direct_.store(direct_fd_.valid() ? Direct::kOpen : Direct::kRefused, std::memory_order_release);
    }
  }
  return direct_.load(std::memory_order_relaxed) == Direct::kOpen ? direct_fd_.get() : -1;
}

Result<std::optional<size_t>> PosixReadableFile::ReadDirect(uint64_t offset_bytes, std::span<uint8_t> out) {
  assert(IsBlockAligned(offset_bytes) && IsBlockAligned(out.size()));
  assert(IsBlockAligned(reinterpret_cast<uintptr_t>(out.data())));
  const int descriptor = DirectDescriptor();
  if (descriptor < 0) return std::optional<size_t>();
  size_t done = 0;
  const int error = ReadUntilEnd(descriptor, offset_bytes, out, Reading::kDirect, &done);
  if (error == EINVAL) {
    // Some file systems take O_DIRECT and refuse the read.
    direct_.store(Direct::kRefused, std::memory_order_relaxed);
    return std::optional<size_t>();
  }
  if (error != 0) return Status::FromErrno(error, "read", path_);
  return std::optional<size_t>(done);
}

Result<uint64_t> PosixReadableFile::SizeBytes() {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return Status::FromErrno(errno, "stat", path_);
  return static_cast<uint64_t>(info.st_size);
}

Result<uint64_t> PosixReadableFile::AllocatedBytes() {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return Status::FromErrno(errno, "stat", path_);
  return static_cast<uint64_t>(info.st_blocks) * kStatBlockSize;
}

// Moves the descriptor's position, which no call of ours uses.
Result<bool> PosixReadableFile::HasHole(uint64_t offset_bytes, uint64_t size_bytes) {
  const off_t hole = ::lseek(fd_.get(), static_cast<off_t>(offset_bytes), SEEK_HOLE);
  if (hole < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) return false;
  if (hole < 0 && errno == ENXIO) return true;  // behind the end
  if (hole < 0) return Status::FromErrno(errno, "look for holes in", path_);
  return static_cast<uint64_t>(hole) < offset_bytes + size_bytes;
}

PosixVerifyFile::PosixVerifyFile(std::string path, unique_fd fd) : PosixReadableFile(std::move(path), std::move(fd)) {
  direct_.store(SetDirect(fd_.get(), true), std::memory_order_relaxed);
}

Result<size_t> PosixVerifyFile::ReadAt(uint64_t offset_bytes, std::span<uint8_t> out) {
  assert(IsBlockAligned(offset_bytes) && IsBlockAligned(out.size()));
  assert(IsBlockAligned(reinterpret_cast<uintptr_t>(out.data())));
  size_t done = 0;
  int error = ReadUntilEnd(fd_.get(), offset_bytes, out, Reading::kDirect, &done);
  if (error == EINVAL) {
    // Some file systems take O_DIRECT and refuse the read.
    direct_.store(false, std::memory_order_relaxed);
    if (SetDirect(fd_.get(), false)) error = ReadUntilEnd(fd_.get(), offset_bytes, out, Reading::kDirect, &done);
  }
  if (error != 0) return Status::FromErrno(error, "read", path_);
  if (!direct_.load(std::memory_order_relaxed)) {
    (void)::posix_fadvise(fd_.get(), static_cast<off_t>(offset_bytes), static_cast<off_t>(out.size()),
                          POSIX_FADV_DONTNEED);
  }
  return done;
}

Status PosixVerifyFile::ReadBatch(std::span<const ReadRequest> requests) {
  for (const ReadRequest& request : requests) {
    QUARRY_TRY_ASSIGN(const size_t size, ReadAt(request.offset_bytes, request.out));
    if (size != request.out.size()) return Status::FromErrno(EIO, "short read of", path_);
  }
  return Status::Ok();
}

}  // namespace quarry
