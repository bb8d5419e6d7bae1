"""
E1: inline, parts and batches. The 90/10 mix over the column variants of Oracle's blog 'Tuning BLOB with SQL', part 2 (MySQL Cluster 9.4).

The same tables and statements as there, but for the engine's name; beside them InnoDB and MyRocks, a sweep of the batch bytes at one
size, and the memory that each variant takes for the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import charts, stats
from ..cells import CellKey, Cells, memory_ratio, p95_ms, throughput
from ..plan import Cell, table_cells
from ..request import Request, Settings
from ..results import RunDirectory
from ..tables import size_label, size_panels, throughput_figure
from ..variants import CORE_SIZES_KIB, KIB, SWEEP_KIB, Variant, sweep_key
from ..verdicts import Finding, Verdict, figures_of, judge, not_applicable, not_measured
from .base import PublishedFigure, Source
from .table_experiment import TableExperiment, judge_gain

HEAD, INLINE, VARBINARY, HEAD_4M, INLINE_4M = "quarry-head", "quarry-inline", "quarry-varbinary", "quarry-head-4m", "quarry-inline-4m"
VARIANTS = ("innodb", "rocksdb", HEAD, INLINE, VARBINARY, HEAD_4M, INLINE_4M)
THREADS = (2, 8, 32)
# Of the default grid the lowest thread count is measured at this size only: one whole curve, its upper end for every size.
CURVE_SIZES = (64 * KIB,)
SWEEP_SIZE = 448 * KIB
SWEEP_THREADS = 8


@dataclass(frozen=True)
class Gain:
    """A published gain of one variant over another at one size."""

    finding: Finding
    size_kib: int
    variant: str
    over: str
    gain_min: float


def _gain(number: str, statement: str, size_kib: int, variant: str, over: str, gain_min: float) -> Gain:
    rule = f"at the best thread count the median gain is at least {gain_min:.0%}, and every round points the same way"
    return Gain(Finding(f"e1-{number}", statement, rule), size_kib, variant, over, gain_min)


GAINS = (
    _gain("4kb-inline", "4 KB: inline 15-20% over the default head", 4, INLINE, HEAD, 0.15),
    _gain("4kb-varbinary", "4 KB: VARBINARY about 50% over inline", 4, VARBINARY, INLINE, 0.50),
    _gain("24kb-inline", "24 KB: inline 10-33% over the default head", 24, INLINE, HEAD, 0.10),
    _gain("24kb-varbinary", "24 KB: VARBINARY 30-50% over inline", 24, VARBINARY, INLINE, 0.30),
    _gain("64kb-inline", "64 KB: inline 5% over the default head, both with 4 MB batches", 64, INLINE_4M, HEAD_4M, 0.05),
    _gain("64kb-batch", "64 KB: 4 MB batches more than 50% over 64 KB batches", 64, HEAD_4M, HEAD, 0.50),
    _gain("448kb-batch", "448 KB: 4 MB batches more than 50% over 64 KB batches", 448, HEAD_4M, HEAD, 0.50),
)
EXCESSIVE = Finding("e1-excessive-batch", "an excessively large batch can be counterproductive",
                    "of the swept batch bytes, the largest is at least 5% slower than the best in every round")
MEMORY = Finding("e1-memory", "the aim of inline values is the memory footprint: fewer bytes of memory for the same rows",
                 "inline takes less memory per payload byte than the default head, at 4 KB and in every round")
NOT_HERE = (
    (Finding("e1-64kb-users", "64 KB: 60% more throughput from 32 to 64 users, 33% more to 128, then 5%", "throughput over 32-512 users"),
     "needs many SQL nodes and cores; here server and client share the processors"),
    (Finding("e1-4kb-saturation", "4 KB: saturation at 512 users", "throughput over 32-512 users"),
     "512 users on these processors would measure the scheduler"),
    (Finding("e1-448kb-cap", "448 KB: capped near 8,000 tps, 500 per SQL node", "throughput per SQL node"), "one server here, no SQL nodes"),
    (Finding("e1-latency-band", "best latency band 10-15 ms", "p95 at the knee"), "a band of a 16-node cluster at hundreds of users"),
    (Finding("e1-strained-links", "with strained links parts spread over nodes beat inline values", "throughput over a strained network"),
     "no network between rows and parts on one server"),
)


class InlinePartsBatches(TableExperiment):
    name = "e1"
    title = "E1: inline values, parts and batches under the 90/10 mix"
    reference = HEAD
    source = Source(
        "Oracle MySQL blog, 'Tuning BLOB with SQL', part 2 (MySQL Cluster 9.4)",
        "2 data nodes (NoOfReplicas=2) and 16 SQL nodes on one 64-core server with 2 TB of memory; sysbench with scripts of its own, 8 tables "
        "(id, data BLOB), 90% point selects and 10% updates of the value, 32 to 512 threads; throughput and 95th percentile.",
        "One private server and its client share this machine's processors: the same tables and statements but for the engine's name, fewer "
        "threads, InnoDB and MyRocks in the same server. Directions can be compared; nothing about hundreds of users or links between nodes can.")
    published = (*(PublishedFigure(what, value, Cell("mix", variant, kib * KIB, 32), over) for what, value, kib, variant, over in (
        ("4 KB, inline over the default head", "+15-20%", 4, INLINE, HEAD), ("4 KB, VARBINARY over inline", "about +50%", 4, VARBINARY, INLINE),
        ("24 KB, inline over the default head", "+10-33%", 24, INLINE, HEAD), ("24 KB, VARBINARY over inline", "+30-50%", 24, VARBINARY, INLINE),
        ("64 KB, 4 MB batches: inline over the default head", "+5%", 64, INLINE_4M, HEAD_4M),
        ("64 KB, 4 MB over 64 KB batches", "more than +50%", 64, HEAD_4M, HEAD),
        ("448 KB, 4 MB over 64 KB batches", "more than +50%", 448, HEAD_4M, HEAD))),
        PublishedFigure("448 KB, 16 SQL nodes, the highest throughput", "about 8,000 tps", Cell("mix", HEAD_4M, 448 * KIB, 32)))

    def default_request(self) -> Request:
        return Request(self.name, ["mix"], [s * KIB for s in CORE_SIZES_KIB], list(THREADS), list(VARIANTS),
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
        cells, parameters = self.cells_of(run), run.run["parameters"]
        found = [judge_gain(cells, g.finding, _keys(cells, g.size_kib), g.variant, g.over, g.gain_min, parameters) for g in GAINS]
        found += [_excessive_verdict(cells, parameters), _memory_verdict(cells, parameters)]
        return found + [not_applicable(finding, reason) for finding, reason in NOT_HERE]

    def figures(self, run: RunDirectory) -> dict:
        cells = Cells([p for p in run.points if p["variant"] not in map(sweep_key, SWEEP_KIB)], self.labels)
        made = {"mix": throughput_figure(cells, "mix"), "latency": _latency_figure(cells), "memory": _memory_figure(cells)}
        made["sweep"] = _sweep_figure(self.cells_of(run))
        return {name: figure for name, figure in made.items() if figure is not None}


def _threads(request: Request, size_bytes: int) -> list[int]:
    return request.threads[1:] if request.threads == list(THREADS) and size_bytes not in CURVE_SIZES else request.threads


def _keys(cells: Cells, size_kib: int) -> list[CellKey]:
    return [k for k in cells.keys() if k.size_bytes == size_kib * KIB and k.operation == "mix"]


def _sweep(cells: Cells) -> dict[int, str]:
    """Batch bytes -> variant, of what this run measured at the sweep's cell."""
    known = {64 * KIB: HEAD, 4096 * KIB: HEAD_4M, **{kib * KIB: sweep_key(kib) for kib in SWEEP_KIB}}
    key = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS)
    return {size: variant for size, variant in sorted(known.items()) if cells.rounds(key, variant)}


