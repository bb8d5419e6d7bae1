"""E5: a target; and without a server its plan, YCSB's output, the timeline's arithmetic, the memory cgroup, and the rules of its findings."""

import io
import os
import subprocess
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from rich.console import Console

from overlaps import overlaps

from quarry_lab.design.request import Address, LabError, Settings
from quarry_lab.experiments.e5 import bench as disk_bench, figures as e5_figures
from quarry_lab.experiments.e5.bench import ENGINES, PRIVATE_ENGINES, Layout, payload_traffic
from quarry_lab.experiments.e5.experiment import THREADS, DiskData
from quarry_lab.experiments.e5.findings import device_share, samples_under_load, verdicts
from quarry_lab.load import java, ycsb
from quarry_lab.load.java import JavaError
from quarry_lab.load.ycsb import PAYLOAD_BYTES, WORKLOADS, Latency, YcsbReport, YcsbRun
from quarry_lab.probes.device import DeviceCounters
from quarry_lab.probes.timeline import Counters, difference
from quarry_lab.report.verdicts import NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER
from quarry_lab.run import session
from quarry_lab.servers import memory_cgroup, target
from quarry_lab.servers.lab_server import LabServer
from quarry_server.ports import free_ports

OUTPUT = """YCSB Client 0.17.0
2026-01-01 10:00:00:000 0 sec: 0 operations; est completion in 1 second
2026-01-01 10:00:01:000 1 sec: 100 operations; 100 current ops/sec; [READ: Count=50, Max=1, Min=1, Avg=1, 90=1, 99=1, 99.9=1, 99.99=1]
2026-01-01 10:00:02:000 2 sec: 400 operations; 300 current ops/sec; [READ: Count=150, Max=1, Min=1, Avg=1, 90=1, 99=1, 99.9=1, 99.99=1]
2026-01-01 10:00:03:000 3 sec: 700 operations; 300 current ops/sec; [READ: Count=150, Max=1, Min=1, Avg=1, 90=1, 99=1, 99.9=1, 99.99=1]
2026-01-01 10:00:03:010 3 sec: 700 operations; 0 current ops/sec; [CLEANUP: Count=4, Max=1, Min=1, Avg=1, 90=1, 99=1, 99.9=1, 99.99=1]
"""


def exported(**more):
    def histogram(metric, operations, mean_us):
        values = {"Operations": operations, "AverageLatency(us)": mean_us, "50thPercentileLatency(us)": 900, "95thPercentileLatency(us)": 2000,
                  "99thPercentileLatency(us)": 3000, "Return=OK": operations}
        return [{"metric": metric, "measurement": name, "value": value} for name, value in values.items()]

    found = [{"metric": "OVERALL", "measurement": "RunTime(ms)", "value": 3010}, *histogram("READ", 350, 1000.0), *histogram("UPDATE", 350, 4500.0)]
    return found + [{"metric": metric, "measurement": name, "value": value} for (metric, name), value in more.items()]


def mix(warmup=1, seconds=10):
    return YcsbRun(WORKLOADS["a"], "t", 10, 4, warmup, seconds)


def test_throughput_is_taken_after_the_warm_up_and_latency_from_the_histograms():
    report = ycsb.report_of(OUTPUT, exported(), mix(warmup=1, seconds=10))
    assert report.operations_per_second == pytest.approx(300 / 1.01, rel=1e-6)
    assert report.interval_seconds == pytest.approx(1.01, rel=1e-6)
    assert ycsb.report_of(OUTPUT, exported(), mix(warmup=0, seconds=1)).interval_seconds == pytest.approx(1)
    assert [round(rate) for _when, rate in report.timeline] == [100, 300, 300]
    assert report.latencies["UPDATE"] == Latency(350, 4.5, 0.9, 2.0, 3.0)


def test_a_load_counts_from_its_start():
    assert ycsb.report_of(OUTPUT, exported(), YcsbRun(WORKLOADS["load"], "t", 10, 4)).operations_per_second == pytest.approx(700 / 3.01, rel=1e-6)


@pytest.mark.parametrize("name", ["Return=ERROR", "Return=NOT_FOUND", "Return=UNEXPECTED_STATE"])
def test_a_failed_operation_rejects_the_run(name):
    with pytest.raises(JavaError, match="YCSB operations failed.*deadlock"):
        ycsb.report_of(OUTPUT + "error: deadlock\n", exported() + [{"metric": "UPDATE", "measurement": name, "value": 1}], mix())


