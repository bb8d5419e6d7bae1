"""
What the device under a directory can do, and what was written to it.

The raw figures are taken on the data directory's own file system, with direct I/O and random bytes, so that the share of the device's
rate that an engine reaches can be stated. Everything is removed afterwards.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..report import stats

PROBE_SPAN_BYTES = 64 << 20  # of files that are written over
HUGE_PAGE_BYTES = 2 << 20
ENGINE_BYTES_PER_SECOND_MAX = 2 << 30  # more than an engine gets through here, on any device
SECTOR_BYTES = 512  # /proc/diskstats counts in these, whatever the device's own sector is


def device_of(path: str | Path) -> str | None:
    """Kernel name (e.g. nvme0n1p1) of the block device under a path; None for file systems without one (overlay, tmpfs)."""
    number = os.stat(path).st_dev
    wanted = (str(os.major(number)), str(os.minor(number)))
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if (fields[0], fields[1]) == wanted:
            return fields[2]
    return None


def has_journal(name: str | None) -> bool | None:
    """Whether the ext4 on that device has one; None: another file system, or not to be told."""
    try:
        return Path(f"/sys/fs/ext4/{name}/journal_task").read_text().strip() != "<none>"
    except OSError:
        return None


@dataclass(frozen=True)
class DeviceCounters:
    """Since boot, by everyone, the file system's own journal included."""

    read_bytes: int
    write_bytes: int
    busy_ms: int  # with at least one request on its way


def device_counters(name: str | None) -> DeviceCounters | None:
    if name is None:
        return None
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == name:
            return DeviceCounters(int(fields[5]) * SECTOR_BYTES, int(fields[9]) * SECTOR_BYTES, int(fields[12]))
    return None


def device_bytes_written(name: str | None) -> int | None:
    found = device_counters(name)
    return found.write_bytes if found else None


@dataclass(frozen=True)
class ProcessIo:
    """/proc/<pid>/io: what the process made the device read and write."""

    read_bytes: int
    write_bytes: int


def process_io(pid: int) -> ProcessIo:
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return ProcessIo(int(fields["read_bytes"]), int(fields["write_bytes"]))


def free_bytes(path: str | Path) -> int:
    info = os.statvfs(path)
    return info.f_bavail * info.f_frsize


def files_below(directory: str | Path) -> Iterator[str]:
    """Paths of all that is no directory, at any depth."""
    for root, _directories, names in os.walk(directory):
        for name in names:
            yield os.path.join(root, name)


def allocated_bytes(paths: Iterable[str | Path]) -> int:
    """Blocks of the files, as du sees them. One that a running server removes meanwhile takes none."""
    total = 0
    for path in paths:
        try:
            total += os.lstat(path).st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def page_cache_bytes(directory: str | Path) -> int:
    """What the kernel's page cache holds of the files under a directory: memory too, though no server's own."""
    files = list(files_below(directory))
    if not files:
        return 0
    # A file that vanishes meanwhile makes fincore complain, and holds nothing.
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *files]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return sum(int(line) for line in found.stdout.split())


