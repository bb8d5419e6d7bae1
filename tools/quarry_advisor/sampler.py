"""
A bounded sample of a table's rows.

A table that fits the limits is read whole. Of a larger one a few neighbouring rows are read at each of many random places: a place is a
random value of the key's first column between its least and greatest, then of the next among the rows with that value, and so on (each
step one look into the index). A table without such a key gives its first rows, and the sample says so. Partitions are sampled one by
one, each by its share of the rows.

LENGTH() of a value makes the server read all of it, so the limits count whole values, not what is sent.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import pymysql

from . import places
from .compression import VALUE_BYTES_MAX
from .errors import AdvisorError
from .profile import Partition, Row, Sample, Table
from .target import STATEMENT_TIMED_OUT, Target, error_of, quoted

WHOLE_TABLE = 4  # times the rows of a sample
NEIGHBOURS = 4  # rows read at one place
PARTITIONS_MAX = 64
ROW_DICE = 1  # a constant seed: every column of a row meets the same random number, so that a row is sent whole or not at all
FETCHED_SLACK = 2  # values of a streamed statement are sent with a probability, so their bytes are about what was meant


@dataclass(frozen=True)
class Limits:
    """What the sample may cost the server. read_bytes: of values read; fetched_bytes: of values sent."""

    rows: int = 4000
    read_bytes: int = 256 << 20
    fetched_bytes: int = 64 << 20
    seconds: float = 30
    whole_values: bool = False  # what is fetched is fetched whole (for the trial), not up to VALUE_BYTES_MAX


class _LimitReached(Exception):
    """The message names the limit."""


class Sampler:
    """Takes one sample. Externally synchronised."""

    def __init__(self, target: Target, table: Table, limits: Limits, seed: int):
        self.target, self.table, self.limits, self.rng = target, table, limits, random.Random(seed)
        self.sample = Sample()
        self.started = time.monotonic()
        self.seen: set[tuple] = set()

    def take(self) -> Sample:
        """Errors: AdvisorError when not one row could be read within the limits."""
        try:
            if self.fits_limits():
                self._read_whole()
            elif self.table.key:
                self._dive()
            else:
                self._read_first_rows()
        except _LimitReached as limit:
            self.sample.stopped_by = str(limit)
        self.sample.seconds = time.monotonic() - self.started
        if not self.sample.rows:
            raise AdvisorError(f"not one row of {self.table.schema}.{self.table.name} could be read within {self.limits.seconds:g} s and "
                               f"{self.limits.read_bytes:,} bytes ({self.sample.stopped_by or 'no rows found'}): raise --sample-seconds or --sample-megabytes")
        return self.sample

    def fits_limits(self) -> bool:
        """By the engine's statistics. Reading on costs less than looking up places: more rows are read whole than would be sampled."""
        return self.table.rows_estimated <= WHOLE_TABLE * self.limits.rows and self.table.data_bytes <= self.limits.read_bytes // 2

    # --- three ways to come by rows ---
    def _read_whole(self) -> None:
        """Statistics may be stale: one row more than twice theirs is asked for, and the limits are kept as everywhere."""
        self.sample.how = "all rows"
        rows_max = 2 * WHOLE_TABLE * self.limits.rows
        if self._stream("", rows_max + 1) > rows_max:
            self.sample.how = "the first rows"
            raise _LimitReached(f"{rows_max:,} rows (the table has more than its statistics say)")
        self.sample.complete = True

    def _read_first_rows(self) -> None:
        self.sample.how = "the first rows, for there is no primary or unique key to find others by: they may differ from the rest"
        mean = self.table.data_bytes / max(self.table.rows_estimated, 1)
        wanted = min(self.limits.rows, self.limits.read_bytes / max(mean, 1))
        for partition, share in self._partitions():
            self._stream(_in(partition), max(1, round(wanted * share)))

    def _dive(self) -> None:
        key = ", ".join(column.name for column in self.table.key)
        name = "the primary key" if self.table.key_name == "PRIMARY" else f"the unique key {self.table.key_name}"
        self.sample.how = f"{NEIGHBOURS} neighbours at each of many random places of {name} ({key}); rows behind gaps are met a little too often"
        every = [(partition, place) for partition, share in self._partitions()
                 for place in self._first_places(partition, max(1, round(self.limits.rows * share / NEIGHBOURS)))]
        self.rng.shuffle(every)  # a sample that a limit ends is a smaller one of the same kind
        for partition, place in every:
            if len(self.sample.rows) >= self.limits.rows:
                raise _LimitReached(f"{self.limits.rows:,} rows")
            self._read_place(partition, place)

    def _partitions(self) -> list[tuple[Partition | None, float]]:
        """Each with its share of the rows; of very many a random choice."""
        found = list(self.table.partitions)
        if not found:
            return [(None, 1.0)]
        if len(found) > PARTITIONS_MAX:
            found = self.rng.sample(found, PARTITIONS_MAX)
        total = sum(p.rows_estimated + 1 for p in found)
        return [(p, (p.rows_estimated + 1) / total) for p in found]

    # --- diving ---
    def _first_places(self, partition: Partition | None, count: int) -> list:
        """`count` values of the key's first column, one in each of as many equal pieces of its range."""
        column = self.table.key[0]
        span = self._span(partition, [], column.name)
        return places.spread(column.kind, *span, count, self.rng) if span else []

    def _read_place(self, partition: Partition | None, place) -> None:
        """The rows from `place` on: of those that share its first key column, from a random value of the second on, and so on."""
        fixed: list[tuple[str, object]] = []
        for number, column in enumerate(self.table.key):
            if number > 0:
                span = self._span(partition, fixed, column.name) if column.kind else None
                if span is None or span[0] == span[1]:
                    break  # the neighbours are those of the column before
                place = places.spread(column.kind, *span, 1, self.rng)[0]
            if number + 1 == len(self.table.key):
                fixed.append((column.name, place))
                break
            met = self._ask_from(partition, [*fixed, (column.name, place)], f"SELECT {quoted(column.name)} FROM {self._table()}", 1)
            if not met:
                return
            fixed.append((column.name, met[0][0]))
        fetch = self.sample.fetched_bytes < self.limits.fetched_bytes
        for row in self._ask_from(partition, fixed, self._select(fetch, 1.0), self._neighbours()):
            self._take_row(row)

    def _ask_from(self, partition: Partition | None, place: list[tuple[str, object]], select: str, count: int) -> list[tuple]:
        """The first `count` rows in the order of the key with the values of `place`, or more than its last one."""
        *equal, last = (quoted(name) for name, _ in place)
        condition = " AND ".join([*(f"{name} = %s" for name in equal), f"{last} >= %s"])
        order = ", ".join(quoted(column.name) for column in self.table.key)
        return self._ask(f"{select}{_in(partition)} WHERE {condition} ORDER BY {order} LIMIT {count}", tuple(value for _, value in place))

    def _span(self, partition: Partition | None, fixed: list[tuple[str, object]], column: str) -> tuple | None:
        """Least and greatest value of a key column behind fixed ones: two looks into the index."""
        where = " WHERE " + " AND ".join(f"{quoted(name)} = %s" for name, _ in fixed) if fixed else ""
        found = self._ask(f"SELECT MIN({quoted(column)}), MAX({quoted(column)}) FROM {self._table()}{_in(partition)}{where}",
                          tuple(value for _, value in fixed))
        return None if found[0][0] is None else found[0]

    # --- statements ---
    def _table(self) -> str:
        return f"{quoted(self.table.schema)}.{quoted(self.table.name)}"

    def _neighbours(self) -> int:
        """Fewer where they would use more than a quarter of what is left."""
        mean = self.sample.read_bytes / len(self.sample.rows) if self.sample.rows else self.table.data_bytes / max(self.table.rows_estimated, 1)
        left = (self.limits.read_bytes - self.sample.read_bytes) / 4
        return max(1, min(NEIGHBOURS, int(left / max(mean, 1))))

    def _check_limits(self) -> float:
        """Seconds that are left."""
        left = self.limits.seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise _LimitReached(f"{self.limits.seconds:g} s")
        if self.sample.read_bytes >= self.limits.read_bytes:
            raise _LimitReached(f"{self.limits.read_bytes:,} bytes of values read")
        if self.sample.fetched_bytes >= FETCHED_SLACK * self.limits.fetched_bytes:
            raise _LimitReached(f"{self.limits.fetched_bytes:,} bytes of values sent")
        return left

    def _error(self, error: pymysql.MySQLError) -> Exception:
        number, text = error_of(error)
        if number == STATEMENT_TIMED_OUT:
            return _LimitReached(f"{self.limits.seconds:g} s")
        return AdvisorError(f"reading {self.table.schema}.{self.table.name} failed: {text}")

    def _ask(self, sql: str, arguments: tuple) -> list[tuple]:
        self.target.limit_statements(self._check_limits())
        try:
            return self.target.rows(sql, arguments)
        except pymysql.MySQLError as error:
            raise self._error(error) from None

    def _stream(self, tail: str, count: int) -> int:
        """The first `count` rows, taken one by one; how many there were."""
        self.target.limit_statements(self._check_limits())
        keep = min(1.0, self.limits.fetched_bytes / max(1, min(self.table.data_bytes, self.limits.read_bytes)))
        read = 0
        try:
            for row in self.target.stream(f"{self._select(True, keep)}{tail} LIMIT {count}"):
                self._take_row(row)
                read += 1
                self._check_limits()
        except pymysql.MySQLError as error:
            raise self._error(error) from None
        except _LimitReached:
            self.target.renew()
            raise
        return read

    def _select(self, fetch: bool, keep: float) -> str:
        """Key, bytes of the other columns, sizes and, when `fetch`, values: each row's with the probability `keep`."""
        names = [quoted(column.name) for column in self.table.columns]
        key = [quoted(column.name) for column in self.table.key]
        rest = "+".join(["0", *(f"COALESCE(LENGTH({quoted(name)}), 0)" for name in self.table.other_variable)])
        beginnings = [self._beginning(column.name, column.is_binary, keep) for column in self.table.columns] if fetch else []
        return f"SELECT {', '.join([*key, rest, *(f'LENGTH({name})' for name in names), *beginnings])} FROM {self._table()}"

    def _beginning(self, name: str, is_binary: bool, keep: float) -> str:
        value = quoted(name) if is_binary else f"CAST({quoted(name)} AS BINARY)"
        beginning = value if self.limits.whole_values else f"LEFT({value}, {VALUE_BYTES_MAX})"
        return beginning if keep >= 1 else f"IF(RAND({ROW_DICE}) < {keep:.6f}, {beginning}, NULL)"

    def _take_row(self, row: tuple) -> None:
        columns, of_key = len(self.table.columns), len(self.table.key)
        if of_key and row[:of_key] in self.seen:
            return
        self.seen.add(row[:of_key])
        sizes, values = row[of_key + 1 : of_key + 1 + columns], row[of_key + 1 + columns :]
        self.sample.rows.append(Row(sizes, self.table.other_fixed_bytes + int(row[of_key])))
        self.sample.read_bytes += sum(size or 0 for size in sizes)
        if any(value is not None for value in values):
            self.sample.values.append(values)
            self.sample.value_sizes.append(sizes)
            self.sample.fetched_bytes += sum(len(value) for value in values if value is not None)


def _in(partition: Partition | None) -> str:
    return f" PARTITION ({quoted(partition.name)})" if partition else ""
