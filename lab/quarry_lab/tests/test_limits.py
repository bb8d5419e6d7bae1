"""The yardsticks: what is said of each beside Quarry, on synthetic rounds, and that each does what it says, on private servers."""

import io
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from quarry_lab.catalogue import EXPERIMENTS, PUBLISHED
from quarry_lab.design.plan import Point
from quarry_lab.design.profile import BARE, PRODUCTION
from quarry_lab.design.request import LabError, Settings
from quarry_lab.design.results import RunDirectory, open_run
from quarry_lab.design.variants import ALL, KIB
from quarry_lab.experiments import table_experiment
from quarry_lab.experiments.cold import bench as cold_bench, findings as cold_findings
from quarry_lab.limits import cold as limits_cold, ordered_commits, server_functions
from quarry_lab.limits.bench import LimitsBench
from quarry_lab.limits.cold import OPERATION_OF, ColdLimitsBench, LimitsOfColdReads
from quarry_lab.limits.experiment import Limits
from quarry_lab.limits.findings import COMPRESSED_VALUES, DURABLE_VALUES, FREE_VALUES, HEADED_VALUES, HEADS_ALONE, MEMORY_VALUES, NO_ENGINE, NO_TABLE, TEXT3
from quarry_lab.limits.ordered_commits import GROWING, WRITTEN, Commits
from quarry_lab.limits.yardsticks import HEAD_BYTES, KNOWN, YARDSTICKS
from quarry_lab.load import clients, sysbench
from quarry_lab.load.payload import Payload
from quarry_lab.probes import device
from quarry_lab.run import session
from quarry_lab.run.experiment import Context
from quarry_lab.run.progress import RunProgress
from quarry_lab.servers.program import ProgramError
from rich.console import Console

SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}
SIZE, THREADS = 64 * KIB, 2
READS = [variant for variant, operation in OPERATION_OF.items() if operation == "cold-read"]


class Run:
    def __init__(self, points, ordered=(), profile=BARE):
        self.points = points
        self.run = {"parameters": {"name": "limits", "rounds": 3, "settings": {"seconds": 10}, "payload": "random", "profile": profile},
                    "sessions": [{"device_probes": [{"round": 1, "ordered_commits": list(ordered)}]}]}


def found_of(points, finding, ordered=()):
    return next(v for v in Limits().verdicts(Run(points, ordered)) if v.id == f"limits-{finding}")


@pytest.fixture
def pair(rounds):
    """InnoDB's rounds, 1,000 a second, and Quarry's."""
    return lambda operation, threads, rate: [*rounds("innodb", operation, 64, threads, 1000.0), *rounds("quarry", operation, 64, threads, rate)]


def commits(threads, rate, file=WRITTEN, gather=False, size_kib=64, values_alone=False):
    return asdict(Commits(threads, size_kib * KIB, file, gather, rate, values_alone))


def test_no_run_has_them_that_does_not_ask_by_name():
    for experiment in EXPERIMENTS.values():
        fenced = isinstance(experiment, (Limits, LimitsOfColdReads))
        assert fenced == bool(set(experiment.labels) & set(YARDSTICKS)) and not (fenced and experiment in PUBLISHED)
    assert not set(ALL) & set(YARDSTICKS)


def test_every_finding_has_its_cells_in_the_default_grid(rounds):
    points = [p for cell in Limits().cells(Limits().request()) for p in rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, 1000.0, cell.setting)]
    assert {v.state for v in Limits().verdicts(Run(points))} == {"answered"}
    assert {v.state for v in Limits().verdicts(Run([]))} == {"not measured"}
    assert {c.variant for c in Limits().cells(Limits().request()) if c.variant in YARDSTICKS} == set(YARDSTICKS) - set(OPERATION_OF)
    assert {(c.variant, c.operation) for c in LimitsOfColdReads().cells(LimitsOfColdReads().request()) if c.variant in YARDSTICKS} == set(OPERATION_OF.items())