def _excessive_verdict(cells: Cells, parameters: dict) -> Verdict:
    key, by_size = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS), _sweep(cells)
    if len(by_size) < 3:
        return not_measured(EXCESSIVE, "no sweep of the batch bytes in this run")
    summaries = {size: cells.summary(key, variant, throughput) for size, variant in by_size.items()}
    best, largest = max(summaries, key=lambda size: summaries[size].median), max(summaries)
    text = ", ".join(f"{stats.human_bytes(size)}: {stats.human_count(s.median)}/s" for size, s in summaries.items())
    ratio = cells.ratio(key, by_size[largest], by_size[best])
    assert ratio
    points = cells.rounds_of([key], by_size.values())
    return judge(EXCESSIVE, ratio.high <= 0.95, text, {"largest_over_best": figures_of(ratio), "best_batch_bytes": best}, points, parameters)


def _memory_verdict(cells: Cells, parameters: dict) -> Verdict:
    found = cells.ratios(_keys(cells, 4), INLINE, HEAD, memory_ratio)
    if not found:
        return not_measured(MEMORY, "no memory of both variants at 4 KB in this run")
    text = "; ".join(f"x{k.threads}: inline takes {r.median:.2f}x the memory of the head" for k, r in found.items())
    figures = {f"ratio_x{k.threads}": figures_of(r) for k, r in found.items()}
    return judge(MEMORY, all(r.high < 1 for r in found.values()), text, figures, cells.rounds_of(found, (INLINE, HEAD)), parameters)


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
    return charts.bars("memory per payload byte after every row was read", "value size", "bytes of memory per byte",
                       [size_label(size) for size in sizes], series)


def _sweep_figure(cells: Cells):
    by_size = _sweep(cells)
    if len(by_size) < 3:
        return None
    key = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS)
    series = [charts.Series(HEAD, "QUARRY head 256", [cells.summary(key, variant, throughput) for variant in by_size.values()])]
    return charts.lines(f"batch bytes, {size_label(SWEEP_SIZE)} values, {SWEEP_THREADS} threads", "batch bytes", "transactions per second",
                        [stats.human_bytes(size) for size in by_size], series)
