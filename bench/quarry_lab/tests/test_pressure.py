"""`pressure`: its plan, what it demands, the rule of its verdicts on synthetic rounds, and a small run in both conditions."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from quarry_lab import memory_cgroup, runner, session
from quarry_lab.cells import Cells
from quarry_lab.experiments import pressure_findings, table_experiment
from quarry_lab.experiments.pressure import Pressure
from quarry_lab.experiments.pressure_findings import FREE, KEPT_MIN, TAKEN
from quarry_lab.plan import all_points
from quarry_lab.pressure_bench import cache_bytes, memory_bytes
from quarry_lab.request import LabError
from quarry_lab.results import open_run
from quarry_lab.server import PLUGIN
from quarry_lab.variants import KIB
from quarry_lab.verdicts import MET, NOT_JUDGED, NOT_MET
from rich.console import Console

PARAMETERS = {"rounds": 3, "settings": {"seconds": 10}}
SIZE = 64 * KIB


@pytest.fixture
def judged(make_point):
    """The verdict of three rounds of one row; `rates` by condition: InnoDB's and QUARRY's. The machine is slower in each later round."""

    def judge(rates, operation="insert", threads=8, variants=("innodb", "quarry"), times_full=7, **changes):
        points = []
        for round_number in (1, 2, 3):
            for condition, pair in rates.items():
                for variant, rate in zip(variants, pair, strict=True):
                    point = make_point(variant, operation, SIZE, threads, round_number, rate=rate / round_number, **changes)
                    points.append({**point, "setting": condition, "times_full": times_full if condition == TAKEN else None})
        cells = Cells(points)
        rows = pressure_findings.rows_of(cells)
        (verdict,) = pressure_findings.verdicts(cells, rows, PARAMETERS)
        return verdict

    return judge


def test_a_ratio_may_fall_by_a_tenth(judged):
    for kept, state in ((KEPT_MIN + 0.01, MET), (KEPT_MIN - 0.01, NOT_MET)):
        verdict = judged({FREE: (1000, 1500), TAKEN: (800, 1200 * kept)})
        assert verdict.state == state and verdict.id == "pressure-insert-64kb-x8"
        assert verdict.figures["kept"]["median"] == pytest.approx(kept) and verdict.figures["ratio_free"]["median"] == pytest.approx(1.5)
        assert f"{kept:.2f} kept" in verdict.reason and "1.50x" in verdict.reason


def test_what_was_never_pressed_is_said(judged):
    assert "the limit was never reached" in judged({FREE: (1000, 1500), TAKEN: (1000, 1500)}, times_full=0).reason
    assert "never reached" not in judged({FREE: (1000, 1500), TAKEN: (1000, 1500)}).reason


def test_one_condition_alone_or_a_noisy_machine_is_not_judged(judged):
    assert judged({FREE: (1000, 1500)}).state == NOT_JUDGED
    assert judged({FREE: (1000, 1500), TAKEN: (800, 1200)}, noisy=True).state == NOT_JUDGED


def test_updates_beside_the_value_are_compared_with_their_own_tables(judged):
    verdict = judged({FREE: (1000, 1000), TAKEN: (900, 720)}, operation="counter", variants=pressure_findings.COUNTER_VARIANTS)
    assert verdict.state == NOT_MET and verdict.figures["kept"]["median"] == pytest.approx(0.8)


def test_the_default_grid_has_every_row_twice_and_blocks_of_one_condition():
    request = Pressure().request()
    found = {(c.operation, c.threads, c.setting) for c in Pressure().cells(request)}
    rows = {("insert", 8), ("insert", 32), ("read", 8), ("mix", 16), ("counter", 8), ("counter", 32)}
    assert found == {(*row, condition) for row in rows for condition in (FREE, TAKEN)}
    assert all(len({p.setting for p in block.points}) == 1 for block in Pressure().plan(request))
    assert Pressure().planned_seconds(request, all_points(Pressure().plan(request))) < 40 * 60
    assert memory_bytes(request) == 4 << 30 and cache_bytes(request) == 1 << 30


def test_without_a_cgroup_nothing_starts(monkeypatch):
    monkeypatch.setattr(memory_cgroup, "reason_against", lambda: "the hierarchy is read-only")
    request = Pressure().request()
    assert [text for text in Pressure().needs(request) if "cgroup" in text and "the hierarchy is read-only" in text]
    with pytest.raises(LabError, match="beside_bytes must be at least"):
        Pressure().needs(replace(request, options={"beside_bytes": 1 << 20}))


@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
@pytest.mark.skipif(memory_cgroup.reason_against() is not None, reason=f"no memory cgroup: {memory_cgroup.reason_against()}")
def test_both_conditions_are_measured(tmp_path: Path, monkeypatch):
    """With little data: the limit holds where memory is taken, and there alone; all else is equal."""
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    for module in (session, table_experiment):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(runner.TableBench, "_condition", lambda *_: None)
    settings = replace(Pressure().request().settings, seconds=1, warmup_seconds=0, disk_reserve_bytes=0, device_probe_seconds=0.2)
    mycnf = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "32M"}
    request = replace(Pressure().request(), operations=["insert"], threads=[8], rounds=1, settings=settings, options={"beside_bytes": 512 << 20}, mycnf=mycnf,
                      plugin=PLUGIN, output=tmp_path / "pressure")
    console = Console(file=io.StringIO(), width=200)
    Pressure().report(console, session.execute(Pressure(), request, Console(file=io.StringIO())))
    found = {(p["variant"], p["setting"]): p for p in open_run(tmp_path / "pressure").points}
    assert set(found) == {(variant, condition) for variant in ("innodb", "quarry") for condition in (FREE, TAKEN)}
    for (_variant, condition), point in found.items():
        assert point["memory_limit_bytes"] == ((64 << 20) + (512 << 20) if condition == TAKEN else None)
        assert (point["times_full"] is None) == (condition == FREE) and point["result"]["total_rows_written"] > 0
        assert point["configuration"]["quarry_cache_size"] == str(256 << 20)
    assert "free and taken" in console.file.getvalue()
    assert not (tmp_path / "data").exists()
