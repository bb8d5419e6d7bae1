"""E5 without a server: its plan, YCSB's output, the timeline's arithmetic, the memory cgroup, and the rules of its findings."""

import os
import re
import subprocess
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest

import worlds
from overlaps import overlaps

from quarry_lab import lab_page, lab_results
from quarry_lab.design.cells import Cells
from quarry_lab.design.plan import all_points
from quarry_lab.design.request import Address, LabError
from quarry_lab.experiments.e5 import bench as disk_bench, figures as e5_figures
from quarry_lab.experiments.e5.bench import payload_traffic
from quarry_lab.experiments.e5.engines import ENGINES, LIMITED_NETWORK, ONE_PATH, PRIVATE_ENGINES, Layout, Setting
from quarry_lab.experiments.e5.experiment import THREADS, DiskData
from quarry_lab.experiments.e5.findings import DOCUMENT, device_share, verdicts
from quarry_lab.experiments.e5.usage import DRIVES, NETWORK, PROCESSORS, background_ratio, samples_under_load, used
from quarry_lab.load import ycsb
from quarry_lab.load.java import JavaError
from quarry_lab.load.ycsb import PAYLOAD_BYTES, WORKLOADS, Latency, YcsbReport, YcsbRun
from quarry_lab.probes import device, processors
from quarry_lab.probes.device import DeviceCounters
from quarry_lab.probes.timeline import Counters, Timeline, difference
from quarry_lab.report.verdicts import NOT_JUDGED, NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER
from quarry_lab.servers import drives, memory_cgroup, ndb_cluster
from quarry_lab.servers.ndb_cluster import NdbCluster
from quarry_lab.servers.target import NO_TARGET, TargetServer

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


def test_statements_that_were_repeated_upon_a_temporary_error_are_counted_and_said():
    """NDB refuses updates until a checkpoint has ended: their wait is in the latencies, and its cause is nowhere else."""
    found = ycsb.report_of(OUTPUT + "repeated: 3\nrepeated: 14\n", exported(), mix())
    assert (found.repeated, ycsb.report_of(OUTPUT, exported(), mix()).repeated) == (17, 0)
    record = point(1)
    record["result"] = disk_bench.result_of(found)
    assert "17 statements repeated" in DiskData().line(record)


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


def test_blocks_are_one_engine_each_and_run_in_one_order():
    experiment = DiskData()
    request = experiment.request("normal")
    blocks = experiment.plan(request)
    # All on the machine's own device; InnoDB and QUARRY also on 1, 2 and 4 drives, and over the limited network.
    assert len(blocks) == request.rounds * (3 + 2 * 4)
    for block in blocks:
        wanted = list(WORKLOADS) if block.points[0].setting == ONE_PATH else ["load", "published"]
        assert [point.operation for point in block.points] == wanted
        assert len({(point.variant, point.setting) for point in block.points}) == 1
    full = experiment.request("full")
    full.options.update(paths=[1, 2], drives=[], link_mbits=0)
    assert {tuple(point.operation for point in block.points) for block in experiment.plan(full)} == {tuple(WORKLOADS)}
    only = experiment.plan(replace(request, operations=["c"], variants=["rocksdb"]))
    assert [point.operation for point in only[0].points] == ["load", "c"]


def test_the_published_mix_meets_rows_that_were_just_loaded():
    """On drives, over the limited network and in NDB nothing else comes before it, and a run that is gone on with loads again for it alone."""
    experiment = DiskData()
    request = experiment.request("normal")
    for block in experiment.plan(replace(request, variants=[*request.variants, "target-ndb"])):
        assert [point.operation for point in block.points][:2] == ["load", "published"]


def test_the_normal_scale_takes_two_hours_and_forty_gigabytes_at_most_with_ndb():
    experiment = DiskData()
    request = experiment.request("normal")
    request = replace(request, variants=[*request.variants, "target-ndb"])
    points = all_points(experiment.plan(request))
    assert {point.setting for point in points if point.variant == "target-ndb"} == {ONE_PATH}
    assert experiment.planned_seconds(request, points) <= 2 * 3600
    assert experiment.disk_bytes(request) <= 40 << 30
    rows = experiment.plan_rows(request, points)
    assert sum(row.points for row in rows) == len(points)
    assert sum(row.seconds for row in rows) == pytest.approx(experiment.planned_seconds(request, points))


