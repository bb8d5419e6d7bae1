"""The project's targets: their rules on synthetic rounds, and that each operation of theirs does what it says, on a private server."""

import io
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from quarry_lab import cli
from quarry_lab.design.cells import payload_rate
from quarry_lab.design.plan import Point
from quarry_lab.design.request import LabError, Settings
from quarry_lab.design.results import RunDirectory
from quarry_lab.experiments import table_experiment
from quarry_lab.experiments.catalogue import EXPERIMENTS
from quarry_lab.experiments.targets.experiment import Targets
from quarry_lab.experiments.targets.findings import (
    COMPRESSED_VALUES, DURABLE_VALUES, FREE_VALUES, HEADED_VALUES, HEADS_ALONE, INSERT_FLOORS, MEMORY_VALUES, NO_ENGINE, NO_TABLE, SIZES_KIB, TEXT3)
from quarry_lab.load import server_functions, sysbench
from quarry_lab.load.ordered_commits import GROWING, WRITTEN, Commits
from quarry_lab.load.payload import Payload
from quarry_lab.probes import device
from quarry_lab.run.experiment import Context
from quarry_lab.run.progress import RunProgress
from quarry_lab.run.runner import TableBench
from quarry_server.server import PLUGIN
from quarry_lab.design.variants import ALL, KIB
from rich.console import Console

SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}
DEVICE_RATE = 1e9
INNODB_RATE = 1000.0


class Run:
    def __init__(self, points, rounds=3, device_rate=DEVICE_RATE, ordered=None):
        self.points = points
        probe = {"round": 1, "sequential_write_bytes_per_second": device_rate} | ({"ordered_commits": ordered} if ordered else {})
        self.run = {"parameters": {"name": "targets", "rounds": rounds, "settings": {"seconds": 10}, "payload": "random"},
                    "sessions": [{"device_probes": [probe]}]}


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


def verdict_of(points, finding, **run):
    return next(v for v in Targets().verdicts(Run(points, **run)) if v.id == f"targets-{finding}")


def test_without_points_no_target_is_judged():
    found = Targets().verdicts(Run([]))
    assert len({v.id for v in found}) == len(found) == 38
    assert all(v.state == "not measured" and v.reason for v in found)


def test_every_finding_has_its_cells_in_the_default_grid(rounds):
    points = [p for cell in Targets().cells(Targets().request())
              for p in rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, INNODB_RATE, cell.setting)]
    assert all(v.state not in ("not judged", "not measured") or "it was not the limit" in v.reason for v in Targets().verdicts(Run(points)))


@pytest.mark.parametrize("threads, size_kib, floor", [(t, s, f) for t, floors in INSERT_FLOORS.items() for s, f in floors.items()])
def test_insert_is_judged_by_the_ratio_to_innodb(rounds, threads, size_kib, floor):
    def state(ratio, **run):
        both = [*rounds("innodb", "insert", size_kib, threads, INNODB_RATE), *rounds("quarry", "insert", size_kib, threads, INNODB_RATE * ratio)]
        return verdict_of(both, f"insert-{size_kib}kb-x{threads}", device_rate=1e12, **run).state

    assert (state(floor + 0.01), state(floor - 0.01), state(floor + 0.01, rounds=1)) == ("met", "not met", "not judged")


def test_the_largest_insert_may_reach_the_device_instead(rounds):
    points = [*rounds("innodb", "insert", 448, 32, INNODB_RATE), *rounds("quarry", "insert", 448, 32, 1500.0)]
    taken = 1500 * 448 * KIB
    assert verdict_of(points, "insert-448kb-x32", device_rate=taken / 0.91).state == "met"
    assert verdict_of(points, "insert-448kb-x32", device_rate=taken / 0.89).state == "not met"
    # Only there.
    points = [*rounds("innodb", "insert", 448, 8, INNODB_RATE), *rounds("quarry", "insert", 448, 8, 1500.0)]
    assert verdict_of(points, "insert-448kb-x8", device_rate=taken).state == "not met"


def commits(threads, rate, file=WRITTEN, gather=False, size_kib=64, values_alone=False):
    return asdict(Commits(threads, size_kib * KIB, file, gather, rate, values_alone))


