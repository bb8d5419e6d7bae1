"""
The report's section on the small E1 curve, beside what was published. Figures here are ratios of this run's own
rounds.
"""

from __future__ import annotations

from html import escape

from .. import stats
from . import svg
from .curve import LABELS, SIZES_BYTES

_KIB = 1024
_CLEAR = 0.05  # a median ratio within this of 1, or ranges on both sides of 1, is called no clear difference


def section(curve: dict, machine: dict) -> str:
    threads = sorted({p["threads"] for p in curve["points"]})
    charts = "".join(_chart(curve, size, threads) for size in SIZES_BYTES)
    statements = "\n".join(
        statement.replace(" sbtest1 ", " sbtest ") + ";" for statement in curve["statements"].values()
    )
    rounds = len({p["round"] for p in curve["points"]})
    return (
        "<section><h2>How much should stay in the row?</h2>"
        f"<p>Experiment E1 in small: {curve['read_percent']}% point reads and {100 - curve['read_percent']}% updates of"
        " one value, over the number of threads. The published one ran MySQL Cluster 9.4 "
        "on a 64-core server with 2 TB of memory: 2 data nodes, 16 SQL nodes, 32 to 512 threads over a network. "
        f"Here it is one server on {machine['processors']} processors that it shares with the client, {threads[0]} to"
        f" {threads[-1]} threads, values of 4 and 64 KB, "
        f"{curve['dataset_bytes_per_variant'] >> 20} MB a variant, points of {curve['seconds_per_point']} s, {rounds}"
        " rounds. Directions can be compared, sizes of effects hardly.</p>"
        f'<div class="grid two">{charts}</div>'
        '<div class="scroll"><table class="text"><tr><th>published finding (MySQL'
        f" Cluster)</th><th>here</th><th></th></tr>{_findings(curve, threads)}</table></div>"
        f"<pre>{escape(statements)}</pre></section>"
    )


def _points(curve: dict, variant: str, size: int, threads: int) -> dict[int, float]:
    return {
        p["round"]: p["events_per_second"]
        for p in curve["points"]
        if (p["variant"], p["size_bytes"], p["threads"]) == (variant, size, threads)
    }


def _chart(curve: dict, size: int, threads: list[int]) -> str:
    series = []
    for key, label in LABELS.items():
        by_threads = [_points(curve, key, size, count) for count in threads]
        if any(by_threads):
            series.append(
                svg.Line(
                    key,
                    "default head" if key == "quarry-head" else label,
                    [stats.summarize(list(points.values())) if points else None for points in by_threads],
                )
            )
    title = f"{size // _KIB} KB values: transactions per second"
    return (
        "<figure"
        f' class="card"><h3>{title}</h3>{svg.lines(title, [str(t) for t in threads], series, "threads")}</figure>'
    )


def _ratio(curve: dict, size: int, variant: str, reference: str, threads: list[int]) -> list[tuple[int, stats.Summary]]:
    found = []
    for count in threads:
        ratio = stats.paired_ratio(_points(curve, variant, size, count), _points(curve, reference, size, count))
        if ratio:
            found.append((count, ratio))
    return found


def _verdict(ratios: list[tuple[int, stats.Summary]]) -> str:
    if not ratios:
        return "not measured"
    up = sum(r.low > 1 + _CLEAR for _count, r in ratios)
    down = sum(r.high < 1 - _CLEAR for _count, r in ratios)
    if up and not down:
        return f"same direction at {up} of {len(ratios)} thread counts"
    if down and not up:
        return f"opposite direction at {down} of {len(ratios)} thread counts"
    return "no clear difference here" if not up and not down else "differs with the number of threads"


def _findings(curve: dict, threads: list[int]) -> str:
    claims = [
        ("4 KB: inline 15 to 20% above the default head", 4 * _KIB, "quarry-inline", "quarry-head"),
        ("4 KB: VARBINARY about 50% above inline", 4 * _KIB, "quarry-varbinary", "quarry-inline"),
        (
            "64 KB: inline 5% above the default head at 32 users (with 4 MB batches)",
            64 * _KIB,
            "quarry-inline",
            "quarry-head",
        ),
    ]
    rows = []
    for text, size, variant, reference in claims:
        ratios = _ratio(curve, size, variant, reference, threads)
        here = "; ".join(f"{count} thread{'s' * (count > 1)}: {r.median:.2f}×" for count, r in ratios)
        rows.append((text, here, _verdict(ratios)))
    rows.append(
        (
            "64 KB: +60% from 32 to 64 users, saturation at 512",
            "–",
            f"not applicable here: {threads[-1]} threads at most",
        )
    )
    return "".join(
        f'<tr><td>{escape(a)}</td><td>{escape(b)}</td><td class="muted">{escape(c)}</td></tr>' for a, b, c in rows
    )