def test_room_for_a_larger_table_of_the_cluster_is_asked_for_before():
    """`scripts/ndb room` knows the table of the normal scale."""
    experiment = DiskData()
    more = {}
    for scale in ("quick", "normal", "full"):
        request = replace(experiment.request(scale), target=ndb_cluster.address())
        without, with_ndb = (experiment.disk_bytes(replace(request, variants=keys)) for keys in (["quarry"], ["quarry", "target-ndb"]))
        more[scale] = with_ndb - without
    larger = request.settings.dataset_bytes - experiment.request("normal").settings.dataset_bytes
    assert more["quick"] == more["normal"] == 0 and more["full"] > 2 * 1.5 * larger


def test_the_cluster_is_asked_for_room_only_where_it_is_measured(monkeypatch):
    """Where it is built it is the target of every request, that of `--engines quarry` too."""
    monkeypatch.setattr(ndb_cluster, "needs", lambda: ["room for the cluster"])
    experiment = DiskData()
    request = replace(experiment.request("normal"), target=ndb_cluster.address(), variants=["quarry"])
    assert "room for the cluster" not in experiment.needs(request)
    assert "room for the cluster" in experiment.needs(replace(request, variants=["quarry", "target-ndb"]))
    assert NO_TARGET in experiment.needs(replace(request, target=None, variants=["target-ndb"]))


def test_an_interrupted_block_is_planned_with_what_runs_again():
    experiment = DiskData()
    request = replace(experiment.request("normal"), operations=["published", "a"], variants=["innodb"])
    load, mix, last = next(block.points for block in experiment.plan(request) if block.points[0].setting == ONE_PATH)
    whole, *broken_off, load_alone = (experiment.planned_seconds(request, left) for left in ([load, mix, last], [last], [load, last], [mix, last], [load]))
    assert broken_off == pytest.approx([whole] * 3)
    assert load_alone == pytest.approx(whole - experiment.seconds_of(request, mix) - experiment.seconds_of(request, last))
    assert sum(row.seconds for row in experiment.plan_rows(request, [last])) == pytest.approx(whole)


@pytest.mark.parametrize("text, made", [("1 path", Setting("1 path")), ("2 paths", Setting("2 paths", 2)), ("4 drives", Setting("4 drives", 4, True)),
                                        (LIMITED_NETWORK, Setting(LIMITED_NETWORK, is_limited=True))])
def test_a_setting_is_read_from_its_cell(text, made):
    assert Setting.of(text) == made


def test_each_drive_has_a_quota_but_the_logs():
    assert Setting.of("2 drives").quotas(5) == {"data1": 5, "data2": 5, "log": 0}
    assert Setting.of("2 paths").quotas(5) == {}


def test_the_published_mix_is_measured_longer():
    request = DiskData().request("normal")
    assert [disk_bench.measured_seconds(request, name) for name in ("a", "published")] == [10, 30]
    request.options["mix_seconds"] = 1
    assert disk_bench.measured_seconds(request, "published") == 10


def test_servers_and_client_are_apart_where_there_are_processors_enough(monkeypatch):
    for number, apart in ((2, False), (3, False), (4, True)):
        monkeypatch.setattr(processors, "AVAILABLE", frozenset(range(number)))
        assert DiskData().request("normal").apart is apart


def test_innodbs_table_has_a_partition_on_each_drive(tmp_path):
    made = {name: drives.Drive(tmp_path / name, name, 1) for name in ("data1", "data2", "log")}
    layout = Layout.on_drives(made)
    assert layout.home == tmp_path / "data1" / "main" and layout.redo.parent == tmp_path / "log"
    table = ENGINES["innodb"].create_table(layout)
    assert table.endswith(f"PARTITION BY KEY (id) (PARTITION p0 DATA DIRECTORY='{tmp_path}/data1/values', PARTITION p1 DATA DIRECTORY='{tmp_path}/data2/values')")
    assert "PARTITION" not in ENGINES["quarry"].create_table(layout) and "PARTITION" not in ENGINES["innodb"].create_table()
    one = Layout.on_drives({name: made[name] for name in ("data1", "log")})
    assert ENGINES["innodb"].create_table(one).endswith(f"ENGINE=InnoDB DATA DIRECTORY='{tmp_path}/data1/values'")


def test_what_is_missing_for_drives_is_named_before(monkeypatch):
    experiment, request = DiskData(), DiskData().request("normal")
    monkeypatch.setattr(drives, "reason_against", lambda: "root, to mount a file system with a journal")
    assert any("--option drives= leaves them out" in what for what in experiment.needs(request))
    request.options["drives"] = []
    assert not any("drives=" in what for what in experiment.needs(request))
    monkeypatch.setattr(device, "memory_info", lambda: {"MemAvailable": 1 << 30})
    monkeypatch.setattr(ndb_cluster, "held_bytes", lambda: 0)
    assert any("of available memory" in what for what in experiment.needs(request))


