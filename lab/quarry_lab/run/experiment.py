"""
What an experiment must give, so that the lab can plan, run, resume, judge and report it. The lab knows nothing else of an experiment.

A new experiment is a subclass of Experiment in a module of its own, listed in catalogue.py:

    name, title           'e4'; one line
    source                what was published, where, on what (Source)
    published             the published figures to stand beside ours (PublishedFigure), from the document's data file (published/)
    labels                variant key -> what people read; its order is the order of tables and charts
    reference             the variant that ratios are taken against
    default_request()     the `normal` scale: operations, sizes, threads, variants, Settings (at least 10 s a point, 3 rounds)
    quick(request)        the same for a look; `full` is five rounds unless full() says otherwise
    cells(request)        what is measured in every round (plan.Cell); `group` says which cells share a set-up
    needs(request)        sentences on what is missing (tools, servers, rights); empty when nothing is. Asked before any work starts.
    disk_bytes(request)   what the run may have on disk at once; checked before any work starts
    identity(request)     extra parts of what makes two runs the same run, e.g. checksums of measured builds
    seconds_around(request)   seconds spent once (servers, datasets); with seconds_of(request, point) they make the planned wall time
    open(context)         a context manager that yields a Bench: everything started on entry, everything removed on exit, on any way out
    figures(run)          name -> matplotlib Figure (charts.py): saved as PNG, and drawn into the report
    verdicts(run)         one Verdict per finding (rules.verdict for what was published, verdicts.judge, not_measured)
    tables(run)           rich tables for the terminal and the report; report() prints the profile, them and the verdicts
    condition_tables(run) those of them that say under what a result was measured: docs/results/lab.md has them, too
    ours(run, cell)       this run's figure beside a published one, as text; by default the events per second of the cell
    payloads              kinds of payload that `full` runs it with; an experiment with data of its own leaves this alone
    conditions(run)       of an experiment that sets limits of its own: them, beside the rounds on its page
    plan_rows(request, left)   what is left to do, in parts, with an estimate of each: of `--dry-run`
    finding_columns, finding_rows(run), whose   of an experiment whose findings have a verdict for each engine: the table of them

    takes_target          whether --target's server is measured too (with on_target(keys, engines)); the others say that they leave it out
    takes_apart           whether `--apart` can give its servers and clients processors of their own

A Bench measures: describe() says what runs (recorded in run.json for every session), begin(block)/end(block) set up and remove what the
block's points share, measure(point) returns the record of one point, ended() says what serves it no more: then the record is not kept. A record
is a dictionary that holds at least
    result     events_per_second, latency_p95_ms (where there is one), interval_seconds
    cpu        what noise.usage returns (noise.Meter does it)
The lab adds the point's own fields and the time, appends the record to points.jsonl, and prints line(record).
Raw rounds only: medians, ratios and verdicts are computed from the records afterwards, never while measuring.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import ClassVar

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from ..design import variants
from ..design.cells import CellKey, Cells, throughput
from ..design.plan import Block, Cell, Point, by_size, interleave
from ..design.profile import TEXTS
from ..design.published import Figure as Published
from ..design.repeats import comparison_of
from ..design.request import Address, Request
from ..design.results import RunDirectory
from ..report import stats, verdicts
from ..report.verdicts import FindingRow, Verdict
from ..servers.target import local_cluster
from .progress import RunProgress
from .tables import size_label


@dataclass(frozen=True)
class Source:
    """Where a finding comes from."""

    text: str  # author or vendor, title, year
    setup: str  # the published machine and load, in a sentence or two
    here: str  # what is run instead, and what that cannot show


@dataclass(frozen=True)
class PublishedFigure:
    """
    One published number and the cell of ours that stands beside it. over: the variant that a published gain is over; then ours are the ratios
    to that variant's at every client level.
    """

    figure: Published
    cell: Cell
    over: str | None = None

    @property
    def what(self) -> str:
        return self.figure.says

    @property
    def value(self) -> str:
        return self.figure.text + self.figure.mark


@dataclass(frozen=True)
class PlanRow:
    """A part of what is to be measured. seconds: an estimate, with all around it."""

    what: str
    cells: str
    points: int
    seconds: float


@dataclass
class Context:
    """What a running experiment may use. `progress.step(text)` says what is being done."""

    request: Request
    run: RunDirectory
    progress: RunProgress


class Bench(ABC):
    """Measures points. Externally synchronised. blocks_stand_alone: nothing of a block is left after end(), though begin() or measure() failed."""

    blocks_stand_alone: ClassVar[bool] = False

    def describe(self) -> dict:
        return {}

    def begin(self, block: Block) -> None:
        """Before the first point of a block that is still to be measured."""

    @abstractmethod
    def measure(self, point: Point) -> dict: ...

    @abstractmethod
    def ended(self) -> str:
        """What that was started for the points runs no more, in lines of their own; empty where all runs. Asked after each point."""

    def end(self, block: Block) -> None:
        """After the last point of the block."""


class Experiment(ABC):
    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[Source | None] = None
    published: ClassVar[tuple[PublishedFigure, ...]] = ()
    operations: ClassVar[tuple[str, ...]]
    reference: ClassVar[str]
    payloads: ClassVar[tuple[str, ...]] = ("random",)
    takes_target: ClassVar[bool] = False
    takes_apart: ClassVar[bool] = False
    finding_columns: ClassVar[tuple[str, ...]] = ()
    whose: ClassVar[str] = ""  # the engine of the verdicts with the claims' own ids, where finding_columns parts them

    # --- what to run ---
    @property
    @abstractmethod
    def labels(self) -> dict[str, str]: ...

    @abstractmethod
    def default_request(self) -> Request: ...

    def quick(self, request: Request) -> Request:
        return replace(request, rounds=1, settings=replace(request.settings, seconds=3, warmup_seconds=1))

    def full(self, request: Request) -> Request:
        return replace(request, rounds=5)

    def request(self, scale: str = "normal") -> Request:
        made = self.default_request()
        made = {"quick": self.quick, "normal": lambda r: r, "full": self.full}[scale](made)
        return replace(made, scale=scale)

    @abstractmethod
    def cells(self, request: Request) -> list[Cell]: ...

    def group(self, cell: Cell) -> Hashable:
        return by_size(cell)

    def plan(self, request: Request) -> list[Block]:
        return interleave(self.cells(request), request.rounds, request.seed, self.group)

    def comparison(self, point: Point) -> Hashable:
        """The same for all points that are compared with each other: with --repeat-noisy they are measured again together (repeats.py)."""
        return comparison_of(point)

    def identity(self, request: Request) -> dict:
        return request.identity()

    def own_target(self) -> Address | None:
        """What is measured as a target when none is named: the NDB Cluster of scripts/ndb, if it runs."""
        return local_cluster()

    def on_target(self, keys: list[str], engines: set[str]) -> list[str]:
        """Of these variants what a target with these engines (names in capitals) is measured with."""
        return variants.on_target(keys, engines)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        return []

    @abstractmethod
    def disk_bytes(self, request: Request) -> int: ...

    def seconds_of(self, request: Request, point: Point) -> float:
        """Wall time of one point with all around it; an estimate."""
        return request.settings.seconds + request.settings.warmup_seconds + 5

    def seconds_around(self, request: Request) -> float:
        return 60

    def planned_seconds(self, request: Request, points: list[Point]) -> float:
        return self.seconds_around(request) + sum(self.seconds_of(request, point) for point in points)

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        """One row unless the experiment has parts."""
        operations = ", ".join(dict.fromkeys(point.operation for point in left))
        return [PlanRow(self.name, operations, len(left), self.planned_seconds(request, left) if left else 0)]

    # --- running it ---
    @abstractmethod
    def open(self, context: Context) -> AbstractContextManager[Bench]: ...

    def line(self, record: dict) -> str:
        """One line per finished point."""
        result = record["result"]
        where = " ".join(x for x in (record["operation"], record["setting"], f"x{record['threads']}") if x)
        size = f"{stats.human_bytes(record['size_bytes']):>9}  " if record["size_bytes"] else ""
        p95 = f"  p95 {result['latency_p95_ms']:.2f} ms" if "latency_p95_ms" in result else ""
        return (f"round {record['round']}  {size}{where:<28} {self.labels[record['variant']]:<28} "
                f"[bold]{stats.human_count(result['events_per_second']):>7}[/bold]/s{p95}{noise_note(record)}")

    # --- what came out ---
    def cells_of(self, run: RunDirectory) -> Cells:
        return Cells(run.points, self.labels)

    def conditions(self, run: RunDirectory) -> str:
        """Sizes and limits of the experiment's own that its figures depend on, in words; empty where there are none."""
        return ""

    def measured_with(self, run: RunDirectory) -> str:
        """conditions() as a sentence that follows another; empty as they are."""
        found = self.conditions(run)
        return f" Measured with {found}." if found else ""

    @abstractmethod
    def figures(self, run: RunDirectory) -> dict[str, Figure]: ...

    @abstractmethod
    def verdicts(self, run: RunDirectory) -> list[Verdict]: ...

    @abstractmethod
    def tables(self, run: RunDirectory) -> list[Table]: ...

    def condition_tables(self, run: RunDirectory) -> list[Table]:
        return []

    def quarrys_own(self, found: list[Verdict]) -> list[Verdict]:
        """Of verdicts on several engines those with the claims' own ids (`whose`); all where finding_columns does not part them."""
        return found

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        """As wide as finding_columns."""
        return []

    def ours(self, run: RunDirectory, cell: Cell) -> str:
        found = self.cells_of(run).summary(CellKey.of(cell), cell.variant, throughput)
        return f"{found.median:,.0f}/s{found.range_text('{:,.0f}'.format)}" if found else "not measured"

    def beside(self, run: RunDirectory, figure: PublishedFigure) -> str:
        """What the report writes beside a published figure."""
        if figure.over is None:
            return self.ours(run, figure.cell)
        cells, wanted = self.cells_of(run), CellKey.of(figure.cell)
        keys = [key for key in cells.keys() if replace(key, threads=wanted.threads) == wanted]
        gains = cells.ratios(keys, figure.cell.variant, figure.over)
        return "; ".join(f"x{key.threads}: {_gain(r.median)}{r.range_text(_gain)}" for key, r in gains.items()) or "not measured"

    def size_text(self, size_bytes: int) -> str:
        """As the experiment's document counts."""
        return size_label(size_bytes)

    def chart_note(self, run: RunDirectory) -> str:
        """What holds of every chart of a run."""
        parameters = run.run["parameters"]
        rounds = stats.counted(parameters["rounds"], "round")
        return (f"Bars and points are medians of {rounds}; the thin lines on them go from the lowest to the highest. "
                f"Profile {TEXTS[parameters['profile']]}.")

    def report(self, console: Console, run: RunDirectory) -> None:
        console.print(f"profile {TEXTS[run.run['parameters']['profile']]}", highlight=False)  # of every table that follows
        for table in self.tables(run):
            console.print(table)
        if found := self.verdicts(run):
            verdicts.print_verdicts(console, f"{self.name}: judged from this run's raw rounds", found)


def _gain(ratio: float) -> str:
    return stats.human_gain(ratio - 1)


def noise_note(record: dict) -> str:
    cpu = record["cpu"]
    if not cpu["noisy"]:
        return ""
    others = ", ".join(cpu["top_others"]) or "short-lived processes"
    return f"  [yellow]noisy: others {cpu['other_cpus']:.2f} CPU, steal {cpu['steal_cpus']:.2f} ({others})[/yellow]"
