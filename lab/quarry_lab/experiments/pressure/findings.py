"""
The rule of `pressure` for each row of the targets' grid: the ratio to InnoDB with the machine's memory taken, over that with it free.

A row is a cell without its condition. Both ratios of a round come from that round's blocks; their quotient is what was kept.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, throughput
from ...design.plan import OPERATION_LABELS
from ...design.variants import KIB
from ...report import charts, stats
from ...report.stats import Summary
from ...report.verdicts import Finding, Verdict, figures_of, judge, not_measured
from ...run.tables import head, size_label
from ..target_rules import INNODB, WORDS, ratio_text
from ..targets.findings import COUNTER_VARIANTS

FREE, TAKEN = CONDITIONS = ("free", "taken")
KEPT_MIN = 0.9
_RATIO = "QUARRY / InnoDB"


@dataclass(frozen=True)
class Kept:
    """The ratios to InnoDB of a row in both conditions, and the one over the other."""

    free: Summary
    taken: Summary
    kept: Summary


def pair(row: CellKey) -> tuple[str, str]:
    """The variant of Quarry and that of InnoDB."""
    innodb, quarry = COUNTER_VARIANTS if row.operation == "counter" else (INNODB, "quarry")
    return quarry, innodb


def in_both(row: CellKey) -> tuple[CellKey, CellKey]:
    """The row's cells: memory free, memory taken."""
    return replace(row, setting=FREE), replace(row, setting=TAKEN)


def rows_of(cells: Cells) -> list[CellKey]:
    return sorted({replace(key, setting="") for key in cells.keys()})


def kept_of(cells: Cells, row: CellKey) -> Kept | None:
    """None where no round has both engines in both conditions."""
    ours, theirs = pair(row)
    free, taken = (stats.round_ratios(cells.values(key, ours, throughput), cells.values(key, theirs, throughput)) for key in in_both(row))
    kept = stats.paired_ratio(taken, free)
    return Kept(*(stats.summarize(list(ratios.values())) for ratios in (free, taken)), kept) if kept else None


def rounds_at_limit(cells: Cells, key: CellKey, variant: str) -> str:
    points = cells.rounds_of([key], (variant,))
    return f"{sum(point['limit_reached'] for point in points)}/{len(points)}"


def verdicts(cells: Cells, rows: list[CellKey], parameters: dict) -> list[Verdict]:
    return [_verdict(cells, row, parameters) for row in rows]


def _verdict(cells: Cells, row: CellKey, parameters: dict) -> Verdict:
    finding = Finding(f"pressure-{row.operation}-{row.size_bytes // KIB}kb-x{row.threads}",
                      f"{size_label(row.size_bytes)} {OPERATION_LABELS[row.operation]}, {row.threads} threads: with the machine's memory taken at least "
                      f"{KEPT_MIN} of the ratio to InnoDB with it free",
                      f"median of the rounds' ratios to InnoDB with memory taken, each over that of the same round with memory free, >= {KEPT_MIN}")
    found = kept_of(cells, row)
    if not found:
        return not_measured(finding, "no round of this run has both engines in both conditions")
    points = cells.rounds_of(in_both(row), pair(row))
    never = "" if any(p["limit_reached"] for p in points) else "; the limit was never reached"
    text = (f"{found.kept.median:.2f} kept{found.kept.range_text('{:.2f}'.format)}: {ratio_text(found.free)} with memory free, "
            f"{ratio_text(found.taken)} taken{never}")
    figures = {"kept": figures_of(found.kept), "ratio_free": figures_of(found.free), "ratio_taken": figures_of(found.taken)}
    return judge(finding, found.kept.median >= KEPT_MIN, text, figures, points, parameters, WORDS)


# --- what people see ---
def kept_table(cells: Cells) -> Table:
    table = Table(title="ratio to InnoDB with the machine's memory free and taken", header_style="bold", box=box.SIMPLE_HEAD,
                  caption="limit reached: rounds in which the server had all of its memory, so that the kernel took some back, QUARRY and InnoDB", caption_justify="left")
    for heading in ("", "free", "taken", "kept", "limit reached"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in rows_of(cells):
        if found := kept_of(cells, row):
            full = ", ".join(rounds_at_limit(cells, in_both(row)[1], variant) for variant in pair(row))
            kept = f"{found.kept.median:.2f}{found.kept.range_text('{:.2f}'.format)}"
            table.add_row(head(row), ratio_text(found.free), ratio_text(found.taken), kept, full)
    return table


def figures(cells: Cells) -> dict:
    """`pressure`: the ratios, both conditions side by side; `throughput`: what each engine did in them."""
    rows = rows_of(cells)
    if not rows:
        return {}
    ratios = [charts.Series(condition, f"memory {condition}", [cells.ratio(replace(row, setting=condition), *pair(row)) for row in rows])
              for condition in CONDITIONS]
    heads = [textwrap.fill(head(row), 18) for row in rows]
    panels = [charts.Panel(title, list(CONDITIONS),
                           [charts.Series(v, cells.label(v), [cells.summary(key, v, throughput) for key in in_both(row)]) for v in pair(row)])
              for title, row in zip(heads, rows, strict=True)]
    return {"pressure": charts.bars(f"{_RATIO}, the machine's memory free and taken", "", _RATIO, heads, ratios, size=(max(7.2, 1.7 * len(rows)), 4.2)),
            "throughput": charts.line_panels("the machine's memory free and taken", "memory", "events per second", panels)}
