"""
What a server, its device and the loopback network did, second by second, while a load ran.

One sample a second, each the difference to the one before. The counters are the kernel's and the server's own, so sampling costs a few
reads of /proc and one statement a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from . import device

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Each moves when its engine has written a checkpoint; Quarry has none, and its catalogue is what comes next to one.
CHECKPOINT_STATUS = ("innodb_lsn_last_checkpoint", "quarry_catalogue_flushes", "rocksdb_flush_write_bytes")
# What engines do beside the load, by the name that samples have for it: pages a second that InnoDB's checkpoints flush, without those that it
# evicts for room, which more data than memory takes in every second; whether Quarry's GC reads or
# writes now; bytes a second that NDB's local checkpoints write.
INNODB_FLUSHES, GC_AT_WORK, NDB_CHECKPOINTS = "innodb_flushes", "gc_at_work", "ndb_checkpoints"
_FLUSHED, _EVICTED = "innodb_buffer_pool_pages_flushed", "innodb_buffer_pool_pages_lru_flushed"  # the first has the second in it
_GC_STATE = "quarry_gc_state"
_GC_WORKS = ("sealing", "scanning", "reclaiming")  # its other states wait
# Of columns in memory, in the last second, and of tables on disk, since the data nodes' start.
NDB_CHECKPOINT_BYTES = "SELECT SUM(backup_lcp_bytes_written) FROM ndbinfo.disk_write_speed_base WHERE millis_ago < 1000"
NDB_CHECKPOINT_PAGES = "SELECT SUM(pages_written_lcp) FROM ndbinfo.diskpagebuffer"
NDB_PAGE_BYTES = 32 << 10  # of a table on disk


@dataclass(frozen=True)
class Counters:
    """Since boot, or since the server's start."""

    time: float
    device: device.DeviceCounters | None
    server_read_bytes: int
    server_write_bytes: int
    server_ticks: int
    busy_ticks: int
    all_ticks: int
    network_bytes: int
    checkpoints: dict[str, int]
    drives: dict[str, device.DeviceCounters] = field(default_factory=dict)
    flushed_pages: int | None = None
    checkpoint_pages: int | None = None
    now: dict[str, float] = field(default_factory=dict)  # no counters: what is so at this moment


def _machine_ticks() -> tuple[int, int]:
    """(busy, all) of all processors; waiting for a device is not busy."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _process_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _network_bytes(interface: str) -> int:
    """Of both directions; what the loopback interface receives is sent there, and counted once."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _colon, fields = line.partition(":")
        if name.strip() == interface:
            received, sent = int(fields.split()[0]), int(fields.split()[8])
            return received if interface == "lo" else received + sent
    return 0


def difference(before: Counters, after: Counters, started: float) -> dict:
    """One sample. Rates are per second; shares are of one device, or of all processors."""
    seconds = after.time - before.time

    def rate(earlier: int, later: int) -> float:
        return (later - earlier) / seconds

    sample = {
        "second": round(after.time - started, 2),
        "server_read_bytes": rate(before.server_read_bytes, after.server_read_bytes),
        "server_write_bytes": rate(before.server_write_bytes, after.server_write_bytes),
        "server_cpus": rate(before.server_ticks, after.server_ticks) / _TICKS_PER_SECOND,
        "machine_busy_share": (after.busy_ticks - before.busy_ticks) / max(1, after.all_ticks - before.all_ticks),
        "network_bytes": rate(before.network_bytes, after.network_bytes),
        "checkpoints": [name for name, value in after.checkpoints.items() if value != before.checkpoints.get(name)],
    }
    if before.device and after.device:
        sample |= {
            "device_read_bytes": rate(before.device.read_bytes, after.device.read_bytes),
            "device_write_bytes": rate(before.device.write_bytes, after.device.write_bytes),
            "device_busy_share": min(1.0, rate(before.device.busy_ms, after.device.busy_ms) / 1000),
        }
    if after.drives:
        sample["drives"] = {name: [rate(before.drives[name].read_bytes, now.read_bytes), rate(before.drives[name].write_bytes, now.write_bytes)]
                            for name, now in after.drives.items()}
    return sample | {"work": _work(before, after)}


def _work(before: Counters, after: Counters) -> dict[str, float]:
    seconds, found = after.time - before.time, dict(after.now)
    if before.flushed_pages is not None and after.flushed_pages is not None:
        found[INNODB_FLUSHES] = (after.flushed_pages - before.flushed_pages) / seconds
    if before.checkpoint_pages is not None and after.checkpoint_pages is not None:
        on_disk = (after.checkpoint_pages - before.checkpoint_pages) * NDB_PAGE_BYTES / seconds
        found[NDB_CHECKPOINTS] = found.get(NDB_CHECKPOINTS, 0.0) + on_disk
    return found


class Timeline:
    """
    Samples from enter to exit in a thread of its own. connection: to the server, for this use alone, closed on exit; process_ids: of the server, on
    this machine; directory: on the device to watch; drives: more devices, by a name of the caller's; interface: that of the network which the load
    goes over; of_ndb: the server is an SQL node, which tells of its data nodes.
    """

    def __init__(self, connection: pymysql.Connection, process_ids: set[int], directory: Path, interval_seconds: float = 1.0,
                 drives: Mapping[str, str] | None = None, interface: str = "lo", of_ndb: bool = False):
        self._process_ids, self._interval, self._connection = process_ids, interval_seconds, connection
        self._device, self._drives, self._interface, self._of_ndb = device.device_of(directory), drives or {}, interface, of_ndb
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.started = time.time()
        self.samples: list[dict] = []

    def __enter__(self) -> Timeline:
        self._thread.start()
        return self

    def __exit__(self, *_exc) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()

    def _sample(self) -> None:
        """Ends early when the server does: whoever waits for the load says so."""
        try:
            before = self._read()
            while not self._stop.wait(self._interval):
                after = self._read()
                self.samples.append(difference(before, after, self.started))
                before = after
        except (pymysql.Error, FileNotFoundError, ProcessLookupError):
            return

    def _read(self) -> Counters:
        io = [device.process_io(pid) for pid in self._process_ids]
        ticks = sum(_process_ticks(pid) for pid in self._process_ids)
        busy, everything = _machine_ticks()
        status = self._status()
        drives = {name: found for name, kernel in self._drives.items() if (found := device.device_counters(kernel))}
        flushed = int(status[_FLUSHED]) - int(status.get(_EVICTED, 0)) if _FLUSHED in status else None
        pages = self._asked(NDB_CHECKPOINT_PAGES) if self._of_ndb else None
        return Counters(time.time(), device.device_counters(self._device), sum(x.read_bytes for x in io), sum(x.write_bytes for x in io), ticks,
                        busy, everything, _network_bytes(self._interface), {name: int(status[name]) for name in CHECKPOINT_STATUS if name in status},
                        drives, flushed, pages, self._now(status))

    def _status(self) -> dict[str, str]:
        names = ", ".join(f"'{name}'" for name in (*CHECKPOINT_STATUS, _FLUSHED, _EVICTED, _GC_STATE))
        with self._connection.cursor() as cursor:
            cursor.execute(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
            return {name.lower(): value for name, value in cursor.fetchall()}

    def _now(self, status: dict[str, str]) -> dict[str, float]:
        found = {GC_AT_WORK: float(status[_GC_STATE].startswith(_GC_WORKS))} if _GC_STATE in status else {}
        return found | ({NDB_CHECKPOINTS: float(self._asked(NDB_CHECKPOINT_BYTES))} if self._of_ndb else {})

    def _asked(self, statement: str) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            ((found,),) = cursor.fetchall()
            return int(found or 0)
