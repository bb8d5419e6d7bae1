"""
kill -9 in mid-load: clients insert and update with acknowledged commits logged, the server is killed, started again,
and every row is compared with the log.

The promise that is checked, row by row:
- a commit that was acknowledged is there, with the SHA-256 that was acknowledged;
- a transaction whose acknowledgement never came is there wholly or not at all;
- nothing else is there: no rolled back row, no value whose bytes and SHA-256 column are of different versions.

Each client owns a range of ids and has one transaction under way at a time, so 'the last acknowledged version' is
never in doubt.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, field
from typing import Callable

import mariadb

from quarry_server.server import PrivateServer

from . import client as connections, workers
from .corpus import Corpus
from .jobs import SALT_BYTES, salted
from .tables import Variant

DATABASE = "crash"
TABLE = "survivors"
IDS_PER_CLIENT = 10_000_000
VALUE_BYTES_MAX = 1 << 20
VERIFY_CLIENTS = 4
# Out of 100 transactions; the rest are single inserts.
UPDATE_PERCENT, PAIR_PERCENT, ROLLBACK_PERCENT = 25, 15, 5


@dataclass
class ClientLog:
    """
    What one client knows: versions by id (SHA-256), the transaction under way when the server went, and when things
    happened.
    """

    versions: dict[int, bytes] = field(default_factory=dict)
    next_id: int = 0
    in_flight: list[tuple[int, bytes | None, bytes]] = field(
        default_factory=list
    )  # (id, version before, version after)
    acknowledged: list[tuple[float, float, int]] = field(
        default_factory=list
    )  # (begun, acknowledged, bytes), monotonic seconds
    in_flight_since: float | None = None
    rolled_back: int = 0


class _Load:
    """Runs in a client process until the server goes away."""

    def __init__(self, client: workers.Client, corpus: Corpus, log: ClientLog):
        self.client, self.corpus, self.log = client, corpus, log
        self.cursor = client.connection.cursor(prepared=True)
        self.update_cursor = client.connection.cursor(prepared=True)
        self.plain = client.connection.cursor()

    def run(self) -> ClientLog:
        log = self.log
        log.acknowledged, log.in_flight, log.in_flight_since = [], [], None
        while True:
            dice = self.client.random.randrange(100)
            started = time.monotonic()
            log.in_flight_since = started
            try:
                size = self._transaction(dice)
            except mariadb.Error as error:
                if not connections.is_lost(error):
                    raise
                return log
            for row_id, _before, after in log.in_flight:
                log.versions[row_id] = after
            ended = time.monotonic()
            if log.in_flight:
                log.acknowledged.append((started, ended, size))
            log.in_flight = []
            self.client.done(ended - started, size)

    def _transaction(self, dice: int) -> int:
        if self.log.versions and dice < UPDATE_PERCENT:
            return self._update()
        if self.log.versions and dice < UPDATE_PERCENT + PAIR_PERCENT:
            self.plain.execute("BEGIN")
            size = self._insert() + self._update()
            self.plain.execute("COMMIT")
            return size
        if dice < UPDATE_PERCENT + PAIR_PERCENT + ROLLBACK_PERCENT:
            self.plain.execute("BEGIN")
            self._insert()
            self.log.in_flight = []  # whatever happens now, this row must not be there
            self.plain.execute("ROLLBACK")
            self.log.rolled_back += 1
            return 0
        return self._insert()

    def _value(self) -> tuple[bytes, bytes]:
        item = self.client.random.choice(self.corpus.items)
        value = salted(item.data[:VALUE_BYTES_MAX], self.client.random.randbytes(SALT_BYTES))
        return value, hashlib.sha256(value).digest()

    def _insert(self) -> int:
        value, sha256 = self._value()
        row_id = self.client.number * IDS_PER_CLIENT + self.log.next_id + 1
        self.log.next_id += 1
        self.log.in_flight.append((row_id, None, sha256))
        self.cursor.execute(f"INSERT INTO {TABLE} (id, sha256, data) VALUES (?, ?, ?)", (row_id, sha256, value))
        return len(value)

    def _update(self) -> int:
        value, sha256 = self._value()
        row_id = self.client.random.choice(list(self.log.versions))
        self.log.in_flight.append((row_id, self.log.versions[row_id], sha256))
        self.update_cursor.execute(f"UPDATE {TABLE} SET sha256 = ?, data = ? WHERE id = ?", (sha256, value, row_id))
        return len(value)


def job_read_all(ids: list[int]) -> Callable[[workers.Client], dict]:
    """Result: {id: (SHA-256 of the bytes, SHA-256 column) or the error's text}."""

    def read(client: workers.Client) -> dict:
        found = {}
        with client.connection.cursor(prepared=True) as cursor:
            while (turn := client.next_number()) < len(ids):
                started = time.monotonic()
                try:
                    cursor.execute(f"SELECT sha256, data FROM {TABLE} WHERE id = ?", (ids[turn],))
                    row = cursor.fetchone()
                except mariadb.Error as error:
                    if connections.is_lost(error):
                        raise
                    found[ids[turn]] = str(error)
                    continue
                if row:
                    found[ids[turn]] = (hashlib.sha256(row[1]).digest(), bytes(row[0]))
                    client.done(time.monotonic() - started, len(row[1]))
        return found

    return read


def judge(logs: list[ClientLog], found: dict[int, object]) -> dict:
    """
    Compares what is there with what was acknowledged. Pure; resolves each client's transaction under way into its
    versions.
    """
    verdict = {
        "acknowledged_rows": 0,
        "intact": 0,
        "in_flight": 0,
        "in_flight_there": 0,
        "in_flight_absent": 0,
        "rolled_back": 0,
        "wrong": [],
    }
    wrong = verdict["wrong"]
    known: set[int] = set()
    for row_id, content in found.items():
        if isinstance(content, str):
            wrong.append(f"row {row_id} can't be read: {content}")
        elif content[0] != content[1]:
            wrong.append(f"row {row_id} is torn: its bytes are not those of its SHA-256 column")

    def version_of(row_id: int) -> bytes | None:
        content = found.get(row_id)
        return content[0] if isinstance(content, tuple) else None

    for log in logs:
        verdict["rolled_back"] += log.rolled_back
        under_way = {row_id for row_id, _before, _after in log.in_flight}
        for row_id, sha256 in log.versions.items():
            known.add(row_id)
            if row_id in under_way:
                continue
            verdict["acknowledged_rows"] += 1
            if row_id not in found:
                wrong.append(f"row {row_id} was acknowledged and is missing")
            elif version_of(row_id) != sha256:
                wrong.append(f"row {row_id} is not the version that was acknowledged last")
            else:
                verdict["intact"] += 1
        known |= under_way
        if log.in_flight:
            verdict["in_flight"] += 1
            if all(version_of(row_id) == after for row_id, _before, after in log.in_flight):
                verdict["in_flight_there"] += 1
                log.versions.update({row_id: after for row_id, _before, after in log.in_flight})
            elif all(
                version_of(row_id) == before and (before is not None or row_id not in found)
                for row_id, before, _after in log.in_flight
            ):
                verdict["in_flight_absent"] += 1
            else:
                wrong.append(f"the transaction under way on rows {sorted(under_way)} is there in part")
    wrong += [f"row {row_id} is there and was never committed" for row_id in sorted(set(found) - known)]
    return verdict


class CrashTest:
    """Kills and restarts one private server of its own. Externally synchronised."""

    def __init__(self, server: PrivateServer, corpus: Corpus, variant: Variant, clients: int, seed: int):
        self.server, self.corpus, self.variant, self.clients, self.seed = server, corpus, variant, clients, seed
        self.logs = [ClientLog() for _ in range(clients)]
        self._random = random.Random(f"{seed}/crash")
        self._epoch = 0.0

    def prepare(self) -> None:
        self.server.start()
        columns = f"id INT PRIMARY KEY, sha256 BINARY(32) NOT NULL, data {self.variant.column}"
        self.server.sql(
            f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.{TABLE} ({columns}) ENGINE={self.variant.engine}"
            f" {self.variant.options}"
        )
        self._epoch = time.monotonic()

    def cycle(self, number: int, on_progress: Callable[[int, int], None]) -> dict:
        """Load, kill, start, read everything, judge. Times in seconds since prepare()."""
        load_seconds = self._random.uniform(2.0, 3.5)
        times: dict[str, float] = {"load": self._now()}

        def watch(operations: int, payload_bytes: int) -> None:
            on_progress(operations, payload_bytes)
            if operations and "first" not in times:
                times["first"] = self._now()
            if "first" in times and "kill" not in times and self._now() - times["first"] >= load_seconds:
                self.server.kill()  # SIGKILL
                times["kill"] = self._now()

        outcome = workers.run(
            lambda client: _Load(client, self.corpus, self.logs[client.number]).run(),
            self.clients,
            str(self.server.socket),
            DATABASE,
            f"{self.seed}/crash/{number}",
            None,
            watch,
        )
        self.logs = outcome.results
        times["restart"] = self._now()
        self.server.start()
        times["ready"] = self._now()
        found = self._read_all(number, on_progress)
        times["verified"] = self._now()
        record = {
            "cycle": number,
            "times": times,
            "acknowledged": sum(len(log.acknowledged) for log in self.logs),
            "payload_bytes": outcome.payload_bytes,
            "rows_found": len(found),
            "timeline": self._timeline(),
        }
        record.update(judge(self.logs, found))
        return record

    def _read_all(self, number: int, on_progress: Callable[[int, int], None]) -> dict[int, object]:
        ids = [int(row[0]) for row in self.server.rows(f"SELECT id FROM {DATABASE}.{TABLE} ORDER BY id")]
        outcome = workers.run(
            job_read_all(ids),
            VERIFY_CLIENTS,
            str(self.server.socket),
            DATABASE,
            f"{self.seed}/read/{number}",
            None,
            on_progress,
        )
        found: dict[int, object] = {}
        for result in outcome.results:
            found.update(result)
        return found

    def _timeline(self) -> list[dict]:
        """Per client: acknowledged commits in bins of 50 ms, and since when the last transaction was under way."""
        lanes = []
        for log in self.logs:
            bins: dict[int, int] = {}
            for _begun, acknowledged, _size in log.acknowledged:
                slot = int((acknowledged - self._epoch) / 0.05)
                bins[slot] = bins.get(slot, 0) + 1
            under_way = log.in_flight_since - self._epoch if log.in_flight and log.in_flight_since else None
            lanes.append(
                {
                    "commits_by_50ms": sorted(bins.items()),
                    "in_flight_since": under_way,
                    "in_flight_rows": len(log.in_flight),
                    "last_acknowledged": max((a - self._epoch for _b, a, _s in log.acknowledged), default=None),
                }
            )
        return lanes

    def _now(self) -> float:
        return time.monotonic() - self._epoch
