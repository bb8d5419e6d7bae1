"""Files: durable writes, copies that keep holes, links to equal files of an earlier backup, checksums.

Thread-safety: every function may be called from several threads for different files.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time

CHUNK_SIZE_BYTES = 1 << 20
FICLONE = 0x40049409
# As MariaDB makes its directories; a backup, and what is restored, are nobody else's.
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
PASSABLE_MODE = 0o755
# A file whose last change is younger may change once more without a new time stamp (they are as coarse as 10 ms).
SETTLED_NS = 2_000_000_000


class BackupError(Exception):
    """Something is wrong; the message says what, and what to do."""


@contextlib.contextmanager
def named(path):
    """The system's errors within name this path: of a descriptor they know none, and on the way to a file one step of it."""
    try:
        yield
    except OSError as failure:
        failure.filename, failure.filename2 = path, None
        raise


def _sync(path, flags=0):
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        with named(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path):
    _sync(path)


def sync_directory(path):
    _sync(path, os.O_DIRECTORY)


def make_directories(path):
    """Like mkdir -p, with the names made durable."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return
    make_directories(os.path.dirname(path))
    os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
    sync_directory(os.path.dirname(path))


def make_directories_to_be_synced(path):
    """The same without the durability, which sync_tree gives to all at once: a server may have 100,000 stores."""
    os.makedirs(path, DIRECTORY_MODE, exist_ok=True)


def make_passable(path):
    """As make_directories, for what is above a data directory: the server's account must be able to pass through it."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return
    make_passable(os.path.dirname(path))
    make_directories(path)
    os.chmod(path, PASSABLE_MODE)


def write_durably(path, contents):
    """Replaces `path` with the bytes `contents`: either the old or the new file survives a crash."""
    temporary = f"{path}.new"
    with named(path):
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as stream:
            stream.write(contents)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    sync_directory(os.path.dirname(path))


def is_within(name):
    """A relative name that cannot lead out of the directory it is joined to."""
    return bool(name) and not os.path.isabs(name) and os.path.normpath(name) == name and name.split("/")[0] != ".."