def test_inserts_stand_beside_what_the_sql_layer_and_two_durable_writes_allow(rounds):
    both = [*rounds("innodb", "insert", 64, 1, INNODB_RATE), *rounds("quarry", "insert", 64, 1, 900.0)]
    probe = [commits(1, 1250.0), commits(1, 2000.0, size_kib=24), commits(8, 9999.0)]
    found = verdict_of(both, "insert-64kb-x1", ordered=probe)
    assert found.state == "not met" and "two durable writes at once of the device alone 1,250/s, 1.25x InnoDB, of which this is 72%" in found.reason
    assert found.figures["limit_per_second"] == pytest.approx(1250) and found.figures["share_of_limit"] == pytest.approx(0.72)
    assert "alone" not in verdict_of(both, "insert-64kb-x1").reason, "a run of before has neither"
    with_layer = verdict_of([*both, *rounds(NO_ENGINE, "insert", 64, 1, 5000.0)], "insert-64kb-x1", ordered=probe)
    assert "the SQL layer alone 5,000/s, two durable writes at once of the device alone 1,250/s: together 1,000/s, 1.00x InnoDB, of which this is 90%" in with_layer.reason


def test_a_lone_clients_yardstick_is_its_row_and_then_its_value(rounds):
    both = [*rounds("innodb", "insert", 64, 1, INNODB_RATE), *rounds("quarry", "insert", 64, 1, 900.0)]
    rows = rounds(HEADS_ALONE, "insert", 64, 1, 2000.0)
    probe = [commits(1, 1250.0), commits(1, 3000.0, values_alone=True), commits(1, 1800.0, GROWING, values_alone=True)]
    found = verdict_of([*both, *rounds(NO_ENGINE, "insert", 64, 1, 5000.0), *rows], "insert-64kb-x1", ordered=probe)
    assert "together 1,000/s, 1.00x InnoDB, of which this is 90%" in found.reason, "the SQL layer and the device, one after the other"
    assert "a row without its value and then a value where the file grows, each as fast as alone 947/s, 0.95x InnoDB, of which this is 95%" in found.reason
    assert found.figures["share_of_limit"] == pytest.approx(0.9) and found.figures["share_of_one_by_one"] == pytest.approx(0.95)


def test_with_many_clients_rows_without_values_may_be_the_scarcest(rounds):
    eight = [*rounds("innodb", "insert", 64, 8, INNODB_RATE), *rounds("quarry", "insert", 64, 8, 900.0), *rounds(NO_ENGINE, "insert", 64, 8, 1800.0)]
    probe = [commits(8, 1600.0), commits(8, 1e6, values_alone=True), commits(8, 6000.0, GROWING, values_alone=True)]
    found = verdict_of([*eight, *rounds(HEADS_ALONE, "insert", 64, 8, 1500.0)], "insert-64kb-x8", ordered=probe)
    assert "at most 1,500/s, 1.50x InnoDB, of which this is 60%" in found.reason, "values without a log are no limit of commits"
    assert "each as fast as alone 1,200/s, 1.20x InnoDB, of which this is 75%" in found.reason


def test_with_many_clients_the_scarcer_of_both_is_the_limit(rounds):
    eight = [*rounds("innodb", "insert", 64, 8, INNODB_RATE), *rounds("quarry", "insert", 64, 8, 900.0)]
    capped = verdict_of([*eight, *rounds(NO_ENGINE, "insert", 64, 8, 1800.0)], "insert-64kb-x8", ordered=[commits(1, 10.0)])
    assert "the SQL layer alone 1,800/s, 1.80x InnoDB, of which this is 50%" in capped.reason
    probe = [commits(8, 1000.0), commits(8, 1200.0, gather=True), commits(8, 750.0, GROWING), commits(8, 700.0, GROWING, gather=True)]
    found = verdict_of([*eight, *rounds(NO_ENGINE, "insert", 64, 8, 1800.0)], "insert-64kb-x8", ordered=probe)
    assert "device alone 1,200/s: at most 1,200/s, 1.20x InnoDB, of which this is 75%; the two writes where the values' file grows 750/s, 0.75x InnoDB, of which this is 120%" in found.reason
    assert found.figures["share_of_growing"] == pytest.approx(1.2)
    layer = verdict_of([*eight, *rounds(NO_ENGINE, "insert", 64, 8, 1100.0)], "insert-64kb-x8", ordered=probe)
    assert "at most 1,100/s" in layer.reason


