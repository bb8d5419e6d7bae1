"""`cold`: its plan, what it demands, the rules of its verdicts on synthetic rounds, and one small run of every operation."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from quarry_lab.design.cells import Cells
from quarry_lab.design.plan import all_points
from quarry_lab.design.request import LabError
from quarry_lab.design.results import open_run
from quarry_lab.experiments.cold import bench as cold_bench, experiment as cold, findings as cold_findings
from quarry_lab.experiments.cold.experiment import COLUMNS_SIZE, MEMORY_SIZE, Cold
from quarry_lab.experiments.cold.findings import OPERATION_OF
from quarry_lab.probes import device, noise
from quarry_lab.run import session
from quarry_lab.servers import memory_cgroup
from quarry_lab.servers.lab_server import LabServer
from quarry_server.server import PLUGIN
from quarry_lab.design.variants import KIB
from quarry_lab.report.verdicts import MET, NOT_MEASURED, NOT_MET
from rich.console import Console

ENGINES = ("innodb", "quarry-default")
LIMIT = 768 << 20
RUN = {"parameters": {"rounds": 3}, "sessions": [{"read_probes": [{"round": 2, "size_bytes": 64 * KIB, "bytes_per_second": 64 << 20}]}]}


@pytest.fixture
def judged(make_point):
    """
    The verdicts of three rounds of one operation. A pair of figures is InnoDB's and QUARRY's; `record` makes what a point of this operation
    records beside its rate.
    """

    def judge(operation, size_bytes, threads, rates, record=lambda engine: {}, dataset=4 * LIMIT, limit=LIMIT, device_share=0.9):
        points = []
        engines = ("quarry-one-by-one", "quarry-default") if operation == "scan" else ENGINES
        for round_number in (1, 2, 3):
            for engine, rate in zip(engines, rates, strict=True):
                point = make_point(engine, operation, size_bytes, threads, round_number, rate=rate * (1 + round_number / 100))
                reads = point["result"]["total_reads"] = point["result"]["events"]
                point["written"]["server_read_bytes_during_run"] = device_share * reads * size_bytes
                points.append({**point, "memory_limit_bytes": limit, "dataset_bytes": dataset, **record(engine)})
        return points

    def verdicts(*arguments, more=(), **options):
        found = cold_findings.verdicts(Cells([*judge(*arguments, **options), *more]), RUN)
        return {verdict.id: verdict for verdict in found}

    verdicts.points = judge
    return verdicts


@pytest.mark.parametrize(("finding", "operation", "size_bytes", "ratio_min"), [
    ("cold-read-64kb", "cold-read", 64 * KIB, 3), ("cold-read-448kb", "cold-read", 448 * KIB, 5), ("cold-columns", "columns", 64 * KIB, 5),
    ("cold-range", "range", 64 << 20, 50), ("cold-scan", "scan", 64 * KIB, 2)])
def test_a_target_is_met_from_its_ratio_on(judged, finding, operation, size_bytes, ratio_min):
    for factor, state in ((1.01, MET), (0.99, NOT_MET)):
        found = judged(operation, size_bytes, 8, (100, 100 * ratio_min * factor))
        assert found[finding].state == state and found[finding].figures["ratio_x8"]["rounds"] == 3
        assert found[finding].reason.startswith(f"x8: {ratio_min * factor:.2f}x ({ratio_min * factor:.2f} to ")
        assert all(verdict.state == NOT_MEASURED for name, verdict in found.items() if name != finding)


def test_the_share_of_the_device_stands_beside_the_ratio(judged):
    # Round 2 has a probe of 64 MiB/s; half of 163.2 values a second are 5.1 of them, of 652.8 20.4.
    found = judged("cold-read", 64 * KIB, 8, (160, 640), device_share=0.5)["cold-read-64kb"]
    assert found.reason.endswith("reads at 32% of the device's raw rate (InnoDB 8%)")


def test_every_thread_count_that_was_measured_has_to_reach_the_target(judged):
    slower = judged.points("cold-read", 64 * KIB, 32, (100, 290))
    found = judged("cold-read", 64 * KIB, 8, (100, 400), more=slower)["cold-read-64kb"]
    assert found.state == NOT_MET and "x8: 4.00x" in found.reason and "x32: 2.90x" in found.reason


@pytest.mark.parametrize(("options", "reason"), [
    ({"limit": None}, "there was no memory cgroup"), ({"dataset": 3 * LIMIT}, "the dataset was 3.00 times the memory"),
    ({"device_share": 0.4}, "only 40% of what quarry-default read came from the device in round 1")])
def test_rounds_that_were_not_cold_are_not_judged(judged, options, reason):
    found = judged("cold-read", 64 * KIB, 8, (100, 1000), **options)["cold-read-64kb"]
    assert found.state == NOT_MEASURED and reason in found.reason


def memory(innodb_mib, quarry_mib, cache_mib=64, pool_mib=384):
    """What a point of each engine records, given what it has beyond the buffer pool."""
    beyond = dict(zip(ENGINES, (innodb_mib, quarry_mib), strict=True))
    caches = dict(zip(ENGINES, (0, cache_mib), strict=True))
    return lambda engine: {"server_memory": {"buffer_pool_bytes": pool_mib << 20, "idle_bytes": pool_mib << 20,
                                             "peak_bytes": (pool_mib + beyond[engine]) << 20, "value_cache_bytes": caches[engine] << 20}}


def test_server_memory_is_judged_by_the_load_that_takes_more(judged):
    inserts = judged.points("memory-insert", 448 * KIB, 32, (1, 1), record=memory(150, 160, cache_mib=0))
    for quarry_mib, state in ((164, MET), (165, NOT_MET)):
        found = judged("memory-read", 448 * KIB, 32, (1, 1), record=memory(100, quarry_mib), more=inserts)["cold-memory"]
        assert found.state == state
        assert f"memory, reads: +{quarry_mib - 100} MiB (+{quarry_mib - 100} to +{quarry_mib - 100}), +{quarry_mib - 164} MiB" in found.reason
        assert "memory, inserts: +10 MiB" in found.reason
    assert judged("memory-read", 448 * KIB, 32, (1, 1), record=memory(100, 110))["cold-memory"].state == NOT_MEASURED
    for point in inserts:
        point["server_memory"]["idle_bytes"] -= 1
    assert "was not filled" in judged("memory-read", 448 * KIB, 32, (1, 1), record=memory(100, 110), more=inserts)["cold-memory"].reason


def test_pool_pages_are_compared_for_the_same_rows(judged):
    def scanned(quarry_bytes):
        held = dict(zip(ENGINES, (1000_000, quarry_bytes), strict=True))
        return lambda engine: {"scanned_rows": 10_000, "memory": {"payload_bytes": 1, "cached_bytes": {"buffer_pool": held[engine], "page_cache": 7}}}

    for quarry_bytes, state in ((100_000, MET), (110_000, NOT_MET)):
        found = judged("columns", 64 * KIB, 1, (1, 1), record=scanned(quarry_bytes))["cold-pool"]
        assert found.state == state and f"{quarry_bytes // 10_000} bytes a row, InnoDB 100" in found.reason


def test_the_table_of_memory_shows_what_the_points_tell(judged):
    (table,) = cold_findings.memory_tables(Cells(judged.points("memory-read", 448 * KIB, 32, (1, 1), record=memory(100, 180))))
    assert list(table.columns[3].cells) == ["100 MiB", "180 MiB"] and list(table.columns[4].cells) == ["100 MiB", "116 MiB"]


def test_sizes_and_threads_are_those_of_the_point_read_only():
    request = Cold().request()
    request.sizes_bytes, request.threads = [4 * KIB], [1, 2]
    found = {(c.operation, c.size_bytes, c.threads) for c in Cold().cells(request)}
    assert {(c.variant, c.operation) for c in Cold().cells(request) if c.variant in OPERATION_OF} == set(OPERATION_OF.items())
    assert found == {("cold-read", 4 * KIB, 1), ("cold-read", 4 * KIB, 2), ("columns", COLUMNS_SIZE, 1), ("scan", COLUMNS_SIZE, 1), ("range", 64 << 20, 1),
                     ("memory-insert", MEMORY_SIZE, 32), ("memory-read", MEMORY_SIZE, 32)}
    assert all(len({(p.variant, p.size_bytes) for p in block.points}) == 1 for block in Cold().plan(request))
    assert Cold().planned_seconds(request, all_points(Cold().plan(request))) < 45 * 60


def test_a_missing_cgroup_is_said_before_any_work_starts(monkeypatch):
    monkeypatch.setattr(memory_cgroup, "reason_against", lambda: "the hierarchy is read-only")
    request = Cold().request()
    (said,) = [text for text in Cold().needs(request) if "cgroup" in text]
    assert "the hierarchy is read-only" in said and "cold-read, range, columns, scan" in said
    assert not [text for text in Cold().needs(replace(request, operations=["memory-insert", "memory-read"])) if "cgroup" in text]
    with pytest.raises(LabError, match="memory_bytes must be at least"):
        Cold().needs(replace(request, options={**request.options, "memory_bytes": 1 << 20}))


def test_a_server_that_was_restarted_meanwhile_is_not_noise():
    def snapshot(time, busy, processes):
        return noise.Snapshot(time, busy, 0, {pid: noise._Process("mariadbd", ticks, False) for pid, ticks in processes})

    ticks = noise._TICKS_PER_SECOND
    # 1 had used 500 before, ended with 800; 2 came after it.
    usage = noise.usage(snapshot(0.0, 1000, [(1, 500)]), snapshot(10.0, 2000, [(2, 700)]), {1, 2}, children_cpu_seconds=800 / ticks)
    assert usage["other_cpus"] == 0 and usage["server_cpus"] == pytest.approx(7 / ticks * 10, abs=0.001)


def test_anonymous_memory_is_what_the_process_touched():
    before = device.anonymous_bytes(os.getpid())
    held = b"x" * (32 << 20)
    assert 31 << 20 < device.anonymous_bytes(os.getpid()) - before < 40 << 20 and len(held) == 32 << 20
    assert device.anonymous_bytes(2**22 + 1) is None


def test_a_file_that_is_removed_while_files_are_measured_takes_no_space(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"x" * 10000)
    assert device.allocated_bytes([tmp_path / "file", tmp_path / "gone"]) == (tmp_path / "file").stat().st_blocks * 512


def test_the_page_cache_lets_go_of_a_directory(tmp_path: Path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * (1 << 20))
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert device.page_cache_bytes(tmp_path) >= 1 << 20
    device.drop_page_cache(tmp_path)
    assert device.page_cache_bytes(tmp_path) == 0


@pytest.mark.nightly
@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
def test_every_operation_does_what_it_says(tmp_path: Path, monkeypatch):
    """On one engine, with little data: what the server read, sent and holds shows what was done."""
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    for module in (session, cold_bench):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(Cold, "needs", lambda *_: [])  # with so little data the operations can be shown without a cgroup
    size = 128 * KIB
    for name in ("COLUMNS_SIZE", "MEMORY_SIZE"):
        monkeypatch.setattr(cold, name, size)  # one size: one server
    restarts = []
    real = LabServer.restart_cold

    def restart(server):
        real(server)
        restarts.append(int(server.status("Innodb_buffer_pool_pages_data")["innodb_buffer_pool_pages_data"]))

    monkeypatch.setattr(LabServer, "restart_cold", restart)
    request = Cold().request()
    settings = replace(request.settings, seconds=1, warmup_seconds=0, disk_reserve_bytes=0, device_probe_seconds=0.2)
    options = {**request.options, "dataset_bytes": 16 << 20, "range_value_bytes": size}
    mycnf = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"}
    request = replace(request, sizes_bytes=[size], variants=["quarry-default"], rounds=1, settings=settings, options=options, mycnf=mycnf,
                      plugin=PLUGIN, output=tmp_path / "cold")
    Cold().report(Console(file=io.StringIO()), session.execute(Cold(), request, Console(file=io.StringIO())))
    points = open_run(tmp_path / "cold").points
    found = {point["operation"]: point for point in points}
    assert set(found) == set(Cold.operations) and len(restarts) >= 5

    read, ranges, scan = found["cold-read"], found["range"], found["columns"]
    # All of the 16 MiB came from the device once, and each value went out whole; of a range nothing but its bytes did.
    assert read["written"]["server_read_bytes_during_run"] > 15 << 20
    assert 0.99 < read["bytes_sent"] / (read["result"]["total_reads"] * size) < 1.1
    assert 0.99 < ranges["bytes_sent"] / (ranges["result"]["total_reads"] * cold_bench.RANGE_BYTES) < 1.1
    assert scan["scanned_rows"] == 128 and len(scan["scan_seconds"]) >= 1 and scan["result"]["events_per_second"] > 0
    # A scan of the values read each of them.
    assert found["scan"]["scanned_rows"] == 128 and found["scan"]["written"]["server_read_bytes_during_run"] > 15 << 20
    # The scan left no value behind, only pages of the rows.
    held = scan["memory"]["cached_bytes"]
    assert 16 << 10 <= held["buffer_pool"] < 1 << 20 and held["quarry_cache"] == 0
    for operation in ("memory-insert", "memory-read"):
        memory_of = found[operation]["server_memory"]
        assert memory_of["peak_bytes"] >= memory_of["idle_bytes"] > memory_of["buffer_pool_bytes"] == 64 << 20
    assert found["memory-insert"]["result"]["total_rows_written"] > 0 and found["memory-read"]["result"]["total_reads"] > 0
    assert not (tmp_path / "data").exists()
    (probe,) = open_run(tmp_path / "cold").run["sessions"][0]["read_probes"]
    assert probe["round"] == 1 and probe["size_bytes"] == size and probe["bytes_per_second"] > 0
