"""
E2's ids where an id may cost a trip: statements of 16 rows through two Spider fronts over two shards of QUARRY tables, each with its
semi-synchronous replica (quarry_cluster). All nodes and the clients share this machine.

A point's variant says who gives the ids: each front by counting (AUTO_INCREMENT), each front by a SEQUENCE of its own, or one shard by a
SEQUENCE that the client asks for the ids of a statement first, in one trip. Clients are threads of this process, half of them at each front.
AUTO_INCREMENT asked of the shards (spider_auto_increment_mode=0) is left out: with several clients of two fronts its statements met deadlocks, and
waits that only a front's time-out ended.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

import pymysql
from pymysql.cursors import Cursor
from quarry_cluster.cluster import Cluster, passing_cluster
from quarry_cluster.ddl import ShardedTables
from quarry_cluster.haproxy import HAPROXY
from quarry_cluster.nodes import Member
from quarry_cluster.plan import FRONTS_MAX, ClusterError
from quarry_server.server import MARIADB

from ...cluster.ids import through_route
from ...design.plan import Block, Point
from ...design.request import DATA, LabError
from ...probes import device, noise
from ...report.stats import percentile
from ...run.experiment import Bench, Context

OPERATION = "fronts"
DATABASE, TABLE, SHARD = "lab_ids", "t", "s1"
DEFINITION = f"CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY AUTO_INCREMENT, data BLOB) ENGINE=QUARRY"
POOL_BYTES = 8 << 20
DEADLOCK = 1213
CACHES = (1, 256, 1024)
SPIDER = MARIADB / "usr" / "lib" / "mysql" / "plugin" / "ha_spider.so"


@dataclass(frozen=True)
class Way:
    """Who gives the ids. cache: of the sequences, 0 where there are none."""

    label: str
    cache: int = 0
    asks_shard: bool = False


WAYS = {
    "fronts-counting": Way("AUTO_INCREMENT, each front counts"),
    **{f"fronts-sequence-{n}": Way(f"SEQUENCE CACHE {n} on each front", n) for n in CACHES},
    **{f"fronts-shard-{n}": Way(f"SEQUENCE CACHE {n} on a shard, asked first", n, True) for n in CACHES},
}
LABELS = {key: way.label for key, way in WAYS.items()}


def sequence(way: Way) -> str:
    return f"{DATABASE}.s{way.cache}"


def needs() -> list[str]:
    """Sentences on what is missing."""
    return [f"{path.name} under {MARIADB} (scripts/fetch-mariadb gets it)" for path in (HAPROXY, SPIDER) if not path.exists()]


def clients_of_this_process(usage: dict, cpus: float) -> dict:
    """noise.usage, which counts this process with the servers, with its processors as the clients'. Threads of Python never take more than one."""
    moved = min(cpus, usage["server_cpus"])
    return {**usage, "server_cpus": round(usage["server_cpus"] - moved, 3), "client_cpus": round(usage["client_cpus"] + moved, 3)}


class Client(threading.Thread):
    """
    Inserts until it is told to stop; a statement that loses a deadlock is sent again, and its time goes on. `took` holds (end, seconds) of
    each statement that was acknowledged. Read it, `deadlocks` and `failure` when the thread has ended.
    """

    def __init__(self, front: Member, shard: Callable[[], pymysql.Connection], way: Way, rows: int, value_bytes: int, number: int):
        super().__init__(daemon=True)
        self.front, self.shard, self.way, self.rows, self.value_bytes = front, shard, way, rows, value_bytes
        self.random = random.Random(number)
        self.stop = threading.Event()
        self.took: list[tuple[float, float]] = []
        self.deadlocks = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        pool = self.random.randbytes(POOL_BYTES)
        try:
            with ExitStack() as stack:
                cursor = stack.enter_context(stack.enter_context(closing(self.front.connect(DATABASE))).cursor())
                ids = stack.enter_context(stack.enter_context(closing(self.shard())).cursor()) if self.way.asks_shard else None
                while not self.stop.is_set():
                    starts = (self.random.randrange(POOL_BYTES - self.value_bytes) for _ in range(self.rows))
                    values = [pool[start : start + self.value_bytes] for start in starts]
                    began = time.monotonic()
                    self._insert(cursor, ids, values)
                    ended = time.monotonic()
                    self.took.append((ended, ended - began))
        except (pymysql.err.Error, OSError) as failure:
            self.failure = failure

    def _insert(self, cursor: Cursor, ids: Cursor | None, values: list[bytes]) -> None:
        if ids is not None:
            ids.execute(f"SELECT NEXT VALUE FOR {sequence(self.way)} FROM seq_1_to_{self.rows}")
            columns, row = "(id, data)", "(%s, _binary %s)"
            arguments: list = [argument for (number,), value in zip(ids.fetchall(), values, strict=True) for argument in (number, value)]
        else:
            columns, row = ("(id, data)", f"(NEXT VALUE FOR {sequence(self.way)}, _binary %s)") if self.way.cache else ("(data)", "(_binary %s)")
            arguments = list(values)
        statement = f"INSERT INTO {TABLE} {columns} VALUES " + ", ".join([row] * self.rows)
        while True:
            try:
                cursor.execute(statement, arguments)
                return
            except pymysql.err.OperationalError as failure:
                if failure.args[0] != DEADLOCK:
                    raise
                self.deadlocks += 1


