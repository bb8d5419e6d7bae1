"""
core: durable insert, hot read and the 90/10 mix, for every core size and thread count, interleaved against InnoDB in the same server.

Nobody published these; the verdicts are on the project's own targets (docs/benchmarks.md), computed from the raw rounds of the run.
"""

from __future__ import annotations

from dataclasses import replace

from .. import stats
from ..cells import CellKey, Cells, bytes_written_ratio, payload_rate
from ..plan import OPERATION_LABELS, OPERATIONS
from ..request import Request
from ..results import RunDirectory
from ..tables import bytes_written_figure, device_rate, throughput_figure
from ..variants import CORE_SIZES_KIB, KIB
from ..verdicts import MET, NOT_MET, Finding, Verdict, figures_of, judge, not_measured
from .table_experiment import TableExperiment

INNODB = "innodb"
_WORDS = (MET, NOT_MET)
SMALL = Finding("core-4kb", "4 KB values kept in the row: at least 0.95x InnoDB in every cell", "lowest median ratio >= 0.95")
MEDIUM = Finding("core-64kb-insert", "64 KB durable insert, 32 threads: at least 1.6x InnoDB", "median ratio >= 1.6")
LARGE = Finding("core-448kb-insert", "448 KB durable insert, 32 threads: at least the smaller of 1.9x InnoDB and 0.9 of the device's raw sequential rate",
                "median ratio >= 1.9, or median payload rate >= 0.9 of the median probe")
WRITTEN = Finding("core-448kb-written", "448 KB durable insert, 8 threads and more: at most 1.1 bytes written per payload byte", "highest median <= 1.1")


class Core(TableExperiment):
    name = "core"
    title = "durable insert, hot read and 90/10 mix against InnoDB"
    reference = INNODB

    def default_request(self) -> Request:
        return Request(self.name, list(OPERATIONS), [s * KIB for s in CORE_SIZES_KIB], [1, 8, 32], [INNODB, "quarry"])

    def quick(self, request: Request) -> Request:
        """One short round at the two ends: a look, not a measurement."""
        return replace(super().quick(request), sizes_bytes=[4 * KIB, 64 * KIB], threads=[1, 32])

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        if "quarry" not in cells.variants():
            return []
        return [
            _ratio_verdict(cells, SMALL, [k for k in cells.keys() if k.size_bytes == 4 * KIB], 0.95, parameters),
            _ratio_verdict(cells, MEDIUM, [CellKey("insert", 64 * KIB, 32)], 1.6, parameters),
            _large_insert_verdict(cells, device_rate(run.run), parameters),
            _write_amplification_verdict(cells, parameters),
        ]

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        made = {operation: throughput_figure(cells, operation) for operation in OPERATIONS}
        made["bytes-written"] = bytes_written_figure(cells)
        return {name: figure for name, figure in made.items() if figure is not None}


def _ratio_verdict(cells: Cells, finding: Finding, keys: list[CellKey], floor: float, parameters: dict) -> Verdict:
    """Every one of the measured cells must reach the floor by its median."""
    ratios = cells.ratios(keys, "quarry", INNODB)
    if not ratios:
        return not_measured(finding, "no such cell with both engines in this run")
    key, worst = min(ratios.items(), key=lambda item: item[1].median)
    found = (f"{worst.median:.2f}x (rounds {worst.low:.2f}-{worst.high:.2f}) at {OPERATION_LABELS[key.operation]} x{key.threads}"
             + (f", the lowest of {len(ratios)} cells" if len(ratios) > 1 else ""))
    return judge(finding, worst.median >= floor, found, {"ratio": figures_of(worst)}, cells.rounds_of([key], ("quarry", INNODB)), parameters, _WORDS)


def _large_insert_verdict(cells: Cells, rate: stats.Summary | None, parameters: dict) -> Verdict:
    key = CellKey("insert", 448 * KIB, 32)
    ratio, written = cells.ratio(key, "quarry", INNODB), cells.summary(key, "quarry", payload_rate)
    if not ratio or not written or not rate:
        return not_measured(LARGE, "no such cell with both engines in this run")
    share = written.median / rate.median
    found = f"{ratio.median:.2f}x (rounds {ratio.low:.2f}-{ratio.high:.2f}), {share:.0%} of the device's {stats.human_bytes(rate.median)}/s"
    figures = {"ratio": figures_of(ratio), "share_of_device": share}
    return judge(LARGE, ratio.median >= 1.9 or share >= 0.9, found, figures, cells.rounds_of([key], ("quarry", INNODB)), parameters, _WORDS)


def _write_amplification_verdict(cells: Cells, parameters: dict) -> Verdict:
    keys = [k for k in cells.keys() if k.operation == "insert" and k.size_bytes == 448 * KIB and k.threads >= 8]
    found = [(key, s) for key in keys if (s := cells.summary(key, "quarry", bytes_written_ratio))]
    if not found:
        return not_measured(WRITTEN, "no such cell in this run")
    key, worst = max(found, key=lambda item: item[1].median)
    text = f"{worst.median:.3f} (rounds {worst.low:.3f}-{worst.high:.3f}) at x{key.threads}"
    return judge(WRITTEN, worst.median <= 1.1, text, {"bytes_per_byte": figures_of(worst)}, cells.rounds_of([key], ["quarry"]), parameters, _WORDS)
