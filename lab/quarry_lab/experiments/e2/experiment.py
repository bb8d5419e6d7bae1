"""
E2: reserving ids in ranges; BLOBs against VARBINARYs; readers beside an updater (published/e2.toml: a 2010 blog on MySQL Cluster tuning).

Loads. `insert`: statements of 16 rows from 8 threads, ids by AUTO_INCREMENT with prefetch 1, 256, 1024, or by a SEQUENCE with these
caches; `fronts`: the same statements through two Spider fronts, where an id may cost a trip. `read`: two 1,024-byte columns of as many rows
as there, by primary key. `few` and `updated`: the same on 64 rows, alone and beside one client that updates them without a pause, for NDB takes shared
locks where it reads BLOBs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich import box
from rich.table import Table

from ...design import published, rules
from ...design.cells import CellKey, Cells, p95_ms, throughput
from ...design.plan import OPERATION_LABELS, Block, Cell, Point
from ...design.request import Request, Settings
from ...design.results import RunDirectory
from ...design.variants import KIB, TARGET_PREFIX, Variant
from ...report import charts, stats
from ...report.verdicts import OPPOSITE, REPRODUCED, WEAKER, Finding, Verdict, figures_of, not_measured, stated
from ...run.experiment import Bench, Context, Experiment, PublishedFigure, Source
from ...run.runner import TableBench
from ...run.tables import comparison_table
from ..table_experiment import TableExperiment, answer_gain
from . import bench as fronts_bench
from .bench import CACHES, OPERATION as FRONTS, FrontsBench

DOCUMENT = published.document("e2")
BATCH_ROWS, THREADS, ROW, WIDE_ROW, WIDE_ROWS = 16, 8, 1 * KIB, 2 * KIB, int(DOCUMENT.value("wide-rows"))
ID_VARIANTS = ("innodb", *(f"quarry-prefetch-{n}" for n in CACHES), *(f"sequence-{n}" for n in CACHES))
WIDE_VARIANTS = ("innodb-2blob", "innodb-2varbinary", "rocksdb-2blob", "quarry-2blob", "quarry-2blob-default", "quarry-2varbinary")
UPDATED_VARIANTS = ("innodb-2blob", "quarry-2blob", "quarry-2varbinary")
BUFFER_POOL = {"innodb_buffer_pool_size": str(4 << 30)}  # the whole rows of four of the variants, side by side
LOADS = ("insert", FRONTS, "read", "few", "updated")
SMALL_LOADS = ("insert", FRONTS)
INSERT, THROUGH = (CellKey(load, ROW, THREADS) for load in SMALL_LOADS)
READ, FEW, UPDATED = (CellKey(load, WIDE_ROW, THREADS) for load in LOADS[2:])

LOCKS_KEPT_MOST = 0.8  # our threshold
SEQUENCE = Finding("e2-sequence", "the same where an id costs a write: SEQUENCE CACHE 256 against CACHE 1 (not published)",
                   "ratio of SEQUENCE CACHE 256 to CACHE 1")
FRONT_IDS = Finding("e2-fronts", "the same where an id costs a trip, through two Spider fronts: a SEQUENCE on a shard, CACHE 256 against CACHE 1 (not published)",
                    "ratio of CACHE 256 to CACHE 1")
FRONT_COUNTS = Finding("e2-fronts-trip", "what the trip costs there: AUTO_INCREMENT counted by each front against a SEQUENCE on a shard, CACHE 1024 (not published)",
                       "ratio of AUTO_INCREMENT to the SEQUENCE")
WIDE_DEFAULT = Finding("e2-varbinary-default", "the same against BLOBs with Quarry's own defaults, which keep such values in the row (not published)",
                       "ratio of VARBINARYs to BLOBs")


class AutoIncrement(TableExperiment):
    name = "e2"
    title = "E2: ids in ranges, BLOB against VARBINARY, readers beside an updater"
    operations = LOADS
    reference = "quarry-prefetch-1"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "One server: InnoDB's id counter is memory, so no reservation is a trip, and a gain of prefetching is hardly to be expected; how many "
        "reservations there are is counted. A SEQUENCE's reservations are writes. Through two Spider fronts over two shards, each with a replica, all on "
        "this machine, an id may be a trip to a shard. Reads: the same rows, the same statement.")
    published = (*(PublishedFigure(DOCUMENT.figure(f"prefetch-{n}"), Cell("insert", f"quarry-prefetch-{n}", ROW, THREADS)) for n in CACHES),
                 PublishedFigure(DOCUMENT.figure("two-blobs"), Cell("read", "quarry-2blob", WIDE_ROW, THREADS)),
                 PublishedFigure(DOCUMENT.figure("two-varbinarys"), Cell("read", "quarry-2varbinary", WIDE_ROW, THREADS)))

    @property
    def labels(self) -> dict[str, str]:
        return super().labels | fronts_bench.LABELS

    def variants(self, request: Request) -> list[Variant]:
        """Of the tables of one server."""
        return super().variants(replace(request, variants=[key for key in request.variants if key not in fronts_bench.WAYS]))

    def default_request(self) -> Request:
        return Request(self.name, list(LOADS), [ROW, WIDE_ROW], [THREADS], [*ID_VARIANTS, *fronts_bench.WAYS, *WIDE_VARIANTS],
                       settings=Settings(warmup_seconds=1, batch_rows=BATCH_ROWS, dataset_bytes=WIDE_ROWS * WIDE_ROW), mycnf=dict(BUFFER_POOL))

    def quick(self, request: Request) -> Request:
        """Of each load the ends; a tenth of the rows."""
        left_out = {"quarry-prefetch-1024", "sequence-1024", "fronts-sequence-1024", "fronts-shard-1024", "innodb-2varbinary", "rocksdb-2blob"}
        settings = replace(request.settings, seconds=3, warmup_seconds=1, dataset_bytes=WIDE_ROWS * WIDE_ROW // 10)
        return replace(request, rounds=1, settings=settings, variants=[v for v in request.variants if v not in left_out])

    def cells(self, request: Request) -> list[Cell]:
        wanted = {"insert": ID_VARIANTS, FRONTS: tuple(fronts_bench.WAYS), "read": WIDE_VARIANTS, "few": UPDATED_VARIANTS, "updated": UPDATED_VARIANTS}
        return [Cell(load, key, ROW if load in SMALL_LOADS else WIDE_ROW, count) for load in request.operations for count in request.threads
                for key in request.variants if key.removeprefix(TARGET_PREFIX).replace("ndb", "quarry") in wanted[load]]

    def group(self, cell: Cell) -> Hashable:
        return cell.operation == FRONTS, cell.size_bytes

    def needs(self, request: Request) -> list[str]:
        wants_fronts = any(cell.operation == FRONTS for cell in self.cells(request))
        return super().needs(request) + (fronts_bench.needs() if wants_fronts else [])

    def seconds_of(self, request: Request, point: Point) -> float:
        """Nothing settles in front of, or behind, a load through the fronts."""
        return super().seconds_of(request, point) - (3 if point.operation == FRONTS else 0)

    @contextmanager
    def open(self, context: Context) -> Iterator[Bench]:
        with super().open(context) as tables:
            fronts = FrontsBench(context)
            try:
                yield IdsBench(tables, fronts)
            finally:
                fronts.close()

    def line(self, record: dict) -> str:
        return Experiment.line(self, record) if record["operation"] == FRONTS else super().line(record)

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        return [
            *_prefetch(cells, parameters, "prefetch", 256), *_prefetch(cells, parameters, "prefetch-1024", 1024),
            answer_gain(cells, SEQUENCE, [INSERT], "sequence-256", "sequence-1", parameters),
            answer_gain(cells, FRONT_IDS, [THROUGH], "fronts-shard-256", "fronts-shard-1", parameters),
            answer_gain(cells, FRONT_COUNTS, [THROUGH], "fronts-counting", "fronts-shard-1024", parameters),
            *both_engines(cells, "varbinary", [READ], "quarry-2varbinary", "quarry-2blob", parameters),
            answer_gain(cells, WIDE_DEFAULT, [READ], "quarry-2varbinary", "quarry-2blob-default", parameters),
            _locks_verdict(cells, parameters),
        ]

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        made = {"ids": _bars("inserts of 16 rows a second, 8 threads", cells, [INSERT]),
                "fronts": _bars("inserts of 16 rows a second through two Spider fronts, 8 threads", cells, [THROUGH]),
                "two-columns": _bars("rows of two 1,024-byte columns read a second, 8 threads", cells, [READ, FEW, UPDATED])}
        return {name: figure for name, figure in made.items() if figure is not None}

    def tables(self, run: RunDirectory) -> list[Table]:
        cells = self.cells_of(run)
        on_tables = Cells([p for p in run.points if p["operation"] != FRONTS], self.labels)
        compared = comparison_table(on_tables, run.run, self.reference) if on_tables.points() else []
        return [*compared, *_reservations_table(cells), *_fronts_table(cells)]


class IdsBench(Bench):
    """Tables of one server, and the fronts, by a point's operation. Externally synchronised."""

    def __init__(self, tables: TableBench, fronts: FrontsBench):
        self.tables, self.fronts = tables, fronts

    def _of(self, operation: str) -> Bench:
        return self.fronts if operation == FRONTS else self.tables

    def describe(self) -> dict:
        return self.tables.describe()

    def begin(self, block: Block) -> None:
        self._of(block.points[0].operation).begin(block)

    def end(self, block: Block) -> None:
        self._of(block.points[0].operation).end(block)

    def measure(self, point: Point) -> dict:
        return self._of(point.operation).measure(point)


