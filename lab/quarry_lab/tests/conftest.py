"""Shared by the lab's own tests: synthetic points, and a real private server where one is needed."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from quarry_lab import nightly_marker  # noqa: E402
from quarry_lab.design.variants import KIB  # noqa: E402
from quarry_lab.servers import ndb_cluster  # noqa: E402


def pytest_configure(config):
    config.pluginmanager.register(nightly_marker)


@pytest.fixture(autouse=True)
def cluster_of_the_tree(monkeypatch, tmp_path):
    """Tests plan and run as where `make ndb` never ran: no cluster of yours is stopped by one. Those of a cluster say that it is built."""
    monkeypatch.setattr(ndb_cluster, "STAMP", tmp_path / "no-stamp")
    monkeypatch.setattr(ndb_cluster, "NDB_RUN", tmp_path / "no-nodes")


@pytest.fixture
def make_point():
    """A raw point as the runner records it; only what the reports read."""

    def build(variant="innodb", operation="insert", size_bytes=65536, threads=8, round_number=1, rate=100.0, p95_ms=1.0, ratio=2.0, noisy=False,
              settled=True, seconds=10.0, status=None, batch_rows=1):
        writes = 0 if operation == "read" else int(rate * seconds)
        return {
            "round": round_number, "operation": operation, "size_bytes": size_bytes, "threads": threads, "variant": variant, "batch_rows": batch_rows,
            "result": {"events_per_second": rate, "latency_p95_ms": p95_ms, "writes": writes, "events": int(rate * seconds), "reads": 0,
                       "interval_seconds": seconds, "total_rows_written": writes * batch_rows},
            "written": {"server_bytes_per_payload_byte": None if operation == "read" else ratio, "server_read_bytes_during_run": 0},
            "cpu": {"noisy": noisy}, "settle_before": {"settled": True}, "settle_after": {"settled": settled},
            "memory_free_before": {"MemAvailable": 8 << 30}, "quarry_status": status or {},
        }

    return build


@pytest.fixture
def rounds(make_point):
    """Three rounds of one cell, a processor of the server used throughout."""

    def build(variant, operation, size_kib, threads, rate, setting="", **changes):
        made = []
        for number in (1, 2, 3):
            point = make_point(variant=variant, operation=operation, size_bytes=size_kib * KIB, threads=threads, round_number=number, rate=rate, **changes)
            point |= {"setting": setting, "payload_bytes_written": point["result"]["writes"] * size_kib * KIB,
                      "configuration": {"innodb_compression_algorithm": "zlib"}}
            point["cpu"] |= {"server_cpus": 1.0, "seconds": 10.0}
            made.append(point)
        return made

    return build