def test_inserts_stand_beside_rows_whose_values_nobody_waits_for(rounds):
    both = [*rounds("innodb", "insert", 64, 8, INNODB_RATE), *rounds("quarry", "insert", 64, 8, 1400.0)]
    assert "nobody waiting" not in verdict_of(both, "insert-64kb-x8").reason
    growing, headed, written = (rounds(variant, "insert", 64, 8, rate) for variant, rate in zip(DURABLE_VALUES, (1500.0, 1400.0, 2000.0), strict=True))
    found = verdict_of([*both, *growing, *headed, *written], "insert-64kb-x8")
    assert "beside them where their file grows, nobody waiting, 1,500/s, 1.50x InnoDB, of which this is 93%" in found.reason
    assert "beside them behind headers where their file grows, nobody waiting, 1,400/s, 1.40x InnoDB, of which this is 100%" in found.reason
    assert "beside them in space written before, nobody waiting, 2,000/s, 2.00x InnoDB, of which this is 70%" in found.reason
    assert found.figures["share_of_grown"] == pytest.approx(14 / 15) and found.figures["overwritten_per_second"] == pytest.approx(2000)
    assert "limit_per_second" not in found.figures, "an arrangement is no limit of all"
    assert "of which" not in verdict_of([*rounds("quarry", "insert", 64, 8, 1400.0), *growing], "insert-64kb-x8").reason


def test_small_values_are_judged_by_their_worst_cell(rounds):
    points = [p for operation in ("insert", "read", "mix") for p in rounds("innodb", operation, 4, 8, INNODB_RATE)]
    good = [p for operation in ("insert", "read") for p in rounds("quarry", operation, 4, 8, INNODB_RATE)]
    assert verdict_of([*points, *good, *rounds("quarry", "mix", 4, 8, 971.0)], "4kb").state == "met"
    worst = verdict_of([*points, *good, *rounds("quarry", "mix", 4, 8, 960.0)], "4kb")
    assert worst.state == "not met" and "0.96x" in worst.reason and "90/10 mix x8, the lowest of 3" in worst.reason


@pytest.mark.parametrize("rate, states", [(1060.0, ("met", "met")), (1040.0, ("not met", "not met")), (1055.0, ("met", "not met"))])
def test_hot_reads_are_judged_by_innodb_and_by_the_sql_layer(rounds, rate, states):
    points = [*rounds("innodb", "read", 64, 8, INNODB_RATE), *rounds("quarry", "read", 64, 8, rate), *rounds(NO_TABLE, "constant", 64, 8, 1056.0 / 0.9)]
    read, constant = verdict_of(points, "read-64kb"), verdict_of(points, "constant-64kb")
    assert (read.state, constant.state) == states
    assert "1,173/s, 1.17x InnoDB, of which this is" in read.reason and read.figures["share_of_limit"] == pytest.approx(rate * 0.9 / 1056)
    assert "InnoDB's read 0.85x" in constant.reason and constant.figures["innodb"]["median"] == pytest.approx(900 / 1056)


def test_reads_and_the_mix_stand_beside_values_that_cost_nothing(rounds):
    read = [*rounds("innodb", "read", 64, 8, INNODB_RATE), *rounds("quarry", "read", 64, 8, 1000.0), *rounds(NO_TABLE, "constant", 64, 8, 2000.0),
            *rounds(FREE_VALUES, "read", 64, 8, 1250.0)]
    assert "at most 1,250/s, 1.25x InnoDB, of which this is 80%" in verdict_of(read, "read-64kb").reason
    constant = verdict_of(read, "constant-64kb")
    assert "no engine with its rows there can beat, 0.62x" in constant.reason and constant.figures["free_values"]["median"] == pytest.approx(0.625)
    mix = [*rounds("innodb", "mix", 64, 16, INNODB_RATE), *rounds("quarry", "mix", 64, 16, 1100.0)]
    assert "of which" not in verdict_of(mix, "mix-64kb").reason
    found = verdict_of([*mix, *rounds(FREE_VALUES, "mix", 64, 16, 1375.0)], "mix-64kb")
    assert "a constant for each value 1,375/s, 1.38x InnoDB, of which this is 80%" in found.reason and found.figures["share_of_limit"] == pytest.approx(0.8)


