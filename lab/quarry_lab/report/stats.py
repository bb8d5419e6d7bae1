"""Medians, ranges and ratios of raw rounds. Every figure that the lab prints comes through here, from the rounds themselves."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from quarry_advisor.numbers import human_bytes, human_count, percentile

__all__ = [
    "Summary", "counted", "human_bytes", "human_count", "human_gain", "human_megabytes", "human_ms", "human_seconds", "paired_ratio", "percentile",
    "round_ratios", "summarize",
]


@dataclass(frozen=True)
class Summary:
    """Median and range of one quantity over the rounds of one cell."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def spread(self) -> float:
        """(high - low) / median; 0 when the median is 0."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def range_text(self, form: Callable[[float], str]) -> str:
        """' (low to high)'; empty where there was one round."""
        return f" ({form(self.low)} to {form(self.high)})" if self.rounds > 1 else ""


def summarize(values: list[float]) -> Summary:
    if not values:
        raise ValueError("no rounds to summarize")
    return Summary(statistics.median(values), min(values), max(values), len(values))


def round_ratios(numerators: dict[int, float], denominators: dict[int, float]) -> dict[int, float]:
    """Ratio round by round (rounds are interleaved, so both sides of a round saw the same machine). Rounds that only one side has are left out."""
    return {r: numerators[r] / denominators[r] for r in sorted(set(numerators) & set(denominators)) if denominators[r] > 0}


def paired_ratio(numerators: dict[int, float], denominators: dict[int, float]) -> Summary | None:
    """Median and range of `round_ratios`; None when no round is left."""
    ratios = round_ratios(numerators, denominators)
    return summarize(list(ratios.values())) if ratios else None


def counted(count: int, noun: str) -> str:
    """'1 file', '2,000 files', '2 passes'."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def human_gain(value: float) -> str:
    """'+12%', '-3%'; what rounds to nothing is '+0%' from either side."""
    text = f"{value:+.0%}"
    return "+0%" if text == "-0%" else text


def human_ms(value: float) -> str:
    """'4.37 ms', '63.3 ms', '2,345 ms': three digits, and never an exponent."""
    return f"{value:,.0f} ms" if value >= 999.5 else f"{value:.3g} ms"


def human_megabytes(value: float) -> str:
    """'14.8 MB', '512 MB': of 1,000,000 bytes, as the documents have rates. human_bytes counts in 1,024s."""
    return f"{value / 1e6:,.1f} MB" if value < 1e8 else f"{value / 1e6:,.0f} MB"


def human_seconds(value: float) -> str:
    minutes, seconds = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