def test_room_on_named_drives_is_asked_for_before(monkeypatch, tmp_path):
    experiment, request = DiskData(), DiskData().request("normal")
    request.options |= {"data_paths": [str(tmp_path)], "paths": [1]}
    monkeypatch.setattr(device, "free_bytes", lambda _path: disk_bench.drive_size(request))
    assert not any(str(tmp_path) in what for what in experiment.needs(request))
    monkeypatch.setattr(device, "free_bytes", lambda _path: 1 << 30)
    assert any(f"of free disk under {tmp_path} (1.0 GiB are free)" in what for what in experiment.needs(request))


@pytest.mark.parametrize("options, named", [({"memory_bytes": 1 << 20}, "memory_bytes"), ({"paths": [0]}, "paths"), ({"paths": []}, "paths"),
                                            ({"data_paths": ["/"], "paths": [1, 2]}, "2 data paths are wanted, 1 are named"),
                                            ({"drives": [0]}, "drives"), ({"drive_mbytes": 0}, "drives"), ({"link_mbits": -1}, "link_mbits"),
                                            ({"mix_seconds": 0}, "mix_seconds")])
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
    assert sample["work"] == {} and "drives" not in sample
    before, after = (replace(counters(s, 0), drives={"log": DeviceCounters(s * 10, s * 20, 0)}, flushed_pages=s * 7, now={"gc_at_work": 1.0}) for s in (2, 4))
    more = difference(before, after, 1000.0)
    assert (more["drives"], more["work"]) == ({"log": [10.0, 20.0]}, {"gc_at_work": 1.0, "innodb_flushes": 7.0})
    before, after = (replace(counters(s, 0), checkpoint_pages=s * 3, now={"ndb_checkpoints": 100.0}) for s in (2, 4))
    assert difference(before, after, 1000.0)["work"] == {"ndb_checkpoints": 3 * 32768 + 100.0}


class NdbAnswers:
    """A connection to a SQL node, and its cursor: pages of tables on disk, bytes of columns in memory."""

    def __init__(self):
        self.asked = ""

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        return None

    def execute(self, statement):
        self.asked = statement

    def fetchall(self):
        if "STATUS" in self.asked:
            return []
        return [(Decimal(7),)] if "pages_written_lcp" in self.asked and "diskpagebuffer" in self.asked else [(None,)]


def test_ndbs_checkpoints_of_tables_on_disk_are_counted_and_of_ndb_alone(tmp_path):
    of_ndb, of_others = (Timeline(NdbAnswers(), set(), tmp_path, of_ndb=is_ndb)._read() for is_ndb in (True, False))
    assert (of_ndb.checkpoint_pages, of_ndb.now) == (7, {"ndb_checkpoints": 0.0})
    assert (of_others.checkpoint_pages, of_others.now) == (None, {})


class InnodbAnswers(NdbAnswers):
    """A connection to a server of InnoDB alone."""

    def fetchall(self):
        assert "'innodb_buffer_pool_pages_lru_flushed'" in self.asked
        return [("Innodb_buffer_pool_pages_flushed", "900"), ("Innodb_buffer_pool_pages_LRU_flushed", "850")]


def test_pages_that_innodb_evicts_for_room_are_no_checkpoints(tmp_path):
    assert Timeline(InnodbAnswers(), set(), tmp_path)._read().flushed_pages == 50


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
                      "device_read_bytes": 1e8, "device_write_bytes": 1e8, "server_cpus": 0.3, "network_bytes": 1e8} for s in range(1, 15)],
        **worlds.SETTLED,
    }


class Run:
    def __init__(self, points):
        self.points = points
        probes = [{"round": n, "random_read_bytes_per_second": 4e8, "sequential_write_bytes_per_second": 8e8} for n in (1, 2, 3)]
        self.run = {"parameters": {"name": "e5", "rounds": 3, "options": worlds.OPTIONS},
                    "sessions": [{"device_probes": probes, "memory_limit": {"how": "test", "limit_bytes": 1}, "payload_bytes": 1, "links": []}]}


def states(points):
    return {verdict.id: verdict.state for verdict in verdicts(Run(points), DiskData().labels)}


