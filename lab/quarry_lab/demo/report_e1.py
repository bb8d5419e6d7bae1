"""
The report's section on the small E1 curve, beside what was published (published/e1.toml). Figures here are ratios of
this run's own rounds.
"""

from __future__ import annotations

from html import escape

from matplotlib.figure import Figure

from ..design import published
from ..design.published import Figure as Published
from ..design.rules import against, gain
from ..report import charts, page, stats
from ..report.stats import counted
from ..report.verdicts import MIXED
from . import summary
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
    statements = "\n".join(statement.replace(" sbtest1 ", " sbtest ") + ";" for statement in curve["statements"].values())
    rounds = len({p["round"] for p in curve["points"]})
    return page.section(
        "How much should stay in the row?",
        f"<p>Experiment E1 in small: {curve['read_percent']}% point reads and {100 - curve['read_percent']}% updates of"
        f" one value, over the number of threads. Published: {escape(_DOCUMENT.setup)}</p>"
        f"<p>Here one server shares {counted(machine['processors'], 'processor')} with the client. It ran {threads[0]} to"
        f" {counted(threads[-1], 'thread')}, values of 4 and 64 KB, {curve['dataset_bytes_per_variant'] >> 20} MB a variant, points of"
        f" {curve['seconds_per_point']} s, {counted(rounds, 'round')}. Directions can be compared, sizes of effects hardly.</p>",
        page.gallery(_chart(curve, size, threads) for size in SIZES_BYTES),
        page.words_table(("published finding (MySQL Cluster)", "here", "verdict"), _findings(curve, threads)),
        f"<pre>{escape(statements)}</pre>",
    )


def _points(curve: dict, variant: str, size: int, threads: int) -> dict[int, float]:
    return {
        p["round"]: p["events_per_second"]
        for p in curve["points"]
        if (p["variant"], p["size_bytes"], p["threads"]) == (variant, size, threads)
    }


def _chart(curve: dict, size: int, threads: list[int]) -> Figure:
    series = [
        charts.Series(key, "default head" if key == _HEAD else label, [summary.curve_summary(curve, key, size, count) for count in threads])
        for key, label in LABELS.items()
    ]
    series = [one for one in series if any(one.points)]
    return charts.lines(f"{size // _KIB} KB values", "threads", "transactions per second", threads, series, size=(4.6, 3.6))


def _ratio(curve: dict, size: int, variant: str, reference: str, threads: list[int]) -> list[tuple[int, stats.Summary]]:
    found = []
    for count in threads:
        ratio = stats.paired_ratio(_points(curve, variant, size, count), _points(curve, reference, size, count))
        if ratio:
            found.append((count, ratio))
    return found


def _verdict(figure: Published, ratios: list[tuple[int, stats.Summary]]) -> str:
    """The demo's rounds are too short for a verdict of the lab: what they look like, by its rules."""
    if not ratios:
        return "not measured"
    states = {against(gain(ratio), figure.judged, 0.0) for _count, ratio in ratios}
    return f"looks {states.pop() if len(states) == 1 else MIXED}"


def _findings(curve: dict, threads: list[int]) -> list[tuple[str, str, str]]:
    rows = []
    for name, (size, variant, reference) in _COMPARED.items():
        figure, ratios = _DOCUMENT.figure(name), _ratio(curve, size, variant, reference, threads)
        here = "; ".join(f"{counted(count, 'thread')}: {r.median:.2f}×" for count, r in ratios)
        rows.append((escape(f"{figure.says}: {figure.text}"), escape(here or "–"), escape(_verdict(figure, ratios))))
    return rows
