"""The file system with a journal that a run can ask for: made, mounted, used, and gone on every way out."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quarry_lab.cli import main
from quarry_lab.design.plan import Point
from quarry_lab.design.profile import PRODUCTION
from quarry_lab.design.request import LabError, Settings
from quarry_lab.experiments.targets.experiment import Targets
from quarry_lab.probes import device
from quarry_lab.run import runner, session
from quarry_lab.servers import journal
from quarry_lab.servers.lab_server import LabServer

needs_loop_devices = pytest.mark.skipif(journal.reason_against() is not None, reason=f"needs {journal.reason_against()}")
SIZE_BYTES = 256 << 20


@needs_loop_devices
def test_it_is_mounted_has_a_journal_and_is_gone_afterwards(tmp_path: Path):
    place = tmp_path / "data"
    with journal.mounted(place, SIZE_BYTES):
        assert place.is_mount() and device.has_journal(device.device_of(place)) is True
        assert device.free_bytes(place) < SIZE_BYTES
        (place / "file").write_bytes(b"x" * 4096)
    assert not place.is_mount() and list(tmp_path.iterdir()) == [place] and not any(place.iterdir())
    assert str(tmp_path) not in subprocess.run(["losetup", "--list", "--output", "BACK-FILE"], capture_output=True, text=True, check=True).stdout


@needs_loop_devices
def test_space_of_files_that_are_gone_is_given_back(tmp_path: Path):
    place = tmp_path / "data"
    with journal.mounted(place, SIZE_BYTES):
        (place / "server").mkdir()
        (place / "server" / "file").write_bytes(os.urandom(64 << 20))
        os.sync()
        image = tmp_path / "data.ext4"
        before = image.stat().st_blocks * 512
        (place / "server" / "file").unlink()
        journal.give_back(place / "server")
        assert image.stat().st_blocks * 512 < before - (48 << 20)
    journal.give_back(place)  # nothing is mounted: nothing to do


def test_a_device_of_a_run_that_was_killed_before_it_mounted_goes(tmp_path: Path, monkeypatch):
    ran = []

    def run(*command):
        ran.append(command)
        return "/dev/loop7" if "--associated" in command else ""

    monkeypatch.setattr(journal, "_run", run)
    image = tmp_path / "data.ext4"
    image.write_bytes(b"")
    journal.release(tmp_path / "data")
    assert ran[-1] == ("losetup", "--detach", "/dev/loop7") and not image.exists()
    journal.release(tmp_path / "data")  # nothing is there: nothing is done
    assert len(ran) == 2


def test_it_is_as_large_as_the_experiment_needs_and_half_as_much(tmp_path: Path, monkeypatch):
    """And what a device takes of inserts. It may have less: then as large as that allows."""
    sizes = []
    request = replace(Targets().default_request(), profile=PRODUCTION)
    monkeypatch.setattr(session, "wants_journal", lambda _request: True)
    monkeypatch.setattr(session.journal, "mounted", lambda _place, size_bytes: contextlib.nullcontext(sizes.append(size_bytes)))
    need = Targets().disk_bytes(request)
    reading = replace(request, operations=["read"])
    for asked, free in ((reading, 10 * need), (request, 10 * need), (request, need + request.settings.disk_reserve_bytes)):
        monkeypatch.setattr(session.device, "free_bytes", lambda _place, free=free: free)
        with session.data_file_system(Targets(), asked):
            pass
    assert sizes == [need * 3 // 2, need * 3 // 2 + (24 << 30), need], "a point of inserts is 2 s and 10 s"


@pytest.mark.parametrize("rate_gib, is_mount, free_gib, needed", [
    (1, False, 19, "20.0 GiB"), (1, True, 11, "12.0 GiB"), (1, False, 20, ""), (1, True, 12, ""), (4, True, 24, ""), (4, True, 23, "24.0 GiB")])
def test_an_insert_needs_the_reserve_only_where_others_have_files(tmp_path: Path, monkeypatch, rate_gib, is_mount, free_gib, needed):
    """
    A file system of the run's own was made with the reserve left beside it, and for what an engine writes: the same that is asked for here, however
    fast the device is.
    """
    bench, server = runner.TableBench.__new__(runner.TableBench), LabServer.__new__(LabServer)
    bench.settings, bench.write_rate = Settings(seconds=10, warmup_seconds=2), float(rate_gib << 30)
    server.directory = tmp_path / "data" / "main"
    monkeypatch.setattr(bench, "_recycle", lambda _server: None)
    monkeypatch.setattr(Path, "is_mount", lambda path: is_mount and path == tmp_path / "data")
    monkeypatch.setattr(runner.device, "free_bytes", lambda _place: free_gib << 30)
    with pytest.raises(LabError, match=f"may need {needed}") if needed else contextlib.nullcontext():
        bench._check_space(Point(1, "insert", 64 << 10, 8, "quarry"), server, None)


@needs_loop_devices
def test_an_error_within_leaves_nothing(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), journal.mounted(tmp_path / "data", SIZE_BYTES):
        raise ZeroDivisionError
    assert not (tmp_path / "data").is_mount() and not (tmp_path / "data.ext4").exists()


@needs_loop_devices
def test_what_a_killed_run_left_is_released_before_the_next(tmp_path: Path):
    place = tmp_path / "data"
    child = f"""
import os
from pathlib import Path
from quarry_lab.servers import journal
mounted = journal.mounted(Path({str(place)!r}), {SIZE_BYTES})
mounted.__enter__()
(Path({str(place)!r}) / "of the run").write_bytes(b"0")
os._exit(1)  # as if killed: nothing is cleaned up
"""
    assert subprocess.run([sys.executable, "-c", child], check=False).returncode == 1
    assert place.is_mount() and (place / "of the run").exists()
    session.sweep(place)
    assert not place.exists() and not any(tmp_path.iterdir())


def test_nothing_is_mounted_over_files(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(b"0")
    with pytest.raises(LabError, match="is not empty"), journal.mounted(tmp_path / "data", SIZE_BYTES):
        pass
    assert (tmp_path / "data" / "file").exists() and not (tmp_path / "data.ext4").exists()


def test_a_machine_that_cannot_says_so_before_any_work(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(journal, "_PROGRAMS", ("mke2fs", "no-such-program"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(session, "DATA", tmp_path / "data")
    assert main(["bench", "--exp", "targets", "--scale", "quick", "--output", str(tmp_path / "out")]) != 0
    assert "no-such-program, to make and mount a file system with a journal" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in str(journal.reason_against())


def test_a_run_of_one_profile_is_not_one_of_the_other():
    bare = Targets().request("quick")
    assert bare.identity() != replace(bare, profile=PRODUCTION).identity()
    assert device.has_journal("no-such-device") is None
