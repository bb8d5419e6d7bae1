"""
core: durable insert, hot read and the 90/10 mix, for every core size and thread count, interleaved against InnoDB in the same server.

The verdicts on the project's targets are computed from the raw rounds of the run; nothing is kept from earlier runs.
"""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from .. import stats
from ..cells import CellKey, Cells, bytes_written_ratio, payload_rate
from ..plan import OPERATION_LABELS, OPERATIONS
from ..results import RunDirectory
from ..session import Request
from ..tables import Verdict, bytes_written_figure, device_rate, judge, print_table, print_verdicts, throughput_figure
from ..variants import CORE_SIZES_KIB, KIB, by_keys

NAME = "core"
TITLE = "durable insert, hot read and 90/10 mix against InnoDB"
REFERENCE = "innodb"


def default_request() -> Request:
    return Request(NAME, TITLE, list(OPERATIONS), [s * KIB for s in CORE_SIZES_KIB], [1, 8, 32], by_keys([REFERENCE, "quarry"]))


def quick(request: Request) -> Request:
    """One short round at the two ends: a look, not a measurement."""
    return replace(request, sizes_bytes=[4 * KIB, 64 * KIB], threads=[1, 32], rounds=1,
                   settings=replace(request.settings, seconds=3, warmup_seconds=1))


_WORDS = ("met", "not met")


def _noise(cells: Cells, key: CellKey) -> str:
    """Said with the figures: a verdict on a noisy cell is worth less."""
    noisy = sum(cells.noisy_rounds(key, v) for v in ("quarry", REFERENCE))
    rounds = sum(len(cells.rounds(key, v)) for v in ("quarry", REFERENCE))
    return f"; {noisy} of {rounds} points noisy" if noisy else ""


def _ratio_verdict(cells: Cells, target: str, keys: list[CellKey], floor: float, parameters: dict) -> Verdict:
    """Every one of the measured cells must reach the floor by its median."""
    ratios = [(key, r) for key in keys if (r := cells.ratio(key, "quarry", REFERENCE))]
    if not ratios:
        return Verdict(target, "not measured", "no such cell with both engines in this run")
    worst_key, worst = min(ratios, key=lambda item: item[1].median)
    found = (f"{worst.median:.2f}x (rounds {worst.low:.2f}-{worst.high:.2f}) at {OPERATION_LABELS[worst_key.operation]} x{worst_key.threads}"
             + (f", the lowest of {len(ratios)} cells" if len(ratios) > 1 else "") + _noise(cells, worst_key))
    return judge(target, worst.median >= floor, _WORDS, found, parameters)


def _large_insert_verdict(cells: Cells, rate: stats.Summary | None, parameters: dict) -> Verdict:
    target = "448 KB durable insert, 32 threads: at least the smaller of 1.9x InnoDB and 0.9 of the device's raw sequential rate"
    key = CellKey("insert", 448 * KIB, 32)
    ratio, written = cells.ratio(key, "quarry", REFERENCE), cells.summary(key, "quarry", payload_rate)
    if not ratio or not written or not rate:
        return Verdict(target, "not measured", "no such cell with both engines in this run")
    share = written.median / rate.median
    found = f"{ratio.median:.2f}x (rounds {ratio.low:.2f}-{ratio.high:.2f}), {share:.0%} of the device's {stats.human_bytes(rate.median)}/s"
    return judge(target, ratio.median >= 1.9 or share >= 0.9, _WORDS, found + _noise(cells, key), parameters)


def _write_amplification_verdict(cells: Cells, parameters: dict) -> Verdict:
    target = "448 KB durable insert, 8 threads and more: at most 1.1 bytes written per payload byte"
    keys = [k for k in cells.keys() if k.operation == "insert" and k.size_bytes == 448 * KIB and k.threads >= 8]
    found = [(key, s) for key in keys if (s := cells.summary(key, "quarry", bytes_written_ratio))]
    if not found:
        return Verdict(target, "not measured", "no such cell in this run")
    key, worst = max(found, key=lambda item: item[1].median)
    return judge(target, worst.median <= 1.1, _WORDS, f"{worst.median:.3f} (rounds {worst.low:.3f}-{worst.high:.3f}) at x{key.threads}", parameters)


def verdicts(cells: Cells, run: dict) -> list[Verdict]:
    """The targets are the project's own (docs/benchmarks.md)."""
    parameters = run["parameters"]
    return [
        _ratio_verdict(cells, "4 KB values kept in the row: at least 0.95x InnoDB in every cell",
                       [k for k in cells.keys() if k.size_bytes == 4 * KIB], 0.95, parameters),
        _ratio_verdict(cells, "64 KB durable insert, 32 threads: at least 1.6x InnoDB", [CellKey("insert", 64 * KIB, 32)], 1.6, parameters),
        _large_insert_verdict(cells, device_rate(run), parameters),
        _write_amplification_verdict(cells, parameters),
    ]


def figures(run: RunDirectory) -> dict:
    """name -> Figure, for files or a page."""
    cells = Cells(run.points)
    made = {operation: throughput_figure(cells, operation) for operation in OPERATIONS}
    made["bytes-written"] = bytes_written_figure(cells)
    return {name: figure for name, figure in made.items() if figure is not None}


def report(console: Console, run: RunDirectory) -> None:
    cells = Cells(run.points)
    print_table(console, cells, run.run, REFERENCE)
    if "quarry" in cells.variants():
        print_verdicts(console, "the project's targets, judged from this run's raw rounds", "target", verdicts(cells, run.run))
