"""
The variants of a table that the experiments compare, and the CREATE TABLE of each.

The tables are those of experiment E1: `(id INT PRIMARY KEY AUTO_INCREMENT, data <type> [COMMENT ...])`. The type follows the size as
there: BLOB up to 4 KB, MEDIUMBLOB up to 24 KB, LONGBLOB above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import published

KIB = 1024
E1_SIZES_KIB = (4, 24, 64, 448)
_E1 = published.document("e1")
E1_INLINE_BYTES = {size: int(_E1.value(f"inline-{size}kb")) for size in E1_SIZES_KIB}  # BLOB_INLINE_SIZE of the published inline variants
NDB_HEAD_BYTES = int(_E1.value("default-inline"))  # what NDB keeps in the row without a comment; E1's default variant is pinned to it
SWEEP_KIB = (16, 256, 1024, 16384, 32768)  # batch bytes swept by E1, beside the 64 KB and 4 MB of its other variants
_NDB_DEFAULTS = "DEFAULTS=NDB"  # of a table: sizes and batches as NDB has them
_LIKE_NDB = f"QUARRY {_NDB_DEFAULTS}"
_MINIMAL_IMAGE = "SET binlog_row_image=MINIMAL"  # of an update the binary log has the key and what was set
VARBINARY_BYTES_MAX = 65532  # InnoDB's row size limit less the two length bytes and the id


@dataclass(frozen=True)
class Variant:
    """
    One way to store the same values. `inline` is a BLOB_INLINE_SIZE, None, or an experiment's word: 'e1' (the published one for the size),
    'targets'.
    """

    key: str
    label: str
    engine: str
    column: str = "blob"  # or "varbinary"
    inline: str | None = None
    table_options: str = ""
    session_sql: str = ""  # every client connection runs it first
    size_min_bytes: int = 0
    columns: int = 1  # values per row, each an equal share of the size
    counter: bool = False  # an INT column of that name beside the values
    sequence_cache: int = 0  # ids come from a SEQUENCE with this cache instead of AUTO_INCREMENT
    data_of: str = ""  # it reads and updates the tables of that variant, from which its sessions alone differ
    constant_mix: bool = False  # point selects get a constant, and an update finds no row: the client and the SQL layer alone
    server: str = "main"  # which server of the run it lives on

    def applies_to(self, size_bytes: int) -> bool:
        return size_bytes >= self.size_min_bytes and (self.column != "varbinary" or size_bytes <= VARBINARY_BYTES_MAX)

    @property
    def id_expression(self) -> str:
        return "NEXTVAL(ids)" if self.sequence_cache else ""

    @property
    def value_expression(self) -> str:
        """What is stored of a value."""
        return "?"

    def stored_bytes(self, size_bytes: int) -> int:
        """Of each value, what a row holds by its own LENGTH()."""
        return size_bytes // self.columns

    @property
    def needs_plugin(self) -> bool:
        return self.engine == "QUARRY"


def _targets_inline_bytes(size_bytes: int) -> int:
    """Quarry of `targets`: a 4 KB value stays in the row; of others, 2 KB too, the 256 bytes that NDB keeps by default."""
    return 4096 if size_bytes == 4096 else NDB_HEAD_BYTES


def _batches(batch_bytes: int) -> str:
    """All three of the published batch options."""
    return f"SET quarry_read_batch_bytes={batch_bytes}, quarry_write_batch_bytes={batch_bytes}, quarry_batch_size={batch_bytes}"


def _prefetch(size: int) -> Variant:
    """The value stays in the row: on NDB a part would be a row of another table, and cost more than an id."""
    session_sql = f"SET quarry_autoincrement_prefetch_sz={size}"
    return Variant(f"quarry-prefetch-{size}", f"QUARRY prefetch {size}", "QUARRY", inline=str(KIB), session_sql=session_sql)


def _sequence(size: int) -> Variant:
    return Variant(f"sequence-{size}", f"SEQUENCE CACHE {size}", "QUARRY", sequence_cache=size)


def sweep_key(batch_kib: int) -> str:
    return f"quarry-batch-{batch_kib}k"


def _swept(batch_kib: int) -> Variant:
    size = f"{batch_kib} KB" if batch_kib < KIB else f"{batch_kib // KIB} MB"
    return Variant(sweep_key(batch_kib), f"{_LIKE_NDB}, {size} batches", "QUARRY", table_options=_NDB_DEFAULTS, session_sql=_batches(batch_kib * KIB),
                   data_of="quarry-head")


def _own(suffix: str, label: str, inline: str | None, session_sql: str = "", data_of: str = "") -> Variant:
    """Of E1, with Quarry's own defaults."""
    return Variant(f"quarry-default-{suffix}", f"QUARRY {label}", "QUARRY", inline=inline, session_sql=session_sql, data_of=data_of,
                   size_min_bytes=64 * KIB if session_sql else 0)


