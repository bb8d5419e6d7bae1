"""
The variants that the demo compares: the same table, stored in different ways.

Quarry takes part twice: with its defaults, and with MySQL Cluster's column comment, which keeps the same number of
bytes of every value in the row.

VARBINARY holds what fits a row (65,535 bytes, less the other columns), so it meets the others on those files alone.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "files"
NAME_BYTES_MAX = 200
VARBINARY_BYTES_MAX = 65_000
NDB_INLINE_BYTES = 256  # NDB's own default, given explicitly


@dataclass(frozen=True)
class Variant:
    key: str
    label: str
    engine: str
    column: str
    options: str = ""

    @property
    def is_quarry(self) -> bool:
        return self.engine == "QUARRY"

    def create_table(self, table: str = TABLE) -> str:
        options = f" {self.options}" if self.options else ""
        return (
            f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, name VARBINARY({NAME_BYTES_MAX}) NOT NULL, "
            f"sha256 BINARY(32) NOT NULL, data {self.column}) ENGINE={self.engine}{options}"
        )


@dataclass(frozen=True)
class DataSet:
    """Some of the corpus, and the variants that can hold it."""

    key: str
    label: str
    size_bytes_max: int | None  # None: every file
    variants: tuple[str, ...]


_NDB_COMMENT = f"LONGBLOB NOT NULL COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE={NDB_INLINE_BYTES}'"

VARIANTS = {
    v.key: v
    for v in (
        Variant("innodb", "InnoDB LONGBLOB", "InnoDB", "LONGBLOB NOT NULL"),
        Variant("varbinary", "InnoDB VARBINARY", "InnoDB", f"VARBINARY({VARBINARY_BYTES_MAX}) NOT NULL"),
        Variant("quarry", "Quarry", "QUARRY", "LONGBLOB NOT NULL"),
        Variant("quarry_ndb", "Quarry, NDB comment", "QUARRY", _NDB_COMMENT),
    )
}

DATA_SETS = (
    DataSet("all", "all files", None, ("innodb", "quarry", "quarry_ndb")),
    DataSet(
        "small",
        f"the files that fit VARBINARY({VARBINARY_BYTES_MAX})",
        VARBINARY_BYTES_MAX,
        ("innodb", "varbinary", "quarry"),
    ),
)
BLACKHOLE = Variant("blackhole", "BLACKHOLE", "BLACKHOLE", "LONGBLOB NOT NULL")
