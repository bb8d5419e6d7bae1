"""
A cgroup that this process makes for a server of its own, with a limit of one kind: what the limits of memory and of processor time share.

Works with both hierarchies of the kernel where this user may write to one; `reason_against` says why not where it is not so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

ROOT = Path("/sys/fs/cgroup")
_REMOVE_SECONDS_MAX = 10


class Hierarchies:
    """
    Where a limit of one kind may be set. kind: as messages name it. places: (directory, file of the limit), of version 1 and of where version 2 may
    be mounted. prefix: of the names of our cgroups.
    """

    def __init__(self, kind: str, prefix: str, places: Iterable[tuple[Path, str]]):
        self.kind, self.prefix, self.places = kind, prefix, tuple(places)

    def usable(self) -> tuple[Path, str]:
        """The first where a limit can be set. Error: OSError."""
        for directory, limit_file in self.places:
            if self._may_limit(directory, limit_file):
                return directory, limit_file
        raise OSError(f"no {self.kind} cgroup can be made here")

    def reason_against(self) -> str | None:
        """None where a limit can be set."""
        try:
            self.usable()
        except OSError as error:
            return str(error)
        return None

    def remove_leftovers(self, parent: Path) -> None:
        """Empty ones of runs that were killed."""
        for path in parent.glob(f"{self.prefix}-*"):
            pid = path.name.rpartition("-")[2]
            if not os.path.exists(f"/proc/{pid}") and not (path / "cgroup.procs").read_text():
                path.rmdir()

    def _may_limit(self, directory: Path, limit_file: str) -> bool:
        """Tried, not guessed: in a container the hierarchy may be there and read-only."""
        child = directory / f"{self.prefix}-probe-{os.getpid()}"
        try:
            child.mkdir()
        except OSError:
            return False
        try:
            return (child / limit_file).exists() and os.access(child / limit_file, os.W_OK)
        finally:
            child.rmdir()


class Cgroup:
    """Use as a context manager; every process in it must have ended before it is left."""

    def __init__(self, hierarchies: Hierarchies):
        parent, self._limit_file = hierarchies.usable()
        hierarchies.remove_leftovers(parent)
        self.path = parent / f"{hierarchies.prefix}-{os.getpid()}"

    def __enter__(self) -> Self:
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