def test_what_was_published_is_reproduced_by_its_own_rules():
    found = states([point(n) for n in (1, 2, 3)])
    assert found == {"e5-load": NOT_MEASURED, "e5-mix": WEAKER, "e5-mean-latency": REPRODUCED, "e5-read-latency": REPRODUCED, "e5-write-latency": REPRODUCED,
                     "e5-latency": REPRODUCED, "e5-limit": REPRODUCED, "e5-processors": REPRODUCED, "e5-load-bytes": NOT_MEASURED, "e5-mix-bytes": WEAKER,
                     "e5-network": NOT_MEASURED, "e5-drives": NOT_MEASURED, "e5-checkpoints": NOT_MEASURED}


def published_world(variant, work):
    """An engine that does what the document says: its figures, the drives or the network as the limit, and background work that takes little."""
    def made(operation, rate, **more):
        return worlds.ycsb(operation, rate, 1.1, 4.5, processors=0.2, dent=0.02, variant=variant, work=work, **more)

    own = made("load", 44_500) + made("published", 69_500)
    drives = [p for number, rate in ((1, 11_000), (2, 21_500), (4, 42_000)) for operation in ("load", "published")
              for p in made(operation, rate, setting=f"{number} drive{'s' * (number > 1)}")]
    behind_link = made("load", 30_000, setting=LIMITED_NETWORK, busy=0.6, link=0.95) + made("published", 60_000, setting=LIMITED_NETWORK, busy=0.7, link=0.9)
    return own, drives + behind_link


def test_an_engine_that_does_what_the_document_says_reproduces_every_claim():
    """No two rules exclude each other, and every claim has a rule that this world can meet."""
    own, elsewhere = published_world("quarry", "gc_at_work")
    found = states(own + elsewhere)
    assert found == dict.fromkeys(DOCUMENT.claims, REPRODUCED)
    there = states(published_world("target-ndb", "ndb_checkpoints")[0])
    assert {name: there.get(f"{name}-ndb") for name in DOCUMENT.claims} == found | {"e5-network": None, "e5-drives": None}


def test_what_the_document_says_is_shown_as_it_says_it():
    made = {row.statement: row.cells[0] for row in DiskData().finding_rows(Run([]))}
    assert made["50/50: transactions take a bit more than 2 ms on average"] == [("", "a bit more than 2 ms")]
    assert made["processors were loaded at most 20% at any time"] == [("", "at most 20%")]


def test_other_figures_are_not_reproduced_and_nothing_measured_is_said():
    assert states([point(n, write_ms=1.5) for n in (1, 2, 3)])["e5-latency"] == WEAKER
    assert states([point(n, write_ms=30) for n in (1, 2, 3)])["e5-latency"] == STRONGER
    assert states([point(n, processors=0.6) for n in (1, 2, 3)])["e5-processors"] == WEAKER
    assert states([point(n, busy=0.4) for n in (1, 2, 3)])["e5-limit"] == WEAKER
    assert states([point(n, busy=0.1) for n in (1, 2, 3)])["e5-limit"] == OPPOSITE
    assert set(states([]).values()) == {NOT_MEASURED}


def test_only_samples_of_the_measured_interval_count():
    """That of second 2 is of what was done since second 1, in the warm-up."""
    assert [s["second"] for s in samples_under_load(point(1))] == list(range(3, 13))


def test_a_timeline_that_ended_early_does_not_tell_what_was_used():
    """Its first seconds would say that processors were never above 20 %."""
    made = point(1)
    made["timeline"] = made["timeline"][:6]
    assert used(made, {}) == {} and samples_under_load(made) == []
    made["timeline"] = point(1)["timeline"][:8]
    assert used(made, {}) == {DRIVES: 0.95, PROCESSORS: 0.15}


def test_the_devices_share_adds_reads_and_writes():
    run = Run([point(1)])
    assert device_share(run.points[0], run.run) == pytest.approx(1e8 / 4e8 + 2e8 / 8e8)
    assert device_share(point(9), run.run) is None
    run.run["sessions"][0]["device_probes"][0]["random_read_bytes_per_second"] = 0.0  # of a probe that came to read nothing
    assert device_share(point(1), run.run) is None


