// A layer between a server and its files, loaded by LD_PRELOAD: it counts every call that changes a file under one
// directory, can kill the process at a chosen one (or let it fail), and can write down what each call did.
//
// environment   QUARRY_IO_LAYER_ROOT      the directory (its real path); files elsewhere are left alone
//               QUARRY_IO_LAYER_CONTROL   a file of sizeof(struct control) bytes, shared with the test (io_layer.py)
//               QUARRY_IO_LAYER_LOG       where to write down the calls; unset: nowhere
// Without the first two every call goes through untouched.
//
// Invariants:
//  - A call is counted, and met by a kill or an error, before it is carried out. A call that was made to fail, or at
//    which the process died, changed nothing (in mode kTornKill: the first half of its bytes was written). In mode
//    kLateKill the process dies when the call has been carried out, before its caller hears of it. In mode kWait it
//    waits until the mode is another.
//  - `sequence` counts up at the begin and at the end of each call, so 'A had ended before B began' can be told.
//    Changes of names happen one at a time, in the order of the log.
//  - While the test holds the layer no call begins; once none is under way, each that was carried out is in the log.
//  - Nobody writes a file of the directory unseen: shared writable mappings are refused (InnoDB then writes its log by
//    calls), and the test compares what the log makes of the directory with the directory itself.
// Thread-safety: everything may run on any thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum call { kCreate, kWrite, kFsync, kFdatasync, kTruncate, kAllocate, kPunch, kRename, kUnlink, kMkdir, kRmdir };
enum mode { kOff, kKill, kTornKill, kFailOnce, kFailFromThenOn, kLateKill, kWait };
enum {
  kMagic = 0x31594c4f49 /* "IOLY1" */,
  kKindsMax = 32,
  kKindNameSize = 24,
  kEventsMax = 1 << 17,
  kHalf = 2,
  kAlignment = 4096,  // of what O_DIRECT writes
  kFirstWholeKind = 13
};
// What meet() has a call do, where it is not the errno with which it must fail.
enum { kGoOn = 0, kDieHalfWay = -1, kDieAfterwards = -2 };

// The first that matches a path relative to the root.
static const char* const kKinds[][2] = {
    {"*.qseg.new", "rewritten segment"},
    {"*.qseg", "segment"},
    {HOME_NAME "/CATALOGUE-*", "CATALOGUE"},
    {HOME_NAME "*", "home directory"},
    {"ib_logfile*", "ib_logfile"},
    {"ibtmp*", "temporary"},
    {"ibdata*", "ibdata"},
    {"undo*", "undo"},
    {"*.ibd", "ibd"},
    {"binlog.index*", "binlog index"},
    {"binlog.state*", "binlog state"},
    {"binlog.[0-9]*", "binlog"},
    // From here on: small files of the server's, which it writes in one piece and does not expect half (kTornKill).
    {"*.frm*", "frm"},
    {"*.par*", "par"},
    {"ddl_recovery*", "ddl log"},
    {"aria_log*", "aria"},
    {"*.MA[DI]", "aria table"},
    {"*", "other"},
};

struct event {
  int32_t thread;
  int16_t call, kind;
};

// Shared with io_layer.py, which knows these offsets.
struct control {
  uint64_t magic;                                  // 0
  _Atomic uint64_t sequence;                       // 8
  _Atomic int32_t mode;                            // 16
  _Atomic int32_t error;                           // 20   errno of the failing modes
  _Atomic int64_t countdown;                       // 24   matching calls that still pass
  _Atomic int32_t call, kind, thread;              // 32   what matches; -1 (thread: 0) is any
  _Atomic int32_t fired;                           // 44   how often the mode has struck
  _Atomic uint32_t event_count;                    // 48   may exceed kEventsMax: the rest was not kept
  uint32_t kind_count;                             // 52
  _Atomic int32_t is_held;                         // 56   calls wait before they begin
  _Atomic int32_t under_way;                       // 60   calls that have begun and are not written down yet
  char kinds[kKindsMax][kKindNameSize];            // 64
  _Alignas(4096) struct event events[kEventsMax];  // 4096
};