def identity(status):
    """What changes whenever a file does, as long as the machine runs: its change time cannot be set by hand."""
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def boot_id():
    """Of this start of the machine; None where the system does not tell. An identity holds for one start: fdatasync makes a
    write durable without its time, so that after a power cut a changed file may have the identity that it had before."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return None


def is_settled(status):
    return time.time_ns() - max(status.st_ctime_ns, status.st_mtime_ns) > SETTLED_NS


def checksum(path, progress=None):
    """SHA-256 of a whole file, as sha256sum prints it."""
    digest = hashlib.sha256()
    with named(path), open(path, "rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK_SIZE_BYTES):
            digest.update(chunk)
            if progress:
                progress(len(chunk))
    return digest.hexdigest()


def data_ranges(descriptor, size_bytes):
    """(start, end) of what is no hole; the whole file where holes cannot be told."""
    position = 0
    while position < size_bytes:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as failure:
            if failure.errno == 6:  # ENXIO: only a hole follows
                return
            yield position, size_bytes
            return
        yield min(start, size_bytes), min(end, size_bytes)
        position = end


def hash_zeros(digest, count):
    zeros = bytes(CHUNK_SIZE_BYTES)
    while count > 0:
        digest.update(zeros[: min(count, len(zeros))])
        count -= len(zeros)


def _write_at(descriptor, chunk, position):
    """All of it. A disk that is nearly full takes a part without an error, which comes with the next write."""
    left = memoryview(chunk)
    while left:
        written = os.pwrite(descriptor, left, position)
        left, position = left[written:], position + written


def _copy_ranges(source, target, target_path, size_bytes, progress):
    digest = hashlib.sha256()
    position = 0
    for start, end in data_ranges(source, size_bytes):
        hash_zeros(digest, start - position)
        position = start
        while position < end:
            chunk = os.pread(source, min(CHUNK_SIZE_BYTES, end - position), position)
            if not chunk:
                raise BackupError("the file became shorter while it was read")
            with named(target_path):
                _write_at(target, chunk, position)
            digest.update(chunk)
            position += len(chunk)
            progress(len(chunk))
    hash_zeros(digest, size_bytes - position)
    with named(target_path):
        os.ftruncate(target, size_bytes)
    return digest.hexdigest()


def copy(source_path, target_path, progress=lambda count: None, clone=True):
    """Copies one file with its holes, durably but for the directory's entry. Returns (size in bytes, SHA-256, identity
    of the source or None when it may still be changing).

    Where the file system can, the two share their blocks. A file that grows meanwhile is copied up to the size that it
    had at the beginning.
    """
    source = os.open(source_path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return copy_open(source, target_path, progress, clone)
    except OSError as failure:
        failure.filename = failure.filename or source_path
        raise
    finally:
        os.close(source)


def copy_open(source, target_path, progress=lambda count: None, clone=True):
    """The same, of a descriptor; an OSError without a name is of reading it."""
    before = os.fstat(source)
    target = os.open(target_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    try:
        size_bytes = before.st_size
        if clone and _clone(source, target):
            size_bytes = os.fstat(target).st_size
            digest = checksum(target_path, progress)
        else:
            digest = _copy_ranges(source, target, target_path, size_bytes, progress)
        with named(target_path):
            os.fsync(target)
        # Whoever uses this machine's memory needs it for other things.
        os.posix_fadvise(target, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(target)
    after = os.fstat(source)
    if after.st_size < size_bytes:
        raise BackupError("the file became shorter while it was read")
    is_same = identity(before) == identity(after) and size_bytes == after.st_size and is_settled(after)
    return size_bytes, digest, identity(after) if is_same else None


def _clone(source, target):
    try:
        fcntl.ioctl(target, FICLONE, source)
        return True
    except OSError:
        return False


def link(source_path, target_path):
    """A second name for a file that nobody ever changes. False where there can be none, as on another file system."""
    try:
        os.link(source_path, target_path, follow_symlinks=False)
        return True
    except OSError:
        return False


def link_or_copy(source_path, target_path):
    if not link(source_path, target_path):
        copy(source_path, target_path)


def walk_files(directory):
    """Relative names of all files below, sorted."""
    found = []
    for parent, _, names in os.walk(directory):
        found += [os.path.relpath(os.path.join(parent, name), directory) for name in names]
    return sorted(found)


def sync_tree(directory):
    """Makes all names below durable (files are synced by who writes them)."""
    for parent, _, _ in os.walk(directory):
        sync_directory(parent)


def status_of(path):
    """Of a link itself; None when nothing is there, or has gone just now."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def allocated_bytes(paths):
    """What files occupy; a directory counts with all below it; what is gone counts nothing, and what a link leads to neither."""
    total = 0
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            total += allocated_bytes(os.path.join(path, name) for name in walk_files(path))
        else:
            status = status_of(path)
            total += status.st_blocks * 512 if status else 0
    return total


def _existing(path):
    """`path`, or what is above it and exists."""
    while not os.path.exists(path):
        path = os.path.dirname(os.path.abspath(path))
    return path


def device_of(path):
    """The file system on which `path` is or will be."""
    return os.stat(_existing(path)).st_dev


def free_bytes(path):
    """What an ordinary user may still write where `path` is or will be."""
    status = os.statvfs(_existing(path))
    return status.f_bavail * status.f_frsize


def require_space(path, needed_bytes, what):
    free = free_bytes(path)
    if free < needed_bytes:
        raise BackupError(
            f"{what} needs about {human(needed_bytes)}, and {path} has {human(free)} free: make room, or choose "
            "another place (to start all the same: --skip-space-check)"
        )


def human(count):
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def require_empty(path, what):
    if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise BackupError(f"{what} {path} is there already and not empty: choose another, or remove it first")


def require_own(path, what):
    """Of what is there, a link or what it leads to: its owner could put links where we write, and take away what we wrote."""
    if not os.path.lexists(path):
        return
    for status in (os.lstat(path), os.stat(path)):
        if status.st_uid != os.geteuid():
            raise BackupError(
                f"{what} {path} belongs to user id {status.st_uid}, and this is user id {os.geteuid()}: chown it, or name one that "
                "is not there yet"
            )


def change_owner(directory, user, group):
    """Of the directory and all below it; a link itself, not what it leads to."""
    for parent, folders, names in os.walk(directory):
        for path in (parent, *(os.path.join(parent, name) for name in (*folders, *names))):
            os.chown(path, user, group, follow_symlinks=False)


def remove_tree(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
