"""
E3: fetching compressed BLOBs. Where to compress a value (in the application, in the server, nowhere) when it is fetched over a network.

Published by Wix Engineering, in Java with JMH: throughput in uncompressed bytes per second, on localhost, in a cloud and over slower links.
An operation is a kind of data, a setting is a link (links.py), a variant is a way to compress in an engine's table (methods.py). grid.py names the cells.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table

from ...design.cells import CellKey
from ...design.methods import LABELS, METHODS, ROCKSDB_OPTIONS
from ...design.plan import Block, Cell, Point, in_a_row, interleave
from ...design.repeats import comparison_of
from ...design.request import DATA, LabError, Request, Settings
from ...design.results import RunDirectory
from ...load import java
from ...report import stats
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from ...run.experiment import Context, PlanRow, PublishedFigure, Source, noise_note
from ...servers import ndb_cluster, processor_cgroup, routed
from ...servers.lab_server import LabServer
from ...servers.links import LINKS, Link, Network
from ...servers.processor_cgroup import ProcessorCgroup
from ...servers.routed import RoutedPair
from quarry_server.ports import free_ports
from ..by_engine import ByEngine
from ..engine_bench import start_seconds
from ..java_experiment import JavaExperiment
from ..table_experiment import memory_needs, value_cache
from . import figures as e3_figures, findings as e3_findings
from .bench import FetchBench, Methods, rows_of
from .findings import (
    CLOUD,
    DOCUMENT,
    DOCUMENT_BYTES,
    ENGINES,
    LOCAL,
    LZ4_9,
    LZ4_17,
    MEDIUM_BYTES,
    MYSQL,
    NEAR,
    NONE,
    RANDOM,
    REAL,
    TABLE,
    THREADS,
    bytes_rate,
    size_text,
)
from .grid import INSIDE, KINDS, SIZES, ZSTD, chosen, is_in_full

_JVM_SECONDS = 4  # two starts and the verification; an estimate
_LOAD_BYTES_PER_SECOND = 2 << 20  # of one way; brotli 11 is most of it
_NDB = "NDB"  # the group of its cells
_QUICK_KINDS = (REAL, RANDOM[0], RANDOM[-1])
_QUICK_WAYS = (NONE, LZ4_9, LZ4_17, ZSTD, MYSQL, TABLE, INSIDE, "quarry-lz4")


def _beside(name: str, way: str, link: str, size_bytes: int = DOCUMENT_BYTES) -> PublishedFigure:
    return PublishedFigure(DOCUMENT.figure(name), Cell(REAL, way, size_bytes, THREADS, link))


class FetchCompressed(ByEngine, JavaExperiment):
    name = "e3"
    title = "E3: fetching compressed values through JDBC"
    operations = KINDS
    reference = "app-none"
    whose = "InnoDB"  # the author's engine
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "The user data are unpublished: seeded JSON documents of URLs and UUIDs stand for them. Random values are as long as the largest document; "
        "the author's had 4.1 MB. Links other than localhost are made on this machine, by the kernel or by a shaping proxy, with the rates and delays "
        "that the author's charts show. But '1 Gbit Ethernet' has the rate of its name; the charts show a quarter of that, which the link to the weak "
        "server has. A weak server is this one with a part of its processor time. NDB, where it is built, has 2 data nodes and one SQL node with "
        "clients; every link to it but localhost is the shaping proxy's. What is said to be published was read off the author's charts.")
    published = (
        *(_beside(*shown) for shown in (
            ("cloud-none", NONE, CLOUD), ("cloud-lz4-17", LZ4_17, CLOUD), ("cloud-zstd", ZSTD, CLOUD), ("cloud-uncompress", INSIDE, CLOUD),
            ("local-none", NONE, LOCAL), ("local-lz4-17", LZ4_17, LOCAL), ("local-row-format", TABLE, LOCAL), ("local-uncompress", INSIDE, LOCAL),
            ("weak-none", NONE, "weak"), ("weak.lz4-17", LZ4_17, "weak"), ("weak.zstd", ZSTD, "weak"), ("weak.brotli-11", "app-brotli-11", "weak"),
            ("weak.uncompress", INSIDE, "weak"), ("weak.row-compressed", TABLE, "weak"))),
        *(_beside(f"medium-{name}.{link}", key, link, MEDIUM_BYTES) for link in NEAR for name, key in (("none", NONE), ("lz4-17", LZ4_17))))

    @property
    def labels(self) -> dict[str, str]:
        return LABELS

    # --- what to run ---
    def default_request(self) -> Request:
        """NDB's part where it is built."""
        ways = [key for key, method in METHODS.items() if not method.on_ndb or ndb_cluster.is_built()]
        return Request(self.name, list(KINDS), list(SIZES), [THREADS], ways, settings=Settings(dataset_bytes=8 << 20),
                       options={"links": list(LINKS)})

    def quick(self, request: Request) -> Request:
        """One way of each kind on every link, and of the alphabets the ends."""
        return replace(super().quick(request), variants=list(_QUICK_WAYS), operations=list(_QUICK_KINDS))

    def full(self, request: Request) -> Request:
        """Three rounds of a grid that takes most of a day."""
        return replace(super().full(request), rounds=3)

    def cells(self, request: Request) -> list[Cell]:
        """
        The whole grid when kinds or sizes were asked for. Else what the charts and the findings need; at full scale also every kind and size on
        localhost, and every way to compress on every link.
        """
        grid = [Cell(kind, key, size, threads, link) for kind in request.operations for size in request.sizes_bytes
                for link in request.options["links"] for threads in request.threads for key in request.variants if _can_take(link, key)]
        own_kinds = _QUICK_KINDS if request.scale == "quick" else KINDS
        if request.operations != list(own_kinds) or request.sizes_bytes != list(SIZES):
            return grid
        wanted = {replace(cell, threads=threads) for cell in chosen() for threads in request.threads}
        return [cell for cell in grid if cell in wanted or (request.scale == "full" and is_in_full(cell))]

    def group(self, cell: Cell) -> Hashable:
        return _NDB if METHODS[cell.variant].on_ndb else (cell.operation, cell.size_bytes)

    def comparison(self, point: Point) -> Hashable:
        """Ways to compress are compared on one link; NDB's, which are measured at another time, with each other."""
        return comparison_of(point), point.setting, METHODS[point.variant].on_ndb

    def plan(self, request: Request) -> list[Block]:
        """NDB's rounds come together, behind all others, so that its cluster is started once."""
        there = self._ndb_cells(request)
        here = [cell for cell in self.cells(request) if cell not in there]
        behind = in_a_row(_NDB, there, request.rounds, random.Random(request.seed)) if there else []
        return [*interleave(here, request.rounds, request.seed, self.group), *behind]

    def needs_plugin(self, request: Request) -> bool:
        return any(METHODS[key].needs_plugin for key in request.variants)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        missing = super().needs(request)
        for key in request.options["links"]:
            if key not in LINKS:
                raise LabError(f"unknown link '{key}' (allowed: {', '.join(LINKS)})")
        measured = self._links(request)
        if any(link.weak_server for link in measured) and (reason := processor_cgroup.reason_against()):
            missing.append(f"a processor cgroup for a weak server: {reason} (--option links={self._links_but(request, 'weak')} leaves it out)")
        if any(link.routed for link in measured) and (reason := routed.reason_against()):
            missing.append(f"{reason} for a proxy that routes (--option links={self._links_but(request, 'routed')} leaves it out)")
        missing += memory_needs(request, routed.POOLS_BYTES if any(link.routed for link in measured) else 0)
        return missing + (ndb_cluster.needs() if self._ndb_cells(request) else [])

    def _ndb_cells(self, request: Request) -> list[Cell]:
        return [cell for cell in self.cells(request) if METHODS[cell.variant].on_ndb]

    def _links(self, request: Request) -> list[Link]:
        """Those that a cell is measured on."""
        found = {cell.setting for cell in self.cells(request)}
        return [LINKS[key] for key in request.options["links"] if key in found]

    @staticmethod
    def _links_but(request: Request, which: str) -> str:
        return ",".join(key for key in request.options["links"] if key != which)

    def disk_bytes(self, request: Request) -> int:
        return 2 * self._dataset_bytes(request) + (4 << 30) + request.settings.disk_reserve_bytes

    def methods_of(self, request: Request, is_routed: bool = False) -> Methods:
        """(kind, bytes of a value) -> the methods of private servers measured with such values: on the routed links, or on all others."""
        return _by_values(cell for cell in self.cells(request) if LINKS[cell.setting].routed == is_routed and not METHODS[cell.variant].on_ndb)

    def _dataset_bytes(self, request: Request) -> int:
        """Of all kinds, sizes and methods."""
        return sum(size * rows_of(size, request.settings.dataset_bytes) * len(methods)
                   for is_routed in (False, True) for (_kind, size), methods in self.methods_of(request, is_routed).items())

    def seconds_of(self, request: Request, point: Point) -> float:
        return request.settings.seconds + request.settings.warmup_seconds + _JVM_SECONDS

    def seconds_around(self, request: Request) -> float:
        cluster = start_seconds(_NDB) if self._ndb_cells(request) else 0
        return 60 + cluster + self._dataset_bytes(request) / _LOAD_BYTES_PER_SECOND / len(KINDS)

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        """By link, and what is done once."""
        made = []
        for link in self._links(request):
            points = [point for point in left if point.setting == link.key]
            groups = {(point.operation, point.size_bytes) for point in points}
            ways = len({point.variant for point in points})
            cells = f"{stats.counted(ways, 'way')} to compress, {len(groups)} of kinds and sizes" if points else ""
            made.append(PlanRow(link.label, cells, len(points), sum(self.seconds_of(request, point) for point in points)))
        return [*made, PlanRow("servers and datasets", "", 0, self.seconds_around(request) if left else 0)]

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[FetchBench]:
        request = context.request
        context.progress.step("building the Java clients")
        java.build()
        measured, connections = self._links(request), max(request.threads)
        (port,) = free_ports(1)
        on_ndb = self._ndb_cells(request)
        with ExitStack() as stack:
            stack.enter_context(ndb_cluster.as_found(bool(on_ndb)))
            network = stack.enter_context(Network([link for link in measured if not link.routed], port, connections))
            weak = stack.enter_context(ProcessorCgroup()) if any(link.weak_server for link in measured) else None
            server = self._server(request, network, weak)
            stack.callback(server.close)
            server.start()
            there = [LINKS[key] for key in dict.fromkeys(cell.setting for cell in on_ndb)]
            bench = stack.enter_context(closing(FetchBench(context, server, network, self.methods_of(request), weak, (_by_values(on_ndb), there))))
            if behind := [link for link in measured if link.routed]:
                self._route(stack, request, bench, behind)
            yield bench

    def _server(self, request: Request, network: Network, weak: ProcessorCgroup | None) -> LabServer:
        with_rocksdb = "rocksdb" in request.variants
        plugin = self._plugin(request)
        caches = {**(ROCKSDB_OPTIONS if with_rocksdb else {}), **(value_cache(request) if plugin else {})}
        extra = {**java.network_options(network.port, network.addresses), **caches, **request.mycnf}
        return LabServer("main", DATA / "main", plugin, with_rocksdb, extra, cgroup=weak.path if weak else None)

    def _plugin(self, request: Request) -> Path | None:
        return request.plugin if self.needs_plugin(request) else None

    def _route(self, stack: ExitStack, request: Request, bench: FetchBench, links: list[Link]) -> None:
        """A primary, its replica and a proxy for these links."""
        (port,) = free_ports(1)
        network = stack.enter_context(Network(links, port, max(request.threads)))
        listen = [(address, port) for address in network.addresses]
        pair = stack.enter_context(RoutedPair(DATA, listen, self._plugin(request), request.mycnf))
        bench.route(pair, network, self.methods_of(request, is_routed=True))

    def line(self, record: dict) -> str:
        what = f"{record['operation']:<8} {size_text(record['size_bytes']):>7}  {record['setting']:<10} {self.labels[record['variant']]:<28}"
        return f"round {record['round']}  {what} [bold]{_megabytes(bytes_rate(record)):>7} MB/s[/bold]{noise_note(record)}"

    # --- what came out ---
    def beside(self, run: RunDirectory, figure: PublishedFigure) -> str:
        """Of each engine whose tables have this way."""
        roles = [(engine.name or "InnoDB", engine.roles[figure.cell.variant]) for engine in ENGINES if figure.cell.variant in engine.roles]
        found = [(name, self.ours(run, replace(figure.cell, variant=way))) for name, way in roles]
        return "; ".join(f"{name} {text}" for name, text in found if text != NOT_MEASURED) or NOT_MEASURED

    def ours(self, run: RunDirectory, cell: Cell) -> str:
        found = self.cells_of(run).summary(CellKey.of(cell), cell.variant, bytes_rate)
        return f"{_megabytes(found.median)} MB/s{found.range_text(_megabytes)}" if found else NOT_MEASURED

    def size_text(self, size_bytes: int) -> str:
        return e3_findings.size_text(size_bytes)

    def figures(self, run: RunDirectory) -> dict[str, Figure]:
        return e3_figures.figures(run)

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return e3_findings.verdicts(run)

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        return e3_findings.rows(self.verdicts(run))

    def tables(self, run: RunDirectory) -> list[Table]:
        return e3_figures.tables(run)

    def condition_tables(self, run: RunDirectory) -> list[Table]:
        return e3_figures.condition_tables(run)


def _megabytes(rate: float) -> str:
    """The unit of what was published."""
    return f"{rate / 1e6:,.0f}" if rate >= 100e6 else f"{rate / 1e6:.1f}"


def _can_take(link: str, way: str) -> bool:
    """A weak server and a pair behind a routing proxy are private servers; NDB's cluster is neither. An unknown link is refused elsewhere."""
    return not METHODS[way].on_ndb or link not in LINKS or not (LINKS[link].routed or LINKS[link].weak_server)


def _by_values(cells: Iterable[Cell]) -> Methods:
    found: Methods = {}
    for cell in cells:
        found.setdefault((cell.operation, cell.size_bytes), set()).add(cell.variant)
    return found
