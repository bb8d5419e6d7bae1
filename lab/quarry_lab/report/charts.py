"""
Charts of the lab and the demo, drawn with matplotlib without a display.

Every function takes medians with their ranges (stats.Summary) and returns a Figure; `svg` and `save_png` turn it into what a page or a
directory needs and close it. One colour and one marker per variant, the same in every chart.
"""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

from . import matplotlib_home  # noqa: F401  (before matplotlib)

import matplotlib  # noqa: E402  isort: skip

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402

from .stats import Summary  # noqa: E402

# Okabe and Ito's palette: told apart by colour-blind eyes and in grey. InnoDB orange, Quarry blue, MyRocks green, in shades by variant.
COLORS = {
    "innodb": "#E69F00",
    "innodb-varbinary": "#D55E00",
    "innodb-page-compressed": "#F0E442",
    "rocksdb": "#009E73",
    "varbinary": "#D55E00",
    "quarry": "#0072B2",
    "quarry_ndb": "#56B4E9",
    "quarry-default": "#56B4E9",
    "quarry-head": "#56B4E9",
    "quarry-inline": "#0072B2",
    "quarry-head-4m": "#88CCEE",
    "quarry-inline-4m": "#332288",
    "quarry-varbinary": "#882255",
    "quarry-prefetch-1": "#56B4E9",
    "quarry-prefetch-256": "#0072B2",
    "quarry-prefetch-1024": "#332288",
    "quarry-lz4": "#CC79A7",
    "sequence-1": "#BBBBBB",
    "sequence-256": "#7F7F7F",
    "sequence-1024": "#444444",
    "innodb-2blob": "#E69F00",
    "innodb-2varbinary": "#D55E00",
    "rocksdb-2blob": "#009E73",
    "quarry-2blob": "#56B4E9",
    "quarry-2blob-default": "#0072B2",
    "quarry-2varbinary": "#882255",
    "target-ndb-prefetch-1": "#88CC99",
    "target-ndb-prefetch-256": "#44AA77",
    "target-ndb-prefetch-1024": "#117733",
    "target-ndb-2blob": "#44AA77",
    "target-ndb-2varbinary": "#117733",
    "text": "#0072B2",
    "text-compressed": "#56B4E9",
    "prepared": "#332288",
    "handler": "#117733",
    "handlersocket": "#44AA99",
    "connect": "#CC79A7",
    "innodb-embedded": "#D55E00",
    "target-ndb-api": "#117733",
    "quarry-baseline": "#7F7F7F",
    "floor": "#999999",
    "fronts-counting": "#0072B2",
    "fronts-sequence-1": "#BBBBBB",
    "fronts-sequence-256": "#7F7F7F",
    "fronts-sequence-1024": "#444444",
    "fronts-shard-1": "#DDAACC",
    "fronts-shard-256": "#CC79A7",
    "fronts-shard-1024": "#882255",
}
_FALLBACK = ("#332288", "#117733", "#AA4499", "#888888", "#88CCEE", "#DDCC77", "#CC6677", "#44AA99")
_MARKERS = "osD^vP*Xhd<>p"

STYLE = {
    "font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#E4E4E4", "grid.linewidth": 0.8, "axes.axisbelow": True,
    "axes.edgecolor": "#888888", "legend.frameon": False, "figure.facecolor": "white", "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Series:
    """One variant's figures over the x values of a chart; None where there is none."""

    key: str
    label: str
    points: list[Summary | None]


def color_of(key: str, index: int = 0) -> str:
    return COLORS.get(key, _FALLBACK[index % len(_FALLBACK)])


def marker_of(key: str, index: int = 0) -> str:
    known = list(COLORS)
    return _MARKERS[(known.index(key) if key in known else index) % len(_MARKERS)]


def _thousands(value: float, _position: int) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _error_bars(summaries: list[Summary]) -> list[list[float]] | None:
    if all(s.rounds == 1 for s in summaries):
        return None
    return [[s.median - s.low for s in summaries], [s.high - s.median for s in summaries]]


def draw_lines(axes, x_values: list, series: list[Series]) -> None:
    """Median as a line, range as error bars; x values are evenly spaced categories (1, 8, 32 threads)."""
    for index, one in enumerate(series):
        present = [(i, s) for i, s in enumerate(one.points) if s is not None]
        if not present:
            continue
        summaries = [s for _i, s in present]
        axes.errorbar([i for i, _s in present], [s.median for s in summaries], yerr=_error_bars(summaries), label=one.label,
                      color=color_of(one.key, index), marker=marker_of(one.key, index), markersize=5, linewidth=1.8, capsize=3)
    axes.set_xticks(range(len(x_values)), [str(x) for x in x_values])
    axes.set_xlim(-0.3, len(x_values) - 0.7)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
    axes.yaxis.set_major_formatter(_thousands)


def draw_bars(axes, groups: list[str], series: list[Series]) -> float:
    """
    Groups below each other, in them one bar per series: range as error bar, the median written behind it. Each bar has a line of its own, so
    that its figure has room whatever the neighbours are. Returns the height of all, in bars.
    """
    ticks, position = [], 0.0
    for group in range(len(groups)):
        present = [(index, one, summary) for index, one in enumerate(series) if (summary := one.points[group]) is not None]
        ticks.append(position + max(0, len(present) - 1) / 2)
        for index, one, summary in present:
            _draw_bar(axes, position, summary, color_of(one.key, index), one.label)
            position += 1
        position += 0.5 if len(series) > 1 else 0.0 if present else 1.0
    axes.set_yticks(ticks, groups)
    axes.set_ylim(position - 0.3, -0.7)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(_thousands)
    return position


def _draw_bar(axes, position: float, summary: Summary, color: str, label: str = "") -> None:
    axes.barh(position, summary.median, 0.82, xerr=_error_bars([summary]), color=color, label=label,
              error_kw={"elinewidth": 1, "ecolor": "#444444", "capsize": 2})
    axes.annotate(short_number(summary.median), (summary.high, position), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9,
                  color="#444444")


def short_number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.1f}k"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")


