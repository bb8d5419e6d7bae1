"""Measuring again what was disturbed: what is chosen, what counts afterwards, when it ends."""

import io
from types import SimpleNamespace

import pytest
from quarry_lab.design import repeats
from quarry_lab.design.cells import Cells, throughput
from quarry_lab.design.plan import interleave, table_cells
from quarry_lab.design.request import LabError
from quarry_lab.design.results import RunDirectory, open_run
from quarry_lab.design.variants import ALL, KIB
from quarry_lab.load.sysbench import LateReport
from quarry_lab.report import verdicts
from quarry_lab.report.verdicts import MET, NOT_MET, Finding, judge
from quarry_lab.run import session
from quarry_lab.run.kept_settings import ChangedServer
from quarry_lab.run.progress import RunProgress
from rich.console import Console

PARAMETERS = {"name": "plain", "rounds": 3}
CELLS = table_cells(["insert", "read"], [4 * KIB, 64 * KIB], [8], [ALL["innodb"], ALL["quarry"]])
BLOCKS = interleave(CELLS, rounds=3, seed=1)
APART = interleave(CELLS, rounds=3, seed=1, group=lambda cell: (cell.variant, cell.size_bytes))  # each with a server of its own, as in E5 and `cold`
FINDING = Finding("f", "a statement", "a rule")


class Bench:
    """The first `disturbed` measurements of a point are noisy; each gives a rate one higher than the one before."""

    blocks_stand_alone = False

    def __init__(self, disturbed):
        self.disturbed, self.times, self.begun, self.order = disturbed, {}, [], []

    def begin(self, block):
        self.begun.append(block)

    def end(self, block):
        assert self.begun[-1] is block

    def ended(self):
        return ""

    def measure(self, point):
        times = self.times[point.key] = self.times.get(point.key, 0) + 1
        self.order.append(point)
        return {"result": {"events_per_second": 100.0 + times, "interval_seconds": 10}, "cpu": {"noisy": times <= self.disturbed(point), "seconds": 10}}


@pytest.fixture
def measured(tmp_path):
    """Runs BLOCKS once and then what was disturbed; (bench, run)."""

    def build(disturbed, seconds_max=60.0, reopen=False, comparison=repeats.comparison_of):
        bench, run = Bench(disturbed), RunDirectory(tmp_path / "run", PARAMETERS, reopen=reopen)
        experiment = SimpleNamespace(line=lambda record: "", comparison=comparison)
        left = [p.operation for block in BLOCKS for p in block.points if p.key not in run.done_keys()]
        with RunProgress(Console(file=io.StringIO()), "plain", left, 1.0) as progress:
            context = SimpleNamespace(run=run, progress=progress)
            session.measure_all(bench, context, experiment, BLOCKS)
            session.repeat_noisy(bench, context, experiment, BLOCKS, seconds_max)
        run.finish()
        return bench, run

    return build


def is_one(point):
    return (point.round, point.operation, point.size_bytes, point.variant) == (2, "insert", 64 * KIB, "quarry")


class Late(Bench):
    """The first `late` measurements of one point come too late."""

    def __init__(self, late):
        super().__init__(lambda point: 0)
        self.late = late

    def measure(self, point):
        record = super().measure(point)
        if is_one(point) and self.times[point.key] <= self.late:
            raise LateReport("sysbench printed 1 reports, 2 were expected")
        return record


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_load_that_reported_too_late_is_run_again_at_most_twice(tmp_path, late):
    bench, run = Late(late), RunDirectory(tmp_path / "run", PARAMETERS, reopen=False)
    with RunProgress(Console(file=io.StringIO()), "plain", [p.operation for block in BLOCKS for p in block.points], 1.0) as progress:
        context = SimpleNamespace(run=run, progress=progress)
        if late < session.ATTEMPTS:
            session.measure_all(bench, context, SimpleNamespace(line=lambda record: ""), BLOCKS)
            assert len(run.points) == 24 and len(bench.order) == 24 + late
        else:
            with pytest.raises(LateReport, match="1 reports"):
                session.measure_all(bench, context, SimpleNamespace(line=lambda record: ""), BLOCKS)


