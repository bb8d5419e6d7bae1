"""E3's tables and charts: uncompressed bytes per second of every way to compress, link by link."""

from __future__ import annotations

import textwrap
from functools import partial

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, client_cpus
from ...design.methods import LABELS
from ...design.results import RunDirectory
from ...report import charts
from ...report.stats import Summary
from ...run.tables import add_sections
from ...servers.links import LINKS
from .findings import (DOCUMENT_BYTES, ENGINES, LZ4_9, NONE, RANDOM, REAL, THREADS, bytes_rate, kind_text, own_cpus, proxy_cpus, size_text,
                       stored_ratio)

# Where the value is decompressed: (a part of the variant's key, what the legend says, colour); the first that fits, and the last fits every variant.
# Uncompressed values have a place of their own.
_NOWHERE = ("", "nowhere", "#999999")
_UNCOMPRESSED = {engine.roles[NONE] for engine in ENGINES}
_PLACES = (("app-", "in the application", "#E69F00"), ("quarry", "by QUARRY", "#0072B2"), ("rocksdb", "by MyRocks", "#009E73"),
           ("", "by the server or InnoDB", "#D55E00"))
_MB = 1e6  # the unit of the table and of what was published
CHART_CELLS_MAX = 6
_TITLE_CHARACTERS_MAX = 52  # of a line; bars' labels take a third of the width


def wire_ratio(point: dict) -> float:
    """Uncompressed bytes per byte on the wire."""
    return point["result"]["uncompressed_bytes_per_second"] / point["result"]["received_bytes_per_second"]


def _title(key: CellKey) -> str:
    kind = "real data" if key.operation == REAL else kind_text(key.operation)
    return f"{kind}, {size_text(key.size_bytes)}, {LINKS[key.setting].label}"


def tables(run: RunDirectory) -> list[Table]:
    cells = Cells(run.points, LABELS)
    table = Table(title="E3: uncompressed bytes per second", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("data, link", "way"):
        table.add_column(heading, no_wrap=True)
    for heading in ("MB/s", "range", "/ none", "sent ratio", "wire ratio", "server CPU", "proxy CPU", "client CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    add_sections(table, cells, [(_title(key), [key]) for key in cells.keys()], partial(_row, cells))
    return [table, *condition_tables(run)]


def _row(cells: Cells, key: CellKey, variant: str) -> list[str]:
    rate, ratio = cells.summary(key, variant, bytes_rate), cells.ratio(key, variant, "app-none", bytes_rate)
    wire = cells.summary(key, variant, wire_ratio)
    stored = cells.summary(key, variant, stored_ratio)
    used = [found.median for figure in (own_cpus, proxy_cpus, client_cpus) if (found := cells.summary(key, variant, figure))]
    assert rate and wire  # the cell has rounds
    return [LABELS[variant], f"[bold]{rate.median / 1e6:,.1f}[/bold]", f"[dim]{rate.low / 1e6:,.1f}-{rate.high / 1e6:,.1f}[/dim]",
            f"{ratio.median:.2f}x" if ratio else "", f"{stored.median:.2f}" if stored else "", f"{wire.median:.2f}", *(f"{cpus:.2f}" for cpus in used)]


def condition_tables(run: RunDirectory) -> list[Table]:
    """What was asked of each link and what it gave: the last session's probe."""
    session = run.run["sessions"][-1] if run.run["sessions"] else {}
    probes = session.get("links", [])
    if not probes:
        return []
    table = Table(title="the links: asked for and measured on one plain connection", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("link", "made by"):
        table.add_column(heading)
    for heading in ("asked Mbit/s", "measured", "asked delay ms", "measured round trip"):
        table.add_column(heading, justify="right")
    quota = session.get("weak_server_processors")
    for probe in probes:
        weak = f"; the server has {quota:.2f} processors" if quota and probe["weak_server"] else ""
        table.add_row(probe["label"], probe["by"] + weak, str(probe["megabits_per_second"] or "any"),
                      f"{probe['measured_bytes_per_second'] * 8 / 1e6:,.0f}", f"{probe['delay_ms']} +- {probe['jitter_ms']}",
                      f"{probe['measured_round_trip_ms']:.2f}")
    return [table]


def _place(variant: str) -> tuple[str, str, str]:
    return _NOWHERE if variant in _UNCOMPRESSED else next(place for place in _PLACES if place[0] in variant)


def figures(run: RunDirectory) -> dict[str, Figure]:
    """
    One chart of horizontal bars for each of the cells with the most ways in it, those of real data first; lz4 against none of random data, on every
    link.
    """
    cells = Cells(run.points, LABELS)
    keys = sorted(cells.keys(), key=lambda k: (k.operation != REAL, -len(_summaries(cells, k)), k))[:CHART_CELLS_MAX]
    lz4 = _lz4_by_alphabet(cells)
    return {f"{key.operation}-{key.size_bytes}-{key.setting}": _bars(cells, key) for key in keys} | ({"lz4-none": lz4} if lz4 else {})


def _lz4_by_alphabet(cells: Cells) -> Figure | None:
    """None where no random data of the largest size were fetched both ways."""
    keys = {(kind, link): CellKey(kind, DOCUMENT_BYTES, THREADS, link) for kind in RANDOM for link in LINKS}
    found = {where: ratio for where, key in keys.items() if (ratio := cells.ratio(key, LZ4_9, NONE, bytes_rate))}
    links = [link for link in LINKS if any(link == other for _kind, other in found)]
    kinds = [kind for kind in RANDOM if any(kind == other for other, _link in found)]
    series = [charts.Series(link, LINKS[link].label, [found.get((kind, link)) for kind in kinds]) for link in links]
    title = f"{LABELS[LZ4_9]} over none, random data, {size_text(DOCUMENT_BYTES)}"
    return charts.bars(title, "times the throughput of none", "alphabet", [kind_text(kind) for kind in kinds], series) if series else None


def _summaries(cells: Cells, key: CellKey) -> dict[str, Summary]:
    return {v: rate for v in cells.variants() if (rate := cells.summary(key, v, bytes_rate))}


def _bars(cells: Cells, key: CellKey) -> Figure:
    rates = _summaries(cells, key)
    order = sorted(rates, key=lambda v: rates[v].median)
    errors = [[(rates[v].median - rates[v].low) / _MB for v in order], [(rates[v].high - rates[v].median) / _MB for v in order]]
    with plt.rc_context({**charts.STYLE, "axes.grid.axis": "x"}):
        figure, axes = plt.subplots(figsize=(7.2, 1.7 + 0.3 * len(order)), layout="constrained")
        bars = axes.barh([LABELS[v] for v in order], [rates[v].median / _MB for v in order], xerr=errors,
                         color=[_place(v)[2] for v in order], error_kw={"elinewidth": 1, "ecolor": "#444444", "capsize": 2})
        shown = {_place(v)[1]: bar for v, bar in zip(order, bars, strict=True)}
        figure.legend(list(shown.values()), list(shown), title="decompressed", loc="outside lower center", ncols=3)
        for position, variant in enumerate(order):
            axes.annotate(charts.short_number(rates[variant].median / _MB), (rates[variant].high / _MB, position), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=8, color="#444444")
        axes.set(title=textwrap.fill(_title(key), _TITLE_CHARACTERS_MAX), xlabel="uncompressed MB per second")
    return figure
