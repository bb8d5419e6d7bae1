"""
E4: what lies between a client and a value. Point reads over every path that MariaDB ships, and over NDB's, by one C++ client (lab/clients).

Published (published/e4.toml: 2012 blog, CLIENT_COMPRESS considered harmful): what the compressed protocol costs, how far MongoDB and the NDB API
are ahead of SQL, that columns on disk have a fixed size; what connections cost and what an embedded server would give was left open. All paths but
the embedded one go over TCP, on the loopback interface but for a target elsewhere: HandlerSocket has nothing else. One engine runs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from quarry_server.server import MARIADB
from rich.table import Table

from ...design.plan import Block, Cell, Point
from ...design.request import Address, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import ALL, TARGET, TARGET_PREFIX
from ...load import value_reader
from ...load.payload import KINDS, Payload
from ...report import stats
from ...report.verdicts import FindingRow, Verdict
from ...run.experiment import Bench, Context, Experiment, PlanRow, PublishedFigure, Source
from ...run.tables import size_label
from ...servers import ndb_cluster, target
from ...servers.lab_server import file_sha256
from ...servers.target import NDB_ALONE
from .. import by_engine
from ..engine_bench import load_seconds, own_cluster, start_seconds, target_needs, uses_own_cluster
from ..table_experiment import server_needs
from . import findings, report, space
from .bench import ReaderBench
from .engines import FETCH, OPERATIONS, Group, blocks, grid
from .findings import DOCUMENT
from .ways import LABELS, NDB, NDB_API_WAY, PRIVATE_WAYS, SIZES, SMALL, SQL_WAYS, TARGET_TABLES, THREADS, WAYS, engine_of, tables_of

_PRIVATE_DISK = tuple(key for key in space.TABLES if not key.startswith(TARGET_PREFIX))
_NDB_DISK = "target-ndb-disk"
NDB_SPACE_SECONDS = 40  # an estimate: to make the tablespace


class Protocols(by_engine.ByEngine, Experiment):
    name = "e4"
    title = "E4: the compressed protocol, and other ways to a value"
    operations = OPERATIONS
    payloads = KINDS
    takes_target = True
    reference = "text"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        f"{THREADS} client threads, rows of {SMALL} bytes and values of 4, 64 and 448 KB. TCP on the loopback interface, one engine at a time, "
        "server and client on the same processors. SQL text by one client, too. NDB, where it is built, has 2 data nodes, and one SQL node has all "
        "clients; its own API is measured on it alone, HandlerSocket on Quarry, the embedded server on InnoDB. The payload is incompressible unless "
        "--payload says otherwise.")
    published = (PublishedFigure(DOCUMENT.figure("plain"), Cell(FETCH, "text", SMALL, THREADS)),
                 PublishedFigure(DOCUMENT.figure("compressed"), Cell(FETCH, "text-compressed", SMALL, THREADS)),
                 PublishedFigure(DOCUMENT.figure("gain-plain"), Cell(FETCH, "text", SMALL, THREADS), "text-compressed"))
    on_ndb = by_engine.twins(findings.QUARRY, findings.NDB)
    on_innodb = by_engine.twins(findings.QUARRY, findings.INNODB)

    @property
    def labels(self) -> dict[str, str]:
        return LABELS

    # --- what to run ---
    def default_request(self) -> Request:
        return Request(self.name, list(OPERATIONS), list(SIZES), [THREADS], [*PRIVATE_WAYS, *_PRIVATE_DISK],
                       settings=Settings(warmup_seconds=1, dataset_bytes=128 << 20))

    def quick(self, request: Request) -> Request:
        made = super().quick(request)
        return replace(made, sizes_bytes=[SMALL, 64 * 1024], settings=replace(made.settings, seconds=2, dataset_bytes=32 << 20))

    def full(self, request: Request) -> Request:
        return replace(super().full(request), threads=[1, THREADS, 64])

    def own_target(self) -> Address | None:
        return own_cluster()

    def on_target(self, keys: list[str], engines: set[str]) -> list[str]:
        """The NDB API's library, and its port, are those of `make ndb`."""
        there = [name for name, table in TARGET_TABLES.items() if ALL[table].engine.upper() in engines]
        ways = [f"target-{name}-{key}" for name in there for key in SQL_WAYS if key in keys]
        if "NDBCLUSTER" not in engines:
            return ways
        is_ours = engines == NDB_ALONE or target.local_cluster() is not None
        return [*ways, *([NDB_API_WAY] if is_ours and value_reader.has_ndb_api() else []), *([_NDB_DISK] if set(keys) & set(_PRIVATE_DISK) else [])]

    def cells(self, request: Request) -> list[Cell]:
        return grid(request)

    def group(self, cell: Cell) -> Group:
        return Group.of(cell)

    def plan(self, request: Request) -> list[Block]:
        return blocks(request, self.cells(request))

    def identity(self, request: Request) -> dict:
        plugin = file_sha256(request.plugin) if request.plugin and _has_quarry(request) else None
        return super().identity(request) | {"plugin_sha256": plugin, "client_sha256": [file_sha256(path) for path in value_reader.sources()]}

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        private = [table for table in tables_of(request.variants) if table.server != TARGET]
        if _has_quarry(request) and not any(table.needs_plugin for table in private):
            private.append(ALL[WAYS["text"].table])  # a disk point alone
        missing = server_needs(private, request) + value_reader.needs()
        if any(key.startswith(TARGET_PREFIX) for key in request.variants):
            missing += target_needs(request, max(request.threads), target.needs_over_tcp, ndb_cluster.ONE_SQL_NODE)
        if _has_quarry(request) and not (MARIADB / "usr" / "lib" / "mysql" / "plugin" / "handlersocket.so").exists():
            missing.append(f"handlersocket.so under {MARIADB} (scripts/fetch-mariadb gets it)")
        return missing

    def disk_bytes(self, request: Request) -> int:
        """A size's table, the embedded server's, that of a disk point; redo logs, binary log; and the reserve."""
        return request.settings.dataset_bytes * 4 + 8 * space.PAYLOAD_BYTES + (4 << 30) + request.settings.disk_reserve_bytes

    def seconds_of(self, request: Request, point: Point) -> float:
        if point.operation == space.OPERATION:
            return 10 if engine_of(point.variant) == NDB else 5
        return request.settings.seconds + request.settings.warmup_seconds + (4 if WAYS[point.variant].embedded else 1)

    def seconds_around(self, request: Request) -> float:
        groups = {Group.of(cell) for cell in self.cells(request)}
        starting = sum(start_seconds(engine) for engine in {group.engine for group in groups})
        return starting + sum(self._load_seconds(request, group) for group in groups)

    def _load_seconds(self, request: Request, group: Group) -> float:
        """Of a size's table, and settling."""
        if group.operation == space.OPERATION:
            return NDB_SPACE_SECONDS if group.engine == NDB else 0
        return load_seconds(group.engine, request.settings.dataset_bytes) + 8

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        made = []
        groups = list(dict.fromkeys(block.group for block in self.plan(request)))
        for engine in dict.fromkeys(group.engine for group in groups):
            mine = [group for group in groups if group.engine == engine]
            points = [point for point in left if engine_of(point.variant) == engine]
            around = start_seconds(engine) + sum(self._load_seconds(request, group) for group in mine)
            seconds = around + sum(self.seconds_of(request, point) for point in points)
            sizes = ", ".join(size_label(size) for size in sorted({p.size_bytes for p in points if p.operation == FETCH}))
            disk = "; disk" if any(p.operation == space.OPERATION for p in points) else ""
            what = f"{stats.counted(len({p.variant for p in points}), 'way')}: {sizes}{disk}"
            made.append(PlanRow(engine, what, len(points), seconds if points else 0))
        return made

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[Bench]:
        is_ours = uses_own_cluster(context.request)
        with Payload(context.request.payload) as payload, ndb_cluster.as_found(is_ours), ReaderBench(context, payload) as bench:
            yield bench

    def line(self, record: dict) -> str:
        per_byte = space.disk_bytes_per_byte(record)
        return super().line(record) + (f"  {per_byte:.2f} B/B on disk" if per_byte is not None else "")

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return findings.verdicts(self.cells_of(run), run.run["parameters"])

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        return findings.rows(self.verdicts(run))

    def figures(self, run: RunDirectory) -> dict:
        return report.figures(self.cells_of(run))

    def tables(self, run: RunDirectory) -> list[Table]:
        return report.tables(self.cells_of(run))


def _has_quarry(request: Request) -> bool:
    """Whether a private server with the plugin, and with HandlerSocket, is part of the run."""
    return any(engine_of(key) == "QUARRY" for key in request.variants)
