"""
Measures points on tables of one BLOB column with sysbench: loads datasets, settles, measures.

Each record carries the raw figures of its round (load generator, bytes written by the server's process and to the device,
processors used by whom, memory, settling), so every table and verdict can be recomputed from points.jsonl.
A point's setting is the kind of its payload; without one it has the request's.

Bytes written per payload byte are counted from before the load until the server has settled after it, warm-up included: deferred work
belongs to who caused it. `update` is measured in a steady state: the rows were written over before, GC looks every second, and a mark
pass before and one after the load leave both ends alike, so that what GC rewrites of this load's garbage is counted with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from quarry_server.server import HOME_NAME

from ..design.plan import FEW_ROWS, OPERATION_LABELS, WITHOUT_DATASET, WITHOUT_PAYLOAD, Block, Point
from ..design.request import LabError
from ..design.variants import ALL, Variant, column_names, create_table
from ..load import sysbench
from ..load.payload import Payload
from ..probes import device, noise
from ..report import stats
from ..servers.lab_server import LabServer
from ..servers.target import SCHEMA_PREFIX, TargetServer
from .experiment import Bench, Context

INSERT_SCHEMA = f"{SCHEMA_PREFIX}insert"
Server = LabServer | TargetServer
DatasetKey = tuple[str, int, str]  # variant, size, setting


class TableBench(Bench):
    """Externally synchronised. `servers` by key, `payloads` by kind; the caller starts and closes them. known: the variants that points may have."""

    def __init__(self, context: Context, servers: dict[str, Server], payloads: dict[str, Payload], known: Mapping[str, Variant] = ALL):
        self.directory, self.progress, self.settings = context.run, context.progress, context.request.settings
        self.servers, self.payloads, self.payload = servers, payloads, payloads[context.request.payload]
        self.known = known
        self.write_rate = 0.0  # the device's own, for the space that an insert point may need
        self._conditioned = False
        self._memory_of: dict[DatasetKey, dict] = {}
        self._cached_before: dict[DatasetKey, dict[str, int]] = {}  # of an engine that tells of all its tables together

    def describe(self) -> dict:
        return {"payload": self.payload.describe(), "payloads": [payload.describe() for payload in self.payloads.values()],
                "servers": {key: server.describe() for key, server in self.servers.items()}}

    def begin(self, block: Block) -> None:
        if not self._conditioned:
            for server in self._private_servers():
                self._condition(server)
            self._conditioned = True
        self._probe_device(block.round)

    def _private_servers(self) -> list[LabServer]:
        return [server for server in self.servers.values() if isinstance(server, LabServer)]

    def ended(self) -> str:
        return "".join(server.ended() for server in self.servers.values())

    def end(self, block: Block) -> None:
        for size in sorted({point.size_bytes for point in block.points}):
            self._drop_datasets(size)

    # --- preparing ---
    def _condition(self, server: LabServer) -> None:
        self.progress.step("writing once over the redo log and the buffer pool")
        condition(server, self.payload)

    def _recycle(self, server: LabServer) -> None:
        self.progress.step("starting the server on a fresh directory")
        server.recycle()
        self._condition(server)

    def _probe_device(self, round_number: int) -> None:
        """Once per round and session: the device's own rate drifts too. Not at all when the settings say 0 seconds."""
        private = self._private_servers()
        if not self.settings.device_probe_seconds or not private:
            return
        probes = self.directory.run["sessions"][-1].setdefault("device_probes", [])
        if not any(p["round"] == round_number for p in probes):
            self.progress.step("measuring the device's own rate")
            for server in private:
                server.settle()
            directory = Path(private[0].directory).parent
            probes.append({"round": round_number, **self._device_rates(directory)})
            self.directory.update_session("device_probes", probes)
        self.write_rate = max(p["sequential_write_bytes_per_second"] for p in probes)

    def _device_rates(self, directory: Path) -> dict:
        return device.probe(directory, self.settings.device_probe_seconds)

    def _rows(self, size_bytes: int) -> int:
        """Rows per table of a dataset."""
        return max(self.settings.rows_min, self.settings.dataset_bytes // size_bytes // self.settings.tables)

    def _load(self, point: Point, server: Server, operation: str, schema: str) -> sysbench.Load:
        variant, rows = self.known[point.variant], self._rows(point.size_bytes)
        if variant.constant_mix:
            operation = "floor"
        return sysbench.Load(operation=operation, database=schema, **server.login,
                             value_bytes=point.size_bytes // variant.columns, threads=point.threads,
                             rows=min(rows, FEW_ROWS) if operation in ("few", "updated") else rows,
                             tables=self.settings.tables, warmup_seconds=self.settings.warmup_seconds, seconds=self.settings.seconds,
                             read_percent=self.settings.read_percent,
                             batch_rows=self.settings.batch_rows if operation == "insert" else 1,
                             session_sql=variant.session_sql, columns=variant.columns, id_expression=variant.id_expression,
                             value_expression=variant.value_expression, ignored_errors=server.ignored_errors)

    def _measured_load(self, point: Point, server: Server, schema: str) -> sysbench.Load:
        return self._load(point, server, point.operation, schema)

    def _create_tables(self, server: Server, variant: Variant, size_bytes: int) -> None:
        if variant.sequence_cache:
            server.execute(f"CREATE OR REPLACE SEQUENCE ids CACHE {variant.sequence_cache} ENGINE=InnoDB")
        for i in range(1, self.settings.tables + 1):
            server.execute(f"DROP TABLE IF EXISTS sbtest{i}")
            server.execute(create_table(variant, size_bytes, f"sbtest{i}"))

    def _payload(self, point: Point) -> Payload:
        return self.payloads[point.setting] if point.setting else self.payload

    def _ensure_dataset(self, point: Point, server: Server, variant: Variant) -> str:
        """Loads the rows that reads and updates need, unless they are there; returns the schema."""
        key = dataset_key(point)
        schema = schema_name(key)
        variant = self.known[key[0]]
        if key not in server.datasets:
            self.progress.step(f"loading {variant.label} {point.size_bytes // 1024} KB")
            use_schema(server, schema)
            if variant.engine == "ROCKSDB" and isinstance(server, LabServer):
                self._cached_before[key] = cached_bytes(server, variant, schema)
            self._create_tables(server, variant, point.size_bytes)
            owner = replace(point, variant=variant.key)
            sysbench.fill(replace(self._load(owner, server, "read", schema), threads=4), self._payload(point))
            value, each = column_names(variant)[0], variant.stored_bytes(point.size_bytes)
            for i in range(1, self.settings.tables + 1):
                (count,) = server.rows(f"SELECT COUNT(*), MIN(LENGTH({value})), MAX(LENGTH({value})) FROM sbtest{i}")
                if [int(x) for x in count] != [self._rows(point.size_bytes), each, each]:
                    raise LabError(f"the dataset of {variant.label} is wrong: rows and lengths {count}")
            server.datasets[key] = schema
        return schema

    def _warm(self, server: Server, schema: str, variant: Variant) -> None:
        """Every value is read once, so that a hot read is one."""
        use_schema(server, schema)
        sums = ", ".join(f"BIT_XOR(CRC32({name}))" for name in column_names(variant))
        for i in range(1, self.settings.tables + 1):
            server.rows(f"SELECT {sums} FROM sbtest{i}")

    def _drop_datasets(self, size_bytes: int) -> None:
        for server in self.servers.values():
            for key in [key for key in server.datasets if key[1] == size_bytes]:
                server.execute(f"DROP DATABASE `{server.datasets.pop(key)}`")
                self._memory_of.pop(key, None)
            self._bound_disk(server)

    # --- space ---
    def _bound_disk(self, server: Server) -> None:
        """An engine may keep dropped space for later: beyond the budget the server starts on a fresh directory."""
        if isinstance(server, LabServer) and server.disk_bytes() > self.settings.disk_budget_bytes:
            self._recycle(server)

    def _check_space(self, point: Point, server: Server, load: sysbench.Load) -> None:
        """
        Before a point that writes: room for what the device, or an engine, could write at its own rate, and of a mix as much again for redo and
        doublewrite. Nobody else's files are on a file system that was made for the run: there the reserve was kept when it was made.
        """
        if not isinstance(server, LabServer):
            return
        seconds = self.settings.seconds + self.settings.warmup_seconds
        share = 1.0 if point.operation == "insert" else load.write_percent / 100 * 2
        reserve = 0 if server.directory.parent.is_mount() else self.settings.disk_reserve_bytes
        need = int(min(self.write_rate, device.ENGINE_BYTES_PER_SECOND_MAX) * seconds * share) + reserve
        if device.free_bytes(server.directory) >= need:
            return
        self._recycle(server)
        free = device.free_bytes(server.directory)
        if free < need:
            raise LabError(f"{stats.human_bytes(free)} are free under {server.directory}; {OPERATION_LABELS[point.operation]} at "
                           f"{stats.human_bytes(point.size_bytes)} may need {stats.human_bytes(need)}: free some, or give --seconds a smaller value")

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        variant = self.known[point.variant]
        server = self.servers[variant.server]
        if point.operation in ("insert", "mix", "update"):
            self._check_space(point, server, self._load(point, server, point.operation, INSERT_SCHEMA))
        if point.operation in WITHOUT_DATASET:
            schema = INSERT_SCHEMA
            use_schema(server, schema)
            if point.operation == "insert":
                self._create_tables(server, variant, point.size_bytes)
        else:
            schema = self._ensure_dataset(point, server, variant)
            self.progress.step(f"warming {variant.label} {point.size_bytes // 1024} KB")
            self._warm(server, schema, variant)
            if point.operation == "update":
                self._write_over(point, server, schema)
        record = self._measure(point, server, variant, schema)
        if point.operation in WITHOUT_DATASET:
            server.execute(f"DROP DATABASE {INSERT_SCHEMA}")
            self._bound_disk(server)
        return record

    def _write_over(self, point: Point, server: Server, schema: str) -> None:
        """As long as is measured then: a table that was just filled holds no garbage, and its first updates would be cheaper than all later ones."""
        self.progress.step("writing the dataset over")
        with self._gc(point, server):
            sysbench.run(replace(self._load(point, server, "update", schema), warmup_seconds=0), self._payload(point))
        self._collect_garbage(point, server)

    def _gc(self, point: Point, server: Server) -> AbstractContextManager[None]:
        return server.steady_gc() if point.operation == "update" and isinstance(server, LabServer) else nullcontext()

    def _beside(self, point: Point, load: sysbench.Load) -> AbstractContextManager[None]:
        return sysbench.updating(load, self._payload(point)) if point.operation == "updated" else nullcontext()

    def _collect_garbage(self, point: Point, server: Server) -> None:
        if point.operation == "update" and isinstance(server, LabServer):
            self.progress.step("waiting for a mark pass")
            server.collect_garbage()

    def _memory(self, point: Point, server: Server, variant: Variant, schema: str) -> dict | None:
        """What the server's caches hold of the dataset once every row was read; asked once a dataset, outside measured intervals."""
        if point.operation in WITHOUT_DATASET or not isinstance(server, LabServer):
            return None
        key = dataset_key(point)
        if key not in self._memory_of:
            rows = self._rows(point.size_bytes) * self.settings.tables
            cached = growth(self._cached_before.get(key, {}), cached_bytes(server, variant, schema))
            self._memory_of[key] = {"payload_bytes": rows * point.size_bytes, "cached_bytes": cached}
        return self._memory_of[key]

    def _measure(self, point: Point, server: Server, variant: Variant, schema: str) -> dict:
        self.progress.step(f"settling before {variant.label}")
        settled_before = {key: other.settle() for key, other in self.servers.items()}[server.key]
        own_pids = set().union(*(s.process_ids for s in self.servers.values()))
        if self.settings.quiet_wait_seconds_max:
            self.progress.step("waiting for a quiet machine")
            noise.wait_for_quiet(own_pids, self.settings.quiet_wait_seconds_max)
        pinned = server.verify_pinned()
        memory_of_dataset = self._memory(point, server, variant, schema)
        memory = device.memory_info()
        status_before = server.status("quarry%")
        load = self._measured_load(point, server, schema)
        self.progress.step(f"{variant.label} {point.size_bytes // 1024} KB {OPERATION_LABELS[point.operation]} x {point.threads}")
        counters_before = server.counters()
        with noise.Meter(own_pids) as meter, self._beside(point, load), self._gc(point, server):
            result = sysbench.run(load, self._payload(point))
        counters_run = server.counters()
        self._collect_garbage(point, server)
        self.progress.step(f"settling after {variant.label}")
        settled_after = server.settle()
        counters_after = server.counters()
        payload_bytes = 0 if point.operation in WITHOUT_PAYLOAD else result.total_rows_written * point.size_bytes
        return {
            "payload": self._payload(point).kind, "tables": self.settings.tables, "batch_rows": load.batch_rows,
            "result": result.as_dict(),
            "payload_bytes_written": payload_bytes,
            "written": written(counters_before, counters_run, counters_after, payload_bytes),
            "cpu": meter.usage,
            "memory_free_before": memory,
            "settle_before": settled_before, "settle_after": settled_after,
            "memory": memory_of_dataset,
            "columns": self._quarry_columns(server, schema),
            "quarry_status": difference(status_before, server.status("quarry%")),
            "configuration": pinned,
        }

    def _quarry_columns(self, server: Server, schema: str) -> list[dict]:
        """What the engine says of the measured columns (inline, prefix and part size, codec, managed or why not)."""
        if not isinstance(server, LabServer) or not server.plugin:
            return []
        names = [row[0] for row in server.rows("SHOW COLUMNS FROM INFORMATION_SCHEMA.QUARRY_COLUMNS")]
        rows = server.rows(f"SELECT * FROM INFORMATION_SCHEMA.QUARRY_COLUMNS WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = 'sbtest1'")
        return [{name.lower(): value for name, value in zip(names, row, strict=True)} for row in rows]


def dataset_key(point: Point) -> DatasetKey:
    known = ALL.get(point.variant)
    return (known.data_of if known else "") or point.variant, point.size_bytes, point.setting


def schema_name(key: DatasetKey) -> str:
    return SCHEMA_PREFIX + "_".join(re.sub(r"\W", "_", str(part)) for part in key if part)


def condition(server: LabServer, payload: Payload) -> None:
    """
    Brings a fresh server to the state that it keeps later: once over the redo log (its first pass goes into space that the file
    system has never written, a journal commit with each flush) and once through the buffer pool (while free pages are left
    InnoDB flushes at the checkpoint's pace alone, at a third of the later speed). Else whoever comes first pays.
    """
    value_bytes = 64 << 10
    found = server.variables()
    rows = max(int(found["innodb_log_file_size"]), int(found["innodb_buffer_pool_size"])) * 5 // 4 // value_bytes
    use_schema(server, "conditioning")
    server.execute("CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=InnoDB")
    sysbench.fill(sysbench.Load("read", "conditioning", value_bytes, threads=4, rows=rows, **server.login), payload)
    server.execute("DROP DATABASE conditioning")
    server.settle()


def use_schema(server: Server, name: str) -> None:
    server.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
    server.execute(f"USE `{name}`")


def cached_bytes(server: LabServer, variant: Variant, schema: str) -> dict[str, int]:
    """
    By cache: pages of InnoDB's buffer pool (by tablespace, which counts overflow pages too), QUARRY's own cache, MyRocks' block cache and
    memtables, and the kernel's page cache of QUARRY's and MyRocks' files. MyRocks tells of all its tables together: see `growth`.
    """
    if variant.engine == "ROCKSDB":
        (block_cache,) = server.rows("SELECT SUM(VALUE) FROM information_schema.ROCKSDB_DBSTATS WHERE STAT_TYPE = 'DB_BLOCK_CACHE_USAGE'")
        (memtables,) = server.rows("SELECT SUM(VALUE) FROM information_schema.ROCKSDB_CFSTATS WHERE STAT_TYPE = 'CUR_SIZE_ALL_MEM_TABLES'")
        return {"rocksdb_block_cache": int(block_cache[0] or 0), "rocksdb_memtables": int(memtables[0] or 0),
                "page_cache": device.page_cache_bytes(server.directory / "data" / "#rocksdb")}
    ((pages, page_bytes),) = server.rows(
        "SELECT COUNT(*), @@innodb_page_size FROM information_schema.INNODB_BUFFER_PAGE WHERE space IN (SELECT space FROM "
        f"information_schema.INNODB_SYS_TABLESPACES WHERE name LIKE '{schema}/%')")
    found = {"buffer_pool": int(pages) * int(page_bytes)}
    if variant.engine == "QUARRY":
        stores = server.rows("SELECT CACHED_BYTES, STORE_PATH FROM information_schema.QUARRY_TABLES WHERE STATE <> 'DROPPED' "
                             f"AND TABLE_SCHEMA = '{schema}'")
        found["quarry_cache"] = sum(int(cached) for cached, _path in stores)
        found["page_cache"] = sum(device.page_cache_bytes(server.directory / "data" / HOME_NAME / path) for _cached, path in stores)
    return found


def growth(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: max(0, size - before.get(name, 0)) for name, size in after.items()}


def written(before: dict | None, run: dict | None, after: dict | None, payload_bytes: int) -> dict:
    """Bytes written from before the load until settled after it, and their ratio to the payload (None when nothing was written, or not known)."""
    if not before or not run or not after:
        return {"server_bytes_per_payload_byte": None, "device_bytes_per_payload_byte": None}
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


def bytes_sent(server: LabServer) -> int:
    return int(server.status("Bytes_sent")["bytes_sent"])


def difference(before: dict[str, str], after: dict[str, str]) -> dict[str, int]:
    """By how much each numeric status counter moved."""
    moved = {}
    for name, value in after.items():
        try:
            moved[name] = int(value) - int(before.get(name, 0))
        except (TypeError, ValueError):
            continue  # not a number
    return moved


def line(record: dict) -> str:
    """What a finished point says beyond its speed."""
    ratio = record["written"]["server_bytes_per_payload_byte"]
    text = f"  {ratio:.2f} B/B" if ratio is not None else ""
    if not (record["settle_before"]["settled"] and record["settle_after"]["settled"]):
        text += "  [yellow]not settled[/yellow]"
    if repeated := record["result"].get("errors", 0):
        text += f"  [yellow]{stats.counted(repeated, 'statement')} repeated[/yellow]"
    return text
