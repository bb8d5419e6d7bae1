"""
E5: YCSB with values on disk. One table of a primary key and one payload, several times larger than the memory allowed.

Published for NDB disk data (published/e5.toml) on two large machines. What carries over to another machine is the share of
the device's own rate, and how reads and writes stand to each other. An operation is a workload, a setting is the number of data paths.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table

from ...design.cells import CellKey
from ...design.plan import Block, Cell, Point
from ...design.request import LabError, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import TARGET_PREFIX
from ...load.ycsb import PAYLOAD_BYTES, WORKLOADS
from ...report import stats
from ...report.verdicts import Verdict
from ...run.experiment import Context, PublishedFigure, Source, noise_note
from ...run.limited_bench import REDO_BYTES
from ...servers import target
from ..java_experiment import JavaExperiment
from . import figures as e5_figures, findings as e5_findings
from .bench import ENGINES, PRIVATE_ENGINES, DiskBench
from .findings import DOCUMENT, ONE_PATH, device_share, payload_rate, read_latency_ms, write_latency_ms

THREADS = 16
MEMORY_BYTES_MIN = 384 << 20
_START_SECONDS, _AROUND_POINT_SECONDS = 12, 5  # estimates: a server; a JVM and settling twice
_LOAD_BYTES_PER_SECOND = 150 << 20


def path_setting(paths: int) -> str:
    return ONE_PATH if paths == 1 else f"{paths} paths"


class DiskData(JavaExperiment):
    name = "e5"
    title = f"E5: YCSB with values of {PAYLOAD_BYTES:,} bytes, more data than memory"
    operations = tuple(WORKLOADS)
    takes_target = True
    reference = "innodb"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "One server with a memory limit and a dataset several times that; the share of the device's raw rate stands for the absolute rates.")
    published = (
        PublishedFigure(DOCUMENT.figure("load"), Cell("load", "quarry", PAYLOAD_BYTES, THREADS, ONE_PATH)),
        PublishedFigure(DOCUMENT.figure("mix"), Cell("published", "quarry", PAYLOAD_BYTES, THREADS, ONE_PATH)),
        PublishedFigure(DOCUMENT.figure("read-latency"), Cell("published", "quarry", PAYLOAD_BYTES, THREADS, ONE_PATH)),
        PublishedFigure(DOCUMENT.figure("write-latency"), Cell("published", "quarry", PAYLOAD_BYTES, THREADS, ONE_PATH)),
    )

    @property
    def labels(self) -> dict[str, str]:
        return {key: engine.label for key, engine in ENGINES.items()}

    # --- what to run ---
    def default_request(self) -> Request:
        """paths: numbers of data paths to compare; data_paths, redo_path: directories on drives of the user's."""
        return Request(self.name, list(WORKLOADS), [PAYLOAD_BYTES], [THREADS], list(PRIVATE_ENGINES), settings=Settings(dataset_bytes=3 << 30),
                       options={"memory_bytes": 1 << 30, "paths": [1, 2], "data_paths": [], "redo_path": ""})

    def quick(self, request: Request) -> Request:
        made = super().quick(request)
        return replace(made, settings=replace(made.settings, dataset_bytes=1 << 30), options={**made.options, "memory_bytes": 512 << 20})

    def full(self, request: Request) -> Request:
        """Far beyond any cache, and long enough for purge, GC and compaction to take their share."""
        made = super().full(request)
        return replace(made, settings=replace(made.settings, dataset_bytes=24 << 30, seconds=60, warmup_seconds=10),
                       options={**made.options, "memory_bytes": 4 << 30})

    def on_target(self, keys: list[str], engines: set[str]) -> list[str]:
        """NDB, too, which no private server has."""
        wanted = {TARGET_PREFIX + key for key in (*keys, "ndb")}
        return [key for key, engine in ENGINES.items() if key in wanted and engine.engine.upper() in engines]

    def cells(self, request: Request) -> list[Cell]:
        """Data paths are Quarry's; the other engines keep their data in one place. Every block begins with its load."""
        return [Cell(operation, key, PAYLOAD_BYTES, threads, path_setting(paths)) for key in request.variants
                for paths in (request.options["paths"] if ENGINES[key].is_private_quarry else [1])
                for threads in request.threads for operation in self._workloads(request, paths)]

    def _workloads(self, request: Request, paths: int) -> list[str]:
        """More paths than one are compared where they were published, on the load and the 50/50 mix; everywhere at full scale."""
        wanted = {"load", *request.operations}
        if paths > 1 and request.scale != "full":
            wanted &= {"load", "published"}
        return [key for key in WORKLOADS if key in wanted]

    def group(self, cell: Cell) -> Hashable:
        return (cell.variant, cell.setting, cell.threads)

    def plan(self, request: Request) -> list[Block]:
        """Blocks in random order; within one, the workloads in YCSB's order."""
        order = list(WORKLOADS)
        return [replace(block, points=tuple(sorted(block.points, key=lambda p: order.index(p.operation)))) for block in super().plan(request)]

    def needs_plugin(self, request: Request) -> bool:
        return any(ENGINES[key].is_private_quarry for key in request.variants)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        missing = super().needs(request) + (target.needs_over_tcp(request.target) if request.target else [])
        named = [*request.options["data_paths"], *filter(None, [request.options["redo_path"]])]
        missing += [f"the directory {path}" for path in named if not Path(path).is_dir()]
        if request.options["memory_bytes"] < MEMORY_BYTES_MIN:
            raise LabError(f"memory_bytes must be at least {MEMORY_BYTES_MIN}: no server carries this load with less (got {request.options['memory_bytes']})")
        if min(request.options["paths"], default=0) < 1:
            raise LabError(f"paths must be numbers from 1 (got {request.options['paths']})")
        if request.options["data_paths"] and max(request.options["paths"]) > len(request.options["data_paths"]):
            raise LabError(f"{max(request.options['paths'])} data paths are wanted, {len(request.options['data_paths'])} are named")
        return missing

    def disk_bytes(self, request: Request) -> int:
        """
        The dataset, as much again for what updates leave until it is given back, redo and doublewrite, and the reserve. What a target
        takes is not in it: it may be elsewhere.
        """
        return 3 * request.settings.dataset_bytes + REDO_BYTES + (1 << 30) + request.settings.disk_reserve_bytes

    def seconds_of(self, request: Request, point: Point) -> float:
        if point.operation == "load":
            return _START_SECONDS + request.settings.dataset_bytes / _LOAD_BYTES_PER_SECOND
        return super().seconds_of(request, point) + _AROUND_POINT_SECONDS

    # --- running it ---
    def open(self, context: Context) -> AbstractContextManager[DiskBench]:
        return DiskBench(context)

    def line(self, record: dict) -> str:
        result, latencies = record["result"], record["latencies"]
        means = ", ".join(f"{name.lower()} {latency['mean_ms']:.2f} ms" for name, latency in latencies.items())
        return (f"round {record['round']}  {record['operation']:<10} {self.labels[record['variant']]:<28} {record['setting']:<8} "
                f"[bold]{stats.human_count(result['events_per_second']):>7}[/bold]/s  mean {means}{noise_note(record)}")

    # --- what came out ---
    def ours(self, run: RunDirectory, cell: Cell) -> str:
        """With the figure that carries over to other hardware."""
        key, cells = CellKey.of(cell), self.cells_of(run)
        payload = cells.summary(key, cell.variant, payload_rate)
        share = cells.summary(key, cell.variant, lambda point: device_share(point, run.run))
        if payload is None:
            return "not measured"
        of_device = f", {share.median:.0%} of the device's raw rate" if share else ""
        return f"{super().ours(run, cell)}, {stats.human_bytes(payload.median)}/s{of_device}"

    def beside(self, run: RunDirectory, figure: PublishedFigure) -> str:
        """Latencies in their own unit."""
        mean = {"read-latency": read_latency_ms, "write-latency": write_latency_ms}.get(figure.figure.id)
        if mean is None:
            return super().beside(run, figure)
        found = self.cells_of(run).summary(CellKey.of(figure.cell), figure.cell.variant, mean)
        return f"{found.median:.2f} ms{found.range_text('{:.2f}'.format)}" if found else "not measured"

    def figures(self, run: RunDirectory) -> dict[str, Figure]:
        return e5_figures.figures(run, self.labels)

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return e5_findings.verdicts(run, self.labels)

    def tables(self, run: RunDirectory) -> list[Table]:
        return e5_figures.tables(run, self.labels)