ALL = {
    v.key: v
    for v in (
        Variant("innodb", "InnoDB BLOB", "InnoDB"),
        Variant("innodb-varbinary", "InnoDB VARBINARY", "InnoDB", column="varbinary"),
        Variant("innodb-page-compressed", "InnoDB page_compressed", "InnoDB", table_options="PAGE_COMPRESSED=1"),
        Variant("rocksdb", "MyRocks", "ROCKSDB"),
        Variant("quarry", "QUARRY", "QUARRY", inline="targets"),
        Variant("quarry-default", "QUARRY default options", "QUARRY"),
        Variant("quarry-one-by-one", "QUARRY, no reading ahead", "QUARRY", session_sql="SET quarry_batch_size=0"),
        # E1's, as NDB has them: its defaults, the published inline sizes, VARBINARY; batches of 64 KB (there the default) and 4 MB.
        Variant("quarry-head", _LIKE_NDB, "QUARRY", table_options=_NDB_DEFAULTS, session_sql=_batches(64 * KIB)),
        Variant("quarry-inline", f"{_LIKE_NDB}, inline", "QUARRY", inline="e1", table_options=_NDB_DEFAULTS, session_sql=_batches(64 * KIB)),
        Variant("quarry-head-4m", f"{_LIKE_NDB}, 4 MB batches", "QUARRY", table_options=_NDB_DEFAULTS, session_sql=_batches(4096 * KIB),
                size_min_bytes=64 * KIB, data_of="quarry-head"),
        Variant("quarry-inline-4m", f"{_LIKE_NDB}, inline, 4 MB batches", "QUARRY", inline="e1", table_options=_NDB_DEFAULTS,
                session_sql=_batches(4096 * KIB), size_min_bytes=64 * KIB, data_of="quarry-inline"),
        # The same with Quarry's own defaults, of sizes and batches.
        _own("inline", "inline", "e1"),
        _own("4m", "default options, 4 MB batches", None, _batches(4096 * KIB), "quarry-default"),
        _own("inline-4m", "inline, 4 MB batches", "e1", _batches(4096 * KIB), "quarry-default-inline"),
        Variant("quarry-varbinary", "QUARRY VARBINARY", "QUARRY", column="varbinary"),
        _prefetch(1), _prefetch(256), _prefetch(1024),
        _sequence(1), _sequence(256), _sequence(1024),
        # E2's: two values a row.
        Variant("innodb-2blob", "InnoDB, two BLOBs", "InnoDB", columns=2),
        Variant("innodb-2varbinary", "InnoDB, two VARBINARYs", "InnoDB", column="varbinary", columns=2),
        Variant("rocksdb-2blob", "MyRocks, two BLOBs", "ROCKSDB", columns=2),
        Variant("quarry-2blob", f"{_LIKE_NDB}, two BLOBs", "QUARRY", table_options=_NDB_DEFAULTS, columns=2),
        Variant("quarry-2blob-default", "QUARRY, two BLOBs, default options", "QUARRY", columns=2),
        Variant("quarry-2varbinary", "QUARRY, two VARBINARYs", "QUARRY", column="varbinary", columns=2),
        *(_swept(kib) for kib in SWEEP_KIB),
        Variant("innodb-counter", "InnoDB, an INT beside the BLOB", "InnoDB", counter=True, session_sql=_MINIMAL_IMAGE),
        Variant("quarry-counter", "QUARRY, an INT beside the BLOB", "QUARRY", inline="targets", counter=True, session_sql=_MINIMAL_IMAGE),
        Variant("discarded", "BLACKHOLE", "BLACKHOLE"),  # the server's own way to a commit: protocol, SQL layer and binary log
        Variant("floor", "client's own floor", "BLACKHOLE", constant_mix=True),
        Variant("quarry-lz4", "QUARRY lz4", "QUARRY", table_options="CODEC=lz4"),
    )
}


TARGET = "target"
TARGET_PREFIX = f"{TARGET}-"
BASELINE_SUFFIX = "-baseline"


_NAMES_THERE = {"quarry_autoincrement_prefetch_sz": "ndb_autoincrement_prefetch_sz", "quarry_read_batch_bytes": "ndb_blob_read_batch_bytes",
                "quarry_write_batch_bytes": "ndb_blob_write_batch_bytes", "quarry_batch_size": "ndb_batch_size"}