def _reservations_table(cells: Cells) -> list[Table]:
    """Empty when nothing was inserted."""
    table = Table(title="reservations of ids", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("ids by", "statements/s", "reservations per 1,000 rows"):
        table.add_column(heading, justify="right")
    for variant in cells.variants():
        rate = cells.summary(INSERT, variant, throughput)
        if rate and variant.startswith("quarry-prefetch"):
            reserved = cells.summary(INSERT, variant, reservations_per_1000_rows)
            table.add_row(cells.label(variant), stats.human_count(rate.median), reserved_text(reserved))
    return [table] if table.rows else []


def _fronts_table(cells: Cells) -> list[Table]:
    """Empty when nothing went through the fronts."""
    table = Table(title="statements of 16 rows through two Spider fronts", header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("ids by")
    for heading in ("statements/s", "range", "/ AUTO_INCREMENT", "p95 ms", "deadlocks per 1,000"):
        table.add_column(heading, justify="right")
    for variant in fronts_bench.WAYS:
        rate, late = cells.summary(THROUGH, variant, throughput), cells.summary(THROUGH, variant, p95_ms)
        if rate and late:
            ratio, lost = cells.ratio(THROUGH, variant, "fronts-counting"), cells.summary(THROUGH, variant, deadlocks_per_1000)
            table.add_row(cells.label(variant), stats.human_count(rate.median), f"{stats.human_count(rate.low)}-{stats.human_count(rate.high)}",
                          f"{ratio.median:.2f}x{ratio.range_text('{:.2f}'.format)}" if ratio else "", f"{late.median:.2f}",
                          f"{lost.median:.1f}" if lost else "")
    return [table] if table.rows else []


def _bars(title: str, cells: Cells, keys: list[CellKey]):
    keys = [k for k in keys if k in cells.keys()]
    if not keys:
        return None
    variants = [v for v in cells.variants() if any(cells.rounds(k, v) for k in keys)]
    panels = [charts.Panel(OPERATION_LABELS[k.operation], [""], [charts.Series(v, cells.label(v), [cells.summary(k, v, throughput)]) for v in variants])
              for k in keys]
    return charts.bar_panels(title, panels)


def _kept(cells: Cells, variant: str) -> dict[int, float]:
    """By round: the share of their throughput that readers keep beside the updater."""
    alone, beside = cells.values(FEW, variant, throughput), cells.values(UPDATED, variant, throughput)
    return {number: beside[number] / alone[number] for number in alone.keys() & beside.keys()}


def _prefetch(cells: Cells, parameters: dict, name: str, number: int) -> list[Verdict]:
    """With how many reservations it took, of Quarry's."""
    found = both_engines(cells, name, [INSERT], f"quarry-prefetch-{number}", "quarry-prefetch-1", parameters)
    return [replace(v, reason=f"{v.reason}; {_reserved(cells)}") if v.id == DOCUMENT.claim(name).id else v for v in found]


def both_engines(cells: Cells, name: str, keys: list[CellKey], variant: str, over: str, parameters: dict) -> list[Verdict]:
    """Quarry's verdict, and NDB's where the run has it."""
    claim = DOCUMENT.claim(name)
    made = [rules.judge_gain(cells, claim, keys, variant, over, parameters)]
    ndb, ndb_over = (TARGET_PREFIX + key.replace("quarry", "ndb") for key in (variant, over))
    if cells.ratios(keys, ndb, ndb_over):
        own = replace(claim, id=f"{claim.id}-ndb", says=f"NDB: {claim.says}")
        made.append(rules.judge_gain(cells, own, keys, ndb, ndb_over, parameters))
    return made


def _locks_verdict(cells: Cells, parameters: dict) -> Verdict:
    finding, shares = DOCUMENT.finding("shared-locks"), {v: _kept(cells, v) for v in UPDATED_VARIANTS}
    ratio = stats.paired_ratio(shares["quarry-2blob"], shares["quarry-2varbinary"])
    if not ratio:
        return not_measured(finding, "no readers beside an updater of both variants in this run")
    text = "; ".join(f"{cells.label(v)} keep {stats.summarize(list(kept.values())).median:.0%}" for v, kept in shares.items() if kept)
    points = cells.rounds_of((FEW, UPDATED), UPDATED_VARIANTS)
    state = REPRODUCED if ratio.high <= LOCKS_KEPT_MOST else OPPOSITE if ratio.low > 1 else WEAKER
    return stated(finding, state, text, {"kept_blob_over_varbinary": figures_of(ratio)}, points, parameters)


def _reserved(cells: Cells) -> str:
    found = {n: cells.summary(INSERT, f"quarry-prefetch-{n}", reservations_per_1000_rows) for n in CACHES}
    return "reservations per 1,000 rows: " + ", ".join(f"prefetch {n}: {reserved_text(s)}" for n, s in found.items())


def reservations_per_1000_rows(point: dict) -> float | None:
    """From the server's own counter over the whole point; None when the server has none (InnoDB)."""
    rows = point["result"]["total_rows_written"]
    counts = [count for name, count in point["quarry_status"].items() if "reservation" in name]
    return 1000 * counts[0] / rows if counts and rows else None


def deadlocks_per_1000(point: dict) -> float | None:
    """Statements that were sent again, per 1,000 that were acknowledged, warm-up included."""
    result = point["result"]
    return 1000 * result["deadlocks"] * point["batch_rows"] / result["total_rows_written"] if "deadlocks" in result else None


def reserved_text(reserved: stats.Summary | None) -> str:
    if reserved is None:
        return "not measured"
    return f"{reserved.median:.2f}" if reserved.median else "none: InnoDB's own counter"
