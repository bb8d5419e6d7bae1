"""
A memory cgroup for a server whose dataset shall not fit into memory: page cache counts as memory there, too.

Works with both hierarchies of the kernel (memory.max; memory.limit_in_bytes) where this user may write to one; `reason_against` says why
not where it is not so.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# The hierarchy of version 1, and where version 2 may be mounted: (directory, file of the limit).
_HIERARCHIES = ((_ROOT / "memory", "memory.limit_in_bytes"), (_ROOT, "memory.max"), (_ROOT / "unified", "memory.max"))
# Swap would be memory by another name: (file, what to write for a limit). Missing where the kernel does not count it.
_SWAP = (("memory.memsw.limit_in_bytes", lambda limit: limit), ("memory.swap.max", lambda limit: 0))
_REMOVE_SECONDS_MAX = 10


class MemoryCgroup:
    """A cgroup of this process's making. Use as a context manager; every process in it must have ended before it is left."""

    def __init__(self, limit_bytes: int):
        self.limit_bytes = limit_bytes
        parent, self._limit_file = _usable_hierarchy()
        _remove_leftovers(parent)
        self.path = parent / f"quarry-lab-{os.getpid()}"

    def __enter__(self) -> MemoryCgroup:
        self.path.mkdir()
        try:
            (self.path / self._limit_file).write_text(str(self.limit_bytes))
            for name, value in _SWAP:
                if (self.path / name).exists():
                    (self.path / name).write_text(str(value(self.limit_bytes)))
        except BaseException:
            self.path.rmdir()
            raise
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

    def describe(self) -> dict:
        return {"limit_bytes": int((self.path / self._limit_file).read_text()), "path": str(self.path), "file": self._limit_file}


def _remove_leftovers(parent: Path) -> None:
    """Empty ones of runs that were killed."""
    for path in parent.glob("quarry-lab-*"):
        pid = path.name.rpartition("-")[2]
        if not os.path.exists(f"/proc/{pid}") and not (path / "cgroup.procs").read_text():
            path.rmdir()


def _usable_hierarchy() -> tuple[Path, str]:
    for directory, limit_file in _HIERARCHIES:
        if _may_limit(directory, limit_file):
            return directory, limit_file
    raise OSError("no memory cgroup can be made here")


def _may_limit(directory: Path, limit_file: str) -> bool:
    """Tried, not guessed: in a container the hierarchy may be there and read-only."""
    child = directory / f"quarry-lab-probe-{os.getpid()}"
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
