"""
E2: reserving ids in ranges; BLOBs against VARBINARYs; readers beside an updater (published/e2.toml: a 2010 blog on MySQL Cluster tuning).

Loads. `insert`: statements of 16 rows from 8 threads, ids by AUTO_INCREMENT with prefetch 1, 256, 1024, or by a SEQUENCE with these
caches; `fronts`: the same statements through two Spider fronts, where an id may cost a trip. `read`: two 1,024-byte columns of as many rows
as there, by primary key. `few` and `updated`: the same on 64 rows, alone and beside one client that updates them without a pause, for NDB takes
shared locks where it reads BLOBs. One engine runs at a time; of NDB one SQL node has all clients, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from rich.table import Table

from ...design.cells import Cells
from ...design.plan import WITHOUT_DATASET, Block, Cell, Point
from ...design.request import Address, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import BASELINE_SUFFIX, TARGET, TARGET_PREFIX, Variant
from ...load.payload import Payload
from ...report import stats
from ...report.verdicts import FindingRow, Verdict
from ...run.experiment import Bench, Context, Experiment, PlanRow, PublishedFigure, Source
from ...run.tables import comparison_table
from ...servers import ndb_cluster
from ...servers.lab_server import file_sha256
from .. import by_engine
from ..engine_bench import EngineBench, load_seconds, own_cluster, start_seconds, target_needs, uses_own_cluster
from ..table_experiment import TableExperiment, buffer_pool_bytes, server_needs
from . import bench as fronts_bench
from . import findings, report
from .bench import CACHES, OPERATION as FRONTS, FrontsBench
from .engines import FRONTS as FRONTS_ENGINE
from .engines import NDB, Group, blocks
from .findings import DOCUMENT, ROW, THREADS, WIDE_ROW

BATCH_ROWS, WIDE_ROWS = 16, int(DOCUMENT.value("wide-rows"))
ID_VARIANTS = ("innodb", *(f"quarry-prefetch-{n}" for n in CACHES), *(f"sequence-{n}" for n in CACHES))
WIDE_VARIANTS = ("innodb-2blob", "innodb-2varbinary", "quarry-2blob", "quarry-2blob-default", "quarry-2varbinary")
ALSO_WIDE = ("rocksdb-2blob",)  # when it is asked for
LOADS = ("insert", FRONTS, "read", "few", "updated")
SMALL_LOADS = ("insert", FRONTS)
FRONTS_START_SECONDS = 30  # an estimate, for the planned wall time only


class AutoIncrement(by_engine.ByEngine, TableExperiment):
    name = "e2"
    title = "E2: ids in ranges, BLOB against VARBINARY, readers beside an updater"
    operations = LOADS
    reference = "quarry-prefetch-1"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "The same rows and statements, one engine at a time, client and servers on the same processors. NDB, where it is built, has 2 data nodes and "
        "one SQL node with all clients: there an id is a trip. Quarry and InnoDB are one server, whose id counter is memory: no reservation is a "
        "trip, and how many there are is counted. A SEQUENCE's reservations are writes. Through two Spider fronts over two shards an id may be a trip "
        "to a shard; a shard has a replica, and a binary log in either profile. Inserted values stay in the row.")
    published = (*(PublishedFigure(DOCUMENT.figure(f"prefetch-{n}"), Cell("insert", f"quarry-prefetch-{n}", ROW, THREADS)) for n in CACHES),
                 PublishedFigure(DOCUMENT.figure("two-blobs"), Cell("read", "quarry-2blob", WIDE_ROW, THREADS)),
                 PublishedFigure(DOCUMENT.figure("two-varbinarys"), Cell("read", "quarry-2varbinary", WIDE_ROW, THREADS)))
    on_ndb = by_engine.twins(findings.QUARRY, findings.NDB)
    on_innodb = by_engine.twins(findings.QUARRY, findings.INNODB)

    @property
    def labels(self) -> dict[str, str]:
        return super().labels | fronts_bench.LABELS

    # --- what to run ---
    def variants(self, request: Request) -> list[Variant]:
        """Of the tables of one server."""
        return super().variants(replace(request, variants=[key for key in request.variants if key not in fronts_bench.WAYS]))

    def default_request(self) -> Request:
        return Request(self.name, list(LOADS), [ROW, WIDE_ROW], [THREADS], [*ID_VARIANTS, *fronts_bench.WAYS, *WIDE_VARIANTS],
                       settings=Settings(warmup_seconds=1, batch_rows=BATCH_ROWS, dataset_bytes=WIDE_ROWS * WIDE_ROW))

    def quick(self, request: Request) -> Request:
        """Of each load the ends; a tenth of the rows."""
        left_out = {"quarry-prefetch-1024", "sequence-1024", "fronts-sequence-1024", "fronts-shard-1024", "innodb-2varbinary"}
        settings = replace(request.settings, seconds=3, warmup_seconds=1, dataset_bytes=WIDE_ROWS * WIDE_ROW // 10, device_probe_seconds=0)
        return replace(request, rounds=1, settings=settings, variants=[v for v in request.variants if v not in left_out])

    def own_target(self) -> Address | None:
        return own_cluster()

    def cells(self, request: Request) -> list[Cell]:
        wide = (*WIDE_VARIANTS, *ALSO_WIDE)
        wanted = {"insert": ID_VARIANTS, FRONTS: tuple(fronts_bench.WAYS), "read": wide, "few": WIDE_VARIANTS, "updated": WIDE_VARIANTS}
        return [Cell(load, key, ROW if load in SMALL_LOADS else WIDE_ROW, count) for load in request.operations for count in request.threads
                for key in request.variants if _plain(key) in wanted[load]]

    def group(self, cell: Cell) -> Group:
        return Group.of(cell)

    def plan(self, request: Request) -> list[Block]:
        return blocks(request, self.cells(request))

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        variants = self.variants(request)
        private = [v for v in variants if v.server != TARGET]
        missing = server_needs(private, request) if private else []
        if self._has_fronts(request):
            missing += fronts_bench.needs()
            if not any(v.needs_plugin for v in private) and not (request.plugin and request.plugin.exists()):
                missing.append(f"a plugin at {request.plugin} for the shards behind the fronts ('make plugin' builds it)")
        return missing + (self._target_needs(request) if any(v.server == TARGET for v in variants) else [])

    def _has_fronts(self, request: Request) -> bool:
        return any(cell.operation == FRONTS for cell in self.cells(request))

    def identity(self, request: Request) -> dict:
        """The tables behind the fronts are of the build, too."""
        build = {"main_plugin_sha256": file_sha256(request.plugin)} if self._has_fronts(request) and request.plugin else {}
        return super().identity(request) | build

    def _target_needs(self, request: Request) -> list[str]:
        return target_needs(request, max(request.threads), sql_nodes=ndb_cluster.ONE_SQL_NODE)

    def disk_bytes(self, request: Request) -> int:
        """The tables of one engine (twice for what updates leave), what is inserted, redo log, conditioning, and the reserve."""
        tables = 2 * len(WIDE_VARIANTS) * request.settings.dataset_bytes
        return tables + (8 << 30) + buffer_pool_bytes(request) * 5 // 4 + request.settings.disk_reserve_bytes

    def seconds_of(self, request: Request, point: Point) -> float:
        """With settling, which nothing does in front of, or behind, a load through the fronts."""
        return request.settings.seconds + request.settings.warmup_seconds + (2 if point.operation == FRONTS else 4)

    def seconds_around(self, request: Request) -> float:
        return sum(self._engine_seconds(request, group) for group in {Group.of(cell) for cell in self.cells(request)})

    def _engine_seconds(self, request: Request, group: Group) -> float:
        """To start it and load its tables."""
        if group.engine == FRONTS_ENGINE:
            return FRONTS_START_SECONDS
        tables = {cell.variant for cell in self.cells(request) if Group.of(cell) == group and cell.operation not in WITHOUT_DATASET}
        probing = 0 if group.engine == NDB else request.rounds * (request.settings.device_probe_seconds + 4)
        loading = load_seconds(group.engine, len(tables) * request.settings.dataset_bytes)
        return start_seconds(group.engine, buffer_pool_bytes(request)) + loading + probing

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        made = []
        for group in dict.fromkeys(block.group for block in self.plan(request)):
            points = [point for point in left if Group.of(point) == group]
            seconds = self._engine_seconds(request, group) + sum(self.seconds_of(request, point) for point in points)
            loads = ", ".join(load for load in LOADS if any(point.operation == load for point in points))
            count = len({point.variant for point in points})
            made.append(PlanRow(group.engine, f"{stats.counted(count, 'variant')}: {loads}", len(points), seconds if points else 0))
        return made

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[Bench]:
        is_ours = uses_own_cluster(context.request)
        with Payload(context.request.payload) as payload, ndb_cluster.as_found(is_ours):
            with EngineBench(context, payload, ndb_cluster.ONE_SQL_NODE) as tables, closing(FrontsBench(context)) as fronts:
                yield IdsBench(tables, fronts)

    def line(self, record: dict) -> str:
        return Experiment.line(self, record) if record["operation"] == FRONTS else super().line(record)

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return findings.verdicts(self.cells_of(run), run.run["parameters"])

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        return findings.rows(self.verdicts(run))

    def figures(self, run: RunDirectory) -> dict:
        return report.figures(self.cells_of(run))

    def tables(self, run: RunDirectory) -> list[Table]:
        on_tables = Cells([p for p in run.points if p["operation"] != FRONTS], self.labels)
        compared = comparison_table(on_tables, run.run, self.reference) if on_tables.points() else []
        return [*compared, *report.tables(self.cells_of(run))]


def _plain(key: str) -> str:
    """Quarry's variant of which this is the twin on NDB, on a target or in the other build."""
    return key.removeprefix(TARGET_PREFIX).removesuffix(BASELINE_SUFFIX).replace("ndb", "quarry")


class IdsBench(Bench):
    """Tables of one engine, and the fronts, by a point's operation; only one of them runs. Externally synchronised."""

    def __init__(self, tables: EngineBench, fronts: FrontsBench):
        self.tables, self.fronts = tables, fronts

    def _of(self, operation: str) -> Bench:
        return self.fronts if operation == FRONTS else self.tables

    def describe(self) -> dict:
        return self.tables.describe()

    def begin(self, block: Block) -> None:
        if block.points[0].operation == FRONTS:
            self.tables.stop()
        else:
            self.fronts.close()
        self._of(block.points[0].operation).begin(block)

    def end(self, block: Block) -> None:
        self._of(block.points[0].operation).end(block)

    def measure(self, point: Point) -> dict:
        return self._of(point.operation).measure(point)

    def ended(self) -> str:
        return self.tables.ended() + self.fronts.ended()
