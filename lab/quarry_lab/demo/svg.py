"""
The report's charts as inline SVG, coloured by the page's own style sheet, so that they follow its light and dark
appearance.

Pure functions from figures to text. Widths are in the units of the viewBox; the page scales them. Classes used:
s-<series key> (colour of a series), ink, muted, grid, bad. Every chart has a title for screen readers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Callable

from ..report.stats import Summary


@dataclass(frozen=True)
class Bar:
    key: str
    label: str
    summary: Summary


@dataclass(frozen=True)
class Line:
    key: str
    label: str
    points: list[Summary | None]  # one for each x


@dataclass(frozen=True)
class Level:
    """A line across the whole chart."""

    key: str
    label: str
    value: float


@dataclass(frozen=True)
class Steps:
    """A value that holds from each whole number to the next."""

    key: str
    label: str
    values: list[float]


def _svg(width: float, height: float, title: str, body: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}"'
        ' xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _text(x: float, y: float, text: str, css: str = "ink", anchor: str = "start", size: float = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}" font-size="{size:g}">{escape(text)}</text>'
    )


def nice_ticks(maximum: float, count: int = 4) -> list[float]:
    """0 and up to `count` round numbers, the last at or above the maximum."""
    if maximum <= 0:
        return [0, 1]
    raw = maximum / count
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    return [i * step for i in range(math.ceil(maximum / step) + 1)]


def short_number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def bars(
    title: str, rows: list[Bar], form: Callable[[float], str], reference: float | None = None, reference_label: str = ""
) -> str:
    """
    Horizontal bars of medians with the range as a whisker, the figure at the end; optionally a dashed line to compare
    with.
    """
    width, row_height, top = 420.0, 44.0, 4.0
    room = width - 82
    maximum = max([row.summary.high for row in rows] + ([reference] if reference else [])) or 1
    body, y = [], top
    for row in rows:
        length = room * row.summary.median / maximum
        body.append(_text(0, y + 12, row.label, "muted", size=12.5))
        body.append(
            f'<rect x="0" y="{y + 18:.1f}" width="{max(length, 1.5):.1f}" height="14" rx="2.5" class="s-{row.key}"/>'
        )
        if row.summary.rounds > 1:
            low, high, middle = room * row.summary.low / maximum, room * row.summary.high / maximum, y + 25
            body.append(
                f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 4:.1f}v8M{high:.1f}'
                f' {middle - 4:.1f}v8" class="whisker"/>'
            )
        end = max(length, room * row.summary.high / maximum if row.summary.rounds > 1 else 0)
        body.append(_text(end + 8, y + 30, form(row.summary.median), "ink strong", size=14))
        y += row_height
    if reference:
        x = room * reference / maximum
        for i in range(len(rows)):
            body.append(f'<path d="M{x:.1f} {top + i * row_height + 15:.1f}v20" class="reference"/>')
        body.append(f'<path d="M{x:.1f} {y - 7:.1f}v9" class="reference"/>')
        body.append(_text(max(x, 40), y + 14, reference_label, "muted", "middle", 11))
        y += 18
    return _svg(width, y + 2, title, body)


def histogram(title: str, octaves: list[dict], generated_label: str) -> str:
    """Files and bytes by octave of size: two rows of columns that share the x axis."""
    width, row_height, left = 960.0, 120.0, 8.0
    slot = (width - 2 * left) / len(octaves)
    body = []
    for row, (key, label, form) in enumerate(
        (("files", "files", lambda v: f"{v:,}"), ("bytes", "megabytes", lambda v: f"{v / 1e6:.1f}"))
    ):
        base = 26 + row_height + row * (row_height + 42)
        maximum = max(o[key] for o in octaves) or 1
        body.append(_text(left, base - row_height - 10, label, "ink strong", size=13))
        for i, octave in enumerate(octaves):
            height = (row_height - 16) * octave[key] / maximum
            x = left + i * slot
            body.append(
                f'<rect x="{x + 3:.1f}" y="{base - height:.1f}" width="{slot - 6:.1f}" height="{max(height, 0.8):.1f}"'
                ' rx="2" class="s-quarry"/>'
            )
            if key == "files" and octave["generated_files"]:
                part = height * octave["generated_files"] / octave["files"]
                body.append(
                    f'<rect x="{x + 3:.1f}" y="{base - part:.1f}" width="{slot - 6:.1f}" height="{part:.1f}" rx="2"'
                    ' class="s-generated"/>'
                )
            body.append(_text(x + slot / 2, base - height - 5, form(octave[key]), "muted", "middle", 11))
        body.append(f'<path d="M{left} {base:.1f}H{width - left}" class="axis"/>')
    bottom = 26 + row_height * 2 + 42
    for i, octave in enumerate(octaves):
        body.append(
            _text(left + i * slot + slot / 2, bottom + 16, size_label(octave["from_bytes"]), "muted", "middle", 11)
        )
    body.append(_text(left, bottom + 34, "size, from the given to twice that" + generated_label, "muted", size=11))
    return _svg(width, bottom + 40, title, body)


def size_label(size_bytes: int) -> str:
    return f"{size_bytes >> 10} KB" if size_bytes < 1 << 20 else f"{size_bytes >> 20} MB"


def lines(title: str, xs: list[str], series: list[Line], x_label: str) -> str:
    """
    Lines over ordered categories (each twice or four times the last), from zero, with ranges as whiskers and names at
    their ends.
    """
    width, height, left, right, top, bottom = 460.0, 290.0, 46.0, 130.0, 12.0, 44.0
    maximum = max(p.high for line in series for p in line.points if p)
    ticks = nice_ticks(maximum)
    plot_width, plot_height = width - left - right, height - top - bottom

    def x_of(i: int) -> float:
        return left + 14 + (plot_width - 28) * (i / (len(xs) - 1) if len(xs) > 1 else 0.5)

    def y_of(value: float) -> float:
        return top + plot_height * (1 - value / ticks[-1])

    body = []
    for tick in ticks:
        body.append(f'<path d="M{left} {y_of(tick):.1f}H{width - right}" class="{"axis" if tick == 0 else "grid"}"/>')
        body.append(_text(left - 7, y_of(tick) + 4, short_number(tick), "muted", "end", 11))
    for i, x in enumerate(xs):
        body.append(_text(x_of(i), height - bottom + 17, x, "muted", "middle", 11))
    body.append(_text(left + plot_width / 2, height - 8, x_label, "muted", "middle", 11))
    ends = []
    for line in series:
        known = [(x_of(i), p) for i, p in enumerate(line.points) if p]
        path = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y_of(p.median):.1f}" for i, (x, p) in enumerate(known))
        body.append(f'<path d="{path}" class="line s-{line.key}"/>')
        for x, p in known:
            body.append(f'<path d="M{x:.1f} {y_of(p.low):.1f}V{y_of(p.high):.1f}" class="line thin s-{line.key}"/>')
            body.append(f'<circle cx="{x:.1f}" cy="{y_of(p.median):.1f}" r="4" class="dot s-{line.key}"/>')
        ends.append([y_of(known[-1][1].median), line])
    for y, line in _spread_labels(ends, 15.0):
        body.append(_text(width - right + 8, y + 4, line.label, f"label s-{line.key}", size=12))
    return _svg(width, height, title, body)


def sawtooth(
    title: str, samples: list[tuple[float, float]], levels: list[Level], steps: list[Steps], label: str, notes: list[str]
) -> str:
    """
    Bytes over overwrites: the samples as a filled line, which falls straight down where nothing was written, with
    levels to compare with. `notes` stand below the overwrites that they end, from the first on.
    """
    width, height, left, right, top, bottom = 960.0, 350.0, 46.0, 172.0, 14.0, 48.0
    highest = max([taken for _at, taken in samples] + [v for line in steps for v in line.values])
    ticks = nice_ticks(highest / 1e6)
    end = max(samples[-1][0], 1)

    def x_of(overwrites: float) -> float:
        return left + (width - left - right) * overwrites / end

    def y_of(taken: float) -> float:
        return top + (height - top - bottom) * (1 - taken / 1e6 / ticks[-1])

    body = []
    for tick in ticks:
        y = y_of(tick * 1e6)
        body.append(f'<path d="M{left} {y:.1f}H{width - right}" class="{"axis" if tick == 0 else "grid"}"/>')
        body.append(_text(left - 7, y + 4, short_number(tick), "muted", "end", 11))
    for number in range(int(end) + 1):
        body.append(_text(x_of(number), height - bottom + 17, str(number), "muted", "middle", 11))
    for number, note in enumerate(notes, 1):
        body.append(_text(x_of(number), height - bottom + 33, note, "s-quarry label", "middle", 10))
    body.append(_text(width - right + 24, height - bottom + 17, "times overwritten", "muted", size=11))
    body.append(_text(width - right + 24, height - bottom + 33, "on disk ÷ live, at most", "s-quarry label", size=11))
    line = " ".join(f"{'L' if i else 'M'}{x_of(at):.1f} {y_of(taken):.1f}" for i, (at, taken) in enumerate(samples))
    body.append(f'<path d="{line} V{y_of(0):.1f} H{x_of(samples[0][0]):.1f} Z" class="area s-quarry"/>')
    body.append(f'<path d="{line}" class="line s-quarry"/>')
    ends = [[y_of(samples[-1][1]), Level("quarry", label, samples[-1][1])]]
    for level in levels:
        body.append(f'<path d="M{left} {y_of(level.value):.1f}H{width - right}" class="level {level.key}"/>')
        ends.append([y_of(level.value), level])
    for step in steps:
        path = f"M{x_of(0):.1f} {y_of(step.values[0]):.1f}" + "".join(
            f"H{x_of(i):.1f}V{y_of(value):.1f}" for i, value in enumerate(step.values)
        )
        body.append(f'<path d="{path}" class="line s-{step.key}"/>')
        ends.append([y_of(step.values[-1]), Level(step.key, step.label, step.values[-1])])
    for y, level in _spread_labels(ends, 15.0):
        body.append(_text(width - right + 8, y + 4, level.label, f"label s-{level.key} {level.key}", size=12))
    return _svg(width, height, title, body)


def _spread_labels(ends: list[list], gap: float) -> list[list]:
    """Moves labels apart that would overlap, keeping their order."""
    ends.sort(key=lambda end: end[0])
    for i in range(1, len(ends)):
        ends[i][0] = max(ends[i][0], ends[i - 1][0] + gap)
    return ends


_PHASES = (
    ("load", "kill", "load", "clients commit"),
    ("kill", "ready", "down", "down, recovering"),
    ("ready", "verified", "compare", "every row compared"),
)


def timeline(title: str, cycles: list[dict]) -> str:
    """
    One lane per client: a tick where commits were acknowledged (the stronger the more), the kills, recovery and
    comparison.
    """
    width, left, right, lane_height, top = 960.0, 62.0, 8.0, 17.0, 66.0
    end = max(cycle["times"]["verified"] for cycle in cycles)
    lanes = len(cycles[0]["timeline"])
    lanes_bottom = top + lanes * lane_height
    scale = (width - left - right) / end

    def x_of(seconds: float) -> float:
        return left + seconds * scale

    body = [
        _text(left - 8, top + lane_height * (i + 0.5) + 4, f"client {i + 1}", "muted", "end", 10.5)
        for i in range(lanes)
    ]
    busiest = max(
        (count for cycle in cycles for lane in cycle["timeline"] for _slot, count in lane["commits_by_50ms"]), default=1
    )
    for cycle in cycles:
        body += _timeline_phases(cycle, x_of, top, lanes_bottom)
        for i, lane in enumerate(cycle["timeline"]):
            y = top + i * lane_height
            for slot, count in lane["commits_by_50ms"]:
                opacity = 0.25 + 0.75 * count / busiest
                body.append(
                    f'<rect x="{x_of(slot * 0.05):.1f}" y="{y + 2:.1f}" width="{max(0.05 * scale - 0.4, 0.6):.2f}"'
                    f' height="{lane_height - 4:.1f}" class="s-quarry" opacity="{opacity:.2f}"/>'
                )
            if lane["in_flight_since"] is not None:
                body.append(
                    f'<circle cx="{x_of(cycle["times"]["kill"]):.1f}" cy="{y + lane_height / 2:.1f}" r="4"'
                    ' class="hollow"/>'
                )
    body += _time_axis(end, x_of, lanes_bottom)
    return _svg(width, lanes_bottom + 46, title, body)


def _timeline_phases(cycle: dict, x_of: Callable[[float], float], top: float, bottom: float) -> list[str]:
    times, body = cycle["times"], []
    for begin, until, css, _label in _PHASES:
        x, x_end = x_of(times[begin]), x_of(times[until])
        body.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{x_end - x:.1f}" height="{bottom - top:.1f}" class="phase-{css}"/>'
        )
    kill = x_of(times["kill"])
    body.append(f'<path d="M{kill:.1f} {top - 50:.1f}V{bottom:.1f}" class="kill"/>')
    body.append(_text(kill - 6, top - 40, f"kill -9 #{cycle['cycle']}", "bad strong", "end", 13))
    body.append(_text(kill - 6, top - 24, f"{cycle['acknowledged']:,} commits acknowledged", "muted", "end", 11))
    wrong = len(cycle["wrong"])
    text, css = (f"all {cycle['intact']:,} rows intact", "good") if not wrong else (f"{wrong} rows wrong", "bad")
    body.append(_text(kill + 7, top - 8, text, f"{css} strong", size=11.5))
    return body


def _time_axis(end: float, x_of: Callable[[float], float], bottom: float) -> list[str]:
    step = next(s for s in (1, 2, 5, 10, 20, 60, 600) if end / s <= 14)
    body = [f'<path d="M{x_of(0):.1f} {bottom:.1f}H{x_of(end):.1f}" class="axis"/>']
    for i in range(int(end // step) + 1):
        body.append(_text(x_of(i * step), bottom + 16, f"{i * step} s", "muted", "middle", 11))
    x = x_of(0)
    for _begin, _until, css, label in _PHASES:
        body.append(f'<rect x="{x:.1f}" y="{bottom + 27:.1f}" width="12" height="12" class="phase-{css} framed"/>')
        body.append(_text(x + 18, bottom + 37, label, "muted", size=11))
        x += 36 + 6.2 * len(label)
    body.append(f'<circle cx="{x + 6:.1f}" cy="{bottom + 33:.1f}" r="4" class="hollow"/>')
    body.append(_text(x + 16, bottom + 37, "a transaction under way, never acknowledged", "muted", size=11))
    return body
