"""
Measures tables that are several times larger than the memory: a fresh server and fresh data for each variant and size, a restart before
each point, so that no point profits from what an earlier one read.

Server, page cache of its files included, live in a memory cgroup. Cold means: the server was stopped and started on its data, and the
kernel let go of its files' pages; from then on the limit alone decides what stays, and with keys drawn uniformly from four times the
memory that is at most a quarter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...design.plan import OPERATION_LABELS, Block, Point
from ...design.request import DATA, LabError, Request
from ...design.variants import ALL, KIB, Variant, create_table
from ...load import sysbench
from ...load.payload import DEFAULT_BYTES, Payload
from ...probes import device, noise
from ...report import stats
from ...run.experiment import Context
from ...run.kept_settings import same_memory_limit
from ...run.limited_bench import LimitedBench, cache_options
from ...run.runner import bytes_sent, cached_bytes, condition, use_schema, written
from ...run.tables import size_label
from ...servers.lab_server import DATABASE, LabServer
from ...servers.memory_cgroup import reason_against

RANGE_BYTES = 64 * KIB
# The columns that are no BLOB: a number and a text of 40 bytes.
OTHER_COLUMNS = "k INT NOT NULL DEFAULT 7, note VARCHAR(60) NOT NULL DEFAULT 'forty bytes of text beside a large value'"
# By operation: all columns but the value, or the value too, of every row in the order of the primary key; figures alone go to the client.
_SCANS = {"columns": "SELECT COUNT(*), SUM(k), BIT_XOR(CRC32(note)) FROM sbtest1", "scan": "SELECT COUNT(*), SUM(k), BIT_XOR(CRC32(data)) FROM sbtest1"}
_INSERT_SCHEMA = "inserts"
_PACKET_BYTES_MIN = 128 << 20  # a statement with the longest value
_ONE_LOADER_BYTES = 1 << 20  # longer values are loaded by one client: each holds several copies of its value in the server's memory
_SAMPLE_SECONDS = 0.05
_ALIGNMENT_BYTES = 4096  # of direct I/O


@dataclass(frozen=True)
class Work:
    """What sysbench does for an operation."""

    script: str
    range_bytes: int = 1


WORK = {"cold-read": Work("read"), "range": Work("range", RANGE_BYTES), "memory-insert": Work("insert"), "memory-read": Work("read")}
OPERATIONS = (*WORK, *_SCANS)
COLD_OPERATIONS = ("cold-read", "columns", "range", "scan")


class PeakMemory:
    """Samples a process's anonymous memory until the block ends; then `peak_bytes`."""

    def __init__(self, pid: int):
        self.pid, self.peak_bytes = pid, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS) and (found := device.anonymous_bytes(self.pid)) is not None:
            self.peak_bytes = max(self.peak_bytes, found)

    def __enter__(self) -> PeakMemory:
        self.peak_bytes = device.anonymous_bytes(self.pid) or 0
        self._thread.start()
        return self

    def __exit__(self, *_exc) -> None:
        self._ended.set()
        self._thread.join()