class Failing(Bench):
    """Points that `fails` names meet an error. stand_alone: each block has a server of its own."""

    def __init__(self, fails, stand_alone=True, error=LabError):
        super().__init__(lambda point: 0)
        self.fails, self.blocks_stand_alone, self.error, self.left = fails, stand_alone, error, []

    def end(self, block):
        super().end(block)
        self.left.append(block)

    def measure(self, point):
        if self.fails(point):
            raise self.error(f"the server ended during '{point.operation}'")
        return super().measure(point)


@pytest.fixture
def measure(tmp_path):
    """Measures what is left of the blocks with a bench; the run."""

    def build(bench, blocks=BLOCKS):
        run = RunDirectory(tmp_path / "run", PARAMETERS)
        left = [p.operation for block in blocks for p in block.points if p.key not in run.done_keys()]
        with RunProgress(Console(file=io.StringIO()), "plain", left, 1.0) as progress:
            experiment = SimpleNamespace(line=lambda record: "", labels={"innodb": "InnoDB", "quarry": "Quarry"})
            session.measure_all(bench, SimpleNamespace(run=run, progress=progress), experiment, blocks)
        return run

    return build


def test_a_block_that_fails_and_leaves_nothing_keeps_no_other_from_being_measured(measure, tmp_path):
    bench = Failing(is_one)
    with pytest.raises(LabError, match="^1 block failed, and the same command measures what is left: the server ended during 'insert'$"):
        measure(bench)
    assert bench.left == bench.begun and len(bench.begun) == len(BLOCKS)
    kept = open_run(tmp_path / "run")
    assert kept.run["finished"] is None and 24 - 4 <= len(kept.points) < 24
    assert len(measure(Bench(lambda point: 0)).points) == 24


@pytest.mark.parametrize("stand_alone, error", [(False, LabError), (True, ChangedServer)])
def test_an_error_on_a_server_of_all_and_one_that_changed_end_the_run(measure, stand_alone, error):
    bench = Failing(is_one, stand_alone, error)
    with pytest.raises(error, match="^the server ended during 'insert'$"):
        measure(bench)
    failed = bench.begun[-1].points
    assert is_one(failed[sum(point in failed for point in bench.order)]), "nothing was measured behind it"


def test_a_point_during_which_a_server_ended_is_not_kept(measure, tmp_path, monkeypatch):
    """Of two data nodes of NDB one answers for both, at another rate: no client meets an error."""
    bench = Bench(lambda point: 0)
    monkeypatch.setattr(bench, "ended", lambda: "\nthe cluster: data3: does not run" if is_one(bench.order[-1]) else "")
    with pytest.raises(LabError, match="(?s)^Quarry, insert x8: .*ended meanwhile\nthe cluster: data3: does not run$"):
        measure(bench)
    assert is_one(bench.order[-1]) and len(open_run(tmp_path / "run").points) == len(bench.order) - 1


def test_engines_that_fail_one_after_the_other_end_the_run(measure):
    bench = Failing(lambda point: True)
    with pytest.raises(LabError, match=f"^{session.FAILURES_MAX} blocks failed"):
        measure(bench, APART)
    assert len(bench.begun) == session.FAILURES_MAX < len(APART)


def test_an_engine_that_fails_in_each_round_keeps_no_other_from_being_measured(measure, tmp_path):
    """In the last round it comes first here: the same command would meet it first once more, and never get to the others."""
    engine = next(block.group for block in APART if block.round == 3)
    with pytest.raises(LabError, match="^3 blocks failed"):
        measure(Failing(lambda point: (point.variant, point.size_bytes) == engine), APART)
    left = {point.key for block in APART if block.group == engine for point in block.points}
    assert open_run(tmp_path / "run").done_keys() == {point.key for block in APART for point in block.points} - left


