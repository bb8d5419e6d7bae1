"""
What the advice would give in memory, disk and speed: estimates from the sample and from the figures of constants.py.

Pure functions. `now` is the table in InnoDB with the values as they are, whatever engine holds it; `then` in Quarry as advised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import constants as c
from .profile import Profile, Row
from .rules import Advice, ColumnAdvice
from .sizes import extent_bytes, head_bytes, innodb_bytes, interpolated


@dataclass(frozen=True)
class Alternative:
    """One INLINE_SIZE for a column, the others as advised."""

    inline_size: int
    share_in_row: float
    pages_bytes: float
    segments_bytes: float


@dataclass(frozen=True)
class Estimate:
    rows: int
    pages_now_bytes: float  # buffer pool that holds the whole table; disk too
    pages_then_bytes: float
    segments_bytes: float  # each value once; GC lets dead ones take up to SPACE_AMPLIFICATION_MAX times that
    insert_ratio: dict[int, float]  # clients -> Quarry / InnoDB, rows per second
    read_ratio: float  # of READ_CLIENTS
    mix_ratio: float  # of MIX_CLIENTS
    written_now: dict[int, float]  # clients -> bytes written for each byte of values
    written_then: dict[int, float]
    alternatives: dict[str, list[Alternative]]

    @property
    def disk_then_bytes(self) -> float:
        return self.pages_then_bytes + self.segments_bytes


def estimate(profile: Profile, advice: Advice) -> Estimate:
    by_name = {a.column: a for a in advice.columns}
    rows = [_Fields(profile, row, by_name) for row in profile.sample.rows]
    scale = profile.rows / len(rows)
    page = profile.server.page_bytes
    return Estimate(
        profile.rows,
        scale * sum(innodb_bytes(row.values, row.other_bytes, page) for row in rows),
        scale * sum(innodb_bytes(row.heads, row.other_bytes, page) for row in rows),
        scale * sum(row.segment_bytes for row in rows),
        {clients: _insert_ratio(rows, clients) for clients in c.CLIENTS},
        _mean(interpolated(c.HOT_READ, _measured_bytes(row)) for row in rows),
        _mean(interpolated(c.MIX, _measured_bytes(row)) for row in rows),
        {clients: _written(rows, clients, False) for clients in c.CLIENTS},
        {clients: _written(rows, clients, True) for clients in c.CLIENTS},
        {a.column: alternatives(profile, advice, a) for a in advice.columns})


class _Fields:
    """One sampled row under the advice. Immutable."""

    def __init__(self, profile: Profile, row: Row, advice: dict[str, ColumnAdvice]):
        self.values = row.sizes
        self.other_bytes = row.other_bytes
        self.heads, self.segment_bytes, self.out_bytes, self.stored_bytes = [], 0.0, 0, 0.0
        for column, size in zip(profile.table.columns, row.sizes):
            mine = advice.get(column.name)
            if size is None or mine is None or size <= mine.inline_size:
                self.heads.append(size)
                continue
            self.heads.append(head_bytes(size, mine.inline_size, mine.prefix_size))
            content = size - min(mine.prefix_size, size)
            stored = content * mine.stored_ratio
            self.segment_bytes += extent_bytes(content, stored, mine.part_size)
            self.out_bytes += size
            self.stored_bytes += stored

    @property
    def bytes(self) -> int:
        return sum(size or 0 for size in self.values)


def _mean(values) -> float:
    found = list(values)
    return sum(found) / len(found)


def _measured_bytes(row: _Fields) -> float:
    """The size whose figures stand for Quarry's part of a row: nothing smaller than 24 KB was measured out of the row."""
    return max(row.bytes, c.OUT_OF_LINE_KB_MIN * c.KIB) if row.out_bytes else 0


def _insert_figures(clients: int, index: int) -> dict[int, float]:
    """Value KB -> one column of constants.INSERT."""
    return {kb: figures[index] for (kb, at), figures in c.INSERT.items() if at == clients}


def _insert_ratio(rows: list[_Fields], clients: int) -> float:
    """By the time of each row, so that few long values weigh as they do."""
    innodb_rates, quarry_rates = _insert_figures(clients, 0), _insert_figures(clients, 1)
    innodb = sum(1 / interpolated(innodb_rates, row.bytes) for row in rows)
    quarry = sum(1 / interpolated(quarry_rates, _measured_bytes(row)) for row in rows)
    return innodb / quarry


def _written(rows: list[_Fields], clients: int, of_quarry: bool) -> float:
    """Bytes for each byte of values; what a codec spares is spared on the way to the device."""
    factors, written = _insert_figures(clients, 2 + of_quarry), 0.0
    for row in rows:
        if not of_quarry or not row.out_bytes:
            written += interpolated(factors, row.bytes) * row.bytes
        else:
            written += interpolated(factors, _measured_bytes(row)) * row.stored_bytes + interpolated(factors, 0) * (row.bytes - row.out_bytes)
    return written / max(1, sum(row.bytes for row in rows))


def alternatives(profile: Profile, advice: Advice, mine: ColumnAdvice) -> list[Alternative]:
    """The advised INLINE_SIZE beside others, so that a user can choose memory over spared flushes."""
    sizes, found = profile.sizes(mine.column), []
    scale = profile.rows / len(profile.sample.rows)
    for inline in sorted({0, 256, 1024, c.INLINE_SIZE_DEFAULT, mine.inline_size}):
        by_name = {a.column: replace(a, inline_size=inline) if a is mine else a for a in advice.columns}
        rows = [_Fields(profile, row, by_name) for row in profile.sample.rows]
        pages = sum(innodb_bytes(row.heads, row.other_bytes, profile.server.page_bytes) for row in rows)
        segments = sum(extent_bytes(size, size * mine.stored_ratio, mine.part_size) for size in sizes if size > inline)
        found.append(Alternative(inline, sum(size <= inline for size in sizes) / max(1, len(sizes)), scale * pages, scale * segments))
    return found
