"""
Live data overwritten 20 times over, with GC at work by itself: what the table takes on disk meanwhile.

One client gives every row the content of the next one, again and again without a pause, in transactions of a few rows
and at a pace: everything once in OVERWRITE_SECONDS. Then a twin in InnoDB gets the same, as fast as it can. Rows only
pass their contents on, so what lives has the same size at any time.

Invariants: GC is asked for nothing; every row of both tables is compared with its SHA-256 at the end.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, field
from typing import Callable

from quarry_server.server import HOME_NAME, PrivateServer

from ..probes import device
from . import client as connections
from .corpus import Corpus, Item
from .tables import Variant

DATABASE = "overwrite"
LIVE_BYTES = 96 << 20
OVERWRITE_SECONDS = 5.0
VALUE_BYTES_MIN, VALUE_BYTES_MAX = 5 << 10, 1 << 20  # above what Quarry keeps in the row by default
ROWS_PER_COMMIT = 8
SAMPLE_SECONDS, SETTLE_SECONDS_MAX = 0.05, 30.0


def sample(corpus: Corpus, seed: int) -> list[Item]:
    """Items of the wanted sizes, about LIVE_BYTES in all."""
    fitting = [item for item in corpus.items if VALUE_BYTES_MIN <= item.size <= VALUE_BYTES_MAX]
    random.Random(f"{seed}/overwrite").shuffle(fitting)
    chosen: list[Item] = []
    size = 0
    for item in fitting:
        if size + item.size <= LIVE_BYTES:
            chosen.append(item)
            size += item.size
    return chosen


@dataclass
class Course:
    """What was seen. A sample is (overwrites done, with the fraction of the one under way; bytes on disk)."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)  # bytes on disk at the most, of each overwrite
    settled: int = 0  # after the last one, when GC had brought it within the bound
    written_seconds: float = 0.0
    innodb: list[int] = field(default_factory=list)  # after the load, and after each overwrite
    wrong: list[str] = field(default_factory=list)  # values
    late: list[str] = field(default_factory=list)  # GC did not catch up after the last overwrite


