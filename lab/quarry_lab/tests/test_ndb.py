"""scripts/ndb without its hour of compiling: what it asks for, what it refuses, the cluster that it would start, whom it would end."""

import configparser
import contextlib
import importlib.machinery
import importlib.util
import os
import re
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
    text = ndb.CONFIG.format(port=ndb.MANAGEMENT_PORT, run=tmp_path, hosts=ndb.HOSTS)
    defaults = configparser.ConfigParser(strict=False)
    defaults.read_string(text)
    assert defaults["ndbd default"]["NoOfReplicas"] == "2" and defaults["ndbd default"]["TimeBetweenLocalCheckpoints"] == "20"
    assert f"{tmp_path}/data3" in text and str(ndb.MANAGEMENT_PORT) in text
    # Both data nodes' memory and redo fit what start() asks for.
    memory, redo = 2 * 4 << 30, 2 * 4 * 48 * (32 << 20)
    assert memory < ndb.RUN_MEMORY_BYTES and memory + redo <= ndb.RUN_DISK_BYTES


SEND = """
import socket, sys
source, target = sys.argv[1:]
listener = socket.create_server((target, 0))
sender = socket.create_connection(listener.getsockname(), source_address=(source, 0))
receiver, _ = listener.accept()
sender.sendall(b"x" * 100_000)
left = 100_000
while left:
    left -= len(receiver.recv(left))
"""


@pytest.fixture
def links(ndb, monkeypatch):
    monkeypatch.setattr(ndb, "NAMESPACE", f"quarry-ndb-test-{os.getpid()}")
    try:
        ndb.make_links(100, ndb.NAMESPACE)
    except ndb.FetchError as error:
        pytest.skip(str(error))
    yield ndb
    ndb.remove_links(ndb.NAMESPACE)
    assert not ndb.has_namespace(ndb.NAMESPACE)


def test_a_limited_link_is_between_one_data_node_and_one_sql_node(links):
    def classed():
        command = ["tc", "-n", links.NAMESPACE, "-s", "class", "show", "dev", "lo"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {name: int(count) for name, count in re.findall(r"class htb (1:\w+) .*\n Sent (\d+) bytes", shown)}, set(re.findall(r"rate (\S+)", shown))

    def send(source, target):
        before = classed()[0]
        hosts = links.LIMITED_HOSTS[source], links.LIMITED_HOSTS[target]
        subprocess.run([*links.limited_network(links.NAMESPACE).prefix, sys.executable, "-c", SEND, *hosts], check=True)
        return {name for name, count in classed()[0].items() if count - before[name] >= 100_000}

    assert len(classed()[0]) == 8 and "100Mbit" in classed()[1]
    nodes = links.DATA_NODES + links.SQL_NODES
    ways = {(source, target): send(source, target) for source in nodes for target in nodes if source != target}
    between = {way: names for way, names in ways.items() if (way[0] in links.DATA_NODES) != (way[1] in links.DATA_NODES)}
    assert len(between) == 8 and all(len(names) == 1 for names in between.values()) and len(set.union(*between.values())) == 8
    assert all(not names for way, names in ways.items() if way not in between)


def test_limits_that_cannot_be_made_leave_nothing(ndb, monkeypatch):
    monkeypatch.setattr(ndb, "NAMESPACE", f"quarry-ndb-test-{os.getpid()}")
    begun = ndb.link_commands(100, ndb.NAMESPACE)[:2]
    monkeypatch.setattr(ndb, "link_commands", lambda _mbits, _name: [*begun, ["tc", "-n", ndb.NAMESPACE, "no-such-word"]])
    with pytest.raises(ndb.FetchError, match="kernel's htb and u32"):
        ndb.make_links(100, ndb.NAMESPACE)
    assert not ndb.has_namespace(ndb.NAMESPACE)


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


def test_a_stopped_cluster_keeps_its_logs_and_no_data(ndb, monkeypatch):
    """Private servers of the same run need that room. Data of a node that runs stay."""
    for number in ndb.DATA_NODES:
        (ndb.RUN / f"data{number}" / f"ndb_{number}_fs" / "D8").mkdir(parents=True)
        (ndb.RUN / f"data{number}" / f"ndb_{number}_fs" / "D8" / "S0.FragLog").write_bytes(b"x" * 8192)
        (ndb.RUN / f"data{number}" / f"ndb_{number}_out.log").write_text("started")
    ndb.stop()
    assert sorted(path.name for path in ndb.RUN.glob("data*/*")) == ["ndb_2_out.log", "ndb_3_out.log"]
    (ndb.RUN / "data2" / "ndb_2_fs").mkdir()
    monkeypatch.setattr(ndb, "pid_of", lambda node: os.getpid() if node == "data2" else None)
    ndb.remove_data()
    assert (ndb.RUN / "data2" / "ndb_2_fs").is_dir()


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
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # our child: a server of another program's would be gone already