def _ndb(variant: Variant) -> Variant:
    """The same in MySQL Cluster: its own names of the batches and of the prefetch, and its defaults without saying so."""
    session_sql = variant.session_sql
    for here, there in _NAMES_THERE.items():
        session_sql = session_sql.replace(here, there)
    label = variant.label.replace(_LIKE_NDB, "NDB" if variant.inline else "NDB default").replace("QUARRY", "NDB")
    return replace(variant, key=variant.key.replace("quarry", "ndb"), label=label, engine="NDBCLUSTER", session_sql=session_sql,
                   table_options=variant.table_options.removeprefix(_NDB_DEFAULTS), data_of=variant.data_of.replace("quarry", "ndb"))


def _on_target(variant: Variant) -> Variant:
    label = variant.label if variant.engine == "NDBCLUSTER" else f"{variant.label}, target"
    return replace(variant, key=TARGET_PREFIX + variant.key, label=label, server=TARGET, data_of=variant.data_of and TARGET_PREFIX + variant.data_of)


def _for_targets() -> list[Variant]:
    """What may live on a server of the user's: every variant there is, and of Quarry's the NDB twin where NDB knows such a thing."""
    base = [v for v in ALL.values() if v.server == "main"]
    twins = [_ndb(v) for v in base if v.engine == "QUARRY" and v.inline != "targets" and not v.sequence_cache and "default" not in v.key
             and v.table_options in ("", _NDB_DEFAULTS)]
    return [_on_target(v) for v in (*base, *twins)]


def _baselines() -> list[Variant]:
    """Every variant of Quarry with the other build of the plugin, which --baseline-plugin names."""
    mine = [v for v in ALL.values() if v.needs_plugin and v.server == "main"]
    return [replace(v, key=v.key + BASELINE_SUFFIX, label=f"{v.label}, baseline", server="baseline",
                    data_of=v.data_of and v.data_of + BASELINE_SUFFIX) for v in mine]


ALL |= {v.key: v for v in (*_for_targets(), *_baselines())}


def on_target(keys: list[str], engines: set[str]) -> list[str]:
    """Of these variants those that a target with these engines (names in capitals) can have too, NDB twins included."""
    candidates = [name for key in keys for name in (TARGET_PREFIX + key, TARGET_PREFIX + key.replace("quarry", "ndb"))]
    return [key for key in dict.fromkeys(candidates) if key in ALL and ALL[key].engine.upper() in engines]


LABELS = {key: variant.label for key, variant in ALL.items()}


def inline_bytes(variant: Variant, size_bytes: int) -> int | None:
    if variant.inline is None:
        return None
    if variant.inline == "targets":
        return _targets_inline_bytes(size_bytes)
    if variant.inline == "e1":
        return E1_INLINE_BYTES.get(size_bytes // KIB, min(size_bytes, E1_INLINE_BYTES[448]))
    return int(variant.inline)


def column_type(variant: Variant, size_bytes: int) -> str:
    if variant.column == "varbinary":
        if not variant.applies_to(size_bytes):
            raise ValueError(f"VARBINARY({size_bytes}) does not fit a row (at most {VARBINARY_BYTES_MAX} bytes)")
        return f"VARBINARY({size_bytes})"
    if size_bytes <= 4 * KIB:
        return "BLOB"
    return "MEDIUMBLOB" if size_bytes <= 24 * KIB else "LONGBLOB"


def column_names(variant: Variant) -> list[str]:
    return ["data"] if variant.columns == 1 else [f"data{i}" for i in range(1, variant.columns + 1)]


def create_table(variant: Variant, size_bytes: int, table: str, more_columns: str = "") -> str:
    """The statement as the published experiment writes it, but for the engine's name. more_columns: of the caller's, after the values."""
    inline = inline_bytes(variant, size_bytes)
    comment = f' COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE={inline}"' if inline is not None else ""
    options = f" {variant.table_options}" if variant.table_options else ""
    values = ", ".join(f"{name} {column_type(variant, size_bytes // variant.columns)}{comment}" for name in column_names(variant))
    ids = "" if variant.sequence_cache else " AUTO_INCREMENT"
    counter = ", counter INT NOT NULL DEFAULT 0" if variant.counter else ""
    more = f", {more_columns}" if more_columns else ""
    return f"CREATE TABLE {table} (id INT PRIMARY KEY{ids}, {values}{counter}{more}) ENGINE={variant.engine}{options}"