def test_ours_beside_the_published_rate_tells_the_devices_share():
    experiment = DiskData()
    load, mix, mean, reads, _writes = experiment.published
    run = Run([point(n) for n in (1, 2, 3)])
    assert experiment.beside(run, mix).endswith("300 MB/s, 50% of the device's raw rate")
    assert experiment.beside(run, load) == "not measured"
    assert experiment.beside(run, reads) == "1.00 ms (1.00 to 1.00)"
    assert experiment.beside(run, mean) == "2.75 ms (2.75 to 2.75)"
    run.points += [{**point(n, read_ms=3.0), "variant": "target-ndb"} for n in (1, 2, 3)]
    assert experiment.beside(run, reads) == "Quarry 1.00 ms (1.00 to 1.00); NDB 3.00 ms (3.00 to 3.00)"
    assert experiment.beside(run, mix).startswith("Quarry 1,000/s") and "; NDB 1,000/s" in experiment.beside(run, mix)
    run.points += [{**point(n, read_ms=2.0), "variant": "innodb"} for n in (1, 2, 3)]
    assert experiment.beside(run, reads).endswith("; InnoDB 2.00 ms (2.00 to 2.00)")


def test_what_was_used_is_of_the_busiest_drive_and_of_the_server_where_it_is_alone():
    made = point(1)
    assert used(made, {}) == {DRIVES: 0.95, PROCESSORS: 0.15}
    made |= {"drive_bytes_per_second": {"data1": 100, "data2": 100, "log": 0}, "link_bytes_per_second": 4e8, "cpu": {"processors": 4}}
    for sample in made["timeline"]:
        sample["drives"] = {"data1": [90.0, 10.0], "data2": [20.0, 60.0], "log": [0.0, 900.0]}
    assert used(made, {"apart": True}) == {DRIVES: 0.9, NETWORK: 0.5, PROCESSORS: pytest.approx(0.1)}


def test_device_and_processors_of_this_machine_are_not_those_of_a_server_elsewhere():
    """A cluster of the user's, on other machines: this one's idle processors would be 'never above 20 %', and its device the limit."""
    there = [{**p, "unseen": [DRIVES, PROCESSORS]} for p in worlds.ycsb("published", 69_500, variant="target-ndb")]
    found = {verdict.id: verdict for verdict in verdicts(Run(there), DiskData().labels)}
    assert [found[f"e5-{name}-ndb"].state for name in ("mix", "limit", "processors")] == [REPRODUCED, NOT_MEASURED, NOT_MEASURED]
    assert "raw rate" not in found["e5-mix-ndb"].reason


@pytest.mark.parametrize("server, engine, paths, unseen", [
    (NdbCluster("target"), "target-ndb", [], []), (TargetServer("target", Address("db")), "target-ndb", [], [DRIVES, PROCESSORS]),
    (SimpleNamespace(), "quarry", ["/mnt/a"], [DRIVES]), (SimpleNamespace(), "quarry", [], []), (SimpleNamespace(), "innodb", ["/mnt/a"], [])])
def test_what_the_timeline_cannot_see_is_recorded(server, engine, paths, unseen):
    request = DiskData().request("quick")
    request.options["data_paths"] = paths
    bench = disk_bench.DiskBench(SimpleNamespace(run=None, request=request, progress=None))
    bench._server, bench._engine = server, ENGINES[engine]
    assert bench._limits() == ({"unseen": unseen} if unseen else {})


def working(rates, work):
    """A round of ten seconds, with these rates and so much GC in each."""
    samples = [{"second": s, "work": {"gc_at_work": at_work}} for s, at_work in enumerate(work, 1)]
    return {"timeline": samples, "timeline_started": 1000.0, "measured_until": 1010.0, "result": {"interval_seconds": 10},
            "operations_timeline": [[1000.2 + s, rate] for s, rate in enumerate(rates, 1)]}


def test_background_work_is_told_by_the_seconds_in_which_it_works():
    assert background_ratio(working([100] * 5 + [50] * 5, [0] * 5 + [1] * 5), "gc") == pytest.approx(0.5)
    assert background_ratio(working([100] * 10, [0, 1] * 5), "gc") == pytest.approx(1.0)
    for untold in ([0] * 10, [1] * 10, [0] * 8 + [1] * 2, [0.8, 1.0] * 5):
        assert background_ratio(working([100] * 10, untold), "gc") is None
    assert background_ratio(working([100] * 10, [0, 1] * 5), "ndb") is None


def test_counters_that_do_not_move_together_are_no_background_work():
    """InnoDB that evicts and writes no checkpoint, where one counter is behind the other in some seconds."""
    assert background_ratio(working([100, 50] * 5, [-40, 45, -50, 60, -30] * 2), "gc") is None
    assert background_ratio(working([100, 50] * 5, [-40, 2000] * 5), "gc") == pytest.approx(0.5)


