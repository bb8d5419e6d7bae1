"""
limits: what no engine can beat on this machine that keeps rows in InnoDB and values outside of its log, next to Quarry and InnoDB.

The cells are those of `targets` (--sizes, --threads, --ops and --engines keep a part of them); yardsticks.py says what is measured in them, and
findings.py what it bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from rich.table import Table

from ..design.request import Request
from ..design.results import RunDirectory
from ..design.variants import KIB, Variant
from ..experiments.target_rules import INNODB
from ..experiments.targets.experiment import LARGE_KIB, QUARRY, Part, Targets
from ..experiments.targets.findings import COMPRESSED_VARIANTS, MIX_THREADS, TEXT3
from ..load import clients
from ..load.payload import Payload
from ..report.verdicts import Verdict
from ..run.experiment import Context
from ..run.runner import Server
from ..run.tables import comparison_table
from . import findings as limits_findings, ordered_commits
from .bench import LimitsBench
from .findings import COMPRESSED_VALUES, DURABLE_VALUES, FREE_VALUES, HEADS_ALONE, INSERT_THREADS, MEMORY_VALUES, NO_ENGINE, NO_TABLE, READ_THREADS
from .yardsticks import KNOWN

_ENGINES = (INNODB, *QUARRY)
_PROBE_SECONDS = 3  # of a load's commits by the device alone; an estimate


class Limits(Targets):
    name = "limits"
    title = "upper bounds of what targets measures: the SQL layer, rows alone, the device alone, values that cost nothing"
    operations = ("insert", "read", "constant", "mix")
    known: ClassVar[Mapping[str, Variant]] = KNOWN
    grid: ClassVar[tuple[Part, ...]] = (
        Part("insert", LARGE_KIB, INSERT_THREADS, (*_ENGINES, NO_ENGINE, HEADS_ALONE, *DURABLE_VALUES)),
        Part("read", LARGE_KIB, (READ_THREADS,), (*_ENGINES, FREE_VALUES, MEMORY_VALUES)),
        Part("constant", LARGE_KIB, (READ_THREADS,), (NO_TABLE,)),
        Part("mix", LARGE_KIB, (MIX_THREADS,), (*_ENGINES, FREE_VALUES, MEMORY_VALUES)),
        Part("insert", LARGE_KIB, (32,), (*COMPRESSED_VARIANTS, COMPRESSED_VALUES), TEXT3),
    )

    def default_request(self) -> Request:
        made = super().default_request()
        engines = [INNODB, "quarry", NO_TABLE, NO_ENGINE, HEADS_ALONE, *DURABLE_VALUES, FREE_VALUES, MEMORY_VALUES, *COMPRESSED_VARIANTS,
                   COMPRESSED_VALUES]
        return replace(made, name=self.name, operations=list(self.operations), variants=engines, sizes_bytes=[kib * KIB for kib in LARGE_KIB])

    def commit_loads(self, request: Request) -> list[tuple[int, int]]:
        """Threads and bytes of a value for which the device's ordered commits are measured: of the incompressible inserts."""
        return sorted({(c.threads, c.size_bytes) for c in self.cells(request) if c.operation == "insert" and not c.setting})

    def needs(self, request: Request) -> list[str]:
        return [*super().needs(request), *clients.needs()]

    def seconds_around(self, request: Request) -> float:
        return super().seconds_around(request) + request.rounds * _PROBE_SECONDS * len(self.commit_loads(request))

    def bench(self, context: Context, servers: dict[str, Server], payloads: dict[str, Payload]) -> LimitsBench:
        return LimitsBench(context, servers, payloads, self.commit_loads(context.request))

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return limits_findings.verdicts(self.cells_of(run), run.run["parameters"], ordered_commits.rates(run.run),
                                        ordered_commits.rates(run.run, values_alone=True))

    def tables(self, run: RunDirectory) -> list[Table]:
        return comparison_table(self.cells_of(run), run.run, self.reference)
