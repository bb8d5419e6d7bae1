"""`pressure`: its plan, what it demands, its rule on synthetic rounds, and one small run in both conditions."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from quarry_lab import cli
from quarry_lab.design.plan import all_points
from quarry_lab.design.request import LabError
from quarry_lab.design.results import open_run
from quarry_lab.experiments import table_experiment
from quarry_lab.experiments.catalogue import EXPERIMENTS
from quarry_lab.experiments.pressure.bench import PressureBench, cache_bytes, memory_bytes
from quarry_lab.experiments.pressure.experiment import BESIDE_BYTES_MIN, Pressure
from quarry_lab.experiments.pressure.findings import CONDITIONS, FREE, TAKEN
from quarry_lab.experiments.targets.experiment import Targets
from quarry_lab.experiments.targets.findings import DURABLE_VALUES, FREE_VALUES, HEADS_ALONE, MEMORY_VALUES, NO_ENGINE
from quarry_lab.run import session
from quarry_lab.servers import memory_cgroup
from quarry_server.server import PLUGIN
from quarry_lab.design.variants import KIB
from rich.console import Console

INNODB_RATE = 1000.0


class Run:
    def __init__(self, points, rounds=3):
        self.points = points
        self.run = {"parameters": {"name": "pressure", "rounds": rounds, "settings": {"seconds": 10}, "payload": "random"}, "sessions": []}


@pytest.fixture
def rounds(make_point):
    """Rounds of one cell of both engines in one condition; a ratio for each round."""

    def build(condition, ratios, operation="insert", threads=32, limit_reached=True, noisy_rounds=()):
        variants = ("innodb-counter", "quarry-counter") if operation == "counter" else ("innodb", "quarry")
        return [make_point(variant, operation, 64 * KIB, threads, number, rate=rate, noisy=number in noisy_rounds)
                | {"setting": condition, "limit_reached": limit_reached if condition == TAKEN else None}
                for number, ratio in enumerate(ratios, start=1) for variant, rate in zip(variants, (INNODB_RATE, INNODB_RATE * ratio), strict=True)]

    return build


def verdict_of(points, row="insert-64kb-x32", **run):
    return next(v for v in Pressure().verdicts(Run(points, **run)) if v.id == f"pressure-{row}")


@pytest.mark.parametrize("taken, state", [((1.81,) * 3, "met"), ((1.79,) * 3, "not met"), ((2.4,) * 3, "met")])
def test_a_ratio_may_fall_by_a_tenth(rounds, taken, state):
    points = [*rounds(FREE, (2.0, 2.0, 2.0)), *rounds(TAKEN, taken)]
    found = verdict_of(points)
    assert found.state == state and found.figures["kept"]["median"] == pytest.approx(taken[0] / 2)
    assert "2.00x (rounds 2.00-2.00) with memory free" in found.reason and "limit" not in found.reason
    assert verdict_of(points, rounds=1).state == "not judged"


def test_what_was_kept_is_taken_round_by_round(rounds):
    # Each round kept 0.95; the medians of the conditions alone would say so of no round's own.
    found = verdict_of([*rounds(FREE, (1.0, 2.0, 4.0)), *rounds(TAKEN, (0.95, 1.9, 3.8))])
    assert found.state == "met" and found.figures["kept"] == pytest.approx({"median": 0.95, "low": 0.95, "high": 0.95, "rounds": 3})
    found = verdict_of([*rounds(FREE, (2.0, 2.0, 2.0)), *rounds(TAKEN, (2.0, 1.7, 1.6))])
    assert found.state == "not met" and found.reason.startswith("0.85 kept (0.80 to 1.00): ")
    # A round that lacks a condition is left out.
    assert verdict_of([*rounds(FREE, (2.0, 2.0)), *rounds(TAKEN, (2.0, 2.0, 1.0))]).figures["kept"]["rounds"] == 2


def test_a_machine_that_was_not_quiet_gets_no_verdict(rounds):
    free = rounds(FREE, (2.0, 2.0, 2.0))
    found = verdict_of([*free, *rounds(TAKEN, (1.0, 1.0, 1.0), noisy_rounds=(1, 2, 3))])
    assert found.state == "not judged" and "was not quiet in 6 of 12 points" in found.reason
    found = verdict_of([*free, *rounds(TAKEN, (1.0, 1.0, 1.0), noisy_rounds=(1,))])
    assert found.state == "not met" and found.reason.endswith("2 of 12 points noisy")


def test_a_limit_that_was_never_reached_is_said(rounds):
    found = verdict_of([*rounds(FREE, (2.0,) * 3), *rounds(TAKEN, (2.0,) * 3, limit_reached=False)])
    assert found.state == "met" and found.reason.endswith("; the limit was never reached")


def test_updates_of_the_counter_have_variants_of_their_own(rounds):
    points = [*rounds(FREE, (1.0,) * 3, "counter", 8), *rounds(TAKEN, (0.8,) * 3, "counter", 8)]
    assert verdict_of(points, "counter-64kb-x8").state == "not met"


def test_what_was_not_measured_is_said_of_every_default_row(rounds):
    for points in ([], rounds(FREE, (2.0,) * 3), [p for p in rounds(TAKEN, (2.0,) * 3) if p["variant"] == "quarry"]):
        found = Pressure().verdicts(Run(points))
        assert [v.id for v in found] == [f"pressure-{row}" for row in ("counter-64kb-x8", "counter-64kb-x32", "insert-64kb-x8", "insert-64kb-x32",
                                                                       "mix-64kb-x16", "read-64kb-x8")]
        assert all(v.state == "not measured" and v.reason for v in found)


def test_tables_and_charts_show_both_conditions(rounds):
    points = [*rounds(FREE, (2.0,) * 3), *rounds(TAKEN, (1.9,) * 3), *rounds(FREE, (1.0,) * 3, "counter", 8)]
    console, figures = Console(width=200, file=io.StringIO(), record=True), Pressure().figures(Run(points))
    Pressure().report(console, Run(points))
    text = console.export_text()
    assert "durable insert 64 KB taken x32" in text and "2.00x (rounds 2.00-2.00)" in text and "0.95 (0.95 to 0.95)" in text and "3/3, 3/3" in text
    assert set(figures) == {"pressure", "throughput"} and len(figures["throughput"].axes) == 2
    assert [text.get_text() for text in figures["pressure"].legends[0].get_texts()] == ["memory free", "memory taken"]
    assert Pressure().figures(Run([])) == {}


def request_of(*arguments):
    return cli.bench_request(EXPERIMENTS["pressure"], cli.build_parser().parse_args(["bench", "--exp", "pressure", *arguments]))


def test_the_rows_are_those_of_the_targets_in_both_conditions():
    request = request_of("--sizes", "24,64", "--ops", "insert,mix")
    cells = Pressure().cells(request)
    rows = [cell for cell in Targets().cells(replace(Targets().request(), operations=["insert", "mix"], sizes_bytes=[24 * KIB, 64 * KIB]))
            if not cell.setting and cell.threads != 1 and cell.variant not in ("quarry-baseline", NO_ENGINE, HEADS_ALONE, *DURABLE_VALUES, FREE_VALUES, MEMORY_VALUES)]
    assert sorted(map(str, cells)) == sorted(str(replace(row, setting=condition)) for row in rows for condition in CONDITIONS)
    # A server of its own for each condition and size, all engines in it.
    for block in Pressure().plan(request):
        assert len({(p.setting, p.size_bytes) for p in block.points}) == 1 and {p.variant for p in block.points} == {"innodb", "quarry"}
    assert Pressure().planned_seconds(Pressure().request(), all_points(Pressure().plan(Pressure().request()))) < 45 * 60


def test_the_command_line_changes_memory_for_all_engines():
    request = request_of("--threads", "8", "--option", f"beside_bytes={1 << 30}", "--mycnf", "innodb_buffer_pool_size=1G", "--engines", "innodb,quarry")
    assert memory_bytes(request) == 2 << 30 and cache_bytes(request) == 512 << 20
    assert {(c.operation, c.variant) for c in Pressure().cells(request)} == {(o, v) for o in ("insert", "read") for v in ("innodb", "quarry")}
    assert memory_bytes(Pressure().request()) == 4 << 30 and cache_bytes(Pressure().request()) == 1 << 30
    with pytest.raises(LabError, match="unknown 'rocksdb'"):
        request_of("--engines", "innodb,rocksdb")


def test_a_missing_cgroup_is_said_before_any_work_starts(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(memory_cgroup, "reason_against", lambda: "the hierarchy is read-only")
    with pytest.raises(LabError, match="a memory cgroup that this user may make in .*the hierarchy is read-only"):
        session.check(Pressure(), replace(Pressure().request(), output=tmp_path))
    with pytest.raises(LabError, match="beside_bytes must be at least"):
        Pressure().needs(request_of("--option", f"beside_bytes={BESIDE_BYTES_MIN - 1}"))


@pytest.mark.nightly
@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
@pytest.mark.skipif(memory_cgroup.reason_against() is not None, reason="no memory cgroup can be made")
def test_nothing_but_the_memory_differs(tmp_path: Path, monkeypatch):
    """With little data: both conditions have the same settings, and the server is in the cgroup where memory is taken."""
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    for module in (session, table_experiment):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    members = {}
    real = PressureBench.begin

    def begin(bench, block):
        real(bench, block)
        members[block.points[0].setting] = (str(bench.server.pid) in (bench.cgroup.path / "cgroup.procs").read_text().split())

    monkeypatch.setattr(PressureBench, "begin", begin)
    request = Pressure().request()
    settings = replace(request.settings, seconds=1, warmup_seconds=0, dataset_bytes=4 << 20, disk_reserve_bytes=0, device_probe_seconds=0.2)
    request = replace(request, operations=["insert", "counter"], threads=[8], rounds=1, settings=settings, options={"beside_bytes": BESIDE_BYTES_MIN},
                      mycnf={"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"}, plugin=PLUGIN, output=tmp_path / "pressure")
    run = session.execute(Pressure(), request, Console(file=io.StringIO()))
    Pressure().report(Console(file=io.StringIO()), run)
    points = open_run(tmp_path / "pressure").points
    assert len(points) == 8 and members == {FREE: False, TAKEN: True} and not (tmp_path / "data").exists()
    (configuration,) = {tuple(point["configuration"].items()) for point in points}
    assert dict(configuration)["innodb_buffer_pool_size"] == str(64 << 20) and dict(configuration)["quarry_cache_size"] == str(BESIDE_BYTES_MIN // 2)
    for point in points:
        assert point["payload"] == "random" and point["result"]["total_rows_written"] > 0
        limit = BESIDE_BYTES_MIN + (64 << 20) if point["setting"] == TAKEN else None
        assert point["memory_limit_bytes"] == limit and (point["limit_reached"] is None) == (limit is None)
    assert {v.reason.split(";")[-1] for v in Pressure().verdicts(run) if "kept" in v.reason} == {" a verdict takes 3 rounds of 10 s"}
