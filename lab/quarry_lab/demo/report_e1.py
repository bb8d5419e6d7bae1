"""
The report's section on the small E1 curve, beside what was published (published/e1.toml). Figures here are ratios of
this run's own rounds.
"""

from __future__ import annotations

from html import escape

from ..design import published
from ..design.published import Figure
from ..design.rules import against, gain
from ..report import stats
from ..report.verdicts import MIXED
from . import svg
from .curve import LABELS, SIZES_BYTES

_KIB = 1024
_DOCUMENT = published.document("e1")
_INLINE, _HEAD, _VARBINARY = "quarry-inline", "quarry-head", "quarry-varbinary"
# figure -> (bytes of a value, variant, what it is compared with)
_COMPARED = {
    "4kb-inline": (4 * _KIB, _INLINE, _HEAD),
    "4kb-varbinary": (4 * _KIB, _VARBINARY, _INLINE),
    "64kb-inline": (64 * _KIB, _INLINE, _HEAD),
}


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
        f" one value, over the number of threads. Published: {escape(_DOCUMENT.setup)} "
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


def _verdict(figure: Figure, ratios: list[tuple[int, stats.Summary]]) -> str:
    """The demo's rounds are too short for a verdict of the lab: what they look like, by its rules."""
    if not ratios:
        return "not measured"
    states = {against(gain(ratio), figure.judged, 0.0) for _count, ratio in ratios}
    return f"looks {states.pop() if len(states) == 1 else MIXED}"


def _findings(curve: dict, threads: list[int]) -> str:
    rows = []
    for name, (size, variant, reference) in _COMPARED.items():
        figure, ratios = _DOCUMENT.figure(name), _ratio(curve, size, variant, reference, threads)
        here = "; ".join(f"{count} thread{'s' * (count > 1)}: {r.median:.2f}×" for count, r in ratios)
        rows.append((f"{figure.says}: {figure.text}", here, _verdict(figure, ratios)))
    return "".join(
        f'<tr><td>{escape(a)}</td><td>{escape(b)}</td><td class="muted">{escape(c)}</td></tr>' for a, b, c in rows
    )
