"""
pressure: rows of the targets' grid with the machine's memory free and with it taken, in one run; how much of each ratio to InnoDB is kept.

A cell's setting is its condition. Taken: the server is in a memory cgroup of the buffer pool and `beside_bytes` (pressure/bench.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import replace

from rich.table import Table

from ...design.cells import CellKey
from ...design.plan import Cell
from ...design.request import LabError, Request
from ...design.results import RunDirectory
from ...design.variants import ALL, KIB, LABELS
from ...report.verdicts import Verdict
from ...run.experiment import Context
from ...servers import memory_cgroup
from ..table_experiment import SERVER_SECONDS, TableExperiment, server_needs
from ..target_rules import INNODB
from ..targets.experiment import grid_cells
from ..targets.findings import COUNTER_VARIANTS
from . import findings as pressure_findings
from .bench import PressureBench
from .findings import CONDITIONS

OPERATIONS = ("insert", "read", "mix", "counter")
BESIDE_BYTES_MIN = 512 << 20


class Pressure(TableExperiment):
    name = "pressure"
    title = "the targets' rows with the machine's memory free and with it taken"
    operations = OPERATIONS
    reference = INNODB
    takes_target = False

    @property
    def labels(self) -> dict[str, str]:
        """The grid's variants of these operations."""
        known = (INNODB, "quarry", "quarry-baseline", *COUNTER_VARIANTS)
        return {key: label for key, label in LABELS.items() if key in known}

    # --- what to run ---
    def default_request(self) -> Request:
        """beside_bytes: the memory that is left beside the buffer pool where memory is taken."""
        return Request(self.name, list(OPERATIONS), [64 * KIB], [8, 16, 32], [INNODB, "quarry", *COUNTER_VARIANTS], options={"beside_bytes": 2 << 30})

    def cells(self, request: Request) -> list[Cell]:
        return [replace(cell, setting=condition) for condition in CONDITIONS for cell in grid_cells(request) if not cell.setting]

    def group(self, cell: Cell) -> Hashable:
        return (cell.setting, ALL[cell.variant].server, cell.size_bytes)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        """Memory that is free has at least as much again as is left where it is taken."""
        beside = request.options["beside_bytes"]
        if beside < BESIDE_BYTES_MIN:
            raise LabError(f"beside_bytes must be at least {BESIDE_BYTES_MIN}: no server carries this load with less (got {beside})")
        missing = server_needs(self.variants(request), request, 2 * beside)
        if reason := memory_cgroup.reason_against():
            missing.append(f"a memory cgroup that this user may make in /sys/fs/cgroup ({reason})")
        return missing

    def seconds_around(self, request: Request) -> float:
        return super().seconds_around(request) + (len(self.plan(request)) - 1) * SERVER_SECONDS

    # --- running it ---
    def open(self, context: Context) -> AbstractContextManager[PressureBench]:
        return PressureBench(context)

    # --- what came out ---
    def figures(self, run: RunDirectory) -> dict:
        return pressure_findings.figures(self.cells_of(run))

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        """Of every row that was measured, and of the default ones."""
        cells = self.cells_of(run)
        rows = {replace(CellKey.of(cell), setting="") for cell in self.cells(self.request())}
        return pressure_findings.verdicts(cells, sorted(rows | set(pressure_findings.rows_of(cells))), run.run["parameters"])

    def tables(self, run: RunDirectory) -> list[Table]:
        return [*super().tables(run), pressure_findings.kept_table(self.cells_of(run))]