def drop_page_cache(directory: str | Path) -> None:
    """The kernel lets go of all that it holds of the files under a directory, once it is written."""
    sync_file_system(Path(directory))
    for path in files_below(directory):
        if os.path.isfile(path) and not os.path.islink(path):
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def anonymous_bytes(pid: int) -> int | None:
    """
    Resident memory of a process that no file is behind: heap, stacks, caches of its own; not its code, not the page cache. None when it
    has ended.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), None)


def memory_info() -> dict[str, int]:
    """Bytes of /proc/meminfo that bear on buffered writes."""
    wanted = ("MemTotal", "MemFree", "MemAvailable", "Cached", "Dirty", "Writeback")
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, value = line.split(":")
        if name in wanted:
            found[name] = int(value.split()[0]) * 1024
    return found


def _aligned_random(size: int) -> mmap.mmap:
    """Page-aligned memory of random bytes, as direct I/O demands."""
    buffer = mmap.mmap(-1, size)
    buffer.write(os.urandom(size))
    return buffer


def _huge_pages(size: int) -> mmap.mmap:
    """Memory of at least `size` in as few pieces as the system has: a device pays for each piece of a request."""
    whole = -(-size // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    buffer = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without them
        buffer.madvise(mmap.MADV_HUGEPAGE)
    for offset in range(0, whole, mmap.PAGESIZE):
        buffer[offset] = 1  # else every page of it is the one of zeros
    return buffer


def _open_direct(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_DIRECT, 0o600)


def sequential_write_rate(directory: Path, seconds: float = 3.0, writers: int = 4, block_bytes: int = 1 << 20,
                          bytes_max: int = 8 << 30) -> float:
    """Bytes per second of `writers` parallel streams, each a growing file of its own, until time or `bytes_max` runs out; fdatasync included."""
    written = [0] * writers
    errors: list[OSError] = []
    paths = [directory / f"quarry-probe-{os.getpid()}-{i}" for i in range(writers)]

    def stream(index: int, deadline: float) -> None:
        try:
            fd = _open_direct(paths[index])
            try:
                block = memoryview(_aligned_random(block_bytes))
                offset = 0
                while time.monotonic() < deadline and offset < bytes_max // writers:
                    offset += os.pwrite(fd, block, offset)
                    written[index] = offset
                os.fdatasync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            errors.append(error)

    started = time.monotonic()
    threads = [threading.Thread(target=stream, args=(i, started + seconds)) for i in range(writers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed = time.monotonic() - started
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    if errors:
        raise errors[0]
    return sum(written) / elapsed


@contextlib.contextmanager
def random_file(directory: Path, file_bytes: int) -> Iterator[Path]:
    """A file of that many bytes (whole MiB), no zeros that a device may know of, to be read past the page cache. Removed at the end."""
    path = directory / f"quarry-probe-{os.getpid()}-read"
    try:
        fd = _open_direct(path)
        try:
            _write_span(fd, file_bytes)
        finally:
            os.close(fd)
        yield path
    finally:
        path.unlink(missing_ok=True)


def random_read_rate(directory: Path, seconds: float = 2.0, readers: int = 16, block_bytes: int = 32 << 10, file_bytes: int = 1 << 30) -> float:
    """Bytes per second of `readers` threads that read aligned blocks at random places of one file, past the page cache, into huge pages."""
    done = [0] * readers

    def read(path: Path, index: int, deadline: float) -> None:
        rng, block = random.Random(index), memoryview(_huge_pages(block_bytes))[:block_bytes]
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            while time.monotonic() < deadline:
                done[index] += os.preadv(fd, [block], rng.randrange(file_bytes // block_bytes) * block_bytes)
        finally:
            os.close(fd)

    with random_file(directory, file_bytes) as path:
        started = time.monotonic()
        threads = [threading.Thread(target=read, args=(path, i, started + seconds)) for i in range(readers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / (time.monotonic() - started)


def durable_write_latencies(directory: Path, bytes_each: int = 65536, seconds: float = 1.0, overwrite: bool = False) -> list[float]:
    """
    Seconds of each single-threaded pwrite + fdatasync of `bytes_each`, one after another.
    overwrite=False: the file grows (the file system commits its journal each time); True: into space written and flushed before.
    """
    path = directory / f"quarry-probe-{os.getpid()}-latency"
    try:
        fd = _open_direct(path)
        try:
            if overwrite:
                _write_span(fd, PROBE_SPAN_BYTES)
            value = memoryview(_aligned_random(bytes_each))
            latencies, offset, deadline = [], 0, time.monotonic() + seconds
            while time.monotonic() < deadline:
                started = time.monotonic()
                os.pwrite(fd, value, offset % PROBE_SPAN_BYTES if overwrite else offset)
                os.fdatasync(fd)
                latencies.append(time.monotonic() - started)
                offset += bytes_each
        finally:
            os.close(fd)
    finally:
        path.unlink(missing_ok=True)
    return latencies


def _write_span(fd: int, size: int) -> None:
    """Durably, from the file's start on; whole MiB."""
    block = memoryview(_aligned_random(1 << 20))
    for offset in range(0, size, 1 << 20):
        os.pwrite(fd, block, offset)
    os.fdatasync(fd)


def probe(directory: Path, seconds: float = 3.0) -> dict:
    """The device's own figures, as the results record them. Needs up to 8 GiB of free space for its files, removed at once."""
    budget = min(8 << 30, free_bytes(directory) // 4)
    rate = sequential_write_rate(directory, seconds, bytes_max=budget)
    growing = durable_write_latencies(directory)
    overwriting = durable_write_latencies(directory, overwrite=True)
    return {
        "time": time.time(),
        "sequential_write_bytes_per_second": rate,
        "durable_64KB_growing_us_median": stats.summarize(growing).median * 1e6,
        "durable_64KB_growing_us_p95": stats.percentile(growing, 95) * 1e6,
        "durable_64KB_overwriting_us_median": stats.summarize(overwriting).median * 1e6,
        "durable_64KB_overwriting_us_p95": stats.percentile(overwriting, 95) * 1e6,
    }


def sync_file_system(directory: Path) -> None:
    """syncfs: what the page cache still holds for this file system is written."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "syncfs failed", str(directory))
    finally:
        os.close(fd)
