"""The project's targets: their rules on synthetic rounds, and that each operation of theirs does what it says, on a private server."""

import importlib.machinery
import importlib.util
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from quarry_lab import cli, lab_results
from quarry_lab.design.cells import payload_rate
from quarry_lab.design.plan import Point
from quarry_lab.design.profile import BARE, PRODUCTION
from quarry_lab.design.request import Settings
from quarry_lab.design.results import RunDirectory
from quarry_lab.experiments import table_experiment
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.experiments.targets.experiment import Targets
from quarry_lab.experiments.targets.findings import COUNTER_VARIANTS, INSERT_FLOORS, SIZES_KIB, TEXT3
from quarry_lab.load import sysbench
from quarry_lab.load.payload import Payload
from quarry_lab.run.experiment import Context
from quarry_lab.run.progress import RunProgress
from quarry_lab.run.runner import TableBench
from quarry_server.server import PLUGIN, REPOSITORY
from quarry_lab.design.variants import ALL, KIB
from rich.console import Console

SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}
DEVICE_RATE = 1e9
INNODB_RATE = 1000.0


class Run:
    def __init__(self, points, rounds=3, device_rate=DEVICE_RATE, profile=BARE):
        self.points = points
        probe = {"round": 1, "sequential_write_bytes_per_second": device_rate}
        self.run = {"parameters": {"name": "targets", "rounds": rounds, "settings": {"seconds": 10}, "payload": "random", "profile": profile},
                    "sessions": [{"device_probes": [probe]}]}


def verdict_of(points, finding, **run):
    return next(v for v in Targets().verdicts(Run(points, **run)) if v.id == f"targets-{finding}")


def test_without_points_no_target_is_judged():
    found = Targets().verdicts(Run([]))
    assert len({v.id for v in found}) == len(found) == 35
    assert all(v.state == "not measured" and v.reason for v in found)


@pytest.mark.parametrize("profile", [BARE, PRODUCTION])
def test_every_finding_has_its_cells_in_the_default_grid(rounds, profile):
    points = [p for cell in Targets().cells(Targets().request())
              for p in rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, INNODB_RATE, cell.setting)]
    assert all(v.state not in ("not judged", "not measured") or "it was not the limit" in v.reason
               for v in Targets().verdicts(Run(points, profile=profile)))


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


def test_small_values_are_judged_by_their_worst_cell(rounds):
    points = [p for operation in ("insert", "read", "mix") for p in rounds("innodb", operation, 4, 8, INNODB_RATE)]
    good = [p for operation in ("insert", "read") for p in rounds("quarry", operation, 4, 8, INNODB_RATE)]
    assert verdict_of([*points, *good, *rounds("quarry", "mix", 4, 8, 971.0)], "4kb").state == "met"
    worst = verdict_of([*points, *good, *rounds("quarry", "mix", 4, 8, 960.0)], "4kb")
    assert worst.state == "not met" and "0.96x" in worst.reason and "90/10 mix x8, the lowest of 3" in worst.reason


@pytest.mark.parametrize("threads, floor", [(8, 0.85), (32, 0.9)])
def test_inserts_of_64_kb_are_judged_by_their_share_of_blackhole(rounds, threads, floor):
    def state(share):
        both = [*rounds("discarded", "insert", 64, threads, INNODB_RATE), *rounds("quarry", "insert", 64, threads, INNODB_RATE * share)]
        return verdict_of(both, f"production-blackhole-64kb-x{threads}", profile=PRODUCTION).state

    assert (state(floor + 0.01), state(floor - 0.01)) == ("met", "not met")


def test_with_a_binary_log_inserts_are_judged_by_innodb_and_by_blackhole(rounds):
    points = [*rounds("innodb", "insert", 64, 32, INNODB_RATE), *rounds("discarded", "insert", 64, 32, 1450.0)]

    def states(rate):
        measured = [*points, *rounds("quarry", "insert", 64, 32, rate)]
        return [verdict_of(measured, f"production-{name}-64kb-x32", profile=PRODUCTION).state for name in ("insert", "blackhole")]

    assert states(1310.0) == ["met", "met"] and states(1260.0) == ["met", "not met"] and states(1240.0) == ["not met", "not met"]


def test_an_insert_under_a_binary_log_has_blackholes_share_next_to_it(rounds):
    both = [*rounds("innodb", "insert", 448, 1, INNODB_RATE), *rounds("quarry", "insert", 448, 1, 1200.0)]
    alone = verdict_of(both, "production-insert-448kb-x1", profile=PRODUCTION)
    found = verdict_of([*both, *rounds("discarded", "insert", 448, 1, 1500.0)], "production-insert-448kb-x1", profile=PRODUCTION)
    assert alone.state == found.state == "met" and "BLACKHOLE" not in alone.reason
    assert found.reason == f"{alone.reason}; 0.80x (rounds 0.80-0.80) of BLACKHOLE" and found.figures["share_of_blackhole"]["median"] == 0.8
    lacking = verdict_of(rounds("quarry", "insert", 448, 1, 1200.0), "production-insert-448kb-x1", profile=PRODUCTION)
    assert lacking.state == "not measured" and "BLACKHOLE" not in lacking.reason