// One call in the log; the path, the second path and the data follow it.
struct record {
  uint64_t begin, end;  // of `sequence`
  int32_t call, kind;
  uint64_t inode;
  int64_t offset, length;
  int32_t is_durable;  // O_SYNC or O_DSYNC
  int32_t path_size, second_path_size, data_size;
};

static struct control* control;
static char root[PATH_MAX];
static size_t root_size;
static int log_descriptor = -1;
static pthread_mutex_t names_mutex = PTHREAD_MUTEX_INITIALIZER;  // changes of names, one at a time
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int32_t thread_id;

__attribute__((constructor)) static void start(void) {
  const char* const directory = getenv("QUARRY_IO_LAYER_ROOT");
  const char* const file = getenv("QUARRY_IO_LAYER_CONTROL");
  const char* const log = getenv("QUARRY_IO_LAYER_LOG");
  if (directory == NULL || file == NULL) return;
  const int descriptor = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) abort();
  struct control* const shared = (struct control*)syscall(SYS_mmap, NULL, sizeof(struct control),
                                                          PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (shared == MAP_FAILED || shared->magic != kMagic) abort();
  syscall(SYS_close, descriptor);
  if (log != NULL && *log != '\0') {
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_descriptor < 0) abort();
  }
  root_size = strlen(directory);
  memcpy(root, directory, root_size + 1);
  shared->kind_count = sizeof(kKinds) / sizeof(kKinds[0]);
  for (uint32_t i = 0; i < shared->kind_count; ++i) {
    strncpy(shared->kinds[i], kKinds[i][1], kKindNameSize - 1);
  }
  atomic_store(&shared->under_way, 0);
  control = shared;
}

// --- paths
// ------------------------------------------------------------------------------------------------------------

// The path below the root, or NULL for what lies elsewhere.
static const char* below_root(const char* path) {
  if (strncmp(path, root, root_size) != 0) return NULL;
  if (path[root_size] == '\0') return "";
  return path[root_size] == '/' ? path + root_size + 1 : NULL;
}

