"""
Measures E5's points: YCSB on one table whose payload is several times the memory that the server has.

A block is one engine in one setting: a fresh server, the load, then the workloads in the order of WORKLOADS. Memory is limited by a cgroup,
which counts page cache, too; where none can be made, caches are small and InnoDB reads past the page cache, and the records say so.

NDB is not in it: its data nodes read and write past the page cache, through page buffers of their own. Its commits wait for the memory of both of
them, not for a device.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from itertools import takewhile

import pymysql
from quarry_server.ports import free_ports

from ...design.plan import Block, Point
from ...design.profile import LOG_BIN
from ...design.request import DATA, LabError, Request
from ...design.variants import TARGET
from ...load import java, ycsb
from ...load.ycsb import PAYLOAD_BYTES, WORKLOADS, Latency, YcsbReport, YcsbRun
from ...probes import device, noise, processors
from ...probes.timeline import Timeline
from ...run.experiment import Context
from ...run.kept_settings import same_memory_limit
from ...run.limited_bench import BUFFER_POOL_SHARE, FEW_ARENAS, LimitedBench, cache_options
from ...run.runner import written
from ...servers import drives, links, ndb_cluster
from ...servers.drives import Drive
from ...servers.lab_server import LabServer
from ...servers.links import Endpoint, Link, Network
from ...servers.memory_cgroup import reason_against
from ...servers.ndb_cluster import NdbCluster
from ...servers.target import TargetServer, over_tcp
from .engines import ENGINES, TABLE, DiskEngine, Layout, Setting
from .usage import DRIVES, PROCESSORS

_LENGTHS_CHECKED = 100
PUBLISHED = "published"  # the workload
# As in InnoDB. MyRocks waits a second by default, and one statement that fails ends the run.
_LOCK_WAIT_SECONDS = 50
_LOCAL = Link("localhost", "localhost", shaped=False)


def limited_link(options: dict) -> Link:
    """Both ways, for reads and writes are half each."""
    rate = options["link_mbits"]
    return Link("limited", f"{rate} Mbit/s each way", rate, both_ways=True)


def measured_seconds(request: Request, workload: str) -> int:
    """The published mix long enough for checkpoints and GC to take their share."""
    return max(request.settings.seconds, request.options["mix_seconds"]) if workload == PUBLISHED else request.settings.seconds


def rows_of(request: Request) -> int:
    return max(1, request.settings.dataset_bytes // PAYLOAD_BYTES)


def drive_size(request: Request) -> int:
    """Bytes that a drive may hold: all values, what updates leave, and InnoDB's own."""
    return 3 * request.settings.dataset_bytes + (2 << 30)


