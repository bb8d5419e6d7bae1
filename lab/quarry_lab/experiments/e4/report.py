"""E4's charts and tables."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, client_cpus, p95_ms, server_cpus, throughput
from ...report import charts, stats
from ...run.tables import add_sections, size_label
from . import space
from .engines import FETCH
from .ways import LABELS, WAYS, engine_of


def figures(cells: Cells) -> dict[str, Figure]:
    """Of each size and number of clients: an engine a panel of the same scale, a way a row with a colour of its own."""
    return {f"ways-{key.size_bytes}-x{key.threads}": _ways(cells, key) for key in cells.keys() if key.operation == FETCH}


def _ways(cells: Cells, key: CellKey) -> Figure:
    measured = [variant for variant in cells.variants() if cells.rounds(key, variant)]
    rates = {(engine_of(variant), twin_of(variant)): cells.summary(key, variant, throughput) for variant in measured}
    rows = {twin_of(variant): LABELS[twin_of(variant)] for variant in measured}
    panels = [charts.Panel(engine, [""], [charts.Series(way, label, [rates.get((engine, way))]) for way, label in rows.items()])
              for engine in dict.fromkeys(engine for engine, _way in rates)]
    title = f"values of {size_label(key.size_bytes)} fetched per second, {stats.counted(key.threads, 'client thread')}"
    return charts.bar_panels(title, panels, same_scale=True)


def twin_of(variant: str) -> str:
    """The same way to a QUARRY table; a way that Quarry has not, as it is."""
    own = variant.removeprefix(sql_text_of(variant).removesuffix("text"))
    return own if own in WAYS else variant


def tables(cells: Cells) -> list[Table]:
    return [table for table in (_fetches(cells), _disk(cells)) if table.rows]


def _fetches(cells: Cells) -> Table:
    table = Table(title="values fetched per second", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("", "way"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fetches/s", "range", "/ its SQL text", "p95 ms", "MB/s", "CPU server", "CPU client"):
        table.add_column(heading, justify="right")
    keys = [key for key in cells.keys() if key.operation == FETCH]
    add_sections(table, cells, [(f"{size_label(key.size_bytes)} x{key.threads}", [key]) for key in keys], partial(_row, cells))
    return table


def sql_text_of(variant: str) -> str:
    """SQL text of the same engine."""
    for prefix in ("target-innodb", "target-quarry", "target-ndb", "innodb"):
        if variant.startswith(prefix):
            return f"{prefix}-text"
    return "text"


def _row(cells: Cells, key: CellKey, variant: str) -> list[str]:
    rate, ratio = cells.summary(key, variant, throughput), cells.ratio(key, variant, sql_text_of(variant))
    late, server, client = (cells.summary(key, variant, figure) for figure in (p95_ms, server_cpus, client_cpus))
    assert rate and late and server and client  # only variants that have rounds get a row
    server_text = "in the client" if WAYS[variant].embedded else f"{server.median:.2f}"
    return [cells.label(variant), f"[bold]{stats.human_count(rate.median)}[/bold]",
            f"[dim]{stats.human_count(rate.low)}-{stats.human_count(rate.high)}[/dim]", f"{ratio.median:.2f}x" if ratio else "", f"{late.median:.2f}",
            f"{rate.median * key.size_bytes / 1e6:,.0f}", server_text, f"{client.median:.2f}"]


def _disk(cells: Cells) -> Table:
    table = Table(title=f"bytes of disk per payload byte, column of {size_label(space.COLUMN_BYTES)}", header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("table")
    for size in space.SIZES:
        table.add_column(f"values of {size_label(size)}", justify="right")
    for variant in space.TABLES:
        found = [cells.summary(CellKey(space.OPERATION, size, 1), variant, space.disk_bytes_per_byte) for size in space.SIZES]
        if any(found):
            table.add_row(cells.label(variant), *(f"{each.median:.2f}{each.range_text('{:.2f}'.format)}" if each else "" for each in found))
    return table