// `path` made absolute, without "." and empty pieces. The server uses no "..".
static bool absolute(int directory, const char* path, char* out) {
  size_t size = 0;
  if (path[0] != '/') {
    if (directory == AT_FDCWD) {
      if (syscall(SYS_getcwd, out, PATH_MAX) < 0) return false;
      size = strlen(out);
    } else {
      char link[32];
      char digits[16];
      int count = 0;
      for (int rest = directory; rest > 0 || count == 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
      memcpy(link, "/proc/self/fd/", 14);
      for (int i = 0; i < count; ++i) link[14 + i] = digits[count - 1 - i];
      link[14 + count] = '\0';
      const ssize_t result = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
      if (result <= 0 || out[0] != '/') return false;
      size = (size_t)result;
    }
    out[size] = '\0';
  }
  while (*path != '\0') {
    const size_t piece = strcspn(path, "/");
    if (piece > 0 && !(piece == 1 && path[0] == '.')) {
      if (size + piece + 2 > PATH_MAX) return false;
      out[size++] = '/';
      memcpy(out + size, path, piece);
      size += piece;
      out[size] = '\0';
    }
    path += piece;
    path += *path == '/';
  }
  return size > 0;
}

// The path below the root of an open file; NULL also for one whose name was removed (nothing of it survives a crash).
static const char* path_of(int descriptor, char* buffer, uint64_t* inode) {
  struct stat info;
  if (control == NULL || !absolute(descriptor, "", buffer)) return NULL;
  const char* const path = below_root(buffer);
  if (path == NULL || fstat(descriptor, &info) != 0 || info.st_nlink == 0) return NULL;
  *inode = info.st_ino;
  return path;
}

static int kind_of(const char* path) {
  int kind = 0;
  while (fnmatch(kKinds[kind][0], path, 0) != 0) ++kind;
  return kind;
}

// --- what meets a call
// ------------------------------------------------------------------------------------------------

static int32_t this_thread(void) {
  if (thread_id == 0) thread_id = (int32_t)syscall(SYS_gettid);
  return thread_id;
}

static void die(void) {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  while (true) syscall(SYS_pause);
}

static void nap(void) {
  const struct timespec pause = {.tv_nsec = 1000000};
  syscall(SYS_nanosleep, &pause, NULL);
}

// Counts a call; dies, or gives the errno with which it must fail, or what else it must do.
static int meet(enum call call, int kind) {
  const uint32_t number = atomic_fetch_add(&control->event_count, 1);
  if (number < kEventsMax) control->events[number] = (struct event){this_thread(), (int16_t)call, (int16_t)kind};
  const int32_t mode = atomic_load(&control->mode);
  if (mode == kOff) return kGoOn;
  const int32_t want_call = atomic_load(&control->call);
  const int32_t want_kind = atomic_load(&control->kind);
  const int32_t want_thread = atomic_load(&control->thread);
  if (want_call != -1 && want_call != (int32_t)call) return kGoOn;
  if (want_kind != -1 && want_kind != kind) return kGoOn;
  if (want_thread != 0 && want_thread != this_thread()) return kGoOn;
  const int64_t left = atomic_fetch_sub(&control->countdown, 1);
  if (mode == kFailFromThenOn ? left > 0 : left != 0) return kGoOn;
  atomic_fetch_add(&control->fired, 1);
  if (mode == kTornKill && call == kWrite && kind < kFirstWholeKind) return kDieHalfWay;
  if (mode == kLateKill) return kDieAfterwards;
  if (mode == kKill || mode == kTornKill) die();
  if (mode == kWait) {
    while (atomic_load(&control->mode) == kWait) nap();
    return kGoOn;
  }
  return atomic_load(&control->error);
}

// A call is under way from here until it is written down. While the test holds the layer none begins.
static int enter(void) {
  while (true) {
    while (atomic_load(&control->is_held) != 0) nap();
    atomic_fetch_add(&control->under_way, 1);
    if (atomic_load(&control->is_held) == 0) return 1;
    atomic_fetch_sub(&control->under_way, 1);
  }
}

static void leave(const int* entered) {
  if (*entered != 0) atomic_fetch_sub(&control->under_way, 1);
}

// Until the block ends; `is_one`: whether there is a call at all.
#define UNDER_WAY(is_one) __attribute__((cleanup(leave), unused)) const int entered = (is_one) ? enter() : 0

static uint64_t tick(void) { return atomic_fetch_add(&control->sequence, 1); }

static void put(const void* data, size_t size) {
  const char* next = data;
  while (size > 0) {
    const ssize_t result = syscall(SYS_write, log_descriptor, next, size);
    if (result <= 0) abort();  // a log with a gap would prove nothing
    next += result;
    size -= (size_t)result;
  }
}

static void note(struct record record, const char* path, const char* second_path, const void* data) {
  if (log_descriptor < 0) return;
  record.path_size = (int32_t)strlen(path);
  record.second_path_size = second_path == NULL ? 0 : (int32_t)strlen(second_path);
  pthread_mutex_lock(&log_mutex);
  record.end = tick();
  put(&record, sizeof(record));
  put(path, (size_t)record.path_size);
  if (second_path != NULL) put(second_path, (size_t)record.second_path_size);
  if (record.data_size > 0) put(data, (size_t)record.data_size);
  pthread_mutex_unlock(&log_mutex);
}

static int fail(int error) {
  errno = error;
  return -1;
}

// --- calls on open files
// ----------------------------------------------------------------------------------------------

static ssize_t write_call(int descriptor, const void* data, size_t size, off_t offset) {
  const bool is_positional = offset >= 0;
  char buffer[PATH_MAX];
  uint64_t inode = 0;
  const char* const path = path_of(descriptor, buffer, &inode);
  if (path == NULL) {
    return is_positional ? syscall(SYS_pwrite64, descriptor, data, size, offset)
                         : syscall(SYS_write, descriptor, data, size);
  }
  const int kind = kind_of(path);
  UNDER_WAY(true);
  const int met = meet(kWrite, kind);
  if (met > 0) return fail(met);
  const size_t wanted = met == kDieHalfWay ? size / kHalf / 512 * 512 : size;
  // InnoDB goes on filling a block of its log that is being written: what is written down must be what was written.
  void* copy = NULL;
  if (log_descriptor >= 0) {
    if (posix_memalign(&copy, kAlignment, size) != 0) abort();
    data = memcpy(copy, data, size);
  }
  const uint64_t begin = tick();
  const ssize_t written = is_positional ? syscall(SYS_pwrite64, descriptor, data, wanted, offset)
                                        : syscall(SYS_write, descriptor, data, wanted);
  if (met != kGoOn) die();
  const int saved = errno;
  if (written > 0 && log_descriptor >= 0) {
    if (!is_positional) offset = syscall(SYS_lseek, descriptor, 0, SEEK_CUR) - written;
    const struct record record = {.begin = begin,
                                  .call = kWrite,
                                  .kind = kind,
                                  .inode = inode,
                                  .offset = offset,
                                  .length = written,
                                  .is_durable = (fcntl(descriptor, F_GETFL) & O_DSYNC) != 0,
                                  .data_size = (int32_t)written};
    note(record, path, NULL, data);
  }
  free(copy);
  errno = saved;
  return written;
}

ssize_t write(int descriptor, const void* data, size_t size) { return write_call(descriptor, data, size, -1); }
ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  return write_call(descriptor, data, size, offset);
}
ssize_t pwrite64(int descriptor, const void* data, size_t size, off_t offset) {
  return write_call(descriptor, data, size, offset);
}