class DiskBench(LimitedBench):
    def __init__(self, context: Context):
        super().__init__(context, context.request.options["memory_bytes"])
        self.rows = rows_of(self.request)
        self._client: java.Client | None = None
        self._engine, self._setting = ENGINES["innodb"], Setting("")
        self._drives: dict[str, Drive] = {}
        self._of_block = ExitStack()  # drives and network, which end after the server
        self._link_pids: set[int] = set()  # of a proxy that makes the link
        self._ran: set[str] = set()  # workloads, on the block's data

    def __enter__(self) -> DiskBench:
        self.progress.step("building the Java clients")
        java.build()
        super().__enter__()
        return self

    def describe(self) -> dict:
        layouts = {paths: Layout.of(self.request.options, paths).describe() for paths in self.request.options["paths"]}
        link = [limited_link(self.request.options)] if self.request.options["link_mbits"] else []
        memory_limit = same_memory_limit(self.run, self._memory_limit())
        return {"java": java.version(), "libraries": java.libraries(), "memory_limit": memory_limit,
                "layouts": layouts, "rows": self.rows, "payload_bytes": self.rows * PAYLOAD_BYTES, "links": links.probe(link) if link else []}

    def _memory_limit(self) -> dict:
        if self._cgroup:
            return {"how": "memory cgroup", **self._cgroup.describe()}
        return {"how": f"small caches and direct I/O, but for QUARRY's reads ({reason_against()})",
                "cache_bytes": int(self.request.options["memory_bytes"] * BUFFER_POOL_SHARE)}

    # --- a server for a block ---
    def begin(self, block: Block) -> None:
        self._probe_device(block.round)
        first = block.points[0]
        self._engine, self._setting = ENGINES[first.variant], Setting.of(first.setting)
        try:
            if self._engine.on_target:
                self._begin_on_target(self._engine)
            else:
                self._begin_private(self._engine, first.threads)
        except BaseException:
            self._close_server()
            raise
        self._ran = set()
        self._note_server(block, f"{self._engine.key} {first.setting}")

    def _close_server(self) -> None:
        """And what it stood on."""
        try:
            super()._close_server()
        finally:
            self._drives, self._link_pids = {}, set()
            self._of_block.close()

    def _begin_private(self, engine: DiskEngine, threads: int) -> None:
        """threads: of the client, which all of the link's rate is for."""
        (port,) = free_ports(1)
        link = limited_link(self.request.options) if self._setting.is_limited else _LOCAL
        network = self._of_block.enter_context(Network([link], port, threads))
        self._link_pids = network.pids()
        layout = self._layout()
        self.progress.step(f"starting a server for {engine.label}, {self._setting.text}")
        self._server = server = self._private_server(engine, layout, java.network_options(port, network.addresses)).start()
        self._client = java.Client(network.endpoint(link.key), java.create_account(server))
        server.execute(engine.create_table(layout if self._setting.on_drives else None))

    def _layout(self) -> Layout:
        if not self._setting.on_drives:
            return Layout.of(self.request.options, self._setting.paths)
        self.progress.step(f"making {self._setting.text} and one for the log")
        quotas = self._setting.quotas(self.request.options["drive_mbytes"] << 20)
        self._drives = self._of_block.enter_context(drives.mounted(drives.place(DATA), quotas, drive_size(self.request)))
        return Layout.on_drives(self._drives)

    def _private_server(self, engine: DiskEngine, layout: Layout, network_options: dict[str, str]) -> LabServer:
        extra = {**network_options, **cache_options(engine.engine, self.request.options["memory_bytes"]),
                 "innodb_log_group_home_dir": str(layout.redo), **self.request.mycnf}
        if LOG_BIN in extra and self._setting.on_drives:
            extra[LOG_BIN] = str(layout.redo / extra[LOG_BIN])
        if engine.engine == "ROCKSDB":
            extra = {"rocksdb_use_direct_reads": "OFF" if self._cgroup else "ON", "rocksdb_lock_wait_timeout": str(_LOCK_WAIT_SECONDS), **extra}
        if engine.engine == "QUARRY":
            extra = {"quarry_data_paths": ";".join(str(path) for path in layout.data), **extra}
        plugin = self.request.plugin if engine.engine == "QUARRY" else None
        return LabServer("main", layout.home, plugin, engine.engine == "ROCKSDB", extra, layout.directories(),
                         self._cgroup.path if self._cgroup else None, FEW_ARENAS, only_on=processors.SERVERS if self.request.apart else None)

    def _begin_on_target(self, engine: DiskEngine) -> None:
        """
        As it is configured, and on its own processors: the memory limit is for the private servers, and so is `apart`. The cluster of `make ndb` runs
        for its own blocks alone.
        """
        assert self.request.target
        self.progress.step(f"preparing {engine.label}")
        is_ours = self.request.target == ndb_cluster.address()
        server = NdbCluster(TARGET) if is_ours else TargetServer(TARGET, over_tcp(self.request.target), self.request.target)
        self._server = server.start()
        address = over_tcp(server.address)
        if self.request.apart and is_ours:
            for pid in server.process_ids:
                processors.place(pid, processors.SERVERS)
        self._client = java.Client(Endpoint(address.host, address.port), server.login["password"], address.user)
        server.execute(f"CREATE DATABASE {engine.schema}")
        for statement, back in engine.surroundings(self.rows, self.request.options["mix_seconds"]):
            try:
                server.execute(statement)
            except pymysql.Error as error:
                raise LabError(f"{address.text} refuses '{statement}': {error}") from error
            server.last_statements = [*back, *server.last_statements]
        server.execute(engine.create_table())

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
        self._run_what_comes_before(point)
        workload = WORKLOADS[point.operation]
        settled_before = self._settle()
        assert self._server and self._client
        self._wait_for_quiet(self._server.process_ids | self._link_pids)
        pinned, memory, before = self._server.verify_pinned(), device.memory_info(), self._server.counters()
        self.progress.step(f"{ENGINES[point.variant].label}, {point.setting}: {workload.label}")
        timeline = self._timeline()
        with noise.Meter(self._server.process_ids | self._link_pids) as meter, timeline, self._gc(workload):
            report = self._run(self._load_of(workload, point.threads))
        during = self._server.counters()
        settled_after = self._settle()
        self._has_run(workload)
        traffic = payload_traffic(report)
        written_bytes = sum(l.operations for name, l in report.latencies.items() if name in ("UPDATE", "INSERT")) * PAYLOAD_BYTES
        return {
            "result": result_of(report), **traffic, "cpu": meter.usage, "written": written(before, during, self._server.counters(), written_bytes),
            "latencies": {name: asdict(latency) for name, latency in report.latencies.items()},
            "timeline": timeline.samples, "timeline_started": timeline.started, "operations_timeline": report.timeline,
            "measured_until": report.measured_until, "configuration": pinned,
            "memory_free_before": memory, "settle_before": settled_before, "settle_after": settled_after, "rows": self.rows, **self._limits(),
        }

    def _run_what_comes_before(self, point: Point) -> None:
        """
        What the plan has before this point and this server has not run, because an interrupted run has its figures: so a point meets rows that were
        loaded, and changed since, as in every other round.
        """
        for key in takewhile(lambda key: key != point.operation, WORKLOADS):
            if key in {"load", *self.request.operations} - self._ran:
                workload = WORKLOADS[key]
                self.progress.step(f"{workload.label}: again, for the points that are left")
                with self._gc(workload):
                    self._run(self._load_of(workload, point.threads))
                self._settle()
                self._has_run(workload)

    def _has_run(self, workload: ycsb.Workload) -> None:
        if workload.is_load:
            self._check_load()
        self._ran.add(workload.key)

    def _limits(self) -> dict:
        """What was asked of drives and network, and what the timeline can't see; empty on the machine's own."""
        found: dict = {"drive_bytes_per_second": {name: drive.bytes_per_second for name, drive in self._drives.items()}} if self._drives else {}
        if unseen := self._unseen():
            found["unseen"] = unseen
        if self._setting.is_limited:
            found["link_bytes_per_second"] = limited_link(self.request.options).megabits_per_second * 10**6 / 8
            found["link_by_proxy"] = bool(self._link_pids)
        return found

    def _unseen(self) -> list[str]:
        """A server of the user's may have its data on any device, and its processors on another machine; named paths are on devices of their own."""
        assert self._server
        if isinstance(self._server, TargetServer) and not isinstance(self._server, NdbCluster):
            return [DRIVES] if self._server.process_ids else [DRIVES, PROCESSORS]
        return [DRIVES] if self._engine.is_private_quarry and self.request.options["data_paths"] and not self._drives else []

    def _timeline(self) -> Timeline:
        assert self._server and self._client
        devices = {name: drive.device for name, drive in self._drives.items()}
        return Timeline(self._server.another_connection(), self._server.process_ids, DATA.parent, drives=devices,
                        interface=self._client.endpoint.interface, of_ndb=self._engine.engine == "NDBCLUSTER")

    def _settle(self) -> dict:
        """The server's drives, too, hold nothing that is still to be written, nor do NDB's page buffers."""
        assert self._server
        settled = self._server.settle_disk() if isinstance(self._server, NdbCluster) else self._server.settle()
        for drive in self._drives.values():
            device.sync_file_system(drive.path)
        return settled

    def _gc(self, workload: ycsb.Workload) -> AbstractContextManager[None]:
        """Under the published mix Quarry looks every second for tables that need a pass: by default it would once in the whole measured time."""
        return self._server.steady_gc() if workload.key == PUBLISHED and isinstance(self._server, LabServer) else nullcontext()

    def _run(self, load: YcsbRun) -> YcsbReport:
        assert self._client
        try:
            return ycsb.run(load, self._client, self.run.path / "ycsb.json")
        except java.JavaError as error:
            raise self._failed(load.workload.label, error) from error

    def _load_of(self, workload: ycsb.Workload, threads: int) -> YcsbRun:
        return YcsbRun(workload, f"{self._engine.schema}.{TABLE}", self.rows, threads, self.request.settings.warmup_seconds,
                       measured_seconds(self.request, workload.key))

    def _check_load(self) -> None:
        """All rows are there, and a sample of them has whole payloads."""
        assert self._server
        table = f"{self._engine.schema}.{TABLE}"
        ((rows,),) = self._server.rows(f"SELECT COUNT(*) FROM {table}")
        ((least, most),) = self._server.rows(f"SELECT MIN(l), MAX(l) FROM (SELECT LENGTH(payload) l FROM {table} LIMIT {_LENGTHS_CHECKED}) s")
        if [rows, least, most] != [self.rows, PAYLOAD_BYTES, PAYLOAD_BYTES]:
            raise LabError(f"the load is wrong: {rows} rows of {least} to {most} bytes, expected {self.rows} of {PAYLOAD_BYTES}")


def result_of(report: YcsbReport) -> dict:
    """p95 of reads, or of inserts where nothing is read."""
    first: Latency = report.latencies.get("READ") or report.latencies["INSERT"]
    return {"events_per_second": report.operations_per_second, "interval_seconds": report.interval_seconds, "latency_p95_ms": first.p95_ms,
            "errors": report.repeated}


def payload_traffic(report: YcsbReport) -> dict:
    """Payload bytes per second read and written in the measured interval. A read-modify-write counts as its read and its update."""
    counts = {name: latency.operations for name, latency in report.latencies.items()}
    writes = counts.get("UPDATE", 0) + counts.get("INSERT", 0)
    operations = counts.get("READ", 0) + writes - counts.get("READ-MODIFY-WRITE", 0)

    def rate(count: int) -> float:
        return report.operations_per_second * count / operations * PAYLOAD_BYTES

    return {"payload_read_bytes_per_second": rate(counts.get("READ", 0)), "payload_written_bytes_per_second": rate(writes)}
