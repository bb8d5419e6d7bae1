"""E2's charts and tables."""

from __future__ import annotations

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, client_cpus, p95_ms, server_cpus, throughput
from ...design.plan import OPERATION_LABELS
from ...report import charts, stats
from .bench import WAYS
from .findings import FEW, INSERT, READ, THROUGH, UPDATED, reservations_per_1000_rows, trips_per_1000_rows


def figures(cells: Cells) -> dict[str, Figure]:
    made = {"ids": _bars("INSERT statements per second, of 16 rows each, 8 threads", cells, [INSERT]),
            "fronts": _bars("INSERT statements per second through two Spider fronts, of 16 rows each, 8 threads", cells, [THROUGH]),
            "two-columns": _bars("rows of two 1,024-byte columns read per second, 8 threads", cells, [READ, FEW, UPDATED])}
    return {name: figure for name, figure in made.items() if figure is not None}


def tables(cells: Cells) -> list[Table]:
    """Of ids alone; empty tables are left out."""
    return [table for table in (_ids_table(cells), _fronts_table(cells)) if table.rows]


def _ids_table(cells: Cells) -> Table:
    """What an id costs: reservations on Quarry, waits for the data nodes on NDB."""
    table = Table(title="ids", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("ids by", "statements/s", "reservations per 1,000 rows", "waits for data nodes per 1,000 rows"):
        table.add_column(heading, justify="right")
    for variant in cells.variants():
        rate = cells.summary(INSERT, variant, throughput)
        if rate and "prefetch" in variant:
            counted = (cells.summary(INSERT, variant, figure) for figure in (reservations_per_1000_rows, trips_per_1000_rows))
            table.add_row(cells.label(variant), stats.human_count(rate.median), *(f"{found.median:.2f}" if found else "" for found in counted))
    return table


def _fronts_table(cells: Cells) -> Table:
    title = "statements of 16 rows through two Spider fronts, whose shards have a binary log with either profile"
    table = Table(title=title, header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("ids by")
    for heading in ("statements/s", "range", "/ AUTO_INCREMENT", "p95 ms", "deadlocks per 1,000", "CPU servers", "CPU clients, 1 at most"):
        table.add_column(heading, justify="right")
    for variant in WAYS:
        rate, late = cells.summary(THROUGH, variant, throughput), cells.summary(THROUGH, variant, p95_ms)
        if rate and late:
            processors = [f"{found.median:.2f}" for figure in (server_cpus, client_cpus) if (found := cells.summary(THROUGH, variant, figure))]
            ratio, lost = cells.ratio(THROUGH, variant, "fronts-counting"), cells.summary(THROUGH, variant, deadlocks_per_1000)
            table.add_row(cells.label(variant), stats.human_count(rate.median), f"{stats.human_count(rate.low)}-{stats.human_count(rate.high)}",
                          f"{ratio.median:.2f}x{ratio.range_text('{:.2f}'.format)}" if ratio else "", f"{late.median:.2f}",
                          f"{lost.median:.1f}" if lost else "", *processors)
    return table


def _bars(title: str, cells: Cells, keys: list[CellKey]) -> Figure | None:
    """Of one scale: what readers keep beside an updater is the difference between two panels."""
    keys = [k for k in keys if k in cells.keys()]
    if not keys:
        return None
    variants = [v for v in cells.variants() if any(cells.rounds(k, v) for k in keys)]
    panels = []
    for key in keys:
        series = [charts.Series(v, cells.label(v), [cells.summary(key, v, throughput)]) for v in variants]
        panels.append(charts.Panel(OPERATION_LABELS[key.operation] if len(keys) > 1 else "", [""], series))
    return charts.bar_panels(title, panels, same_scale=True)


def deadlocks_per_1000(point: dict) -> float | None:
    """Statements that were sent again, per 1,000 that were acknowledged, warm-up included."""
    result = point["result"]
    return 1000 * result["deadlocks"] * point["batch_rows"] / result["total_rows_written"] if "deadlocks" in result else None