def test_a_lone_clients_bound_is_one_part_after_the_other(pair, rounds):
    both = [*pair("insert", 1, 900.0), *rounds(NO_ENGINE, "insert", 64, 1, 5000.0)]
    probe = [commits(1, 1250.0), commits(1, 2000.0, size_kib=24), commits(8, 9999.0)]
    found = found_of(both, "insert-64kb-x1", probe)
    assert "the SQL layer alone 5,000/s, two durable writes at once of the device alone 1,250/s: together 1,000/s, 1.00x InnoDB, of which Quarry reaches 90%" in found.reason
    assert found.figures["limit_per_second"] == pytest.approx(1000) and found.figures["share_of_limit"] == pytest.approx(0.9)
    rows = rounds(HEADS_ALONE, "insert", 64, 1, 2000.0)
    values = [commits(1, 3000.0, values_alone=True), commits(1, 1800.0, GROWING, values_alone=True)]
    found = found_of([*both, *rows], "insert-64kb-x1", [*probe, *values])
    assert "a row without its value and then a value where the file grows, each as fast as alone 947/s, 0.95x InnoDB, of which Quarry reaches 95%" in found.reason
    assert found.figures["share_of_limit"] == pytest.approx(0.9) and found.figures["share_of_one_by_one"] == pytest.approx(0.95)


def test_with_many_clients_the_scarcest_part_is_the_bound(pair, rounds):
    eight = [*pair("insert", 8, 900.0), *rounds(NO_ENGINE, "insert", 64, 8, 1800.0)]
    assert "the SQL layer alone 1,800/s, 1.80x InnoDB, of which Quarry reaches 50%" in found_of(eight, "insert-64kb-x8", [commits(1, 10.0)]).reason
    probe = [commits(8, 1000.0), commits(8, 1200.0, gather=True), commits(8, 750.0, GROWING), commits(8, 700.0, GROWING, gather=True)]
    found = found_of(eight, "insert-64kb-x8", probe)
    assert "device alone 1,200/s: at most 1,200/s, 1.20x InnoDB, of which Quarry reaches 75%" in found.reason
    assert "the two writes where the values' file grows 750/s, 0.75x InnoDB, of which Quarry reaches 120%" in found.reason
    assert found.figures["share_of_growing"] == pytest.approx(1.2)
    rows = [*eight, *rounds(HEADS_ALONE, "insert", 64, 8, 1100.0)]
    assert "at most 1,100/s" in found_of(rows, "insert-64kb-x8", [*probe, commits(8, 1e6, values_alone=True)]).reason, "values without a log are no bound of commits"


def test_inserts_stand_beside_rows_whose_values_nobody_waits_for(pair, rounds):
    both = pair("insert", 8, 1400.0)
    growing, headed, written = (rounds(variant, "insert", 64, 8, rate) for variant, rate in zip(DURABLE_VALUES, (1500.0, 1400.0, 2000.0), strict=True))
    found = found_of([*both, *growing, *headed, *written], "insert-64kb-x8")
    assert "beside them where their file grows, nobody waiting, 1,500/s, 1.50x InnoDB, of which Quarry reaches 93%" in found.reason
    assert "beside them behind headers where their file grows, nobody waiting, 1,400/s, 1.40x InnoDB, of which Quarry reaches 100%" in found.reason
    assert "beside them in space written before, nobody waiting, 2,000/s, 2.00x InnoDB, of which Quarry reaches 70%" in found.reason
    assert found.figures["share_of_grown"] == pytest.approx(14 / 15) and found.figures["overwritten_per_second"] == pytest.approx(2000)
    assert "limit_per_second" not in found.figures, "an arrangement is no bound of all"
    assert found_of([*rounds("quarry", "insert", 64, 8, 1400.0), *growing], "insert-64kb-x8").state == "not measured"


@pytest.mark.parametrize(("operation", "threads", "words"), [("read", 8, "values from memory 1,200/s"), ("mix", 16, "made durable beside them, nobody waiting, 1,200/s")])
def test_reads_and_the_mix_stand_beside_values_that_cost_nothing(pair, rounds, operation, threads, words):
    both = [*pair(operation, threads, 1080.0), *rounds(FREE_VALUES, operation, 64, threads, 1350.0), *rounds(MEMORY_VALUES, operation, 64, threads, 1200.0)]
    found = found_of(both, f"{operation}-64kb")
    assert f"{words}: at most 1,200/s, 1.20x InnoDB, of which Quarry reaches 90%" in found.reason and found.figures["share_of_limit"] == pytest.approx(0.9)
    if operation == "read":
        constant = found_of([*both, *rounds(NO_TABLE, "constant", 64, threads, 1100.0)], "read-64kb")
        assert "at most 1,100/s" in constant.reason and constant.figures["constant_per_second"] == pytest.approx(1100)


