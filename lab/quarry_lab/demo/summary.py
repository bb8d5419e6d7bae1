"""
From raw rounds to what is shown: medians and ranges per variant, set of files and measure. Every printed figure comes
through here.

Pure functions over the dictionary that is written to demo.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from ..report import stats
from ..report.verdicts import FAIR_ROUNDS

CLEAR = 0.02  # what the rounds must differ by, all in the same direction, to be called better or worse


@dataclass(frozen=True)
class Measure:
    """One line of the side-by-side table. `better` is +1 when more is better, -1 when less is."""

    key: str
    label: str
    unit: str
    better: int
    of: Callable[[dict], float | None]
    form: Callable[[float], str]


def _plain(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def measures(settings: dict) -> list[Measure]:
    """The lines of the table, for the settings of a result."""
    many_clients, stride = settings["many_clients"], settings["one_client_stride"]
    many = f"load_{many_clients}"
    one = "load, 1 client" + (f" (every {ordinal(stride)} file)" if stride > 1 else "")
    return [
        Measure("load_1", one, "MB/s", +1, lambda c: c["load_1"]["bytes_per_second"] / 1e6, _plain),
        Measure(many, f"load, {many_clients} clients", "MB/s", +1, lambda c: c[many]["bytes_per_second"] / 1e6, _plain),
        Measure("reads", "random reads", "1/s", +1, lambda c: c["reads"]["operations_per_second"], _plain),
        Measure("updates", "updates", "1/s", +1, lambda c: c["updates"]["operations_per_second"], _plain),
        Measure(
            "written_1",
            "bytes written per byte: load, 1 client",
            "",
            -1,
            lambda c: c["load_1"]["written"]["server_bytes_per_payload_byte"],
            _plain,
        ),
        Measure(
            "written_many",
            f"bytes written per byte: load, {many_clients} clients",
            "",
            -1,
            lambda c: c[many]["written"]["server_bytes_per_payload_byte"],
            _plain,
        ),
        Measure(
            "written_updates",
            "bytes written per byte: updates",
            "",
            -1,
            lambda c: c["updates"]["written"]["server_bytes_per_payload_byte"],
            _plain,
        ),
        Measure("disk", "size on disk", "MB", -1, lambda c: c["disk"]["bytes"] / 1e6, _plain),
        Measure("pages", "buffer-pool pages, all read once", "", -1, lambda c: c["buffer_pool"]["pages"], _plain),
    ]


def cells_of(result: dict, data_set: str, variant: str) -> list[dict]:
    return [c for c in result["rounds"] if c["data_set"] == data_set and c["variant"] == variant]


def summarize(result: dict, data_set: str, variant: str, measure: Measure) -> stats.Summary | None:
    values = [value for cell in cells_of(result, data_set, variant) if (value := measure.of(cell)) is not None]
    return stats.summarize(values) if values else None


def ratio(result: dict, data_set: str, variant: str, reference: str, measure: Measure) -> stats.Summary | None:
    """Round by round: the two cells of a round met the same machine."""

    def by_round(key: str) -> dict[int, float]:
        return {c["round"]: measure.of(c) for c in cells_of(result, data_set, key)}

    return stats.paired_ratio(by_round(variant), by_round(reference))


def verdict(ratio: stats.Summary | None, measure: Measure) -> int:
    """+1 or -1 when the ratio is more than 2% better or worse than 1 in every round, else 0: not clear. Too few rounds are never clear."""
    if ratio is None or ratio.rounds < FAIR_ROUNDS:
        return 0
    worst, best = sorted(((ratio.low - 1) * measure.better, (ratio.high - 1) * measure.better))
    if worst > CLEAR:
        return 1
    return -1 if best < -CLEAR else 0


def form(summary: stats.Summary | None, measure: Measure) -> tuple[str, str]:
    """Median and range as text; one empty when there is nothing, or one round only."""
    if summary is None:
        return "–", ""
    spread = f"{measure.form(summary.low)} – {measure.form(summary.high)}" if summary.rounds > 1 else ""
    return measure.form(summary.median), spread


def quotient(numerator: str, denominator: str) -> float | None:
    """Of two numbers as `form` shows them, so that a reader who divides them gets the same. None where one is no number, or the second is 0."""
    try:
        return float(numerator.replace(",", "")) / float(denominator.replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None


def curve_summary(curve: dict, variant: str, size_bytes: int, threads: int) -> stats.Summary | None:
    values = [
        p["events_per_second"]
        for p in curve["points"]
        if (p["variant"], p["size_bytes"], p["threads"]) == (variant, size_bytes, threads)
    ]
    return stats.summarize(values) if values else None


def crash_totals(crash: dict) -> dict:
    cycles = crash["cycles"]
    return {
        "kills": len(cycles),
        "acknowledged": sum(c["acknowledged"] for c in cycles),
        "rows": cycles[-1]["rows_found"] if cycles else 0,
        "checked": sum(c["acknowledged_rows"] for c in cycles),
        "intact": sum(c["intact"] for c in cycles),
        "lost_or_wrong": sum(len(c["wrong"]) for c in cycles),
    }


def mismatches(result: dict) -> list[str]:
    found = list(result["mismatches"]) + list((result.get("overwrite") or {"wrong": []})["wrong"])
    for cycle in (result.get("crash") or {"cycles": []})["cycles"]:
        found += [f"after kill {cycle['cycle']}: {line}" for line in cycle["wrong"]]
    return found
