"""Measures E4's points: fetches by the lab's C++ client, and the disk that a fill takes; one engine at a time."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from dataclasses import replace

import pymysql
from quarry_server import private
from quarry_server.ports import free_ports
from quarry_server.server import MARIADB

from ...design.plan import Block, Point
from ...design.request import DATA, LabError
from ...design.variants import ALL, TARGET, Variant, create_table
from ...load import value_reader
from ...load.payload import Payload
from ...load.value_reader import Reading
from ...probes import device, noise
from ...run.experiment import Bench, Context
from ...run.kept_settings import note_server
from ...run.tables import size_label
from ...servers import ndb_cluster, target
from ...servers.lab_server import PINNED, LabServer
from ...servers.links import LOOPBACK
from ...servers.ndb_cluster import NdbCluster
from ...servers.target import SCHEMA_PREFIX, TargetServer
from ..table_experiment import value_cache
from . import space
from .engines import Group
from .ways import DAEMON, NDB, WAYS, Way, engine_of

USER = "lab"
ROWS_MAX, ROWS_MIN = 200_000, 64
Server = LabServer | TargetServer


class ReaderBench(Bench):
    """
    A private server (with HandlerSocket where Quarry's ways are measured), for the embedded server a data directory of its own, NDB, or the target.
    Externally synchronised. Use as a context manager: what runs is ended on exit.
    """

    def __init__(self, context: Context, payload: Payload):
        self.request, self.run = context.request, context.run
        self.settings, self.progress, self.payload = context.request.settings, context.progress, payload
        self.port, self.read_port, self._write_port = free_ports(3)
        self.embedded_data = DATA / "embedded"
        self.password, self.secret = private.new_secret(), private.new_secret()
        self.server: Server | None = None
        self._group: Group | None = None
        self._loaded: dict[str, str] = {}  # what is loaded -> what drops it, empty of the embedded server's
        self._stack = ExitStack()

    def __enter__(self) -> ReaderBench:
        return self

    def __exit__(self, *_exc) -> None:
        self.stop()

    def describe(self) -> dict:
        return {"payload": self.payload.describe()}

    # --- which engine runs ---
    def begin(self, block: Block) -> None:
        if self._group is None or block.group.engine != self._group.engine:
            self.stop()
            self.progress.step(f"starting a server for {block.group.engine}")
            self.server = self._made(block.group.engine)
            self._stack.callback(self.server.close)
            self.server.start()
            self._let_in()
            engine = block.group.engine
            note_server(self.run, engine, self.server.describe(), lambda record: engine_of(record["variant"]) == engine)
        elif block.group != self._group:
            self._drop_tables()
        self._group = block.group

    def ended(self) -> str:
        return self.server.ended() if self.server else ""

    def end(self, block: Block) -> None:
        """Its tables stay for the next round."""

    def stop(self) -> None:
        self._loaded.clear()
        self._stack.close()
        shutil.rmtree(self.embedded_data, ignore_errors=True)
        self.server, self._group = None, None

    def _made(self, engine: str) -> Server:
        if engine == NDB and self.request.target == ndb_cluster.address():
            return NdbCluster(TARGET, ndb_cluster.ONE_SQL_NODE)
        if engine in (NDB, TARGET):
            assert self.request.target
            return TargetServer(TARGET, target.over_tcp(self.request.target), self.request.target)
        network = {"port": self.port, "bind_address": LOOPBACK}
        if engine != "QUARRY":
            return LabServer("main", DATA / "main", None, False, {**network, **self.request.mycnf})
        network |= {"handlersocket_address": LOOPBACK, "handlersocket_port": self.read_port, "handlersocket_port_wr": self._write_port,
                    "handlersocket_threads": 16, **value_cache(self.request)}
        secrets = {"handlersocket_plain_secret": self.secret, "handlersocket_plain_secret_wr": private.new_secret()}
        options = {**network, **self.request.mycnf}
        return LabServer("main", DATA / "main", self.request.plugin, False, options, plugins=("handlersocket",), secrets=secrets)

    def _let_in(self) -> None:
        """Of a private server: the client, by TCP."""
        if isinstance(self.server, LabServer):
            self.server.execute(f"CREATE USER {USER}@'{LOOPBACK}' IDENTIFIED BY '{self.password}'")
            self.server.execute(f"GRANT ALL ON *.* TO {USER}@'{LOOPBACK}'")

    def _login(self) -> dict:
        """How the client reaches the server: by TCP. Of our NDB Cluster one SQL node has all clients."""
        server = self.server
        if isinstance(server, NdbCluster):
            reached = target.over_tcp(server.address)
            return {"host": reached.host, "port": reached.port, "user": reached.user}
        if isinstance(server, TargetServer):
            return {name: value for name, value in server.login.items() if name != "socket"}
        return {"port": self.port, "user": USER, "password": self.password}

    # --- its tables ---
    def _rows(self, size_bytes: int) -> int:
        return max(ROWS_MIN, min(ROWS_MAX, self.settings.dataset_bytes // size_bytes))

    def _reading(self, size_bytes: int, table: Variant, **changes) -> Reading:
        schema = _schema(table.engine, table.server == TARGET)
        return Reading(database=schema, table=_table(size_bytes), value_bytes=size_bytes, rows=self._rows(size_bytes), **changes)

    def _ensure_table(self, table: Variant, size_bytes: int) -> None:
        """One table for all ways of an engine, filled, and read once."""
        assert self.server
        if table.key in self._loaded:
            return
        self.progress.step(f"loading {table.label} {size_label(size_bytes)}")
        schema = _schema(table.engine, table.server == TARGET)
        name = f"{schema}.{_table(size_bytes)}"
        self.server.execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
        self.server.execute(create_table(table, size_bytes, name))
        self._loaded[table.key] = f"DROP TABLE {name}"
        value_reader.fill(self._reading(size_bytes, table, **self._login()), self.payload)
        self.server.rows(f"SELECT BIT_XOR(CRC32(data)) FROM {name}")
        self.server.settle()

    def _ensure_embedded(self, size_bytes: int) -> None:
        if "embedded" in self._loaded:
            return
        self.progress.step("loading the embedded server's table")
        (self.embedded_data / "mysql").mkdir(parents=True, exist_ok=True)
        table = ALL["innodb"]
        self._loaded["embedded"] = ""
        created = create_table(table, size_bytes, _table(size_bytes))
        value_reader.fill(self._reading(size_bytes, table, first=created, server_options=self._embedded_options()), self.payload)

    def _embedded_options(self) -> tuple[str, ...]:
        """The same pinned settings as the server's, as far as the library knows them."""
        pinned = [f"--{name.replace('_', '-')}={value}" for name, value in PINNED.items() if name.startswith("innodb_")]
        return ("--no-defaults", f"--datadir={self.embedded_data}", f"--lc-messages-dir={MARIADB / 'usr' / 'share' / 'mysql'}",
                "--max-allowed-packet=64M", *pinned)

    def _drop_tables(self) -> None:
        assert self.server
        for statement in filter(None, self._loaded.values()):
            self.server.execute(statement)
        self._loaded.clear()
        shutil.rmtree(self.embedded_data, ignore_errors=True)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        try:
            return self._filled(point) if point.operation == space.OPERATION else self._fetched(point)
        except (value_reader.ReaderError, pymysql.MySQLError) as error:
            raise self._named(point, error) from error

    def _named(self, point: Point, error: Exception) -> LabError:
        """With the point that met it, and what became of the server."""
        label = space.LABELS.get(point.variant) or WAYS[point.variant].label
        return LabError(f"{label}, {size_label(point.size_bytes)} x {point.threads}: {error}{self.ended()}")

    def _fetched(self, point: Point) -> dict:
        way, server = WAYS[point.variant], self.server
        assert server
        if way.embedded:
            self._ensure_embedded(point.size_bytes)
        else:
            self._ensure_table(way.variant, point.size_bytes)
        reading = self._reading_of(way, point)
        value_reader.prepare(reading)
        if self.settings.quiet_wait_seconds_max:
            noise.wait_for_quiet(server.process_ids, self.settings.quiet_wait_seconds_max)
        pinned = server.verify_pinned()
        self.progress.step(f"{way.label} {size_label(point.size_bytes)} x {point.threads}")
        memory, parts = device.memory_info(), {DAEMON: server.daemon_ids} if isinstance(server, NdbCluster) else {}
        with noise.Meter(server.process_ids, parts) as meter:
            result = value_reader.measure(reading)
        return {"payload": self.payload.kind, "result": result, "cpu": meter.usage, "memory_free_before": memory, "configuration": pinned}

    def _reading_of(self, way: Way, point: Point) -> Reading:
        changes: dict = {"path": way.path, "compress": way.compress, "threads": point.threads, "seconds": self.settings.seconds,
                         "warmup_seconds": self.settings.warmup_seconds}
        if way.embedded:
            warm = f"SELECT BIT_XOR(CRC32(data)) FROM {_table(point.size_bytes)}"
            return self._reading(point.size_bytes, way.variant, **changes, first=warm, server_options=self._embedded_options())
        reading = self._reading(point.size_bytes, way.variant, **changes, **self._login())
        if way.path == "handlersocket":
            return replace(reading, port=self.read_port, password=self.secret)
        if way.path == value_reader.NDB_API_PATH:
            return replace(reading, host=LOOPBACK, port=target.NDB_MANAGEMENT_PORT)
        return reading

    def _filled(self, point: Point) -> dict:
        """Disk of a table of its own, which is dropped behind the point."""
        server, table = self.server, space.TABLES[point.variant]
        assert server
        schema, name = _schema(table.engine, isinstance(server, TargetServer)), f"disk_{point.size_bytes}"
        space.prepare(server, table)
        space.wait_until_freed(server)
        server.execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
        server.execute(table.create(f"{schema}.{name}"))
        rows = space.rows_of(point.size_bytes, min(space.PAYLOAD_BYTES, self.settings.dataset_bytes))
        reading = Reading(database=schema, table=name, value_bytes=point.size_bytes, rows=rows, **self._login())
        self.progress.step(f"filling {table.label} {size_label(point.size_bytes)}")
        pinned, memory, started = server.verify_pinned(), device.memory_info(), time.monotonic()
        with noise.Meter(server.process_ids) as meter:
            value_reader.fill(reading, self.payload)
            seconds = time.monotonic() - started
        server.settle()
        disk = {"payload_bytes": rows * point.size_bytes, "disk_bytes": space.used_bytes(server, schema, name)}
        server.execute(f"DROP TABLE {schema}.{name}")
        result = {"events": rows, "events_per_second": rows / seconds, "interval_seconds": seconds}
        return {"payload": self.payload.kind, "result": result, "disk": disk, "cpu": meter.usage, "memory_free_before": memory,
                "configuration": pinned}


def _schema(engine: str, on_target: bool) -> str:
    return (SCHEMA_PREFIX if on_target else "lab_") + engine.lower()


def _table(size_bytes: int) -> str:
    return f"values_{size_bytes}"
