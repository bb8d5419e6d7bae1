"""
guard: `make lab SCALE=guard BASE=old.so`, two builds of the plugin in a quarter of an hour, over the dozen cells that matter.

A cell of each operation and size that a change of the engine is likely to meet. Both builds are measured in each round, in random order. A round is
short, so a verdict needs all of them to point one way and the median to be clear. Of a dozen cells chance alone gives that to one now and then, so cells
that come out slower are measured once more, with twice the rounds, which decide. It guards against a loss, it does not measure one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.table import Table

from ...design.cells import CellKey, Cells, throughput
from ...design.plan import Cell, Point, all_points
from ...design.request import BENCH_OUTPUT, LabError, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import BASELINE_SUFFIX, KIB
from ...report import stats
from ...report.stats import Summary
from ...report.verdicts import NOISY_SHARE_MAX, NOT_JUDGED, Finding, Verdict, figures_of, not_measured
from ...run.command import apply_options, run_and_report
from ...run.tables import head
from ..table_experiment import TableExperiment

SLOWER, FASTER, ALIKE = JUDGED = "slower", "faster", "alike"
CLEAR = 0.04  # of the median ratio, from which on rounds that agree make a verdict
ROUNDS_MIN = 3
PLAIN, COUNTER = "quarry-default", "quarry-counter"
# (operation, KB, client threads)
CELLS = (("insert", 4, 8), ("insert", 64, 8), ("insert", 448, 8), ("read", 4, 8), ("read", 64, 1), ("read", 64, 8), ("read", 448, 8),
         ("mix", 4, 32), ("mix", 64, 32), ("mix", 448, 8), ("update", 64, 8), ("counter", 64, 8))


@dataclass(frozen=True)
class Compared:
    """One cell. ratio: throughput of the new build over the old one's, round by round."""

    key: CellKey
    state: str
    ratio: Summary
    old: Summary
    new: Summary
    noisy: int


def state_of(ratio: Summary, noisy: int, points: int) -> str:
    """slower, faster: in every round, and clearly by the median. A clear median with a round against it tells nothing: least of all that they are alike."""
    if ratio.rounds < ROUNDS_MIN or noisy > points * NOISY_SHARE_MAX:
        return NOT_JUDGED
    if 1 - CLEAR < ratio.median < 1 + CLEAR:
        return ALIKE
    if ratio.high < 1:
        return SLOWER
    return FASTER if ratio.low > 1 else NOT_JUDGED


def compared(cells: Cells) -> list[Compared]:
    made = []
    for key in cells.keys():
        name = COUNTER if key.operation == "counter" else PLAIN
        ratio = cells.ratio(key, name, name + BASELINE_SUFFIX)
        old, new = cells.summary(key, name + BASELINE_SUFFIX, throughput), cells.summary(key, name, throughput)
        if ratio and old and new:
            noisy = cells.noisy_rounds(key, name) + cells.noisy_rounds(key, name + BASELINE_SUFFIX)
            made.append(Compared(key, state_of(ratio, noisy, old.rounds + new.rounds), ratio, old, new, noisy))
    return made