def test_a_comparison_is_repeated_as_a_whole_until_it_is_quiet(measured):
    bench, run = measured(lambda point: 2 if is_one(point) else 0)
    again = bench.order[24:]
    assert len(bench.order) == 24 + 2 * 2 and {(p.round, p.operation, p.size_bytes) for p in again} == {(2, "insert", 64 * KIB)}
    assert [{p.variant for p in again[i : i + 2]} for i in (0, 2)] == [{"innodb", "quarry"}] * 2
    # The last one counts, all of them are kept.
    assert len(run.records) == 28 and len(run.points) == 24 and not any(p["cpu"]["noisy"] for p in run.points)
    cells = Cells(run.points)
    (key,) = (k for k in cells.keys() if (k.operation, k.size_bytes) == ("insert", 64 * KIB))
    assert cells.values(key, "quarry", throughput) == {1: 101.0, 2: 103.0, 3: 101.0}
    assert [r.get("repeat") for r in open_run(run.path).records if r["variant"] == "quarry" and r["round"] == 2 and r["operation"] == "insert"
            and r["size_bytes"] == 64 * KIB] == [None, 1, 2]
    said = judge(FINDING, True, "1.5x", {}, cells.rounds_of([key], ["innodb", "quarry"]), PARAMETERS, (MET, NOT_MET))
    assert said.state == verdicts.MET and "2 of 6 points measured again" in said.reason


def test_an_experiment_says_what_is_compared(measured):
    """Here nothing with anything else."""
    bench, _run = measured(lambda point: 1 if is_one(point) else 0, comparison=lambda point: point.key)
    assert len(bench.order) == 24 + 1 and is_one(bench.order[-1])


def test_what_changed_since_a_run_was_broken_off_is_told():
    before = {"cpu": "x", "processors": 2, "memory_bytes": 5, "kernel": "6.1", "sysbench": "1.0", "commit": "abc1234", "file_system": "ext4"}
    assert session.changed_machine(before, {**before, "file_system": "xfs"}) == ""
    assert session.changed_machine(before, {**before, "processors": 8, "commit": "def"}) == "processors 2, now 8; commit abc1234, now def"


def test_a_run_that_is_gone_on_with_says_what_of_its_servers_and_links_changed():
    def described(version, port, by="tc tbf rate 300mbit"):
        return {"machine": {"processors": 2}, "servers": {"main": {"version": version, "pinned": {"port": port}}},
                "links": [{"key": "limited", "by": by}]}

    before = described("11.8.1", "1")
    assert session.changed_session(before, described("11.8.1", "2")) == ""
    assert session.changed_session(before, described("11.8.2", "1")) == "server main: version 11.8.1, now 11.8.2"
    with_arenas = described("11.8.1", "1")
    with_arenas["servers"]["main"]["environment"] = {"MALLOC_ARENA_MAX": "2"}
    assert session.changed_session(with_arenas, before) == "server main: environment.MALLOC_ARENA_MAX 2, now not set"
    assert session.changed_session(before, described("11.8.1", "1", "toxiproxy 2.9.0")) == "link limited: by tc, now by toxiproxy"
    assert session.changed_session({"machine": {}}, {"machine": {}}) == ""


def test_what_is_always_disturbed_is_not_repeated_for_ever(measured):
    bench, run = measured(lambda point: 1000 if is_one(point) else 0)
    assert len(bench.order) == 24 + 2 * repeats.TIMES_MAX
    assert sum(p["cpu"]["noisy"] for p in run.points) == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_shares_a_server_is_repeated_in_a_row(seed):
    records = {point.key: {"cpu": {"noisy": True}} for block in BLOCKS for point in block.points}
    groups = [block.group for block in repeats.blocks_to_repeat(BLOCKS, records, seed)]
    starts = [group for n, group in enumerate(groups) if n == 0 or groups[n - 1] != group]
    assert len(groups) == len(BLOCKS) and sorted(starts) == [4 * KIB, 64 * KIB]


def test_without_time_nothing_is_repeated_and_a_finished_run_is_gone_on_with_later(measured, tmp_path):
    bench, run = measured(lambda point: 1, seconds_max=0.0)
    assert len(bench.order) == 24 and all(p["cpu"]["noisy"] for p in run.points)
    bench, run = measured(lambda point: 0, reopen=True)
    assert len(bench.order) == 24 and {r.get("repeat") for r in run.records} == {None, 1} and len(run.records) == 48
    assert run.run["finished"] and not any(p["cpu"]["noisy"] for p in run.points)
    # But only if it is asked for.
    assert RunDirectory(run.path, PARAMETERS).moved_to