def test_bytes_written_stand_beside_the_least_there_can_be(rounds):
    ours, rows, headed = (rounds(variant, "insert", 64, 8, 100.0, ratio=ratio) for variant, ratio in (("quarry", 1.07), (HEADS_ALONE, 0.06), (HEADED_VALUES, 1.065)))
    found = found_of([*ours, *rows], "written-64kb")
    assert found.reason.startswith("InnoDB writes 0.060 of the rows without their values, so 1.060 is the least; Quarry 1.070")
    assert "nobody waiting for their groups, come to 1.065" in found_of([*ours, *rows, *headed], "written-64kb").reason
    assert found_of(ours, "written-64kb").state == "not measured"
    (logged,) = [v for v in Limits().verdicts(Run([*ours, *rows], profile=PRODUCTION)) if v.id == "limits-written-64kb"]
    assert logged.reason.startswith("InnoDB writes 0.060 of the rows without their values, the binary log has the values, so 2.060 is the least")


def test_compressed_values_stand_beside_the_price_of_the_codec(rounds):
    points = [p for variant, rate in (("quarry-lz4", 2100.0), ("innodb-page-compressed", 1000.0), ("rocksdb", 1100.0), (COMPRESSED_VALUES, 2200.0))
              for p in rounds(variant, "insert", 64, 32, rate, TEXT3)]
    found = found_of([*points, *rounds("quarry", "insert", 64, 32, 1000.0)], "lz4-64kb")
    assert "nobody waiting: Quarry reaches 95%" in found.reason and found.figures["share_of_limit"] == pytest.approx(21 / 22)
    assert "page compression 2.20x (rounds " in found.reason and "MyRocks with lz4 2.00x" in found.reason and "own incompressible figure 2.20x" in found.reason


def cold_points(rounds, rates, operation="cold-read"):
    return [p for variant, rate in rates.items() for p in rounds(variant, operation, 64, 8 if operation == "cold-read" else 1, rate)]


def test_cold_reads_stand_beside_the_device(rounds):
    points = cold_points(rounds, {"innodb": 100.0, "quarry-default": 170.0, "trailers-and-client": 340.0, "trailers-and-device": 200.0})
    found = next(v for v in LimitsOfColdReads().verdicts(Run(points)) if v.id == "limits-cold-read-64kb-x8")
    assert "by the client 340/s, 3.40x InnoDB, of which Quarry reaches 50%" in found.reason and found.figures["share_of_limit"] == pytest.approx(0.5)
    assert "nothing else for the value 200/s, 2.00x InnoDB, of which Quarry reaches 85%" in found.reason


def test_a_scan_and_the_pool_stand_beside_values_of_no_bytes(rounds):
    points = cold_points(rounds, {"innodb": 100.0, "quarry-default": 170.0, "empty-values": 340.0}, "columns")
    held = {"innodb": 400, "quarry-default": 600, "empty-values": 200}
    for point in points:
        point["memory"] = {"cached_bytes": {"buffer_pool": held[point["variant"]]}}
    found = {v.id: v for v in LimitsOfColdReads().verdicts(Run(points))}
    assert found["limits-columns-64kb-x1"].figures["share_of_limit"] == pytest.approx(0.5)
    assert "no bytes 0.50x" in found["limits-cold-pool"].reason and "Quarry 1.50x" in found["limits-cold-pool"].reason