// Calls that take a descriptor and at most two numbers.
static int plain_call(enum call call, int descriptor, int flags, off_t offset, off_t length) {
  char buffer[PATH_MAX];
  uint64_t inode = 0;
  const char* const path = path_of(descriptor, buffer, &inode);
  const int kind = path == NULL ? 0 : kind_of(path);
  uint64_t begin = 0;
  int met = kGoOn;
  UNDER_WAY(path != NULL);
  if (path != NULL) {
    met = meet(call, kind);
    if (met > 0) return fail(met);
    begin = tick();
  }
  long result = -1;
  if (call == kFsync) {
    result = syscall(SYS_fsync, descriptor);
  } else if (call == kFdatasync) {
    result = syscall(SYS_fdatasync, descriptor);
  } else if (call == kTruncate) {
    result = syscall(SYS_ftruncate, descriptor, offset);
  } else {
    result = syscall(SYS_fallocate, descriptor, flags, offset, length);
  }
  if (met == kDieAfterwards) die();
  if (path != NULL && result == 0) {
    const struct record record = {
        .begin = begin, .call = call, .kind = kind, .inode = inode, .offset = offset, .length = length};
    note(record, path, NULL, NULL);
  }
  return (int)result;
}

int fsync(int descriptor) { return plain_call(kFsync, descriptor, 0, 0, 0); }
int fdatasync(int descriptor) { return plain_call(kFdatasync, descriptor, 0, 0, 0); }
int ftruncate(int descriptor, off_t size) { return plain_call(kTruncate, descriptor, 0, size, 0); }
int ftruncate64(int descriptor, off_t size) { return plain_call(kTruncate, descriptor, 0, size, 0); }
int fallocate(int descriptor, int flags, off_t offset, off_t length) {
  return plain_call((flags & FALLOC_FL_PUNCH_HOLE) != 0 ? kPunch : kAllocate, descriptor, flags, offset, length);
}
int fallocate64(int descriptor, int flags, off_t offset, off_t length) {
  return fallocate(descriptor, flags, offset, length);
}

void* mmap64(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) {
  char buffer[PATH_MAX];
  uint64_t inode = 0;
  if ((flags & MAP_TYPE) != MAP_PRIVATE && (protection & PROT_WRITE) != 0 && descriptor >= 0 &&
      path_of(descriptor, buffer, &inode) != NULL) {
    errno = EOPNOTSUPP;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mmap, address, size, protection, flags, descriptor, offset);
}
void* mmap(void* address, size_t size, int protection, int flags, int descriptor, off_t offset) {
  return mmap64(address, size, protection, flags, descriptor, offset);
}

// --- calls on names
// ---------------------------------------------------------------------------------------------------

