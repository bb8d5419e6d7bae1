"""
targets: the project's targets as ratios to InnoDB in the same run, measured by one command; what needs a limit on memory is not part of it.

The grid holds what the targets speak of and nothing else (findings.py has them and their rules, production.py those of the production profile);
--sizes, --threads, --ops and --engines keep a part of it. Every cell of `insert` is incompressible but those with the setting `text3`, whose values compress about 3:1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from rich import box
from rich.table import Table

from ...design.cells import Cells
from ...design.methods import ROCKSDB_OPTIONS
from ...design.plan import Cell, Point
from ...design.profile import PRODUCTION
from ...design.request import Request
from ...design.results import RunDirectory
from ...design.variants import E1_SIZES_KIB, KIB
from ...report.verdicts import Verdict
from ...run.tables import bytes_written_figure, device_rate, median_text, size_label, throughput_figure
from ..table_experiment import TableExperiment
from ..target_rules import INNODB
from . import findings as targets_findings
from . import production
from .production import BLACKHOLE
from .findings import COMPRESSED_VARIANTS, COUNTER_VARIANTS, TEXT3, gigabytes_per_core_second

OPERATIONS = ("insert", "read", "mix", "counter", "update")
QUARRY = ("quarry", "quarry-baseline")
LARGE_KIB = (24, 64, 448)
_SMALL_OUTSIDE_KIB = (2, 8)  # small, and yet not in the row
_GC_SECONDS = 10  # of the mark passes before and after; an estimate


@dataclass(frozen=True)
class Part:
    """A part of the grid: every combination."""

    operation: str
    sizes_kib: tuple[int, ...]
    threads: tuple[int, ...]
    variants: tuple[str, ...] = (INNODB, *QUARRY)
    setting: str = ""

    def cells(self) -> list[Cell]:
        return [Cell(self.operation, variant, size * KIB, threads, self.setting)
                for size in self.sizes_kib for threads in self.threads for variant in self.variants]


GRID = (
    Part("insert", LARGE_KIB, (1, 8, 32)),
    *(Part(operation, (4,), (1, 8, 32)) for operation in ("insert", "read", "mix")),
    Part("insert", _SMALL_OUTSIDE_KIB, (1, 8, 32)),
    Part("read", LARGE_KIB, (1, 8)),
    Part("read", _SMALL_OUTSIDE_KIB, (1, 8)),
    Part("mix", LARGE_KIB, (16,)),
    Part("mix", (64,), (1, 8, 32)),
    Part("insert", LARGE_KIB, (1, 8, 32), (BLACKHOLE,)),
    Part("counter", (64,), (1, 8, 32), COUNTER_VARIANTS),
    Part("update", LARGE_KIB, (8, 32), QUARRY),
    Part("insert", LARGE_KIB, (32,), COMPRESSED_VARIANTS, TEXT3),
)


class Targets(TableExperiment):
    name = "targets"
    title = "the project's targets against InnoDB, but for those with limited memory"
    operations = OPERATIONS
    reference = INNODB
    payloads: ClassVar[tuple[str, ...]] = ("random",)  # beside the cells that have their own
    takes_target = False
    grid: ClassVar[tuple[Part, ...]] = GRID

    def default_request(self) -> Request:
        """MyRocks' lz4 at every level. innodb_compression_algorithm: what the server's package offers without more plugins."""
        mycnf = {"innodb_compression_algorithm": "zlib", **{f"loose_{name}": value for name, value in ROCKSDB_OPTIONS.items()}}
        return Request(self.name, list(OPERATIONS), [s * KIB for s in (*_SMALL_OUTSIDE_KIB, *E1_SIZES_KIB)], [1, 8, 16, 32],
                       [INNODB, "quarry", BLACKHOLE, *COUNTER_VARIANTS, *COMPRESSED_VARIANTS], mycnf=mycnf)

    def quick(self, request: Request) -> Request:
        """One short round of two sizes: a look, not a measurement."""
        return replace(super().quick(request), sizes_bytes=[4 * KIB, 64 * KIB], threads=[8, 16, 32])

    def cells(self, request: Request) -> list[Cell]:
        """The part of the grid that the request keeps."""
        return [cell for part in self.grid for cell in part.cells()
                if cell.operation in request.operations and cell.size_bytes in request.sizes_bytes and cell.threads in request.threads
                and cell.variant in request.variants]

    def needs(self, request: Request) -> list[str]:
        own = [] if request.payload == "random" else ["no --payload: it measures incompressible values, and compressible ones beside them"]
        return [*super().needs(request), *own]

    def seconds_of(self, request: Request, point: Point) -> float:
        """Before a steady update the dataset is written over for as long."""
        again = request.settings.seconds + _GC_SECONDS if point.operation == "update" else 0
        return super().seconds_of(request, point) + again

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        if parameters["profile"] == PRODUCTION:
            return production.verdicts(cells, parameters)
        return targets_findings.verdicts(cells, device_rate(run.run), parameters)

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        made = {operation: throughput_figure(cells, operation) for operation in OPERATIONS}
        made["bytes-written"] = bytes_written_figure(cells)
        return {name: figure for name, figure in made.items() if figure is not None}

    def tables(self, run: RunDirectory) -> list[Table]:
        return [*super().tables(run), _per_core_table(self.cells_of(run))]


def _per_core_table(cells: Cells) -> Table:
    table = Table(title="payload per second of the server's processor time, durable insert x32", header_style="bold", box=box.SIMPLE_HEAD)
    for heading in ("payload", "size", "engine", "GB/s per core"):
        table.add_column(heading, justify="right")
    for key in (k for k in cells.keys() if k.operation == "insert" and k.threads == 32):
        for variant in cells.variants():
            if found := cells.summary(key, variant, gigabytes_per_core_second):
                text = median_text(found, "{:.2f}".format) + found.range_text("{:.2f}".format)
                table.add_row(key.setting or "random", size_label(key.size_bytes), cells.label(variant), text)
    return table
