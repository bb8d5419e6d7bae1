"""
Tables of one engine at a time: its server is started for its first block, and gone with its tables when another engine's block begins. Levels
and rounds of an engine share one load of each table. A block's `group` says in `engine` whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pymysql

from ..design.plan import WITHOUT_DATASET, Block, Point
from ..design.request import Address, LabError, Request
from ..design.variants import ALL, TARGET, Variant
from ..load import sysbench
from ..load.payload import Payload
from ..report import stats
from ..run.kept_settings import note_server, of_block
from ..run.experiment import Context
from ..run.runner import Server, TableBench, condition, dataset_key, difference, schema_name, use_schema
from ..servers import ndb_cluster, target
from ..servers.lab_server import LabServer
from ..servers.ndb_cluster import NdbCluster
from ..servers.target import TargetServer
from .table_experiment import CONDITIONING_BYTES_PER_SECOND, make_servers

# Estimates, for the planned wall time only.
_NDB_START_SECONDS, _START_SECONDS = 100, 12
_NDB_LOAD_BYTES_PER_SECOND, _LOAD_BYTES_PER_SECOND = 40 << 20, 150 << 20
_CONDITIONED_BYTES_MIN = 1 << 30  # the redo log


def start_seconds(engine: str, pool_bytes: int = 0) -> float:
    """An engine's server until it can be loaded. pool_bytes: the buffer pool of one that is written once over; 0 of others."""
    if engine == "NDB":
        return _NDB_START_SECONDS
    return _START_SECONDS + (max(pool_bytes, _CONDITIONED_BYTES_MIN) * 1.25 / CONDITIONING_BYTES_PER_SECOND if pool_bytes else 0)


def load_seconds(engine: str, size_bytes: float) -> float:
    """Tables of so many bytes."""
    return size_bytes / (_NDB_LOAD_BYTES_PER_SECOND if engine == "NDB" else _LOAD_BYTES_PER_SECOND)


def own_cluster() -> Address | None:
    """The cluster of `make ndb`, running or not: it is started for its own points alone."""
    return ndb_cluster.address() if ndb_cluster.is_built() else None


def uses_own_cluster(request: Request) -> bool:
    """Then it is stopped while others are measured."""
    return ndb_cluster.is_built() and request.target in (None, ndb_cluster.address())


def target_needs(request: Request, users: int, needs: Callable[[Address], list[str]] = target.needs,
                 sql_nodes: tuple[int, ...] = tuple(ndb_cluster.SQL_NODES)) -> list[str]:
    """What is missing of the request's target. needs: of a server of the user's; sql_nodes: of our NDB Cluster, those with clients."""
    if request.target is None:
        return [target.NO_TARGET]
    if request.target != ndb_cluster.address():
        return needs(request.target) or target.connections_lacking(request.target, users)
    allowed = ndb_cluster.CONNECTIONS_MAX * len(sql_nodes)
    too_many = [f"at most {allowed} users: NDB's SQL nodes take {ndb_cluster.CONNECTIONS_MAX} each"] if users > allowed else []
    return ndb_cluster.needs() + too_many


