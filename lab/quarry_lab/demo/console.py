"""The tables that the demo prints at its end."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from . import summary
from .curve import LABELS, SIZES_BYTES
from .tables import DATA_SETS, VARIANTS


def print_comparison(console: Console, result: dict) -> None:
    chosen = result["settings"]["variants"]
    for data_set in DATA_SETS:
        keys = [key for key in data_set.variants if key in chosen]
        if not keys:
            continue
        described = result["data_sets"][data_set.key]
        rounds = result["settings"]["rounds"]
        table = Table(
            title=(
                f"{data_set.label}: {summary.counted(described['files'], 'file')}, {described['bytes'] / 1e6:,.0f} MB "
                f"[dim](median{' and range' if rounds > 1 else ''} of {rounds} round{'s' * (rounds > 1)})[/dim]"
            ),
            title_justify="left",
            title_style="bold",
        )
        table.add_column("")
        for key in keys:
            table.add_column(VARIANTS[key].label, justify="right")
        if _compares(keys):
            table.add_column("Quarry to LONGBLOB", justify="right")
        for measure in summary.measures(result["settings"]):
            cells = []
            for key in keys:
                median, spread = summary.form(summary.summarize(result, data_set.key, key, measure), measure)
                cells.append(f"[bold]{median}[/bold]" + (f"\n[dim]{spread}[/dim]" if spread else ""))
            if _compares(keys):
                ratio = summary.ratio(result, data_set.key, "quarry", "innodb", measure)
                style = {1: "green", -1: "red", 0: "default"}[summary.verdict(ratio, measure)]
                cells.append(f"[{style}]{ratio.median:.2f}x[/{style}]" if ratio else "")
            table.add_row(measure.label + (f" [dim]{measure.unit}[/dim]" if measure.unit else ""), *cells)
        console.print()
        console.print(table, highlight=False)


def _compares(keys: list[str]) -> bool:
    return "quarry" in keys and "innodb" in keys


def print_curve(console: Console, curve: dict) -> None:
    threads = sorted({p["threads"] for p in curve["points"]})
    table = Table(
        title=f"E1 in small: transactions/s, {curve['read_percent']}% reads and {100 - curve['read_percent']}% updates",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("value")
    table.add_column("column")
    for count in threads:
        table.add_column(f"{count} thread{'s' * (count > 1)}", justify="right")
    for size in SIZES_BYTES:
        for key in LABELS:
            cells = [summary.curve_summary(curve, key, size, count) for count in threads]
            if any(cells):
                table.add_row(f"{size >> 10} KB", LABELS[key], *(f"{c.median:,.0f}" if c else "–" for c in cells))
    console.print()
    console.print(table, highlight=False)


def print_crash(console: Console, crash: dict) -> None:
    table = Table(title="kill -9 in mid-load: what survives", title_justify="left", title_style="bold")
    for column in (
        "kill",
        "commits acknowledged before it",
        "acknowledged rows checked",
        "intact",
        "lost or torn",
        "under way: there / absent",
        "back after",
    ):
        table.add_column(column, justify="right")
    for cycle in crash["cycles"]:
        wrong = len(cycle["wrong"])
        table.add_row(
            str(cycle["cycle"]),
            f"{cycle['acknowledged']:,}",
            f"{cycle['acknowledged_rows']:,}",
            f"{cycle['intact']:,}",
            f"[red]{wrong}[/red]" if wrong else "[green]0[/green]",
            f"{cycle['in_flight_there']} / {cycle['in_flight_absent']}",
            f"{cycle['times']['ready'] - cycle['times']['restart']:.1f} s",
        )
    console.print()
    console.print(table, highlight=False)
