"""Servers and clients on processors of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quarry_lab.cli import bench_request, build_parser, main
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.probes import processors
from quarry_lab.servers.lab_server import LabServer

needs_two = pytest.mark.skipif(processors.reason_against() is not None, reason=f"needs {processors.reason_against()}")
THREADS = """
import threading, time
def later():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(60)
for _ in range(4):
    threading.Thread(target=later, daemon=True).start()
print("started", flush=True)
input()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("more", flush=True)
time.sleep(60)
"""


def threads_off(pid: int, allowed: frozenset[int]) -> list[str]:
    """The names of a process's threads that may run elsewhere."""
    return [Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip() for thread in os.listdir(f"/proc/{pid}/task")
            if not os.sched_getaffinity(int(thread)) <= allowed]


@needs_two
def test_all_threads_of_a_process_are_placed_and_those_it_starts_later():
    with subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "started\n"
            assert threads_off(child.pid, processors.SERVERS), "before it may run anywhere"
            processors.place(child.pid, processors.SERVERS)
            assert not threads_off(child.pid, processors.SERVERS)
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "more\n"
            assert len(os.listdir(f"/proc/{child.pid}/task")) >= 10
            assert not threads_off(child.pid, processors.SERVERS)
        finally:
            child.kill()


def test_a_process_that_is_gone_is_an_error():
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        child.wait()
        with pytest.raises(OSError):
            processors.place(child.pid, processors.AVAILABLE)


@needs_two
def test_clients_that_are_started_within_stay_on_their_processor():
    ask = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    with processors.clients_apart(True):
        assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == str(sorted(processors.CLIENTS))
    assert os.sched_getaffinity(0) == processors.AVAILABLE
    with pytest.raises(ZeroDivisionError), processors.clients_apart(True):
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == processors.AVAILABLE
    with processors.clients_apart(False):
        assert os.sched_getaffinity(0) == processors.AVAILABLE


@needs_two
def test_a_server_has_its_processors_and_no_other(tmp_path: Path):
    server = LabServer("apart", tmp_path / "server", None, False, {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"},
                       only_on=processors.SERVERS).start()
    try:
        server.rows("SELECT 1")  # the connection has a thread of its own
        deadline = time.monotonic() + 10
        while off := threads_off(server.pid, processors.SERVERS):
            assert time.monotonic() < deadline, off
    finally:
        server.close()


def test_who_cannot_says_so_before_any_work(monkeypatch, tmp_path: Path, capsys):
    command = ["bench", "--apart", "--scale", "quick", "--output", str(tmp_path / "out"), "--exp"]
    assert main([*command, "cold"]) != 0
    said = " ".join(capsys.readouterr().out.split())
    assert "cold takes no --apart" in said and "e1, e2, e5, limits, targets" in said
    monkeypatch.setattr(processors, "SERVERS", frozenset())
    assert main([*command, "targets"]) != 0
    assert "at least 2 processors, to keep servers and clients apart" in " ".join(capsys.readouterr().out.split())


def test_a_run_apart_is_another_run():
    parser = build_parser()
    apart = bench_request(EXPERIMENTS["targets"], parser.parse_args(["bench", "--exp", "targets", "--apart"]))
    together = bench_request(EXPERIMENTS["targets"], parser.parse_args(["bench", "--exp", "targets"]))
    assert apart.apart and apart.identity() != together.identity()
    assert "apart" not in EXPERIMENTS["targets"].request("quick").identity()