def test_a_run_that_never_came_to_work_is_an_error():
    idle = "".join(f"2026-01-01 10:00:0{s}:000 {s} sec: 0 operations; est completion\n" for s in range(4))
    with pytest.raises(JavaError, match="no operation in the measured interval"):
        ycsb.report_of(idle, exported(), mix())


def test_a_run_without_status_lines_is_an_error():
    with pytest.raises(JavaError, match="no status lines"):
        ycsb.report_of("", exported(), mix())


def test_the_published_mix_is_uniform_and_half_writes():
    arguments = YcsbRun(WORKLOADS["published"], "t", 10, 4, 2, 10).arguments("export")
    for wanted in ("requestdistribution=uniform", "readproportion=0.5", "updateproportion=0.5", "insertproportion=0", f"fieldlength={PAYLOAD_BYTES}",
                   "fieldcount=1", "maxexecutiontime=14"):
        assert wanted in arguments
    assert arguments[0] == "-t"
    assert YcsbRun(WORKLOADS["load"], "t", 10, 4).arguments("export")[0] == "-load"


def report(rate, **operations):
    return YcsbReport(0.0, 10.0, rate, [], {name.upper().replace("_", "-"): Latency(count, 1, 1, 1, 1) for name, count in operations.items()})


def test_payload_traffic_counts_each_side_of_a_read_modify_write():
    mix = payload_traffic(report(100.0, read=500, update=500))
    assert mix == {"payload_read_bytes_per_second": 50 * PAYLOAD_BYTES, "payload_written_bytes_per_second": 50 * PAYLOAD_BYTES}
    # 600 operations: 300 reads alone, 300 that read and update.
    modified = payload_traffic(report(600.0, read=600, update=300, read_modify_write=300))
    assert modified == {"payload_read_bytes_per_second": 600 * PAYLOAD_BYTES, "payload_written_bytes_per_second": 300 * PAYLOAD_BYTES}
    assert payload_traffic(report(10.0, insert=100))["payload_read_bytes_per_second"] == 0


def test_blocks_are_one_engine_each_and_run_in_ycsbs_order():
    experiment = DiskData()
    request = experiment.request("normal")
    blocks = experiment.plan(request)
    assert len(blocks) == request.rounds * 4  # InnoDB, MyRocks, QUARRY on one and on two paths
    for block in blocks:
        wanted = ["load", "published"] if block.points[0].setting == "2 paths" else list(WORKLOADS)
        assert [point.operation for point in block.points] == wanted
        assert len({(point.variant, point.setting) for point in block.points}) == 1
    full = experiment.plan(experiment.request("full"))
    assert {tuple(point.operation for point in block.points) for block in full} == {tuple(WORKLOADS)}
    only = experiment.plan(replace(request, operations=["c"], variants=["innodb"]))
    assert [point.operation for point in only[0].points] == ["load", "c"]


@pytest.mark.parametrize("options, named", [({"memory_bytes": 1 << 20}, "memory_bytes"), ({"paths": [0]}, "paths"), ({"paths": []}, "paths"),
                                            ({"data_paths": ["/"], "paths": [1, 2]}, "2 data paths are wanted, 1 are named")])
def test_options_that_cannot_work_are_named(options, named):
    experiment = DiskData()
    request = experiment.request("quick")
    request.options.update(options)
    with pytest.raises(LabError, match=named):
        experiment.needs(request)


def test_paths_lie_below_what_the_user_names(tmp_path):
    own = Layout.of({"redo_path": "", "data_paths": []}, 2)
    assert len(set(own.directories())) == 3
    named = Layout.of({"redo_path": str(tmp_path / "log"), "data_paths": [str(tmp_path / "a"), str(tmp_path / "b")]}, 2)
    assert [path.parent.name for path in named.directories()] == ["log", "a", "b"]
    assert len(Layout.of({"redo_path": "", "data_paths": [str(tmp_path / "a"), str(tmp_path / "b")]}, 1).data) == 1


