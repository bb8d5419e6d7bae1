"""
A private server as the experiments need it: the pinned configuration, checked against what the server says; settling; disk use.

Invariants: no figure is taken on a server whose settings were not verified (verify_pinned raises), and every variant of a run meets
the same configuration.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql
from quarry_server import private
from quarry_server.server import PrivateServer

from ..design.profile import LOG_BIN
from ..design.request import LabError
from ..probes import device, processors
from . import journal
from .connected import ConnectedServer

DATABASE = "lab"

# Pinned for every engine. Buffer pool and redo log: the same for all. I/O capacity: high enough that the page cleaner is bounded by the
# device, not by a default meant for a single disk (200). A binary log is the profile's (design/profile.py).
PINNED = {
    "innodb_buffer_pool_size": 2 << 30,
    "innodb_log_file_size": 1 << 30,
    "innodb_flush_log_at_trx_commit": 1,
    "innodb_doublewrite": "ON",
    "innodb_flush_method": "O_DIRECT",
    "innodb_io_capacity": 10000,
    "innodb_io_capacity_max": 40000,
    "innodb_flush_neighbors": 0,
    "innodb_buffer_pool_load_at_startup": "OFF",
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "innodb_stats_auto_recalc": "OFF",
    "max_allowed_packet": 64 << 20,
    "max_connections": 300,
    "performance_schema": "OFF",
    "query_cache_type": "OFF",
}
# As durable as InnoDB, and as much cache.
ROCKSDB = {"rocksdb_flush_log_at_trx_commit": 1, "rocksdb_block_cache_size": PINNED["innodb_buffer_pool_size"]}
# Never to be changed by --mycnf: without them the figures would not be about durable commits.
DURABILITY = {"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON"}
_BINARY_LOG_DURABILITY = {"sync_binlog": "1"}

_LOOSE = "loose_"  # before the name of an option that the server need not know
SETTLE_TIMEOUT_SECONDS = 300
_QUIET_POLLS = 5
_POLL_SECONDS = 0.1
GC_INTERVAL = "quarry_gc_interval"


class ConfigurationError(Exception):
    """The server does not run as the experiment demands, or was asked to run so that figures would mean nothing."""


def parse_mycnf(pairs: list[str]) -> dict[str, str]:
    """key=value options of the command line; '-' and '_' are alike in names."""
    options = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        name = key.strip().lstrip("-").replace("-", "_")
        if not separator or not name:
            raise ConfigurationError(f"'{pair}' is not key=value")
        durable = (DURABILITY | _BINARY_LOG_DURABILITY).get(name)
        if durable and normal(value) != durable:
            raise ConfigurationError(f"{name} must stay {durable}: every figure here is about durable commits (got '{value}')")
        options[name] = value.strip()
    return options


def normal(value) -> str:
    """Server values and option values in one form: ON/OFF for booleans, plain bytes for 2G."""
    text = str(value).strip().upper()
    if text in ("TRUE", "YES"):
        return "ON"
    if text in ("FALSE", "NO"):
        return "OFF"
    if text and text[-1] in "KMGT" and text[:-1].isdigit():
        return str(int(text[:-1]) << {"K": 10, "M": 20, "G": 30, "T": 40}[text[-1]])
    return text


def file_sha256(path: Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class LabServer(ConnectedServer):
    """One server of a run. Externally synchronised. `key` is the name that variants refer to ('main', 'baseline')."""

    def __init__(self, key: str, directory: Path, plugin: Path | None, rocksdb: bool, extra: dict[str, str], paths: tuple[Path, ...] = (),
                 cgroup: Path | None = None, environment: dict[str, str] | None = None, plugins: tuple[str, ...] = (), only_on: frozenset[int] | None = None,
                 secrets: dict[str, str] | None = None):
        """
        paths: directories that `extra` names, made empty for each start and removed in the end. cgroup, environment, secrets: PrivateServer's.
        plugins: more of the server's own to load, e.g. handlersocket. only_on: the processors that it may use.
        """
        self.paths, self.cgroup, self.environment = paths, cgroup, environment or {}
        self.plugins, self.only_on, self.secrets = plugins, only_on, secrets
        self.key, self.directory, self.plugin, self.rocksdb, self.extra = key, Path(directory), plugin, rocksdb, extra
        self.server: PrivateServer | None = None
        self.datasets: dict[tuple[str, int, str], str] = {}  # (variant, size, setting) -> what is loaded; forgotten with the data directory
        self._io_device = None

    @property
    def _logs_binary(self) -> bool:
        return LOG_BIN in self.extra

    def options(self) -> list[str]:
        values = {**PINNED, **({} if self._logs_binary else {"skip_log_bin": None}), **self.extra}
        if self.rocksdb:
            values = {**ROCKSDB, **values}
        loads = [f"--plugin-load-add={name}.so" for name in self.plugins]
        return loads + [f"--{name.replace('_', '-')}" + ("" if value is None else f"={value}") for name, value in values.items()]

    # --- life ---
    def start(self) -> LabServer:
        """Always on a fresh data directory. A server that a killed run left behind there is ended first. One that fails leaves nothing."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        self.server = PrivateServer(self.directory, options=self.options(), plugin=self.plugin, rocksdb=self.rocksdb,
                                    cgroup=self.cgroup, environment=self.environment, secrets=self.secrets,
                                    drop=self.paths)
        if self.server.adopt():
            self.server.kill()
        self._remove_data()
        for path in self.paths:
            private.make_directory(path)
        self._start_process()
        self.datasets = {}
        self._io_device = device.device_of(self.directory)
        self._connect()
        self.execute(f"CREATE DATABASE {DATABASE}")
        self.execute(f"USE {DATABASE}")
        self.verify_pinned()

    def _start_process(self) -> None:
        assert self.server
        self.server.start()
        if self.only_on:
            processors.place(self.pid, self.only_on)

    def _connect(self) -> None:
        self._connection = pymysql.connect(unix_socket=self.socket, user=private.account(), autocommit=True, charset="utf8mb4", read_timeout=900, write_timeout=900)

    def restart_cold(self) -> None:
        """Stopped cleanly and started on the same data, with nothing of it in memory: no cache of the server's, no page cache."""
        assert self.server
        self._disconnect()
        self.server.stop()
        for path in (self.directory, *self.paths):
            device.drop_page_cache(path)
        self._start_process()
        self._connect()
        self.execute(f"USE {DATABASE}")
        self.verify_pinned()

    def close(self) -> None:
        """Stops the server and removes its data. A server that hangs in shutdown is killed: its data is not needed."""
        self._disconnect()
        if self.server and self.server.running():
            self.server.kill()
        self.server = None
        self._remove_data()

    def _remove_data(self) -> None:
        for path in (self.directory, *self.paths):
            shutil.rmtree(path, ignore_errors=True)
            journal.give_back(path)

    def ended(self) -> str:
        """With its last words."""
        return f"\nthe server '{self.key}' ended:\n{self.server.log_tail()}" if self.server and not self.server.running() else ""

    def recycle(self) -> None:
        """A fresh data directory: the way to give back all space whatever an engine keeps for later."""
        self.close()
        self.start()

    @property
    def pid(self) -> int:
        assert self.server
        return self.server.pid

    def another_connection(self) -> pymysql.Connection:
        return pymysql.connect(unix_socket=self.socket, user=private.account(), autocommit=True, read_timeout=60)

    @property
    def process_ids(self) -> set[int]:
        return {self.pid}

    @property
    def socket(self) -> str:
        assert self.server
        return str(self.server.socket)

    @property
    def login(self) -> dict:
        """How a client gets in, as sysbench.Load has it."""
        return {"socket": self.socket, "user": private.account(), "password": ""}

    # --- its configuration ---
    def verify_pinned(self) -> dict[str, str]:
        """Raises ConfigurationError unless the server really runs with the pinned and the given settings, engines and plugins; returns the checked settings."""
        found = self.variables()
        expected = {name.removeprefix(_LOOSE): value for name, value in {**PINNED, **self.extra}.items()
                    if value is not None and (not name.startswith(_LOOSE) or name.removeprefix(_LOOSE) in found)}
        expected |= {LOG_BIN: "ON" if self._logs_binary else "OFF", **DURABILITY, **(_BINARY_LOG_DURABILITY if self._logs_binary else {})}
        wrong = [f"{name} is {found.get(name)}, expected {value}" for name, value in expected.items()
                 if normal(found.get(name)) != normal(value)]
        if wrong:
            raise ConfigurationError(f"server '{self.key}' does not run as pinned: " + "; ".join(wrong))
        needed = {"INNODB"} | ({"QUARRY"} if self.plugin else set()) | ({"ROCKSDB"} if self.rocksdb else set())
        if lacking := needed - self.engines():
            raise ConfigurationError(f"server '{self.key}' lacks the engine {', '.join(sorted(lacking))}")
        if self.plugins:  # one that cannot be loaded does not keep the server from starting
            loaded = {row[0] for row in self.rows("SELECT PLUGIN_LIBRARY FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE'")}
            if lacking := {f"{name}.so" for name in self.plugins} - loaded:
                raise ConfigurationError(f"server '{self.key}' lacks the plugin {', '.join(sorted(lacking))}, looked for in {found['plugin_dir']}")
        return {name: found[name] for name in sorted(expected)}

    def describe(self) -> dict:
        """For run.json: who this server is and how it runs."""
        found = self.variables()
        return {
            "version": found["version"],
            "command": self.server.command() if self.server else [],
            "plugin": str(self.plugin) if self.plugin else None,
            "plugin_sha256": file_sha256(self.plugin) if self.plugin else None,
            "pinned": self.verify_pinned(),
            **({"environment": self.environment} if self.environment else {}),
            "quarry_variables": {k: v for k, v in found.items() if k.startswith("quarry")},
            "rocksdb_variables": {k: v for k, v in found.items() if k.startswith("rocksdb_") and "flush_log" in k},
        }

    # --- the device ---
    def counters(self) -> dict:
        """What was written so far: by this server's process, and to the whole device by everyone."""
        io = device.process_io(self.pid)
        return {"server_write_bytes": io.write_bytes, "server_read_bytes": io.read_bytes,
                "device_write_bytes": device.device_bytes_written(self._io_device)}

    def disk_bytes(self) -> int:
        """Blocks allocated in the server's directory, as du sees them."""
        return device.allocated_bytes(device.files_below(self.directory))

    @contextmanager
    def steady_gc(self) -> Iterator[None]:
        """
        Meanwhile Quarry looks every second for tables that need a mark pass, so that passes and garbage keep step in a short time, too. An error within
        is the one that is raised: a server that ended takes no statement any more.
        """
        if not self.plugin:
            yield
            return
        before = f"SET GLOBAL {GC_INTERVAL}={self.variables()[GC_INTERVAL]}"
        self.execute(f"SET GLOBAL {GC_INTERVAL}=1")
        try:
            yield
        except BaseException:
            with suppress(pymysql.Error):
                self.execute(before)
            raise
        self.execute(before)

    def collect_garbage(self) -> None:
        """A mark pass over all of Quarry's tables, to its end. Raises LabError when it does not end."""
        if not self.plugin:
            return
        self.execute("SET GLOBAL quarry_gc_now=ON")
        deadline = time.monotonic() + SETTLE_TIMEOUT_SECONDS
        while True:
            now = self.status("quarry_gc%")
            if int(now["quarry_gc_requests_done"]) >= int(now["quarry_gc_requests"]):
                return
            if time.monotonic() > deadline:
                raise LabError(f"the mark pass has not ended after {SETTLE_TIMEOUT_SECONDS} s: {now['quarry_gc_state']}; {now['quarry_gc_last_error']}")
            time.sleep(_POLL_SECONDS)

    def settle(self) -> dict:
        """
        Waits until nothing that earlier work left behind is still to be written, so that it doesn't land in the next variant's run:
        InnoDB's dirty pages and purge, MyRocks' memtable, then five polls without a byte written, then the file system's own. The binary log begins
        anew: nobody reads it, and it would fill the disk.
        """
        started = time.monotonic()
        if self._logs_binary:
            self.execute("RESET MASTER")
        io_max = self.variables()["innodb_io_capacity_max"]
        io_now = self.variables()["innodb_io_capacity"]
        self.execute("SET GLOBAL innodb_max_dirty_pages_pct=0")
        self.execute("SET GLOBAL innodb_io_capacity_max=200000")
        self.execute("SET GLOBAL innodb_io_capacity=100000")
        if self.rocksdb:
            self.execute("SET GLOBAL rocksdb_force_flush_memtable_now=1")
        quiet, written, settled = 0, -1, False
        while time.monotonic() - started < SETTLE_TIMEOUT_SECONDS:
            now = device.process_io(self.pid).write_bytes
            dirty = int(self.status("Innodb_buffer_pool_pages_dirty")["innodb_buffer_pool_pages_dirty"])
            quiet = quiet + 1 if now == written and dirty == 0 else 0
            written = now
            if quiet >= _QUIET_POLLS:
                settled = True
                break
            time.sleep(_POLL_SECONDS)
        self.execute("SET GLOBAL innodb_max_dirty_pages_pct=90")
        self.execute(f"SET GLOBAL innodb_io_capacity={io_now}")
        self.execute(f"SET GLOBAL innodb_io_capacity_max={io_max}")
        device.sync_file_system(self.directory)
        return {"settled": settled, "seconds": round(time.monotonic() - started, 2), "dirty_pages": dirty}
