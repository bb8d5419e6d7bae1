"""
The rounds of the side-by-side comparison.

A cell is one variant with one set of files in one round: load from 1 client, read back, compare; load from many, read
back, compare, sizes, random reads, updates, read back, compare. Rounds are interleaved: within each, the cells come
in random order. Before and after each measured phase the server settles, so that deferred writes are counted for, and
delay, only who caused them.

Invariants: every row is compared with the SHA-256 of what was acknowledged, after each load and after the updates; a
mismatch is recorded, never skipped.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import asdict, dataclass

from quarry_server.server import HOME_NAME

from ..probes import device
from ..report import stats
from ..report.stats import counted
from ..run.runner import difference, written
from ..servers.lab_server import DATABASE, LabServer
from . import jobs, space, workers
from .corpus import Corpus
from .screen import Screen
from .tables import BLACKHOLE, DATA_SETS, TABLE, VARIANTS, DataSet, Variant

VERIFY_CLIENTS = 4


@dataclass(frozen=True)
class Settings:
    rounds: int = 3
    many_clients: int = 32
    read_clients: int = 8
    read_seconds: float = 3.0
    update_clients: int = 8
    update_seconds: float = 3.0
    seed: int = 1
    variants: tuple[str, ...] = tuple(VARIANTS)
    one_client_stride: int = 1  # one client loads every n-th file by size; 1: all of them


ONE_CLIENT_SECONDS = 5.0  # what a load from one client should take at most


def one_client_stride(files: int, durable_write_us: float) -> int:
    """
    1 where one client can load all files in a few seconds; more where the device flushes slowly. A durable insert costs
    up to two flushes one after the other, and some work.
    """
    seconds = files * (2 * durable_write_us + 150) / 1e6
    return max(1, math.ceil(seconds / ONE_CLIENT_SECONDS))


@dataclass(frozen=True)
class Cell:
    round: int
    data_set: DataSet
    variant: Variant


def plan(settings: Settings) -> list[Cell]:
    rng, cells = random.Random(settings.seed), []
    for round_number in range(1, settings.rounds + 1):
        row = [
            Cell(round_number, data_set, VARIANTS[key])
            for data_set in DATA_SETS
            for key in data_set.variants
            if key in settings.variants
        ]
        rng.shuffle(row)
        cells += row
    return cells


def phase_record(outcome: workers.Outcome) -> dict:
    latencies_ms = [x * 1e3 for x in outcome.latencies]
    return {
        "seconds": outcome.seconds,
        "operations": outcome.operations,
        "payload_bytes": outcome.payload_bytes,
        "operations_per_second": outcome.operations / outcome.seconds,
        "bytes_per_second": outcome.payload_bytes / outcome.seconds,
        "latency_ms": {
            "median": stats.percentile(latencies_ms, 50),
            "p95": stats.percentile(latencies_ms, 95),
            "p99": stats.percentile(latencies_ms, 99),
            "max": max(latencies_ms),
        },
        "client_cpu_seconds": outcome.client_cpu_seconds,
    }


class Comparison:
    """Runs the cells on one server. Externally synchronised."""

    def __init__(self, server: LabServer, corpus: Corpus, settings: Settings, screen: Screen):
        self.server, self.corpus, self.settings, self.screen = server, corpus, settings, screen
        self.mismatches: list[str] = []
        self.verified_rows = self.verified_bytes = 0
        self._numbers = {d.key: corpus.subset(d.size_bytes_max or 1 << 62) for d in DATA_SETS}
        self._bytes = {key: sum(corpus.items[i].size for i in numbers) for key, numbers in self._numbers.items()}

    # --- the client's own ceiling ---
    def client_ceiling(self) -> dict:
        """
        The same load into BLACKHOLE, which throws the rows away: what client, protocol and server can pass at most.
        """
        found = {}
        order = self._numbers["all"]
        self.server.execute("INSTALL SONAME 'ha_blackhole'")
        for clients in (1, self.settings.many_clients):
            self._create(BLACKHOLE)
            outcome = self._run(
                jobs.job_load(self.corpus, order),
                clients,
                f"ceiling {clients}",
                None,
                f"client's own ceiling (BLACKHOLE), {counted(clients, 'client')}",
                self._bytes["all"],
            )
            found[f"load_{clients}"] = phase_record(outcome)
        self.server.execute(f"DROP TABLE {TABLE}")
        self.server.execute("UNINSTALL SONAME 'ha_blackhole'")
        return found

    # --- one cell ---
    def run_cell(self, cell: Cell) -> dict:
        if self.server.disk_bytes() > space.RECYCLE_BYTES:
            self.server.recycle()
        key = f"{cell.round}/{cell.data_set.key}/{cell.variant.key}"
        record = {
            "round": cell.round,
            "data_set": cell.data_set.key,
            "variant": cell.variant.key,
            "started": time.time(),
            "memory_available_bytes": device.memory_info()["MemAvailable"],
        }
        rows: dict[int, int] = {}
        for clients in (1, self.settings.many_clients):
            record[f"load_{clients}"], rows = self._load(cell, clients, key)
        record["disk"] = self._disk(cell.variant)
        record["buffer_pool"] = self._buffer_pool()
        record["reads"] = self._reads(cell, rows, key)
        record["updates"] = self._updates(cell, rows, key)
        self.server.execute(f"DROP TABLE {TABLE}")
        return record

    def _load(self, cell: Cell, clients: int, key: str) -> tuple[dict, dict[int, int]]:
        """A fresh table, filled, settled, read back and compared. Returns the record and {row id: item number}."""
        self._create(cell.variant)  # the server has settled after what was measured last; a new table is a few pages
        order = self._numbers_for(cell.data_set.key, clients)
        payload_bytes = sum(self.corpus.items[i].size for i in order)
        # The same order for every variant of a round.
        random.Random(f"{self.settings.seed}/{cell.round}").shuffle(order)
        status_before = self.server.status("quarry%")
        before = self.server.counters()
        outcome = self._run(
            jobs.job_load(self.corpus, order),
            clients,
            key,
            None,
            f"{cell.variant.label}: load, {counted(clients, 'client')}",
            payload_bytes,
        )
        during = self.server.counters()
        settled = self.server.settle()
        record = {
            **phase_record(outcome),
            "written": written(before, during, self.server.counters(), outcome.payload_bytes),
            "settle": settled,
            "quarry_status": difference(status_before, self.server.status("quarry%")),
        }
        rows = {row_id: number for result in outcome.results for row_id, number in result}
        self._verify(
            cell, {row_id: self.corpus.items[number].sha256 for row_id, number in rows.items()}, payload_bytes, key
        )
        return record, rows

    def _reads(self, cell: Cell, rows: dict[int, int], key: str) -> dict:
        sizes = {row_id: self.corpus.items[number].size for row_id, number in rows.items()}
        outcome = self._run(
            jobs.job_read(sizes),
            self.settings.read_clients,
            f"{key}/read",
            self.settings.read_seconds,
            f"{cell.variant.label}: random reads",
            self.settings.read_seconds,
        )
        for result in outcome.results:
            self.mismatches += [f"{cell.variant.label}, random reads: {line}" for line in result]
        return phase_record(outcome)

    def _updates(self, cell: Cell, rows: dict[int, int], key: str) -> dict:
        before = self.server.counters()
        outcome = self._run(
            jobs.job_update(self.corpus, self._numbers[cell.data_set.key], sorted(rows)),
            self.settings.update_clients,
            f"{key}/update",
            self.settings.update_seconds,
            f"{cell.variant.label}: updates",
            self.settings.update_seconds,
        )
        during = self.server.counters()
        settled = self.server.settle()
        record = {
            **phase_record(outcome),
            "written": written(before, during, self.server.counters(), outcome.payload_bytes),
            "settle": settled,
        }
        expected = {row_id: self.corpus.items[number].sha256 for row_id, number in rows.items()}
        for changed in outcome.results:
            expected.update({row_id: sha256 for row_id, (sha256, _length) in changed.items()})
        self._verify(cell, expected, self._bytes[cell.data_set.key], key)
        return record

    # --- helpers ---
    def _numbers_for(self, data_set: str, clients: int) -> list[int]:
        """Many clients load every file; one client every n-th by size, so that the mix of sizes is the same."""
        numbers = self._numbers[data_set]
        if clients > 1 or self.settings.one_client_stride == 1:
            return list(numbers)
        return sorted(numbers, key=lambda i: self.corpus.items[i].size)[:: self.settings.one_client_stride]

    def _create(self, variant: Variant) -> None:
        self.server.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self.server.execute(variant.create_table())

    def _run(self, job, clients: int, seed: str, seconds: float | None, text: str, total: float) -> workers.Outcome:
        with self.screen.phase(text, total) as on_progress:
            return workers.run(
                job, clients, self.server.socket, DATABASE, f"{self.settings.seed}/{seed}", seconds, on_progress
            )

    def _verify(self, cell: Cell, expected: dict[int, bytes], payload_bytes: int, key: str) -> None:
        """Every row through an ordinary SELECT; also that there is none too many. payload_bytes: for the bar only."""
        label = f"{cell.variant.label}, {cell.data_set.label}"
        (count,) = self.server.rows(f"SELECT COUNT(*) FROM {TABLE}")[0]
        if int(count) != len(expected):
            self.mismatches.append(f"{label}: {count} rows, {len(expected)} were acknowledged")
        outcome = self._run(
            jobs.job_verify(sorted(expected.items())),
            VERIFY_CLIENTS,
            f"{key}/verify",
            None,
            f"{cell.variant.label}: read back, compare SHA-256",
            payload_bytes,
        )
        for result in outcome.results:
            self.mismatches += [f"{label}: {line}" for line in result]
        self.verified_rows += outcome.operations
        self.verified_bytes += outcome.payload_bytes

    def _disk(self, variant: Variant) -> dict:
        """Blocks allocated for the table after settling: InnoDB's file, and the directory of Quarry's store."""
        data = self.server.directory / "data"
        innodb = (data / DATABASE / f"{TABLE}.ibd").stat().st_blocks * 512
        quarry = 0
        if variant.is_quarry:
            stores = self.server.rows(
                "SELECT store_path FROM information_schema.QUARRY_TABLES"
                f" WHERE table_schema = '{DATABASE}' AND table_name = '{TABLE}' AND state = 'BOUND'"
            )
            quarry = sum(device.allocated_bytes(device.files_below(data / HOME_NAME / path)) for (path,) in stores)
        return {"innodb_bytes": innodb, "quarry_bytes": quarry, "bytes": innodb + quarry}

    def _buffer_pool(self) -> dict:
        """
        Pages of the buffer pool that hold this table, right after every row was read. By tablespace:
        INNODB_BUFFER_PAGE names the table for index pages only, not for the overflow pages that hold BLOBs. It copies
        the descriptor of every page, so it is asked once a cell, outside every measured interval.
        """
        started = time.monotonic()
        rows = self.server.rows(
            "SELECT page_type, COUNT(*) FROM information_schema.INNODB_BUFFER_PAGE WHERE space = (SELECT space FROM "
            f"information_schema.INNODB_SYS_TABLESPACES WHERE name = '{DATABASE}/{TABLE}') GROUP BY page_type"
        )
        by_type = {str(page_type): int(count) for page_type, count in rows}
        return {
            "pages": sum(by_type.values()),
            "by_type": by_type,
            "seconds_to_ask": round(time.monotonic() - started, 3),
        }


def settings_record(settings: Settings) -> dict:
    return asdict(settings)