@pytest.mark.skipif(bool(clients.needs()), reason="; ".join(clients.needs()))
def test_ordered_commits_of_the_device_alone(tmp_path: Path):
    """Not every file system takes direct writes; the one under the build directory does, for the lab's servers live there."""
    directory = clients.PROGRAMS.parent
    found = ordered_commits.probe(directory, [(1, 8192), (3, 8192)], seconds=0.05)
    assert {(each["threads"], each["file"], each["gather"], each["values_alone"]) for each in found} == {
        (threads, file, gather, values_alone) for threads, gather in ((1, False), (3, False), (3, True))
        for file in ("written", "growing") for values_alone in (False, True)}
    assert all(each["commits_per_second"] > 0 and each["value_bytes"] == 8192 for each in found)
    runs = {"sessions": [{"device_probes": [{"ordered_commits": found}, {"ordered_commits": found}, {}]}, {}]}
    for values_alone in (False, True):
        rates = ordered_commits.rates(runs, values_alone)
        assert rates[3, 8192, "growing"].median == max(each["commits_per_second"] for each in found
                                                       if (each["threads"], each["file"], each["values_alone"]) == (3, "growing", values_alone))
        assert set(rates) == {(threads, 8192, file) for threads in (1, 3) for file in ordered_commits.FILES}
    with pytest.raises(ProgramError, match="not a multiple of 4096"):
        ordered_commits.measure(directory, 1, 5000)
    with pytest.raises(ProgramError, match="a file in .*/missing"):
        ordered_commits.measure(tmp_path / "missing", 1, 8192)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A bench of tiny datasets on a private server, without a measuring run around it."""
    directory = tmp_path_factory.mktemp("limits")
    experiment, settings = Limits(), Settings(seconds=1, warmup_seconds=0, dataset_bytes=4 << 20, disk_reserve_bytes=0)
    request = replace(experiment.request(), settings=settings)
    run = RunDirectory(directory / "run", experiment.identity(replace(request, variants=["innodb"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_experiment, "DATA", directory)
        lab = table_experiment.make_servers([KNOWN["innodb"], KNOWN[NO_ENGINE]], replace(request, mycnf=SMALL))["main"].start()
    try:
        with Payload("random", 4 << 20) as random, Payload(TEXT3, 4 << 20) as text, RunProgress(Console(file=io.StringIO()), "t", [], 0) as progress:
            yield LimitsBench(Context(request, run, progress), {"main": lab}, {"random": random, TEXT3: text})
    finally:
        lab.close()


@pytest.mark.nightly
def test_each_yardstick_does_what_it_says(bench):
    lab = bench.servers["main"]
    the_constant_is_sent_whole_and_no_engine_is_asked(bench, lab)
    an_insert_without_an_engine_is_taken_and_thrown_away(bench, lab)
    rows_without_their_values_are_sent_whole_and_keep_a_head(bench, lab)
    values_that_cost_nothing_are_sent_whole_and_their_rows_read(bench, lab)
    values_from_memory_are_sent_whole_and_made_durable_when_written(bench, lab)
    values_beside_their_rows_are_durable_and_nothing_of_them_stays(bench, lab)


def values_from_memory_are_sent_whole_and_made_durable_when_written(bench, lab):
    for operation in ("read", "mix"):
        result = (record := bench.measure(Point(1, operation, SIZE, THREADS, MEMORY_VALUES)))["result"]
        assert result["reads"] > 500 and record["durable_value_bytes"] >= result["total_rows_written"] * SIZE
        assert (result["total_rows_written"] > 0) == (operation == "mix")
    assert lab.rows("SELECT name FROM mysql.func") == [] and not (lab.server.plugin_dir / "memory_value.so").exists()
    schema = lab.datasets[(MEMORY_VALUES, SIZE, "")]
    assert lab.rows(f"SELECT MIN(LENGTH(data)), MAX(LENGTH(data)) FROM {schema}.sbtest1") == [(HEAD_BYTES, HEAD_BYTES)]


def values_beside_their_rows_are_durable_and_nothing_of_them_stays(bench, lab):
    before = device.allocated_bytes(lab.directory.iterdir())
    for variant in (*DURABLE_VALUES, COMPRESSED_VALUES, *DURABLE_VALUES):  # a file of each kind, opened again and again
        record = bench.measure(Point(1, "insert", SIZE, THREADS, variant))
        rows = record["result"]["total_rows_written"]
        assert rows > 100 and record["durable_value_bytes"] >= rows * SIZE
        assert record["written"]["server_bytes"] >= record["durable_value_bytes"]
    record = bench.measure(Point(1, "insert", SIZE, THREADS, COMPRESSED_VALUES, TEXT3))
    assert record["durable_value_bytes"] >= record["result"]["total_rows_written"] * SIZE
    assert lab.rows("SELECT name FROM mysql.func") == [] and not (lab.server.plugin_dir / "durable_write.so").exists()
    assert device.allocated_bytes(lab.directory.iterdir()) - before < SIZE, "the files had no name"


def test_a_value_that_is_not_in_memory_fails_its_statement(bench, monkeypatch):
    lab = bench.servers["main"]
    with server_functions.loaded(lab, "memory_value", {"memory_value": "STRING", "memory_value_end": "INTEGER"}):
        for arguments in ("'x', 8192", "0, 8192", "8193, 8192", "-1, 8192", "4096"):
            with pytest.raises(Exception, match=r"memory_value\(bytes, of_bytes\)"):
                lab.rows(f"SELECT memory_value({arguments})")
        with pytest.raises(Exception, match="not so much memory"):
            lab.rows("SELECT memory_value(1, 1 << 60)")
        assert lab.rows("SELECT LENGTH(memory_value(8192, 8192)), LENGTH(memory_value(1, 8192))") == [(8192, 1)]
        with pytest.raises(Exception, match="another size"):
            lab.rows("SELECT memory_value(1, 8193)")
        assert lab.rows("SELECT memory_value_end()") == [(8192,)] and lab.rows("SELECT memory_value_end()") == [(0,)]
    # A run that got something else in their place is none.
    honest = lab.status
    monkeypatch.setattr(lab, "status", lambda pattern: {"bytes_sent": "1"} if pattern == "Bytes_sent" else honest(pattern))
    with pytest.raises(LabError, match=r"of \d+ 0 bytes were sent"):
        bench.measure(Point(1, "read", SIZE, THREADS, MEMORY_VALUES))


def test_a_value_that_cannot_be_made_durable_fails_its_statement(bench, monkeypatch):
    lab = bench.servers["main"]
    with server_functions.loaded(lab, "durable_write", {"durable_write": "STRING", "durable_write_end": "INTEGER"}):
        for arguments, words in (("'/nowhere', 'growing', 'x', 1", "no file for direct writes in this directory"),
                                 (f"'{lab.directory}', 'flying', 'x', 1", "growing, written, headed or compressed"), ("'x'", "kept. has other arguments")):
            with pytest.raises(Exception, match=words):
                lab.rows(f"SELECT durable_write({arguments})")
        # Longer than a group may be.
        assert lab.rows(f"SELECT durable_write('{lab.directory}', 'growing', REPEAT('x', {33 << 20}), 1) IS NULL") == [(1,)]
        assert lab.rows(f"SELECT durable_write('{lab.directory}', 'growing', 'value', 3)") == [("val",)]
        assert lab.rows("SELECT durable_write_end()") == [(5,)] and lab.rows("SELECT durable_write_end()") == [(0,)]
        # It fits where it is compressed, and counts as what it was.
        assert lab.rows(f"SELECT durable_write('{lab.directory}', 'compressed', REPEAT('x', {33 << 20}), 1)") == [("x",)]
        assert lab.rows("SELECT durable_write_end()") == [(33 << 20,)]
    # A run whose values did not all get there is none.
    honest = lab.rows
    monkeypatch.setattr(lab, "rows", lambda sql: [(1,)] if "durable_write_end" in sql else honest(sql))
    with pytest.raises(LabError, match=r"of \d+ 1 bytes were made durable"):
        bench.measure(Point(1, "insert", SIZE, THREADS, next(iter(DURABLE_VALUES))))


def rows_without_their_values_are_sent_whole_and_keep_a_head(bench, lab):
    def counted(name):
        return int(lab.status(name)[name.lower()])

    received, inserted = counted("Bytes_received"), counted("Handler_write")
    record = bench.measure(Point(1, "insert", SIZE, THREADS, HEADS_ALONE))
    rows = record["result"]["total_rows_written"]
    assert 1 <= (counted("Bytes_received") - received) / (rows * SIZE) < 1.1
    assert counted("Handler_write") - inserted >= rows > 100
    assert rows * HEAD_BYTES < record["written"]["server_bytes"] < rows * SIZE  # InnoDB would write a value twice


def values_that_cost_nothing_are_sent_whole_and_their_rows_read(bench, lab):
    def counted(name):
        return int(lab.status(name)[name.lower()])

    sent, looked_up = counted("Bytes_sent"), counted("Handler_read_key")
    result = bench.measure(Point(1, "read", SIZE, THREADS, FREE_VALUES))["result"]
    assert result["reads"] > 1000 and counted("Handler_read_key") - looked_up >= result["reads"]
    assert 1 <= (counted("Bytes_sent") - sent) / (result["reads"] * SIZE) < 1.1
    bench.measure(Point(1, "mix", SIZE, THREADS, FREE_VALUES))
    schema = lab.datasets[(FREE_VALUES, SIZE, "")]
    assert lab.rows(f"SELECT MIN(LENGTH(data)), MAX(LENGTH(data)) FROM {schema}.sbtest1") == [(HEAD_BYTES, HEAD_BYTES)]


def an_insert_without_an_engine_is_taken_and_thrown_away(bench, lab):
    record = bench.measure(Point(1, "insert", SIZE, THREADS, NO_ENGINE))
    assert record["result"]["total_rows_written"] > 1000
    assert lab.rows("SELECT ENGINE, TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = 'BLACKHOLE'") == [("BLACKHOLE", "NO")]


def the_constant_is_sent_whole_and_no_engine_is_asked(bench, lab):
    def counted(name):
        return int(lab.status(name)[name.lower()])

    sent, looked_up = counted("Bytes_sent"), counted("Handler_read_key")
    result = bench.measure(Point(1, "constant", SIZE, THREADS, NO_TABLE))["result"]
    assert result["reads"] > 1000 and result["total_rows_written"] == 0
    assert 1 <= (counted("Bytes_sent") - sent) / (result["reads"] * SIZE) < 1.1
    assert counted("Handler_read_key") - looked_up < 10  # of the lab's own questions


def test_reads_of_the_device_that_were_not_made_are_no_limit(monkeypatch):
    """Neither by the device's own count nor by what the server sent may a byte be missing."""
    counters = iter([device.DeviceCounters(0, 0, 0), device.DeviceCounters(9 * 64 * KIB, 0, 0)] * 2)
    monkeypatch.setattr(device, "device_counters", lambda _name: next(counters))
    monkeypatch.setattr(device, "device_of", lambda _path: "vda")  # a fresh clone has no data directory of the lab's
    bench = object.__new__(ColdLimitsBench)
    bench.known = KNOWN
    monkeypatch.setattr(bench, "_load", lambda *_arguments: sysbench.Load("read", "lab", 64 * KIB, 1), raising=False)
    monkeypatch.setattr(bench, "_device_file", lambda: nullcontext(Path("/file")), raising=False)
    for sent, words in ((10 * 64 * KIB, "589824 bytes were read from the device"), (8 * 64 * KIB, "524288 bytes were sent, 589824 bytes were read")):
        monkeypatch.setattr(bench, "_run_load", lambda _point, load, sent=sent: {"bytes_sent": sent, "result": {"total_reads": 10}, "path": load.device_path}, raising=False)
        with pytest.raises(LabError, match=f"trailers-and-client: of 655360 {words}"):
            bench._run(Point(1, "cold-read", 64 * KIB, 1, "trailers-and-client"), "lab")


