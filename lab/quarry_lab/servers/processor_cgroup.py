"""
A cgroup that limits the processor time of a server: a weak machine is played by a strong one that may run a part of each period.

Works with both hierarchies of the kernel (cpu.max; cpu.cfs_quota_us) where this user may write to one; `reason_against` says why not where it is
not so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# The hierarchy of version 1, and where version 2 may be mounted: (directory, file of the limit).
_HIERARCHIES = ((_ROOT / "cpu", "cpu.cfs_quota_us"), (_ROOT / "cpu,cpuacct", "cpu.cfs_quota_us"), (_ROOT, "cpu.max"), (_ROOT / "unified", "cpu.max"))
_PERIOD_FILE = "cpu.cfs_period_us"  # of version 1, next to the quota
PERIOD_US, QUOTA_US_MIN = 10_000, 1_000  # short, so that a fetch meets many of them; the kernel takes no quota below a millisecond
_REMOVE_SECONDS_MAX = 10
_PREFIX = "quarry-lab-cpu"


class ProcessorCgroup:
    """A cgroup of this process's making, without a limit at first. Use as a context manager; every process in it must have ended before it is left."""

    def __init__(self) -> None:
        parent, self._limit_file = _usable_hierarchy()
        _remove_leftovers(parent)
        self.path = parent / f"{_PREFIX}-{os.getpid()}"

    def __enter__(self) -> ProcessorCgroup:
        self.path.mkdir()
        return self

    def __exit__(self, *_exc) -> None:
        # The kernel lets go of a process that was just killed a moment later.
        deadline = time.monotonic() + _REMOVE_SECONDS_MAX
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @contextmanager
    def limited(self, processors: float) -> Iterator[None]:
        """Meanwhile its processes have so many processors' time together."""
        quota = max(QUOTA_US_MIN, round(processors * PERIOD_US))
        self._write(str(quota))
        try:
            yield
        finally:
            self._write("max" if self._limit_file == "cpu.max" else "-1")

    def quota_us(self) -> int | None:
        """Of each period; None: no limit."""
        found = (self.path / self._limit_file).read_text().split()[0]
        return None if found in ("max", "-1") else int(found)

    def _write(self, quota: str) -> None:
        if self._limit_file == "cpu.max":
            (self.path / self._limit_file).write_text(f"{quota} {PERIOD_US}")
            return
        if quota != "-1":
            (self.path / _PERIOD_FILE).write_text(str(PERIOD_US))
        (self.path / self._limit_file).write_text(quota)


def _remove_leftovers(parent: Path) -> None:
    """Empty ones of runs that were killed."""
    for path in parent.glob(f"{_PREFIX}-*"):
        pid = path.name.rpartition("-")[2]
        if not os.path.exists(f"/proc/{pid}") and not (path / "cgroup.procs").read_text():
            path.rmdir()


def _usable_hierarchy() -> tuple[Path, str]:
    for directory, limit_file in _HIERARCHIES:
        if _may_limit(directory, limit_file):
            return directory, limit_file
    raise OSError("no processor cgroup can be made here")


def _may_limit(directory: Path, limit_file: str) -> bool:
    """Tried, not guessed: in a container the hierarchy may be there and read-only."""
    child = directory / f"{_PREFIX}-probe-{os.getpid()}"
    try:
        child.mkdir()
    except OSError:
        return False
    try:
        return (child / limit_file).exists() and os.access(child / limit_file, os.W_OK)
    finally:
        child.rmdir()


def reason_against() -> str | None:
    """None where a limit can be set."""
    try:
        _usable_hierarchy()
    except OSError as error:
        return str(error)
    return None
