"""
Drives of a run: each a file system of its own (journal.py) behind a loop device with an I/O quota, so that one machine's device stands for several
slower ones.

The quota is the blkio controller's of cgroup v1. It counts what a group's own processes submit: direct I/O, reads, and what a flush makes them write.
What the page cache writes by itself is the kernel's, in the root group. So the lab sets the quota there, for the drive's device alone: then all that
reaches the device counts, its journal too. A process in another group of that controller is not counted; private servers are in none.

Invariants: only loop devices that this module made have a quota; it is taken back before the device goes. `release` does so for a killed run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..design.request import LabError
from ..probes import device
from . import journal

ROOT = Path("/sys/fs/cgroup/blkio")
_LIMITS = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")


@dataclass(frozen=True)
class Drive:
    path: Path
    device: str  # the kernel's name, e.g. loop3
    bytes_per_second: int  # of reads, and of writes beside them; 0: no quota


def reason_against() -> str | None:
    """Why this machine cannot have drives with quotas; None if it can."""
    if reason := journal.reason_against():
        return reason
    if not all(os.access(ROOT / name, os.W_OK) for name in _LIMITS):
        return f"the blkio controller of cgroup v1 ({ROOT}, writable), for drives with quotas"
    if _own_group() != "/":
        return f"to run in the root group of the blkio controller, not in {_own_group()}: quotas there do not count this process"
    return None


def place(data: Path) -> Path:
    """Where the drives of a run are whose servers' data lie in `data`: beside it, for that may be a file system behind a loop device itself."""
    return data.with_name("drives")


def _own_group() -> str:
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _number, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(","):
            return path
    return ""


@contextmanager
def mounted(directory: Path, quotas: Mapping[str, int], size_bytes: int) -> Iterator[dict[str, Drive]]:
    """
    Empty drives of at most `size_bytes`, mounted at directory/<name>. quotas: bytes a second of each by its name, 0 for none. Errors: LabError.
    """
    with ExitStack() as stack:
        yield {name: stack.enter_context(_drive(directory / name, quota, size_bytes)) for name, quota in quotas.items()}


@contextmanager
def _drive(path: Path, quota: int, size_bytes: int) -> Iterator[Drive]:
    with journal.mounted(path, size_bytes):
        name = device.device_of(path)
        assert name
        try:
            if quota:
                _limit(path, quota)
            yield Drive(path, name, quota)
        finally:
            _limit(path, 0)


def release(directory: Path) -> None:
    """Takes back what `mounted` made there and a killed run left. Nothing to do: nothing is done."""
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.is_mount():
            _limit(path, 0)
        if path.is_dir():
            journal.release(path)


def _limit(path: Path, bytes_per_second: int) -> None:
    """Of the device mounted there; 0 takes the quota back."""
    number = os.stat(path).st_dev
    for name in _LIMITS:
        try:
            (ROOT / name).write_text(f"{os.major(number)}:{os.minor(number)} {bytes_per_second}\n", encoding="ascii")
        except OSError as error:
            raise LabError(f"{ROOT / name} takes no quota for {path}: {error}") from error