def test_values_longer_than_a_direct_read_are_refused():
    with pytest.raises(LabError, match=f"trailers-and-client takes values of at most {2 << 20} bytes .got {4 << 20}."):
        LimitsOfColdReads().needs(replace(LimitsOfColdReads().request(), sizes_bytes=[4 << 20]))


@pytest.mark.nightly
def test_what_bounds_a_cold_read_reads_the_device_and_sends_the_bytes(tmp_path: Path, monkeypatch):
    """The server sent a value's bytes for each of its reads, and read as many, or its client did."""
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    for module in (session, cold_bench, limits_cold):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(LimitsOfColdReads, "needs", lambda *_: [])  # with so little data it can be shown without a cgroup
    request, size = LimitsOfColdReads().request(), 128 * KIB
    settings = replace(request.settings, seconds=1, warmup_seconds=0, disk_reserve_bytes=0, device_probe_seconds=0.2)
    request = replace(request, operations=["cold-read"], sizes_bytes=[size], variants=READS, rounds=1, settings=settings, options={**request.options, "dataset_bytes": 16 << 20},
                      mycnf={"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"}, output=tmp_path / "limits-cold")
    LimitsOfColdReads().report(Console(file=io.StringIO()), session.execute(LimitsOfColdReads(), request, Console(file=io.StringIO())))
    points = open_run(tmp_path / "limits-cold").points
    assert len(points) == len(READS) * len(request.threads)
    for point in points:
        assert 0.99 < point["bytes_sent"] / (point["result"]["total_reads"] * size) < 1.1
        by_server = 1.0 if point["variant"] == "trailers-and-device" else 0.0
        assert by_server - 0.01 < cold_findings.device_share(point) < by_server + 0.2
