// DirectFile: a file with no name for direct writes, each made durable by itself. For measurements of the device.
//
// Growing: every append makes it longer; at 4 GiB it starts anew. Otherwise appends go round and round in 64 MiB that
// were written and flushed before. Sizes are multiples of 4096, memory lies on a page. Thread-safety: externally
// synchronised.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

constexpr size_t kBlockBytes = 4096;

/// Memory on a page for `size` bytes; null: there is none. Given back by munmap, or never.
inline void* TakePages(size_t size) {
  void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

class DirectFile {
 public:
  static constexpr off_t kSpanBytes = off_t{64} << 20;       ///< of what is written over
  static constexpr off_t kGrowingBytesMax = off_t{4} << 30;  ///< a file that grows starts anew there
  static constexpr size_t kFillBytes = size_t{1} << 20;

  explicit DirectFile(bool growing) : growing_(growing), end_(growing ? kGrowingBytesMax : kSpanBytes) {}
  ~DirectFile() {
    if (fd_ >= 0) (void)close(fd_);
  }
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  /// `filling`: kFillBytes that the space is written with, unless the file grows; no zeros, which may be spared by what
  /// lies below. False, here and below: errno says why, and failed_call() what.
  [[nodiscard]] bool Open(const char* directory, const void* filling) {
    fd_ = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
    if (fd_ < 0) return Failed("open");
    if (growing_) return true;
    for (off_t at = 0; at < kSpanBytes; at += off_t{kFillBytes}) {
      if (!Write(static_cast<const char*>(filling), kFillBytes, at)) return false;
    }
    return Flush();
  }

  /// Writes behind what was appended last, and flushes.
  [[nodiscard]] bool Append(const void* bytes, size_t size) {
    if (at_ + static_cast<off_t>(size) > end_) {
      at_ = 0;
      if (growing_ && ftruncate(fd_, 0) != 0) return Failed("ftruncate");
    }
    const off_t at = at_;
    at_ += static_cast<off_t>(size);
    return Write(static_cast<const char*>(bytes), size, at) && Flush();
  }

  [[nodiscard]] const char* failed_call() const { return failed_call_; }

 private:
  bool Failed(const char* call) {
    failed_call_ = call;
    return false;
  }

  bool Write(const char* from, size_t size, off_t at) {
    for (size_t done = 0; done < size;) {
      const ssize_t written = pwrite(fd_, from + done, size - done, at + static_cast<off_t>(done));
      if (written == 0) errno = EIO;
      if (written <= 0) return Failed("pwrite");
      done += static_cast<size_t>(written);
    }
    return true;
  }

  bool Flush() { return fdatasync(fd_) == 0 || Failed("fdatasync"); }

  const bool growing_;
  const off_t end_;
  int fd_ = -1;
  off_t at_ = 0;
  const char* failed_call_ = "";
};