@pytest.mark.parametrize("name, operation, size_kib, floors", [
    ("insert-24kb", "insert", 24, (1.0, 1.0, 1.2)), ("insert-64kb", "insert", 64, (1.0, 1.0, 1.25)), ("insert-448kb", "insert", 448, (1.1, 1.2, 1.3)),
    ("mix-64kb", "mix", 64, (1.0, 1.1, 1.2)), ("counter", "counter", 64, (1.0, 1.0, 1.1))])
def test_each_target_of_the_production_profile_is_judged_at_its_clients(rounds, name, operation, size_kib, floors):
    suffix = "-counter" if operation == "counter" else ""

    def state(threads, ratio):
        both = [p for engine, rate in (("innodb", INNODB_RATE), ("quarry", INNODB_RATE * ratio))
                for p in rounds(engine + suffix, operation, size_kib, threads, rate)]
        return verdict_of(both, f"production-{name}-x{threads}", profile=PRODUCTION).state

    for threads, floor in zip((1, 8, 32), floors, strict=True):
        assert (state(threads, floor + 0.01), state(threads, floor - 0.01)) == ("met", "not met")


@pytest.mark.parametrize("rate, state, shown", [(998.0, "not met", "0.9980x "), (1002.0, "met", "1.00x "), (980.0, "not met", "0.98x ")])
def test_a_ratio_right_below_its_floor_is_not_shown_as_that_floor(rounds, rate, state, shown):
    points = [*rounds("innodb", "insert", 24, 1, INNODB_RATE), *rounds("quarry", "insert", 24, 1, rate)]
    found = verdict_of(points, "production-insert-24kb-x1", profile=PRODUCTION)
    assert found.state == state and found.reason.startswith(shown)


def test_a_run_that_is_not_finished_has_no_verdict_on_a_cell_with_one_round(rounds):
    points = [p for engine, rate in (("innodb", INNODB_RATE), ("quarry", 2 * INNODB_RATE)) for p in rounds(engine, "insert", 64, 8, rate)]
    assert verdict_of(points, "production-insert-64kb-x8", profile=PRODUCTION).state == "met"
    for kept in ([p for p in points if p["round"] == 1], [p for p in points if p["round"] == 1 or p["variant"] == "innodb"]):
        assert verdict_of(kept, "production-insert-64kb-x8", profile=PRODUCTION).state == "not judged"


def test_one_command_gives_the_production_table_with_ranges_and_a_verdict_each(rounds):
    """What `make bench EXP=targets` prints of a whole run."""
    rates = {"innodb": (900.0, 1000.0, 1100.0), "innodb-counter": (900.0, 1000.0, 1100.0), "discarded": (1200.0, 1300.0, 1400.0)}
    points = []
    for cell in Targets().cells(Targets().request()):
        made = rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, 1.0, cell.setting)
        for point, factor in zip(made, (1.3, 1.1, 1.2), strict=True):
            rate = rates.get(cell.variant, (1000.0 * factor,) * 3)[point["round"] - 1]
            point["result"]["events_per_second"] = rate
            points.append(point)
    console = Console(width=400, file=io.StringIO(), record=True)
    Targets().report(console, Run(points, profile=PRODUCTION))
    text = console.export_text()
    found = Targets().verdicts(Run(points, profile=PRODUCTION))
    assert len(found) == 9 + 3 + 3 + 2 and {verdict.state for verdict in found} == {"met", "not met"}
    for verdict in found:
        (line,) = [line for line in text.splitlines() if verdict.statement in line]
        assert f" {verdict.state} " in line and "x (rounds " in line