class EngineBench(TableBench):
    """
    Externally synchronised. Use as a context manager: what runs is ended on exit. sql_nodes: of our NDB Cluster, those that clients are spread over.
    """

    def __init__(self, context: Context, payload: Payload, sql_nodes: tuple[int, ...] = tuple(ndb_cluster.SQL_NODES)):
        super().__init__(context, {}, {context.request.payload: payload})
        self.request = context.request
        self._sql_nodes = sql_nodes
        self._group: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> EngineBench:
        return self

    def __exit__(self, *_exc) -> None:
        self.stop()

    # --- which engine runs ---
    def begin(self, block: Block) -> None:
        if block.group != self._group:
            self.stop()
            self._start(block)
        self._probe_device(block.round)

    def end(self, block: Block) -> None:
        """Its tables stay for the next round."""

    def stop(self) -> None:
        self._group, self.servers = None, {}
        self._memory_of.clear()
        self._cached_before.clear()
        self._stack.close()

    def _start(self, block: Block) -> None:
        variants = [ALL[point.variant] for point in block.points]
        self.progress.step(f"starting a server for {block.group.engine}")
        self.servers = self._made(block.group, variants)
        for server in self.servers.values():
            self._stack.callback(server.close)
            server.start()
            self._note(block, server)
            if isinstance(server, LabServer) and not any(variant.constant_mix for variant in variants):
                self.progress.step("writing once over the redo log and the buffer pool")
                condition(server, self.payload)
        self._group = block.group

    def _made(self, _group: Any, variants: list[Variant]) -> dict[str, Server]:
        if variants[0].server != TARGET:
            return {**make_servers(variants, self.request)}
        assert self.request.target
        is_ours = self.request.target == ndb_cluster.address()
        return {TARGET: NdbCluster(TARGET, self._sql_nodes) if is_ours else TargetServer(TARGET, self.request.target)}

    def _note(self, block: Block, server: Server) -> None:
        """In run.json: how the engine's server runs. Raises LabError where it ran otherwise for points that this run has."""
        note_server(self.directory, self._named_in_run(block.group), server.describe(), of_block(block))

    def _named_in_run(self, group: Any) -> str:
        return group.engine

    # --- its tables ---
    def _payload(self, point: Point) -> Payload:
        return self.payload

    def _ensure_dataset(self, point: Point, server: Server, variant: Variant) -> str:
        """As ever; of the floor, whose tables keep nothing, the tables alone."""
        if not variant.constant_mix:
            return super()._ensure_dataset(point, server, variant)
        schema = schema_name(dataset_key(point))
        if dataset_key(point) not in server.datasets:
            use_schema(server, schema)
            self._create_tables(server, variant, point.size_bytes)
            server.datasets[dataset_key(point)] = schema
        return schema

    def _warm(self, server: Server, schema: str, variant: Variant) -> None:
        """Not where all data is in memory anyway."""
        if isinstance(server, LabServer) and not variant.constant_mix:
            super()._warm(server, schema, variant)
        else:
            use_schema(server, schema)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        server = self.servers[ALL[point.variant].server]
        try:
            return super().measure(point)
        except (sysbench.SysbenchError, pymysql.MySQLError) as error:
            raise self._named(point, server, error) from error

    def _measure(self, point: Point, server: Server, variant: Variant, schema: str, *more) -> dict:
        if not isinstance(server, NdbCluster):
            return super()._measure(point, server, variant, schema, *more)
        before = server.node_load()
        record = super()._measure(point, server, variant, schema, *more)
        return {**record, **self._nodes(server, before)}

    def _nodes(self, server: NdbCluster, before: dict[str, dict]) -> dict:
        """What its SQL and data nodes did meanwhile."""
        moved = {name: difference(before[name], counters) for name, counters in server.node_load().items()}
        if idle := [node for node, statements in moved["statements"].items() if not statements]:
            raise LabError(f"SQL node {', '.join(idle)} of the NDB Cluster had no statement: the load is to be spread over all of them")
        return {"nodes": moved}

    def _named(self, point: Point, server: Server, error: Exception) -> LabError:
        """The error with the level that met it, and what became of the server."""
        said = f"{ALL[point.variant].label}, {level_text(point)}: {error}"
        if "Too many connections" in str(error) or re.search(r"\b1040\b", str(error)):
            allowed = "each SQL node" if isinstance(server, NdbCluster) else "the server"
            return LabError(f"{said}\n{allowed} refuses connections: {point.threads} users need a larger max_connections")
        return LabError(f"{said}{server.ended()}")

    def _memory(self, point: Point, server: Server, variant: Variant, schema: str) -> dict | None:
        if variant.constant_mix or point.operation in WITHOUT_DATASET:
            return None
        if not isinstance(server, NdbCluster):
            return super()._memory(point, server, variant, schema)
        key = dataset_key(point)
        if key not in self._memory_of:
            payload = self._rows(point.size_bytes) * self.settings.tables * point.size_bytes
            self._memory_of[key] = {"payload_bytes": payload, "cached_bytes": server.memory_bytes(schema)}
        return self._memory_of[key]


def level_text(point: Point) -> str:
    return f"{stats.human_bytes(point.size_bytes)} values with {point.threads} users"