class ColdBench(LimitedBench):
    def __init__(self, context: Context, payload_bytes: int, known: Mapping[str, Variant] = ALL):
        """payload_bytes: the longest value. known: the variants that points may have."""
        super().__init__(context, context.request.options["memory_bytes"])
        self._longest, self.known = payload_bytes, known
        self._payload: Payload

    def __enter__(self) -> ColdBench:
        kind = self.request.payload
        self._payload = self._stack.enter_context(Payload(kind, max(DEFAULT_BYTES[kind], 2 * self._longest)))
        super().__enter__()
        return self

    def describe(self) -> dict:
        limit = {"how": "memory cgroup", **self._cgroup.describe()} if self._cgroup else {"how": f"none ({reason_against()})"}
        return {"payload": self._payload.describe(), "memory_limit": same_memory_limit(self.run, limit)}

    # --- a server and its data for a block ---
    def begin(self, block: Block) -> None:
        point = block.points[0]
        if any(p.operation == "cold-read" for p in block.points):
            self._probe_device(block.round, point.size_bytes)
        variant = self.known[point.variant]
        self.progress.step(f"starting a server for {variant.label}")
        self._server = self._start(variant)
        self._note_server(block, variant.key)
        self._load_dataset(point, variant, shuffled=any(p.operation == "scan" for p in block.points))

    def _probe_device(self, round_number: int, size_bytes: int) -> None:
        """What the device gives for random reads of a value's size, with as many of them at once as it likes; while no server runs."""
        probes, seconds = self.run.run["sessions"][-1].get("read_probes", []), self.request.settings.device_probe_seconds
        if not seconds or any((p["round"], p["size_bytes"]) == (round_number, size_bytes) for p in probes):
            return
        self.progress.step(f"measuring the device's own rate of random reads of {size_label(size_bytes)}")
        blocks = -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        rate = device.random_read_rate(DATA.parent, seconds, block_bytes=blocks)
        self.run.update_session("read_probes", [*probes, {"round": round_number, "size_bytes": size_bytes, "bytes_per_second": rate}])

    def _start(self, variant: Variant) -> LabServer:
        return LabServer("main", DATA / "main", plugin_of(variant, self.request), variant.engine == "ROCKSDB", server_options(variant.engine, self.request),
                         cgroup=self._cgroup.path if self._cgroup else None).start()

    def _rows(self, point: Point) -> int:
        """As many as make the dataset at least as large as asked."""
        return -(-self.request.options["dataset_bytes"] // point.size_bytes)

    def _load_dataset(self, point: Point, variant: Variant, shuffled: bool) -> None:
        self.progress.step(f"loading {variant.label} {size_label(point.size_bytes)}")
        self.server.execute(create_table(variant, point.size_bytes, "sbtest1", OTHER_COLUMNS))
        load = replace(self._load(point, Work("read"), DATABASE, threads=1 if point.size_bytes > _ONE_LOADER_BYTES else 4), shuffled=shuffled)
        sysbench.fill(load, self._payload)
        stored = variant.stored_bytes(point.size_bytes)
        ((rows, least, most),) = self.server.rows("SELECT COUNT(*), MIN(LENGTH(data)), MAX(LENGTH(data)) FROM sbtest1")
        if [int(rows), int(least), int(most)] != [load.rows, stored, stored]:
            raise LabError(f"the dataset of {variant.label} is wrong: {rows} rows of {least} to {most} bytes, expected {load.rows} of {stored}")

    def _load(self, point: Point, work: Work, database: str, threads: int) -> sysbench.Load:
        settings, variant = self.request.settings, self.known[point.variant]
        return sysbench.Load(work.script, database, point.size_bytes, threads, **self.server.login, rows=self._rows(point),
                             warmup_seconds=settings.warmup_seconds, seconds=settings.seconds, session_sql=variant.session_sql,
                             value_expression=variant.value_expression, range_bytes=work.range_bytes)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        self.progress.step(f"restarting for {self.known[point.variant].label} {size_label(point.size_bytes)}: {OPERATION_LABELS[point.operation]}")
        self.server.restart_cold()
        common = {"payload": self._payload.kind, "batch_rows": 1, "memory_free_before": device.memory_info(), "settle_before": self.server.settle(),
                  "configuration": self.server.verify_pinned(),
                  "memory_limit_bytes": self._cgroup.limit_bytes if self._cgroup else None,
                  "dataset_bytes": self._rows(point) * point.size_bytes}
        self._wait_for_quiet(self.server.process_ids)
        if point.operation in _SCANS:
            return {**common, **self._scan(point)}
        return {**common, **(self._memory(point) if point.operation.startswith("memory-") else self._run(point, DATABASE))}

    def _run(self, point: Point, database: str) -> dict:
        return self._run_load(point, self._load(point, WORK[point.operation], database, point.threads))

    def _run_load(self, point: Point, load: sysbench.Load) -> dict:
        before, sent = self.server.counters(), bytes_sent(self.server)
        with noise.Meter({self.server.pid}) as meter:
            result = self._sysbench(point, load)
        during = self.server.counters()
        settled = self.server.settle()
        payload_bytes = result.total_rows_written * point.size_bytes
        return {"settle_after": settled, "result": result.as_dict(), "cpu": meter.usage, "bytes_sent": bytes_sent(self.server) - sent,
                "written": written(before, during, self.server.counters(), payload_bytes)}

    def _sysbench(self, point: Point, load: sysbench.Load) -> sysbench.LoadResult:
        try:
            return sysbench.run(load, self._payload)
        except sysbench.SysbenchError as error:
            raise self._failed(OPERATION_LABELS[point.operation], error) from error

    def _memory(self, point: Point) -> dict:
        """In a server whose buffer pool was used up, so that its size can be taken off what is resident."""
        self.progress.step("filling the buffer pool")
        condition(self.server, self._payload)
        use_schema(self.server, DATABASE)
        database = DATABASE
        if point.operation == "memory-insert":
            database = _INSERT_SCHEMA
            use_schema(self.server, database)
            self.server.execute(create_table(self.known[point.variant], point.size_bytes, "sbtest1"))
        self.progress.step(f"{self.known[point.variant].label}: {OPERATION_LABELS[point.operation]} x {point.threads}")
        idle = device.anonymous_bytes(self.server.pid)
        with PeakMemory(self.server.pid) as memory:
            record = self._run(point, database)
        cache = int(self.server.status("Quarry_cache_bytes").get("quarry_cache_bytes", 0))
        if point.operation == "memory-insert":
            self.server.execute(f"DROP DATABASE {_INSERT_SCHEMA}")
        return {**record, "server_memory": {"buffer_pool_bytes": int(self.server.variables()["innodb_buffer_pool_size"]), "idle_bytes": idle,
                                            "peak_bytes": memory.peak_bytes, "value_cache_bytes": cache}}

    def _scan(self, point: Point) -> dict:
        """Cold scans, a restart before each, for as long as a point lasts; then what the caches hold after the last one."""
        rows = self._rows(point)
        started, before, seconds = time.monotonic(), self.server.counters(), []
        with noise.Meter({self.server.pid}) as meter:
            while not seconds or time.monotonic() - started < self.request.settings.seconds:
                if seconds:
                    self.server.restart_cold()
                    meter.own_pids.add(self.server.pid)
                    before = self.server.counters()
                seconds.append(self._timed_scan(point, rows))
        after, interval = self.server.counters(), time.monotonic() - started
        result = {"events_per_second": rows / stats.summarize(seconds).median, "interval_seconds": interval, "events": rows * len(seconds), "writes": 0}
        return {"settle_after": self.server.settle(), "result": result, "cpu": meter.usage, "written": written(before, after, after, 0),
                "scan_seconds": seconds, "scanned_rows": rows,
                "memory": {"payload_bytes": rows * point.size_bytes, "cached_bytes": cached_bytes(self.server, self.known[point.variant], DATABASE)}}

    def _timed_scan(self, point: Point, rows: int) -> float:
        if session_sql := self.known[point.variant].session_sql:
            self.server.execute(session_sql)
        self.server.rows("SELECT id FROM sbtest1 LIMIT 0")  # opens the table
        started = time.monotonic()
        ((count, numbers, _checksum),) = self.server.rows(_SCANS[point.operation])
        seconds = time.monotonic() - started
        if [int(count), int(numbers)] != [rows, 7 * rows]:
            raise LabError(f"the scan saw {count} rows with a sum of {numbers}, expected {rows} and {7 * rows}")
        return seconds


def plugin_of(variant: Variant, request: Request) -> Path | None:
    """The build that serves a variant; None where none is needed."""
    return {"main": request.plugin, "baseline": request.baseline_plugin}[variant.server] if variant.needs_plugin else None


def server_options(engine: str, request: Request) -> dict[str, str]:
    """The same for every engine, MyRocks' own caches apart; Quarry's caches are as large as they are by default."""
    return {**cache_options(engine, request.options["memory_bytes"]), "max_allowed_packet": str(_PACKET_BYTES_MIN), **request.mycnf}