def test_reads_and_the_mix_stand_beside_values_from_memory_that_are_made_durable(rounds):
    for operation, threads, words in (("read", 8, "values from memory 1,200/s"), ("mix", 16, "made durable beside them, nobody waiting, 1,200/s")):
        both = [*rounds("innodb", operation, 64, threads, INNODB_RATE), *rounds("quarry", operation, 64, threads, 1080.0)]
        found = verdict_of([*both, *rounds(FREE_VALUES, operation, 64, threads, 1350.0), *rounds(MEMORY_VALUES, operation, 64, threads, 1200.0)], f"{operation}-64kb")
        assert f"{words}: at most 1,200/s, 1.20x InnoDB, of which this is 90%" in found.reason and found.figures["share_of_limit"] == pytest.approx(0.9)


def test_bytes_written_stand_beside_the_least_there_can_be(rounds):
    ours, rows = rounds("quarry", "insert", 64, 8, 100.0), rounds(HEADS_ALONE, "insert", 64, 8, 300.0)
    headed = rounds(HEADED_VALUES, "insert", 64, 8, 200.0)
    for points, ratio in ((ours, 1.07), (rows, 0.06), (headed, 1.065)):
        for point in points:
            point["written"]["server_bytes_per_payload_byte"] = ratio
    found = verdict_of([*ours, *rows], "written-insert-64kb")
    assert found.state == "not met" and "0.060 of the rows without their values, so 1.060 is the least" in found.reason
    assert "behind headers" not in found.reason
    assert verdict_of([*ours, *rows, *headed], "written-insert-64kb").reason.endswith("nobody waiting for their groups, come to 1.065")
    assert "the least" not in verdict_of(ours, "written-insert-64kb").reason


def test_the_mix_at_its_threads_and_updates_beside_the_value(rounds):
    mix = [*rounds("innodb", "mix", 64, 16, INNODB_RATE), *rounds("quarry", "mix", 64, 16, 1410.0)]
    assert verdict_of(mix, "mix-64kb").state == "met" and verdict_of(mix, "mix-24kb").state == "not measured"
    counter = [*rounds("innodb-counter", "counter", 64, 8, INNODB_RATE), *rounds("quarry-counter", "counter", 64, 8, 990.0)]
    assert verdict_of(counter, "counter").state == "not met"


@pytest.mark.parametrize("operation, most", [("insert", 1.05), ("update", 1.6)])
def test_bytes_written_are_judged_at_eight_threads_and_more(rounds, operation, most):
    few = rounds("quarry", operation, 64, 1, 100.0, ratio=2.2)
    assert verdict_of(few, f"written-{operation}-64kb").state == "not measured"
    assert operation == "update" or verdict_of(few, "written-insert-64kb-x1").state == "not met"
    good = [*few, *rounds("quarry", operation, 64, 8, 100.0, ratio=most)]
    assert verdict_of(good, f"written-{operation}-64kb").state == "met"
    worst = verdict_of([*good, *rounds("quarry", operation, 64, 32, 100.0, ratio=most + 0.01)], f"written-{operation}-64kb")
    assert worst.state == "not met" and worst.reason.endswith("at x32")


def test_compressed_inserts_are_judged_against_both_rivals(rounds):
    points = [*rounds("quarry-lz4", "insert", 64, 32, 2100.0, TEXT3), *rounds("innodb-page-compressed", "insert", 64, 32, INNODB_RATE, TEXT3),
              *rounds("rocksdb", "insert", 64, 32, 1100.0, TEXT3)]
    pages = verdict_of(points, "lz4-64kb-innodb-page-compressed")
    assert pages.state == "met" and "pages compressed with zlib" in pages.reason
    assert verdict_of(points, "lz4-64kb-rocksdb").state == "not met"
    assert "nobody waiting" not in pages.reason
    limit = rounds(COMPRESSED_VALUES, "insert", 64, 32, 2200.0, TEXT3)
    for over, ratio in (("innodb-page-compressed", "2.20x"), ("rocksdb", "2.00x")):
        beside = verdict_of([*points, *limit], f"lz4-64kb-{over}")
        assert f"compressed by lz4 and made durable beside them, nobody waiting, {ratio} (rounds " in beside.reason and "of which this is 95%" in beside.reason
        assert beside.figures["share_of_compressed"] == pytest.approx(21 / 22)
    # Incompressible values of the same size and threads are cells of their own.
    assert verdict_of(points, "insert-64kb-x32").state == "not measured"