def test_a_file_of_results_has_what_the_rules_read():
    made = worlds.ycsb("load", 1000, setting="2 drives", busy=0.9) + worlds.ycsb("load", 600, setting="1 drive", busy=0.9) + worlds.ycsb("published", 100)
    made += worlds.ycsb("published", 100, setting=LIMITED_NETWORK, link=0.9, dent=0.5)
    made += [{**point(n), "variant": "innodb"} for n in (1, 2, 3)]
    kept = [lab_results._point(point) for point in made]
    assert verdicts(Run(kept), DiskData().labels) == verdicts(Run(made), DiskData().labels)


def test_the_table_of_findings_has_a_column_for_each_engine():
    experiment = DiskData()
    other = [{**point(n, rate=70_000.0), "variant": "target-ndb"} for n in (1, 2, 3)]
    run = Run([point(n) for n in (1, 2, 3)] + other)
    made = {row.statement: row.cells for row in experiment.finding_rows(run)}
    published, ndb, quarry, innodb = made["50/50: almost 70,000 tps"]
    assert published == [("", "almost 70,000 tps")]
    assert [cell[0][0] for cell in (ndb, quarry, innodb)] == [REPRODUCED, WEAKER, NOT_MEASURED]
    assert all(not verdict.id.endswith(("-ndb", "-innodb")) for verdict in experiment.quarrys_own(experiment.verdicts(run)))


def test_what_an_engine_that_was_measured_lacks_is_said_in_its_column():
    """Not that the run had no point of it."""
    made = worlds.ycsb("published", 1000, work="innodb_flushes", idle=0.9, variant="innodb")
    cells = {row.statement: row.cells for row in DiskData().finding_rows(Run(made))}
    (checkpoints,) = [found for statement, found in cells.items() if statement.startswith("checkpoints")]
    assert checkpoints[3] == [(NOT_MEASURED, "this run lacks seconds with such work next to seconds without it")]
    assert checkpoints[1] == [(NOT_MEASURED, "this run has no such point of NDB, which `make ndb` builds")]


def test_a_round_without_its_timeline_has_no_say_in_what_the_limit_was():
    made = worlds.ycsb("published", 100, setting=LIMITED_NETWORK, link=0.95, busy=0.2)
    made[1]["timeline"] = []
    (network,) = [verdict for verdict in verdicts(Run(made), DiskData().labels) if verdict.id == "e5-network"]
    assert network.state == NOT_JUDGED and network.reason.startswith("mix, limited network x16, network: 95% (95% to 95%), drives 20%, processors 15%")


def test_statements_that_ndb_refused_for_a_while_are_said_next_to_its_checkpoints():
    made = worlds.ycsb("published", 1000, dent=0.5, work="ndb_checkpoints", variant="target-ndb")
    assert "refused" not in reasons(made)["e5-checkpoints-ndb"]
    for p, repeated in zip(made, (0, 3, 14), strict=True):
        p["result"] |= {"errors": repeated}
    assert reasons(made)["e5-checkpoints-ndb"].endswith("; 17 executions refused and repeated: the wait is in the statements' latency")
    assert "refused" not in reasons(made)["e5-mix-ndb"]


def test_what_may_have_been_the_limit_instead_is_said():
    """The log's drive has no quota, and the client's processor is not the server's."""
    made = worlds.ycsb("load", 100, setting="2 drives", busy=0.4)
    for p in made:
        p["timeline"] = [{**sample, "device_busy_share": 0.97} for sample in p["timeline"]]
    run = Run(made)
    run.run["parameters"]["apart"] = True
    (limit,) = [verdict for verdict in verdicts(run, DiskData().labels) if verdict.id == "e5-limit"]
    assert limit.reason.endswith(", processors 15%, the device under drives and log busy 97%, the client's processor 70%")
    assert "device under" not in reasons(worlds.ycsb("load", 100, busy=0.4))["e5-limit"]


def test_a_busy_device_that_has_room_for_more_is_told_by_its_raw_rates():
    """Busy 95 % of the time with a quarter of what it reads, and an eighth of what it writes in a second."""
    (limit,) = [verdict for verdict in verdicts(Run([point(n) for n in (1, 2, 3)]), DiskData().labels) if verdict.id == "e5-limit"]
    assert limit.reason == "mix, 1 path x16, drives: 95% (95% to 95%), processors 15%, the device at 38% of its raw rates"


# --- why a claim shows on NDB alone ---
def reasons(points):
    return {verdict.id: verdict.reason for verdict in verdicts(Run(points), DiskData().labels)}


