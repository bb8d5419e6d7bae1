"""The guard between two builds: what it measures, how long, and what it says of made-up rounds."""

import io

import pytest
from quarry_lab import cli, lab
from quarry_lab.design.plan import all_points
from quarry_lab.design.request import LabError
from quarry_lab.experiments.guard import experiment as guard
from quarry_lab.experiments.guard.experiment import ALIKE, CELLS, FASTER, GUARD, SLOWER, conclude, request_of, run
from rich.console import Console
from worlds import Run, points

KIB = 1024


def parsed(*arguments):
    return cli.build_parser().parse_args(["lab", "--scale", "guard", *arguments])


def world(ratios, noisy=()):
    """Of each cell: throughput of the build at hand over the older one's, in each round."""
    made = []
    for operation, size, threads in CELLS:
        name = "quarry-counter" if operation == "counter" else "quarry-default"
        made += points(operation, size * KIB, threads, f"{name}-baseline", 100, noisy=noisy)
        made += points(operation, size * KIB, threads, name, tuple(100 * ratio for ratio in ratios), noisy=noisy)
    return made


def states(rounds):
    return {verdict.state for verdict in GUARD.verdicts(Run(rounds))}


@pytest.mark.parametrize("ratios, state", [
    ((0.9, 0.92, 0.93), SLOWER), ((1.1, 1.2, 1.05), FASTER), ((1.0, 1.0, 1.0), ALIKE), ((0.9, 0.91, 1.01), "not judged"),
    ((1.1, 1.09, 0.99), "not judged"), ((0.98, 0.97, 0.99), ALIKE), ((0.9, 1.0, 1.1), ALIKE)],
    ids=["slower in every round", "faster in every round", "the same", "clearly slower, one round against", "clearly faster, one round against",
         "slower in every round, not clearly", "no median apart"])
def test_a_verdict_takes_all_rounds_and_a_clear_median(ratios, state):
    assert states(world(ratios)) == {state}


def test_what_is_noisy_or_too_short_is_not_judged():
    assert states(world((0.5, 0.5, 0.5), noisy=(1, 2))) == {"not judged"}
    assert states([p for p in world((0.5, 0.5, 0.5)) if p["round"] < 3]) == {"not judged"}
    assert states([]) == {"not measured"}


def test_a_slower_build_fails_and_names_its_cells():
    console = Console(file=io.StringIO())
    slow = [p for p in world((0.8, 0.8, 0.8)) if p["operation"] == "insert"] + [p for p in world((1, 1, 1)) if p["operation"] != "insert"]
    with pytest.raises(LabError, match="slower than the older build in 3 of 12 cells: durable insert 4 KB x8"):
        conclude(GUARD.verdicts(Run(slow)), console)
    conclude(GUARD.verdicts(Run(world((1, 1, 1)))), console)
    assert "in none of 12 cells slower" in console.file.getvalue() and "not judged" not in console.file.getvalue()
    reads = [p for p in world((1, 1, 1)) if p["operation"] == "read"]
    conclude(GUARD.verdicts(Run(reads)), console)
    said = console.file.getvalue()
    assert "in none of 4 cells slower" in said and "not judged: durable insert 4 KB x8; " in said and "hot read" not in said
    with pytest.raises(LabError, match="nothing could be judged"):
        conclude(GUARD.verdicts(Run([])), console)


@pytest.mark.parametrize("again, fails", [((0.98, 1.01, 1.0), False), ((0.9, 0.92, 0.93), True), ((0.9, 0.92, 1.01), True)],
                         ids=["chance", "a loss", "not judged"])
def test_a_cell_that_came_out_slower_is_measured_once_more_which_decides(tmp_path, monkeypatch, again, fails):
    doubted = ("mix", 448, 8)
    looks = []

    def measured(request, experiment, console):
        cells = {(cell.operation, cell.size_bytes // KIB, cell.threads) for cell in experiment.cells(request)}
        looks.append((request.rounds, request.output_directory.name, cells))
        slow, alike = world((0.9, 0.92, 0.93) if len(looks) == 1 else again), world((1, 1, 1))
        return Run([p for p in slow if (p["operation"], p["size_bytes"] // KIB, p["threads"]) == doubted]
                   + [p for p in alike if (p["operation"], p["size_bytes"] // KIB, p["threads"]) in cells - {doubted}])

    monkeypatch.setattr(guard, "run_and_report", measured)
    console = Console(file=io.StringIO(), width=200)
    arguments = parsed("--baseline-plugin", str(tmp_path / "old.so"), "--output", str(tmp_path / "guard"))
    if fails:
        with pytest.raises(LabError, match="slower than the older build in 1 of 12 cells: 90/10 mix 448 KB x8"):
            run(arguments, console)
    else:
        run(arguments, console)
        assert "in none of 12 cells slower" in console.file.getvalue()
    assert looks == [(4, "guard", set(CELLS)), (8, "again", {doubted})]
    assert "1 of 12 cells came out slower: measured once more, with 8 rounds" in console.file.getvalue()


def test_it_is_a_dozen_cells_of_two_builds_in_a_quarter_of_an_hour(tmp_path):
    request = request_of(parsed("--baseline-plugin", str(tmp_path / "old.so")))
    planned = all_points(GUARD.plan(request))
    assert len(CELLS) == 12 and len(planned) == 12 * 2 * request.rounds and request.rounds >= 3
    assert GUARD.planned_seconds(request, planned) <= 900
    by_cell = {}
    for point in planned:
        by_cell.setdefault((point.operation, point.size_bytes, point.threads), set()).add(point.variant.endswith("-baseline"))
    assert set(map(tuple, by_cell.values())) == {(False, True)}


def test_it_asks_for_the_older_build_before_it_starts(tmp_path):
    arguments = parsed("--output", str(tmp_path / "guard"))
    with pytest.raises(LabError, match=r"guard needs an older build.*SCALE=guard BASE="):
        lab.run(arguments, Console(file=io.StringIO()))
    assert not (tmp_path / "guard").exists()
    with pytest.raises(LabError, match="old.so"):
        run(parsed("--baseline-plugin", str(tmp_path / "old.so"), "--output", str(tmp_path / "guard")), Console(file=io.StringIO()))


def test_its_plan_is_shown_without_measuring(tmp_path):
    console = Console(file=io.StringIO())
    lab.run(parsed("--dry-run", "--output", str(tmp_path / "guard")), console)
    assert "96 points, about 14 min" in console.file.getvalue() and not (tmp_path / "guard").exists()