@pytest.mark.parametrize("lz4_rate, share, state", [(1600.0, 0.95, "met"), (1400.0, 0.95, "not met"), (1600.0, 0.5, "not measured")])
def test_the_gain_of_lz4_counts_where_the_device_was_the_limit(rounds, lz4_rate, share, state):
    points = [*rounds("quarry-lz4", "insert", 64, 32, lz4_rate, TEXT3), *rounds("quarry", "insert", 64, 32, INNODB_RATE)]
    verdict = verdict_of(points, "lz4-64kb-gain", device_rate=INNODB_RATE * 64 * KIB / share)
    assert verdict.state == state
    beside = verdict_of([*points, *rounds(COMPRESSED_VALUES, "insert", 64, 32, 1800.0, TEXT3)], "lz4-64kb-gain", device_rate=INNODB_RATE * 64 * KIB / share)
    assert beside.state == state and f"nobody waiting, 1.80x (rounds 1.80-1.80), of which this is {lz4_rate / 1800:.0%}" in beside.reason
    # One processor throughout: as many bytes per core as per second.
    assert verdict.figures["gigabytes_per_core_second"]["median"] == pytest.approx(lz4_rate * 64 * KIB / 1e9)


def test_tables_and_charts_keep_the_payloads_apart(rounds):
    points = [*rounds("quarry-lz4", "insert", 64, 32, 1600.0, TEXT3), *rounds("quarry", "insert", 64, 32, INNODB_RATE),
              *rounds("innodb", "insert", 64, 32, INNODB_RATE)]
    for point in points:
        point["memory_free_before"] = {"MemAvailable": 1 << 30}
    run, console = Run(points), Console(width=200, file=io.StringIO(), record=True)
    Targets().report(console, run)
    text = console.export_text()
    assert "durable insert 64 KB text3 x32" in text and "durable insert 64 KB x32" in text and "GB/s per core" in text
    assert {"insert", "bytes-written"} == set(Targets().figures(run))


def test_parts_of_the_grid_and_its_own_payloads(tmp_path: Path):
    experiment = Targets()
    request = replace(experiment.request(), operations=["update", "constant"], sizes_bytes=[64 * KIB], plugin=tmp_path / "none.so")
    assert {(c.operation, c.variant, c.threads) for c in experiment.cells(request)} == {
        ("update", "quarry", 8), ("update", "quarry", 32), ("constant", NO_TABLE, 8)}
    assert any("no --payload" in missing for missing in experiment.needs(replace(request, payload=TEXT3)))
    assert not any("no --payload" in missing for missing in experiment.needs(request))
    assert {c.size_bytes // KIB for c in experiment.cells(experiment.request()) if c.setting == TEXT3} == set(SIZES_KIB)


def test_a_look_is_asked_for_by_its_scale():
    arguments = cli.build_parser().parse_args(["bench", "--exp", "targets", "--scale", "quick", "--sizes", "64"])
    request = cli.bench_request(EXPERIMENTS["targets"], arguments)
    assert (request.scale, request.rounds, request.settings.seconds, request.sizes_bytes) == ("quick", 1, 3, [64 * KIB])
    assert 0 < len(Targets().cells(request)) < len(Targets().cells(Targets().request()))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch):
    """A bench of tiny datasets on a private server, without a measuring run around it."""
    experiment, settings = Targets(), Settings(seconds=1, warmup_seconds=0, dataset_bytes=4 << 20, disk_reserve_bytes=0)
    request = replace(experiment.request(), settings=settings)
    run = RunDirectory(tmp_path / "run", experiment.identity(request))
    monkeypatch.setattr(table_experiment, "DATA", tmp_path)
    lab = table_experiment.make_servers([ALL["quarry"], ALL[NO_ENGINE]], replace(request, plugin=PLUGIN, mycnf=SMALL))["main"].start()
    try:
        with Payload("random", 4 << 20) as random, Payload(TEXT3, 4 << 20) as text, RunProgress(Console(file=io.StringIO()), "t", [], 0) as progress:
            yield TableBench(Context(request, run, progress), {"main": lab}, {"random": random, TEXT3: text})
    finally:
        lab.close()


SIZE, THREADS = 64 * KIB, 2