def test_what_shows_on_ndb_and_not_on_quarry_has_its_reason_with_figures():
    there = worlds.ycsb("load", 44_500, write_ms=1.2, variant="target-ndb") + worlds.ycsb("published", 69_000, variant="target-ndb")
    here = worlds.ycsb("load", 900, write_ms=17) + worlds.ycsb("published", 800, 8, 30, busy=0.5, processors=0.9)
    found = reasons(here + there)
    assert "not as on NDB: a commit waits until the device has its value" in found["e5-load"]
    assert found["e5-load"].endswith("(load x16: writes 17.00 ms here, 1.20 ms on NDB)")
    assert found["e5-mix"].endswith("(mix x16: writes 30.00 ms here, 4.50 ms on NDB; reads 8.00 ms here, 1.10 ms on NDB)")
    assert found["e5-limit"].endswith("(mix x16: drives 50% here, 95% on NDB; processors 90% here, 15% on NDB)")
    assert not any("not as on NDB" in reason for reason in reasons(here).values())
    assert not any("not as on NDB" in reason for reason in reasons(there).values()), "Quarry was not measured"
    dented = worlds.ycsb("published", 800, dent=0.5) + worlds.ycsb("published", 800, work="ndb_checkpoints", variant="target-ndb")
    assert reasons(dented)["e5-checkpoints"].endswith("(mix x16: throughput next to it 0.50x here, 1.00x on NDB)")


def test_a_reason_is_of_a_level_that_does_not_show_and_stands_where_its_figure_does():
    there = worlds.ycsb("load", 44_500, variant="target-ndb") + worlds.ycsb("published", 69_000, variant="target-ndb")
    drives_of_mix_alone = worlds.ycsb("load", 900, busy=0.4, processors=0.9) + worlds.ycsb("published", 800)
    found = reasons(drives_of_mix_alone + there)
    assert found["e5-limit"].endswith("(load x16: drives 40% here, 95% on NDB; processors 90% here, 15% on NDB)")
    assert found["e5-processors"].endswith("keeps the processors busier (load x16: drives 40% here, 95% on NDB; processors 90% here, 15% on NDB)")
    assert "not as on NDB" not in found["e5-write-latency"], "it shows here, too"
    quick_writes = worlds.ycsb("load", 900, write_ms=2.0) + worlds.ycsb("published", 800, busy=0.99, processors=0.9)
    found = reasons(quick_writes + there)
    assert not any("not as on NDB" in found[name] for name in ("e5-load", "e5-processors")), "writes are no slower, and drives no less used"
    # NDB is nowhere on drives.
    assert "not as on NDB" not in reasons(worlds.ycsb("published", 800) + worlds.ycsb("load", 100, busy=0.3, setting="2 drives") + there)["e5-limit"]


def test_every_claim_that_ndb_may_show_alone_has_a_reason_in_its_data():
    without = {claim.id for claim in DOCUMENT.claims.values() if "on_quarry" not in claim.judging}
    assert without == {claim.id for claim in DOCUMENT.claims.values() if "lacking_ndb" in claim.judging} == {"e5-network", "e5-drives"}


def test_the_tables_ratio_is_to_innodb_on_the_same_drives_and_network():
    settings = {"1 path": 1000, "2 drives": 100, LIMITED_NETWORK: 10}
    made = [p for setting, rate in settings.items() for variant, factor in (("innodb", 1), ("quarry", 2))
            for p in worlds.ycsb("load", rate * factor, variant=variant, setting=setting)]
    table = e5_figures.tables(Run(made + worlds.ycsb("load", 3000, setting="2 paths")), DiskData().labels)[0]
    engines, ratios = (list(table.columns[n].cells) for n in (1, 4))
    found = dict(zip(engines, ratios, strict=True))
    assert [found[f"QUARRY BLOB, {setting}"] for setting in (*settings, "2 paths")] == ["2.00x", "2.00x", "2.00x", "3.00x"]


def test_each_client_level_has_its_share_of_the_device_and_its_name_in_the_table():
    made = worlds.ycsb("load", 1000) + [p | {"threads": 1} for p in worlds.ycsb("load", 500)]
    engines = list(e5_figures.tables(Run(made), DiskData().labels)[0].columns[1].cells)
    assert engines == ["QUARRY BLOB, 1 path x1", "QUARRY BLOB, 1 path x16"]
    assert "29,500 bytes each: x1 14.8 MB/s, 2% of the device's raw rate (2% to 2%); x16 29.5 MB/s, 4%" in reasons(made)["e5-load"]


