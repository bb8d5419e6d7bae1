"""
E3: fetching compressed BLOBs. Where to compress a value (in the application, in the server, nowhere) when it is fetched over a network.

Published by Wix Engineering, in Java with JMH: throughput in uncompressed bytes per second, on localhost, in a cloud and over slower links.
An operation is a kind of data, a setting is a link (links.py), a variant is a way to compress (methods.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from matplotlib.figure import Figure
from rich.table import Table

from ...design.cells import CellKey
from ...design.methods import LABELS, METHODS, ROCKSDB_OPTIONS
from ...design.plan import Cell, Point
from ...design.request import DATA, LabError, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import KIB
from ...load import java
from ...report import stats
from ...report.verdicts import Verdict
from ...run.experiment import Context, PublishedFigure, Source, noise_note
from ...servers.lab_server import LabServer
from ...servers.links import LINKS, Network
from quarry_server.ports import free_ports
from ..java_experiment import JavaExperiment
from ..table_experiment import value_cache
from . import figures as e3_figures, findings as e3_findings
from .bench import FetchBench, rows_of
from .findings import CLOUD, DOCUMENT, DOCUMENT_BYTES, LOCAL, REAL, STUB_BYTES, bytes_rate

KINDS = (REAL, "stub-62", "stub-10", "stub-4", "stub-2")
SIZES = (int(DOCUMENT.value("smallest-value")), 16 * KIB, STUB_BYTES, 1024 * KIB, DOCUMENT_BYTES, 5120 * KIB)
_JVM_SECONDS = 4  # two starts and the verification; an estimate
_LOAD_BYTES_PER_SECOND = 2 << 20  # brotli 11 is most of it


def _chosen_cells() -> list[Cell]:
    """The cells of the normal scale: what the findings speak of, and each link once with what wins there."""
    return [
        *(Cell(REAL, key, DOCUMENT_BYTES, 1, LOCAL) for key in METHODS),
        *(Cell("stub-62", key, STUB_BYTES, 1, LOCAL) for key in ("app-none", "app-lz4-17")),
        *(Cell(REAL, key, DOCUMENT_BYTES, 1, CLOUD) for key in ("app-none", "app-lz4-17", "app-zstd", "uncompress", "quarry-lz4")),
        *(Cell(REAL, key, DOCUMENT_BYTES, 1, link) for link in ("gigabit", "wifi") for key in ("app-none", "app-lz4-17")),
        Cell(REAL, "app-none", DOCUMENT_BYTES, 1, "proxy"),
    ]


def _in_full(cell: Cell) -> bool:
    return cell.setting == LOCAL or (cell.operation, cell.size_bytes) == (REAL, DOCUMENT_BYTES)


class FetchCompressed(JavaExperiment):
    name = "e3"
    title = "E3: fetching compressed values through JDBC"
    operations = KINDS
    reference = "app-none"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "User data is unpublished: seeded JSON documents of URLs and UUIDs stand for it. "
        "Links other than localhost are made on this machine, by the kernel or by a shaping proxy. "
        "What is said to be published was read off the author's charts.")
    published = tuple(PublishedFigure(DOCUMENT.figure(name), Cell(REAL, key, DOCUMENT_BYTES, 1, link)) for name, key, link in (
        ("cloud-none", "app-none", CLOUD), ("cloud-lz4-17", "app-lz4-17", CLOUD), ("cloud-zstd", "app-zstd", CLOUD), ("cloud-uncompress", "uncompress", CLOUD),
        ("local-none", "app-none", LOCAL), ("local-row-format", "row-compressed", LOCAL)))

    @property
    def labels(self) -> dict[str, str]:
        return LABELS

    # --- what to run ---
    def default_request(self) -> Request:
        return Request(self.name, list(KINDS), list(SIZES), [1], list(METHODS), settings=Settings(dataset_bytes=16 << 20),
                       options={"links": list(LINKS)})

    def quick(self, request: Request) -> Request:
        """Without the codecs whose compression takes minutes."""
        made = super().quick(request)
        return replace(made, variants=[key for key in made.variants if key != "app-brotli-11"])

    def full(self, request: Request) -> Request:
        """Three rounds of a grid that takes most of a day."""
        return replace(super().full(request), rounds=3)

    def cells(self, request: Request) -> list[Cell]:
        """
        The whole grid when kinds or sizes were asked for. Else what the findings need; at full scale also every kind and size on
        localhost, and every way to compress on every link.
        """
        grid = [Cell(kind, key, size, threads, link) for kind in request.operations for size in request.sizes_bytes
                for link in request.options["links"] for threads in request.threads for key in request.variants]
        if request.operations != list(KINDS) or request.sizes_bytes != list(SIZES):
            return grid
        wanted = {replace(cell, threads=threads) for cell in _chosen_cells() for threads in request.threads}
        return [cell for cell in grid if cell in wanted or (request.scale == "full" and _in_full(cell))]

    def group(self, cell: Cell) -> Hashable:
        return (cell.operation, cell.size_bytes)

    def needs_plugin(self, request: Request) -> bool:
        return any(METHODS[key].needs_plugin for key in request.variants)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        missing = super().needs(request)
        for key in request.options["links"]:
            if key not in LINKS:
                raise LabError(f"unknown link '{key}' (allowed: {', '.join(LINKS)})")
        return missing

    def disk_bytes(self, request: Request) -> int:
        return 2 * self._dataset_bytes(request) * len(request.variants) + (2 << 30) + request.settings.disk_reserve_bytes

    def methods_of(self, request: Request) -> dict[tuple[str, int], set[str]]:
        """(kind, bytes of a value) -> the methods measured with such values."""
        cells = self.cells(request)
        return {key: {cell.variant for cell in cells if self.group(cell) == key} for key in {(cell.operation, cell.size_bytes) for cell in cells}}

    def _dataset_bytes(self, request: Request) -> int:
        """Of all kinds and sizes, in one method's tables."""
        sizes = {(cell.operation, cell.size_bytes) for cell in self.cells(request)}
        return sum(size * rows_of(size, request.settings.dataset_bytes) for _kind, size in sizes)

    def seconds_of(self, request: Request, point: Point) -> float:
        return request.settings.seconds + request.settings.warmup_seconds + _JVM_SECONDS

    def seconds_around(self, request: Request) -> float:
        return 60 + self._dataset_bytes(request) * len(request.variants) / _LOAD_BYTES_PER_SECOND / len(METHODS)

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[FetchBench]:
        request = context.request
        context.progress.step("building the Java clients")
        java.build()
        with_rocksdb = "rocksdb" in request.variants
        plugin = request.plugin if self.needs_plugin(request) else None
        (port,) = free_ports(1)
        with ExitStack() as stack:
            network = stack.enter_context(Network([LINKS[key] for key in request.options["links"]], port))
            caches = {**(ROCKSDB_OPTIONS if with_rocksdb else {}), **(value_cache(request) if plugin else {})}
            extra = {**java.network_options(port, network.addresses), **caches, **request.mycnf}
            server = LabServer("main", DATA / "main", plugin, with_rocksdb, extra)
            stack.callback(server.close)
            server.start()
            yield FetchBench(context, server, network, self.methods_of(request))

    def line(self, record: dict) -> str:
        rate = stats.human_bytes(record["result"]["uncompressed_bytes_per_second"])
        what = f"{record['operation']:<8} {stats.human_bytes(record['size_bytes']):>9}  {record['setting']:<10} {self.labels[record['variant']]:<28}"
        return f"round {record['round']}  {what} [bold]{rate:>9}[/bold]/s{noise_note(record)}"

    # --- what came out ---
    def ours(self, run: RunDirectory, cell: Cell) -> str:
        found = self.cells_of(run).summary(CellKey.of(cell), cell.variant, bytes_rate)
        return f"{found.median / 1e6:,.0f} MB/s{found.range_text(lambda rate: f'{rate / 1e6:,.0f}')}" if found else "not measured"

    def figures(self, run: RunDirectory) -> dict[str, Figure]:
        return e3_figures.figures(run)

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return e3_findings.verdicts(run)

    def tables(self, run: RunDirectory) -> list[Table]:
        return e3_figures.tables(run)
