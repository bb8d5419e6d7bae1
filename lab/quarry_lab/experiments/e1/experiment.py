"""
E1: inline, parts and batches. The 90/10 mix over the column variants of the MySQL blog on tuning BLOB storage (MySQL Cluster 9.4).

The same tables and statements as there, for NDB, for Quarry with NDB's defaults and with its own, and for InnoDB; one engine runs at a time. Next to
them: the client's own floor, a sweep of the batch bytes, memory of each variant, and data four times the memory. published/e1.toml has what was
published, findings.py judges it, engines.py has the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.markup import escape

from ...design.cells import CellKey
from ...design.plan import Block, Cell, Point
from ...design.request import Address, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import ALL, E1_SIZES_KIB, KIB, SWEEP_KIB, TARGET, Variant, sweep_key
from ...load.payload import Payload
from ...probes import device
from ...report import stats
from ...report.verdicts import NOT_MEASURED, Finding, FindingRow, Verdict
from ...run.experiment import Context, PlanRow, PublishedFigure, Source
from ...run.tables import size_label
from ...servers import ndb_cluster
from ...servers.lab_server import PINNED, normal
from ...servers.memory_cgroup import reason_against
from .. import by_engine
from ..engine_bench import load_seconds, own_cluster, start_seconds, target_needs, uses_own_cluster
from ..table_experiment import TableExperiment, answer_gain, buffer_pool_bytes, server_needs
from . import columns
from . import figures as e1_figures
from . import findings as e1_findings
from .beside import FLOOR
from .bench import EngineBench, open_files_lacking, users_bytes
from .engines import LADDER, LINKED_KIB, LINKED_VARIANTS, MORE_DATA, MORE_DATA_MEMORY_BYTES, MORE_DATA_TIMES, Group, blocks, grid
from .findings import (
    DOCUMENT,
    HEAD,
    HEAD_4M,
    INLINE,
    INLINE_4M,
    LIMITED_LINKS,
    OWN,
    OWN_4M,
    OWN_INLINE,
    OWN_INLINE_4M,
    SWEEP_SIZE,
    SWEEP_THREADS,
    VARBINARY,
)

VARIANTS = (FLOOR, "innodb", "innodb-varbinary", HEAD, INLINE, VARBINARY, HEAD_4M, INLINE_4M, OWN, OWN_INLINE, OWN_4M, OWN_INLINE_4M)
NDB_HEAD, NDB_HEAD_4M = "target-ndb-head", "target-ndb-head-4m"
MEMORY = "4G"  # for the data of each engine: NDB's DataMemory as scripts/ndb has it, InnoDB's pool, Quarry's value cache
DATASET_BYTES = 896 << 20  # of each variant: about a quarter of it; three variants' tables, with what NDB loses in its pages of 32 KB, fit
SERVER = {"innodb_buffer_pool_size": MEMORY, "max_connections": "700", "table_open_cache": "4500"}  # 512 users of 8 tables
QUICK_SERVER = {**SERVER, "innodb_buffer_pool_size": "1G"}
_MORE_DATA_FINDING = Finding(
    "e1-more-data", f"{MORE_DATA}, 64 KB: Quarry over InnoDB (not published)",
    "throughput of Quarry's own defaults / InnoDB at every client level measured")


class InlinePartsBatches(by_engine.ByEngine, TableExperiment):
    name = "e1"
    title = "E1: inline values, parts and batches under the 90/10 mix"
    reference = HEAD
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "The same tables and statements. NDB, where it is built, has 2 data nodes and 2 SQL nodes; Quarry and InnoDB are one server each. One engine "
        "runs at a time, on the processors that the client has, too. A variant's data take about a quarter of NDB's DataMemory, of InnoDB's buffer pool "
        "and of Quarry's value cache, which is next to such a pool. A commit of Quarry or InnoDB waits for the device, one of NDB for the memory of two "
        "data nodes. All parts of a value of Quarry lie on one server: no load of it is spread over nodes. Values of 24 KB on NDB are measured once more "
        f"with {LIMITED_LINKS} each way between a data node and a SQL node, where the kernel can limit them.")
    published = (*(PublishedFigure(DOCUMENT.figure(name), Cell("mix", variant, kib * KIB, 32), over) for name, kib, variant, over in (
        ("4kb-inline", 4, INLINE, HEAD), ("4kb-varbinary", 4, VARBINARY, INLINE), ("24kb-inline", 24, INLINE, HEAD),
        ("24kb-varbinary", 24, VARBINARY, INLINE), ("64kb-inline", 64, INLINE_4M, HEAD_4M), ("64kb-batch", 64, HEAD_4M, HEAD))),
        PublishedFigure(DOCUMENT.figure("448kb-cap-per-node"), Cell("mix", HEAD_4M, 448 * KIB, 32)))
    on_ndb = by_engine.twins(e1_findings.QUARRY, e1_findings.NDB)

    # --- what to run ---
    def default_request(self) -> Request:
        settings = Settings(tables=8, warmup_seconds=2, dataset_bytes=DATASET_BYTES)
        return Request(self.name, ["mix"], [s * KIB for s in E1_SIZES_KIB], list(LADDER), list(VARIANTS), mycnf=dict(SERVER), settings=settings,
                       options={"sweep": 1, "more_data": 1})

    def quick(self, request: Request) -> Request:
        return replace(super().quick(request), sizes_bytes=[4 * KIB, 64 * KIB], threads=[32, 128], mycnf=dict(QUICK_SERVER),
                       options={"sweep": 0, "more_data": 0},
                       variants=[key for key in request.variants if key not in (OWN_INLINE, OWN_4M, OWN_INLINE_4M)],
                       settings=replace(request.settings, seconds=2, warmup_seconds=1, dataset_bytes=64 << 20, device_probe_seconds=0))

    def own_target(self) -> Address | None:
        return own_cluster()

    def variants(self, request: Request) -> list[Variant]:
        return super().variants(replace(request, variants=[*request.variants, *self._sweep_keys(request)]))

    def _sweep_keys(self, request: Request) -> list[str]:
        """The batch sizes that the variants with 64 KB and 4 MB do not cover; none unless these are there to stand beside."""
        if not request.options["sweep"] or SWEEP_SIZE not in request.sizes_bytes or SWEEP_THREADS not in request.threads:
            return []
        here = [sweep_key(kib) for kib in SWEEP_KIB]
        there = [f"target-{key.replace('quarry', 'ndb')}" for key in here]
        return [key for pair, keys in (({HEAD, HEAD_4M}, here), ({NDB_HEAD, NDB_HEAD_4M}, there)) if pair <= set(request.variants) for key in keys]

    def cells(self, request: Request) -> list[Cell]:
        has_links = uses_own_cluster(request) and not ndb_cluster.reason_against_limits()
        return grid(request, super().variants(request), has_links) + [Cell("mix", key, SWEEP_SIZE, SWEEP_THREADS) for key in self._sweep_keys(request)]

    def _why_without_links(self, request: Request) -> str:
        """Why NDB is not measured with limited links, too; empty where it is, or where nothing of it was asked for."""
        wanted = uses_own_cluster(request) and LINKED_KIB * KIB in request.sizes_bytes and set(LINKED_VARIANTS) & set(request.variants)
        return ndb_cluster.reason_against_limits() if wanted else ""

    def group(self, cell: Cell) -> Group:
        return Group.of(cell)

    def plan(self, request: Request) -> list[Block]:
        return blocks(request, self.cells(request))

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        variants = self.variants(request)
        private = [v for v in variants if v.server != TARGET]
        users, largest = max(request.threads), max(request.sizes_bytes)
        missing = server_needs(private, request) if private else []
        # The pool, Quarry's value cache, the users, and a server's own.
        need = 2 * buffer_pool_bytes(request) + users_bytes(users, largest) + (1 << 30)
        memory = device.memory_info()["MemAvailable"] + (ndb_cluster.held_bytes() if uses_own_cluster(request) else 0)
        if memory < need:
            missing.append(f"{stats.human_bytes(need)} of available memory for {users} users ({stats.human_bytes(memory)} are available)")
        allowed = int(request.mycnf.get("max_connections", PINNED["max_connections"]))
        if private and allowed < users + 2:
            missing.append(f"max_connections of at least {users + 2} for {users} users (it is {allowed}: --mycnf max_connections=, or other "
                           "--threads)")
        if lacking := open_files_lacking(users):
            missing.append(lacking)
        if self._has_more_data(request) and (reason := reason_against()):
            missing.append(f"a memory cgroup for {MORE_DATA}: {reason} (--option more_data=0 leaves it out)")
        return missing + (target_needs(request, users) if any(v.server == TARGET for v in variants) else [])

    def disk_bytes(self, request: Request) -> int:
        """The tables of one engine (twice for what updates leave), or those that exceed the memory; redo log, conditioning, and the reserve."""
        more = MORE_DATA_TIMES * MORE_DATA_MEMORY_BYTES if self._has_more_data(request) else 0
        tables = 2 * max(3 * request.settings.dataset_bytes, more)
        return tables + (4 << 30) + buffer_pool_bytes(request) * 5 // 4 + request.settings.disk_reserve_bytes

    def _has_more_data(self, request: Request) -> bool:
        return any(cell.setting == MORE_DATA for cell in self.cells(request))

    def seconds_of(self, request: Request, point: Point) -> float:
        """With connecting, settling, and the warm-up of the caches."""
        return request.settings.seconds + request.settings.warmup_seconds + 2.5 + point.threads / 150 + request.settings.dataset_bytes / (1 << 30)

    def seconds_around(self, request: Request) -> float:
        return sum(self._group_seconds(request, group, variants) for group, variants in self._groups(request).items())

    def _groups(self, request: Request) -> dict[Group, set[str]]:
        """Of each server that is started: whose tables it has."""
        found: dict[Group, set[str]] = {}
        for cell in self.cells(request):
            found.setdefault(Group.of(cell), set()).add(ALL[cell.variant].data_of or cell.variant)
        return found

    def _group_seconds(self, request: Request, group: Group, tables: set[str]) -> float:
        """To start a server and load its tables."""
        if group.engine == "floor":
            return start_seconds(group.engine)
        bytes_each = MORE_DATA_TIMES * MORE_DATA_MEMORY_BYTES if group.setting == MORE_DATA else request.settings.dataset_bytes
        pool = MORE_DATA_MEMORY_BYTES // 2 if group.setting == MORE_DATA else int(normal(request.mycnf.get("innodb_buffer_pool_size", MEMORY)))
        seconds = start_seconds(group.engine, pool) + load_seconds(group.engine, len(tables) * bytes_each)
        return seconds + (0 if group.engine == "NDB" else 10)

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        made, groups = [], self._groups(request)
        for group in dict.fromkeys(block.group for block in self.plan(request)):
            points = [point for point in left if Group.of(point) == group]
            users = ", ".join(map(str, sorted({point.threads for point in points})))
            seconds = self._group_seconds(request, group, groups[group]) + sum(self.seconds_of(request, point) for point in points)
            what = f"{size_label(group.size_bytes)}, {f'{group.engine}, {group.setting}' if group.setting else group.engine}"
            count = len({point.variant for point in points})
            made.append(PlanRow(what, f"{stats.counted(count, 'variant')}, users {users}", len(points), seconds if points else 0))
        if reason := self._why_without_links(request):
            made.append(PlanRow(f"{size_label(LINKED_KIB * KIB)}, NDB, {LIMITED_LINKS}", f"left out: {escape(reason)}", 0, 0))
        return made

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[EngineBench]:
        self.say_what_is_left_out(context)
        is_ours = uses_own_cluster(context.request)
        with Payload(context.request.payload) as payload, ndb_cluster.as_found(is_ours), EngineBench(context, payload) as bench:
            yield bench

    def say_what_is_left_out(self, context: Context) -> None:
        """A run that went on where links cannot be limited would end with fewer points than it began with."""
        if reason := self._why_without_links(context.request):
            context.progress.console.print(f"[yellow]left out: NDB with {LIMITED_LINKS}:[/yellow] {escape(reason)}", highlight=False, soft_wrap=True)

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        keys: list[CellKey] = [key for key in cells.keys() if key.setting == MORE_DATA]
        return [*e1_findings.verdicts(cells, parameters), answer_gain(cells, _MORE_DATA_FINDING, keys, OWN, "innodb", parameters)]

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        return columns.rows(self.verdicts(run))

    def ours(self, run: RunDirectory, cell: Cell) -> str:
        """At every client level, of each SQL server: the one published rate is so."""
        cells, wanted = self.cells_of(run), CellKey.of(cell)
        keys = [key for key in cells.keys() if replace(key, threads=wanted.threads) == wanted]
        rates = [(key, rate) for key in keys if (rate := cells.summary(key, cell.variant, e1_findings.per_server))]
        return "; ".join(f"x{key.threads}: {rate.median:,.0f}/s{rate.range_text('{:,.0f}'.format)}" for key, rate in rates) or NOT_MEASURED

    def figures(self, run: RunDirectory) -> dict:
        return e1_figures.figures(self.cells_of(run))