def test_a_point_that_was_not_settled_is_said():
    """What an engine left to write before it, or in front of its successor, took a part of the device."""
    made = [point(1), point(2) | {"settle_before": {"settled": False}}]
    (table,) = e5_figures.tables(Run(made), DiskData().labels)
    assert list(table.columns[-1].cells) == ["[yellow]not settled 1/2[/yellow]"]
    assert ["not settled" in DiskData().line(p) for p in made] == [False, True]


def test_sizes_and_limits_of_a_run_are_on_its_pages():
    experiment, made = DiskData(), worlds.ycsb("load", 1000, setting="1 drive") + worlds.ycsb("load", 1900, setting="2 drives")
    link = {"by": "tc tbf rate 300mbit", "measured_bytes_per_second": 36e6}
    machine = {"cpu": "a processor", "processors": 2, "memory_bytes": 4 << 30, "file_system": "ext4 rw", "commit": "abc1234"}
    run = worlds.Run(made, machine=machine, links=[link])
    run.run |= {"date": "2026-11-29"}
    run.run["parameters"]["settings"]["warmup_seconds"] = 2
    said = ("1.5 GiB of payload; memory of the private servers: memory cgroup, 384 MiB; drives of 12 MiB/s for reads and as much for writes, "
            "the log's without a quota; a limited network of 300 Mbit/s each way (by tc; one connection got 34.3 MiB/s)")
    assert lab_page._ran(lab_page.Chapter(experiment, run)).endswith(f" of them noisy. Measured with {said}.")
    assert f"has every round. Measured with {said}.\n" in lab_results.block(experiment, lab_results.Result(Path("e5.json"), run.run, made))
    assert e5_figures.tables(run, experiment.labels)[0].title == f"E5: {said}"
    assert e5_figures._over_drives(Cells(made, experiment.labels), worlds.OPTIONS)["drives"].get_suptitle() == "throughput over drives of 12 MiB/s each"
    run.run["parameters"]["options"] = {**worlds.OPTIONS, "drives": [], "link_mbits": 0}
    assert experiment.conditions(run).endswith("384 MiB")
    run.run["sessions"][-1]["servers"] = {"target-ndb 1 path": {"data_nodes": {"DiskPageBufferMemory": "384M"}}}
    assert experiment.conditions(run).endswith("384 MiB; page buffer of each data node of NDB: 384M")


def test_charts_mark_checkpoints_beside_throughput():
    figures = e5_figures.figures(Run([point(n) for n in (1, 2, 3)]), DiskData().labels)
    timeline = figures["timeline-published-quarry-1-path"]
    assert [text.get_text() for text in timeline.axes[0].get_legend().get_texts()] == ["quarry_catalogue_flushes"]
    assert timeline.axes[0].get_title() == "published: 50/50, uniform: QUARRY BLOB, 1 path, round 3"
    assert e5_figures.tables(Run([point(1)]), DiskData().labels)[0].row_count == 1


def test_each_client_level_has_its_timeline():
    made = [{**point(1), "threads": threads} for threads in (1, THREADS)]
    drawn = e5_figures.figures(Run(made), DiskData().labels)
    assert [name for name in drawn if name.startswith("timeline")] == ["timeline-published-quarry-1-path-x1", f"timeline-published-quarry-1-path-x{THREADS}"]
    for figure in drawn.values():
        plt.close(figure)


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
    made = [statement for statement, _back in ndb.surroundings(100_000, 30)]
    assert "INITIAL_SIZE 4751M" in made[1]
    assert all(name in str(made) for name in ("quarry_lab_space", "quarry_lab_log"))
    # NDB keeps a third of its undo log free; the rest holds the old values of a mix of a thousand updates a second.
    (undo,) = re.findall(r"INITIAL_SIZE (\d+)M", made[0])
    assert (int(undo) << 20) * 2 / 3 > experiment.request("normal").options["mix_seconds"] * 1000 * PAYLOAD_BYTES
    (undo_of_more,) = re.findall(r"UNDOFILE.* INITIAL_SIZE (\d+)M", ndb.surroundings(100_000, 60)[0][0])
    assert (int(undo_of_more) << 20) * 2 / 3 > 60 * 1000 * PAYLOAD_BYTES
    # On a target QUARRY has the paths that are there.
    request = replace(experiment.request("normal"), variants=["quarry", "target-quarry"])
    assert {(cell.variant, cell.setting) for cell in experiment.cells(request)} == {
        *(("quarry", setting) for setting in (ONE_PATH, "1 drive", "2 drives", "4 drives", LIMITED_NETWORK)), ("target-quarry", ONE_PATH)}
    assert not experiment.needs_plugin(replace(request, variants=["target-quarry"]))
