"""
What the advisor knows of a table: its definition, a sample of its rows, how it is used, and the server it is on.

Values only: made by target.py, sampler.py and workload.py, read by the rules. Sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """One BLOB, TEXT or JSON column. `definition`: as SHOW CREATE TABLE writes it, after the name."""

    name: str
    type: str
    definition: str
    max_bytes: int
    is_json: bool = False
    left_alone: str | None = None  # why Quarry leaves it whole in InnoDB; None: managed
    index_prefix_bytes: int = 0
    doubt: str | None = None  # why the definition is not to be put into a statement

    @property
    def is_binary(self) -> bool:
        return self.type.endswith("blob")


@dataclass(frozen=True)
class Partition:
    name: str
    rows_estimated: int


@dataclass(frozen=True)
class KeyColumn:
    """One column of the key that is dived into. `kind`: number, time, date, bytes or text; None: no random place can be named in it."""

    name: str
    kind: str | None


@dataclass(frozen=True)
class Table:
    schema: str
    name: str
    engine: str
    rows_estimated: int
    data_bytes: int  # by the engine's statistics, InnoDB's overflow pages included
    columns: tuple[Column, ...]
    key: tuple[KeyColumn, ...] = ()  # PRIMARY, else a unique key without NULLs, else empty
    key_name: str = ""
    partitions: tuple[Partition, ...] = ()
    other_fixed_bytes: int = 0  # of the other columns: those of fixed width
    other_variable: tuple[str, ...] = ()  # and the names of those whose length is measured
    system_versioned: bool = False
    row_format: str = ""
    foreign_keys: tuple[str, ...] = ()  # the table's own and those that refer to it, as "name of schema.table"
    create_table: str = ""  # SHOW CREATE TABLE, as it was read

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def managed(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.left_alone is None)

    @property
    def alter_is_refused(self) -> str | None:
        """Why the server would not change this table's engine to QUARRY, and what to do; None: it would."""
        if self.engine.upper() == "QUARRY":
            return None
        if self.system_versioned:
            return "the server alters no system-versioned table from InnoDB to QUARRY (4120): dump it, and load it anew"
        if self.foreign_keys:
            return ("the server changes the engine of no table that has foreign keys or is referred to by them: drop them first, and add them again "
                    f"afterwards ({', '.join(self.foreign_keys)})")
        return None


@dataclass(frozen=True)
class Server:
    version: str
    has_quarry: bool
    buffer_pool_bytes: int
    page_bytes: int = 16384


@dataclass(frozen=True)
class Workload:
    """Row operations since the source's counters began. `source` None: unknown, and `note` says why."""

    source: str | None
    note: str = ""
    reads: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def writes(self) -> int:
        return self.inserts + self.updates

    @property
    def write_share(self) -> float | None:
        """Of the operations that carry values; None when nothing is known, or nobody has read yet: a load says nothing of the use."""
        return self.writes / (self.reads + self.writes) if self.source and self.reads else None


@dataclass(frozen=True)
class Compressed:
    """One value of the sample: its size, and what its parts come to. (codec, part size) -> bytes, scaled to the whole value."""

    size_bytes: int
    stored_bytes: dict[tuple[str, int], float]


@dataclass(frozen=True)
class Row:
    """One sampled row: bytes of each column in the order of Table.columns (None: NULL), and of all other columns together."""

    sizes: tuple[int | None, ...]
    other_bytes: int


@dataclass
class Sample:
    rows: list[Row] = field(default_factory=list)
    values: list[tuple[bytes | None, ...]] = field(default_factory=list)  # first bytes of the columns of some of the rows
    value_sizes: list[tuple[int | None, ...]] = field(default_factory=list)  # and their whole sizes
    complete: bool = False  # every row of the table was read
    how: str = ""
    stopped_by: str = ""  # the limit that ended it early, if one did
    read_bytes: int = 0  # of values, on the server
    fetched_bytes: int = 0  # of values, over the connection
    seconds: float = 0.0


@dataclass(frozen=True)
class Profile:
    table: Table
    server: Server
    workload: Workload
    sample: Sample
    compressed: dict[str, list[Compressed]] = field(default_factory=dict)  # by column
    codec_rates: dict[str, tuple[float, float]] = field(default_factory=dict)  # codec -> bytes per second in and out, on this machine

    def sizes(self, column: str) -> list[int]:
        """Of the sampled values that are not NULL."""
        index = [c.name for c in self.table.columns].index(column)
        return [row.sizes[index] for row in self.sample.rows if row.sizes[index] is not None]

    @property
    def rows(self) -> int:
        """Rows of the table: counted when all were read, else by the engine's statistics."""
        return len(self.sample.rows) if self.sample.complete else max(self.table.rows_estimated, len(self.sample.rows))