def lines(title: str, x_label: str, y_label: str, x_values: list, series: list[Series], size: tuple[float, float] = (6.4, 3.8)) -> Figure:
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        draw_lines(axes, x_values, series)
        axes.set(title=title, xlabel=x_label, ylabel=y_label)
        axes.legend()
    return figure


def bars(title: str, x_label: str, y_label: str, groups: list[str], series: list[Series], width: float = 7.2) -> Figure:
    """x_label: of the figures. y_label: of the groups. As high as its bars need."""
    with plt.rc_context({**STYLE, "axes.grid.axis": "x"}):
        figure, axes = plt.subplots(layout="constrained")
        height = draw_bars(axes, groups, series)
        axes.set(title=title, xlabel=x_label, ylabel=y_label)
        figure.set_size_inches(width, 0.2 * height + 0.9 + 0.12 * len(series))
        legend_below(figure)
    return figure


def legend_below(figure: Figure) -> None:
    """One for all axes, as wide as the figure allows; none for a single series."""
    handles: dict = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        columns = int(figure.get_figwidth() / (0.085 * max(map(len, handles)) + 0.6))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=max(1, min(len(handles), columns)))


@dataclass(frozen=True)
class Panel:
    """reference: a value to compare bars with, and its name."""

    title: str
    x_values: list
    series: list[Series]
    reference: tuple[float, str] | None = None


def line_panels(title: str, x_label: str, y_label: str, panels: list[Panel]) -> Figure:
    """Panels side by side, each with its own y scale (a 4 KB and a 448 KB value differ a hundredfold), one legend."""
    with plt.rc_context(STYLE):
        width = 3.1 * len(panels) + 0.6
        figure, all_axes = plt.subplots(1, len(panels), figsize=(width, 3.6), layout="constrained", squeeze=False)
        for axes, panel in zip(all_axes[0], panels, strict=True):
            draw_lines(axes, panel.x_values, panel.series)
            axes.set(title=panel.title, xlabel=x_label)
        all_axes[0][0].set_ylabel(y_label)
        legend_below(figure)
        figure.suptitle(title, fontweight="bold")
    return figure


def bar_panels(title: str, panels: list[Panel], same_scale: bool = False) -> Figure:
    """
    Panels side by side: one horizontal bar per series (its first point), named, with its median. same_scale: of what is compared from panel to panel;
    else each has a scale of its own.
    """
    with plt.rc_context(STYLE):
        names = [one.label for one in panels[0].series]
        size = (2.5 * len(panels) + 0.085 * max(map(len, names)) + 0.4, 0.34 * len(names) + 1.2)
        figure, all_axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False, sharey=True)
        for axes, panel in zip(all_axes[0], panels, strict=True):
            for index, one in enumerate(panel.series):
                if summary := one.points[0]:
                    _draw_bar(axes, index, summary, color_of(one.key, index))
            if panel.reference:
                axes.axvline(panel.reference[0], color="#888888", linestyle="--", linewidth=1)
                axes.set_xlabel(panel.reference[1], fontsize=9, color="#666666")
            axes.set_title(textwrap.fill(panel.title, 22))
            axes.set_yticks(range(len(names)), names)
            axes.margins(x=0.22)
            axes.set_xlim(left=0)
            axes.grid(visible=False)
            axes.set_xticks([])
            axes.spines["bottom"].set_visible(False)
        if same_scale:
            most = max(axes.get_xlim()[1] for axes in all_axes[0])
            for axes in all_axes[0]:
                axes.set_xlim(0, most)
        all_axes[0][0].invert_yaxis()
        figure.suptitle(textwrap.fill(title, int(size[0] * 9)), fontweight="bold", fontsize=11)
    return figure


def save_png(figure: Figure, path: Path, dots_per_inch: int = 130, note: str = "") -> Path:
    """note: stands below the chart, for a picture is passed on without its page."""
    if note:
        # The layout is kept as it is: a tight box would draw what stands outside the axes at its own lower edge, upon the note.
        figure.canvas.draw()
        figure.set_layout_engine("none")
        for legend in figure.legends:
            legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
        figure.text(0.01, -0.01, textwrap.fill(note, int(figure.get_figwidth() * 15)), va="top", fontsize=8, color="#666666")
    figure.savefig(path, dpi=dots_per_inch, bbox_inches="tight" if note else None)
    plt.close(figure)
    return path


def svg(figure: Figure) -> str:
    """An <svg> element to stand inside an HTML page, on the page's own background. Its titles are its name for screen readers."""
    target = io.StringIO()
    name = ", ".join(title for title in (figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)) if title)
    # No date: the same figures give the same bytes.
    figure.savefig(target, format="svg", transparent=True, metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    plt.close(figure)
    text = target.getvalue()
    return f'<svg role="img" aria-label="{escape(name)}"' + text[text.index("<svg") + 4 :]