@pytest.mark.nightly
@pytest.mark.skipif(not PLUGIN.exists(), reason=f"no plugin at {PLUGIN} (make plugin)")
def test_each_operation_does_what_it_says(bench):
    lab = bench.servers["main"]
    updates_are_steady_gc_is_counted_and_the_payload_is_the_settings(bench, lab)
    the_constant_is_sent_whole_and_no_engine_is_asked(bench, lab)
    the_counter_moves_and_the_value_stays(bench, lab)
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
    assert lab.rows(f"SELECT MIN(LENGTH(data)), MAX(LENGTH(data)) FROM {schema}.sbtest1") == [(320, 320)]


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


@pytest.mark.skipif(not PLUGIN.exists(), reason=f"no plugin at {PLUGIN} (make plugin)")
def test_a_value_that_is_not_in_memory_fails_its_statement(bench):
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
    lab.status = (lambda honest: lambda pattern: {"bytes_sent": "1"} if pattern == "Bytes_sent" else honest(pattern))(lab.status)
    with pytest.raises(LabError, match=r"of \d+ 0 bytes were sent"):
        bench.measure(Point(1, "read", SIZE, THREADS, MEMORY_VALUES))


@pytest.mark.skipif(not PLUGIN.exists(), reason=f"no plugin at {PLUGIN} (make plugin)")
def test_a_value_that_cannot_be_made_durable_fails_its_statement(bench):
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
    lab.rows = lambda sql: [(1,)] if "durable_write_end" in sql else honest(sql)
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
    assert rows * 320 < record["written"]["server_bytes"] < rows * SIZE / 2


def values_that_cost_nothing_are_sent_whole_and_their_rows_read(bench, lab):
    def counted(name):
        return int(lab.status(name)[name.lower()])

    sent, looked_up = counted("Bytes_sent"), counted("Handler_read_key")
    result = bench.measure(Point(1, "read", SIZE, THREADS, FREE_VALUES))["result"]
    assert result["reads"] > 1000 and counted("Handler_read_key") - looked_up >= result["reads"]
    assert 1 <= (counted("Bytes_sent") - sent) / (result["reads"] * SIZE) < 1.1
    bench.measure(Point(1, "mix", SIZE, THREADS, FREE_VALUES))
    schema = lab.datasets[(FREE_VALUES, SIZE, "")]
    assert lab.rows(f"SELECT MIN(LENGTH(data)), MAX(LENGTH(data)) FROM {schema}.sbtest1") == [(320, 320)]


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


def the_counter_moves_and_the_value_stays(bench, lab):
    record = bench.measure(Point(1, "counter", SIZE, THREADS, "quarry-counter"))
    assert record["payload"] == "random" and record["written"]["server_bytes_per_payload_byte"] is None
    assert payload_rate({**record, "operation": "counter", "size_bytes": SIZE}) == 0
    schema = lab.datasets[("quarry-counter", SIZE, "")]
    values = lab.rows(f"SELECT id, MD5(data) FROM {schema}.sbtest1 ORDER BY id")
    load = sysbench.Load("counter", schema, SIZE, THREADS, **lab.login, rows=len(values), warmup_seconds=0, seconds=1)
    counted = record["result"]["total_rows_written"] + sysbench.run(load, bench.payload).total_rows_written
    assert lab.rows(f"SELECT SUM(counter), MIN(LENGTH(data)) FROM {schema}.sbtest1") == [(counted, SIZE)] and counted > len(values)
    assert lab.rows(f"SELECT id, MD5(data) FROM {schema}.sbtest1 ORDER BY id") == values


def updates_are_steady_gc_is_counted_and_the_payload_is_the_settings(bench, lab):
    interval = lab.variables()["quarry_gc_interval"]
    record = bench.measure(Point(1, "update", SIZE, THREADS, "quarry-lz4", TEXT3))
    result, status, written = record["result"], record["quarry_status"], record["payload_bytes_written"]
    assert result["reads"] == 0 and written == result["total_rows_written"] * SIZE > 0
    assert status["quarry_gc_passes"] >= 1 and status["quarry_gc_reclaimed_bytes"] > 0 and status["quarry_gc_requests_done"] == 1
    assert lab.variables()["quarry_gc_interval"] == interval != "1"
    # About 3:1, and a compressed value takes whole blocks.
    assert record["payload"] == TEXT3 and 0.3 < status["quarry_stored_bytes_appended"] / written < 0.5
    # How much GC copies, beside what was appended, depends on how many passes find time.
    assert status["quarry_stored_bytes_appended"] < record["written"]["server_bytes"] < 3 * written
