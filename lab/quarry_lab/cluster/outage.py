"""What the loss of one node costs: figures of each kill, and their charts.

Thread-safety: externally synchronised.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from rich.table import Table

from ..report import charts
from ..report.stats import Summary, percentile, summarize
from .ledger import Event, longest_gap

BUCKET_S = 0.5
SHOWN_S = (-4.0, 16.0)


@dataclass(frozen=True)
class Kill:
    """When things happened (time.monotonic), and what clients saw around it."""

    victim: str  # what the node was: primary, replica, front or galera
    began_s: float
    killed_s: float
    started_s: float  # the node was started again
    rejoined_s: float  # it was in sync again, or Synced, or answered
    ended_s: float
    acknowledged: int
    errors: Counter[str]

    def figures(self, events: Sequence[Event], affected: Sequence[Event]) -> dict[str, Any]:
        """`affected`: the events of rows that the node was responsible for."""
        return {
            "victim": self.victim,
            "acknowledged_writes": self.acknowledged,
            "client_errors": sum(self.errors.values()),
            "all_gap_s": longest_gap(events, self.killed_s, self.started_s),
            "affected_gap_s": longest_gap(affected, self.killed_s, self.started_s),
            "rejoin_s": self.rejoined_s - self.started_s,
            "before_per_s": rate(events, self.began_s + 1, self.killed_s),
            "during_per_s": rate(events, self.killed_s, self.started_s),
            "after_per_s": rate(events, self.rejoined_s, self.ended_s),
            "before_p95_ms": p95_ms(events, self.began_s + 1, self.killed_s),
            "after_p95_ms": p95_ms(events, self.rejoined_s, self.ended_s),
            "curve": [self._rate_at(events, at) for at in buckets()],
        }

    def _rate_at(self, events: Sequence[Event], at_s: float) -> float | None:
        """In the bucket that begins so long after the kill; None where the clients did not work throughout."""
        begin_s, end_s = self.killed_s + at_s, self.killed_s + at_s + BUCKET_S
        return rate(events, begin_s, end_s) if self.began_s <= begin_s and end_s <= self.ended_s else None


def buckets() -> list[float]:
    steps = int((SHOWN_S[1] - SHOWN_S[0]) / BUCKET_S)
    return [SHOWN_S[0] + BUCKET_S * i for i in range(steps)]


def rate(events: Sequence[Event], begin_s: float, end_s: float) -> float:
    return sum(begin_s <= event.ended_s < end_s for event in events) / (end_s - begin_s)


def p95_ms(events: Sequence[Event], begin_s: float, end_s: float) -> float:
    took = [event.took_s * 1000 for event in events if begin_s <= event.ended_s < end_s]
    return percentile(took, 95) if took else float("nan")


COLUMNS = {
    "affected_gap_s": "no service,\nits rows, s",
    "all_gap_s": "no service,\nall rows, s",
    "rejoin_s": "rejoin, s",
    "before_per_s": "ops/s\nbefore",
    "during_per_s": "ops/s\nwithout it",
    "after_per_s": "ops/s\nafter",
}


def table(title: str, kills: list[dict[str, Any]]) -> Table:
    """Medians with their ranges, by victim."""
    made = Table(title=title, title_justify="left")
    for heading in ("victim", "kills", "acknowledged\nwrites", *COLUMNS.values()):
        made.add_column(heading, justify="right" if heading != "victim" else "left")
    for victim in dict.fromkeys(kill["victim"] for kill in kills):
        of = [kill for kill in kills if kill["victim"] == victim]
        cells = [spread([kill[column] for kill in of]) for column in COLUMNS]
        made.add_row(victim, str(len(of)), f"{sum(kill['acknowledged_writes'] for kill in of):,}", *cells)
    return made


def spread(values: list[float]) -> str:
    digits = 0 if min(values) >= 100 else 2
    return f"{statistics.median(values):.{digits}f}\n({min(values):.{digits}f}-{max(values):.{digits}f})"


def draw(kills: list[dict[str, Any]], directory: Path, name: str) -> list[Path]:
    """Throughput around the kill, and the times; one line or bar for each kind of victim."""
    victims = list(dict.fromkeys(kill["victim"] for kill in kills))
    curves = []
    for victim in victims:
        of = [kill["curve"] for kill in kills if kill["victim"] == victim]
        points: list[Summary | None] = [None if None in rates else summarize(list(rates)) for rates in zip(*of, strict=True)]
        curves.append(charts.Series(victim, victim, points))
    shown = [i for i in range(len(buckets())) if any(curve.points[i] for curve in curves)]
    first, last = shown[0], shown[-1]
    curves = [charts.Series(curve.key, curve.label, curve.points[first : last + 1]) for curve in curves]
    labels = [f"{at:g}" if at == int(at) and int(at) % 2 == 0 else "" for at in buckets()[first : last + 1]]
    throughput = charts.lines(f"{name}: a node is killed at 0", "seconds", "operations/s", labels, curves, size=(9.5, 4.2))
    bars = [
        charts.Series(key, label, [summarize([kill[key] for kill in kills if kill["victim"] == victim]) for victim in victims])
        for key, label in (("affected_gap_s", "without service, its rows"), ("rejoin_s", "rejoin, from its start"))
    ]
    times = charts.bars(f"{name}: a node is killed", "seconds", "victim", victims, bars)
    return [
        charts.save_png(throughput, directory / f"{name}-throughput.png"),
        charts.save_png(times, directory / f"{name}-times.png"),
    ]
