"""
Executes a plan: loads datasets, settles, measures, records.

Each recorded point carries the raw figures of its round (load generator, bytes written by the server's process and to the device,
processors used by whom, memory, settling), so every table and verdict can be recomputed from points.jsonl.

Bytes written per payload byte are counted from before the load until the server has settled after it, warm-up included: deferred work
belongs to who caused it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import device, noise, stats, sysbench
from .lab_server import DATABASE, LabServer
from .payload import Payload
from .plan import OPERATION_LABELS, Block, Point
from .progress import RunProgress
from .results import RunDirectory
from .variants import ALL, Variant, create_table


class LabError(Exception):
    """The run cannot go on; the message says what is missing."""


@dataclass(frozen=True)
class Settings:
    seconds: int = 10
    warmup_seconds: int = 2
    dataset_bytes: int = 384 << 20  # per variant; several variants' datasets fit the buffer pool together
    tables: int = 1
    rows_min: int = 64
    read_percent: int = 90
    batch_rows: int = 1
    disk_budget_bytes: int = 32 << 30  # a server's directory is made anew beyond this
    disk_reserve_bytes: int = 8 << 30  # left free for everyone else
    device_probe_seconds: float = 3.0
    quiet_wait_seconds_max: float = 0.0  # before each point, for other processes to leave the processors alone


@dataclass
class Runner:
    """Externally synchronised. `servers` by key; the caller starts and closes them."""

    directory: RunDirectory
    servers: dict[str, LabServer]
    payload: Payload
    settings: Settings
    progress: RunProgress
    write_rate: float = 0.0  # the device's own, for the space that an insert point may need
    failed: list[str] = field(default_factory=list)

    def run(self, blocks: list[Block]) -> None:
        done = self.directory.done_keys()
        for server in self.servers.values():
            self._condition(server)
        for block in blocks:
            points = [p for p in block.points if p.key not in done]
            if not points:
                continue
            self._probe_device(block.round)
            for point in points:
                self._run_point(point)
            self._drop_datasets(block.size_bytes)

    # --- preparing ---
    def _condition(self, server: LabServer) -> None:
        """
        Brings a fresh server to the state that it keeps later: once over the redo log (its first pass goes into space that the file
        system has never written, a journal commit with each flush) and once through the buffer pool (while free pages are left
        InnoDB flushes at the checkpoint's pace alone, at a third of the later speed). Else whoever comes first pays.
        """
        self.progress.step("writing once over the redo log and the buffer pool")
        value_bytes = 64 << 10
        found = server.variables()
        rows = max(int(found["innodb_log_file_size"]), int(found["innodb_buffer_pool_size"])) * 5 // 4 // value_bytes
        self._use_schema(server, "conditioning")
        server.execute("CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=InnoDB")
        sysbench.fill(sysbench.Load("read", server.socket, "conditioning", "root", "", value_bytes, threads=4, rows=rows), self.payload)
        server.execute("DROP DATABASE conditioning")
        server.settle()

    def _recycle(self, server: LabServer) -> None:
        self.progress.step("starting the server on a fresh directory")
        server.recycle()
        self._condition(server)

    def _probe_device(self, round_number: int) -> None:
        """Once per round and session: the device's own rate drifts too. Not at all when the settings say 0 seconds."""
        if not self.settings.device_probe_seconds:
            return
        probes = self.directory.run["sessions"][-1].setdefault("device_probes", [])
        if any(p["round"] == round_number for p in probes):
            return
        self.progress.step("measuring the device's own rate")
        for server in self.servers.values():
            server.settle()
        result = device.probe(Path(self._any_server().directory).parent, self.settings.device_probe_seconds)
        probes.append({"round": round_number, **result})
        self.directory.update_session("device_probes", probes)
        self.write_rate = max(p["sequential_write_bytes_per_second"] for p in probes)

    def _any_server(self) -> LabServer:
        return next(iter(self.servers.values()))

    def _rows(self, size_bytes: int) -> int:
        """Rows per table of a dataset."""
        return max(self.settings.rows_min, self.settings.dataset_bytes // size_bytes // self.settings.tables)

    def _load(self, point: Point, server: LabServer, operation: str) -> sysbench.Load:
        return sysbench.Load(operation=operation, socket=server.socket, database=DATABASE, user="root", password="",
                             value_bytes=point.size_bytes, threads=point.threads, rows=self._rows(point.size_bytes),
                             tables=self.settings.tables, warmup_seconds=self.settings.warmup_seconds, seconds=self.settings.seconds,
                             read_percent=self.settings.read_percent,
                             batch_rows=self.settings.batch_rows if operation == "insert" else 1,
                             session_sql=ALL[point.variant].session_sql)

    def _create_tables(self, server: LabServer, variant: Variant, size_bytes: int) -> None:
        for i in range(1, self.settings.tables + 1):
            server.execute(f"DROP TABLE IF EXISTS sbtest{i}")
            server.execute(create_table(variant, size_bytes, f"sbtest{i}"))

    def _use_schema(self, server: LabServer, name: str) -> None:
        server.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
        server.execute(f"USE `{name}`")

    def _dataset_schema(self, variant: Variant, size_bytes: int) -> str:
        return f"data_{variant.key.replace('-', '_')}_{size_bytes}"

    def _ensure_dataset(self, point: Point, server: LabServer, variant: Variant) -> str:
        """Loads the rows that reads and updates need, unless they are there; returns the schema."""
        schema = self._dataset_schema(variant, point.size_bytes)
        if (variant.key, point.size_bytes) not in server.datasets:
            self.progress.step(f"loading {variant.label} {point.size_bytes // 1024} KB")
            self._use_schema(server, schema)
            self._create_tables(server, variant, point.size_bytes)
            load = self._load(point, server, "read")
            sysbench.fill(sysbench.Load(**{**load.__dict__, "threads": 4, "database": schema}), self.payload)
            for i in range(1, self.settings.tables + 1):
                (count,) = server.rows(f"SELECT COUNT(*), MIN(LENGTH(data)), MAX(LENGTH(data)) FROM sbtest{i}")
                if [int(x) for x in count] != [self._rows(point.size_bytes), point.size_bytes, point.size_bytes]:
                    raise LabError(f"the dataset of {variant.label} is wrong: rows and lengths {count}")
            server.datasets[(variant.key, point.size_bytes)] = schema
        return schema

    def _warm(self, server: LabServer, schema: str) -> None:
        """Every value is read once, so that a hot read is one."""
        self._use_schema(server, schema)
        for i in range(1, self.settings.tables + 1):
            server.rows(f"SELECT BIT_XOR(CRC32(data)) FROM sbtest{i}")

    def _drop_datasets(self, size_bytes: int) -> None:
        for server in self.servers.values():
            for variant_key, size in [k for k in server.datasets if k[1] == size_bytes]:
                server.execute(f"DROP DATABASE `{self._dataset_schema(ALL[variant_key], size)}`")
                del server.datasets[(variant_key, size)]
            self._bound_disk(server)

    # --- space ---
    def _bound_disk(self, server: LabServer) -> None:
        """An engine may keep dropped space for later: beyond the budget the server starts on a fresh directory."""
        if server.disk_bytes() > self.settings.disk_budget_bytes:
            self._recycle(server)

    def _check_space(self, point: Point, server: LabServer) -> None:
        """Before a point that writes: room for what the device could take at its own rate, and as much again for redo and doublewrite."""
        seconds = self.settings.seconds + self.settings.warmup_seconds
        share = 1.0 if point.operation == "insert" else (100 - self.settings.read_percent) / 100 * 2
        need = int(self.write_rate * seconds * share) + self.settings.disk_reserve_bytes
        if device.free_bytes(server.directory) >= need:
            return
        self._recycle(server)
        free = device.free_bytes(server.directory)
        if free < need:
            raise LabError(f"{stats.human_bytes(free)} are free under {server.directory}; {OPERATION_LABELS[point.operation]} at "
                           f"{stats.human_bytes(point.size_bytes)} may need {stats.human_bytes(need)}: free some, or give --seconds a smaller value")

    # --- measuring ---
    def _run_point(self, point: Point) -> None:
        started = time.monotonic()
        variant = ALL[point.variant]
        server = self.servers[variant.server]
        if point.operation != "read":
            self._check_space(point, server)
        if point.operation == "insert":
            schema = "insert_point"
            self._use_schema(server, schema)
            self._create_tables(server, variant, point.size_bytes)
        else:
            schema = self._ensure_dataset(point, server, variant)
            self.progress.step(f"warming {variant.label} {point.size_bytes // 1024} KB")
            self._warm(server, schema)
        record = self._measure(point, server, variant, schema)
        if point.operation == "insert":
            server.execute("DROP DATABASE insert_point")
            self._bound_disk(server)
        self.directory.add_point(record)
        self.progress.done(point.operation, time.monotonic() - started, describe(record))

    def _measure(self, point: Point, server: LabServer, variant: Variant, schema: str) -> dict:
        self.progress.step(f"settling before {variant.label}")
        settled_before = {key: other.settle() for key, other in self.servers.items()}[server.key]
        own_pids = {os.getpid(), *(s.pid for s in self.servers.values())}
        if self.settings.quiet_wait_seconds_max:
            self.progress.step("waiting for a quiet machine")
            noise.wait_for_quiet(own_pids, self.settings.quiet_wait_seconds_max)
        pinned = server.verify_pinned()
        memory = device.memory_info()
        status_before = server.status("quarry%")
        load = sysbench.Load(**{**self._load(point, server, point.operation).__dict__, "database": schema})
        self.progress.step(f"{variant.label} {point.size_bytes // 1024} KB {OPERATION_LABELS[point.operation]} x {point.threads}")
        counters_before, snapshot = server.counters(), noise.take_snapshot()
        wall_started = time.time()
        result = sysbench.run(load, self.payload)
        usage = noise.usage(snapshot, noise.take_snapshot(), own_pids, result.client_cpu_seconds)
        counters_run = server.counters()
        self.progress.step(f"settling after {variant.label}")
        settled_after = server.settle()
        counters_after = server.counters()
        payload_bytes = result.total_rows_written * point.size_bytes
        return {
            "round": point.round, "operation": point.operation, "size_bytes": point.size_bytes, "threads": point.threads,
            "variant": point.variant, "payload": self.payload.kind, "tables": self.settings.tables, "batch_rows": load.batch_rows,
            "started": wall_started,
            "result": result.as_dict(),
            "payload_bytes_written": payload_bytes,
            "written": written(counters_before, counters_run, counters_after, payload_bytes),
            "cpu": usage,
            "memory_free_before": memory,
            "settle_before": settled_before, "settle_after": settled_after,
            "columns": self._quarry_columns(server, schema),
            "quarry_status": difference(status_before, server.status("quarry%")),
            "configuration": pinned,
        }

    def _quarry_columns(self, server: LabServer, schema: str) -> list[dict]:
        """What the engine says of the measured columns (inline, prefix and part size, codec, managed or why not)."""
        if not server.plugin:
            return []
        names = [row[0] for row in server.rows("SHOW COLUMNS FROM INFORMATION_SCHEMA.QUARRY_COLUMNS")]
        rows = server.rows(f"SELECT * FROM INFORMATION_SCHEMA.QUARRY_COLUMNS WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = 'sbtest1'")
        return [{name.lower(): value for name, value in zip(names, row, strict=True)} for row in rows]


def written(before: dict, run: dict, after: dict, payload_bytes: int) -> dict:
    """Bytes written from before the load until settled after it, and their ratio to the payload (None when nothing was written)."""
    server_bytes = after["server_write_bytes"] - before["server_write_bytes"]
    known = before["device_write_bytes"] is not None
    device_bytes = after["device_write_bytes"] - before["device_write_bytes"] if known else None
    return {
        "server_bytes": server_bytes,
        "server_bytes_during_run": run["server_write_bytes"] - before["server_write_bytes"],
        "device_bytes": device_bytes,
        "server_read_bytes_during_run": run["server_read_bytes"] - before["server_read_bytes"],
        "server_bytes_per_payload_byte": server_bytes / payload_bytes if payload_bytes else None,
        "device_bytes_per_payload_byte": device_bytes / payload_bytes if payload_bytes and known else None,
    }


def difference(before: dict[str, str], after: dict[str, str]) -> dict[str, int]:
    """By how much each numeric status counter moved."""
    moved = {}
    for name, value in after.items():
        try:
            moved[name] = int(value) - int(before.get(name, 0))
        except (TypeError, ValueError):
            continue  # not a number
    return moved


def describe(record: dict) -> str:
    """One line per finished point."""
    result, ratio = record["result"], record["written"]["server_bytes_per_payload_byte"]
    line = (f"round {record['round']}  {record['size_bytes'] // 1024:>3} KB  {OPERATION_LABELS[record['operation']]:<14} x{record['threads']:<3} "
            f"{ALL[record['variant']].label:<18} [bold]{stats.human_count(result['events_per_second']):>7}[/bold]/s  "
            f"p95 {result['latency_p95_ms']:.2f} ms")
    if ratio is not None:
        line += f"  {ratio:.2f} B/B"
    if not (record["settle_before"]["settled"] and record["settle_after"]["settled"]):
        line += "  [yellow]not settled[/yellow]"
    if record["cpu"]["noisy"]:
        others = ", ".join(record["cpu"]["top_others"]) or "short-lived processes"
        line += f"  [yellow]noisy: others {record['cpu']['other_cpus']:.2f} CPU, steal {record['cpu']['steal_cpus']:.2f} ({others})[/yellow]"
    return line
