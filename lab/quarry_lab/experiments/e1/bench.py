"""
Measures E1's points. One engine's server runs at a time: it is started for its first block of a size, and gone with its tables when another
engine's block begins. Levels and rounds of an engine and a size share one load of each table.
"""

from __future__ import annotations

import resource
from contextlib import ExitStack

import pymysql

from ...design.plan import Block, Point
from ...design.request import DATA, LabError
from ...design.variants import ALL, TARGET, Variant
from ...load import sysbench
from ...load.payload import Payload
from ...probes import device
from ...report import stats
from ...run.experiment import Context
from ...run.limited_bench import cache_options
from ...run.runner import Server, TableBench, condition, dataset_key, difference, schema_name, use_schema
from ...servers import ndb_cluster
from ...servers.lab_server import LabServer
from ...servers.memory_cgroup import MemoryCgroup
from ...servers.ndb_cluster import NdbCluster
from ...servers.target import TargetServer
from ..table_experiment import make_servers
from .engines import MORE_DATA_MEMORY_BYTES, MORE_DATA_TIMES, Group

# Of each user, client and server together: copies of a value in the packet, the engine's record and the client library; and a thread's own.
USER_VALUES, USER_BYTES = 4, 1 << 20


def users_bytes(threads: int, size_bytes: int) -> int:
    """Memory that so many users take next to what the server has for data."""
    return threads * (USER_VALUES * size_bytes + USER_BYTES)


def open_files_lacking(connections: int) -> str:
    """Each connection has a file open at both ends. Empty when the limit allows it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    need = 2 * connections + 1000
    if limit == resource.RLIM_INFINITY or limit >= need:
        return ""
    return f"a limit of {need} open files ('ulimit -Hn' says {limit}) for {connections} connections"


class EngineBench(TableBench):
    """Externally synchronised. Use as a context manager: what runs is ended on exit."""

    def __init__(self, context: Context, payload: Payload):
        super().__init__(context, {}, {context.request.payload: payload})
        self.request = context.request
        self._group: Group | None = None
        self._stack = ExitStack()

    def __enter__(self) -> EngineBench:
        return self

    def __exit__(self, *_exc) -> None:
        self._stop()

    # --- which engine runs ---
    def begin(self, block: Block) -> None:
        if block.group != self._group:
            self._stop()
            self._start(block)
        self._probe_device(block.round)

    def end(self, block: Block) -> None:
        """Its tables stay for the next round."""

    def _stop(self) -> None:
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
            self._note(block.group, server)
            if isinstance(server, LabServer) and not any(variant.constant_mix for variant in variants):
                self.progress.step("writing once over the redo log and the buffer pool")
                condition(server, self.payload)
        self._group = block.group

    def _made(self, group: Group, variants: list[Variant]) -> dict[str, Server]:
        if group.setting:
            return {variants[0].server: self._limited_server(variants[0])}
        if variants[0].server != TARGET:
            return {**make_servers(variants, self.request)}
        assert self.request.target
        is_ours = self.request.target == ndb_cluster.address()
        return {TARGET: NdbCluster(TARGET) if is_ours else TargetServer(TARGET, self.request.target)}

    def _limited_server(self, variant: Variant) -> LabServer:
        """With all of its memory in a cgroup: half is the pool, half of the rest the value cache, and what is left the page cache's and its own."""
        cgroup = self._stack.enter_context(MemoryCgroup(MORE_DATA_MEMORY_BYTES))
        caches = cache_options(variant.engine, MORE_DATA_MEMORY_BYTES)
        if variant.needs_plugin:
            caches["quarry_cache_size"] = str((MORE_DATA_MEMORY_BYTES - int(caches["innodb_buffer_pool_size"])) // 2)
        plugin = self.request.plugin if variant.needs_plugin else None
        return LabServer(variant.server, DATA / variant.server, plugin, False, {**self.request.mycnf, **caches}, cgroup=cgroup.path)

    def _note(self, group: Group, server: Server) -> None:
        """In run.json: how the engine's server runs."""
        known = self.directory.run["sessions"][-1].get("servers", {})
        name = f"{group.engine}, {group.setting}" if group.setting else group.engine
        self.directory.update_session("servers", {**known, name: server.describe()})

    # --- its tables ---
    def _payload(self, point: Point) -> Payload:
        return self.payload

    def _rows(self, size_bytes: int) -> int:
        if self._group and self._group.setting:
            wanted = MORE_DATA_TIMES * MORE_DATA_MEMORY_BYTES
            return -(-wanted // size_bytes // self.settings.tables)
        return super()._rows(size_bytes)

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
        """Not where all data is in memory anyway, or cannot be."""
        is_limited = self._group is not None and self._group.setting
        if isinstance(server, LabServer) and not variant.constant_mix and not is_limited:
            super()._warm(server, schema, variant)
        else:
            use_schema(server, schema)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        self._check_memory(point)
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
            raise LabError(f"SQL node {', '.join(idle)} of the NDB Cluster had no statement: the load is to be spread over both")
        return {"nodes": moved}

    def _check_memory(self, point: Point) -> None:
        need, free = users_bytes(point.threads, point.size_bytes), device.memory_info()["MemAvailable"]
        if free < need:
            raise LabError(f"{stats.human_bytes(free)} of memory are available; {_level(point)} may take {stats.human_bytes(need)} next to the "
                           "server's caches: end something, or leave it out (--threads, --sizes)")

    def _named(self, point: Point, server: Server, error: Exception) -> LabError:
        """The error with the level that met it, and what became of the server."""
        said = f"{ALL[point.variant].label}, {_level(point)}: {error}"
        if "Too many connections" in str(error) or "1040" in str(error):
            allowed = "each SQL node" if isinstance(server, NdbCluster) else "the server"
            return LabError(f"{said}\n{allowed} refuses connections: {point.threads} users need a larger max_connections")
        if isinstance(server, NdbCluster):
            return LabError(f"{said}\nthe cluster: {server.state()}")
        if isinstance(server, LabServer) and server.server and not server.server.running():
            return LabError(f"{said}\nthe server ended:\n{server.server.log_tail()}")
        return LabError(said)

    def _memory(self, point: Point, server: Server, variant: Variant, schema: str) -> dict | None:
        if variant.constant_mix or (self._group and self._group.setting):
            return None
        if not isinstance(server, NdbCluster):
            return super()._memory(point, server, variant, schema)
        key = dataset_key(point)
        if key not in self._memory_of:
            payload = self._rows(point.size_bytes) * self.settings.tables * point.size_bytes
            self._memory_of[key] = {"payload_bytes": payload, "cached_bytes": server.memory_bytes(schema)}
        return self._memory_of[key]


def _level(point: Point) -> str:
    return f"{stats.human_bytes(point.size_bytes)} values with {point.threads} users"