class FrontsBench(Bench):
    """Externally synchronised. The cluster is made for the first block that asks for it; close() removes it."""

    def __init__(self, context: Context):
        self.settings, self.progress = context.request.settings, context.progress
        self.directory, self.plugin = DATA / "fronts", context.request.plugin
        self.cluster: Cluster | None = None
        self._running = ExitStack()

    def begin(self, block: Block) -> None:
        if self.cluster is None:
            self.progress.step("starting two Spider fronts over two shards")
            self.cluster = self._running.enter_context(passing_cluster(self.directory, "spider", plugin=self.plugin))

    def ended(self) -> str:
        """A primary whose replica ended goes on alone: its commits wait for none."""
        gone = [name for name, member in self.cluster.members.items() if not member.alive()] if self.cluster else []
        return f"\nservers of the fronts' cluster that ended: {', '.join(gone)}" if gone else ""

    def close(self) -> None:
        self._running.close()
        self.cluster = None

    def measure(self, point: Point) -> dict:
        assert self.cluster
        way, settings = WAYS[point.variant], self.settings
        try:
            tables = ShardedTables(self.cluster)
            tables.create(DATABASE, DEFINITION, "id")
            try:
                self._make_sequences(way)
                self.progress.step(f"{way.label} x {point.threads}")
                memory = device.memory_info()
                record = self._load(way, point)
            finally:
                tables.drop(DATABASE, TABLE)
        except (ClusterError, pymysql.err.Error) as failure:
            raise LabError(f"{way.label}: {failure}") from failure
        return {"payload": "random", "batch_rows": settings.batch_rows, "memory_free_before": memory, **record}

    def _make_sequences(self, way: Way) -> None:
        """Of each front its own, interleaved: no id is given twice, and no front asks the other."""
        assert self.cluster
        if not way.cache:
            return
        if way.asks_shard:
            self.cluster.primary(SHARD).query(f"CREATE OR REPLACE SEQUENCE {sequence(way)} CACHE {way.cache} ENGINE=InnoDB")
            return
        for first, front in enumerate(self.cluster.role("front"), 1):
            steps = f"START WITH {first} INCREMENT BY {FRONTS_MAX} CACHE {way.cache}"
            front.query(f"CREATE OR REPLACE SEQUENCE {sequence(way)} {steps} ENGINE=InnoDB")

    def _load(self, way: Way, point: Point) -> dict:
        assert self.cluster
        fronts, shard = itertools.cycle(self.cluster.role("front")), partial(through_route, self.cluster, SHARD, DATABASE)
        clients = [Client(next(fronts), shard, way, self.settings.batch_rows, point.size_bytes, number) for number in range(point.threads)]
        nodes = [member.server.pid for member in self.cluster.members.values()]
        pids = {pid for pid in (*nodes, self.cluster.proxy.pid(), self.cluster.keeper_pid()) if pid}
        for client in clients:
            client.start()
        time.sleep(self.settings.warmup_seconds)
        with noise.Meter(pids) as meter:
            began, used = time.monotonic(), time.process_time()
            time.sleep(self.settings.seconds)
            ended, used = time.monotonic(), time.process_time() - used
        for client in clients:
            client.stop.set()
        for client in clients:
            client.join()
            if client.failure:
                raise LabError(f"{way.label}: a client of {client.front.name} met {client.failure}")
        self._check(clients)
        took = [seconds for client in clients for at, seconds in client.took if began <= at < ended]
        if not took:
            raise LabError(f"{way.label}: no statement ended in {self.settings.seconds} s")
        rows = sum(len(client.took) for client in clients) * self.settings.batch_rows
        result = {"events": len(took), "events_per_second": len(took) / (ended - began), "interval_seconds": ended - began,
                  "latency_p95_ms": percentile(took, 95) * 1000, "writes": len(took), "reads": 0, "total_rows_written": rows,
                  "deadlocks": sum(client.deadlocks for client in clients)}
        return {"result": result, "cpu": clients_of_this_process(meter.usage, used / (ended - began))}

    def _check(self, clients: Sequence[Client]) -> None:
        """Every acknowledged row is there, once: ids are the primary key of each shard, and a row's shard follows from its id."""
        assert self.cluster
        sent = sum(len(client.took) * client.rows for client in clients)
        found = sum(primary.value(f"SELECT COUNT(*) FROM {DATABASE}.{TABLE}") for primary in self.cluster.primaries())
        if found != sent:
            raise LabError(f"the shards have {found} rows, {sent} were acknowledged")