class Guard(TableExperiment):
    name = "guard"
    title = "guard: the build at hand against an older one"
    reference = PLAIN + BASELINE_SUFFIX

    def __init__(self, measured: tuple[tuple[str, int, int], ...] = CELLS) -> None:
        self._measured = measured

    def default_request(self) -> Request:
        operations, sizes, threads = ({cell[n]: None for cell in CELLS} for n in range(3))
        names = [name + suffix for name in (PLAIN, COUNTER) for suffix in (BASELINE_SUFFIX, "")]
        settings = Settings(seconds=4, warmup_seconds=1, dataset_bytes=128 << 20, device_probe_seconds=0)
        return Request(self.name, list(operations), [size * KIB for size in sizes], list(threads), names, rounds=4, settings=settings,
                       mycnf={"innodb_buffer_pool_size": "1G"})

    def cells(self, request: Request) -> list[Cell]:
        names = {operation: COUNTER if operation == "counter" else PLAIN for operation, _size, _threads in CELLS}
        return [Cell(operation, names[operation] + suffix, size * KIB, threads) for operation, size, threads in self._measured
                for suffix in (BASELINE_SUFFIX, "")]

    def needs(self, request: Request) -> list[str]:
        if request.baseline_plugin is None:
            return ["an older build of the plugin to compare with: make lab SCALE=guard BASE=old/ha_quarry.so (--baseline-plugin)"]
        return super().needs(request)

    def seconds_of(self, request: Request, point: Point) -> float:
        """Loads, too: those of a guard are small. A table that is updated is written over before."""
        twice = 2 if point.operation == "update" else 1
        return twice * (request.settings.seconds + request.settings.warmup_seconds + 3)

    def seconds_around(self, request: Request) -> float:
        return 60

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        found = {each.key: each for each in compared(self.cells_of(run))}
        made = []
        for operation, size, threads in self._measured:
            key = CellKey(operation, size * KIB, threads)
            rule = f"slower or faster: in every round, and by {CLEAR:.0%} at the median; alike: less at the median"
            finding = Finding(f"guard-{operation}-{size}kb-x{threads}", head(key), rule)
            one = found.get(key)
            made.append(_verdict(finding, one) if one else not_measured(finding, "not both builds there"))
        return made

    def tables(self, run: RunDirectory) -> list[Table]:
        table = Table(title="events a second: the older build, the build at hand, and their ratio round by round", box=box.SIMPLE_HEAD,
                      header_style="bold")
        for heading in ("", "older", "at hand", "ratio", "rounds", "noisy", "verdict"):
            table.add_column(heading, justify="right" if heading not in ("", "verdict") else "left")
        for each in compared(self.cells_of(run)):
            rounds = str(each.ratio.rounds)
            table.add_row(head(each.key), stats.human_count(each.old.median), stats.human_count(each.new.median), _ratio_text(each.ratio), rounds,
                          str(each.noisy), each.state)
        return [table]

    def figures(self, run: RunDirectory) -> dict:
        return {}


def _ratio_text(ratio: Summary) -> str:
    return f"{ratio.median:.3f} ({ratio.low:.3f}-{ratio.high:.3f})"


def _verdict(finding: Finding, one: Compared) -> Verdict:
    noise = f"; {one.noisy} of {one.old.rounds + one.new.rounds} points noisy" if one.noisy else ""
    return Verdict(finding.id, finding.statement, finding.rule, one.state, f"at hand / older {_ratio_text(one.ratio)}{noise}", figures_of(one.ratio))


GUARD = Guard()


def request_of(arguments: argparse.Namespace) -> Request:
    request = apply_options(GUARD.request(), arguments)
    return replace(request, baseline_plugin=arguments.baseline_plugin, output=arguments.output or BENCH_OUTPUT / "guard")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Raises LabError, which names them, when cells are slower."""
    request = request_of(arguments)
    points = all_points(GUARD.plan(request))
    console.print(f"{len(points)} points, about {stats.human_seconds(GUARD.planned_seconds(request, points))}", highlight=False)
    if arguments.dry_run:
        return
    found = GUARD.verdicts(run_and_report(request, GUARD, console))
    doubted = tuple(cell for cell, verdict in zip(CELLS, found, strict=True) if verdict.state == SLOWER)
    conclude(with_second_look(found, second_look(request, doubted, console) if doubted else []), console)


def second_look(request: Request, doubted: tuple[tuple[str, int, int], ...], console: Console) -> list[Verdict]:
    """Of the cells that came out slower."""
    request, guard = replace(request, rounds=2 * request.rounds, output=request.output_directory / "again"), Guard(doubted)
    points = all_points(guard.plan(request))
    console.print(f"{len(doubted)} of {len(CELLS)} cells came out slower: measured once more, with {request.rounds} rounds, which decide; "
                  f"about {stats.human_seconds(guard.planned_seconds(request, points))}", highlight=False)
    return guard.verdicts(run_and_report(request, guard, console))


def with_second_look(found: list[Verdict], again: list[Verdict]) -> list[Verdict]:
    """Noise, or one round against all others, clears no cell: what the second look does not judge stays slower."""
    decided = {verdict.id: verdict for verdict in again if verdict.state in JUDGED}
    return [decided.get(verdict.id, verdict) for verdict in found]


def conclude(found: list[Verdict], console: Console) -> None:
    slower = [verdict.statement for verdict in found if verdict.state == SLOWER]
    judged = [verdict for verdict in found if verdict.state in JUDGED]
    if slower:
        raise LabError(f"slower than the older build in {len(slower)} of {len(judged)} cells: {'; '.join(slower)}")
    if not judged:
        raise LabError("nothing could be judged: the machine was not quiet, or the run had too few rounds")
    console.print(f"in none of {len(judged)} cells slower than the older build", highlight=False)
    if left := [verdict.statement for verdict in found if verdict not in judged]:
        console.print(f"[yellow]not judged:[/yellow] {'; '.join(left)}", highlight=False, soft_wrap=True)