def counters(second, amount):
    return Counters(1000.0 + second, DeviceCounters(amount, 2 * amount, int(500 * second)), amount, amount, int(100 * second), int(100 * second),
                    int(200 * second), amount, {"quarry_catalogue_flushes": int(second) // 2})


def test_a_sample_is_the_difference_of_two_readings():
    sample = difference(counters(2, 4000), counters(4, 8000), 1000.0)
    assert (sample["second"], sample["device_read_bytes"], sample["device_write_bytes"]) == (4.0, 2000.0, 4000.0)
    assert (sample["device_busy_share"], sample["machine_busy_share"]) == (0.5, 0.5)
    assert sample["checkpoints"] == ["quarry_catalogue_flushes"]
    assert difference(counters(2, 0), counters(3, 0), 1000.0)["checkpoints"] == []


# --- findings ---
def point(round_number, read_ms=1.0, write_ms=4.5, busy=0.95, processors=0.15, rate=1000.0):
    started = 1000.0
    return {
        "round": round_number, "operation": "published", "size_bytes": PAYLOAD_BYTES, "threads": THREADS, "variant": "quarry", "setting": "1 path",
        "result": {"events_per_second": rate, "interval_seconds": 10, "latency_p95_ms": 1}, "cpu": {"noisy": False},
        "latencies": {"READ": {"mean_ms": read_ms, "operations": 100}, "UPDATE": {"mean_ms": write_ms, "operations": 100}}, "written": {"server_bytes_per_payload_byte": 1.1},
        "payload_read_bytes_per_second": 1e8, "payload_written_bytes_per_second": 2e8,
        "timeline_started": started, "operations_timeline": [[started + 12, rate], [started + 14, rate]], "measured_until": started + 12,
        "timeline": [{"second": s, "device_busy_share": busy, "machine_busy_share": processors if s > 1 else 1.0, "checkpoints": ["quarry_catalogue_flushes"],
                      "device_read_bytes": 1e8, "device_write_bytes": 1e8, "server_cpus": 0.3, "loopback_bytes": 1e8} for s in range(1, 15)],
    }


class Run:
    def __init__(self, points):
        self.points = points
        probes = [{"round": n, "random_read_bytes_per_second": 4e8, "sequential_write_bytes_per_second": 8e8} for n in (1, 2, 3)]
        self.run = {"parameters": {"name": "e5", "rounds": 3}, "sessions": [{"device_probes": probes, "memory_limit": {"how": "test"}, "payload_bytes": 1}]}


def states(points):
    return {verdict.id: verdict.state for verdict in verdicts(Run(points), DiskData().labels)}


def test_what_was_published_is_reproduced_by_its_own_rules():
    found = states([point(n) for n in (1, 2, 3)])
    assert found == {"e5-load": NOT_MEASURED, "e5-mix": WEAKER, "e5-mean-latency": WEAKER, "e5-read-latency": REPRODUCED, "e5-write-latency": REPRODUCED,
                     "e5-latency": REPRODUCED, "e5-limit": REPRODUCED, "e5-processors": REPRODUCED}


def test_other_figures_are_not_reproduced_and_nothing_measured_is_said():
    assert states([point(n, write_ms=1.5) for n in (1, 2, 3)])["e5-latency"] == WEAKER
    assert states([point(n, write_ms=30) for n in (1, 2, 3)])["e5-latency"] == STRONGER
    assert states([point(n, processors=0.6) for n in (1, 2, 3)])["e5-processors"] == WEAKER
    assert states([point(n, busy=0.4) for n in (1, 2, 3)])["e5-limit"] == WEAKER
    assert states([point(n, busy=0.1) for n in (1, 2, 3)])["e5-limit"] == OPPOSITE
    assert set(states([]).values()) == {NOT_MEASURED}


def test_only_samples_of_the_measured_interval_count():
    assert [s["second"] for s in samples_under_load(point(1))] == list(range(2, 13))


def test_the_devices_share_adds_reads_and_writes():
    run = Run([point(1)])
    assert device_share(run.points[0], run.run) == pytest.approx(1e8 / 4e8 + 2e8 / 8e8)
    assert device_share(point(9), run.run) is None


def test_ours_beside_the_published_rate_tells_the_devices_share():
    experiment = DiskData()
    load, mix, reads, _writes = experiment.published
    run = Run([point(n) for n in (1, 2, 3)])
    assert experiment.beside(run, mix).endswith("286 MiB/s, 50% of the device's raw rate")
    assert experiment.beside(run, load) == "not measured"
    assert experiment.beside(run, reads) == "1.00 ms (1.00 to 1.00)"


def test_charts_mark_checkpoints_beside_throughput():
    figures = e5_figures.figures(Run([point(n) for n in (1, 2, 3)]), DiskData().labels)
    timeline = figures["timeline-published-quarry-1-path"]
    assert [text.get_text() for text in timeline.axes[0].get_legend().get_texts()] == ["quarry_catalogue_flushes"]
    assert e5_figures.tables(Run([point(1)]), DiskData().labels)[0].row_count == 1


def test_the_labels_of_the_charts_do_not_overlap():
    """Every engine in every workload, Quarry on one path and on two, with rates as close as they were when they stood on each other."""
    rates = {("innodb", "1 path"): 8011.0, ("rocksdb", "1 path"): 2343.0, ("quarry", "1 path"): 8504.0, ("quarry", "2 paths"): 8921.0}
    points = [{**point(n, rate=rate * (0.9 + n / 20)), "variant": variant, "setting": setting, "operation": operation}
              for n in (1, 2, 3) for (variant, setting), rate in rates.items() for operation in WORKLOADS]
    drawn = e5_figures.figures(Run(points), DiskData().labels)
    for name in ("throughput", "read-latency", "write-latency"):
        assert len(drawn[name].axes[0].texts) == len(rates) * len(WORKLOADS) and overlaps(drawn[name]) == []
    for figure in drawn.values():
        plt.close(figure)


def test_a_cgroup_limits_what_runs_in_it_and_leaves_nothing_behind():
    reason = memory_cgroup.reason_against()
    if reason:
        pytest.skip(reason)
    (process := subprocess.Popen(["true"])).wait()
    limited = memory_cgroup.MemoryCgroup(64 << 20)
    left = limited.path.with_name(f"quarry-lab-{process.pid}")
    left.mkdir()
    with memory_cgroup.MemoryCgroup(64 << 20) as cgroup:
        assert not left.exists()
        assert cgroup.describe()["limit_bytes"] == 64 << 20
        hungry = 'echo $$ >"$0/cgroup.procs" && exec python3 -c "bytearray(256 << 20)"'
        done = subprocess.run(["/bin/sh", "-c", hungry, str(cgroup.path)], capture_output=True, check=False)
        assert done.returncode == -9
        path = cgroup.path
    assert not os.path.exists(path)


# --- a target ---
def test_a_target_is_measured_with_its_engines_and_ndb_with_its_tables_on_disk():
    experiment = DiskData()
    own = experiment.request("normal").variants
    assert own == list(PRIVATE_ENGINES)
    assert experiment.on_target(own, {"INNODB", "NDBCLUSTER"}) == ["target-innodb", "target-ndb"]
    assert experiment.on_target(["innodb"], {"INNODB", "QUARRY"}) == ["target-innodb"]
    ndb = ENGINES["target-ndb"]
    assert ndb.create_table().startswith("CREATE TABLE quarry_lab_e5.usertable (") and "STORAGE DISK ENGINE=NDBCLUSTER" in ndb.create_table()
    made = [statement for statement, _back in ndb.surroundings(100_000)]
    assert "INITIAL_SIZE 4751M" in made[1]
    assert all(name in str(made) for name in ("quarry_lab_space", "quarry_lab_log"))
    # On a target QUARRY has the paths that are there.
    request = replace(experiment.request("normal"), variants=["quarry", "target-quarry"])
    assert {(cell.variant, cell.setting) for cell in experiment.cells(request)} == {("quarry", "1 path"), ("quarry", "2 paths"), ("target-quarry", "1 path")}
    assert not experiment.needs_plugin(replace(request, variants=["target-quarry"]))


def test_ycsb_runs_on_a_target_and_leaves_it_as_it_was(tmp_path, monkeypatch):
    if missing := java.missing_tools():
        pytest.skip("; ".join(missing))
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    monkeypatch.setattr(disk_bench, "DATA", tmp_path / "data")
    monkeypatch.setenv(target.PASSWORD_VARIABLE, "open&sesame")
    (port,) = free_ports(1)
    small = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M", "port": port, "bind_address": "127.0.0.1"}
    other = LabServer("main", tmp_path / "target", None, False, small).start()
    try:
        other.execute("CREATE USER visitor IDENTIFIED BY 'open&sesame'")
        other.execute("GRANT ALL ON *.* TO visitor")
        schemas = other.rows("SHOW DATABASES")
        settings = Settings(seconds=2, warmup_seconds=0, dataset_bytes=4000 * PAYLOAD_BYTES, disk_reserve_bytes=0, device_probe_seconds=0.1)
        request = replace(DiskData().request("quick"), operations=["published"], variants=["target-innodb"], threads=[2], settings=settings,
                          target=Address(socket=other.socket, user="visitor"), output=tmp_path / "e5")
        run = session.execute(DiskData(), request, Console(file=io.StringIO()))
        assert [(p["operation"], p["rows"]) for p in run.points] == [("load", 4000), ("published", 4000)]
        assert run.points[1]["latencies"].keys() >= {"READ", "UPDATE"}
        assert any(sample["server_cpus"] > 0 for sample in run.points[1]["timeline"])
        assert other.rows("SHOW DATABASES") == schemas
    finally:
        other.close()
