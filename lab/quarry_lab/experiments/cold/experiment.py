"""
cold: tables several times larger than the memory, and the memory that a server takes; the project's targets of both, against InnoDB.

Nobody published these. All engines run in one memory cgroup of one size, one server at a time (cold/bench.py says what cold means).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import ClassVar

from matplotlib.figure import Figure
from rich.table import Table

from ...design.cells import throughput
from ...design.plan import OPERATION_LABELS, Cell, Point
from ...design.request import LabError, Request
from ...design.results import RunDirectory
from ...design.variants import KIB, TARGET
from ...report import charts
from ...report.verdicts import Verdict
from ...run.experiment import Context
from ...run.limited_bench import REDO_BYTES
from ...run.tables import size_label
from ...servers import memory_cgroup
from ..table_experiment import TableExperiment, server_needs
from ..target_rules import INNODB
from . import findings as cold_findings
from .bench import COLD_OPERATIONS, OPERATIONS, ColdBench, server_options
from .findings import DATASET_FACTOR, ONE_BY_ONE, OPERATION_OF, QUARRY, VALUES_KIB

READ_THREADS, MEMORY_THREADS = (1, 8), 32
RANGE_VALUE_BYTES = 64 << 20
COLUMNS_SIZE, MEMORY_SIZE = 64 * KIB, 448 * KIB
MEMORY_BYTES_MIN = 640 << 20  # half of it is the buffer pool; 32 threads of 448 KB take the other half
# Estimates, for the planned wall time and the disk only.
_LOAD_BYTES_PER_SECOND, _RESTART_SECONDS, _PROBE_AROUND_SECONDS, _INSERT_BYTES_PER_SECOND = 200 << 20, 6, 2, 1 << 30


class Cold(TableExperiment):
    name = "cold"
    title = "cold reads of more data than memory, and the memory that servers take"
    operations = OPERATIONS
    reference = INNODB
    takes_target = False
    takes_apart = False
    bench_class: ClassVar[type[ColdBench]] = ColdBench
    operation_of: ClassVar[Mapping[str, str]] = OPERATION_OF

    @property
    def labels(self) -> dict[str, str]:
        """Tables of one value a row, on servers of the run."""
        return {v.key: v.label for v in self.known.values() if v.server != TARGET and v.columns == 1 and not v.sequence_cache}

    # --- what to run ---
    def default_request(self) -> Request:
        """memory_bytes: the limit; dataset_bytes: of each variant and size; range_value_bytes: the length of a value that ranges are read of."""
        memory = 768 << 20
        return Request(self.name, list(OPERATIONS), [kib * KIB for kib in VALUES_KIB], list(READ_THREADS), [INNODB, QUARRY, ONE_BY_ONE],
                       options={"memory_bytes": memory, "dataset_bytes": DATASET_FACTOR * memory, "range_value_bytes": RANGE_VALUE_BYTES})

    def quick(self, request: Request) -> Request:
        options = {**request.options, "memory_bytes": MEMORY_BYTES_MIN, "dataset_bytes": DATASET_FACTOR * MEMORY_BYTES_MIN}
        return replace(super().quick(request), sizes_bytes=[COLUMNS_SIZE], options=options)

    def cells(self, request: Request) -> list[Cell]:
        """--sizes and --threads are those of the cold point read; the other operations are what their targets say."""
        return [cell for variant in request.variants for operation in request.operations for cell in self._cells_of(operation, variant, request)
                if self.known[variant].applies_to(cell.size_bytes)]

    def _cells_of(self, operation: str, variant: str, request: Request) -> list[Cell]:
        if self.operation_of.get(variant, operation) != operation:
            return []
        if operation == "cold-read":
            return [Cell(operation, variant, size, threads) for size in request.sizes_bytes for threads in request.threads]
        size, threads = {"columns": (COLUMNS_SIZE, 1), "scan": (COLUMNS_SIZE, 1), "range": (request.options["range_value_bytes"], 1)}.get(operation, (MEMORY_SIZE, MEMORY_THREADS))
        return [Cell(operation, variant, size, threads)]

    def group(self, cell: Cell) -> Hashable:
        return (cell.variant, cell.size_bytes)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        if request.options["memory_bytes"] < MEMORY_BYTES_MIN:
            raise LabError(f"memory_bytes must be at least {MEMORY_BYTES_MIN}: no server carries this load with less (got {request.options['memory_bytes']})")
        missing = server_needs(self.variants(request), replace(request, mycnf=server_options("InnoDB", request)))
        cold = [operation for operation in request.operations if operation in COLD_OPERATIONS]
        if cold and (reason := memory_cgroup.reason_against()):
            missing.append(f"a memory cgroup that this user may make in /sys/fs/cgroup ({reason}) for {', '.join(cold)}; "
                           "--ops memory-insert,memory-read runs without")
        return missing

    def disk_bytes(self, request: Request) -> int:
        """A dataset and what its load leaves behind, inserts at the pace of a fast device, redo and doublewrite, and the reserve."""
        settings = request.settings
        inserted = (settings.seconds + settings.warmup_seconds) * _INSERT_BYTES_PER_SECOND if "memory-insert" in request.operations else 0
        return 2 * request.options["dataset_bytes"] + inserted + REDO_BYTES + settings.disk_reserve_bytes

    def seconds_of(self, request: Request, point: Point) -> float:
        return super().seconds_of(request, point) + _RESTART_SECONDS

    def seconds_around(self, request: Request) -> float:
        probing = request.rounds * len(request.sizes_bytes) * (request.settings.device_probe_seconds + _PROBE_AROUND_SECONDS)
        return probing + len(self.plan(request)) * (_RESTART_SECONDS + request.options["dataset_bytes"] / _LOAD_BYTES_PER_SECOND)

    # --- running it ---
    def open(self, context: Context) -> AbstractContextManager[ColdBench]:
        return self.bench_class(context, max(cell.size_bytes for cell in self.cells(context.request)))

    # --- what came out ---
    def figures(self, run: RunDirectory) -> dict[str, Figure]:
        cells = self.cells_of(run)
        keys = [key for key in cells.keys() if key.operation in COLD_OPERATIONS]
        panels = [charts.Panel(f"{OPERATION_LABELS[key.operation]}, {size_label(key.size_bytes)}", [""],
                               [charts.Series(v, cells.label(v), [cells.summary(key, v, throughput)]) for v in cells.variants()]) for key in keys]
        return {"cold": charts.bar_panels("cold, operations per second (scan: rows per second)", panels)} if panels else {}

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return cold_findings.verdicts(self.cells_of(run), run.run)

    def tables(self, run: RunDirectory) -> list[Table]:
        return [*super().tables(run), *cold_findings.memory_tables(self.cells_of(run))]
