"""A weak server, and a primary and its replica behind a proxy: the cgroup's quota, and connections that meet both servers."""

import os
import subprocess
import time
from pathlib import Path

import pymysql
import pytest
from quarry_lab.servers import processor_cgroup, routed
from quarry_lab.servers.links import LOOPBACK
from quarry_server.ports import free_ports
from quarry_server.private import new_secret

SPIN = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nprint(time.process_time())"


def spin(cgroup: Path) -> float:
    """Processor seconds of a second in the cgroup."""
    command = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup), "/usr/bin/python3", "-c", SPIN]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_quota_holds_and_goes():
    if reason := processor_cgroup.reason_against():
        pytest.skip(reason)
    with processor_cgroup.ProcessorCgroup() as cgroup:
        assert cgroup.quota_us() is None
        with cgroup.limited(0.2):
            assert cgroup.quota_us() == 0.2 * processor_cgroup.PERIOD_US
            # A machine under load gives less; the kernel lets a slice run over by a little.
            assert spin(cgroup.path) < 0.4
        assert cgroup.quota_us() is None
    assert not cgroup.path.exists()


def test_a_quota_is_never_below_what_the_kernel_takes():
    if reason := processor_cgroup.reason_against():
        pytest.skip(reason)
    with processor_cgroup.ProcessorCgroup() as cgroup, cgroup.limited(0.0001):
        assert cgroup.quota_us() == processor_cgroup.QUOTA_US_MIN


def test_cgroups_of_killed_runs_go():
    if reason := processor_cgroup.reason_against():
        pytest.skip(reason)
    (ended := subprocess.Popen(["true"])).wait()
    with processor_cgroup.ProcessorCgroup() as cgroup:
        left = cgroup.path.with_name(f"quarry-lab-cpu-{ended.pid}")
        left.mkdir()
    with processor_cgroup.ProcessorCgroup():
        assert not left.exists()


def test_without_a_hierarchy_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(processor_cgroup._HIERARCHIES, "places", ())
    assert processor_cgroup.reason_against() == "no processor cgroup can be made here"
    with pytest.raises(OSError, match="no processor cgroup"):
        processor_cgroup.ProcessorCgroup()


def test_a_proxy_that_cannot_start_says_why(tmp_path):
    if reason := routed.reason_against():
        pytest.skip(reason)
    with pytest.raises(Exception, match="haproxy"):
        routed.RoutingProxy(tmp_path / "routing", [("192.0.2.1", free_ports(1)[0])], {"primary": 1}).__enter__()


def test_connections_meet_the_primary_and_the_replica_in_turn(tmp_path):
    if reason := routed.reason_against():
        pytest.skip(reason)
    (port,) = free_ports(1)
    with routed.RoutedPair(tmp_path, [(LOOPBACK, port)], None, {"innodb_buffer_pool_size": "64M"}) as pair:
        password = new_secret()
        pair.primary.execute(f"CREATE USER 'lab'@'%' IDENTIFIED BY '{password}'")
        pair.primary.execute("GRANT ALL ON *.* TO 'lab'@'%'")
        pair.replicate("lab", password)
        pair.primary.execute("CREATE DATABASE made")
        pair.primary.execute("CREATE TABLE made.t (id INT NOT NULL PRIMARY KEY, data MEDIUMBLOB NOT NULL)")
        pair.primary.execute("INSERT INTO made.t VALUES (1, REPEAT('x', 100000))")
        pair.catch_up()
        before, met = pair.fetches(), set()
        for _ in range(4):
            with pymysql.connect(host=LOOPBACK, port=port, user="lab", password=password) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@server_id, LENGTH(data) FROM made.t")
                met.add(cursor.fetchone())
        assert met == {(1, 100000), (2, 100000)}
        assert all(count - before[name] >= 2 for name, count in pair.fetches().items())
        pids = pair.pids()
        assert len(pids) == 3 and all(os.path.exists(f"/proc/{pid}") for pid in pids)
        assert pair.ended() == ""
        pair.servers[routed.REPLICA].server.kill()
        assert "the server 'replica' ended" in pair.ended()
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
