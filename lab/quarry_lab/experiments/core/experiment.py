"""
core: durable insert, hot read and the 90/10 mix, for every core size and thread count, interleaved against InnoDB in the same server.

Nobody published these; the verdicts are on the project's own targets (docs/internals/benchmarks.md), computed from the raw rounds of the run.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.cells import CellKey
from ...design.plan import OPERATIONS
from ...design.request import Request
from ...design.results import RunDirectory
from ...design.variants import CORE_SIZES_KIB, KIB
from ...report.verdicts import Finding, Verdict
from ...run.tables import bytes_written_figure, device_rate, throughput_figure
from ..table_experiment import TableExperiment
from ..target_rules import INNODB, judge_bytes_written, judge_ratio, judge_ratio_or_device

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
            judge_ratio(cells, SMALL, [k for k in cells.keys() if k.size_bytes == 4 * KIB], 0.95, parameters),
            judge_ratio(cells, MEDIUM, [CellKey("insert", 64 * KIB, 32)], 1.6, parameters),
            judge_ratio_or_device(cells, LARGE, CellKey("insert", 448 * KIB, 32), 1.9, device_rate(run.run), parameters),
            judge_bytes_written(cells, WRITTEN, [k for k in cells.keys() if k.operation == "insert" and k.size_bytes == 448 * KIB and k.threads >= 8],
                                1.1, parameters),
        ]

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        made = {operation: throughput_figure(cells, operation) for operation in OPERATIONS}
        made["bytes-written"] = bytes_written_figure(cells)
        return {name: figure for name, figure in made.items() if figure is not None}
