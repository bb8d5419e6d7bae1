"""Whether the disk has room for the demo, asked before anything is written."""

from __future__ import annotations

from pathlib import Path

from ..probes import device
from ..report import stats

RECYCLE_BYTES = 3 << 30  # the server starts on a fresh directory when its own, redo log included, has grown beyond this
RESERVE_BYTES = 512 << 20  # left to everyone else
DEVICE_BYTES_PER_SECOND_GUESS = 1_000_000_000


class NoSpace(Exception):
    """Too little free space; the message names the bytes."""


def needed_bytes(corpus_bytes: int, update_seconds: float) -> int:
    """
    The most that can stand on the disk at once: what is kept before a fresh start, the loads of one cell (two copies,
    with room for page overhead and zeroed space), what its updates can append, and a reserve.
    """
    updates = int(update_seconds * DEVICE_BYTES_PER_SECOND_GUESS)
    return RECYCLE_BYTES + 4 * corpus_bytes + updates + RESERVE_BYTES


def check(directory: Path, corpus_bytes: int, update_seconds: float) -> None:
    """Raises NoSpace unless there is room under `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    need, free = needed_bytes(corpus_bytes, update_seconds), device.free_bytes(directory)
    if free < need:
        raise NoSpace(
            f"the demo needs {need:,} bytes ({stats.human_bytes(need)}) of free disk under {directory}, and {free:,}"
            f" bytes ({stats.human_bytes(free)}) are free: free {need - free:,} bytes more, or load less with"
            f" --megabytes (now {corpus_bytes // 1_000_000})"
        )
