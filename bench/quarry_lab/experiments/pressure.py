"""
pressure: rows of the targets' grid with the machine's memory free and with it taken, in one run; how much of each ratio to InnoDB is kept.

A cell's setting is its condition. Taken: the server is in a memory cgroup of the buffer pool and `beside_bytes` (pressure_bench.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import replace

from rich.table import Table

from .. import memory_cgroup
from ..cells import CellKey
from ..plan import Cell
from ..pressure_bench import PressureBench
from ..request import LabError, Request
from ..results import RunDirectory
from ..variants import ALL, KIB, LABELS
from ..verdicts import Verdict
from . import pressure_findings
from .base import Context
from .pressure_findings import CONDITIONS
from .table_experiment import SERVER_SECONDS, TableExperiment, server_needs
from .target_rules import INNODB
from .targets import grid_cells
from .targets_findings import COUNTER_VARIANTS

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
