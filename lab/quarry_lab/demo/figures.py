"""The charts that only the demo has: space while live data is overwritten, and commits around kill -9."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..report import charts
from ..report.stats import counted

_QUARRY, _GOOD, _BAD, _GREY = charts.COLORS["quarry"], "#1f7a4d", "#c0312b", "#666666"
_SLOT_SECONDS = 0.05  # in which a client's commits are counted
_PHASES = (
    ("load", "kill", _QUARRY, 0.06, "clients commit"),
    ("kill", "ready", _BAD, 0.15, "down, recovering"),
    ("ready", "verified", _GOOD, 0.15, "every row compared"),
)


def space(overwrite: dict) -> Figure:
    """
    Megabytes on disk over overwrites: a line that falls straight down where GC freed space and nothing was written, with what lives and the
    bound to compare with. Below each overwrite stands its peak, as a multiple of what lives.
    """
    live, bound = overwrite["live_bytes"] / 1e6, overwrite["bound"]
    at, taken = zip(*overwrite["samples"], strict=True)
    with plt.rc_context(charts.STYLE):
        figure, axes = plt.subplots(figsize=(9.5, 4.2), layout="constrained")
        axes.fill_between(at, [size / 1e6 for size in taken], color=_QUARRY, alpha=0.14, linewidth=0)
        axes.plot(at, [size / 1e6 for size in taken], color=_QUARRY, label="Quarry, on disk")
        axes.axhline(live, color=_GOOD, linestyle="--", linewidth=1.2, label=f"live: {live:.1f} MB")
        axes.axhline(bound * live, color=_BAD, linestyle="--", linewidth=1.2, label=f"bound: {bound:g} × live")
        if innodb := overwrite["innodb_bytes"]:
            axes.step(range(len(innodb)), [size / 1e6 for size in innodb], where="post", color=charts.COLORS["innodb"], label="InnoDB")
        peaks = ["0", *(f"{n}\n{peak / 1e6 / live:.2f}" for n, peak in enumerate(overwrite["peak_bytes"], 1))]
        axes.set_xticks(range(len(peaks)), peaks, fontsize=9)
        axes.set_xlim(0, max(1, at[-1]))
        axes.set_ylim(bottom=0)
        axes.set(title="Megabytes on disk", xlabel="times overwritten; below it: on disk ÷ live, at most")
        charts.legend_below(figure)
    return figure


def kills(cycles: list[dict]) -> Figure:
    """One lane per client: a mark where commits were acknowledged (the stronger the more), the kills, recovery and comparison."""
    lanes = len(cycles[0]["timeline"])
    busiest = max((count for cycle in cycles for lane in cycle["timeline"] for _slot, count in lane["commits_by_50ms"]), default=1)
    with plt.rc_context({**charts.STYLE, "axes.grid": False}):
        figure, axes = plt.subplots(figsize=(9.5, 0.24 * lanes + 2.0), layout="constrained")
        for cycle in cycles:
            _draw_cycle(axes, cycle, lanes)
            for i, lane in enumerate(cycle["timeline"]):
                slots = [(slot * _SLOT_SECONDS, _SLOT_SECONDS) for slot, _count in lane["commits_by_50ms"]]
                strengths = [to_rgba(_QUARRY, 0.25 + 0.75 * count / busiest) for _slot, count in lane["commits_by_50ms"]]
                axes.broken_barh(slots, (i + 0.1, 0.8), facecolors=strengths, linewidth=0)
                if lane["in_flight_since"] is not None:
                    axes.plot(cycle["times"]["kill"], i + 0.5, marker="o", color=_BAD, markerfacecolor="white")
        axes.set_yticks([i + 0.5 for i in range(lanes)], [f"client {i + 1}" for i in range(lanes)])
        axes.set(xlabel="seconds", xlim=(0, max(cycle["times"]["verified"] for cycle in cycles)), ylim=(lanes, 0))
        axes.tick_params(left=False)
        named: list = [Patch(color=color, alpha=alpha, label=text) for _begin, _end, color, alpha, text in _PHASES]
        under_way = "a transaction under way, never acknowledged"
        named.append(Line2D([], [], linestyle="", marker="o", color=_BAD, markerfacecolor="white", label=under_way))
        figure.legend(handles=named, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _draw_cycle(axes: Axes, cycle: dict, lanes: int) -> None:
    times, wrong = cycle["times"], len(cycle["wrong"])
    for begin, end, color, alpha, _text in _PHASES:
        axes.axvspan(times[begin], times[end], color=color, alpha=alpha, linewidth=0)
    axes.plot([times["kill"]] * 2, [0, lanes], color=_BAD, linewidth=2)
    found = f"{counted(wrong, 'row')} wrong" if wrong else f"all {counted(cycle['intact'], 'row')} intact"
    for text, color, line in (
        (f"kill -9, number {cycle['cycle']}", _BAD, 2),
        (f"{counted(cycle['acknowledged'], 'commit')} acknowledged", _GREY, 1),
        (found, _BAD if wrong else _GOOD, 0),
    ):
        axes.annotate(text, (times["kill"], 0), xytext=(0, 5 + 12 * line), textcoords="offset points", ha="right", fontsize=9, color=color)