static int open_call(int directory, const char* name, int flags, mode_t mode) {
  char buffer[PATH_MAX];
  const char* path = NULL;
  if (control != NULL && (flags & (O_CREAT | O_TRUNC)) != 0 && (flags & O_TMPFILE) != O_TMPFILE &&
      absolute(directory, name, buffer)) {
    path = below_root(buffer);
  }
  if (path == NULL) return (int)syscall(SYS_openat, directory, name, flags, mode);
  UNDER_WAY(true);
  pthread_mutex_lock(&names_mutex);
  struct stat info;
  const bool is_there = stat(buffer, &info) == 0;
  const int kind = kind_of(path);
  const enum call call = is_there ? kTruncate : kCreate;
  const bool changes = is_there ? (flags & O_TRUNC) != 0 && info.st_size > 0 : (flags & O_CREAT) != 0;
  const int met = changes ? meet(call, kind) : kGoOn;
  const uint64_t begin = tick();
  const int descriptor = met > 0 ? fail(met) : (int)syscall(SYS_openat, directory, name, flags, mode);
  if (met == kDieAfterwards) die();
  if (descriptor >= 0 && changes && fstat(descriptor, &info) == 0) {
    note((struct record){.begin = begin, .call = call, .kind = kind, .inode = info.st_ino}, path, NULL, NULL);
  }
  pthread_mutex_unlock(&names_mutex);
  return descriptor;
}

#define OPEN_MODE(flags)                        \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list arguments;                          \
    va_start(arguments, flags);                 \
    mode = va_arg(arguments, mode_t);           \
    va_end(arguments);                          \
  }

int open(const char* name, int flags, ...) {
  OPEN_MODE(flags)
  return open_call(AT_FDCWD, name, flags, mode);
}
int open64(const char* name, int flags, ...) {
  OPEN_MODE(flags)
  return open_call(AT_FDCWD, name, flags, mode);
}
int openat(int directory, const char* name, int flags, ...) {
  OPEN_MODE(flags)
  return open_call(directory, name, flags, mode);
}
int openat64(int directory, const char* name, int flags, ...) {
  OPEN_MODE(flags)
  return open_call(directory, name, flags, mode);
}

// Calls that change one name, or two.
static int name_call(enum call call, int directory, const char* name, const char* second_name, mode_t mode) {
  char buffer[PATH_MAX], second_buffer[PATH_MAX];
  const char *path = NULL, *second_path = NULL;
  if (control != NULL && absolute(directory, name, buffer)) path = below_root(buffer);
  if (path != NULL && second_name != NULL && absolute(AT_FDCWD, second_name, second_buffer)) {
    second_path = below_root(second_buffer);
  }
  const int kind = path == NULL ? 0 : kind_of(path);
  UNDER_WAY(path != NULL);
  pthread_mutex_lock(&names_mutex);
  struct stat info = {0};
  // What fails by itself changes nothing: it is no place to be killed at.
  const bool changes = path != NULL && (lstat(buffer, &info) == 0) == (call != kMkdir);
  const int met = changes ? meet(call, kind) : kGoOn;
  const uint64_t begin = changes ? tick() : 0;
  long result = -1;
  if (met > 0) {
    result = fail(met);
  } else if (call == kRename) {
    result = syscall(SYS_rename, name, second_name);
  } else if (call == kMkdir) {
    result = syscall(SYS_mkdirat, directory, name, mode);
  } else {
    result = syscall(SYS_unlinkat, directory, name, call == kRmdir ? AT_REMOVEDIR : 0);
  }
  if (met == kDieAfterwards) die();
  if (result == 0 && changes) {
    if (call == kMkdir) (void)lstat(buffer, &info);
    note((struct record){.begin = begin, .call = call, .kind = kind, .inode = info.st_ino}, path, second_path, NULL);
  }
  pthread_mutex_unlock(&names_mutex);
  return (int)result;
}

int rename(const char* from, const char* to) { return name_call(kRename, AT_FDCWD, from, to, 0); }
int unlink(const char* name) { return name_call(kUnlink, AT_FDCWD, name, NULL, 0); }
int unlinkat(int directory, const char* name, int flags) {
  return name_call((flags & AT_REMOVEDIR) != 0 ? kRmdir : kUnlink, directory, name, NULL, 0);
}
int rmdir(const char* name) { return name_call(kRmdir, AT_FDCWD, name, NULL, 0); }
int mkdir(const char* name, mode_t mode) { return name_call(kMkdir, AT_FDCWD, name, NULL, mode); }
