"""scripts/ndb without its hour of compiling: what it asks for, what it refuses, the cluster that it would start, whom it would end."""

import configparser
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from collections import Counter

import pytest
from quarry_lab.servers import target
from quarry_server.server import REPOSITORY


@pytest.fixture
def ndb(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    loader = importlib.machinery.SourceFileLoader("ndb", str(REPOSITORY / "scripts" / "ndb"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ndb", loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    for name, path in (("NDB", ""), ("SOURCE", "source"), ("TREE", "build"), ("RUN", "run"), ("PROGRAMS", "build/bin")):
        monkeypatch.setattr(module, name, tmp_path / path)
    return module


def test_what_is_missing_for_building_is_named(ndb, monkeypatch, capsys):
    monkeypatch.setattr(ndb.shutil, "which", lambda tool: None if tool == "bison" else f"/usr/bin/{tool}")
    monkeypatch.setattr(ndb, "has_header", lambda name: name != "libaio.h")
    monkeypatch.setattr(ndb.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 5 << 30}))
    monkeypatch.setattr(ndb, "available_memory_bytes", lambda: 4 << 30)
    installed = []
    monkeypatch.setattr(ndb, "run", lambda command: installed.append([str(word) for word in command]))
    assert not ndb.check(jobs=2) and not installed
    said = capsys.readouterr().out
    for expected in ("about 52 minutes", "'scripts/ndb build' installs: bison libaio-dev", "14 GiB of free disk", "5 GiB are free", "6 GiB of available memory"):
        assert expected in said
    with pytest.raises(ndb.FetchError, match="can't start"):
        ndb.build(2, configure_only=False)
    assert installed == [[str(ndb.REPOSITORY / "scripts" / "setup"), "--with", "bison", "libaio-dev"]]
    monkeypatch.setattr(ndb, "missing_for_building", lambda _jobs: [])
    assert ndb.check(jobs=1) and "about 105 minutes" in capsys.readouterr().out


def test_a_cluster_that_is_not_built_is_not_started(ndb):
    with pytest.raises(ndb.FetchError, match="make ndb"):
        ndb.start()


def test_the_cluster_is_the_published_one_in_small(ndb, tmp_path):
    sections = Counter(line.strip("[]") for line in ndb.CONFIG.splitlines() if line.startswith("["))
    assert sections == {"ndbd default": 1, "ndb_mgmd": 1, "ndbd": 2, "mysqld": 2, "api": 1}
    assert ndb.MANAGEMENT_PORT == target.NDB_MANAGEMENT_PORT
    text = ndb.CONFIG.format(port=ndb.MANAGEMENT_PORT, run=tmp_path)
    defaults = configparser.ConfigParser(strict=False)
    defaults.read_string(text)
    assert defaults["ndbd default"]["NoOfReplicas"] == "2" and defaults["ndbd default"]["TimeBetweenLocalCheckpoints"] == "20"
    assert f"{tmp_path}/data3" in text and str(ndb.MANAGEMENT_PORT) in text
    # Both data nodes' memory and redo fit what start() asks for.
    memory, redo = 2 * 4 << 30, 2 * 4 * 48 * (32 << 20)
    assert memory < ndb.RUN_MEMORY_BYTES and memory + redo <= ndb.RUN_DISK_BYTES


def test_a_machine_without_room_for_the_cluster_is_told_what_it_takes(ndb, monkeypatch):
    """`room` asks before a start, and data of the last time, which a start removes, count as room."""
    free = {"disk": ndb.RUN_DISK_BYTES, "memory": ndb.RUN_MEMORY_BYTES}
    monkeypatch.setattr(ndb.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": free["disk"]}))
    monkeypatch.setattr(ndb, "available_memory_bytes", lambda: free["memory"])
    ndb.room()
    free["memory"] = 5 << 30
    for ask in (ndb.room, ndb.start):
        monkeypatch.setattr(ndb, "is_built", lambda: True)
        with pytest.raises(ndb.FetchError, match=r"13 GiB of memory \(5 GiB are available\)"):
            ask()
    assert not ndb.RUN.exists()
    free.update(disk=ndb.RUN_DISK_BYTES - 1, memory=ndb.RUN_MEMORY_BYTES)
    with pytest.raises(ndb.FetchError, match="40 GiB of disk"):
        ndb.room()
    (ndb.RUN / "data2").mkdir(parents=True)
    (ndb.RUN / "data2" / "left").write_bytes(b"x" * 8192)
    ndb.room()


def test_a_foreign_process_with_a_recorded_id_is_left_alone(ndb):
    (ndb.RUN / "mgm").mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as foreign:
        try:
            (ndb.RUN / "mgm" / "quarry.pid").write_text(f"{foreign.pid}\n")
            assert ndb.pid_of("mgm") is None
            ndb.stop()
            assert foreign.poll() is None
        finally:
            foreign.kill()


def test_a_server_that_works_in_its_data_directory_is_ours_too(ndb):
    """mysqld changes into it; a directory beside the node's is somebody else's."""
    for name, ours in (("sql4/data", True), ("sql44", False)):
        (ndb.RUN / name).mkdir(parents=True)
        with subprocess.Popen(["sleep", "600"], cwd=ndb.RUN / name) as process:
            try:
                (ndb.RUN / "sql4" / "quarry.pid").write_text(f"{process.pid}\n")
                assert (ndb.pid_of("sql4") == process.pid) is ours
            finally:
                process.kill()


def test_our_own_process_is_found_and_ended(ndb, capsys):
    ndb.PROGRAMS.mkdir(parents=True)
    program = ndb.PROGRAMS / "ndb_mgmd"
    program.symlink_to("/bin/sleep")
    ndb.spawn("mgm", [program, "600"])
    pid = ndb.pid_of("mgm")
    assert pid
    ndb.status()
    ndb.stop()
    assert ndb.pid_of("mgm") is None
    said = capsys.readouterr().out
    assert f"mgm: runs (pid {pid})" in said and "data2: does not run" in said and "mgm has ended" in said
    os.waitpid(pid, 0)  # our child: a server of another program's would be gone already
