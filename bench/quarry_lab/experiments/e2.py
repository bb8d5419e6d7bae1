"""
E2: reserving auto-increment ids in ranges. Batches of 16 rows from 8 threads with prefetch 1, 256 and 1024.

Published (2010 blog on MySQL Cluster tuning): 1,211.91 / 3,471.71 / 3,659.52 transactions per second. There every reservation is a trip
to the data nodes. Here InnoDB's counter is in memory, so no such gain is to be expected; what must be seen is the number of reservations.
"""

from __future__ import annotations

from rich import box
from rich.table import Table

from .. import charts, stats
from ..cells import CellKey, throughput
from ..plan import Cell
from ..request import Request, Settings
from ..results import RunDirectory
from ..variants import KIB
from ..verdicts import Finding, Verdict, not_applicable
from .base import PublishedFigure, Source
from .table_experiment import TableExperiment

PREFETCHES = (1, 256, 1024)
PUBLISHED_TPS = {1: 1211.91, 256: 3471.71, 1024: 3659.52}
BATCH_ROWS, THREADS, SIZE = 16, 8, 1 * KIB
PREFETCH = Finding("e2-prefetch", "prefetch 256 and 1024 nearly triple inserts of 16 rows over prefetch 1", "ratio of throughputs")


class AutoIncrement(TableExperiment):
    name = "e2"
    title = "E2: auto-increment prefetch, batches of 16 rows from 8 threads"
    reference = "quarry-prefetch-1"
    source = Source("2010 blog on MySQL Cluster tuning", "Inserts of 16 rows from 8 threads; 2 data nodes.", "One server: InnoDB's counter is memory.")
    published = tuple(PublishedFigure(f"prefetch {n}", f"{tps:,.2f} tps", Cell("insert", f"quarry-prefetch-{n}", SIZE, THREADS))
                      for n, tps in PUBLISHED_TPS.items())

    def default_request(self) -> Request:
        return Request(self.name, ["insert"], [SIZE], [THREADS], ["innodb", *(f"quarry-prefetch-{n}" for n in PREFETCHES)],
                       settings=Settings(batch_rows=BATCH_ROWS))

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return [not_applicable(PREFETCH, "a reservation costs no trip on one server, InnoDB's counter is memory")]

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        key = CellKey("insert", SIZE, THREADS)
        series = [charts.Series(v, cells.label(v), [cells.summary(key, v, throughput)]) for v in cells.variants()]
        return {"prefetch": charts.bars("inserts of 16 rows, 8 threads", "", "statements per second", [""], series)} if run.points else {}

    def tables(self, run: RunDirectory) -> list[Table]:
        cells = self.cells_of(run)
        key = CellKey("insert", SIZE, THREADS)
        table = Table(title="id reservations", header_style="bold", box=box.SIMPLE_HEAD)
        for heading in ("prefetch", "tps here", "reservations per 1,000 rows"):
            table.add_column(heading, justify="right")
        for size in PREFETCHES:
            rate = cells.summary(key, f"quarry-prefetch-{size}", throughput)
            reserved = cells.summary(key, f"quarry-prefetch-{size}", reservations_per_1000_rows)
            table.add_row(str(size), stats.human_count(rate.median) if rate else "not measured", reserved_text(reserved))
        return [*super().tables(run), table]


def reservations_per_1000_rows(point: dict) -> float | None:
    """From the server's own counter over the whole point; None when the server has none (InnoDB)."""
    rows = point["result"]["total_rows_written"]
    counts = [count for name, count in point["quarry_status"].items() if "reservation" in name]
    return 1000 * counts[0] / rows if counts and rows else None


def reserved_text(reserved: stats.Summary | None) -> str:
    if reserved is None:
        return "not measured"
    return f"{reserved.median:.2f}" if reserved.median else "none: InnoDB's own counter"
