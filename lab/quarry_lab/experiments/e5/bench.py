"""
Measures E5's points: YCSB on one table whose payload is several times the memory that the server has.

A block is one engine on one set of paths: a fresh server, the load, then the workloads in YCSB's order. Memory is limited by a cgroup,
which counts page cache, too; where none can be made, caches are small and InnoDB reads past the page cache, and the records say so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pymysql

from ...design.plan import Block, Point
from ...design.request import DATA, LabError
from ...design.variants import TARGET, TARGET_PREFIX
from ...load import java, ycsb
from ...load.ycsb import PAYLOAD_BYTES, WORKLOADS, Latency, YcsbReport, YcsbRun
from ...probes import device, noise
from ...probes.timeline import Timeline
from ...run.experiment import Context
from ...run.limited_bench import BUFFER_POOL_SHARE, LimitedBench, cache_options
from ...run.runner import written
from ...servers.lab_server import DATABASE, LabServer
from ...servers.links import LOOPBACK, Endpoint
from ...servers.memory_cgroup import reason_against
from ...servers.target import SCHEMA_PREFIX, TargetServer, over_tcp

_TABLE = "usertable"
_NDB_SPACE, _NDB_LOG = f"{SCHEMA_PREFIX}space", f"{SCHEMA_PREFIX}log"
_NDB_PAGE_BYTES = 32 << 10  # of a table on disk; it holds one payload, whose column has its full length there
_LENGTHS_CHECKED = 100
# For every engine: with an arena per thread, MyRocks' heap outgrows its caches by some hundred MiB under values like these.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


@dataclass(frozen=True)
class DiskEngine:
    """The published table: a primary key and one payload, in the column type that keeps it out of the row's page."""

    key: str
    label: str
    engine: str
    payload: str
    on_target: bool = False

    @property
    def is_private_quarry(self) -> bool:
        return self.engine == "QUARRY" and not self.on_target

    @property
    def schema(self) -> str:
        return f"{SCHEMA_PREFIX}e5" if self.on_target else DATABASE

    def surroundings(self, rows: int) -> list[tuple[str, list[str]]]:
        """
        (statement, what takes it back) for all that the table needs. NDB's tables on disk live in a tablespace, which is made in its full size: two
        in three of its pages for the load, the rest for what workloads insert. MySQL 9 takes an ENGINE in all of these but where a tablespace is altered or dropped.
        """
        if self.engine != "NDBCLUSTER":
            return []
        megabytes = (rows * _NDB_PAGE_BYTES * 3 // 2 >> 20) + 64
        return [(f"CREATE LOGFILE GROUP {_NDB_LOG} ADD UNDOFILE '{_NDB_LOG}.dat' INITIAL_SIZE 512M UNDO_BUFFER_SIZE 16M ENGINE NDB",
                 [f"DROP LOGFILE GROUP {_NDB_LOG} ENGINE NDB"]),
                (f"CREATE TABLESPACE {_NDB_SPACE} ADD DATAFILE '{_NDB_SPACE}.dat' USE LOGFILE GROUP {_NDB_LOG} INITIAL_SIZE {megabytes}M ENGINE NDB",
                 [f"ALTER TABLESPACE {_NDB_SPACE} DROP DATAFILE '{_NDB_SPACE}.dat'", f"DROP TABLESPACE {_NDB_SPACE}"])]

    def create_table(self) -> str:
        storage = f"TABLESPACE {_NDB_SPACE} STORAGE DISK " if self.engine == "NDBCLUSTER" else ""
        return (f"CREATE TABLE {self.schema}.{_TABLE} (id VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, payload {self.payload}) "
                f"{storage}ENGINE={self.engine}")


def _on_target(engine: DiskEngine) -> DiskEngine:
    return replace(engine, key=TARGET_PREFIX + engine.key, label=f"{engine.label}, target", on_target=True)


PRIVATE_ENGINES = {
    engine.key: engine
    for engine in (
        DiskEngine("innodb", "InnoDB VARBINARY", "InnoDB", f"VARBINARY({PAYLOAD_BYTES})"),
        DiskEngine("rocksdb", "MyRocks VARBINARY", "ROCKSDB", f"VARBINARY({PAYLOAD_BYTES})"),
        DiskEngine("quarry", "QUARRY BLOB", "QUARRY", "BLOB"),
    )
}
_NDB = DiskEngine("ndb", "NDB VARBINARY on disk", "NDBCLUSTER", f"VARBINARY({PAYLOAD_BYTES})")
ENGINES = PRIVATE_ENGINES | {engine.key: engine for engine in map(_on_target, (*PRIVATE_ENGINES.values(), _NDB))}


@dataclass(frozen=True)
class Layout:
    """Where a server keeps what: directories of ours below what the user named, or below the server's own."""

    redo: Path
    data: tuple[Path, ...]

    @classmethod
    def of(cls, options: dict, paths: int) -> Layout:
        own = DATA / "main"
        redo = Path(options["redo_path"]) / "quarry-lab-redo" if options["redo_path"] else own / "redo"
        named = [Path(path) / f"quarry-lab-{i}" for i, path in enumerate(options["data_paths"])] or [own / f"path{i}" for i in range(paths)]
        return cls(redo, tuple(named[:paths]))

    def directories(self) -> tuple[Path, ...]:
        return (self.redo, *self.data)

    def describe(self) -> dict:
        return {str(path): device.device_of(_existing(path)) for path in self.directories()}


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def paths_of(setting: str) -> int:
    """'2 paths' -> 2"""
    return int(setting.split()[0])


class DiskBench(LimitedBench):
    def __init__(self, context: Context):
        super().__init__(context, context.request.options["memory_bytes"])
        self.rows = max(1, self.request.settings.dataset_bytes // PAYLOAD_BYTES)
        self._client: java.Client | None = None
        self._engine = ENGINES["innodb"]
        self._loaded = False

    def __enter__(self) -> DiskBench:
        self.progress.step("building the Java clients")
        java.build()
        super().__enter__()
        return self

    def describe(self) -> dict:
        layouts = {paths: Layout.of(self.request.options, paths).describe() for paths in self.request.options["paths"]}
        return {"java": java.version(), "libraries": java.libraries(), "memory_limit": self._memory_limit(), "environment": ENVIRONMENT, "layouts": layouts,
                "rows": self.rows, "payload_bytes": self.rows * PAYLOAD_BYTES}

    def _memory_limit(self) -> dict:
        if self._cgroup:
            return {"how": "memory cgroup", **self._cgroup.describe()}
        return {"how": f"small caches and direct I/O, but for QUARRY's reads ({reason_against()})",
                "cache_bytes": int(self.request.options["memory_bytes"] * BUFFER_POOL_SHARE)}

    # --- a server for a block ---
    def begin(self, block: Block) -> None:
        self._probe_device(block.round)
        self._engine = engine = ENGINES[block.points[0].variant]
        if engine.on_target:
            self._begin_on_target(engine)
        else:
            paths = paths_of(block.points[0].setting)
            self.progress.step(f"starting a server for {engine.label}, {block.points[0].setting}")
            endpoint = java.local_endpoint()
            self._server = self._start(engine, paths, endpoint.port)
            self._client = java.Client(endpoint, java.create_account(self._server))
        assert self._server
        self._server.execute(engine.create_table())
        self._loaded = False
        self._note_server(f"{engine.key} {block.points[0].setting}")

    def _begin_on_target(self, engine: DiskEngine) -> None:
        """As it is configured: the memory limit is for the private servers."""
        assert self.request.target
        address = over_tcp(self.request.target)
        server = TargetServer(TARGET, address, self.request.target).start()
        self._server = server
        self.progress.step(f"preparing {engine.label}")
        self._client = java.Client(Endpoint(address.host, address.port), server.login["password"], address.user)
        server.execute(f"CREATE DATABASE {engine.schema}")
        for statement, back in engine.surroundings(self.rows):
            try:
                server.execute(statement)
            except pymysql.Error as error:
                raise LabError(f"{address.text} refuses '{statement}': {error}") from error
            server.last_statements = [*back, *server.last_statements]

    def _start(self, engine: DiskEngine, paths: int, port: int) -> LabServer:
        layout = Layout.of(self.request.options, paths)
        extra = {**java.network_options(port, [LOOPBACK]), **cache_options(engine.engine, self.request.options["memory_bytes"]),
                 "innodb_log_group_home_dir": str(layout.redo), **self.request.mycnf}
        if engine.engine == "ROCKSDB":
            extra = {"rocksdb_use_direct_reads": "OFF" if self._cgroup else "ON", **extra}
        if engine.engine == "QUARRY":
            extra = {"quarry_data_paths": ";".join(str(path) for path in layout.data), **extra}
        plugin = self.request.plugin if engine.engine == "QUARRY" else None
        return LabServer("main", DATA / "main", plugin, engine.engine == "ROCKSDB", extra, layout.directories(),
                         self._cgroup.path if self._cgroup else None, ENVIRONMENT).start()

    def _probe_device(self, round_number: int) -> None:
        """Once per round and session, while no server runs."""
        probes = self.run.run["sessions"][-1].get("device_probes", [])
        if any(p["round"] == round_number for p in probes):
            return
        self.progress.step("measuring the device's own rates")
        seconds = self.request.settings.device_probe_seconds
        found = {"round": round_number, **device.probe(DATA.parent, seconds), "random_read_bytes_per_second": device.random_read_rate(DATA.parent, seconds)}
        self.run.update_session("device_probes", [*probes, found])

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        workload = WORKLOADS[point.operation]
        if not workload.is_load and not self._loaded:
            # An interrupted run has this load's figures already.
            self.progress.step("loading again for the points that are left")
            self._run(self._load_of(WORKLOADS["load"], point.threads))
            self._loaded = True
        server = self._server
        assert server
        settled_before = server.settle()
        memory, before = device.memory_info(), server.counters()
        self.progress.step(f"{ENGINES[point.variant].label}, {point.setting}: {workload.label}")
        timeline = Timeline(server.another_connection(), server.process_ids, DATA.parent)
        with noise.Meter(server.process_ids) as meter, timeline:
            report = self._run(self._load_of(workload, point.threads))
        during = server.counters()
        settled_after = server.settle()
        if workload.is_load:
            self._check_load()
            self._loaded = True
        traffic = payload_traffic(report)
        written_bytes = sum(l.operations for name, l in report.latencies.items() if name in ("UPDATE", "INSERT")) * PAYLOAD_BYTES
        return {
            "result": result_of(report), **traffic, "cpu": meter.usage, "written": written(before, during, server.counters(), written_bytes),
            "latencies": {name: asdict(latency) for name, latency in report.latencies.items()},
            "timeline": timeline.samples, "timeline_started": timeline.started, "operations_timeline": report.timeline, "measured_until": report.measured_until,
            "memory_free_before": memory, "settle_before": settled_before, "settle_after": settled_after, "rows": self.rows,
        }

    def _run(self, load: YcsbRun) -> YcsbReport:
        assert self._client
        try:
            return ycsb.run(load, self._client, self.run.path / "ycsb.json")
        except java.JavaError as error:
            raise self._failed(load.workload.label, error) from error

    def _load_of(self, workload: ycsb.Workload, threads: int) -> YcsbRun:
        settings = self.request.settings
        return YcsbRun(workload, f"{self._engine.schema}.{_TABLE}", self.rows, threads, settings.warmup_seconds, settings.seconds)

    def _check_load(self) -> None:
        """All rows are there, and a sample of them has whole payloads."""
        assert self._server
        table = f"{self._engine.schema}.{_TABLE}"
        ((rows,),) = self._server.rows(f"SELECT COUNT(*) FROM {table}")
        ((least, most),) = self._server.rows(f"SELECT MIN(l), MAX(l) FROM (SELECT LENGTH(payload) l FROM {table} LIMIT {_LENGTHS_CHECKED}) s")
        if [rows, least, most] != [self.rows, PAYLOAD_BYTES, PAYLOAD_BYTES]:
            raise LabError(f"the load is wrong: {rows} rows of {least} to {most} bytes, expected {self.rows} of {PAYLOAD_BYTES}")


def result_of(report: YcsbReport) -> dict:
    """p95 of reads, or of inserts where nothing is read."""
    first: Latency = report.latencies.get("READ") or report.latencies["INSERT"]
    return {"events_per_second": report.operations_per_second, "interval_seconds": report.interval_seconds, "latency_p95_ms": first.p95_ms}


def payload_traffic(report: YcsbReport) -> dict:
    """Payload bytes per second read and written in the measured interval. A read-modify-write counts as its read and its update."""
    counts = {name: latency.operations for name, latency in report.latencies.items()}
    writes = counts.get("UPDATE", 0) + counts.get("INSERT", 0)
    operations = counts.get("READ", 0) + writes - counts.get("READ-MODIFY-WRITE", 0)

    def rate(count: int) -> float:
        return report.operations_per_second * count / operations * PAYLOAD_BYTES

    return {"payload_read_bytes_per_second": rate(counts.get("READ", 0)), "payload_written_bytes_per_second": rate(writes)}
