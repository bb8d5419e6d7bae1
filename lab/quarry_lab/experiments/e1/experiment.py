"""
E1: inline, parts and batches. The 90/10 mix over the column variants of the MySQL blog on tuning BLOB storage (MySQL Cluster 9.4).

The same tables and statements as there, but for the engine's name; beside them InnoDB and MyRocks, a sweep of the batch bytes at one
size, and the memory that each variant takes for the same rows. published/e1.toml has what was published, e1/findings.py judges it.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.cells import CellKey, Cells, memory_ratio, p95_ms, throughput
from ...design.plan import Cell, table_cells
from ...design.request import Request, Settings
from ...design.results import RunDirectory
from ...design.variants import E1_SIZES_KIB, KIB, SWEEP_KIB, Variant, sweep_key
from ...report import charts, stats
from ...report.verdicts import Verdict
from ...run.experiment import PublishedFigure, Source
from ...run.tables import size_label, size_panels, throughput_figure
from ..table_experiment import TableExperiment
from . import findings as e1_findings
from .findings import DOCUMENT, HEAD, HEAD_4M, INLINE, INLINE_4M, SWEEP_SIZE, SWEEP_THREADS, VARBINARY, sweep

VARIANTS = ("innodb", "rocksdb", HEAD, INLINE, VARBINARY, HEAD_4M, INLINE_4M)
THREADS = (2, 8, 32)
# Of the default grid the lowest thread count is measured at this size only: one whole curve, its upper end for every size.
CURVE_SIZES = (64 * KIB,)


class InlinePartsBatches(TableExperiment):
    name = "e1"
    title = "E1: inline values, parts and batches under the 90/10 mix"
    reference = HEAD
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "One private server and its client share this machine's processors: the same tables and statements but for the engine's name, fewer "
        "threads, InnoDB and MyRocks in the same server. All parts of a value lie on that server: "
        "no load is spread over nodes, and no link between them strains.")
    published = (*(PublishedFigure(DOCUMENT.figure(name), Cell("mix", variant, kib * KIB, 32), over) for name, kib, variant, over in (
        ("4kb-inline", 4, INLINE, HEAD), ("4kb-varbinary", 4, VARBINARY, INLINE), ("24kb-inline", 24, INLINE, HEAD),
        ("24kb-varbinary", 24, VARBINARY, INLINE), ("64kb-inline", 64, INLINE_4M, HEAD_4M), ("64kb-batch", 64, HEAD_4M, HEAD))),
        PublishedFigure(DOCUMENT.figure("448kb-cap-per-node"), Cell("mix", HEAD_4M, 448 * KIB, 32)))

    def default_request(self) -> Request:
        return Request(self.name, ["mix"], [s * KIB for s in E1_SIZES_KIB], list(THREADS), list(VARIANTS),
                       settings=Settings(tables=8, warmup_seconds=1, dataset_bytes=256 << 20), options={"sweep": True})

    def quick(self, request: Request) -> Request:
        return replace(super().quick(request), sizes_bytes=[4 * KIB, 448 * KIB], threads=[2, 32], options={"sweep": False},
                       settings=replace(request.settings, seconds=3, warmup_seconds=1, dataset_bytes=96 << 20))

    def full(self, request: Request) -> Request:
        return replace(super().full(request), threads=[1, 4, 16, 64, 128], variants=["innodb", "innodb-varbinary", *VARIANTS[1:]])

    def variants(self, request: Request) -> list[Variant]:
        return super().variants(replace(request, variants=[*request.variants, *self._sweep_keys(request)]))

    def _sweep_keys(self, request: Request) -> list[str]:
        """The batch sizes that the variants with 64 KB and 4 MB do not cover; none unless these are there to stand beside."""
        is_wanted = request.options.get("sweep") and SWEEP_SIZE in request.sizes_bytes and {HEAD, HEAD_4M} <= set(request.variants)
        return [sweep_key(kib) for kib in SWEEP_KIB] if is_wanted else []

    def cells(self, request: Request) -> list[Cell]:
        variants = super().variants(request)
        cells = [cell for size in request.sizes_bytes for cell in table_cells(request.operations, [size], _threads(request, size), variants)]
        sweep = [Cell("mix", key, SWEEP_SIZE, SWEEP_THREADS) for key in self._sweep_keys(request)]
        return cells + sweep

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return e1_findings.verdicts(self.cells_of(run), run.run["parameters"])

    def figures(self, run: RunDirectory) -> dict:
        cells = Cells([p for p in run.points if p["variant"] not in map(sweep_key, SWEEP_KIB)], self.labels)
        made = {"mix": throughput_figure(cells, "mix"), "latency": _latency_figure(cells), "memory": _memory_figure(cells)}
        made["sweep"] = _sweep_figure(self.cells_of(run))
        return {name: figure for name, figure in made.items() if figure is not None}


def _threads(request: Request, size_bytes: int) -> list[int]:
    return request.threads[1:] if request.threads == list(THREADS) and size_bytes not in CURVE_SIZES else request.threads


def _latency_figure(cells: Cells):
    """p95 against throughput would hide the thread counts; so p95 against threads, panels by size."""
    panels = size_panels(cells, "mix", p95_ms)
    return charts.line_panels("90/10 mix, 95th percentile of latency", "client threads", "milliseconds", panels) if panels else None


def _memory_figure(cells: Cells):
    sizes = sorted({k.size_bytes for k in cells.keys()})
    at = {size: [k for k in cells.keys() if k.size_bytes == size][-1] for size in sizes}
    series = [charts.Series(v, cells.label(v), [cells.summary(at[size], v, memory_ratio) for size in sizes]) for v in cells.variants()]
    if not any(point for one in series for point in one.points):
        return None
    return charts.bars("memory per payload byte after every row was read", "bytes of memory per byte", "value size",
                       [size_label(size) for size in sizes], series)


def _sweep_figure(cells: Cells):
    by_size = sweep(cells)
    if len(by_size) < 3:
        return None
    key = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS)
    series = [charts.Series(HEAD, "QUARRY head 256", [cells.summary(key, variant, throughput) for variant in by_size.values()])]
    return charts.lines(f"batch bytes, {size_label(SWEEP_SIZE)} values, {SWEEP_THREADS} threads", "batch bytes", "transactions per second",
                        [stats.human_bytes(size) for size in by_size], series)
