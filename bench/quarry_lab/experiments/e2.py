"""
E2: reserving auto-increment ids in ranges. Batches of 16 rows from 8 threads with prefetch 1, 256 and 1024.

Published (2010 blog on MySQL Cluster tuning): 1,211.91 / 3,471.71 / 3,659.52 transactions per second. There every reservation is a trip
to the data nodes. Here InnoDB's counter is in memory, so no such gain is to be expected; what must be seen is the number of reservations.
"""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.table import Table

from .. import charts, stats
from ..cells import CellKey, Cells, throughput
from ..results import RunDirectory
from ..runner import Settings
from ..session import Request
from ..tables import print_table
from ..variants import ALL, KIB, by_keys

NAME = "e2"
TITLE = "E2: auto-increment prefetch, batches of 16 rows from 8 threads"
REFERENCE = "quarry-prefetch-1"
PREFETCHES = (1, 256, 1024)
PUBLISHED_TPS = {1: 1211.91, 256: 3471.71, 1024: 3659.52}
BATCH_ROWS, THREADS, SIZE = 16, 8, 1 * KIB


def default_request() -> Request:
    return Request(NAME, TITLE, ["insert"], [SIZE], [THREADS], by_keys(["innodb", *(f"quarry-prefetch-{n}" for n in PREFETCHES)]),
                   settings=Settings(batch_rows=BATCH_ROWS))


def quick(request: Request) -> Request:
    return replace(request, rounds=1, settings=replace(request.settings, seconds=3, warmup_seconds=1))


def reservations_per_1000_rows(point: dict) -> float | None:
    """From the server's own counter over the whole point; None when the server has none (InnoDB)."""
    rows = point["result"]["total_rows_written"]
    counts = [count for name, count in point["quarry_status"].items() if "reservation" in name]
    return 1000 * counts[0] / rows if counts and rows else None


def _reserved_text(reserved: stats.Summary | None) -> str:
    if reserved is None:
        return "not measured"
    return f"{reserved.median:.2f}" if reserved.median else "none: InnoDB's own counter"


def figures(run: RunDirectory) -> dict:
    cells = Cells(run.points)
    key = CellKey("insert", SIZE, THREADS)
    series = [charts.Series(v, ALL[v].label, [cells.summary(key, v, throughput)]) for v in cells.variants()]
    return {"prefetch": charts.bars("inserts of 16 rows, 8 threads", "", "statements per second", [""], series)} if run.points else {}


def report(console: Console, run: RunDirectory) -> None:
    cells = Cells(run.points)
    print_table(console, cells, run.run, REFERENCE)
    key = CellKey("insert", SIZE, THREADS)
    table = Table(title="id reservations, and what was published for MySQL Cluster (2010)", header_style="bold")
    for heading in ("prefetch", "published tps", "tps here", "reservations per 1,000 rows"):
        table.add_column(heading, justify="right")
    for size in PREFETCHES:
        rate = cells.summary(key, f"quarry-prefetch-{size}", throughput)
        reserved = cells.summary(key, f"quarry-prefetch-{size}", reservations_per_1000_rows)
        table.add_row(str(size), f"{PUBLISHED_TPS[size]:,.2f}", stats.human_count(rate.median) if rate else "not measured",
                      _reserved_text(reserved))
    console.print(table)
    console.print("gain of prefetching as published: [yellow]not applicable here[/yellow]: a reservation costs no trip on one server, "
                  "InnoDB's counter is memory", highlight=False)
