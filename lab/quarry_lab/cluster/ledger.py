"""Clients that know what must be there: 90 % reads, 10 % writes of 64 KB values, every acknowledged write remembered.

Each worker has rows of its own. A write raises the row's version by one, under the condition that it is still what the
worker knows, so that a statement that was on its way when a node died cannot undo a later one. A write whose answer never
came may have happened or not: the worker allows both until it has looked. Contents follow from row and version.
Thread-safety: a Worker belongs to its thread; its events and rows may be read once it has ended.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Callable, Sequence

import pymysql

VALUE_BYTES = 64 << 10
READ_PERCENT = 90
INSERT_PERCENT = 30  # of the writes
ROWS_AT_ONCE = 8
RETRY_S = 0.05
TABLE = "ledger"
DEFINITION = f"CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY, version INT NOT NULL, body LONGBLOB) ENGINE=QUARRY"
ROWS_PER_WORKER = 1_000_000
ABSENT = -1  # the version of a row that is not there

Connect = Callable[[], pymysql.Connection]
Rows = dict[int, tuple[int, str]]  # row -> (version, fingerprint of the content)


def content(row: int, version: int, size: int = VALUE_BYTES) -> bytes:
    """Incompressible, and known from row and version alone."""
    return random.Random(f"{row}-{version}").randbytes(size)


def fingerprint(body: bytes) -> str:
    """As SHA2(body, 256) says it."""
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class Event:
    """An operation that was answered: when (time.monotonic), how long it took, which row, what it was."""

    ended_s: float
    took_s: float
    row: int
    is_write: bool


class Worker(threading.Thread):
    """One client. `connects` are the ways into the cluster: it takes the next one when one fails."""

    def __init__(
        self, number: int, connects: Sequence[Connect], session: Sequence[str] = (), read_percent: int = READ_PERCENT
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.number, self.connects, self.session = number, list(connects), session
        self.read_percent = read_percent
        self.way = number
        self.random = random.Random(f"client-{number}")
        self.rows: dict[int, set[int]] = {}  # row -> versions that it may have
        self.events: list[Event] = []
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.acknowledged = 0
        self.stop = threading.Event()
        self.connection: pymysql.Connection | None = None

    def run(self) -> None:
        while not self.stop.is_set() and not self.wrong:
            began = time.monotonic()
            is_write = not self.rows or self.random.randrange(100) >= self.read_percent
            try:
                if self.connection is None:
                    self._connect()
                row = self._write() if is_write else self._read_one()
            except (pymysql.err.Error, OSError) as failure:
                self._failed(failure)
            else:
                ended = time.monotonic()
                self.events.append(Event(ended, ended - began, row, is_write))
        self._close()

    def _connect(self) -> None:
        connection = self.connects[self.way % len(self.connects)]()
        with connection.cursor() as cursor:
            for statement in self.session:
                cursor.execute(statement)
        self.connection = connection

    def _close(self) -> None:
        if self.connection is not None:
            try:
                self.connection.close()
            except (pymysql.err.Error, OSError):
                pass
            self.connection = None

    def _failed(self, failure: Exception) -> None:
        code = str(failure.args[0]) if failure.args else type(failure).__name__
        self.errors[code] += 1
        self._close()
        self.way += 1
        self.stop.wait(RETRY_S)

    def _choose(self) -> int:
        return self.random.choice(list(self.rows))

    # --- operations -----------------------------------------------------------------------------
    def _read_one(self) -> int:
        row = self._choose()
        self._read(row)
        return row

    def _write(self) -> int:
        if len(self.rows) < ROWS_AT_ONCE or self.random.randrange(100) < INSERT_PERCENT:
            return self._insert()
        row = self._choose()
        version = min(self.rows[row])
        if len(self.rows[row]) > 1:
            version = self._read(row)
        if version != ABSENT:
            self._update(row, version)
        return row

    def _insert(self) -> int:
        row = self.number * ROWS_PER_WORKER + len(self.rows)
        self.rows[row] = {ABSENT, 0}
        self._execute(f"INSERT INTO {TABLE} VALUES (%s, 0, %s)", (row, content(row, 0)))
        self._acknowledge(row, 0)
        return row

    def _update(self, row: int, seen: int) -> None:
        """An older statement that is still on its way may come first; then this one changes nothing."""
        known = self.rows[row]
        fresh = max(known) + 1
        self.rows[row] = known | {fresh}
        changed = self._execute(
            f"UPDATE {TABLE} SET version = %s, body = %s WHERE id = %s AND version = %s",
            (fresh, content(row, fresh), row, seen),
        )
        if changed == 1:
            self._acknowledge(row, fresh)
        elif len(known) == 1:
            self.wrong.append(f"row {row}: version {seen} was acknowledged, and is not there to be updated")
        else:
            self.rows[row] = known

    def _acknowledge(self, row: int, version: int) -> None:
        self.rows[row] = {version}
        self.acknowledged += 1

    def _read(self, row: int) -> int:
        """The version that is there. A later one than expected is one that was written without an answer."""
        assert self.connection is not None
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT version, body FROM {TABLE} WHERE id = %s", (row,))
            found = cursor.fetchone()
        version = ABSENT if found is None else found[0]
        problem = self.judge(row, version, None if found is None else fingerprint(found[1]))
        if problem:
            self.wrong.append(problem)
        elif version == max(self.rows[row]):
            self.rows[row] = {version}
        return version

    def _execute(self, sql: str, arguments: tuple) -> int:
        assert self.connection is not None
        with self.connection.cursor() as cursor:
            return cursor.execute(sql, arguments)

    def judge(self, row: int, version: int, found: str | None) -> str | None:
        """What is wrong with a row as it was found."""
        if version not in self.rows[row]:
            return f"row {row}: has version {version}, may have {sorted(self.rows[row])}"
        if version != ABSENT and found != fingerprint(content(row, version)):
            return f"row {row}: version {version} has other bytes"
        return None


class Load:
    """Several workers at once."""

    def __init__(
        self,
        connects: Sequence[Connect],
        clients: int,
        session: Sequence[str] = (),
        first: int = 1,
        read_percent: int = READ_PERCENT,
    ) -> None:
        self.workers = [Worker(first + i, connects, session, read_percent) for i in range(clients)]

    def begin(self) -> None:
        for worker in self.workers:
            worker.start()

    def end(self) -> None:
        for worker in self.workers:
            worker.stop.set()
        for worker in self.workers:
            worker.join()

    def wrong(self) -> list[str]:
        return [text for worker in self.workers for text in worker.wrong]

    def acknowledged(self) -> int:
        return sum(worker.acknowledged for worker in self.workers)

    def events(self) -> list[Event]:
        return sorted((event for worker in self.workers for event in worker.events), key=lambda event: event.ended_s)

    def errors(self) -> Counter[str]:
        return sum((worker.errors for worker in self.workers), Counter())

    def missing(self, found: Rows) -> list[str]:
        """What is wrong with the rows of a whole table, after the workers have ended."""
        problems = []
        for worker in self.workers:
            for row in worker.rows:
                problem = worker.judge(row, *found.get(row, (ABSENT, None)))
                if problem:
                    problems.append(problem)
        known = {row for worker in self.workers for row in worker.rows}
        return problems + [f"row {row}: nobody wrote it" for row in found.keys() - known]


def longest_gap(events: Sequence[Event], begin_s: float, end_s: float) -> float:
    """The longest time within [begin, end] in which nothing was answered."""
    times = [event.ended_s for event in events if begin_s < event.ended_s < end_s]
    edges = [begin_s, *times, end_s]
    return max(later - earlier for earlier, later in zip(edges, edges[1:]))