@pytest.fixture
def performance(monkeypatch):
    """scripts/performance as a module."""
    scripts = REPOSITORY / "scripts"
    monkeypatch.syspath_prepend(str(scripts))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("performance", str(scripts / "performance"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance", loader))
    monkeypatch.setitem(sys.modules, "performance", module)  # dataclasses look it up
    loader.exec_module(module)
    return module


def test_the_production_table_goes_from_a_run_to_its_place_in_the_pages(rounds, performance, tmp_path):
    """Asked for without other cells: every target is judged, of the run as of its file, and every figure has a row."""
    wanted = ["--ops", "insert,mix,counter", "--sizes", "24,64,448", "--threads", "1,8,32",
              "--engines", "innodb,quarry,discarded,innodb-counter,quarry-counter"]
    request = cli.bench_request(EXPERIMENTS["targets"], cli.build_parser().parse_args(["bench", "--exp", "targets", *wanted]))
    run = RunDirectory(tmp_path / "run", request.identity())
    machine = {"cpu": "a processor", "processors": 2, "file_system": "ext4   rw,relatime", "journal": True, "commit": "abc1234"}
    run.add_session({"started": 1.0, "command": [], "machine": machine})
    for cell in Targets().cells(request):
        for point in rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, INNODB_RATE):
            run.add_point(point)
    run.finish()
    path = lab_results.add(run, tmp_path / "results")
    verdicts = Targets().verdicts(lab_results.read(path))
    assert verdicts == Targets().verdicts(run) and len(verdicts) == 17 and {v.state for v in verdicts} == {"met", "not met"}

    table = performance.taken([json.loads(path.read_text())])
    assert table["machine"] == ("a processor, 2 processors shared by server and clients; ext4 with a journal; a binary log with "
                                "`binlog_format=ROW`, `sync_binlog=1`, `binlog_cache_size=4M`; 3 rounds of 10 s")
    assert len(table["targets"]) == 15 and all("measured" in row["innodb"] for row in table["targets"])
    clients = ("1 client", "8 clients", "32 clients")
    assert [row["work"] for row in table["rows"]] == [
        *(f"durable insert, {n}{over}" for n in clients for over in ("", ", to BLACKHOLE, which stores nothing")),
        *(f"90 % reads and 10 % updates, {n}" for n in clients),
        "bytes written per byte of payload, insert, 8 clients, its binary log included",
        "bytes written by InnoDB, insert, 8 clients, its binary log included",
        *(f"update of an INT next to the value, {n}, `binlog_row_image=MINIMAL`" for n in clients)]
    assert [list(row["kib"]) for row in table["rows"]] == [["24", "64", "448"]] * 6 + [["64"]] * 3 + [["24", "64", "448"]] * 2 + [["64"]] * 3


JUDGED_BY_PERFORMANCE = {"met": "met", "not met": "missed", "not judged": "not judged", "not measured": "not measured"}


@pytest.mark.parametrize("factor, changes, kept", [
    (1.0, {}, {}), (1.15, {}, {}), (1.4, {}, {}), (1.4, {"noisy": True}, {}), (1.4, {"seconds": 9.0}, {}), (1.4, {}, {"round": (1, 2)}),
    (1.4, {}, {"operation": ("insert", "mix")}), (1.15, {}, {"threads": (8,)})])
def test_the_table_of_targets_judges_as_the_lab_does(rounds, performance, factor, changes, kept):
    rates = {"innodb": INNODB_RATE, "innodb-counter": INNODB_RATE, "discarded": 1.3 * INNODB_RATE}
    points = [p for cell in Targets().cells(Targets().request())
              for p in rounds(cell.variant, cell.operation, cell.size_bytes // KIB, cell.threads, rates.get(cell.variant, factor * INNODB_RATE),
                              cell.setting, **changes)
              if all(p[name] in values for name, values in kept.items())]
    verdicts, table = Targets().verdicts(Run(points, profile=PRODUCTION)), performance.target_rows(points)
    shown = [row["innodb"] for row in table] + [row["blackhole"] for row in table if "verdict" in row.get("blackhole", {})]
    assert [(part["verdict"], f"median ratio >= {part['target']}") for part in shown] == [(JUDGED_BY_PERFORMANCE[v.state], v.rule) for v in verdicts]
    figures = [[round(v.figures["ratio"][name], 4) for name in ("median", "low", "high")] if v.figures else None for v in verdicts]
    assert [part.get("measured") for part in shown] == figures and len(figures) == 17


def test_an_update_of_an_int_logs_no_value_of_either_engine():
    assert {ALL[key].session_sql for key in COUNTER_VARIANTS} == {"SET binlog_row_image=MINIMAL"}


@pytest.mark.parametrize("rate, state", [(1060.0, "met"), (1040.0, "not met")])
def test_hot_reads_are_judged_by_innodb(rounds, rate, state):
    assert verdict_of([*rounds("innodb", "read", 64, 8, INNODB_RATE), *rounds("quarry", "read", 64, 8, rate)], "read-64kb").state == state


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
    # Incompressible values of the same size and threads are cells of their own.
    assert verdict_of(points, "insert-64kb-x32").state == "not measured"


@pytest.mark.parametrize("lz4_rate, share, state", [(1600.0, 0.95, "met"), (1400.0, 0.95, "not met"), (1600.0, 0.5, "not measured")])
def test_the_gain_of_lz4_counts_where_the_device_was_the_limit(rounds, lz4_rate, share, state):
    points = [*rounds("quarry-lz4", "insert", 64, 32, lz4_rate, TEXT3), *rounds("quarry", "insert", 64, 32, INNODB_RATE)]
    verdict = verdict_of(points, "lz4-64kb-gain", device_rate=INNODB_RATE * 64 * KIB / share)
    assert verdict.state == state
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
    request = replace(experiment.request(), operations=["update", "mix"], sizes_bytes=[64 * KIB], plugin=tmp_path / "none.so")
    assert {(c.operation, c.variant, c.threads) for c in experiment.cells(request)} == {
        ("update", "quarry", 8), ("update", "quarry", 32), *(("mix", engine, n) for engine in ("innodb", "quarry") for n in (1, 8, 16, 32))}
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
    lab = table_experiment.make_servers([ALL["quarry"]], replace(request, plugin=PLUGIN, mycnf=SMALL))["main"].start()
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
    the_counter_moves_and_the_value_stays(bench, lab)


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
