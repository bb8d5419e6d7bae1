"""Drives of a run: their quotas hold for direct I/O and for what the page cache writes, and are gone on every way out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quarry_lab.probes import device
from quarry_lab.run import session
from quarry_lab.servers import drives

needs_quotas = pytest.mark.skipif(drives.reason_against() is not None, reason=f"needs {drives.reason_against()}")
SIZE_BYTES, QUOTA, BYTES = 256 << 20, 16 << 20, 32 << 20


def quotas() -> str:
    return "".join((drives.ROOT / name).read_text() for name in drives._LIMITS)


def write(path: Path, flags: int) -> None:
    """32 MiB, then all of the file system."""
    block = device._aligned_random(1 << 20)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o600)
    try:
        for _ in range(BYTES >> 20):
            os.write(fd, block)
    finally:
        os.close(fd)
    device.sync_file_system(path.parent)


@needs_quotas
@pytest.mark.parametrize("flags", [pytest.param(os.O_DIRECT, id="direct"), pytest.param(0, id="through the page cache")])
def test_a_quota_holds_for_all_that_reaches_the_drive(tmp_path: Path, flags):
    """Two seconds of it can't be written in less than one and a half, however fast the machine is; the other drive has no quota."""
    with drives.mounted(tmp_path, {"slow": QUOTA, "free": 0}, SIZE_BYTES) as made:
        assert made["slow"].device != made["free"].device and made["slow"].path.is_mount()
        assert quotas().count(f" {QUOTA}\n") == 2
        started = time.monotonic()
        write(made["slow"].path / "file", flags)
        assert time.monotonic() - started > 1.5 * BYTES / QUOTA / 2
        before = device.device_counters(made["free"].device)
        write(made["free"].path / "file", flags)
        after = device.device_counters(made["free"].device)
        assert before and after and after.write_bytes - before.write_bytes >= BYTES
    assert f" {QUOTA}\n" not in quotas()
    assert not any(path.is_mount() or any(path.iterdir()) for path in tmp_path.iterdir())


@needs_quotas
def test_an_error_within_takes_everything_back(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), drives.mounted(tmp_path, {"a": QUOTA, "b": QUOTA}, SIZE_BYTES):
        raise ZeroDivisionError
    assert f" {QUOTA}\n" not in quotas() and sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@needs_quotas
def test_what_a_killed_run_left_is_released_before_the_next(tmp_path: Path):
    child = f"""
import os
from pathlib import Path
from quarry_lab.servers import drives
made = drives.mounted(Path({str(tmp_path / "drives")!r}), {{"a": {QUOTA}}}, {SIZE_BYTES})
made.__enter__()
os._exit(1)  # as if killed: nothing is cleaned up
"""
    assert subprocess.run([sys.executable, "-c", child], check=False).returncode == 1
    assert (tmp_path / "drives" / "a").is_mount() and f" {QUOTA}\n" in quotas()
    session.sweep(tmp_path / "data")
    assert f" {QUOTA}\n" not in quotas() and not any(tmp_path.iterdir())


def test_a_machine_that_cannot_says_so(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(drives.journal, "reason_against", lambda: None)
    monkeypatch.setattr(drives, "ROOT", tmp_path / "no such controller")
    assert "blkio controller of cgroup v1" in str(drives.reason_against())
    monkeypatch.setattr(drives.journal, "reason_against", lambda: "root, to mount a file system with a journal")
    assert str(drives.reason_against()).startswith("root")
