"""
A file system with a journal for the data of a run: ext4 as mke2fs makes it, in a sparse file behind a loop device with direct I/O, so on the
device of the run. What a flush costs depends on it (docs/internals/experiments.md), and not every machine's file system has one.

It needs root, and a kernel with loop devices: `reason_against` says what is missing. `release` also frees what a killed run left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quarry_server.run import run_or_raise

from ..design.request import LabError

SIZE_MAX_BYTES = 64 << 30
_PROGRAMS = ("mke2fs", "losetup", "mount", "umount", "fstrim")


def _run(*command: str) -> str:
    return run_or_raise(command, LabError).strip()


def reason_against() -> str | None:
    """Why this machine cannot have one; None if it can, as far as can be told without making one."""
    if os.geteuid() != 0:
        return "root, to mount a file system with a journal"
    if missing := [program for program in _PROGRAMS if not shutil.which(program)]:
        return f"{', '.join(missing)}, to make and mount a file system with a journal"
    if not os.path.exists("/dev/loop-control"):
        return "loop devices (/dev/loop-control), for a file system with a journal"
    return None


@contextmanager
def mounted(directory: Path, size_bytes: int) -> Iterator[None]:
    """
    An empty file system of at most `size_bytes` (it takes what is written to it) is mounted at `directory`, which may hold nothing. Errors: LabError.
    """
    image = _image(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise LabError(f"{directory} is not empty: nothing is mounted over it")
    with open(image, "wb") as file:
        file.truncate(min(size_bytes, SIZE_MAX_BYTES))
    try:
        # Tables are written now, not by the kernel beside the first points.
        _run("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        loop = _run("losetup", "--find", "--show", "--direct-io=on", str(image))
        try:
            _run("mount", loop, str(directory))
        finally:
            _run("losetup", "--detach", loop)  # from now on it lives as long as the mount
        yield
    finally:
        release(directory)


def give_back(directory: Path) -> None:
    """
    Of the file system that `mounted` made at or above `directory`, if there is one: what files took that are gone is free on the run's device again.
    Else the file behind it grows with all that was ever written to it. Where the tree's file system makes no holes in files, it does.
    """
    place = next((place for place in (directory, *directory.parents) if place.name and place.is_mount()), None)
    if place and _image(place).exists():
        with suppress(LabError):
            _run("sync", "--file-system", str(place))  # what is gone is free when the journal says so
            _run("fstrim", str(place))


def release(directory: Path) -> None:
    """Unmounts what `mounted` mounted there and removes its file. Nothing to do: nothing is done."""
    image = _image(directory)
    if not image.exists():
        return
    if directory.is_mount():
        _run("umount", str(directory))
    # A run that was killed right before it mounted left a device, which would hold the file's space for ever.
    for loop in _run("losetup", "--noheadings", "--output", "NAME", "--associated", str(image)).split():
        _run("losetup", "--detach", loop)
    image.unlink()


def _image(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.ext4")