class Overwrite:
    """One run, on a private server of its own. `twin`: the InnoDB variant, if there is one. Externally synchronised."""

    def __init__(self, server: PrivateServer, items: list[Item], variant: Variant, twin: Variant | None, times: int):
        self.server, self.items, self.times = server, items, times
        self.variants = [variant] + ([twin] if twin else [])
        self.payload_bytes = sum(item.size for item in items)
        self.live_bytes = 0  # what the loaded values take in their extents: contents only change places afterwards
        self.course = Course()
        self._sampled = self._began = 0.0

    def run(self, on_progress: Callable[[int, int], None]) -> dict:
        started = time.monotonic()
        self.server.start()
        self.server.sql(f"CREATE DATABASE {DATABASE}")
        bound = float(self.server.variables("quarry_space_amplification_max")["quarry_space_amplification_max"])
        connection = connections.connect(str(self.server.socket), DATABASE)
        try:
            for variant in self.variants:
                self.server.sql(variant.create_table(variant.key), DATABASE)
                self._write(connection, variant, 0)
            self.live_bytes = self._stored_bytes()
            done = 0
            for variant in self.variants:
                self._begin(variant)
                for number in range(1, self.times + 1):
                    before = len(self.course.samples)
                    self._write(connection, variant, number)
                    self._end(variant, number, before, bound)
                    done += len(self.items)
                    on_progress(done, number * self.payload_bytes)
            for variant in self.variants:
                self._compare(connection, variant)
        finally:
            connection.close()
        return self._record(bound, time.monotonic() - started)

    def _record(self, bound: float, seconds: float) -> dict:
        gc = self.server.status("quarry_gc%")
        names = ("passes", "passes_dropped", "reclaimed_bytes", "segments_unlinked", "segments_rewritten")
        return {
            "times": self.times,
            "rows": len(self.items),
            "payload_bytes": self.payload_bytes,
            "live_bytes": self.live_bytes,
            "rows_file_bytes": self._ibd_bytes(self.variants[0]),
            "bound": bound,
            "seconds": round(seconds, 1),
            "samples": self.course.samples,
            "peak_bytes": self.course.peaks,
            "settled_bytes": self.course.settled,
            "written_bytes_per_second": self.times * self.payload_bytes / self.course.written_seconds,
            "innodb_bytes": self.course.innodb,
            "gc": {name: gc[f"quarry_gc_{name}"] for name in names},
            "verified_rows": len(self.items) * len(self.variants),
            "wrong": self.course.wrong,
            "late": self.course.late,
        }

    def _item(self, row: int, number: int) -> Item:
        """What a row (they count from 1) holds after the `number`-th overwrite."""
        return self.items[(row - 1 + number) % len(self.items)]

    def _write(self, connection, variant: Variant, number: int) -> None:
        """The load (number 0), or the `number`-th overwrite of every row."""
        statement = f"REPLACE INTO {variant.key} (id, name, sha256, data) VALUES (?, '', ?, ?)"
        if number:
            statement = f"UPDATE {variant.key} SET sha256 = ?, data = ? WHERE id = ?"
        plain, cursor = connection.cursor(), connection.cursor(prepared=True)
        written = 0
        for row in range(1, len(self.items) + 1):
            if row % ROWS_PER_COMMIT == 1:
                plain.execute("BEGIN")
            item = self._item(row, number)
            values = (item.sha256, item.data)
            cursor.execute(statement, (*values, row) if number else (row, *values))
            written += item.size
            if row % ROWS_PER_COMMIT == 0 or row == len(self.items):
                plain.execute("COMMIT")
                if number and variant.is_quarry:
                    self._keep_pace(number - 1 + written / self.payload_bytes)

    def _begin(self, variant: Variant) -> None:
        if variant.is_quarry:
            self._sample(0, now=True)
            self._began = time.monotonic()
        else:
            self.course.innodb.append(self._ibd_bytes(variant))

    def _end(self, variant: Variant, number: int, samples_before: int, bound: float) -> None:
        if not variant.is_quarry:
            self.course.innodb.append(self._ibd_bytes(variant))
            return
        self._sample(number, now=True)
        self.course.peaks.append(max(taken for _at, taken in self.course.samples[samples_before:]))
        if number == self.times:
            self.course.written_seconds = time.monotonic() - self._began
            self._settle(number, bound)

    def _keep_pace(self, overwrites: float) -> None:
        """Samples, and waits until so many overwrites may have been written."""
        while True:
            self._sample(overwrites)
            early = self._began + overwrites * OVERWRITE_SECONDS - time.monotonic()
            if early <= 0:
                return
            time.sleep(min(early, SAMPLE_SECONDS))

    def _sample(self, overwrites: float, now: bool = False) -> int:
        """Notes what the segments of Quarry's table take on disk."""
        if not now and time.monotonic() - self._sampled < SAMPLE_SECONDS:
            return 0
        self._sampled = time.monotonic()
        taken = device.allocated_bytes(self.server.datadir.glob(f"{HOME_NAME}/stores/*/*.qseg*"))
        self.course.samples.append((round(overwrites, 3), taken))
        return taken

    def _settle(self, number: int, bound: float) -> None:
        """Until GC has brought the table within the bound: after the last overwrite."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while (taken := self._sample(number, now=True)) > bound * self.live_bytes:
            if time.monotonic() > deadline:
                self.course.late.append(
                    f"{taken:,} bytes on disk {SETTLE_SECONDS_MAX:g} s after the last overwrite, {self.live_bytes:,} live"
                )
                break
            time.sleep(SAMPLE_SECONDS)
        self.course.settled = taken

    def _stored_bytes(self) -> int:
        return int(self.server.value("SELECT SUM(live_bytes) FROM information_schema.QUARRY_TABLES"))

    def _ibd_bytes(self, variant: Variant) -> int:
        return (self.server.datadir / DATABASE / f"{variant.key}.ibd").stat().st_blocks * 512

    def _compare(self, connection, variant: Variant) -> None:
        with connection.cursor(prepared=True) as cursor:
            for row in range(1, len(self.items) + 1):
                cursor.execute(f"SELECT sha256, data FROM {variant.key} WHERE id = ?", (row,))
                found, wanted = cursor.fetchone(), self._item(row, self.times).sha256
                if found is None or bytes(found[0]) != wanted or hashlib.sha256(found[1]).digest() != wanted:
                    self.course.wrong.append(f"{variant.label}: row {row} is not what was written last")
