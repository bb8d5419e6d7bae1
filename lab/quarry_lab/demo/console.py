"""The tables of the demo, for its end in the terminal and for its page."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..report.stats import counted
from . import summary
from .curve import LABELS, SIZES_BYTES
from .tables import DATA_SETS, VARIANTS, DataSet

RATIO = "Quarry ÷ LONGBLOB, by round"


def print_all(console: Console, result: dict) -> None:
    tables = comparison_tables(result)
    rounds = counted(result["settings"]["rounds"], "round")
    console.print(f"\n[dim]Median of {rounds}, with the range below it; '{RATIO}' is the median of the rounds' own ratios[/dim]", highlight=False)
    if "e1" in result:
        tables.append(curve_table(result["e1"]))
    if "crash" in result:
        tables.append(crash_table(result["crash"]))
    for table in tables:
        console.print()
        console.print(table, highlight=False)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold")


def comparison_tables(result: dict) -> list[Table]:
    chosen = result["settings"]["variants"]
    keys_of = [(data_set, [key for key in data_set.variants if key in chosen]) for data_set in DATA_SETS]
    return [_comparison_table(result, data_set, keys) for data_set, keys in keys_of if keys]


def _comparison_table(result: dict, data_set: DataSet, keys: list[str]) -> Table:
    described, compares = result["data_sets"][data_set.key], {"quarry", "innodb"} <= set(keys)
    table = _table(f"{data_set.label[:1].upper()}{data_set.label[1:]}: {counted(described['files'], 'file')}, {described['bytes'] / 1e6:,.0f} MB")
    table.add_column("")
    for key in keys:
        table.add_column(VARIANTS[key].label, justify="right")
    if compares:
        table.add_column(RATIO, justify="right")
    for measure in summary.measures(result["settings"]):
        cells = [_median_cell(*summary.form(summary.summarize(result, data_set.key, key, measure), measure)) for key in keys]
        if compares:
            cells.append(_ratio_cell(result, data_set, measure))
        table.add_row(f"{measure.label} [dim]{measure.unit}[/dim]" if measure.unit else measure.label, *cells)
    return table


def _median_cell(median: str, spread: str, colour: str = "") -> str:
    return f"[bold {colour}]{median}[/]" + (f"\n[dim]{spread}[/dim]" if spread else "")


def _ratio_cell(result: dict, data_set: DataSet, measure: summary.Measure) -> str:
    ratio = summary.ratio(result, data_set.key, "quarry", "innodb", measure)
    if ratio is None:
        return ""
    colour = {1: "green", -1: "red", 0: ""}[summary.verdict(ratio, measure)]
    return _median_cell(f"{ratio.median:.2f}×", f"{ratio.low:.2f} – {ratio.high:.2f}" if ratio.rounds > 1 else "", colour)


def curve_table(curve: dict) -> Table:
    threads = sorted({p["threads"] for p in curve["points"]})
    table = _table(f"E1 in small: transactions/s, {curve['read_percent']}% reads and {100 - curve['read_percent']}% updates")
    table.add_column("value")
    table.add_column("column")
    for count in threads:
        table.add_column(counted(count, "thread"), justify="right")
    for size in SIZES_BYTES:
        for key in LABELS:
            cells = [summary.curve_summary(curve, key, size, count) for count in threads]
            if any(cells):
                table.add_row(f"{size >> 10} KB", LABELS[key], *(f"{c.median:,.0f}" if c else "–" for c in cells))
    return table


def crash_table(crash: dict) -> Table:
    table = _table("kill -9 in mid-load: what survives")
    for heading in ("kill", "commits acknowledged before it", "acknowledged rows checked", "intact", "lost or torn", "under way: there / absent",
                    "rolled back, absent", "back after"):
        table.add_column(heading, justify="right")
    for cycle in crash["cycles"]:
        wrong = len(cycle["wrong"])
        table.add_row(
            str(cycle["cycle"]), f"{cycle['acknowledged']:,}", f"{cycle['acknowledged_rows']:,}", f"{cycle['intact']:,}",
            f"[bold red]{wrong}[/]" if wrong else "[bold green]0[/]", f"{cycle['in_flight_there']} / {cycle['in_flight_absent']}",
            f"{cycle['rolled_back']:,}", f"{cycle['times']['ready'] - cycle['times']['restart']:.1f} s")
    return table
